"""How well gradient boosting tells released rows from original ones, on rows that it did not learn from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.columns import ColumnPair
from sfumato.assess.findings import Family, Finding
from sfumato.assess.frame import Measure
from sfumato.assess.study import Study
from sfumato.assess.utility.alike import note, rows_alike

__all__ = ["PROPENSITY_AUC", "area_interval", "folds_of"]

_Matrix = NDArray[np.float64]
_Rows = NDArray[np.int64]

_FOLDS = 5
_ROUNDS = 50  # of boosting
_FEWEST = 20  # rows of each table
_CATEGORIES = 200  # kept apart in one column; the rarer ones count as one
_CROWD = 10, 0.005  # equal rows up to so many, or such a share of all, are kept together
_Z = 1.959963984540054

_AREA = (
    "How often a trained model ranks a released row as more likely released than an original row, on rows that it did "
    "not learn from: one half means that it cannot tell them apart, 1 means that it always can."
)


def folds_of(groups: _Rows, folds: int, rng: np.random.Generator) -> _Rows:
    """Deal rows into folds so that equal rows are in one, except where very many are equal.

    A row that stands in both tables would else be learnt with one label and tested with the other, and a copy would
    look worse than it is. What very many rows share is known from any part of them, and is dealt row by row.
    """
    sizes = np.bincount(groups)
    large = sizes[groups] > max(_CROWD[0], _CROWD[1] * len(groups))
    deal = rng.permutation(len(sizes)) % folds
    return np.where(large, rng.permutation(len(groups)) % folds, deal[groups])


def area_interval(area: float, released: int, original: int) -> tuple[float, float]:
    """Give the 95 % interval of Hanley and McNeil [1982] for the area under the curve, none of it below one half."""
    a = min(area, 1.0 - 1.0 / (released + original))  # of an area of 1 nobody can be quite sure
    likely, twice = a / (2.0 - a), 2.0 * a * a / (1.0 + a)
    variance = a * (1.0 - a) + (released - 1) * (likely - a * a) + (original - 1) * (twice - a * a)
    reach = _Z * float(np.sqrt(variance / (released * original)))
    return max(0.5, area - reach), min(1.0, area + reach)


def _run(study: Study) -> Iterator[Finding]:
    rng = study.generator(PROPENSITY_AUC.name)
    here, there = rows_alike(study, study.sizes.training, rng)
    if min(len(here), len(there)) < _FEWEST:
        yield from PROPENSITY_AUC.not_run(f"a table has fewer than {_FEWEST} rows, too few to learn and to test")
        return
    labels = np.arange(len(here) + len(there)) >= len(here)
    folds = folds_of(_groups(study.pairs, here, there), _FOLDS, rng)
    areas = list(_areas(_features(study.pairs, here, there), labels, folds, study.pairs, rng))
    if not areas:
        yield from PROPENSITY_AUC.not_run("the rows are so alike that none are left to test on")
        return
    area = max(0.5, float(np.mean(areas)))
    yield Finding(
        "propensity-auc",
        Family.UTILITY,
        area,
        PROPENSITY_AUC.direction("propensity-auc"),
        (0.5, 1.0),
        _AREA[:-1] + note(study, here, there) + ".",
        interval=area_interval(area, len(there), len(here)),
        baseline=0.5,
        attempts=len(labels),
    )


def _areas(
    features: _Matrix,
    labels: NDArray[np.bool_],
    folds: _Rows,
    pairs: Sequence[ColumnPair],
    rng: np.random.Generator,
) -> Iterator[float]:
    """Learn on all folds but one and test on that one, in turn."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score

    for fold in range(_FOLDS):
        test = folds == fold
        if len(np.unique(labels[test])) < 2 or len(np.unique(labels[~test])) < 2:
            continue
        model = HistGradientBoostingClassifier(
            max_iter=_ROUNDS,
            max_leaf_nodes=15,
            min_samples_leaf=min(20, 1 + int((~test).sum()) // 20),
            early_stopping=False,
            categorical_features=[not pair.is_number for pair in pairs],
            random_state=int(rng.integers(2**31)),
        )
        model.fit(features[~test], labels[~test])
        guesses = model.predict_proba(features[test])[:, 1]
        yield float(roc_auc_score(labels[test], guesses))


def _features(pairs: Sequence[ColumnPair], here: _Rows, there: _Rows) -> _Matrix:
    """Give the cells of both tables: numbers, categories by how frequent they are, nothing where missing."""
    features = np.empty((len(here) + len(there), len(pairs)))
    for column, pair in enumerate(pairs):
        values, absent = _cells(pair, here, there)
        if not pair.is_number:
            rank = np.argsort(np.argsort(-np.bincount(values.astype(np.int64)), kind="stable"))
            values = np.minimum(rank[values.astype(np.int64)], _CATEGORIES - 1)
        features[:, column] = np.where(absent, np.nan, values)
    return features


def _groups(pairs: Sequence[ColumnPair], here: _Rows, there: _Rows) -> _Rows:
    """Give equal rows of the two tables one number."""
    keys = np.zeros(len(here) + len(there), dtype=np.int64)
    for pair in pairs:
        values, absent = _cells(pair, here, there)
        codes = np.unique(values, return_inverse=True)[1].astype(np.int64) + 1
        codes[absent] = 0
        keys = np.unique(keys * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)[1].astype(np.int64)
    return keys


def _cells(pair: ColumnPair, here: _Rows, there: _Rows) -> tuple[_Matrix, NDArray[np.bool_]]:
    sides = (pair.original, here), (pair.released, there)
    return (
        np.concatenate([cells.values[rows] for cells, rows in sides]),
        np.concatenate([cells.absent[rows] for cells, rows in sides]),
    )


PROPENSITY_AUC = Measure(
    name="propensity-auc",
    family=Family.UTILITY,
    source="Lopez-Paz and Oquab 2017; Hanley and McNeil 1982",
    findings={"propensity-auc": _AREA},
    run=_run,
)
