"""Misclassification error: how many released rows are clustered otherwise than the rows they descend from.

The clusters of the original and those of the released table are each found by one clusterer, and paired as well as can
be [OZ03, sec. 5.2, errata OZ03.3]. Numbers that a key moved count in its units, as in the paper, whose salaries are in
thousands [errata OZ03.1]; categories beside them, which it leaves as they are, are left out then.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from sfumato.assess.algebra import SHARE, Measure, Need, NotRun, Number, Stated, Values
from sfumato.assess.findings import Family, wilson
from sfumato.assess.study import Matrix, Places, Study, given, sample
from sfumato.assess.utility.clustering import cluster_count, error
from sfumato.assess.utility.prediction import within
from sfumato.core.neighbours import nearest
from sfumato.methods.geometry.facts import Transformed

__all__ = ["OWN_CLUSTERS", "density_clusters", "k_means", "misclassified", "tree_clusters"]

_NAME = "misclassification-error"
_MOST = 2_000  # rows of clusterers whose work grows with the square of the rows
_REDRAWS = 3
_STARTS = 10
_ROUNDS = 50
_SMALLEST, _SHARE = 10, 0.02  # rows of the smallest cluster that is sought by density
_NOISE = -1


def k_means(rows: Matrix, count: int, seed: int, starts: tuple[Places, ...] = ()) -> Places:
    """Clusters by k-means, the best of several starts; each of the labellings ``starts`` is one more."""
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):  # of fewer different rows than clusters
        best = KMeans(min(count, len(rows)), n_init=_STARTS, max_iter=_ROUNDS, random_state=seed).fit(rows)
        for labels in starts:
            centres = np.array([rows[labels == label].mean(axis=0) for label in np.unique(labels)])
            other = KMeans(len(centres), init=centres, n_init=1, max_iter=_ROUNDS).fit(rows)
            best = other if other.inertia_ < best.inertia_ else best
    return np.asarray(best.labels_, dtype=np.int64)


def tree_clusters(rows: Matrix, count: int, _: int) -> Places:
    """Clusters by merging the two that raise the sum of squares least, down to the given number (Ward 1963)."""
    from sklearn.cluster import AgglomerativeClustering

    return np.asarray(AgglomerativeClustering(min(count, len(rows))).fit_predict(rows), dtype=np.int64)


def density_clusters(rows: Matrix, _count: int, _seed: int) -> Places:
    """Clusters as dense regions, as many as there are; -1 for rows in none (HDBSCAN, Campello and others 2013)."""
    from sklearn.cluster import HDBSCAN

    smallest = max(_SMALLEST, round(_SHARE * len(rows)))
    if len(rows) <= smallest:
        return np.full(len(rows), _NOISE)
    return np.asarray(HDBSCAN(min_cluster_size=smallest, copy=True).fit_predict(rows), dtype=np.int64)


def misclassified(first: Places, second: Places) -> float:
    """Share of rows that two clusterings put in different clusters; a row in no cluster agrees only with such a row.

    Examples
    --------
    >>> misclassified(np.array([0, 0, 1, -1]), np.array([1, 1, 0, 0]))
    0.25
    """
    from scipy.optimize import linear_sum_assignment

    if not ((first == _NOISE) | (second == _NOISE)).any():
        return error(first, second)
    table = np.zeros((int(first.max()) + 2, int(second.max()) + 2), dtype=np.int64)
    np.add.at(table, (first + 1, second + 1), 1)
    inner = table[1:, 1:]
    right = table[0, 0] + inner[linear_sum_assignment(inner, maximize=True)].sum()
    return 1.0 - float(right) / len(first)


@dataclass(frozen=True)
class _Clusterer:
    """A way to cluster: the end of its finding's name, how it is called, and whether K and all rows go into it."""

    end: str
    words: str
    run: Callable[[Matrix, int, int], Places]
    counts: bool = True
    most: int | None = _MOST


_CLUSTERERS = (
    _Clusterer("", "k-means", k_means, most=None),
    _Clusterer("-hierarchical", "hierarchical clustering (Ward)", tree_clusters),
    _Clusterer("-density", "density-based clustering (HDBSCAN)", density_clusters, counts=False),
)


def _run(study: Study) -> Iterator[Stated]:
    known, origin = study.descent()
    if not len(known) or len(given(study.workings.origin)) != len(study.released):
        raise NotRun(Need.ORIGIN.value)
    rng = study.generator("own clusters")
    features, factors, units = _coordinates(study)
    chosen = sample(len(known), study.sizes.testing, rng)
    rows = study.original[np.ix_(origin[chosen], features)], study.released[np.ix_(known[chosen], features)]
    before, after = (within(side) * factors for side in rows)
    count = cluster_count(study, before)
    if count is None:
        raise NotRun("there are fewer than three original rows or all are alike: nothing to cluster")
    for each in _CLUSTERERS:
        some = np.sort(sample(len(chosen), each.most or len(chosen), rng))
        yield f"{_NAME}{each.end}", _compared(each, before[some], after[some], count, units, rng, len(study.released))


def _coordinates(study: Study) -> tuple[Places, Matrix, str]:
    """Coordinates that are clustered, the factor of each, and how the note says in which units."""
    moved = study.fact(Transformed)
    if moved is None:
        features = np.arange(study.original.shape[1])
        return features, np.ones(len(features)), ""
    features, factors = study.coordinates(moved.columns), np.ones(study.original.shape[1])
    units: dict[str, float] = getattr(study.workings, "units", {})
    for name in moved.columns:
        if name not in units:
            continue
        pair, places = study.pair(name), study.coordinates([name])
        present = ~pair.original.absent
        own, scaled = pair.original.values[present].std(), study.original[present][:, places[0]].std()
        factors[places[0]] = own / scaled / units[name] if scaled > 0 else 1.0
    told = [name for name in moved.columns if name in units]
    words = (
        ""
        if not told
        else " in the units of the key" + ("" if len(told) == len(moved.columns) else " where it has them")
    )
    return features, factors[features], words


def _compared(
    clusterer: _Clusterer,
    before: Matrix,
    after: Matrix,
    count: int,
    units: str,
    rng: np.random.Generator,
    released: int,
) -> Values | NotRun:
    seed = int(rng.integers(2**31))
    first, second = (clusterer.run(rows, count, seed) for rows in (before, after))
    if clusterer.run is k_means:  # each goes on from what was found in the other: luck is no difference
        first, second = k_means(before, count, seed, (second,)), k_means(after, count, seed, (first,))
    found = len(np.unique(first[first != _NOISE]))
    if found < 2:
        return NotRun(f"{clusterer.words} finds fewer than two clusters in the original")
    value = misclassified(first, second)
    baseline = float(np.mean([_of_redraw(clusterer, before, first, count, rng) for _ in range(_REDRAWS)]))
    clusters = f"{count} clusters" if clusterer.counts else f"{found} clusters in the original"
    drawn = " drawn at random" if len(before) < released else ""
    note = f"; {clusters} by {clusterer.words}{units}, counted on {len(before)} rows{drawn}"
    return Values(value, wilson(value * len(before), len(before)), baseline, attempts=len(before), note=note)


def _of_redraw(clusterer: _Clusterer, rows: Matrix, labels: Places, count: int, rng: np.random.Generator) -> float:
    """Misclassification error of the same clusterer on a random half of the rows; others go with their nearest one."""
    drawn = rows[sample(len(rows), (len(rows) + 1) // 2, rng)]
    again = clusterer.run(drawn, count, int(rng.integers(2**31)))
    return misclassified(labels, again[nearest(drawn, rows)[0][:, 0]])


OWN_CLUSTERS = Measure(
    "own-clusters", Family.UTILITY, "Oliveira and Zaiane 2003, section 5.2", _run, needs=(Need.ORIGIN,)
).finds(
    *(
        Number(f"{_NAME}{each.end}", f"Misclassification error, {each.words}", SHARE).means(
            f"The share of released rows that {each.words} puts into another cluster than the original rows that they "
            "descend from, clusters paired by the best assignment, beside what the same clusterer gets from a random "
            "half of the original (baseline); 0 is best"
        )
        for each in _CLUSTERERS
    )
)
