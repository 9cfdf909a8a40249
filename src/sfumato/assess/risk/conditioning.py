"""Groups that are flat, and people whose group reaches far beyond their neighbours; for the owner.

The covariance of k records has rank k - 1 at most. Where that is less than the table's own, synthetic rows stay in the
flat that the k people span.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from sfumato.assess.algebra import SHARE, SIZE, Measure, Need, NotRun, Number, Scale, Stated, Values
from sfumato.assess.findings import Family
from sfumato.assess.intervals import median_interval, wilson
from sfumato.assess.neighbours import nearest
from sfumato.assess.study import Matrix, Places, Study, drawn_note, sample

__all__ = ["CONDITIONING", "group_spectra"]

WIDE = 3.0
"""A group is far wider than need be for a member who is so many times as far from it as from the nearest people."""
_TOLERANCE = 1e-10  # of the largest variance: below it a direction counts as having none
_CELLS = 2_000_000  # in one block
_WORK = 2e10  # multiplications that the spectra of all groups may cost; of more groups a sample is taken
_MEMBERS = 200  # people of larger groups are not asked for that many neighbours
_FEWEST, _MOST = 10, 50_000  # groups whose spectra are looked at


def group_spectra(values: Matrix, members: Iterable[Places]) -> tuple[Places, Matrix]:
    """Rank and condition of groups: directions with variance, and longest deviation by shortest that is not flat.

    ``members`` are arrays of shape (b, s): places of the s members of each of b groups of the same size. The condition
    of a group of rank 0 or 1 is 1.
    """
    ranks, conditions = [np.empty(0, np.int64)], [np.empty(0)]
    for places in members:
        centred = values[places]
        centred = centred - centred.mean(axis=1, keepdims=True)
        across = centred.transpose(0, 2, 1)
        square = centred @ across if centred.shape[1] <= centred.shape[2] else across @ centred
        variances = np.maximum(np.linalg.eigvalsh(square)[:, ::-1], 0.0)
        there = variances > _TOLERANCE * np.maximum(variances[:, :1], 1e-12 * centred.shape[1])
        rank = there.sum(axis=1)
        shortest = np.take_along_axis(variances, np.maximum(rank - 1, 0)[:, None], axis=1)[:, 0]
        ranks.append(rank)
        conditions.append(np.sqrt(np.divide(variances[:, 0], shortest, out=np.ones(len(rank)), where=rank > 0)))
    return np.concatenate(ranks), np.concatenate(conditions)


def _run(study: Study) -> Iterator[Stated]:
    if study.workings is None or study.workings.labels is None:
        raise NotRun(Need.GROUPS.value)
    rng, values = study.generator("conditioning"), study.original
    groups, sizes = np.unique(study.workings.labels, return_inverse=True, return_counts=True)[1:]
    order = rng.permutation(len(groups))
    order = order[np.argsort(groups[order], kind="stable")]
    starts = np.cumsum(sizes) - sizes
    whole = _rank_of_table(values)
    chosen = _affordable(sizes, values.shape[1], rng)
    members = [_blocks(who, starts, sizes, chosen, values.shape[1]) for who in (order, rng.permutation(order))]
    (rank, condition), (other_rank, other_condition) = (group_spectra(values, each) for each in members)
    part, flat = len(rank) < len(sizes), int((rank < whole).sum())
    note = drawn_note(len(rank), len(sizes), "groups")
    flat_by_chance = float((other_rank < whole).mean())
    yield "groups-flat", Values(flat / len(rank), wilson(flat, len(rank)) if part else None, flat_by_chance, note=note)
    bounds = (0.0, float(whole))
    yield "group-rank-smallest", Values(float(rank.min()), baseline=float(other_rank.min()), note=note, range=bounds)
    middle, by_chance = float(np.median(condition)), float(np.median(other_condition))
    yield "group-condition-median", Values(middle, median_interval(condition) if part else None, by_chance, note=note)
    yield "people-wide", _wide(study, groups, sizes, (order, starts), rng)


def _rank_of_table(values: Matrix) -> int:
    """Count the directions in which the whole table varies; the coordinates of a category depend on one another."""
    centred = values - values.mean(axis=0)
    variances = np.linalg.eigvalsh(centred.T @ centred)
    return int((variances > _TOLERANCE * max(variances[-1], 1e-12 * len(values))).sum())


def _affordable(sizes: Places, width: int, rng: np.random.Generator) -> Places:
    """Choose groups at random until their spectra cost enough."""
    drawn = rng.permutation(len(sizes))
    short = np.minimum(sizes[drawn], width).astype(np.float64)
    work = np.cumsum(sizes[drawn] * short * width + 10 * short**3)
    return drawn[: min(_MOST, max(_FEWEST, int(np.searchsorted(work, _WORK))))]


def _blocks(order: Places, starts: Places, sizes: Places, chosen: Places, width: int) -> Iterator[Places]:
    """Members of the chosen groups, groups of the same size together, in blocks of bounded memory.

    Of a very large group so many members are enough: its rank does not hang on one.
    """
    for size in np.unique(sizes[chosen]):
        begin = starts[chosen[sizes[chosen] == size]]
        several = min(int(size), max(10 * width, _CELLS // width))
        step = max(1, _CELLS // (several * width))
        for at in range(0, len(begin), step):
            yield order[begin[at : at + step, None] + np.arange(several)]


def _wide(
    study: Study, groups: Places, sizes: Places, by_group: tuple[Places, Places], rng: np.random.Generator
) -> Values | NotRun:
    """Each person's distance to the others of the group beside that to as many nearest people."""
    order, starts = by_group
    own = sizes[groups]
    able = np.flatnonzero((own > 1) & (own <= _MEMBERS + 1))
    if not len(able):
        return NotRun(f"every group has a single member or more than {_MEMBERS + 1}")
    people = able[sample(len(able), study.sizes.attempts, rng)]
    values, count = study.original, own[people] - 1
    near = nearest(values, values[people], int(count.max()), own=people)[1] ** 2
    least = np.cumsum(near, axis=1)[np.arange(len(people)), count - 1]
    fellows, others = np.empty(len(people)), np.empty(len(people))
    for size in np.unique(count):
        same = np.flatnonzero(count == size)
        for part in np.array_split(same, max(1, len(same) * int(size) * values.shape[1] // _CELLS)):
            mine = order[starts[groups[people[part]], None] + np.arange(size + 1)]
            fellows[part] = _squares(values, people[part], mine)
            others[part] = _squares(values, people[part], rng.integers(0, len(values), size=(len(part), size)))
    bound = WIDE**2 * least + 1e-12 * count  # rounding is not width
    wide, tried, by_chance = int((fellows > bound).sum()), len(people), float((others > bound).mean())
    interval, note = wilson(wide, tried) if tried < len(values) else None, drawn_note(tried, len(values))
    return Values(wide / tried, interval, by_chance, attempts=tried, note=note)


def _squares(values: Matrix, people: Places, others: Places) -> Matrix:
    """Sum the squared distances of each person to others; to oneself it is 0."""
    return np.asarray(((values[others] - values[people, None]) ** 2).sum(axis=(1, 2)))


CONDITIONING = Measure(
    "conditioning", Family.PRIVACY, "Aggarwal & Yu 2005; Domingo-Ferrer & Mateo-Sanz 2002", _run
).finds(
    Number("groups-flat", "Groups without width in some direction", SHARE.owners).means(
        "The share of groups that vary in fewer directions than the table does, so that their synthetic rows stay "
        "in the flat that the members span; less is better, and more members than coordinates are the remedy"
    ),
    Number("group-rank-smallest", "Smallest rank of a group", SIZE.more.owners).means(
        "The fewest directions in which the members of a group differ, beside groups of the same sizes made at "
        "random (baseline); more is better, and 0 means that the group's mean is everybody's record"
    ),
    Number("group-condition-median", "Condition of a group, median", Scale((1.0, None)).owners).means(
        "How many times as wide the typical group is in its longest direction as in its shortest that is not flat; "
        "less is better, for a group that is nearly flat protects little across"
    ),
    Number("people-wide", "People far from the others of their group", SHARE.owners).means(
        f"The share of people who are more than {WIDE:g} times as far from the others of their group as from as "
        "many nearest people; these are outliers whose group was stretched to hold them, and less is better"
    ),
)
