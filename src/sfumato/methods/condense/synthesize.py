"""From a partition to a release: rows drawn from the groups' statistics and shuffled, with the facts.

Rows drawn from groups, with the categories of columns that have very many: each group keeps its own.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sfumato.core.arrays import Floats, Ints, count_persons
from sfumato.core.errors import PrivacyLeakWarning
from sfumato.core.facts import Fact, Shuffled
from sfumato.core.groups import Groups, facts_of_groups
from sfumato.core.groups.discrete import as_numbers, assign_codes, coded_blocks, ranked_rows
from sfumato.core.groups.generate import generate, redraw
from sfumato.core.records import Block, BlockKind, Layout, Records, columns_of
from sfumato.methods.condense.facts import GroupSynthesis, NormalScoreColumns, PersonsInDistinctGroups
from sfumato.methods.condense.slots import MISSING
from sfumato.methods.protocol import MethodResult, OwnerDetails, rows_drawn

__all__ = ["NormalScores", "generate_coded", "group_facts", "redraw_coded", "synthesize"]

_TINY = 3  # mean and covariance of two records give both away, and three are not far from it


def synthesize(
    records: Records,
    labels: Ints,
    levels: Ints,
    algorithm: str,
    rng: np.random.Generator,
    *,
    shared: slice | None = None,
    kept: Ints | None = None,
) -> MethodResult:
    """Draw as many rows as each group has records, or as requested, in random order, with the facts.

    More rows are drawn by going through the groups again; of the last time those that leave are chosen by chance.

    Parameters
    ----------
    records : Records
    labels : ndarray of shape (n,)
        Group of each record, or of those that are kept, a partition that was checked.
    levels : ndarray of shape (n,)
        Level that was met for each record.
    algorithm : str
        What made the groups, for the certificate.
    rng : numpy.random.Generator
    shared : slice, optional
        Coordinates that are equal in all records of a group: they are copied, so that rounding cannot touch them.
    kept : ndarray, optional
        Places of the records that are in groups, where some were left out.
    """
    if kept is not None:
        records, levels = records.take(kept), levels[kept]
    sizes = np.bincount(labels)
    rows = len(records) if records.wanted is None else records.wanted.rows
    times = -(-rows // len(records))
    drawn = [redraw_coded(records.values, labels, records.layout, rng) for _ in range(times)]
    values = drawn[0] if times == 1 else np.concatenate(drawn)
    drawn_from = np.tile(np.repeat(np.arange(len(sizes)), sizes), times)
    if shared is not None:
        anyone = np.unique(labels, return_index=True)[1]
        values[:, shared] = records.values[anyone, shared][drawn_from]
    order = np.arange(rows)
    if rows < len(values):
        before = len(values) - len(records)
        order[before:] = before + rng.permutation(len(records))[: rows - before]
    order = order[rng.permutation(rows)]
    values, drawn_from = _in_order(values, order), drawn_from[order]
    released = records.made(values)
    facts = (*group_facts(algorithm, records, sizes, levels, labels, rows), *rows_drawn(records))
    if records.persons is not None:
        facts = (*facts, PersonsInDistinctGroups(len(np.unique(records.persons))))
    return MethodResult(released, facts, OwnerDetails(labels, levels, drawn_from, kept=kept))


def _in_order(values: Floats, order: Ints) -> Floats:
    """Reordered rows, column by column and consuming the input, to halve peak memory."""
    if len(order) < len(values):
        return values[order]
    for place in range(values.shape[1]):
        values[:, place] = values[order, place]
    return values


def group_facts(
    algorithm: str, records: Records, sizes: Ints, levels: Ints, labels: Ints, rows: int
) -> tuple[Fact, ...]:
    """Facts about the groups; warn if groups are so small that statistics equal their members."""
    tiny = int((sizes <= _TINY).sum())
    if tiny:
        warnings.warn(
            f"{tiny} of {len(sizes)} groups have {_TINY} records or fewer: their mean and covariance nearly or "
            "exactly give the members away; use a higher k",
            PrivacyLeakWarning,
            stacklevel=4,  # whoever called the mechanism
        )
    grouped, *kept = facts_of_groups(algorithm, records, sizes, levels, labels, tiny)
    drawn = GroupSynthesis(statistics="mean and covariance", law="uniform along eigenvectors", rows=rows)
    return (grouped, drawn, *kept, Shuffled(rows=rows))


def redraw_coded(values: Floats, labels: Ints, layout: Layout, rng: np.random.Generator) -> Floats:
    """Draw rows as `redraw` does; long category lists are assigned by rank among the group's categories.

    Its coordinate is drawn like a number, so that it goes with the other columns. Then the drawn rows of a group take
    the categories of its records, the lowest the lowest: counts are exactly the group's, whatever many there are.
    """
    drawn = redraw(values, labels, as_numbers(layout), rng)
    groups = np.sort(labels)  # rows were drawn group after group
    for block, mark in coded_blocks(layout):
        ranked = ranked_rows(values, labels, block, mark)
        assign_codes(drawn, groups, block, mark, values[ranked, block.start])
    return drawn


def generate_coded(groups: Groups, held: Sequence[Sequence[Ints]], layout: Layout, rng: np.random.Generator) -> Floats:
    """Draw rows as `generate` does, if each group holds these codes of long category lists.

    Parameters
    ----------
    held : sequence of sequence of ndarray
        Of each group, and in it of each such column, as `CategoryTally.of` tells.
    """
    coded, mean = coded_blocks(layout), groups.mean.copy()
    for column, (_, mark) in enumerate(coded):
        if mark is not None:
            absent = [np.count_nonzero(places[column] == MISSING) for places in held]
            mean[:, mark] = np.array(absent) / groups.count
    drawn = generate(dataclasses.replace(groups, mean=mean), as_numbers(layout), rng)
    labels = np.repeat(np.arange(len(groups)), groups.count)
    for column, (block, mark) in enumerate(coded):
        there = [places[column][places[column] != MISSING] for places in held]
        coordinates = block.coordinates(np.concatenate([np.empty(0, dtype=np.int64), *there]))
        assign_codes(drawn, labels, block, mark, coordinates)
    return drawn


@dataclass(frozen=True, eq=False)
class _Curve:
    """Map from normal scores to numbers: linear interpolation between knots, both ascending.

    Each of them is the mean of the numbers of at least k people, or a number that as many hold. ``most`` is the
    largest score of the table; none beyond it is turned back.
    """

    scores: Floats
    numbers: Floats
    most: float

    def back(self, drawn: Floats) -> Floats:
        """Numbers of drawn scores; extrapolated linearly beyond the outermost means."""
        z = np.clip(drawn, -self.most, self.most)
        found = np.interp(z, self.scores, self.numbers)
        for end, beside, beyond in ((0, 1, z < self.scores[0]), (-1, -2, z > self.scores[-1])):
            if len(self.scores) > 1 and self.scores[end] != self.scores[beside] and beyond.any():
                slope = (self.numbers[end] - self.numbers[beside]) / (self.scores[end] - self.scores[beside])
                found[beyond] = self.numbers[end] + slope * (z[beyond] - self.scores[end])
        return np.asarray(found)


@dataclass(frozen=True, eq=False)
class NormalScores:
    """Normal scores of the numeric columns of records, and the inverse map.

    ``records`` are the records with scores in place of numbers; of each column with its mark of missing cells there is
    a curve, and k people or more are behind each point of it.
    """

    records: Records
    columns: tuple[tuple[Block, int | None, _Curve], ...]
    k: int

    @classmethod
    def of(cls, records: Records, k: int) -> NormalScores:
        """Scores of these records; tied numbers share their mean rank."""
        values, columns = records.values.copy(), []
        for block, missing in columns_of(records.layout):
            if block.kind is not BlockKind.NUMBER:
                continue
            mark = None if missing is None else missing.start
            there = np.ones(len(values), dtype=np.bool_) if mark is None else values[:, mark] < 0.5
            if there.sum() < k:
                continue
            persons = None if records.persons is None else records.persons[there]
            values[there, block.start], curve = _score(values[there, block.start], persons, k)
            values[~there, block.start] = 0.0
            columns.append((block, mark, curve))
        return cls(replace(records, coordinates=values), tuple(columns), k)

    def back(self, made: MethodResult) -> MethodResult:
        """Synthetic rows with numbers in place of scores, and the fact that states it."""
        values = made.records.values.copy()
        for block, mark, curve in self.columns:
            values[:, block.start] = curve.back(values[:, block.start])
            if mark is not None:
                values[values[:, mark] > 0.5, block.start] = block.fill[0]
        facts: tuple[Fact, ...] = made.facts
        if self.columns:
            place = next(place for place, fact in enumerate(facts) if isinstance(fact, GroupSynthesis)) + 1
            facts = (*facts[:place], NormalScoreColumns(len(self.columns), self.k), *facts[place:])
        return replace(made, records=replace(made.records, coordinates=values), facts=facts)


def _score(numbers: Floats, persons: Ints | None, k: int) -> tuple[Floats, _Curve]:
    """Scores of the numbers of a column, and the inverse curve.

    The numbers in their order are cut into heaps, held by at least k people, and what is between them, and that into
    parts of k or a little more; of a part of fewer people nothing is known.
    """
    from scipy.special import ndtri

    n = len(numbers)
    values, places, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    scores = ndtri((np.cumsum(counts) - counts / 2) / n)[places]
    order = np.argsort(numbers, kind="stable")
    heaped = count_persons(places, persons, len(values)) >= k
    run = np.cumsum(np.concatenate([[0], heaped[1:] | heaped[:-1]]))[places[order]]
    begins = np.flatnonzero(np.diff(run, prepend=-1))
    many = np.diff(begins, append=n)
    pieces = np.where(heaped[places[order[begins]]], 1, np.maximum(many // k, 1))
    which, rank = np.repeat(np.arange(len(begins)), pieces), np.arange(pieces.sum())
    rank -= np.repeat(np.cumsum(pieces) - pieces, pieces)
    starts = begins[which] + rank * many[which] // pieces[which]
    sizes = np.diff(starts, append=n)
    heap = heaped[places[order[starts]]]
    held = heap | (
        count_persons(np.repeat(np.arange(len(starts)), sizes), None if persons is None else persons[order]) >= k
    )
    means = [np.add.reduceat(each[order], starts) / sizes for each in (scores, numbers)]
    shares = np.clip(np.column_stack([starts, starts + sizes]) / n, 0.5 / n, 1 - 0.5 / n)
    points = np.where(heap[:, None], ndtri(shares), means[0][:, None])[held]
    at = np.where(heap, numbers[order[starts]], means[1])[held]
    most = float(ndtri(1 - 0.5 / n))
    if not len(at):
        return scores, _Curve(np.zeros(1), np.array([numbers.mean()]), most)
    once = np.repeat([[True, False]], len(at), axis=0) | heap[held, None]  # a mean is one point, a heap has two ends
    return scores, _Curve(points[once], np.repeat(at, 2).reshape(-1, 2)[once], most)
