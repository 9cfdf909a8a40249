"""A small M5': a regression tree with linear models in its leaves, pruned and smoothed.

Y. Wang, I. H. Witten: Inducing Model Trees for Continuous Classes (ECML 1997), after J. R. Quinlan: Learning with
Continuous Classes (1992); for numbers without missing cells. It stands in for WEKA's M5P, which BCG10 mined with.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.core.compiled import compiled

__all__ = ["ModelTree", "correlation", "cross_validated"]

_Matrix = NDArray[np.float64]
_Places = NDArray[np.int64]

_FEWEST = 4  # rows of a node that may be split
_SPREAD = 0.05  # of the deviation of all: a node that varies less is not split
_SMOOTHING = 15.0  # the paper's k
_PENALTY = 2.0  # a parameter counts this often in (n + 2v) / (n - v), as in WEKA
_RIDGE = 1e-8
_LEAST = 1e-3  # part of a column's deviation over all rows


@dataclass(frozen=True, eq=False)
class Line:
    """A linear model of some of the columns."""

    columns: _Places
    weights: _Matrix
    offset: float

    def predict(self, x: _Matrix) -> _Matrix:
        """Answer for every row."""
        return np.asarray(x[:, self.columns] @ self.weights + self.offset)

    @property
    def parameters(self) -> int:
        """The weights and the offset."""
        return len(self.columns) + 1


@dataclass(eq=False)
class Node:
    """A node with the line of its own rows; a leaf where it has no children."""

    rows: int
    line: Line
    column: int = -1
    cut: float = 0.0
    below: Node | None = None
    above: Node | None = None
    parameters: int = 0


@dataclass(frozen=True)
class ModelTree:
    """M5': grown by the reduction of deviation, pruned by the error that is to be expected, smoothed along the path.

    Examples
    --------
    >>> x = np.linspace(0.0, 1.0, 200)[:, None]
    >>> y = np.where(x[:, 0] < 0.5, 2.0 * x[:, 0], 5.0 - x[:, 0])
    >>> bool(np.abs(ModelTree().fit(x, y).predict(x) - y).max() < 0.1)
    True
    """

    smoothing: bool = True
    pruning: bool = True

    def fit(self, x: _Matrix, y: _Matrix) -> FittedTree:
        """Learn y from the columns of x."""
        least = _LEAST * x.std(axis=0)
        root, _, _ = _grow(x, y, float(y.std()), least, pruning=self.pruning)
        return FittedTree(root, self.smoothing)


@dataclass(frozen=True, eq=False)
class FittedTree:
    """A tree that has learned."""

    root: Node
    smoothing: bool

    def predict(self, x: _Matrix) -> _Matrix:
        """Answer for every row."""
        return _predict(self.root, x, smoothing=self.smoothing)

    @property
    def leaves(self) -> int:
        """The number of leaves."""
        return _leaves(self.root)


def cross_validated(x: _Matrix, y: _Matrix, rng: np.random.Generator, folds: int = 10) -> _Matrix:
    """Predict every row by a tree that learned from the other folds."""
    fold = rng.permutation(len(x)) % folds
    told = np.empty(len(x))
    for one in range(folds):
        test = fold == one
        told[test] = ModelTree().fit(x[~test], y[~test]).predict(x[test])
    return told


def correlation(told: _Matrix, truth: _Matrix) -> float:
    """Give WEKA's correlation coefficient; 0 where one side does not vary."""
    if told.std() == 0 or truth.std() == 0:
        return 0.0
    return float(np.corrcoef(told, truth)[0, 1])


def _grow(x: _Matrix, y: _Matrix, spread: float, least: _Matrix, *, pruning: bool) -> tuple[Node, set[int], _Matrix]:
    """Grow and prune from below; give the node, the columns that its subtree tests, and its residuals."""
    found = None if len(y) < _FEWEST or y.std() < _SPREAD * spread else _best_split(x, y)
    if found is None:
        line = Line(np.empty(0, dtype=np.int64), np.empty(0), float(y.mean()))
        return Node(len(y), line, parameters=1), set(), y - line.offset
    column, cut = found
    low = x[:, column] <= cut
    below, tested_below, residual_below = _grow(x[low], y[low], spread, least, pruning=pruning)
    above, tested_above, residual_above = _grow(x[~low], y[~low], spread, least, pruning=pruning)
    tested = {column} | tested_below | tested_above
    line = fit_line(x, y, sorted(tested), least)
    node = Node(len(y), line, column, cut, below, above, below.parameters + above.parameters + 1)
    residual = np.empty(len(y))
    residual[low], residual[~low] = residual_below, residual_above
    alone = y - line.predict(x)
    one, two = _expected(alone, line.parameters), _expected(residual, node.parameters)
    if pruning and (one <= two or one < 1e-5 * spread):
        return Node(len(y), line, parameters=line.parameters), set(line.columns.tolist()), alone
    return node, tested, residual


def _best_split(x: _Matrix, y: _Matrix) -> tuple[int, float] | None:
    """Find the column and the cut after which the deviations, weighted by rows, are least; two rows a side at least."""
    column, cut = _split(np.ascontiguousarray(x.T), y - y.mean(), float(y.std()) * (1.0 - 1e-9))
    return (column, cut) if column >= 0 else None


@compiled
def _split(columns: _Matrix, centred: _Matrix, least: float) -> tuple[int, float]:
    """Go through all cuts of all columns; -1 where none brings the deviation below ``least``."""
    n = len(centred)
    total = 0.0
    for row in range(n):
        total += centred[row] * centred[row]
    best, cut = -1, 0.0
    for column in range(len(columns)):
        order = np.argsort(columns[column], kind="mergesort")
        one, two = 0.0, 0.0
        for place in range(n - 1):
            row = order[place]
            one += centred[row]
            two += centred[row] * centred[row]
            low, high = columns[column, row], columns[column, order[place + 1]]
            count, rest = place + 1, n - place - 1
            if count < 2 or rest < 2 or high <= low:
                continue
            left, right = max(two * count - one * one, 0.0), max((total - two) * rest - one * one, 0.0)
            spread = (np.sqrt(left) + np.sqrt(right)) / n  # a root is rows times deviation
            if spread < least:
                middle = (low + high) / 2.0
                least, best, cut = spread, column, middle if middle < high else low
    return best, cut


def fit_line(x: _Matrix, y: _Matrix, columns: list[int], least: _Matrix) -> Line:
    """Fit least squares to some columns, and drop column after column while the expected error falls.

    A column that varies no more than ``least`` among these rows is left out: its slope would be huge, and one row that
    differs in it would be answered absurdly.
    """
    some = x[:, columns]
    mean, deviation = some.mean(axis=0), some.std(axis=0)
    kept = np.flatnonzero(deviation > least[columns])
    scaled = (some - mean)[:, kept] / deviation[kept]
    offset, n = float(y.mean()), len(y)
    centred = y - offset
    gram = scaled.T @ scaled + _RIDGE * n * np.eye(len(kept))
    alive, weights = _eliminate(gram, scaled.T @ centred, float(centred @ centred), n)
    chosen = kept[alive]
    weights = weights / deviation[chosen]
    return Line(np.array(columns, dtype=np.int64)[chosen], weights, offset - float(mean[chosen] @ weights))


@compiled
def _eliminate(gram: _Matrix, cross: _Matrix, total: float, n: int) -> tuple[_Places, _Matrix]:
    """Drop the column that costs least, again and again, while the expected error does not rise.

    Without one column the squares left over grow by its weight squared over its place in the inverse.
    """
    alive = np.arange(len(cross))
    before, weights, error = alive, np.zeros(len(cross)), np.inf
    while True:
        v = len(alive)
        block, right = np.empty((v, v)), np.empty(v)
        for a in range(v):
            right[a] = cross[alive[a]]
            for b in range(v):
                block[a, b] = gram[alive[a], alive[b]]
        inverse = np.linalg.inv(block) if v else block
        tried, left = np.zeros(v), total
        for a in range(v):
            for b in range(v):
                tried[a] += inverse[a, b] * right[b]
            left -= tried[a] * right[a]
        factor = (n + _PENALTY * (v + 1)) / (n - v - 1) if n > v + 1 else 10.0
        now = factor * np.sqrt(max(left, 0.0) / n)
        if now > error:
            return before, weights
        before, weights, error = alive, tried, now
        if v == 0:
            return before, weights
        worst = 0
        for a in range(v):
            if tried[a] ** 2 / inverse[a, a] < tried[worst] ** 2 / inverse[worst, worst]:
                worst = a
        alive = np.delete(alive, worst)


def _expected(residual: _Matrix, parameters: int) -> float:
    """Give the root-mean-square error that is to be expected of rows not seen."""
    return float(np.sqrt(np.mean(residual**2))) * _factor(len(residual), parameters)


def _factor(n: int, parameters: int) -> float:
    return (n + _PENALTY * parameters) / (n - parameters) if n > parameters else 10.0


def _predict(node: Node, x: _Matrix, *, smoothing: bool) -> _Matrix:
    """Predict by the leaf and, going up, let each node's own line have a say of k rows against those below."""
    if node.below is None or node.above is None:
        return node.line.predict(x)
    told = np.empty(len(x))
    low = x[:, node.column] <= node.cut
    for child, here in ((node.below, low), (node.above, ~low)):
        if not here.any():
            continue
        p = _predict(child, x[here], smoothing=smoothing)
        if smoothing:
            q = node.line.predict(x[here])
            p = (child.rows * p + _SMOOTHING * q) / (child.rows + _SMOOTHING)
        told[here] = p
    return told


def _leaves(node: Node) -> int:
    return 1 if node.below is None or node.above is None else _leaves(node.below) + _leaves(node.above)
