"""Linking two halves of a person's columns through the released table [Giomi et al. 2023, linkability].

The attacker has some columns of a person from one source and the rest from another, and takes them for the same person
where both lead to the same released row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.algebra import SHARE, Measure, Need, Number, Stated, success
from sfumato.assess.findings import Family
from sfumato.assess.intervals import Tries
from sfumato.assess.neighbours import nearest
from sfumato.assess.stand_ins import split_in_tenths
from sfumato.assess.study import Matrix, Places, Study, bits_of, row_keys

__all__ = ["LINKABILITY", "chance_in_common", "draw_halves", "pick_near"]

_SPLITS = 4  # ways to halve the columns, each tried on its own share of the people
_NEAR = {"linkability": 1, "linkability-near": 10}


def _run(study: Study) -> Iterator[Stated]:
    rng = study.generator("linkability")
    most = study.sizes.attempts
    people = rng.permutation(study.attacked(most, rng))
    outside = None if study.holdout is None else rng.permutation(study.attacked_outside(most, rng))
    hits = {name: [0, 0] for name in _NEAR}
    for split in range(_SPLITS):
        parts = [study.original[people[split::_SPLITS]]]
        if study.holdout is not None and outside is not None:
            parts.append(study.holdout[outside[split::_SPLITS]])
        found = _joined(study, np.concatenate(parts), rng)
        for name, joined in found.items():
            hits[name][0] += int(joined[: len(parts[0])].sum())
            hits[name][1] += int(joined[len(parts[0]) :].sum())
    for name, count in _NEAR.items():
        control = None if outside is None else Tries(hits[name][1], len(outside))
        guess, note = chance_in_common(len(study.released), count), study.looked(len(people))
        yield name, success(Tries(hits[name][0], len(people)), guess=guess, control=control, note=note)


def _joined(study: Study, people: Matrix, rng: np.random.Generator) -> dict[str, NDArray[np.bool_]]:
    """Whose halves, of columns halved once, lead to a common row."""
    if not len(people):
        return {name: np.zeros(0, dtype=np.bool_) for name in _NEAR}
    picks = []
    for half in draw_halves([pair.name for pair in study.pairs], rng):
        here = study.coordinates(half)
        picks.append(pick_near(study.released[:, here], people[:, here], max(_NEAR.values()), rng))
    first, second = picks
    return {name: (first[:, :count, None] == second[:, None, :count]).any(axis=(1, 2)) for name, count in _NEAR.items()}


def draw_halves(columns: list[str], rng: np.random.Generator) -> tuple[list[str], list[str]]:
    """Two random halves of the columns; of an odd number either half may get the one more."""
    order = rng.permutation(len(columns))
    cut = (len(columns) + int(rng.integers(2))) // 2
    return [columns[place] for place in order[:cut]], [columns[place] for place in order[cut:]]


def chance_in_common(rows: int, count: int) -> float:
    """Chance that two random picks of so many rows have one in common.

    Examples
    --------
    >>> chance_in_common(4, 1), chance_in_common(4, 3)
    (0.25, 1.0)
    """
    count = min(count, rows)
    apart = [(rows - count - step) / (rows - step) for step in range(count)]
    return 1.0 - float(np.prod(np.maximum(apart, 0.0)))


@dataclass(frozen=True, eq=False, repr=False)
class _Spots:
    """Rows that are alike in all coordinates share a spot.

    ``rows`` is one row of each spot, ``order`` the places of all rows, spot after spot and at random inside; those of
    spot s are ``order[start[s] : start[s] + size[s]]``.
    """

    rows: Matrix
    order: Places
    start: Places
    size: Places


def _spots(rows: Matrix, rng: np.random.Generator) -> _Spots:
    mixed = row_keys(bits_of(column) for column in rows.T)
    shuffled = rng.permutation(len(rows))
    order = shuffled[np.argsort(mixed[shuffled], kind="stable")]
    ordered = mixed[order]
    start = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    return _Spots(rows[order[start]], order, start, np.diff(start, append=len(rows)))


def pick_near(rows: Matrix, queries: Matrix, count: int, rng: np.random.Generator) -> Places:
    """Places of the rows nearest to each query, in rising distance; of those that are alike some at random.

    Fewer than ``count`` where there are fewer rows.

    Examples
    --------
    >>> rows = np.array([[3.0], [0.0], [1.0]])
    >>> pick_near(rows, np.array([[0.1]]), 2, np.random.default_rng(1)).tolist()
    [[1, 2]]
    """
    count = min(count, len(rows))
    spots = _spots(rows, rng)
    near = nearest(spots.rows, queries, min(count, len(spots.rows)))[0]
    sizes = spots.size[near]
    before = np.cumsum(sizes, axis=1) - sizes
    turn = rng.integers(0, sizes)
    picks = np.empty((len(queries), count), dtype=np.int64)
    everyone = np.arange(len(queries))
    for place in range(count):
        which = (before <= place).sum(axis=1) - 1
        spot, size = near[everyone, which], sizes[everyone, which]
        member = (turn[everyone, which] + place - before[everyone, which]) % size
        picks[:, place] = spots.order[spots.start[spot] + member]
    return picks


LINKABILITY = Measure(
    "linkability",
    Family.ATTACK,
    "Giomi, Boenisch, Wehmeyer & Tasnádi 2023",
    _run,
    needs=(Need.COLUMNS,),
    stand_ins=split_in_tenths,
).finds(
    Number("linkability", "Linking two halves of a row", SHARE).means(
        "How often two halves of a person's columns lead to the same released row, so that two sources can be "
        "joined through the table; less is better, and what held-out people suffer too is not due to being in it"
    ),
    Number("linkability-near", "Linking two halves of a row, nearly", SHARE).means(
        "How often the ten released rows nearest to one half of a person's columns and the ten nearest to the "
        "other half have a row in common; less is better, and what held-out people suffer too is not due to being "
        "in the table"
    ),
)
