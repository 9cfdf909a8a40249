"""Groups that hold no two records of one person: the first record of everybody is a layer, the second the next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import LevelError, PrivacyRefusal
from sfumato.mechanisms.condense.partition import can_begin, partition

__all__ = ["Layers", "check_persons", "first_of_person", "layers_of", "partition_layers"]

_CELLS = 1 << 22  # distances that are held at a time


@dataclass(frozen=True, eq=False, repr=False)
class Layers:
    """Layers of the records in each stratum, no layer with two records of one person.

    ``code`` is the layer of each record, those of one stratum apart from those of another; ``begins`` marks the records
    whose layer is large enough for their levels. The others join groups afterwards.
    """

    code: NDArray[np.int64]
    begins: NDArray[np.bool_]

    def __repr__(self) -> str:
        return "Layers(owner only)"


def layers_of(strata: NDArray[np.int64], persons: NDArray[np.int64] | None, levels: NDArray[np.int64]) -> Layers:
    """Layers of the records, in the order of the table; the strata themselves where each row is a person.

    All records of a first layer begin, so that levels which it cannot meet are refused.

    Examples
    --------
    >>> layers = layers_of(np.zeros(5, dtype=int), np.array([0, 1, 0, 2, 0]), np.full(5, 2))
    >>> layers.code.tolist(), layers.begins.tolist()
    ([0, 0, 1, 0, 2], [True, True, False, True, False])
    """
    begins = np.ones(len(strata), dtype=np.bool_)
    if persons is None:
        return Layers(strata, begins)
    rank = _rank(strata, persons)
    code = np.unique(np.column_stack([strata, rank]), axis=0, return_inverse=True)[1].ravel().astype(np.int64)
    order = np.argsort(code, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(code[order])) + 1):
        if len(rows) and rank[rows[0]] > 0:
            begins[rows] = can_begin(levels[rows])
    return Layers(code, begins)


def _rank(strata: NDArray[np.int64], persons: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many records of the same person and stratum stand above each record."""
    order = np.lexsort((persons, strata))
    changes = np.flatnonzero((np.diff(strata[order]) != 0) | (np.diff(persons[order]) != 0)) + 1
    starts = np.concatenate([[0], changes]).astype(np.int64)
    sizes = np.diff(np.concatenate([starts, [len(order)]]))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order)) - np.repeat(starts, sizes)
    return rank


def partition_layers(
    values: NDArray[np.float64],
    levels: NDArray[np.int64],
    strata: NDArray[np.int64],
    persons: NDArray[np.int64] | None,
    rng: np.random.Generator,
    *,
    weights: NDArray[np.float64] | None = None,
    **options: Any,
) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
    """Group of each record that is kept, and which ones are; None where all of them are.

    A record of a layer that is too thin for its level goes to the nearest group of its stratum that is large enough
    with it and does not hold its person; where there is none it is left out.

    Parameters
    ----------
    values, levels, strata, rng, weights, **options
        As in `partition`.
    persons : ndarray of shape (n,), optional
        Person of each record; without it each record is a person.

    Raises
    ------
    LevelError
        Where a stratum has fewer persons than the highest level among the first records of each.
    PrivacyRefusal
        Where a group came out with two records of one person, or smaller than a level inside it.
    """
    _check_enough(strata, persons, levels)
    layers = layers_of(strata, persons, levels)
    begin = np.flatnonzero(layers.begins)
    if persons is None or len(begin) == len(values):
        labels = partition(values, levels, layers.code, rng, weights=weights, **options)
        check_persons(labels, persons)
        return labels, None
    labels = np.full(len(values), -1, dtype=np.int64)
    labels[begin] = partition(values[begin], levels[begin], layers.code[begin], rng, weights=weights, **options)
    scaled = values if weights is None else values * np.sqrt(weights)
    _join(scaled, levels, strata, persons, labels, layers)
    kept = np.flatnonzero(labels >= 0)
    check_persons(labels[kept], persons[kept])
    return labels[kept], kept if len(kept) < len(values) else None


def first_of_person(strata: NDArray[np.int64], persons: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """Places of the first record of each person in each stratum."""
    return np.arange(len(strata)) if persons is None else np.flatnonzero(_rank(strata, persons) == 0)


def _check_enough(strata: NDArray[np.int64], persons: NDArray[np.int64] | None, levels: NDArray[np.int64]) -> None:
    """Refuse strata with fewer persons than a level that one of their records asks for."""
    if persons is None:
        return
    codes = np.unique(strata, return_inverse=True)[1].ravel()
    many = np.bincount(codes[first_of_person(strata, persons)])
    highest = np.zeros(len(many), dtype=np.int64)
    np.maximum.at(highest, codes, levels)
    short = np.flatnonzero(many < highest)
    if len(short):
        worst = short[np.argmin(many[short])]
        raise LevelError(
            f"{len(short)} of {len(many)} parts that groups may not leave have fewer persons than the highest privacy "
            f"level in them (the smallest has {many[worst]} and level {highest[worst]}); lower the level, pool small "
            "strata, or bring more persons"
        )


def _join(
    values: NDArray[np.float64],
    levels: NDArray[np.int64],
    strata: NDArray[np.int64],
    persons: NDArray[np.int64],
    labels: NDArray[np.int64],
    layers: Layers,
) -> None:
    """Put the records that wait into the nearest group that may take each, those of low levels first."""
    waiting = np.flatnonzero(~layers.begins)
    in_groups = np.flatnonzero(layers.begins)
    sizes = np.bincount(labels[in_groups])
    centres = np.zeros((len(sizes), values.shape[1]))
    np.add.at(centres, labels[in_groups], values[in_groups])
    centres /= sizes[:, None]
    stratum = np.zeros(len(sizes), dtype=np.int64)
    stratum[labels[in_groups]] = strata[in_groups]
    held: dict[int, list[int]] = {int(person): [] for person in persons[waiting]}
    for row in in_groups[np.isin(persons[in_groups], persons[waiting])].tolist():
        held[int(persons[row])].append(int(labels[row]))
    for each in np.unique(strata[waiting]):
        groups = np.flatnonzero(stratum == each)
        place = np.full(len(sizes), -1, dtype=np.int64)
        place[groups] = np.arange(len(groups))
        own = waiting[strata[waiting] == each]
        own = own[np.argsort(levels[own], kind="stable")]
        block = max(1, _CELLS // max(1, len(groups)))
        for first in range(0, len(own), block):
            rows = own[first : first + block]
            apart = (centres[groups] ** 2).sum(axis=1) - 2.0 * (values[rows] @ centres[groups].T)
            for row, distances in zip(rows.tolist(), apart, strict=True):
                theirs = held[int(persons[row])]
                taken = place[theirs] if theirs else np.empty(0, dtype=np.int64)
                distances[taken[taken >= 0]] = np.inf
                distances[sizes[groups] + 1 < levels[row]] = np.inf
                nearest = int(np.argmin(distances))
                if np.isfinite(distances[nearest]):
                    group = int(groups[nearest])
                    labels[row] = group
                    sizes[group] += 1
                    theirs.append(group)


def check_persons(labels: NDArray[np.int64], persons: NDArray[np.int64] | None) -> None:
    """Fail closed if a group holds two records of one person."""
    if persons is None:
        return
    twice = len(labels) - len(np.unique(np.column_stack([labels, persons]), axis=0))
    if twice:
        raise PrivacyRefusal(
            f"{twice} records came out in a group that holds their person already; nothing is released. Please report "
            "this as a defect"
        )
