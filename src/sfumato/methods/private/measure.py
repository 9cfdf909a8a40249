"""Measure a table once, under a privacy budget: all that the private chain ever learns of its records.

One-way counts, counts given the target, a covariance of normal scores, scores of pairs, and one table of each column
given its parents. Later steps are chosen from what earlier ones released, never from the records.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.methods.private.columns import Domain, Histogram, measure_columns
from sfumato.methods.private.covariance import clip_scores, correlations, finest_grid, measure_products
from sfumato.methods.private.estimate import nearest_counts, rake, shares, shrink
from sfumato.methods.private.ledger import ColumnTable, CountsGivenTarget, Ledger, PairCounts, PairScores
from sfumato.methods.private.model import ColumnModel, Model, PairTable
from sfumato.methods.private.people import AllPeople, Cells, Counter, People
from sfumato.methods.private.settings import Settings, is_class

__all__ = ["measure"]

_FINE_BINS = 48
_COARSE_BINS = 8
_LEAST_PEOPLE = 50.0
_LEAST_PAIR_BINS, _MOST_PAIR_BINS = 3, 12
_PEOPLE_PER_PAIR_CELL = 5.0  # standard deviations of noise that an average cell of a pair should hold
_SAMPLE = 20_000
_NEVER_MORE = 1 - 1e-12  # of a share, so that rounding stays within the budget


def measure(
    people: AllPeople,
    domains: tuple[Domain, ...],
    target: int | None,
    settings: Settings,
    ledger: Ledger,
    rng: np.random.Generator,
    sizes: Floats | None = None,
) -> Model:
    """A model of the records that cost at most what the ledger has left.

    ``rng`` draws samples of released models; noise comes from the ledger alone. ``sizes`` are noisy numbers of people
    of each level, if they were measured before.
    """
    if target is not None and is_class(domains[target]):
        domains = tuple(replace(each, ordered=False) if i == target else each for i, each in enumerate(domains))
    return _Measuring(Counter(people, ledger, sizes), domains, target, settings, rng).run()


@dataclass(frozen=True, eq=False)
class _Recoding:
    """How rows are seen by what was released of their columns; it goes to wherever the rows are."""

    histograms: tuple[Histogram, ...]
    target: int | None = None
    class_of: Ints | None = None

    def own(self, people: People) -> Ints:
        """Class of each row; 0 without classes."""
        if self.target is None or self.class_of is None:
            return np.zeros(len(people), dtype=np.int64)
        return np.asarray(self.class_of[self.leaves(people, self.target)])

    def leaves(self, people: People, column: int) -> Ints:
        """Leaf of each row's cell in a column."""
        return self.histograms[column].leaves_of(people.places[column])


class _Measuring:
    """The steps in their order; each attribute but ``people`` is released."""

    def __init__(
        self,
        counter: Counter,
        domains: tuple[Domain, ...],
        target: int | None,
        settings: Settings,
        rng: np.random.Generator,
    ) -> None:
        self.people, self.domains, self.target, self.settings = counter.people, domains, target, settings
        self.counter, self.ledger, self.rng = counter, counter.ledger, rng
        self.classed = target is not None and is_class(domains[target])
        self.free = [i for i in range(len(domains)) if not (self.classed and i == target)]
        self.numbers = [i for i in self.free if domains[i].ordered]
        with_pairs, with_scores = len(self.free) > 1, len(self.numbers) > 1
        counter.measure_sizes()
        self.noise = counter.noise  # of counts of all levels, as a multiple of that of one
        whole = self.ledger.remaining * _NEVER_MORE
        self.rho_pairs = whole * settings.pairs if with_pairs else 0.0
        rho = whole - self.rho_pairs
        self.rho_one_way = rho * settings.one_way
        self.rho_given = rho * settings.given_target if self.classed and self.free else 0.0
        self.rho_covariance = rho * settings.covariance if with_scores else 0.0
        self.rho_scores = rho * settings.scores if with_pairs else 0.0
        self.rho_tables = rho - self.rho_one_way - self.rho_given - self.rho_covariance - self.rho_scores
        if not with_pairs and not self.classed:
            self.rho_one_way = rho
        self.pair_bins = 0

    def run(self) -> Model:
        """All steps."""
        self.measure_columns()
        self.measure_given_target()
        self.size_pairs()
        self.measure_covariance()
        self.score_pairs()
        plan = self.plan_tables()
        return replace(self.measure_tables(plan), pairs=self.measure_pairs())

    # -------------------------------------------------------------------------------------------------- one-way counts

    def measure_columns(self) -> None:
        weights = [self.settings.target_weight if i == self.target and not self.classed else 1.0 for i in self.indices]
        rhos = [self.rho_one_way * weight / sum(weights) for weight in weights]
        self.histograms = measure_columns(self.counter, self.domains, rhos, self.settings.split)
        totals = np.array([each.total for each in self.histograms])
        precision = [1 / (each.sd**2 * each.measured) for each in self.histograms]
        self.total = max(float(np.average(totals, weights=precision)), _LEAST_PEOPLE)
        self.seen = _Recoding(tuple(self.histograms))

    @property
    def indices(self) -> range:
        return range(len(self.domains))

    # --------------------------------------------------------------------------------------------- counts given classes

    def measure_given_target(self) -> None:
        """Shares of each column's leaves by class, and an order of its categories by class."""
        self.classes = np.zeros(1, dtype=np.int64)
        self.class_shares, self.sd_given = np.ones(1), np.inf
        self.keys: dict[int, Floats] = {}
        self.given = {i: self.histograms[i].shares[None] for i in self.free}
        if not self.classed or self.target is None:
            return
        whole = self.histograms[self.target]
        self.classes = np.flatnonzero(whole.shares > 0)
        class_of = np.clip(np.searchsorted(self.classes, np.arange(len(whole))), 0, len(self.classes) - 1)
        self.seen = _Recoding(self.seen.histograms, self.target, class_of)
        self.class_shares = shares(whole.shares[self.classes])
        if not self.free:
            return
        count = len(self.classes)
        rho = self.rho_given / len(self.free)
        fine = {i: self.histograms[i].bins(_FINE_BINS) for i in self.free}
        seen, sizes = self.seen, {i: int(bins.max()) + 1 for i, bins in fine.items()}

        def cells_of(people: People) -> Iterator[Cells]:
            own = seen.own(people)
            return ((own * sizes[i] + bins[seen.leaves(people, i)], slice(None)) for i, bins in fine.items())

        found = self.counter.counts([count * size for size in sizes.values()], cells_of)
        for (i, bins), counts in zip(fine.items(), found, strict=True):
            column, size = self.histograms[i], sizes[i]
            noisy, self.sd_given = self.counter.noisy(CountsGivenTarget, counts, rho, blocks=count)
            self.noise = max(self.noise, self.sd_given * float(np.sqrt(2 * rho)))
            noisy = noisy.reshape(count, size)
            column = self._sharpened(column, bins, noisy)
            self.histograms[i] = column
            in_bins = np.bincount(bins, column.shares, size)
            noisy = shrink(noisy, np.outer(self.class_shares, in_bins) * self.total, self.sd_given)
            noisy = rake(noisy, np.asarray(self.class_shares * self.total), np.asarray(in_bins * self.total))
            given = noisy[:, bins] * (column.shares / np.maximum(in_bins[bins], 1e-12))
            given = np.maximum(given, 0) + 1e-15
            self.given[i] = given / given.sum(axis=1, keepdims=True)
            self.keys[i] = (np.arange(count)[:, None] * given).sum(axis=0) / given.sum(axis=0)

    def _sharpened(self, column: Histogram, bins: Ints, noisy: Floats) -> Histogram:
        """Histogram with the sums over classes taken in, by their precision."""
        size = noisy.shape[1]
        before = np.bincount(bins, column.shares, size)
        first = 1 / (np.bincount(bins, minlength=size) * column.sd**2)
        second = 1 / (len(noisy) * self.sd_given**2)
        both = (first * before * self.total + second * noisy.sum(axis=0)) / (first + second)
        after = nearest_counts(both, self.total) / self.total
        return replace(column, shares=shares(column.shares * (after / np.maximum(before, 1e-12))[bins]))

    # ------------------------------------------------------------------------------------------------------- covariance

    def measure_covariance(self) -> None:
        """Correlations of the normal scores of numbers, by class where there are few."""
        self.edges = {i: _cumulated(self.given[i]) for i in self.free}
        many = len(self.numbers)
        self.correlations: Floats | None = None
        if not self.rho_covariance:
            return
        by_class = len(self.classes) <= 6
        groups = len(self.classes) if by_class else 1
        scale = finest_grid(self.settings.clip * many, self.rho_covariance, self.people.unit)
        bound = int(self.settings.clip * many * scale**2)
        seen, edges, given, numbers = self.seen, self.edges, self.given, self.numbers

        def scores_of(people: People) -> tuple[Ints, Ints]:
            own, uniform = seen.own(people), []
            for i in numbers:
                column, leaf = seen.histograms[i], seen.leaves(people, i)
                within = (people.places[i] - column.starts[leaf] + 0.5) / column.widths[leaf]
                uniform.append(edges[i][own, leaf] + within * given[i][own, leaf])  # cumulative share in the class
            return clip_scores(np.column_stack(uniform), scale, bound), own if by_class else np.zeros_like(own)

        matrices, sd = measure_products(self.counter, scores_of, many, groups, bound, self.rho_covariance)
        self.correlations = correlations(matrices / scale**2, self.class_shares, self.total, sd / scale**2)

    # ------------------------------------------------------------------------------------------------------ pair scores

    def score_pairs(self) -> None:
        """How far the counts of each pair are from those of the model so far, beyond what noise explains."""
        self.score = {i: dict.fromkeys(self.free, 0.0) for i in self.free}
        pairs = list(itertools.combinations(self.free, 2))
        if not pairs:
            self.sd_scores = 0.0
            return
        counted, unit = self.counter.counted, self.people.unit  # what a person counts, on average
        self.sd_scores = float(np.sqrt(len(pairs) / (2 * self.rho_scores))) / counted
        coarse = {i: self.histograms[i].bins(_COARSE_BINS, self.keys.get(i)) for i in self.free}
        sizes = {i: int(coarse[i].max()) + 1 for i in self.free}
        seen, shapes = self.seen, [len(self.classes) * sizes[a] * sizes[b] for a, b in pairs]

        def cells_of(people: People) -> Iterator[Cells]:
            own, cells = seen.own(people), {i: bins[seen.leaves(people, i)] for i, bins in coarse.items()}
            return (((own * sizes[a] + cells[a]) * sizes[b] + cells[b], slice(None)) for a, b in pairs)

        exact = self.counter.counts(shapes, cells_of, apart=False)
        by_class = {i: np.array([np.bincount(coarse[i], row, sizes[i]) for row in self.given[i]]) for i in self.free}
        sample = self._sample(coarse)
        count = len(self.classes)
        distances, explained = [], []
        for (a, b), found in zip(pairs, exact, strict=True):
            if sample is not None and a in sample[1] and b in sample[1]:
                own, codes = sample
                joint = (own * sizes[a] + codes[a]) * sizes[b] + codes[b]
                model = np.bincount(joint, minlength=count * sizes[a] * sizes[b]) * (self.total / len(own))
            else:
                joint = by_class[a][:, :, None] * by_class[b][:, None, :] * self.class_shares[:, None, None]
                model = joint.ravel() * self.total
            expected = np.rint(model * (unit * counted)).astype(np.int64)
            distances.append(np.abs(found - expected).sum())
            noise = self._margin_noise(coarse[a], a)[:, None] * by_class[b][:, None, :] ** 2
            noise = noise + self._margin_noise(coarse[b], b) * by_class[a][:, :, None] ** 2
            explained.append(np.sqrt(2 / np.pi) * np.sqrt(model + noise.ravel()).sum())
        noisy = self.ledger.release(PairScores(np.array(distances), unit), self.rho_scores) / counted
        for (a, b), value in zip(pairs, (noisy - explained).tolist(), strict=True):
            self.score[a][b] = self.score[b][a] = value

    def _margin_noise(self, coarse: Ints, column: int) -> Floats:
        """Variance of the noise that the model's counts by class have in each coarse bin; 0 without classes."""
        if not self.classed:
            return np.zeros(int(coarse.max()) + 1)
        fine = self.histograms[column].bins(_FINE_BINS)
        counts = [len(np.unique(fine[coarse == each])) for each in range(int(coarse.max()) + 1)]
        return np.array(counts) * self.sd_given**2

    def _sample(self, coarse: dict[int, Ints]) -> tuple[Ints, dict[int, Ints]] | None:
        """Bins of numbers drawn from the released correlations; None if there are none."""
        if self.correlations is None:
            return None
        from scipy.special import ndtr

        rows = int(np.clip(4 * self.total, _SAMPLE, 2 * _SAMPLE))
        own = self.rng.choice(len(self.classes), rows, p=self.class_shares)
        scores = self.rng.normal(size=(rows, len(self.numbers)))
        for group, matrix in enumerate(self.correlations):
            here = own == group
            scores[here] = scores[here] @ np.linalg.cholesky(matrix + 1e-9 * np.eye(len(matrix))).T
        codes = {}
        for at, i in enumerate(self.numbers):
            uniform, leaf = ndtr(scores[:, at]), np.zeros(rows, dtype=np.int64)
            for group in range(len(self.classes)):
                here = own == group
                leaf[here] = np.searchsorted(self.edges[i][group], uniform[here], side="right") - 1
            codes[i] = coarse[i][leaf.clip(0, len(self.histograms[i]) - 1)]
        return own, codes

    # -------------------------------------------------------------------------------------------------------- structure

    def plan_tables(self) -> list[tuple[int, list[int], list[Ints], Ints]]:
        """Columns in their order of drawing, each with its parents, their bins, and its own bins.

        A parent is taken if its noisy score is worth it and its cells would hold enough people.
        """
        self.strength = {i: self._class_strength(i) for i in self.free}
        order = self._order()
        tables = len(order) - (not self.classed)
        plan: list[tuple[int, list[int], list[Ints], Ints]] = []
        for _ in range(3):
            sd = self.noise * np.sqrt(max(tables, 1) / (2 * self.rho_tables))
            room = self.total / (self.settings.people_per_cell * sd)
            plan = [self._planned(column, order[:place], room) for place, column in enumerate(order)]
            own = sum(self._has_table(column, parents) for column, parents, _, _ in plan)
            if own == tables:
                break
            tables = max(own, 1)
        return plan

    def _class_strength(self, i: int) -> float:
        given = self.given[i]
        return self.total * float((self.class_shares[:, None] * np.abs(given - self.class_shares @ given)).sum())

    def _has_table(self, _: int, parents: Sequence[int]) -> bool:
        return self.classed or bool(parents)

    def _cardinality(self, i: int) -> int:
        return self.histograms[i].cardinality

    def _order(self) -> list[int]:
        whole = {i: sum(max(value, 0.0) for other, value in self.score[i].items() if other != i) for i in self.free}
        if not self.free:
            return []
        if self.classed:
            root = max(self.free, key=lambda i: self.strength[i])
        elif self.target is not None:
            root = self.target
        else:
            tied = [i for i in self.free if whole[i] > 0.1 * self.total]
            root = min(tied, key=lambda i: (self._cardinality(i), -whole[i]), default=self.free[0])
        order = [root]
        while len(order) < len(self.free):
            rest = [i for i in self.free if i not in order]
            order.append(max(rest, key=lambda i: max(*(self.score[i][b] for b in order), self.strength[i])))
        return order

    def _planned(self, column: int, before: list[int], room: float) -> tuple[int, list[int], list[Ints], Ints]:
        settings, worth = self.settings, max(2.0 * self.sd_scores, 0.02 * self.total)
        bins = self.histograms[column].bins(int(np.clip(1.2 * np.sqrt(room), 4, settings.bins)), self.keys.get(column))
        left = room / (int(bins.max()) + 1) / len(self.classes)
        small: list[int] = []
        for b in sorted(before, key=lambda b: -self.score[column][b]) if settings.small_parents else ():
            few = self._cardinality(b)
            if few <= 3 and self.score[column][b] > worth and left / few >= 3 and len(small) < 2:
                small.append(b)
                left /= few
        parents = self._parents(column, [b for b in before if b not in small], small, left, worth)
        maps = [np.arange(len(self.histograms[b])) for b in small]
        sizes = dict[int, int]()
        for place, b in enumerate(sorted(parents, key=self._cardinality)):
            even = left ** (1 / (len(parents) - place))
            sizes[b] = int(np.clip(min(self._cardinality(b), even), 2, 24))
            left /= sizes[b]
        maps += [self.histograms[b].bins(sizes[b], self.keys.get(b)) for b in parents]
        return column, small + parents, maps, bins

    def _parents(self, column: int, offered: list[int], small: list[int], left: float, worth: float) -> list[int]:
        parents: list[int] = []
        while len(parents) < self.settings.parents and offered:
            gains = {
                b: self.score[column][b]
                - 0.5 * max([min(self.score[b][p], self.score[column][p]) for p in parents + small], default=0.0)
                for b in offered
            }
            best = max(gains, key=lambda b: gains[b])
            need = (
                min(self._cardinality(best), self.settings.least_room)
                if not parents
                else np.prod([min(self._cardinality(p), 4.0) for p in [*parents, best]])
            )
            if gains[best] < worth or left < need:
                break
            parents.append(best)
            offered.remove(best)
        return parents

    # ----------------------------------------------------------------------------------------------------------- tables

    def measure_tables(self, plan: list[tuple[int, list[int], list[Ints], Ints]]) -> Model:
        """One table of each planned column, with shares of the budget by what the noisy scores promise."""
        planned = [(c, parents) for c, parents, _, _ in plan if self._has_table(c, parents)]
        gains = {c: self._gain(c, parents) for c, parents in planned}
        top = max(max(gains.values(), default=1.0), 1e-9)
        weights = {c: 0.4 + min(1.0, gain / (0.5 * top)) for c, gain in gains.items()}
        whole, columns, tables = sum(weights.values()), [], [each for each in plan if each[0] in weights]
        dims = {c: [len(self.classes), *(int(each.max()) + 1 for each in maps)] for c, _, maps, _ in plan}
        seen = self.seen

        def cells_of(people: People) -> Iterator[Cells]:
            for c, parents, maps, bins in tables:
                cells = seen.own(people)
                for b, each, many in zip(parents, maps, dims[c][1:], strict=True):
                    cells = cells * many + each[seen.leaves(people, b)]
                yield cells * (int(bins.max()) + 1) + bins[seen.leaves(people, c)], slice(None)

        sizes = [int(np.prod(dims[c])) * (int(bins.max()) + 1) for c, _, _, bins in tables]
        exact = iter(self.counter.counts(sizes, cells_of) if tables else ())
        for c, parents, maps, bins in plan:
            table, sd = None, np.inf
            if c in weights:
                rho = self.rho_tables * weights[c] / whole
                table, sd = self.counter.noisy(ColumnTable, next(exact), rho, blocks=dims[c][0])
                table = table.reshape(-1, int(bins.max()) + 1)
            columns.append(ColumnModel(c, tuple(parents), tuple(maps), bins, self.given[c], table, sd))
        return Model(
            tuple(self.histograms),
            self.target if self.classed else None,
            self.classes,
            self.class_shares,
            self.total,
            self.sd_given,
            tuple(columns),
            self.correlations,
        )

    # ------------------------------------------------------------------------------------------------- tables of pairs

    def size_pairs(self) -> None:
        """Bins of each column in tables of pairs; without enough people their budget goes to the other tables."""
        many = len(self.free) * (len(self.free) - 1) // 2
        if self.rho_pairs:
            sd = self.noise * np.sqrt(many / (2 * self.rho_pairs))
            bins = np.sqrt(self.total / (len(self.classes) * _PEOPLE_PER_PAIR_CELL * sd))
            self.pair_bins = int(min(bins, _MOST_PAIR_BINS)) if bins >= _LEAST_PAIR_BINS else 0
        if not self.pair_bins:
            self.rho_tables, self.rho_pairs = self.rho_tables + self.rho_pairs, 0.0

    def measure_pairs(self) -> tuple[PairTable, ...]:
        """Counts of all pairs by class."""
        if not self.pair_bins:
            return ()
        bins = {i: self.histograms[i].bins(self.pair_bins, self.keys.get(i)) for i in self.free}
        sizes = {i: int(each.max()) + 1 for i, each in bins.items()}
        pairs = list(itertools.combinations(self.free, 2))
        seen, shapes = self.seen, [len(self.classes) * sizes[a] * sizes[b] for a, b in pairs]

        def cells_of(people: People) -> Iterator[Cells]:
            own, cells = seen.own(people), {i: each[seen.leaves(people, i)] for i, each in bins.items()}
            return (((own * sizes[a] + cells[a]) * sizes[b] + cells[b], slice(None)) for a, b in pairs)

        tables = []
        for (a, b), counts in zip(pairs, self.counter.counts(shapes, cells_of), strict=True):
            rho = self.rho_pairs / len(pairs)
            noisy, sd = self.counter.noisy(PairCounts, counts, rho, blocks=len(self.classes))
            tables.append(PairTable((a, b), (bins[a], bins[b]), noisy, sd))
        return tuple(tables)

    def _gain(self, column: int, parents: Sequence[int]) -> float:
        noise = 0.24 * self.sd_given * min(len(self.histograms[column]), _FINE_BINS) * len(self.classes)
        own = max(self.strength[column] - noise, 0.0) if self.classed else 0.0
        return own + sum(max(self.score[column][b], 0.0) for b in parents)


def _cumulated(given: Floats) -> Floats:
    edges = np.concatenate([np.zeros((len(given), 1)), np.cumsum(given, axis=1)], axis=1).clip(0, 1)
    edges[:, -1] = 1.0
    return np.asarray(edges)
