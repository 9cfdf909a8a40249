"""Whether the released table clusters as the original does [OZ03, sec. 5.2, errata OZ03.3].

Two clusterings of the same rows disagree in the share of rows that stay apart when clusters are paired as well as can
be. That share is a distance, so that redraws bound how far chance alone may have moved it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.assess.algebra import SHARE, Measure, Need, NotRun, Number, Scale, Stated, Values
from sfumato.assess.findings import Family, distance_interval, wilson
from sfumato.assess.study import Matrix, Places, Study, bits_of, given, row_keys, sample
from sfumato.assess.utility.prediction import FEW, is_class, within
from sfumato.core.groups import nearest_centre
from sfumato.core.neighbours import nearest
from sfumato.methods.geometry.facts import Transformed

__all__ = [
    "CLUSTERING",
    "OWN_CLUSTERS",
    "agreement",
    "cluster_count",
    "density_clusters",
    "error",
    "k_means",
    "tree_clusters",
]

_USUAL = 5
_REDRAWS = 8  # each is two more clusterings
_STARTS, _ROUNDS = 10, 50
_SAME = 1e-9  # relative difference of sums of squares that is rounding
_MOVED = (
    "every row was moved by a secret key, so that original rows have no place among the clusters of the released ones"
)


def _run_clustering(study: Study) -> Iterator[Stated]:
    rng = study.generator("clustering")
    lessons = _lessons(study, rng)
    looked = sample(len(study.original), study.sizes.testing, rng)
    count = cluster_count(study, study.original[looked])
    if count is None:
        raise NotRun("there are fewer than three original rows or all are alike: nothing to cluster")
    seed = int(rng.integers(2**31))
    rows = within(study.original[looked])
    alone = [_centres(lesson, count, seed) for lesson in lessons]
    models = [_settled(lesson, alone) for lesson in lessons]
    first, second = (nearest_centre(rows, model) for model in models)
    strays, others = _redraws(lessons, models, rows, count, seed, rng)
    note, chance = _note(study, lessons, count, len(rows)), others.mean(axis=1).tolist()
    moved = study.fact(Transformed) is not None  # its centres lie elsewhere: original rows have no place among them
    for place, (name, how, bounds) in enumerate(
        (("clustering-error", error, (0.0, 1.0)), ("clustering-agreement", agreement, (-0.5, 1.0)))
    ):
        value = how(first, second)
        found = Values(value, distance_interval(value, strays[place], *bounds), chance[place], note=note)
        yield name, NotRun(_MOVED) if moved else found


def _lessons(study: Study, rng: np.random.Generator) -> tuple[Matrix, Matrix]:
    """Rows in which clusters are sought: the same people, or by what they hold, so that equal rows meet."""
    most = study.sizes.training // 2
    chosen = sample(len(study.original), most, rng)
    origin = study.workings.origin
    if origin is not None and np.array_equal(np.sort(origin), np.arange(len(study.original))):
        return within(study.original[chosen]), within(study.released[np.argsort(origin)[chosen]])
    salt = float(rng.random())
    return _drawn(study.original, most, salt), _drawn(study.released, most, salt)


def _drawn(rows: Matrix, most: int, salt: float) -> Matrix:
    """At most ``most`` rows, by a hash of their cells and a common salt, so that two tables agree."""
    if len(rows) <= most:
        return within(rows)
    keys = row_keys(map(bits_of, (np.full(len(rows), salt), *rows.T)))
    return within(rows[np.sort(np.argsort(keys, kind="stable")[:most])])


def _note(study: Study, lessons: tuple[Matrix, Matrix], count: int, looked: int) -> str:
    whole = (len(study.original), len(study.released), len(study.original))
    sought = f"; {count} clusters by k-means, sought in {len(lessons[0])} original and {len(lessons[1])} released rows"
    drawn = "" if whole == (len(lessons[0]), len(lessons[1]), looked) else ", drawn at random"
    return f"{sought} and counted on {looked} rows{drawn}"


def cluster_count(study: Study, rows: Matrix) -> int | None:
    """The owner's number of clusters, else one for each class of the target, else `_USUAL`; fewer than different rows.

    None if there are not two clusters to be found.
    """
    wanted = _USUAL
    if study.options.clusters is not None:
        wanted = study.options.clusters
    elif study.target is not None and is_class(study.pair(study.target).field):
        pair = study.pair(study.target)
        classes = len(np.unique(pair.original.present))
        wanted = classes if 2 <= classes <= FEW else _USUAL
    different = len(np.unique(rows, axis=0))
    if len(study.original) < 3 or different < 2:
        return None
    return min(wanted, max(2, different - 1))


def _fitted(rows: Matrix, count: int, seed: int) -> Any:
    """The best k-means of several starts; fewer clusters than asked where there are fewer different rows."""
    from sklearn.cluster import KMeans

    return _fit(KMeans(min(count, len(rows)), n_init=_STARTS, max_iter=_ROUNDS, random_state=seed), rows)


def _fitted_from(rows: Matrix, centres: Matrix) -> Any:
    """K-means that goes on from centres."""
    from sklearn.cluster import KMeans

    return _fit(KMeans(len(centres), init=centres, n_init=1, max_iter=_ROUNDS), rows)


def _fit(model: Any, rows: Matrix) -> Any:
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):  # of fewer different rows than clusters
        return model.fit(rows)


def _centres(rows: Matrix, count: int, seed: int) -> Matrix:
    return np.unique(np.round(_fitted(rows, count, seed).cluster_centers_, 9), axis=0)


def _settled(rows: Matrix, starts: Sequence[Matrix]) -> Matrix:
    """The best centres for these rows, going on from those that were found in either table.

    What luck found in one table only is then no difference between the two; of equals the first is kept.
    """
    best, least = starts[0], np.inf
    for model in (_fitted_from(rows, start) for start in starts if len(start) <= len(rows)):
        if model.inertia_ < least - _SAME * model.inertia_:
            best, least = model.cluster_centers_, model.inertia_
    return np.unique(np.round(best, 9), axis=0)


def _redraws(
    lessons: tuple[Matrix, Matrix],
    models: Sequence[Matrix],
    rows: Matrix,
    count: int,
    seed: int,
    rng: np.random.Generator,
) -> tuple[Matrix, Matrix]:
    """How far redraws of both tables stray in error and, below it, agreement, and what redraws of the original get."""
    strays, others = np.empty((2, _REDRAWS)), np.empty((2, _REDRAWS))
    labels = [nearest_centre(rows, model) for model in models]
    for turn in range(_REDRAWS):
        again = []
        for lesson, model in zip(lessons, models, strict=True):  # from its own starts, and what it was drawn from
            drawn = lesson[rng.integers(0, len(lesson), len(lesson))]
            again.append(nearest_centre(rows, _settled(drawn, [model, _centres(drawn, count, seed)])))
        errors = [error(label, other) for label, other in zip(labels, again, strict=True)]
        alike = [agreement(label, other) for label, other in zip(labels, again, strict=True)]
        strays[:, turn] = sum(errors), sum(1.0 - value for value in alike)
        others[:, turn] = errors[0], alike[0]
    return strays, others


def _table(first: Places, second: Places) -> Places:
    """How many rows bear each pair of labels; those in no cluster stand first."""
    table = np.zeros((int(first.max()) + 2, int(second.max()) + 2), dtype=np.int64)
    np.add.at(table, (first + 1, second + 1), 1)
    return table


def error(first: Places, second: Places) -> float:
    """Misclassification error of two clusterings of the same rows, labels matched by the best assignment.

    A row in no cluster, -1, agrees only with such a row.

    Examples
    --------
    >>> error(np.array([0, 0, 1, 1]), np.array([1, 1, 0, 1])), error(np.array([0, 0, 1, -1]), np.array([1, 1, 0, 0]))
    (0.25, 0.25)
    """
    from scipy.optimize import linear_sum_assignment

    table = _table(first, second)
    inner = table[1:, 1:]
    right = table[0, 0] + inner[linear_sum_assignment(inner, maximize=True)].sum()
    return 1.0 - float(right) / len(first)


def agreement(first: Places, second: Places) -> float:
    """Adjusted Rand index of two clusterings of the same rows; 1 where both put all rows together.

    Examples
    --------
    >>> agreement(np.array([0, 0, 1, 1]), np.array([1, 1, 0, 0]))
    1.0
    """
    table = _table(first, second).astype(np.float64)
    together, left, right = (
        float((counts * (counts - 1) / 2).sum()) for counts in (table, table.sum(axis=1), table.sum(axis=0))
    )
    pairs = len(first) * (len(first) - 1) / 2
    chance, best = (left * right / pairs if pairs else 0.0), (left + right) / 2
    return 1.0 if best == chance else (together - chance) / (best - chance)


CLUSTERING = Measure(
    "clustering", Family.UTILITY, "Oliveira and Zaiane 2003, section 5.2; Hubert and Arabie 1985", _run_clustering
).finds(
    Number("clustering-error", "Clustering error", SHARE).means(
        "The share of original rows that clusters of the release assign differently from clusters of the original; 0 "
        "is best. Baseline: clusters of a redraw of the original"
    ),
    Number("clustering-agreement", "Clustering agreement (adjusted Rand index)", Scale((-0.5, 1.0)).more).means(
        "The adjusted Rand index of clusters found in the release and in the original, on the original rows: 1 is "
        "best, 0 is chance. Baseline: clusters of a redraw of the original"
    ),
)


_NAME = "misclassification-error"
_MOST = 2_000  # rows of clusterers whose work grows with the square of the rows
_OWN_REDRAWS = 3
_SMALLEST, _SHARE = 10, 0.02  # rows of the smallest cluster that is sought by density
_NOISE = -1


def k_means(rows: Matrix, count: int, seed: int, starts: tuple[Places, ...] = ()) -> Places:
    """Clusters by k-means, the best of several starts; each of the labellings ``starts`` is one more."""
    best = _fitted(rows, count, seed)
    for labels in starts:
        centres = np.array([rows[labels == label].mean(axis=0) for label in np.unique(labels)])
        other = _fitted_from(rows, centres)
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


def _run_own_clusters(study: Study) -> Iterator[Stated]:
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
    moved_names = [name for name in moved.columns if name in units]
    words = (
        ""
        if not moved_names
        else " in the units of the key" + ("" if len(moved_names) == len(moved.columns) else " where it has them")
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
    value = error(first, second)
    baseline = float(np.mean([_of_redraw(clusterer, before, first, count, rng) for _ in range(_OWN_REDRAWS)]))
    clusters = f"{count} clusters" if clusterer.counts else f"{found} clusters in the original"
    drawn = " drawn at random" if len(before) < released else ""
    note = f"; {clusters} by {clusterer.words}{units}, counted on {len(before)} rows{drawn}"
    return Values(value, wilson(value * len(before), len(before)), baseline, attempts=len(before), note=note)


def _of_redraw(clusterer: _Clusterer, rows: Matrix, labels: Places, count: int, rng: np.random.Generator) -> float:
    """Misclassification error of the same clusterer on a random half of the rows; others go with their nearest one."""
    drawn = rows[sample(len(rows), (len(rows) + 1) // 2, rng)]
    again = clusterer.run(drawn, count, int(rng.integers(2**31)))
    return error(labels, again[nearest(drawn, rows)[0][:, 0]])


OWN_CLUSTERS = Measure(
    "own-clusters", Family.UTILITY, "Oliveira and Zaiane 2003, section 5.2", _run_own_clusters, needs=(Need.ORIGIN,)
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
