"""Claims of persons with several rows: released ones who keep them together, and those of a stream."""

from __future__ import annotations

from sfumato.core.facts import Fact, Grouped, PersonRowsBounded, PersonsLinked
from sfumato.privacy.statements import SECRET_RANDOMNESS, Claim, ClaimsOf, Refused, Statements, counted, quoted

__all__ = ["CLAIMS", "of_bounded_rows"]


def of_linked_persons(fact: PersonsLinked, facts: tuple[Fact, ...]) -> Statements:
    """Say whom a released person was drawn from, and what rows that stay together give away."""
    smallest = next(other.smallest for other in facts if isinstance(other, Grouped))
    yield Claim(
        f"The rows of each of the {counted(fact.persons, 'released person', 'released persons')} were drawn together "
        f"from the records of at least {counted(smallest, 'person', 'persons')} who have as many, those left out not "
        "counted.",
        "proved",
        "Persons with as many records were condensed by all of them at once; the first records of a group's members "
        "make the first rows, the second ones the second, and so on.",
        "the person column tells who each row is about",
    )
    yield Claim(
        f"The numbers of {fact.column!r} say nothing of the values of the person column.",
        "proved",
        "They were dealt by chance, after the rows were drawn.",
        SECRET_RANDOMNESS,
    )
    if fact.constant:
        yield Claim(
            "No released person has two values in a column that never changes within a person of the original: "
            f"{quoted(fact.constant)}.",
            "proved",
            "They were drawn once for each released person.",
            "nothing; the released table shows it",
        )
    yield Refused(
        "How many records a person has stays unknown to whoever finds that person's group.",
        "persons of a group have as many records each, up to those left out, and released persons as many rows",
    )
    yield Refused(
        "Rows that stay together give away no more than single rows do.",
        f"a released person keeps up to {counted(fact.most, 'row', 'rows')}, so whoever knows several records of "
        "somebody compares them all at once",
    )


def of_bounded_rows(fact: PersonRowsBounded, k: int, asked_max: int) -> Claim:
    """Say how many persons a group of a stream had at least, whose levels of rows these are."""
    low, high = k // fact.most, asked_max // fact.most
    asked = f"{low}" if low == high else f"{low} to {high}"
    return Claim(
        "Every record that stands behind the rows joined a group that, with it, was of at least as many different "
        f"persons as its own privacy level ({asked}) when it came; until there was one it waited and was not "
        "published.",
        "proved",
        f"Of a person at most {counted(fact.most, 'record is', 'records are')} taken in, the others are kept out, and "
        "a group needs as many times as many records as persons; the first records were condensed together [AY05, "
        "sec. 2] and later ones join the closest group that is large enough [AY05, sec. 3]; a group that was split "
        "counts as the model has it.",
        "the person column tells who each row is about",
    )


CLAIMS: ClaimsOf = {PersonsLinked: of_linked_persons}
