"""Normal scores: numbers by their place among all, as a normal law would have them, and back by what many have."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from sfumato.core.facts import Fact, Scored, Synthesized
from sfumato.core.records import Block, BlockKind, Records
from sfumato.mechanisms.protocol import Sanitized

__all__ = ["NormalScores"]


@dataclass(frozen=True, eq=False)
class _Curve:
    """How scores of a column become numbers: by the line through ``numbers`` at ``scores``, both ascending.

    Each of them is the mean of the numbers of at least k people, or a number that as many hold. ``most`` is the
    largest score of the table; none beyond it is turned back.
    """

    scores: NDArray[np.float64]
    numbers: NDArray[np.float64]
    most: float

    def back(self, drawn: NDArray[np.float64]) -> NDArray[np.float64]:
        """Numbers of drawn scores; beyond the outermost means the line goes on."""
        z = np.clip(drawn, -self.most, self.most)
        found = np.interp(z, self.scores, self.numbers)
        for end, beside, beyond in ((0, 1, z < self.scores[0]), (-1, -2, z > self.scores[-1])):
            if len(self.scores) > 1 and self.scores[end] != self.scores[beside] and beyond.any():
                slope = (self.numbers[end] - self.numbers[beside]) / (self.scores[end] - self.scores[beside])
                found[beyond] = self.numbers[end] + slope * (z[beyond] - self.scores[end])
        return np.asarray(found)


@dataclass(frozen=True, eq=False)
class NormalScores:
    """Normal scores of the columns of numbers of records, and the way back.

    ``records`` are the records with scores in place of numbers; of each column with its mark of missing cells there is
    a curve, and k people or more are behind each point of it.
    """

    records: Records
    columns: tuple[tuple[Block, int | None, _Curve], ...]
    k: int

    @classmethod
    def of(cls, records: Records, k: int) -> NormalScores:
        """Scores of these records; a number has the middle of the places of all who hold it."""
        marks = {block.column: block.start for block in records.layout if block.kind is BlockKind.MISSING}
        values, columns = records.values.copy(), []
        for block in records.layout:
            if block.kind is not BlockKind.NUMBER:
                continue
            mark = marks.get(block.column)
            there = np.ones(len(values), dtype=np.bool_) if mark is None else values[:, mark] < 0.5
            if there.sum() < k:
                continue
            persons = None if records.persons is None else records.persons[there]
            values[there, block.start], curve = _score(values[there, block.start], persons, k)
            values[~there, block.start] = 0.0
            columns.append((block, mark, curve))
        return cls(replace(records, coordinates=values), tuple(columns), k)

    def back(self, made: Sanitized) -> Sanitized:
        """What was made of the scores, with numbers in their place and the fact that says so."""
        values = made.records.values.copy()
        for block, mark, curve in self.columns:
            values[:, block.start] = curve.back(values[:, block.start])
            if mark is not None:
                values[values[:, mark] > 0.5, block.start] = block.fill[0]
        facts: tuple[Fact, ...] = made.facts
        if self.columns:
            place = next(place for place, fact in enumerate(facts) if isinstance(fact, Synthesized)) + 1
            facts = (*facts[:place], Scored(len(self.columns), self.k), *facts[place:])
        return replace(made, records=replace(made.records, coordinates=values), facts=facts)


def _score(
    numbers: NDArray[np.float64], persons: NDArray[np.int64] | None, k: int
) -> tuple[NDArray[np.float64], _Curve]:
    """Scores of the numbers of a column, and the curve back.

    The numbers in their order are cut into heaps, which at least k people hold, and what is between them, and that into
    parts of k or a little more; of a part of fewer people nothing is known.
    """
    n = len(numbers)
    values, places, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    scores = ndtri((np.cumsum(counts) - counts / 2) / n)[places]
    order = np.argsort(numbers, kind="stable")
    heaped = _people(places, persons, len(values)) >= k
    run = np.cumsum(np.concatenate([[0], heaped[1:] | heaped[:-1]]))[places[order]]
    begins = np.flatnonzero(np.diff(run, prepend=-1))
    many = np.diff(begins, append=n)
    pieces = np.where(heaped[places[order[begins]]], 1, np.maximum(many // k, 1))
    which, rank = np.repeat(np.arange(len(begins)), pieces), np.arange(pieces.sum())
    rank -= np.repeat(np.cumsum(pieces) - pieces, pieces)
    starts = begins[which] + rank * many[which] // pieces[which]
    sizes = np.diff(starts, append=n)
    heap = heaped[places[order[starts]]]
    held = heap | (_people(np.repeat(np.arange(len(starts)), sizes), None if persons is None else persons[order]) >= k)
    means = [np.add.reduceat(each[order], starts) / sizes for each in (scores, numbers)]
    shares = np.clip(np.column_stack([starts, starts + sizes]) / n, 0.5 / n, 1 - 0.5 / n)
    points = np.where(heap[:, None], ndtri(shares), means[0][:, None])[held]
    at = np.where(heap, numbers[order[starts]], means[1])[held]
    most = float(ndtri(1 - 0.5 / n))
    if not len(at):
        return scores, _Curve(np.zeros(1), np.array([numbers.mean()]), most)
    once = np.repeat([[True, False]], len(at), axis=0) | heap[held, None]  # a mean is one point, a heap has two ends
    return scores, _Curve(points[once], np.repeat(at, 2).reshape(-1, 2)[once], most)


def _people(parts: NDArray[np.int64], persons: NDArray[np.int64] | None, count: int = 0) -> NDArray[np.int64]:
    """People of each part: its records, or the different persons among them."""
    if persons is None:
        return np.bincount(parts, minlength=count)
    who = np.unique(persons, return_inverse=True)[1]
    people = int(who.max()) + 1
    return np.bincount(np.unique(parts * people + who) // people, minlength=count)
