"""Linking a person by all of their records at once, where released rows of a person stay together."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np

from sfumato.assess.algebra import SHARE, Measure, NotRun, Number, Stated, success
from sfumato.assess.attacks.linkage import linkage_tries
from sfumato.assess.findings import Family
from sfumato.assess.stand_ins import split_in_two
from sfumato.assess.study import Matrix, Places, Study, drawn_note

__all__ = ["LINKED_PERSONS"]


def _run(study: Study) -> Iterator[Stated]:
    if study.linked is None or study.persons is None:
        raise NotRun("released rows do not say which of them belong to one person", applies=False)
    most = int(np.unique(study.persons, return_counts=True)[1].max())
    held = None
    if study.holdout is not None and study.held_persons is not None:
        held = _persons(study.holdout, study.held_persons, most)
    whole = dataclasses.replace(
        study,
        original=_persons(study.original, study.persons, most),
        released=_persons(study.released, study.linked, most),
        holdout=held,
        held=None,
        persons=None,
        held_persons=None,
    )
    attack, control = linkage_tries(whole)
    nobody = [linkage_tries(other)[0].share for other in split_in_two(whole)]
    guess = nobody[0] if nobody else 1 / study.people
    note = drawn_note(int(attack.of), study.people, "people")
    yield "linkage-persons", success(attack, guess=guess, control=control, note=note)


def _persons(rows: Matrix, persons: Places, most: int) -> Matrix:
    """Mean of the rows of each person, and how many there are, at most so many."""
    codes, counts = np.unique(persons, return_inverse=True, return_counts=True)[1:]
    sums = np.zeros((len(counts), rows.shape[1]))
    np.add.at(sums, codes, rows)
    return np.ascontiguousarray(np.column_stack([sums / counts[:, None], np.minimum(counts, most)]))


LINKED_PERSONS = Measure(
    "linked-persons", Family.ATTACK, "Domingo-Ferrer & Torra 2001, on the means of persons", _run
).finds(
    Number("linkage-persons", "Linkage by all rows of a person", SHARE).means(
        "The share of people whose nearest released person, compared by the mean of all of their rows and how many "
        "there are, has nobody of the original nearer than them; what exceeds the share of held-out people is due to "
        "their being in the table, and less is better; the baseline is what a release that knows nobody gives, "
        "measured by linking one part of the original to the other"
    )
)
