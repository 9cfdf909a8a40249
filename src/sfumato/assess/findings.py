"""A finding: one measured number with all that a reader needs to understand it, and how far an attack gets.

Confidence intervals come from redraws. A distance between two tables is the norm of a difference D. Its redraws D*
lie around D by chance alone, and by the triangle inequality the true distance is within the 95 % quantile of
norm(D* - D) of the measured one. Such an interval holds the measured value and reaches 0 for a verbatim copy, where the
redraws of the distance itself would not.

The excess of an attack is its success on members minus its success on the control group; without a control group it is
the success minus the baseline. A column contributes to the risk if its values are inferred, if it makes rows unique, or
if it releases rare values.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.study import CATEGORIES, ColumnPair, Study, sample, share_alone
from sfumato.core.documents import plain

__all__ = [
    "CONFIDENCE",
    "FALSE_ALARMS",
    "FEW",
    "ColumnRisk",
    "Direction",
    "Family",
    "Finding",
    "Gain",
    "Tries",
    "clustered_interval",
    "column_gains",
    "difference_interval",
    "distance_interval",
    "effective_tries",
    "exact_interval",
    "excess_interval",
    "gains",
    "is_rate",
    "mean_cluster",
    "median_interval",
    "not_run",
    "privacy_first",
    "rank",
    "redraw_interval",
    "risk_by_column",
    "wilson",
]

CONFIDENCE = 0.95
_Z = 1.959963984540054
_FEW = 30  # tries below which the limits of a difference are those of its two ends


@dataclass(frozen=True)
class Tries:
    """Successes out of tries that are independent of one another, from which limits of any confidence follow."""

    hits: float
    of: float  # fewer than were made where several hang on the same thing. What an attack gave up on was tried
    times: float = 1.0  # how many times as often it would be, were all of the table attacked and not a part

    @property
    def share(self) -> float:
        """Successes a try."""
        return self.hits / self.of

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's interval of the share, 95 %."""
        return wilson(self.hits, self.of)

    def __add__(self, other: Tries) -> Tries:
        return Tries(self.hits + other.hits, self.of + other.of, max(self.times, other.times))


def distance_interval(value: float, deviations: NDArray[np.float64], low: float, high: float) -> tuple[float, float]:
    """Interval around a distance from the norms of its redraws' deviations.

    Examples
    --------
    >>> distance_interval(0.01, np.array([0.02, 0.02]), 0.0, 1.0)
    (0.0, 0.03)
    """
    reach = float(np.quantile(deviations, CONFIDENCE))
    return max(low, value - reach), min(high, value + reach)


def redraw_interval(value: float, redraws: NDArray[np.float64]) -> tuple[float, float]:
    """Middle 95 % of redraws, widened to hold the value itself.

    Examples
    --------
    >>> redraw_interval(1.0, np.array([0.5, 0.5]))
    (0.5, 1.0)
    """
    low, high = np.quantile(redraws, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return min(float(low), value), max(float(high), value)


def wilson(hits: float, tries: float) -> tuple[float, float]:
    """Wilson's interval for a share.

    Examples
    --------
    >>> low, high = wilson(0, 100)
    >>> low, round(high, 3)
    (0.0, 0.037)
    """
    share, square = hits / tries, _Z * _Z
    middle = (share + square / (2 * tries)) / (1 + square / tries)
    reach = _Z / (1 + square / tries) * np.sqrt(share * (1 - share) / tries + square / (4 * tries * tries))
    low = float(middle - reach) if hits else 0.0
    return low, float(middle + reach) if hits < tries else 1.0


def mean_cluster(places: NDArray[np.int64]) -> float:
    """Count how many tries hang on the same thing: the mean over tries of how many have the same place.

    Examples
    --------
    >>> mean_cluster(np.array([7, 7, 7])), mean_cluster(np.array([1, 2, 3]))
    (3.0, 1.0)
    """
    counts = np.unique(places, return_counts=True)[1] if len(places) else np.ones(1, dtype=np.int64)
    return float((counts**2).sum() / counts.sum())


def clustered_interval(share: float, tries: int, cluster: float) -> tuple[float, float]:
    """Wilson's interval of a share, as if there were one try for all those that hang on the same thing.

    Examples
    --------
    >>> low, high = clustered_interval(1.0, 1300, 1300.0)
    >>> round(low, 2), high
    (0.21, 1.0)
    """
    count = effective_tries(tries, cluster)
    low, high = wilson(share * count, count)
    return min(low, share), max(high, share)


def effective_tries(tries: int, cluster: float) -> int:
    """Effective number of attempts if several depend on the same row."""
    return max(1, round(tries / cluster))


def exact_interval(hits: float, tries: float, confidence: float) -> tuple[float, float]:
    """Limits of a share that hold it with at least this confidence, by Clopper and Pearson.

    Examples
    --------
    >>> low, high = exact_interval(0, 100, 0.95)
    >>> low, round(high, 4)
    (0.0, 0.0362)
    """
    from scipy.special import betaincinv

    tail = (1.0 - confidence) / 2
    low = float(betaincinv(hits, tries - hits + 1, tail)) if hits > 0 else 0.0
    high = float(betaincinv(hits + 1, tries - hits, 1.0 - tail)) if hits < tries else 1.0
    return low, high


def difference_interval(inside: Tries, outside: Tries, confidence: float) -> tuple[float, float]:
    """Limits of the difference of two shares that hold it with at least this confidence.

    With 30 tries or more on both sides the difference is off by at most the root of the sum of squares of what each
    share is off, for which the farther of its exact limits is taken. The usual way, the nearer limit on the side that
    matters (Newcombe 1998, method 10), errs many times as often as it says where shares are near 0 or 1 and confidence
    is high. With fewer tries the ends are those of both shares, each exact at half the error, which always holds.
    Both were checked by adding up the probabilities of all outcomes.

    Examples
    --------
    >>> low, high = difference_interval(Tries(30, 100), Tries(2, 100), 0.95)
    >>> round(low, 3), round(high, 3)
    (0.168, 0.392)
    """
    few = min(inside.of, outside.of) < _FEW
    sure = (1.0 + confidence) / 2 if few else confidence
    ends = [exact_interval(min(side.hits, side.of), side.of, sure) for side in (inside, outside)]
    (in_low, in_high), (out_low, out_high) = (
        (min(1.0, low * side.times), min(1.0, high * side.times))
        for side, (low, high) in zip((inside, outside), ends, strict=True)
    )
    if few:
        return in_low - out_high, in_high - out_low
    first, second = (min(1.0, side.times * side.hits / side.of) for side in (inside, outside))
    reach = float(np.hypot(max(first - in_low, in_high - first), max(second - out_low, out_high - second)))
    return first - second - reach, first - second + reach


def median_interval(values: NDArray[np.float64]) -> tuple[float, float]:
    """The two order statistics between which the median lies.

    Examples
    --------
    >>> median_interval(np.arange(101.0))
    (40.0, 60.0)
    """
    ordered, n = np.sort(values), len(values)
    reach = _Z * np.sqrt(n) / 2
    low = int(np.clip(np.floor(n / 2 - reach), 0, n - 1))
    high = int(np.clip(np.ceil(n / 2 + reach) - 1, 0, n - 1))
    return float(ordered[low]), float(ordered[high])


FALSE_ALARMS = 0.001
"""How often any attack of a report is called a success on a release of unrelated data, at most."""
# a group hides which of its members a person is, not where they are, and who found it picks one of them as its size
# says; the trees of a chain stay with the owner
_CONCEDED = ("group-linkage", "expected-reidentification", "membership-original-trees")


class Family(StrEnum):
    """What a finding speaks of."""

    PRIVACY = "privacy"
    UTILITY = "utility"
    ATTACK = "attack"


class Direction(StrEnum):
    """Which way is good."""

    HIGHER = "higher-is-better"
    LOWER = "lower-is-better"


@dataclass(frozen=True)
class Finding:
    """One measured number."""

    name: str
    family: Family
    value: float | None  # None if it was not run
    direction: Direction
    range: tuple[float | None, float | None]  # worst and best possible value in numeric order; None for an open end
    meaning: str  # one sentence that a steward understands
    interval: tuple[float, float] | None = None  # where the number may lie, 95 %; None for an exact count
    # what the number would be if nothing were wrong (for utility); for attacks by guessing, or, where an interval comes
    # with it, from a release of unrelated data
    baseline: float | None = None
    control: float | None = None  # the same number on rows that were held out
    reason: str | None = None  # why it was not run
    public: bool = True  # whether it may appear in the public report
    unit: str = ""  # how a page writes the number: "share" as a percentage, "percent" and "count" as they are
    control_interval: tuple[float, float] | None = None  # where the control may lie, 95 %
    attempts: int | None = None  # how many people were attacked, or rows tested, for it
    # where the baseline of an attack may lie, 95 %; None if it is computed
    baseline_interval: tuple[float, float] | None = None
    # inside, outside: of an attack: what value and control rest on
    inside: Tries | None = None
    outside: Tries | None = None
    chance: float | None = None  # of predictions: what always naming the commonest class, or the mean, gets
    # false where it was not run because such a table has nothing that it could attack; nothing is unknown then
    applies: bool = True
    # over shadow releases: where the excess or score lies for people like these, 95 %
    people_interval: tuple[float, float] | None = None

    @property
    def status(self) -> str:
        """Measured, or not run."""
        return "measured" if self.value is not None else "not-run"

    @property
    def excess(self) -> float | None:
        """Attack success minus the control, or minus the baseline without a control; None if there is neither.

        Only attacks whose success is a rate between 0 and 1 have an excess.
        """
        against = self.control if self.control is not None else self.baseline
        if self.value is None or against is None or not is_rate(self):
            return None
        return self.value - against

    def to_json(self) -> dict[str, Any]:
        """The finding as a JSON object; a number that is not finite is null."""
        document: dict[str, object] = {name: _finite(value) for name, value in plain(self).items()}
        return document | {"excess": _finite(self.excess), "status": self.status}


def _finite(value: Any) -> Any:
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def privacy_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Findings family by family, each in the order in which they came."""
    order = list(Family)
    return tuple(sorted(findings, key=lambda finding: order.index(finding.family)))


def not_run(
    name: str,
    family: Family,
    direction: Direction,
    meaning: str,
    reason: str,
    *,
    public: bool = True,
    applies: bool = True,
) -> Finding:
    """A finding that could not be measured, and why; never a zero."""
    bounds = (None, None)
    return Finding(name, family, None, direction, bounds, meaning, reason=reason, public=public, applies=applies)


@dataclass(frozen=True)
class Gain:
    """What an attack gains on people of the table."""

    finding: Finding  # with a value
    against: float  # the control, or the baseline where nobody was held out
    controlled: bool  # whether it is the control
    excess: float  # value less ``against``
    # whether the excess is significant: the limits of a difference of two shares from the limits of each (Newcombe
    # 1998, method 10), so wide that of all attacks together `FALSE_ALARMS` are beyond by chance. A baseline that was
    # measured comes from rows other than the released ones, which were drawn, too: it takes twice the variance, as much
    # again for the rows as for the people
    certain: bool
    conceded: bool  # whether it is conceded by every certificate, or needs what stays with the owner


def excess_interval(finding: Finding) -> tuple[float, float] | None:
    """95 % confidence interval of an excess; None if nothing is known of how the value varies.

    With the counts of both groups it is `difference_interval`. Otherwise the limits of the value and of what it is
    compared with are combined (Newcombe 1998, method 10); a computed baseline has no error of its own.
    """
    if finding.value is None or finding.excess is None:
        return None
    if finding.inside is not None and finding.outside is not None and finding.control is not None:
        return difference_interval(finding.inside, finding.outside, CONFIDENCE)
    if finding.interval is None:
        return None
    against = finding.value - finding.excess
    limits = finding.control_interval if finding.control is not None else finding.baseline_interval
    (low, high), (less, more) = finding.interval, limits or (against, against)
    below, above = math.hypot(finding.value - low, more - against), math.hypot(high - finding.value, against - less)
    return finding.excess - below, finding.excess + above


def is_rate(finding: Finding) -> bool:
    """Whether a finding says how often, or how well, an attack succeeded: between 0 and 1, and less is better."""
    low, high = finding.range
    if finding.value is None or low is None or high is None or low < 0.0 or high > 1.0:
        return False
    return finding.family is Family.ATTACK and finding.direction is Direction.LOWER


def gains(findings: Iterable[Finding]) -> tuple[Gain, ...]:
    """Rank the attacks that were run, the largest gain first and conceded ones last; single columns are left out.

    Examples
    --------
    >>> from sfumato.assess.algebra import Number, success
    >>> values = success(Tries(30, 100), guess=0.01, control=Tries(2, 100))
    >>> found = [Number(name).finding(Family.ATTACK, values) for name in ("a", "b")]
    >>> [(round(gain.excess, 2), gain.certain) for gain in gains(found)]
    [(0.28, True), (0.28, True)]
    """
    return _ranked([finding for finding in findings if "/" not in finding.name and is_rate(finding)])


def column_gains(findings: Iterable[Finding]) -> tuple[Gain, ...]:
    """Rank the attacks on single columns that were run, the largest gain first."""
    return _ranked([finding for finding in findings if "/" in finding.name and is_rate(finding)])


def _ranked(rates: Sequence[Finding]) -> tuple[Gain, ...]:
    # limits so much wider that as many one-sided comparisons are wrong with `FALSE_ALARMS` at most
    normal = NormalDist()
    width = normal.inv_cdf(1 - FALSE_ALARMS / max(len(rates), 1)) / normal.inv_cdf((1 + CONFIDENCE) / 2)
    found = (_gain(finding, width) for finding in sorted(rates, key=rank))
    return tuple(gain for gain in found if gain is not None)


def rank(finding: Finding) -> tuple[bool, float]:
    """Sort by this key to have the largest gain first, and last what every certificate concedes."""
    against = finding.control if finding.control is not None else finding.baseline
    return _is_conceded(finding), (against or 0.0) - (finding.value or 0.0)


def _is_conceded(finding: Finding) -> bool:
    return finding.name.startswith(_CONCEDED)


def _gain(finding: Finding, width: float) -> Gain | None:
    value, controlled = finding.value, finding.control is not None
    against = finding.control if controlled else finding.baseline
    limits = finding.control_interval if controlled else finding.baseline_interval
    if value is None or against is None:
        return None
    below = value - finding.interval[0] if finding.interval is not None else 0.0
    above = limits[1] - against if limits is not None else 0.0
    excess = value - against
    drawn = 1 if controlled or limits is None else 2  # rows and people, or people alone
    certain = excess > width * math.sqrt(drawn) * math.hypot(below, above)
    return Gain(finding, against, controlled, excess, certain, _is_conceded(finding))


FEW = 10
"""A value is rare if fewer people have it."""
_SINGLE_COLUMN = "attribute-inference-all-columns/"
_PARTS = 10  # numbers are known to the tenth of the table that they lie in
_MOST_ROWS = 200_000
_SPREAD, _MIX = np.uint64(0x9E37_79B9_7F4A_7C15), np.uint64(0xBF58_476D_1CE4_E5B9)


@dataclass(frozen=True)
class ColumnRisk:
    """What one column adds to the risk of people of the table; for the owner."""

    column: str
    gain: float | None  # share of people whose cell is read, beyond the control group or chance; None where not tried
    certain: bool  # whether that is significant
    alone: float  # share of people who stand alone with coarse values, and would not without this column
    rare: int  # people who hold a category or an outermost number that fewer than `FEW` hold and that is released


def risk_by_column(study: Study, findings: Sequence[Finding]) -> tuple[ColumnRisk, ...]:
    """Columns from the one that carries most of the risk to the one that carries least."""
    if not len(study.released) or not study.pairs:
        return ()
    read = {
        gain.finding.name.removeprefix(_SINGLE_COLUMN): gain
        for gain in column_gains(findings)
        if gain.finding.name.startswith(_SINGLE_COLUMN)
    }
    found = []
    for pair, alone in zip(study.pairs, _alone_by(study), strict=True):
        gain = read.get(pair.name)
        excess, certain = (None, False) if gain is None else (gain.excess, gain.certain)
        found.append(ColumnRisk(pair.name, excess, certain, alone, _rare_shown(pair)))
    weights = {risk.column: (risk.gain or 0.0 if risk.certain else 0.0) + risk.alone for risk in found}
    return tuple(sorted(found, key=lambda risk: (weights[risk.column], risk.rare), reverse=True))


def _alone_by(study: Study) -> list[float]:
    """For each column the share of people who are alone with all columns and not without it."""
    rows = sample(len(study.original), _MOST_ROWS, study.generator("risk-by-column"))
    marks = [
        _scattered(pair.original.take(rows).codes(pair.cuts(_PARTS)), place) for place, pair in enumerate(study.pairs)
    ]
    keys = np.asarray(np.sum(marks, axis=0, dtype=np.uint64))  # a sum, so that a column can be taken out again
    alone = share_alone(keys)
    return [max(0.0, alone - share_alone(np.asarray(keys - mark))) for mark in marks]


def _scattered(codes: NDArray[np.int64], place: int) -> NDArray[np.uint64]:
    """Codes of a column spread over all numbers, another way for every column."""
    offset = np.full(1, place + 1, dtype=np.uint64) * _MIX  # an array wraps around without a warning
    mixed = (codes.astype(np.uint64) + np.uint64(1)) * _SPREAD + offset
    mixed = (mixed ^ (mixed >> np.uint64(30))) * _MIX
    return np.asarray(mixed ^ (mixed >> np.uint64(27))) * _SPREAD


def _rare_shown(pair: ColumnPair) -> int:
    values, frequencies = np.unique(pair.original.present, return_counts=True)
    if pair.field.kind not in CATEGORIES:  # of numbers the outermost, as far as fewer people lie beyond
        below = np.cumsum(frequencies)
        outermost = (below < FEW) | (below[-1:] - below + frequencies < FEW)
        values, frequencies = values[outermost], frequencies[outermost]
    few = frequencies < FEW
    return int(frequencies[few][np.isin(values[few], pair.released.present)].sum())
