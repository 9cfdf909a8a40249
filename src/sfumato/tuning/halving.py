"""The search: candidates on samples that grow, the better half of them on each [Jamieson and Talwalkar 2016].

Comparing what candidates gave on the same parts, so that chance is never recommended.

Confirming: the choice is made, attacked and judged once more, against people whom the search has never used.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from time import monotonic

import numpy as np

from sfumato.assess.report import Ruling
from sfumato.core.errors import SfumatoError
from sfumato.core.progress import tell
from sfumato.publish.suggest import ColumnChange
from sfumato.publish.trial import SURE, chance_of
from sfumato.tables.persons import RowsByPerson
from sfumato.tuning.candidates import Candidate, first_tried
from sfumato.tuning.trials import Part, Reading, Score, TrialRunner, draw_part

__all__ = [
    "STAGE",
    "Clock",
    "Confirmation",
    "Difference",
    "NoTime",
    "choose",
    "compare",
    "confirm",
    "confirm_one",
    "halve",
    "in_order",
    "least_beaten",
    "level_with",
    "narrow",
    "smoothed_leaks",
]

STAGE = "tuning"
_FEWEST = 4  # candidates that are tried on the next sample
_FAR = 2.0  # a risk significantly above a limit and twice the least of all is not tried on the whole table


@dataclass(eq=False, repr=False)
class Clock:
    """How much time is left, and how long a trial is likely to take."""

    begin: float
    time_limit: float
    reserve: float = 0.0  # seconds kept for what comes after the search
    seen: dict[str, tuple[int, float]] = field(default_factory=dict)  # of each method people and seconds of a trial

    @property
    def end(self) -> float:
        """When it is over, on the monotonic clock."""
        return self.begin + self.time_limit

    @property
    def left(self) -> float:
        """Seconds that are left for the search."""
        return self.end - self.reserve - monotonic()

    def saw(self, method: str, people: int, seconds: float) -> None:
        """Remember how long a trial took, and tell how far the whole is."""
        self.seen[method] = (people, seconds)
        tell(STAGE, min(0.99, (monotonic() - self.begin) / self.time_limit))

    def estimate(self, method: str, people: int) -> float:
        """Seconds that a trial of a method is likely to take; those of the slowest where it was never tried."""
        if not self.seen:
            return 0.0
        many, seconds = self.seen.get(method) or max(self.seen.values(), key=lambda each: each[1])
        return seconds * max(0.5, people / many)


def exceeds_significantly(reading: Reading) -> bool:
    """Whether a limit is exceeded beyond doubt, or a requirement is not met."""
    return reading.verdict.outcome is Ruling.DOES_NOT_MEET


class NoTime(SfumatoError):
    """A candidate was not tried because the time was short."""


def halve(
    bench: TrialRunner,
    candidates: Sequence[Candidate],
    parts: Sequence[Part],
    clock: Clock,
    refused: dict[Candidate, SfumatoError],
) -> list[Candidate]:
    """Candidates that are left after the last part; why others could not be tried is put into ``refused``.

    On samples the leak of everything is larger than on the whole, so that there it only counts which candidates are
    beaten by others in both use and leak; half of them go on, or `_FEWEST` where that is more. On the last part those
    that significantly exceed a limit are out.
    """
    left = first_tried(candidates)
    for place, part in enumerate(parts):
        tried = {each.candidate: each for each in bench.readings if each.part == part.name}
        waiting: list[Candidate] = []
        until = monotonic() + clock.left / (len(parts) - place)  # no part takes the time of those after it
        for candidate in left:
            if candidate in tried or candidate in refused:
                continue
            if 2 * candidate.size > part.people and place + 1 < len(parts):
                waiting.append(candidate)
            elif (tried or place) and monotonic() + clock.estimate(candidate.method, part.people) > until:
                refused[candidate] = NoTime("there was no time to try it")
            else:
                _try(bench, candidate, part, clock, tried, refused)
        if not tried:
            break
        if place + 1 < len(parts):
            kept = least_beaten(tried)[: max(_FEWEST, (len(tried) + 1) // 2)]
        else:
            kept = [each for each in in_order(tried) if not exceeds_significantly(tried[each])] or in_order(tried)[:1]
        left = kept + waiting
        for each in kept:
            refused.pop(each, None)
    return left


def narrow(
    bench: TrialRunner,
    candidates: Sequence[Candidate],
    part: Part,
    clock: Clock,
    refused: dict[Candidate, SfumatoError],
) -> list[Candidate]:
    """Candidates that were tried on everybody: of each method sizes are halved towards the smallest that may hold.

    Smaller sizes disclose more and are more useful; so above one that holds nothing is tried, nor below one that does
    not.
    """
    tried: dict[Candidate, Reading] = {}
    for method in dict.fromkeys(each.method for each in first_tried(candidates)):
        sizes = sorted(each for each in candidates if each.method == method)
        low, high = -1, len(sizes)
        at = min(range(len(sizes)), key=lambda place: sizes[place].promise)
        while high - low > 1:
            candidate = sizes[at]
            if candidate not in refused and tried and clock.estimate(method, part.people) > clock.left:
                refused[candidate] = NoTime("there was no time to try it")
            if candidate not in refused:
                _try(bench, candidate, part, clock, tried, refused)
            if candidate in refused:
                break
            low, high = (low, at) if _may_hold(tried[candidate]) else (at, high)
            at = (low + high) // 2
    return list(tried)


def _may_hold(reading: Reading) -> bool:
    return reading.outlook.leak <= 1.0 and not exceeds_significantly(reading)


def _try(
    bench: TrialRunner,
    candidate: Candidate,
    part: Part,
    clock: Clock,
    tried: dict[Candidate, Reading],
    refused: dict[Candidate, SfumatoError],
) -> None:
    """Read a candidate; where two sizes of a method are refused for one reason, no other is tried."""
    reasons = [str(refused[each]) for each in refused if each.method == candidate.method]
    again = next((each for each in reasons if reasons.count(each) > 1), None)
    if again is not None:
        refused[candidate] = SfumatoError(again)
        return
    try:
        tried[candidate] = bench.read(candidate, part)
    except SfumatoError as reason:
        refused[candidate] = reason
        return
    clock.saw(candidate.method, part.people, tried[candidate].seconds)


def least_beaten(tried: dict[Candidate, Reading]) -> list[Candidate]:
    """Candidates by how many others are both more useful and leak less, the least beaten and most useful first.

    Left out are those that significantly exceed a limit and leak far more than the tightest.
    """
    leaks = smoothed_leaks(tried)
    far = _FAR * min(leaks.values())

    def beaten(each: Candidate) -> int:
        use, leak = tried[each].use.value, leaks[each]
        return sum(tried[other].use.value > use and leaks[other] < leak for other in tried)

    near = [each for each in tried if not exceeds_significantly(tried[each]) or leaks[each] <= far]
    return sorted(near, key=lambda each: (beaten(each), -tried[each].use.value))


def in_order(tried: dict[Candidate, Reading]) -> list[Candidate]:
    """Candidates that seem to keep the limits, the most useful first, then the others, the nearest first."""
    leaks = smoothed_leaks(tried)

    def place(each: Candidate) -> tuple[bool, float]:
        keeps = leaks[each] <= 1.0 and not exceeds_significantly(tried[each])
        return (False, -tried[each].use.value) if keeps else (True, leaks[each])

    return sorted(tried, key=place)


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
        """Whether it is significant."""
        return self.low > 0.0 or self.high < 0.0


def compare(one: Mapping[str, Score], other: Mapping[str, Score]) -> Difference | None:
    """One use less another, row by row and part by part; None if they share no part.

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


def choose(bench: TrialRunner, left: Sequence[Candidate]) -> list[Candidate]:
    """Candidates in the order in which they are to be confirmed.

    Of those that keep the limits and the use, as far as the search can tell, the most useful one stands first, or one
    that is level with it and leaks less; of leaks that are alike the simplest method, then the largest size.
    """
    latest = bench.latest()
    known = [each for each in left if each in latest]
    leaks = smoothed_leaks({each: latest[each] for each in latest})
    keeps = [each for each in known if leaks[each] <= 1.0 and not exceeds_significantly(latest[each])]
    useful = [each for each in keeps if not _loses(bench, latest[each])] or keeps
    order = in_order({each: latest[each] for each in known})
    if not useful:
        return order
    top = max(useful, key=lambda each: latest[each].use.value)
    little = _LITTLE * bench.table.policy.keep.get("utility-loss", _USUAL_LOSS)
    level = level_with(top, useful, bench.uses, little)
    least = min(leaks[each] for each in level)
    alike = [each for each in level if leaks[each] <= least + _ALIKE]
    first = min(alike, key=lambda each: (each.rank[0], -each.size))
    return [first, *(each for each in order if each != first)]


def confirm(
    bench: TrialRunner,
    order: Sequence[Candidate],
    grid: Sequence[Candidate],
    part: Part,
    people: RowsByPerson,
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
    bench: TrialRunner,
    candidate: Candidate,
    part: Part,
    people: RowsByPerson,
    clock: Clock,
    change: ColumnChange | None = None,
) -> Confirmation:
    """One candidate confirmed; where it meets the policy and there is time, with another control group once more."""
    reading = bench.read(candidate, part, change)
    clock.saw(candidate.method, part.people, reading.seconds)
    found = Confirmation(reading, reading.outlook.chance, _loses(bench, reading))
    judged_once = part.outside is None  # shadow releases are many, and a proof needs none
    if judged_once or reading.verdict.outcome is not Ruling.MEETS or found.loses or found.chance < _OPEN:
        return found
    if clock.estimate(candidate.method, part.people) > clock.left:
        return found
    rng = bench.randomness.generator("again")
    assert part.outside is not None
    held = part.outside.num_rows / (part.outside.num_rows + part.inside.num_rows)
    again = bench.read(candidate, draw_part(people, "again", held, rng), change)
    found.again.append(again)
    found.chance = chance_of(bench.table.policy, [each.outlook.ends for each in (reading, again)])
    return found


def _loses(bench: TrialRunner, reading: Reading) -> bool:
    """Whether more use is lost than the policy lets go; without a target nothing is predicted."""
    most = bench.table.policy.keep.get("utility-loss")
    return most is not None and bench.metric is not None and bench.metric.of != "table" and reading.loss > most
