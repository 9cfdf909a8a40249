"""What the command says of the facts of a release."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.core.facts import (
    Alike,
    Blocked,
    Chained,
    Downgraded,
    Fact,
    FormulaTexts,
    Randomized,
    RareValues,
    Sampled,
    Swapped,
    Synthesized,
    TargetMoved,
    Transformed,
)

if TYPE_CHECKING:
    from sfumato.privacy.certificate import Certificate
    from sfumato.tables.files import FileForm

__all__ = ["fact_lines", "rare_words"]


def fact_lines(certificate: Certificate, form: FileForm) -> list[tuple[int, str]]:
    """Lines about a release whose table is written so, each with how readily it is left out."""
    parts = [(4, _group_words(certificate))]
    for fact in certificate.facts:
        match fact:
            case Transformed():
                known = "1 row" if fact.known_rows == 1 else f"{fact.known_rows} rows"
                parts.append((0, f"Outsourcing obfuscation: reversible by anyone who knows {known}."))
            case TargetMoved():
                moved = f"The target {fact.column!r} was moved like every other number; --public leaves it as it is."
                parts.append((3, moved))
            case RareValues():
                parts.append((3, rare_words(fact)))
            case FormulaTexts() if not fact.quoted and form.format.value == "csv":
                begin = f"{fact.cells} cells and {fact.names} column names begin as formulas of a spreadsheet do"
                parts.append((1, f"{begin}; --spreadsheet-safe writes them as text."))
            case _ if (words := _modified_words(fact)) is not None:
                parts.append((0, words))
    spent = [fact.epsilon for fact in certificate.facts if isinstance(fact, Randomized)]
    if spent:
        bounded = [epsilon for epsilon in spent if epsilon is not None]
        total = f"local epsilon {sum(bounded):.3g} for a whole row" if len(bounded) == len(spent) else "no bound"
        parts.append((3, f"{len(spent)} columns randomized cell by cell: {total}. The certificate holds their laws."))
    return parts


def _group_words(certificate: Certificate) -> str:
    levels, counts = certificate.levels, f"{certificate.rows_in} records in, {certificate.rows_out}"
    if not levels:
        return f"{counts} rows out; no groups, no privacy level."
    kind = "synthetic " if any(isinstance(fact, Chained | Synthesized) for fact in certificate.facts) else ""
    chained = any(isinstance(fact, Chained) for fact in certificate.facts)
    groups = _counted(levels["groups"], "leaf", "leaves") if chained else _counted(levels["groups"], "group")
    low, high = levels["asked_min"], levels["asked_max"]
    asked = f"everybody's level, {low}, is met" if low == high else f"levels {low} to {high}, all met"
    return f"{counts} {kind}rows out; {groups}, the smallest of {levels['smallest_group']}; {asked}."


def _modified_words(fact: Fact) -> str | None:
    """What was done to rows that were not made anew, in one line; None for other facts."""
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
