"""Comparing what candidates gave on the same parts, so that chance is never recommended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from sfumato.tuning.candidates import Candidate
from sfumato.tuning.trials import Reading
from sfumato.tuning.use import Score

__all__ = ["Difference", "compare", "level_with", "smoothed_leaks"]

_Z = NormalDist().inv_cdf(0.975)
_DRAWS = 2.0  # the released rows were drawn too: as much variance again as the test rows have
_SHARED = 0.43  # test rows to training rows, 30 to 70: parts of one table share rows [Nadeau and Bengio 2003]


@dataclass(frozen=True)
class Difference:
    """One use less another on the same parts, and where that may lie, 95 %."""

    value: float
    low: float
    high: float

    @property
    def certain(self) -> bool:
        """Whether it is more than chance."""
        return self.low > 0.0 or self.high < 0.0


def compare(one: Mapping[str, Score], other: Mapping[str, Score]) -> Difference | None:
    """One use less another, row by row and part by part; None where they share no part.

    The variance is the larger of two: that of the rows' differences, doubled because the released rows were drawn as
    well, and that of the parts' differences, corrected for rows that parts share.
    """
    shared = [name for name in one if name in other]
    if not shared:
        return None
    gaps = np.array([one[name].value - other[name].value for name in shared])
    rows = [one[name].parts - other[name].parts for name in shared if len(one[name].parts) == len(other[name].parts)]
    rows = [each for each in rows if len(each) > 1]
    spread = float(np.mean([_DRAWS * each.var(ddof=1) / len(each) for each in rows])) / len(shared) if rows else 0.0
    reach = _Z * spread**0.5
    if len(shared) > 1:
        from scipy.stats import t

        varies = float(gaps.std(ddof=1)) * (1 / len(shared) + _SHARED) ** 0.5
        wide = float(t.ppf(0.975, len(shared) - 1)) * varies
        reach = max(reach, min(wide, 3.0 * reach) if reach else wide)  # two or three parts tell little of a spread
    elif not rows:
        reach = 1.0  # one number each: nothing says how far chance goes
    value = float(gaps.mean())
    return Difference(value, value - reach, value + reach)


def level_with(
    top: Candidate, others: Sequence[Candidate], uses: Mapping[Candidate, Mapping[str, Score]], little: float
) -> list[Candidate]:
    """Candidates whose use does not fall below the top's beyond chance, nor by more than a little; the top first."""
    level = [top]
    for each in others:
        gap = None if each == top else compare(uses[top], uses[each])
        if gap is not None and gap.low <= 0.0 and gap.value <= little:
            level.append(each)
    return level


def smoothed_leaks(readings: Mapping[Candidate, Reading]) -> dict[Candidate, float]:
    """Leak of every candidate as if that of a method never rose with its size: neighbours that do are averaged."""
    leaks: dict[Candidate, float] = {}
    for method in {candidate.method for candidate in readings}:
        ordered = sorted((each for each in readings if each.method == method), key=lambda each: each.size)
        blocks: list[list[Candidate]] = []
        for each in ordered:
            blocks.append([each])
            while len(blocks) > 1 and _mean(blocks[-1], readings) > _mean(blocks[-2], readings):
                last = blocks.pop()
                blocks[-1] += last
        for block in blocks:
            leaks |= dict.fromkeys(block, _mean(block, readings))
    return leaks


def _mean(block: Sequence[Candidate], readings: Mapping[Candidate, Reading]) -> float:
    return float(np.mean([readings[each].outlook.leak for each in block]))
