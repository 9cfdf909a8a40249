"""Linking a person's whole record to a released row by distance [Domingo-Ferrer & Torra 2001; Torra et al. 2006].

Where it is known from whose record a released row was made, a link counts when it leads to one's own row. Of other
tables, whose rows may descend from nobody, a link counts when it is mutual: the released row nearest to the person has
nobody of the original nearer than this person. A release that knows nobody links many people so, too: one part of the
original links the other, and held-out people, each in the seat of an original, link mutually as often where the
release owes nothing to the originals.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.attacks.arms import NO_CONTROL, Arm, success
from sfumato.assess.findings import Family, Finding
from sfumato.assess.frame import Measure, Need
from sfumato.assess.neighbours import TREE, nearest
from sfumato.assess.strangers import parts
from sfumato.assess.study import Study, sample
from sfumato.records import BlockKind, Layout

__all__ = ["LINKAGE", "OWN_ROW_LINKAGE", "most_people", "mutual_links", "rank_view", "whitening"]

_Matrix = NDArray[np.float64]
_Places = NDArray[np.int64]
_View = Callable[[_Matrix], _Matrix]

_RIDGE = 0.01  # of the mean variance: categories that nobody or everybody has leave the covariance without an inverse
_SLACK = 1e-9  # distances that differ by less are equal
_SEATS = 10  # a round of the control gives at most one seat in so many to held-out people
_BLOCK = 4_000_000  # distances that are held at a time
_PAIRS = 500_000_000  # most comparisons in one search without a tree: fewer people are attacked in a larger table
_FEWEST = 400

_WAYS = {
    "euclid": "in standard deviations of the columns",
    "mahalanobis": "by Mahalanobis' distance, which discounts columns that repeat each other",
    "rank": "by rank, which no change of scale hides",
}
_MUTUAL = (
    "The share of people whose nearest released row, compared {way}, has nobody of the original nearer than them; what "
    "exceeds the share of held-out people is due to their being in the table, and less is better; the baseline is what "
    "a release that knows nobody gives, measured by linking one part of the original to the other"
)
_OWN_ROWS = "each released row was made from one person's record, so that links to one's own row are counted instead"
_OWN = (
    "The share of people whose nearest released row, compared {way}, is the one made from their own record, beside "
    "guessing one row of all; people held out have no such row and are no control, and less is better"
)


def _run(study: Study) -> Iterator[Finding]:
    if study.workings is not None and study.workings.origin is not None:
        yield from LINKAGE.not_run(_OWN_ROWS, applies=False)
        return
    nobody = {way: linkage_arms(other, view)[0] for other in parts(study) for way, view in _views(other).items()}
    for way, view in _views(study).items():
        attack, control = linkage_arms(study, view)
        note = "" if attack.attempts == len(study.original) else f"; counted on {attack.attempts} rows drawn at random"
        yield success(
            f"linkage-{way}",
            _MUTUAL.format(way=_WAYS[way]) + note + ".",
            attack,
            guess=nobody.get(way, 1 / len(study.original)),
            control=control,
        )


def linkage_arms(study: Study, view: _View | None = None) -> tuple[Arm, Arm | None]:
    """Try to link people of the original, and people held out; by default in standard deviations of the columns."""
    rng, view = study.generator("linkage"), view or (lambda rows: rows)
    people = sample(len(study.original), most_people(study), rng)
    released = view(study.released)
    hits = mutual_links(view(study.original), released, people)
    control = None
    if study.holdout is not None:
        outside = rng.permutation(sample(len(study.holdout), max(len(people), _FEWEST // 8), rng))
        control = _control(study, view, released, outside, rng)
    return Arm(float(hits.sum()), len(hits)), control


def most_people(study: Study) -> int:
    """Give how many people to attack where each is compared with all rows several times."""
    if study.original.shape[1] <= TREE:
        return study.sizes.attempts
    rows = max(len(study.original), len(study.released))
    return min(study.sizes.attempts, max(_FEWEST, _PAIRS // rows))


def _views(study: Study) -> dict[str, _View]:
    """Give the coordinates in which each way compares, as functions of a whole table."""
    white = whitening(study.released)
    return {
        "euclid": lambda rows: rows,
        "mahalanobis": lambda rows: rows @ white,
        "rank": lambda rows: rank_view(rows, study.layout),
    }


def whitening(rows: _Matrix) -> _Matrix:
    """Give the matrix after which Euclid's distance is Mahalanobis', with a ridge of a hundredth of the mean variance.

    Examples
    --------
    >>> rows = np.array([[-2.0, -1.0], [-2.0, 1.0], [2.0, -1.0], [2.0, 1.0]])
    >>> (rows @ whitening(rows)).std(axis=0).round(1).tolist()
    [1.0, 1.0]
    """
    d = rows.shape[1]
    centred = rows - rows.mean(axis=0)
    covariance = centred.T @ centred / len(rows)
    ridge = _RIDGE * float(np.trace(covariance)) / d
    values, vectors = np.linalg.eigh(covariance + (ridge or 1.0) * np.eye(d))
    return np.asarray(vectors / np.sqrt(values))


def rank_view(rows: _Matrix, layout: Layout) -> _Matrix:
    """Replace each ordered column by its rank in its own table, spread to variance 1; categories stay as they are.

    Equal values share their mean rank, and missing cells lie in the middle.

    Examples
    --------
    >>> from sfumato.records import Block
    >>> layout = (Block("a", BlockKind.NUMBER, 0, 1),)
    >>> rank_view(np.array([[1.0], [5.0], [700.0]]), layout).ravel().round(2).tolist()
    [-1.15, 0.0, 1.15]
    """
    from scipy.stats import rankdata

    ranked = rows.copy()
    missing = {block.column: block.start for block in layout if block.kind is BlockKind.MISSING}
    for block in layout:
        if block.kind is BlockKind.NUMBER:
            absent = rows[:, missing[block.column]] > 0.5 if block.column in missing else np.zeros(len(rows), np.bool_)
            values = rows[~absent, block.start]
            ranked[absent, block.start] = 0.0
            if len(values):
                share = (rankdata(values) - 0.5) / len(values) - 0.5
                ranked[~absent, block.start] = np.sqrt(12.0) * share
    return ranked


def mutual_links(population: _Matrix, released: _Matrix, people: _Places) -> _Matrix:
    """Tell of each person how surely the released row nearest to them has them as its nearest.

    Parameters
    ----------
    population : ndarray of shape (n, d)
    released : ndarray of shape (m, d)
    people : ndarray of shape (q,)
        Places in the population.

    Returns
    -------
    ndarray of shape (q,)
        1 for a mutual link, 1/t where t of the population are equally near to the released row, else 0.

    Examples
    --------
    >>> population = np.array([[0.0], [1.0], [1.0], [5.0]])
    >>> mutual_links(population, np.array([[0.1], [1.0]]), np.arange(4)).tolist()
    [1.0, 0.5, 0.5, 0.0]
    """
    found, away = nearest(released, population[people])
    links, reach = found[:, 0], away[:, 0]
    slack = _SLACK * (1.0 + reach)
    rows, where = np.unique(links, return_inverse=True)
    near = nearest(population, released[rows], min(2, len(population)))[1]
    hits: _Matrix = (near[where, 0] >= reach - slack).astype(np.float64)  # the person is one of them: none is nearer
    tied = np.flatnonzero(hits * (near[where, -1] <= reach + slack)) if len(population) > 1 else np.empty(0, np.int64)
    if len(tied):
        centres, which = np.unique(links[tied], return_index=True)
        counts = _count_within(population, released[centres], (reach + slack)[tied[which]])
        hits[tied] = 1.0 / np.maximum(counts, 1)[np.searchsorted(centres, links[tied])]
    return hits


def _count_within(rows: _Matrix, centres: _Matrix, reach: _Matrix) -> _Places:
    """Count the rows within reach of each centre, in blocks."""
    norms = (rows**2).sum(axis=1)
    own = (centres**2).sum(axis=1)
    rounding = 1e-13 * (own + norms.max())  # of a square that is expanded
    counts = np.empty(len(centres), dtype=np.int64)
    step = max(1, _BLOCK // len(rows))
    for start in range(0, len(centres), step):
        here = slice(start, start + step)
        squares = norms - 2.0 * (centres[here] @ rows.T)
        most = reach[here] ** 2 + rounding[here] - own[here]
        counts[here] = (squares <= most[:, None]).sum(axis=1)
    return counts


def _control(study: Study, view: _View, released: _Matrix, outside: _Places, rng: np.random.Generator) -> Arm:
    """Link held-out people, who take the seats of some originals: they are ranked and compared among the others."""
    assert study.holdout is not None
    n, hits = len(study.original), 0.0
    size = max(1, n // _SEATS)
    for start in range(0, len(outside), size):
        guests = outside[start : start + size]
        seats = rng.choice(n, len(guests), replace=False)
        population = study.original.copy()
        population[seats] = study.holdout[guests]
        hits += float(mutual_links(view(population), released, seats).sum())
    return Arm(hits, len(outside))


def _run_own(study: Study) -> Iterator[Finding]:
    rng = study.generator("own-row-linkage")
    rows = len(study.original)
    people = sample(rows, most_people(study), rng)
    note = "" if len(people) == rows else f"; counted on {len(people)} rows drawn at random"
    assert study.workings is not None
    assert study.workings.origin is not None
    order = rng.permutation(len(study.released))  # of rows that are equally near one is taken at random
    origin = study.workings.origin[order]
    for way, view in _views(study).items():
        released, original = view(study.released)[order], view(study.original)
        found = origin[nearest(released, original[people])[0][:, 0]] == people
        finding = success(
            f"own-row-linkage-{way}",
            _OWN.format(way=_WAYS[way]) + note + ".",
            Arm(float(found.sum()), len(found)),
            guess=1 / rows,
            control=None,
        )
        yield dataclasses.replace(finding, meaning=finding.meaning.removesuffix(NO_CONTROL))


LINKAGE = Measure(
    name="linkage",
    family=Family.ATTACK,
    source="Domingo-Ferrer & Torra 2001; Torra, Abowd & Domingo-Ferrer 2006",
    findings={f"linkage-{way}": _MUTUAL.format(way=words) + "." for way, words in _WAYS.items()},
    run=_run,
)
OWN_ROW_LINKAGE = Measure(
    name="own-row-linkage",
    family=Family.ATTACK,
    source="Domingo-Ferrer & Torra 2001; Torra, Abowd & Domingo-Ferrer 2006",
    findings={f"own-row-linkage-{way}": _OWN.format(way=words) + "." for way, words in _WAYS.items()},
    run=_run_own,
    needs=(Need.ORIGIN,),
)
