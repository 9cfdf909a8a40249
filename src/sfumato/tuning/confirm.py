"""Confirming: the choice is made, attacked and judged once more, against people whom the search has never used."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sfumato.assess.verdict import Ruling
from sfumato.core.errors import SfumatoError
from sfumato.publish.suggest import ColumnChange
from sfumato.publish.trial import SURE, chance_of
from sfumato.tuning.candidates import Candidate
from sfumato.tuning.halving import Clock, in_order, level_with, smoothed_leaks, surely_exceeds
from sfumato.tuning.trials import Bench, Part, People, Reading

__all__ = ["Confirmation", "choose", "confirm", "confirm_one"]

_MOST = 4  # confirmations
_OPEN = 0.2  # chance from which other people are held out once more
_LITTLE = 0.5  # of the use that may be lost at all, what two candidates may differ by and still be level
_USUAL_LOSS = 0.05
_ALIKE = 0.1  # leaks that differ by less, in what is allowed, are taken as the same


@dataclass(eq=False, repr=False)
class Confirmation:
    """A candidate on the whole of the people who were not held out, against those who were.

    ``chance`` is that of another run to meet the policy, as far as one run or two can say.
    """

    reading: Reading
    chance: float
    loses: bool  # more use than the policy lets go
    again: list[Reading] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Whether it can be recommended."""
        met = all(each.verdict.outcome is Ruling.MEETS for each in (self.reading, *self.again))
        return met and not self.loses and self.chance >= SURE


def choose(bench: Bench, left: Sequence[Candidate]) -> list[Candidate]:
    """Candidates in the order in which they are to be confirmed.

    Of those that keep the limits and the use, as far as the search can tell, the most useful one stands first, or one
    that is level with it and leaks less; of leaks that are alike the simplest method, then the largest size.
    """
    latest = bench.latest()
    known = [each for each in left if each in latest]
    leaks = smoothed_leaks({each: latest[each] for each in latest})
    keeps = [each for each in known if leaks[each] <= 1.0 and not surely_exceeds(latest[each])]
    useful = [each for each in keeps if not _loses(bench, latest[each])] or keeps
    order = in_order({each: latest[each] for each in known})
    if not useful:
        return order
    top = max(useful, key=lambda each: latest[each].use.value)
    little = _LITTLE * bench.told.policy.keep.get("prediction-loss", _USUAL_LOSS)
    level = level_with(top, useful, bench.uses, little)
    least = min(leaks[each] for each in level)
    alike = [each for each in level if leaks[each] <= least + _ALIKE]
    first = min(alike, key=lambda each: (each.rank[0], -each.size))
    return [first, *(each for each in order if each != first)]


def confirm(
    bench: Bench,
    order: Sequence[Candidate],
    grid: Sequence[Candidate],
    part: Part,
    people: People,
    clock: Clock,
    done: list[Confirmation],
) -> None:
    """Confirm candidates until one holds: after one that leaks too much, those that leak less; ``done`` gets them.

    ``grid`` are all candidates, of which larger ones of a method may take the place of one that failed.
    """
    queue = list(order)
    leaks = smoothed_leaks(bench.latest())
    while queue and len(done) < _MOST and (not done or clock.estimate(queue[0].method, part.people) < clock.left):
        candidate = queue.pop(0)
        try:
            found = confirm_one(bench, candidate, part, people, clock)
        except SfumatoError:
            continue
        done.append(found)
        if found.holds:
            break
        own = _leak(candidate, leaks)
        if found.loses and found.reading.verdict.outcome is Ruling.MEETS:
            queue = [each for each in queue if leaks.get(each, 0.0) >= own]
            continue
        larger = sorted(each for each in grid if each.method == candidate.method and each.size > candidate.size)
        safer = [each for each in queue if leaks.get(each, 9.0) < own and each not in larger]
        queue = [*larger[:1], *safer, *larger[1:]] if found.chance > 0.0 else [*safer, *larger[1:2], *larger[:1]]


def _leak(candidate: Candidate, leaks: Mapping[Candidate, float]) -> float:
    """Leak of a candidate; of one that the search has not tried that of the next smaller size of its method."""
    smaller = [each for each in leaks if each.method == candidate.method and each.size <= candidate.size]
    return leaks[max(smaller, key=lambda each: each.size)] if smaller else math.inf


def confirm_one(
    bench: Bench, candidate: Candidate, part: Part, people: People, clock: Clock, change: ColumnChange | None = None
) -> Confirmation:
    """One candidate confirmed; where it meets the policy and there is time, with other people held out once more."""
    reading = bench.read(candidate, part, change)
    clock.saw(candidate.method, part.people, reading.seconds)
    found = Confirmation(reading, reading.outlook.chance, _loses(bench, reading))
    if reading.verdict.outcome is not Ruling.MEETS or found.loses or found.chance < _OPEN:
        return found
    if clock.estimate(candidate.method, part.people) > clock.left:
        return found
    rng = bench.randomness.generator("again")
    held = part.outside.num_rows / (part.outside.num_rows + part.inside.num_rows)
    again = bench.read(candidate, people.part("again", held, rng), change)
    found.again.append(again)
    found.chance = chance_of(bench.told.policy, [each.outlook.ends for each in (reading, again)])
    return found


def _loses(bench: Bench, reading: Reading) -> bool:
    """Whether more use is lost than the policy lets go; without a target nothing is predicted."""
    most = bench.told.policy.keep.get("prediction-loss")
    return most is not None and bench.metric is not None and bench.metric.of != "table" and reading.loss > most
