"""The search: candidates on samples that grow, the better half of them on each [Jamieson and Talwalkar 2016]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from time import monotonic

from sfumato.assess.verdict import Ruling
from sfumato.core.errors import SfumatoError
from sfumato.core.progress import tell
from sfumato.tuning.candidates import Candidate, first_tried
from sfumato.tuning.compare import smoothed_leaks
from sfumato.tuning.trials import Bench, Part, Reading

__all__ = ["STAGE", "Clock", "NoTime", "halve", "in_order", "least_beaten", "surely_exceeds"]

STAGE = "tuning"
_FEWEST = 4  # candidates that go on to the next sample
_FAR = 2.0  # a leak that surely exceeds a limit and is so many times the least of all will not do on the whole either


@dataclass(eq=False, repr=False)
class Clock:
    """How much time is left, and how long a trial is likely to take."""

    begin: float
    budget: float
    reserve: float = 0.0  # seconds kept for what comes after the search
    seen: dict[str, tuple[int, float]] = field(default_factory=dict)  # of each method people and seconds of a trial

    @property
    def end(self) -> float:
        """When it is over, on the monotonic clock."""
        return self.begin + self.budget

    @property
    def left(self) -> float:
        """Seconds that are left for the search."""
        return self.end - self.reserve - monotonic()

    def saw(self, method: str, people: int, seconds: float) -> None:
        """Remember how long a trial took, and tell how far the whole is."""
        self.seen[method] = (people, seconds)
        tell(STAGE, min(0.99, (monotonic() - self.begin) / self.budget))

    def estimate(self, method: str, people: int) -> float:
        """Seconds that a trial of a method is likely to take; those of the slowest where it was never tried."""
        if not self.seen:
            return 0.0
        many, seconds = self.seen.get(method) or max(self.seen.values(), key=lambda each: each[1])
        return seconds * max(0.5, people / many)


def surely_exceeds(reading: Reading) -> bool:
    """Whether a limit is exceeded beyond doubt, or a requirement is not met."""
    return reading.verdict.outcome is Ruling.DOES_NOT_MEET


class NoTime(SfumatoError):
    """A candidate was not tried because the time was short."""


def halve(
    bench: Bench,
    candidates: Sequence[Candidate],
    parts: Sequence[Part],
    clock: Clock,
    refused: dict[Candidate, SfumatoError],
) -> list[Candidate]:
    """Candidates that are left after the last part; why others could not be tried is put into ``refused``.

    On samples the leak of everything is larger than on the whole, so that there it only counts which candidates are
    beaten by others in both use and leak; half of them go on, or `_FEWEST` where that is more. On the last part those
    that surely exceed a limit are out.
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
            kept = [each for each in in_order(tried) if not surely_exceeds(tried[each])] or in_order(tried)[:1]
        left = kept + waiting
        for each in kept:
            refused.pop(each, None)
    return left


def _try(
    bench: Bench,
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

    Left out are those that surely exceed a limit and leak far more than the tightest.
    """
    leaks = smoothed_leaks(tried)
    far = _FAR * min(leaks.values())

    def beaten(each: Candidate) -> int:
        use, leak = tried[each].use.value, leaks[each]
        return sum(tried[other].use.value > use and leaks[other] < leak for other in tried)

    near = [each for each in tried if not surely_exceeds(tried[each]) or leaks[each] <= far]
    return sorted(near, key=lambda each: (beaten(each), -tried[each].use.value))


def in_order(tried: dict[Candidate, Reading]) -> list[Candidate]:
    """Candidates that seem to keep the limits, the most useful first, then the others, the nearest first."""
    leaks = smoothed_leaks(tried)

    def place(each: Candidate) -> tuple[bool, float]:
        keeps = leaks[each] <= 1.0 and not surely_exceeds(tried[each])
        return (False, -tried[each].use.value) if keeps else (True, leaks[each])

    return sorted(tried, key=place)
