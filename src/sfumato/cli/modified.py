"""What the command says of values that became others, and of rows that were modified and not made anew."""

from __future__ import annotations

from sfumato.core.facts import Alike, Blocked, Downgraded, Fact, RareValues, Sampled, Swapped

__all__ = ["modified_words", "rare_words"]


def modified_words(fact: Fact) -> str | None:
    """What was done to the rows, in one line; None for other facts."""
    match fact:
        case Swapped():
            more = f" and {len(fact.columns) - 3} more" if len(fact.columns) > 3 else ""
            changed = f"{sum(fact.changed)} of {fact.rows * len(fact.columns)} cells"
            return f"Swapped cells of {', '.join(map(repr, fact.columns[:3]))}{more}: {changed} are others than before."
        case Sampled():
            return f"A sample: {fact.drawn} of {fact.persons} people, whose rows are as they were. They are not hidden."
        case Blocked():
            return f"Blocked {sum(fact.cells)} cells: what is shown of the known columns {fact.least} people share."
        case Downgraded():
            told = f"no rule left tells more than {fact.most:.2g} bits; see owner/rules.txt"
            return f"Label of {fact.hidden} rows hidden, {sum(fact.cells)} other cells too: {told}."
        case Alike() if fact.alone:
            return f"{fact.alone} of {fact.rows} rows are like no other."
        case _:
            return None


def rare_words(fact: RareValues) -> str:
    """Say what became of categories that few hold."""
    who = f"fewer than {fact.k} persons"
    if fact.shown:
        return f"Rare values: {fact.shown} categories that {who} hold are left as they are."
    told = []
    if fact.categories:
        cells = _counted(fact.cells, "cell")
        told.append(f"{_counted(fact.categories, 'category', 'categories')} became others ({cells})")
    if fact.dropped:
        told.append(f"{_counted(len(fact.dropped), 'column')} left with less than two dropped")
    if fact.filled:
        told.append(f"{_counted(fact.filled, 'missing cell')} of {who} took another record's value")
    return f"Rare values: {', '.join(told) or 'none'}; {fact.k} persons hold each category that is left."


def _counted(count: int, one: str, many: str | None = None) -> str:
    return f"{count} {one if count == 1 else many or f'{one}s'}"
