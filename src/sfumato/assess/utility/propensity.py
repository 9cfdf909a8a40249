"""How well a model tells released rows from original ones: pMSE of a logistic one, and AUC of boosted trees.

The propensity of a row is the fitted probability p that it was released; pMSE is the mean of (p - c)^2 over the rows of
both tables, where c is the share of released ones [Woo et al. 2009; Snoke et al. 2018].
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.algebra import SIZE, Measure, NotRun, Number, Scale, Stated, Values
from sfumato.assess.findings import Family, redraw_interval
from sfumato.assess.study import ColumnPair, Matrix, Places, Study, equivalence_classes, row_codes, value_codes

__all__ = ["PROPENSITY", "PROPENSITY_AUC", "area_interval", "fit_logistic", "folds_of", "null_expectation"]

_TIMES = 5  # of the rows that other models learn from: this one is cheap
_TERMS = 150  # most terms of the model
_ROWS_A_TERM = 20  # fewest rows for each of them: the null is for many
_RARE = 10  # what fewer rows have is no term
_FAR = 4.0  # standard deviations; a cell farther out counts as so far, lest one row bend the model
_STEPS = 30
_CHUNK = 8192
_DRAWS = 1000
_FOLDS = 5
_ROUNDS = 50  # of boosting
_FEWEST = 20  # rows of each table
_CATEGORIES = 200  # kept apart in one column; the rarer ones count as one
_LARGEST_CLASS = 10, 0.005  # equal rows up to this number, or this share of all, stay in one fold
_Z = 1.959963984540054
_RATIO = (
    "The same as a multiple of its baseline: 1 or less means that the released table looks like rows drawn at random "
    "from the original, and other people of the same kind give about {others:.2g}; larger values "
    "mean that the tables are easier to separate"
)


@dataclass(frozen=True, eq=False, repr=False)
class Fit:
    """A fitted logistic model.

    ``pmse`` is of the rows it was fitted to. Fitted to other rows of the same kind it would move by
    ``2 * leans @ u + strays @ u**2``, where u are independent standard normal numbers.
    """

    pmse: float
    strays: Matrix
    leans: Matrix

    def interval(self, worst: float, rng: np.random.Generator) -> tuple[float, float]:
        """Between which values pMSE would lie for other rows of the same kind, 95 %.

        What chance alone added to the measured value is taken off first, for the redraws add it anew.
        """
        true = self.pmse - float(self.strays.sum())
        shrunk = np.sqrt(max(0.0, true) / self.pmse) if self.pmse > 0 else 0.0
        u = rng.normal(size=(_DRAWS, len(self.strays)))
        redraws = true + 2.0 * shrunk * (u @ self.leans) + u**2 @ self.strays
        return redraw_interval(self.pmse, np.clip(redraws, 0.0, worst))


def null_expectation(terms: int, share: float, rows: int, seen: float = 1.0) -> float:
    """The pMSE to expect where the released rows are drawn with replacement from the original.

    With all of the original looked at it is (k - 1) (1 - c)^2 c / N [Snoke et al. 2018]: the original's rows are as
    given and only the released ones vary. With a share f of them it is (k - 1) (1 - c f) (1 - c) c / N, which for
    f = 0 is what two independent samples of one population give, and relabelling at random.

    k - 1 are the ``terms`` of the model besides the intercept, c the ``share`` of released rows among the N ``rows`` of
    both tables that were looked at, f the share of the original's rows that were ``seen``.
    """
    return terms * (1.0 - share * seen) * (1.0 - share) * share / rows


def fit_logistic(terms: Matrix, labels: NDArray[np.bool_]) -> Fit:
    """Model fitted by Newton's method, with no penalty, on terms that are uncorrelated and of unit variance.

    If the tables separate perfectly, the coefficients have no finite optimum; the predictions do, and the steps end
    when these no longer change.
    """
    share = float(labels.mean())
    logits = np.full(len(labels), np.log(share / (1.0 - share)))
    loss = _loss(logits, labels)
    for _ in range(_STEPS):
        gradient, curvature, _squares = _sums(terms, logits, labels)
        ridge = 1e-9 * np.trace(curvature) / len(curvature)  # against rounding only
        step = np.linalg.solve(curvature + ridge * np.eye(len(curvature)), gradient)
        move = step[0] + terms @ step[1:]
        size = 1.0
        while (after := _loss(logits + size * move, labels)) > loss and size > 1e-6:
            size /= 2
        if loss - after < 1e-4:  # far less than chance moves twice the loss, which is a chi-square
            logits, loss = (logits + size * move, after) if after < loss else (logits, loss)
            break
        logits, loss = logits + size * move, after
    guesses = _probability(logits)
    return Fit(float(np.round(((guesses - share) ** 2).mean(), 12)), *_chance(terms, logits, labels))


def _probability(logits: Matrix) -> Matrix:
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * logits)))


def _loss(logits: Matrix, labels: NDArray[np.bool_]) -> float:
    return float(np.logaddexp(0.0, np.where(labels, -logits, logits)).sum())


def _sums(terms: Matrix, logits: Matrix, labels: NDArray[np.bool_]) -> tuple[Matrix, Matrix, Matrix]:
    """Gradient, curvature, and the sum of squares of the guesses' slopes, in blocks of rows."""
    width = terms.shape[1] + 1
    gradient, curvature, squares = np.zeros(width), np.zeros((width, width)), np.zeros((width, width))
    for first in range(0, len(terms), _CHUNK):
        part = slice(first, first + _CHUNK)
        rows = np.column_stack([np.ones(len(terms[part])), terms[part]])
        guesses = _probability(logits[part])
        slopes = rows * (guesses * (1.0 - guesses))[:, None]
        gradient += rows.T @ (labels[part] - guesses)
        curvature += rows.T @ slopes
        squares += slopes.T @ slopes
    return gradient, curvature, squares


def _chance(terms: Matrix, logits: Matrix, labels: NDArray[np.bool_]) -> tuple[Matrix, Matrix]:
    """The coefficients' error, whose covariance is the inverse curvature, spread over the guesses."""
    _gradient, curvature, squares = _sums(terms, logits, labels)
    values, vectors = np.linalg.eigh(curvature)
    kept = values > 1e-12 * values[-1]
    roots = vectors[:, kept] / np.sqrt(values[kept])
    strays, axes = np.linalg.eigh(roots.T @ squares @ roots / len(terms))
    guesses = _probability(logits)
    pull = guesses * (1.0 - guesses) * (guesses - labels.mean())
    leans = np.concatenate([[pull.sum()], terms.T @ pull]) / len(terms)
    return np.maximum(strays, 0.0), np.asarray(axes.T @ (roots.T @ leans))


def _run(study: Study) -> Iterator[Stated]:
    rng = study.generator("propensity")
    here, there, note = equivalence_classes(study, _TIMES * study.sizes.training, rng)
    rows = len(here) + len(there)
    if rows < 2 * _ROWS_A_TERM:
        raise NotRun(f"the two tables have fewer than {2 * _ROWS_A_TERM} rows together")
    labels = np.arange(rows) >= len(here)
    terms = _terms(study.pairs, here, there)
    if not terms.shape[1]:
        raise NotRun("no column varies in the two tables together")
    fit = fit_logistic(terms, labels)
    share, seen = float(labels.mean()), len(here) / len(study.original)
    null = null_expectation(terms.shape[1], share, rows, seen)
    worst = max(fit.pmse, share * (1.0 - share))
    low, high = fit.interval(worst, rng)
    yield "pmse", Values(fit.pmse, (low, high), null, attempts=rows, note=note, range=(0.0, worst))
    meaning = _RATIO.format(others=1.0 / (1.0 - share * seen))
    scaled = (low / null, high / null)
    yield "pmse-ratio", Values(fit.pmse / null, scaled, 1.0, attempts=rows, note=note, meaning=meaning)


def _terms(pairs: Sequence[ColumnPair], here: Places, there: Places) -> Matrix:
    """The model's terms: main effects, then all squares and products, or the squares alone, if there is room.

    They are turned into uncorrelated ones of unit variance, which leaves the fitted guesses as they are and drops what
    depends on other terms.
    """
    rows = len(here) + len(there)
    room = int(min(_TERMS, rows // _ROWS_A_TERM))
    columns = [column for pair in pairs for column in _main_effects(pair, here, there)]
    spread = np.array([column.std() for column in columns])
    columns = [columns[place] for place in np.argsort(-spread, kind="stable")[:room] if spread[place] > 0]
    squares = [column**2 for column in columns if len(np.unique(column[:_CHUNK])) > 2]
    if (count := len(columns)) * (count - 1) // 2 + count + len(squares) <= room:
        products = [columns[i] * columns[j] for i in range(count) for j in range(i)]
        squares += [each for each in products if np.count_nonzero(each) >= _RARE]
    if len(columns) + len(squares) <= room:
        columns += squares
    return _uncorrelated(np.column_stack(columns)) if columns else np.empty((rows, 0))


def _main_effects(pair: ColumnPair, here: Places, there: Places) -> Iterator[Matrix]:
    """A column's numbers in standard deviations, or its categories, and its missing cells."""
    values = np.concatenate([pair.original.values[here], pair.released.values[there]])
    absent = np.concatenate([pair.original.absent[here], pair.released.absent[there]])
    marks = [absent]
    if pair.is_number:
        present = pair.original.present
        size = float(np.abs(present).max(initial=0.0)) or 1.0  # so that no square overflows
        middle, spread = (float(present.mean()), float((present / size).std() * size)) if len(present) else (0.0, 0.0)
        far = np.clip((values - middle) / (spread if spread > 1e-12 * size else size), -_FAR, _FAR)
        yield np.where(absent, 0.0, far)
    else:
        codes = np.where(absent, -1, values).astype(np.int64)
        counts = np.bincount(codes[~absent])
        often = np.argsort(-counts, kind="stable")[1 : _TERMS + 1]  # the most frequent is what others differ from
        marks += [codes == code for code in often if counts[code] >= _RARE]
    yield from (mark.astype(np.float64) for mark in marks if _RARE <= mark.sum() <= len(mark) - _RARE)


def _uncorrelated(columns: Matrix) -> Matrix:
    columns -= columns.mean(axis=0)
    spread = columns.std(axis=0)
    columns = columns[:, spread > 0] / spread[spread > 0]
    values, vectors = np.linalg.eigh(columns.T @ columns / len(columns))
    kept = values > 1e-8 * values[-1] if len(values) else np.zeros(0, dtype=bool)
    return np.asarray(columns @ (vectors[:, kept] / np.sqrt(values[kept])))


PROPENSITY = Measure(
    "propensity",
    Family.UTILITY,
    "Snoke, Raab, Nowok, Dibben and Slavkovic 2018; Woo, Reiter, Oganian and Karr 2009",
    _run,
).finds(
    Number("pmse", "Propensity error (pMSE)", SIZE).means(
        "The propensity mean squared error of a simple model that separates released from original rows: 0 means that "
        "it finds no difference. Baseline: rows drawn from the original"
    ),
    Number("pmse-ratio", "Propensity error, ratio to expectation (pMSE ratio)", SIZE).means(
        "The propensity error as a multiple of its baseline: 1 or less looks like rows drawn from the original, and a "
        "second sample of the population gives about 2"
    ),
)


def folds_of(groups: Places, folds: int, rng: np.random.Generator) -> Places:
    """Rows dealt into folds so that equal rows are in one, except where very many are equal.

    A row that stands in both tables would else be learnt with one label and tested with the other, and a copy would
    look worse than it is. What very many rows share is known from any part of them, and is dealt row by row.
    """
    sizes = np.bincount(groups)
    large = sizes[groups] > max(_LARGEST_CLASS[0], _LARGEST_CLASS[1] * len(groups))
    deal = rng.permutation(len(sizes)) % folds
    return np.where(large, rng.permutation(len(groups)) % folds, deal[groups])


def area_interval(area: float, released: int, original: int) -> tuple[float, float]:
    """The 95 % interval of Hanley and McNeil [1982] for the area under the curve, none of it below one half."""
    a = min(area, 1.0 - 1.0 / (released + original))  # of an area of 1 nobody can be quite sure
    likely, twice = a / (2.0 - a), 2.0 * a * a / (1.0 + a)
    variance = a * (1.0 - a) + (released - 1) * (likely - a * a) + (original - 1) * (twice - a * a)
    reach = _Z * float(np.sqrt(variance / (released * original)))
    return max(0.5, area - reach), min(1.0, area + reach)


def _run_auc(study: Study) -> Iterator[Stated]:
    rng = study.generator("propensity-auc")
    here, there, note = equivalence_classes(study, study.sizes.training, rng)
    if min(len(here), len(there)) < _FEWEST:
        raise NotRun(f"a table has fewer than {_FEWEST} rows, too few to learn and to test")
    labels = np.arange(len(here) + len(there)) >= len(here)
    cells = (value_codes(pair.original.take(here), pair.released.take(there)) for pair in study.pairs)
    folds = folds_of(row_codes(cells, len(labels)), _FOLDS, rng)
    areas = list(_areas(_features(study.pairs, here, there), labels, folds, study.pairs, rng))
    if not areas:
        raise NotRun("the rows are so alike that none are left to test on")
    area = max(0.5, float(np.mean(areas)))
    interval = area_interval(area, len(there), len(here))
    yield "propensity-auc", Values(area, interval, 0.5, attempts=len(labels), note=note)


def _areas(
    features: Matrix, labels: NDArray[np.bool_], folds: Places, pairs: Sequence[ColumnPair], rng: np.random.Generator
) -> Iterator[float]:
    """Areas of models that learn on all folds but one and are tested on that one, in turn."""
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


def _features(pairs: Sequence[ColumnPair], here: Places, there: Places) -> Matrix:
    """Cells of both tables: numbers, categories by how frequent they are, nothing where missing."""
    features = np.empty((len(here) + len(there), len(pairs)))
    for column, pair in enumerate(pairs):
        values = np.concatenate([pair.original.values[here], pair.released.values[there]])
        absent = np.concatenate([pair.original.absent[here], pair.released.absent[there]])
        if not pair.is_number:
            rank = np.argsort(np.argsort(-np.bincount(values.astype(np.int64)), kind="stable"))
            values = np.minimum(rank[values.astype(np.int64)], _CATEGORIES - 1)
        features[:, column] = np.where(absent, np.nan, values)
    return features


PROPENSITY_AUC = Measure(
    "propensity-auc", Family.UTILITY, "Lopez-Paz and Oquab 2017; Hanley and McNeil 1982", _run_auc
).finds(
    Number("propensity-auc", "Propensity score AUC", Scale((0.5, 1.0))).means(
        "AUC of a model that separates released from original rows, on rows that it was not trained on: 0.5 means "
        "that it cannot separate them, 1 that it always can"
    )
)
