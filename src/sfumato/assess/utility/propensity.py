"""How well a logistic model tells released rows from original ones: pMSE beside its null [Snoke et al. 2018].

The propensity of a row is the fitted probability p that it was released; pMSE is the mean of (p - c)^2 over the rows of
both tables, where c is the share of released ones [Woo et al. 2009].
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.columns import ColumnPair
from sfumato.assess.findings import Family, Finding
from sfumato.assess.frame import Measure
from sfumato.assess.intervals import holding
from sfumato.assess.study import Study
from sfumato.assess.utility.alike import note, rows_alike

__all__ = ["PROPENSITY", "Fit", "fit_logistic", "null_expectation"]

_Matrix = NDArray[np.float64]
_Rows = NDArray[np.int64]

_TIMES = 5  # of the rows that other models learn from: this one is cheap
_TERMS = 150  # most terms of the model
_ROWS_A_TERM = 20  # fewest rows for each of them: the null is for many
_RARE = 10  # what fewer rows have is no term
_FAR = 4.0  # standard deviations; a cell farther out counts as so far, lest one row bend the model
_STEPS = 30
_CHUNK = 8192
_DRAWS = 1000

_PMSE = (
    "How far the guesses of a simple model that tries to tell released rows from original ones are from knowing "
    "nothing, as a mean square: 0 means that it sees no difference, and the baseline is what rows drawn at random "
    "from the original itself would give."
)
_RATIO = (
    "The same as a multiple of its baseline: 1 or less means that the released table looks like rows drawn at random "
    "from the original, and other people of the same kind give about {others:.2g}; the more, the easier to tell apart."
)


@dataclass(frozen=True, eq=False, repr=False)
class Fit:
    """A fitted logistic model.

    ``pmse`` is of the rows it was fitted to. Fitted to other rows of the same kind it would move by
    ``2 * leans @ u + strays @ u**2``, where u are independent standard normal numbers.
    """

    pmse: float
    strays: _Matrix
    leans: _Matrix

    def interval(self, worst: float, rng: np.random.Generator) -> tuple[float, float]:
        """Say between which values pMSE would lie for other rows of the same kind, 95 %.

        What chance alone added to the measured value is taken off first, for the redraws add it anew.
        """
        true = self.pmse - float(self.strays.sum())
        shrunk = np.sqrt(max(0.0, true) / self.pmse) if self.pmse > 0 else 0.0
        u = rng.normal(size=(_DRAWS, len(self.strays)))
        redraws = true + 2.0 * shrunk * (u @ self.leans) + u**2 @ self.strays
        return holding(self.pmse, np.clip(redraws, 0.0, worst))


def null_expectation(terms: int, share: float, rows: int, seen: float = 1.0) -> float:
    """Give the pMSE to expect where the released rows are drawn with replacement from the original.

    With all of the original looked at it is (k - 1) (1 - c)^2 c / N [Snoke et al. 2018]: the original's rows are as
    given and only the released ones vary. With a share f of them it is (k - 1) (1 - c f) (1 - c) c / N, which for
    f = 0 is what two independent samples of one population give, and relabelling at random.

    Parameters
    ----------
    terms : int
        k - 1: the parameters of the model besides the intercept.
    share : float
        c: the share of released rows.
    rows : int
        N: the rows of both tables that were looked at.
    seen : float
        f: the share of the original's rows that were looked at.
    """
    return terms * (1.0 - share * seen) * (1.0 - share) * share / rows


def fit_logistic(terms: _Matrix, labels: NDArray[np.bool_]) -> Fit:
    """Fit by Newton's method, with no penalty, on terms that are uncorrelated and of unit variance.

    Where the tables can be told apart for sure the coefficients have no finite optimum; the guesses do, and the steps
    end when these no longer change.
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


def _probability(logits: _Matrix) -> _Matrix:
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * logits)))


def _loss(logits: _Matrix, labels: NDArray[np.bool_]) -> float:
    return float(np.logaddexp(0.0, np.where(labels, -logits, logits)).sum())


def _sums(terms: _Matrix, logits: _Matrix, labels: NDArray[np.bool_]) -> tuple[_Matrix, _Matrix, _Matrix]:
    """Give gradient, curvature, and the sum of squares of the guesses' slopes, in blocks of rows."""
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


def _chance(terms: _Matrix, logits: _Matrix, labels: NDArray[np.bool_]) -> tuple[_Matrix, _Matrix]:
    """Spread the coefficients' error, whose covariance is the inverse curvature, over the guesses."""
    _gradient, curvature, squares = _sums(terms, logits, labels)
    values, vectors = np.linalg.eigh(curvature)
    kept = values > 1e-12 * values[-1]
    roots = vectors[:, kept] / np.sqrt(values[kept])
    strays, axes = np.linalg.eigh(roots.T @ squares @ roots / len(terms))
    guesses = _probability(logits)
    pull = guesses * (1.0 - guesses) * (guesses - labels.mean())
    leans = np.concatenate([[pull.sum()], terms.T @ pull]) / len(terms)
    return np.maximum(strays, 0.0), np.asarray(axes.T @ (roots.T @ leans))


def _run(study: Study) -> Iterator[Finding]:
    rng = study.generator(PROPENSITY.name)
    here, there = rows_alike(study, _TIMES * study.sizes.training, rng)
    rows = len(here) + len(there)
    if rows < 2 * _ROWS_A_TERM:
        yield from PROPENSITY.not_run(f"the two tables have fewer than {2 * _ROWS_A_TERM} rows together")
        return
    labels = np.arange(rows) >= len(here)
    terms = _terms(study.pairs, here, there)
    fit = fit_logistic(terms, labels)
    if not terms.shape[1]:
        yield from PROPENSITY.not_run("no column varies in the two tables together")
        return
    share, seen = float(labels.mean()), len(here) / len(study.original)
    null = null_expectation(terms.shape[1], share, rows, seen)
    worst = max(fit.pmse, share * (1.0 - share))
    interval = fit.interval(worst, rng)
    more = note(study, here, there) + "."
    ratio = _RATIO.format(others=1.0 / (1.0 - share * seen))
    yield _finding("pmse", fit.pmse, (0.0, worst), _PMSE[:-1] + more, interval, null, rows)
    scaled = (interval[0] / null, interval[1] / null)
    yield _finding("pmse-ratio", fit.pmse / null, (0.0, None), ratio[:-1] + more, scaled, 1.0, rows)


def _finding(
    name: str,
    value: float,
    bounds: tuple[float, float | None],
    meaning: str,
    interval: tuple[float, float],
    baseline: float,
    rows: int,
) -> Finding:
    way = PROPENSITY.direction(name)
    return Finding(
        name, Family.UTILITY, value, way, bounds, meaning, interval=interval, baseline=baseline, attempts=rows
    )


def _terms(pairs: Sequence[ColumnPair], here: _Rows, there: _Rows) -> _Matrix:
    """Give the model's terms: main effects, then all squares and products, or the squares alone, where there is room.

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


def _main_effects(pair: ColumnPair, here: _Rows, there: _Rows) -> Iterator[_Matrix]:
    """Give a column's numbers in standard deviations, or its categories, and its missing cells."""
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


def _uncorrelated(columns: _Matrix) -> _Matrix:
    columns -= columns.mean(axis=0)
    spread = columns.std(axis=0)
    columns = columns[:, spread > 0] / spread[spread > 0]
    values, vectors = np.linalg.eigh(columns.T @ columns / len(columns))
    kept = values > 1e-8 * values[-1] if len(values) else np.zeros(0, dtype=bool)
    return np.asarray(columns @ (vectors[:, kept] / np.sqrt(values[kept])))


PROPENSITY = Measure(
    name="propensity",
    family=Family.UTILITY,
    source="Snoke, Raab, Nowok, Dibben and Slavkovic 2018; Woo, Reiter, Oganian and Karr 2009",
    findings={"pmse": _PMSE, "pmse-ratio": _RATIO.format(others=2.0)},
    run=_run,
)
