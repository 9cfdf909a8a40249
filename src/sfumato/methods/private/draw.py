"""Rows drawn from a released model, one column after the other; post-processing, it sees no record."""

from __future__ import annotations

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.methods.private.columns import Histogram
from sfumato.methods.private.estimate import nearest_counts, rake, round_counts, row_shares, shares, shrink
from sfumato.methods.private.model import ColumnModel, Model
from sfumato.methods.private.pairs import choose_rows, fit_factors, row_weights

__all__ = ["draw_rows"]

_BATCH = 50_000  # rows at a time, so that memory stays bounded
_LEAST = 5_000  # fewer rows are a random sample of this number
_POOL = 30_000  # fewest rows that are drawn to be chosen from
_EXCESS = 1.5  # rows that are drawn for each that is chosen
_FARTHEST = 3.5  # normal scores that later columns see


def draw_rows(model: Model, rows: int, rng: np.random.Generator) -> list[Ints]:
    """Row indices of each column, in random order."""
    batches, factors = list[list[Ints]](), None
    for many in (max(each, _LEAST) for each in _sizes(rows)):
        batch = _Batch(model, max(int(_EXCESS * many), _POOL) if model.pairs else many, rng)
        places = batch.draw()
        if model.pairs:
            factors = fit_factors(model, batch.own, batch.leaves) if factors is None else factors
            chosen = choose_rows(row_weights(model, factors, batch.own, batch.leaves), many, rng)
            places = [each[chosen] for each in places]
        batches.append(places)
    whole = [np.concatenate(parts) for parts in zip(*batches, strict=True)]
    order = rng.permutation(len(whole[0]))[:rows]
    return [column[order] for column in whole]


def _sizes(rows: int) -> list[int]:
    batches = max(1, -(-rows // _BATCH))
    return [rows // batches + (at < rows % batches) for at in range(batches)]


class _Batch:
    def __init__(self, model: Model, rows: int, rng: np.random.Generator) -> None:
        self.model, self.rows, self.rng = model, rows, rng
        self.own = rng.permutation(
            np.repeat(np.arange(len(model.classes)), round_counts(model.class_shares, rows, rng))
        )
        self.by_class = [np.flatnonzero(self.own == group) for group in range(len(model.classes))]
        self.leaves: dict[int, Ints] = {}
        self.scores: dict[int, Floats] = {}
        self.at = {i: at for at, i in enumerate(model.numbers)}

    def draw(self) -> list[Ints]:
        model = self.model
        places: dict[int, Ints] = {}
        if model.target is not None:
            places[model.target] = model.histograms[model.target].starts[model.classes[self.own]]
        for column in model.columns:
            histogram = model.histograms[column.column]
            if model.correlations is not None and histogram.ordered:
                places[column.column] = self.draw_number(column, histogram)
            else:
                places[column.column] = self.draw_column(column, histogram)
        return [places[i] for i in range(len(model.histograms))]

    def draw_column(self, column: ColumnModel, histogram: Histogram) -> Ints:
        """Bins by the table, then leaves by the class, then places within leaves."""
        bins = column.bins
        chosen = self.choose_by_cell(column)
        leaves = np.empty(self.rows, dtype=np.int64)
        for group, rows in enumerate(self.by_class):
            for b in range(int(bins.max()) + 1):
                here, there = rows[chosen[rows] == b], np.flatnonzero(bins == b)
                if len(here):
                    many = round_counts(shares(column.given[group][there]), len(here), self.rng)
                    leaves[here] = self.rng.permutation(np.repeat(there, many))
        self.leaves[column.column] = leaves
        return histogram.draw_places(leaves, self.rng)

    def draw_number(self, column: ColumnModel, histogram: Histogram) -> Ints:
        """Bins by the table and the scores of earlier numbers, then a score within the bin, then its place."""
        from scipy.special import ndtr, ndtri

        model, bins = self.model, column.bins
        assert model.correlations is not None
        mean, sd = self.expected_score(column.column)
        edges = np.concatenate([np.zeros((len(column.given), 1)), np.cumsum(column.given, axis=1)], axis=1).clip(0, 1)
        edges[:, -1] = 1.0
        last = np.flatnonzero(np.append(bins[1:] != bins[:-1], True)) + 1
        bounds = ndtri(np.concatenate([np.zeros((len(edges), 1)), edges[:, last]], axis=1).clip(1e-6, 1 - 1e-6))
        bounds[:, 0], bounds[:, -1] = -9.0, 9.0
        cumulated = ndtr((bounds[self.own] - mean[:, None]) / sd[:, None])
        chosen, rows = self.choose_by_row(column, np.diff(cumulated, axis=1).clip(1e-12)), np.arange(self.rows)
        low, high = cumulated[rows, chosen], cumulated[rows, chosen + 1]
        score = mean + sd * ndtri((low + self.rng.random(self.rows) * (high - low)).clip(1e-9, 1 - 1e-9))
        score = np.clip(score, bounds[self.own, chosen], bounds[self.own, chosen + 1])
        uniform, leaves, within = ndtr(score), np.empty(self.rows, dtype=np.int64), np.empty(self.rows)
        for group, here in enumerate(self.by_class):
            leaf = np.searchsorted(edges[group], uniform[here], side="right") - 1
            leaf = leaf.clip(0, len(histogram) - 1)
            share = np.maximum(column.given[group][leaf], 1e-12)
            leaves[here], within[here] = leaf, (uniform[here] - edges[group][leaf]) / share
        self.leaves[column.column] = leaves
        self.scores[column.column] = score.clip(-_FARTHEST, _FARTHEST)
        width = histogram.widths[leaves]
        return histogram.starts[leaves] + np.clip((within * width).astype(np.int64), 0, width - 1)

    def expected_score(self, column: int) -> tuple[Floats, Floats]:
        """Mean and deviation of a score given those of earlier columns."""
        mean, sd = np.zeros(self.rows), np.ones(self.rows)
        before = list(self.scores)
        if not before or self.model.correlations is None:
            return mean, sd
        known, own = [self.at[b] for b in before], self.at[column]
        scores = np.column_stack([self.scores[b] for b in before])
        for group, rows in enumerate(self.by_class):
            matrix = self.model.correlations[group]
            slope = np.linalg.solve(matrix[np.ix_(known, known)] + 1e-6 * np.eye(len(known)), matrix[known, own])
            mean[rows] = scores[rows] @ slope
            sd[rows] = np.sqrt(max(1 - matrix[known, own] @ slope, 0.005))
        return mean, sd

    def choose_by_cell(self, column: ColumnModel) -> Ints:
        """Bin of each row, by its class and parents alone: rows of a cell of the table have the same probabilities."""
        cells, dims = self.cells_of(column)
        many = int(np.prod(dims))
        rows_of = np.bincount(cells, minlength=many)
        own = np.arange(many) // (many // dims[0])
        base = np.array([np.bincount(column.bins, row) for row in column.given])[own]
        base = self.fitted(column, row_shares(base), np.arange(many), rows_of.astype(np.float64), dims)
        bounds = np.cumsum(base, axis=1)
        bounds /= bounds[:, -1:]
        edges = (np.arange(many)[:, None] + bounds).ravel()
        order, uniform = self.spread(cells)
        found, ordered = np.empty(self.rows, dtype=np.int64), cells[order]
        found[order] = np.searchsorted(edges, ordered + uniform, side="right") - ordered * base.shape[1]
        return np.asarray(found.clip(0, base.shape[1] - 1))

    def choose_by_row(self, column: ColumnModel, base: Floats) -> Ints:
        """Bin of each row, by its own probabilities, which are fitted to the column's table."""
        cells, dims = self.cells_of(column)
        order, uniform = self.spread(cells)
        base = base[order]
        base /= base.sum(axis=1, keepdims=True)
        base = self.fitted(column, base, cells[order], np.ones(self.rows), dims)
        chosen = np.empty(self.rows, dtype=np.int64)
        chosen[order] = (np.cumsum(base, axis=1) < uniform[:, None]).sum(axis=1)
        return np.asarray(chosen.clip(0, base.shape[1] - 1))

    def spread(self, cells: Ints) -> tuple[Ints, Floats]:
        """An order of rows by cell, and uniform numbers spread evenly within each, so that counts are as expected."""
        order = self.rng.permutation(self.rows)
        order = order[np.argsort(cells[order].astype(np.min_scalar_type(int(cells.max()))), kind="stable")]
        ordered = cells[order]
        first = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
        sizes = np.diff(np.append(first, self.rows))
        rank = np.arange(self.rows) - np.repeat(first, sizes)
        return order, (rank + self.rng.random(self.rows)) / np.repeat(sizes, sizes)

    def cells_of(self, column: ColumnModel) -> tuple[Ints, list[int]]:
        """Cell of each row in the column's table, and the sizes of its dimensions."""
        cells, dims = self.own.copy(), [len(self.model.classes)]
        for parent, bins in zip(column.parents, column.parent_bins, strict=True):
            dims.append(int(bins.max()) + 1)
            cells = cells * dims[-1] + bins[self.leaves[parent]]
        return cells, dims

    def fitted(self, column: ColumnModel, base: Floats, cells: Ints, rows: Floats, dims: list[int]) -> Floats:
        """Probabilities whose sums over the cells of the table agree with it, as far as the noise allows.

        ``base`` are those of the model so far, in the order of ``cells``; ``rows`` tells how many rows of a cell have
        each. Parents are taken in one after the other; each cell is drawn towards what coarser cells and the model say.
        """
        if column.table is None:
            return base
        many, size = int(np.prod(dims)), base.shape[1]
        given = self.given_class(column)
        by_class = np.array([np.bincount(column.bins, row, size) for row in column.given])
        ratio, estimate = given / np.maximum(by_class, 1e-9), given
        for level in range(1, len(dims)):
            coarse = int(np.prod(dims[: level + 1]))
            part = cells // int(np.prod(dims[level + 1 :]))
            sums = _sums(part, base, rows, coarse)
            above = np.repeat(sums.reshape(-1, dims[level], size).sum(axis=1), dims[level], axis=0)
            sums = sums + 0.5 * row_shares(above)
            sums /= sums.sum(axis=1, keepdims=True)
            expected = row_shares(sums * np.repeat(ratio, dims[level], axis=0))
            noisy = column.table.reshape(coarse, -1, size)
            finer, noisy = noisy.shape[1], noisy.sum(axis=1)
            people = np.maximum(noisy.sum(axis=1, keepdims=True), 1e-9)
            estimate = shrink(noisy, expected * people, column.sd * np.sqrt(finer))
            estimate = row_shares(np.where(estimate.sum(axis=1, keepdims=True) > 1e-6, estimate, expected))
            ratio = estimate / np.maximum(sums, 1e-9)
        rows_of: Floats = np.bincount(cells, rows, many).astype(np.float64)
        wanted, per_class = estimate * rows_of[:, None], many // dims[0]
        for group in range(dims[0]):
            own = slice(group * per_class, (group + 1) * per_class)
            wanted[own] = rake(wanted[own], rows_of[own], given[group] * rows_of[own].sum())
        for _ in range(4):
            base = base * (wanted / np.maximum(_sums(cells, base, rows, many), 1e-9))[cells]
            base += 1e-12
            base /= base.sum(axis=1, keepdims=True)
        return base

    def given_class(self, column: ColumnModel) -> Floats:
        """Shares of the column's bins by class: counts given the target and sums of the table, by their precision."""
        model = self.model
        assert column.table is not None
        classes, size = len(model.classes), column.table.shape[1]
        people = model.class_shares * model.people
        by_class = np.array([np.bincount(column.bins, row, size) for row in column.given])
        in_bin = float(np.bincount(column.bins).mean())
        histogram = model.histograms[column.column]
        precise = (1 / (model.sd_given**2 * in_bin) if np.isfinite(model.sd_given) else 0.0) + 1 / (
            histogram.sd**2 * in_bin
        )
        sums = column.table.reshape(classes, -1, size)
        table_precise = 1 / (column.sd**2 * sums.shape[1])
        both = (by_class * people[:, None] * precise + sums.sum(axis=1) * table_precise) / (precise + table_precise)
        return row_shares(np.array([nearest_counts(row, max(row.sum(), 1.0)) for row in both]))


def _sums(cells: Ints, values: Floats, rows: Floats, many: int) -> Floats:
    """Sums over the rows of each cell; cells are in order."""
    first = np.flatnonzero(np.append(True, cells[1:] != cells[:-1]))
    sums = np.zeros((many, values.shape[1]))
    sums[cells[first]] = np.add.reduceat(values * rows[:, None], first, axis=0)
    return sums
