"""Claims of released persons who keep several rows each."""

from __future__ import annotations

from sfumato.core.facts import Fact, Grouped, PersonsLinked
from sfumato.privacy.statements import SECRET_RANDOMNESS, Claim, Refused, Statements, counted, quoted

__all__ = ["of_linked_persons"]


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
