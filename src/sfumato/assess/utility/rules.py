"""Association rules: which of the original's rules the released table still has, and which it has only now.

Rules remaining, lost and new after sanitizing, and how their confidence changed [JS07, sec. 2.5].
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.findings import Family, Finding, not_run
from sfumato.assess.frame import Measure, Need
from sfumato.assess.intervals import around, holding
from sfumato.assess.study import Study
from sfumato.assess.utility.alike import note, rows_alike
from sfumato.assess.utility.itemsets import CONFIDENCE, MOST, SUPPORT, Counts, Rules, mine

__all__ = ["RULES", "compare"]

_Matrix = NDArray[np.float64]

_TIMES = 20  # of the rows that models learn from
_REDRAWS = 100

_ABOUT = (
    f"these link at most three of the {MOST} most frequent items, hold for {SUPPORT:.0%} of the rows and are right in "
    f"{CONFIDENCE:.0%} of cases, with numbers cut into quarters"
)
_MEANINGS = {
    "rules-kept": "The share of the original's association rules that are rules of the released table too, which "
    f"should be all; {_ABOUT}.",
    "rules-new": "The share of the released table's association rules that are none of the original, which should be "
    f"none; {_ABOUT}.",
    "rule-confidence-shift": "How much the confidence of an association rule of the original, which is how often it "
    f"is right, changed on average; 0 is best; {_ABOUT}.",
}


def compare(rules: Rules, before: _Matrix, after: _Matrix) -> tuple[float, float, float]:
    """Give the shares of rules kept and new, and the mean change in confidence; the counts end with those of all rows.

    With no rule on a side the shares are 1 kept and 0 new.
    """
    ours, theirs = rules.hold(before, before[-1]), rules.hold(after, after[-1])
    both = float((ours & theirs).sum())
    kept = both / ours.sum() if ours.any() else 1.0
    new = 1.0 - both / theirs.sum() if theirs.any() else 0.0
    moved = np.abs(rules.confidence(before) - rules.confidence(after))[ours]
    return float(kept), float(new), float(moved.mean()) if len(moved) else 0.0


def _run(study: Study) -> Iterator[Finding]:
    rng = study.generator(RULES.name)
    here, there = rows_alike(study, _TIMES * study.sizes.training, rng)
    rules, original, released = mine(study.pairs, here, there, rng)
    before, after = original.total, released.total
    if not rules.hold(before, before[-1]).any():
        lacking = f"the original has no rule that holds for {SUPPORT:.0%} of its rows and in {CONFIDENCE:.0%} of cases"
        yield from RULES.not_run(lacking)
        return
    values = compare(rules, before, after)
    again, chance = _redraw(rules, original, released, rng)
    intervals = [_centred(value, redrawn) for value, redrawn in zip(values[:2], again.T, strict=False)]
    intervals.append(around(values[2], again[:, 2], 0.0, 1.0))
    for name, value, interval, fresh in zip(_MEANINGS, values, intervals, chance.mean(axis=0), strict=True):
        way = RULES.direction(name)
        if name == "rules-new" and not rules.hold(after, after[-1]).any():
            yield not_run(name, Family.UTILITY, way, _MEANINGS[name], "the released table has no rule at all")
            continue
        yield Finding(
            name,
            Family.UTILITY,
            value,
            way,
            (0.0, 1.0),
            _MEANINGS[name][:-1] + note(study, here, there) + ".",
            interval=interval,
            baseline=float(fresh),
            attempts=int(rules.hold(*((after, after[-1]) if name == "rules-new" else (before, before[-1]))).sum()),
            unit="" if name == "rule-confidence-shift" else "share",
        )


def _centred(share: float, redraws: _Matrix) -> tuple[float, float]:
    """Give the interval of a share from redraws of both tables, which the chance in them makes worse on average."""
    low, high = holding(share, share + redraws - redraws.mean())
    return max(0.0, low), min(1.0, high)


def _redraw(rules: Rules, original: Counts, released: Counts, rng: np.random.Generator) -> tuple[_Matrix, _Matrix]:
    """Compare redraws of both tables, and the original with redraws of itself.

    Of the first the last column is not the change in confidence but how far it strays from the measured one.
    """
    before, after = original.total, released.total
    ours = rules.hold(before, before[-1])
    moved = rules.confidence(before) - rules.confidence(after)
    sources = ((original, before[-1]), (released, after[-1]), (original, after[-1]))
    again, chance = [], []
    for first, second, fresh in zip(*(each.redraws(rows, _REDRAWS, rng) for each, rows in sources), strict=True):
        strays = np.abs(rules.confidence(first) - rules.confidence(second) - moved)[ours].mean()
        again.append((*compare(rules, first, second)[:2], float(strays)))
        chance.append(compare(rules, before, fresh))
    return np.array(again), np.array(chance)


RULES = Measure(
    name="rules",
    family=Family.UTILITY,
    source="JS07, sec. 2.5; Agrawal, Imielinski and Swami 1993",
    findings=_MEANINGS,
    run=_run,
    higher=frozenset({"rules-kept"}),
    needs=(Need.COLUMNS,),
)
