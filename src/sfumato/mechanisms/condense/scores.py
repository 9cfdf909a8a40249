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
        return cls(replace(records, values=values), tuple(columns), k)

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
        return replace(made, records=replace(made.records, values=values), facts=facts)


def _score(
    numbers: NDArray[np.float64], persons: NDArray[np.int64] | None, k: int
) -> tuple[NDArray[np.float64], _Curve]:
    """Scores of the numbers of a column, and the curve back."""
    n = len(numbers)
    values, places, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    end = np.cumsum(counts)
    scores = ndtri((end - counts / 2) / n)[places]
    holders = counts
    if persons is not None:
        who = np.unique(persons, return_inverse=True)[1]
        pairs = np.unique(places * (int(who.max()) + 1) + who)
        holders = np.bincount(pairs // (int(who.max()) + 1), minlength=len(values))
    order = np.argsort(numbers, kind="stable")
    heaped = holders >= k
    run = np.cumsum(np.concatenate([[0], heaped[1:] | heaped[:-1]]))[places[order]]  # heaps, and what is between
    begins = np.flatnonzero(np.diff(run, prepend=-1))
    most, points = float(ndtri(1 - 0.5 / n)), list[tuple[float, float]]()
    for first, last in zip(begins, [*begins[1:], n], strict=True):
        if heaped[places[order[first]]]:
            number = float(numbers[order[first]])
            shares = np.clip([first / n, last / n], 0.5 / n, 1 - 0.5 / n)
            points += [(float(score), number) for score in ndtri(shares)]
            continue
        parts = np.array_split(order[first:last], max(1, (last - first) // k))
        points += [
            (float(scores[part].mean()), float(numbers[part].mean())) for part in parts if _people(part, persons) >= k
        ]
    if not points:
        points = [(0.0, float(numbers.mean()))]
    return scores, _Curve(np.array([each[0] for each in points]), np.array([each[1] for each in points]), most)


def _people(part: NDArray[np.int64], persons: NDArray[np.int64] | None) -> int:
    return len(part) if persons is None else len(np.unique(persons[part]))
