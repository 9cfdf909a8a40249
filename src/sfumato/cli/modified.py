"""What the command says of a table whose rows were modified and not made anew."""

from __future__ import annotations

from sfumato.core.facts import Alike, Blocked, Downgraded, Fact, Sampled, Swapped

__all__ = ["modified_words"]


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
