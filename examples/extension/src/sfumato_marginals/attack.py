"""Membership inference by value matching: a person whose exact values occur in the release is said to be a member."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.algebra import Measure, Need, Number, Stated, Values
from sfumato.assess.attacks.membership import area_tries
from sfumato.assess.findings import Family
from sfumato.assess.study import Column, Study

__all__ = ["VALUE_MATCHING"]


def _matches(people: Sequence[Column], study: Study) -> NDArray[np.float64]:
    """Number of columns in which the exact value of each person occurs in the release."""
    found = [
        np.isin(column.values, pair.released.present) & ~column.absent
        for column, pair in zip(people, study.pairs, strict=True)
    ]
    return np.sum(found, axis=0, dtype=np.float64)


def _run(study: Study) -> Iterator[Stated]:
    """Compare members with the control group."""
    assert study.held is not None  # Need.HOLDOUT
    rng = study.generator("value-matching")
    count = min(study.sizes.attempts, study.people, study.people_outside)
    members = study.attacked(count, rng)
    outside = study.attacked_outside(count, rng)
    tries = area_tries(
        _matches([pair.original.take(members) for pair in study.pairs], study),
        _matches([column.take(outside) for column in study.held], study),
    )
    note = f"; measured on {count} people of each kind"
    yield "value-matching-auc", Values(tries.share, tries.interval, 0.5, attempts=count, note=note, inside=tries)


VALUE_MATCHING = Measure(
    "value-matching", Family.ATTACK, "after Shokri et al. 2017", _run, needs=(Need.HOLDOUT,)
).finds(
    Number("value-matching-auc", "Membership inference, value matching").means(
        "Membership inference: AUC of an attacker who counts in how many columns the exact value of a person occurs in "
        "the release. 0.5 is guessing, 1 is always right"
    )
)
