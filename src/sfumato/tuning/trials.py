"""Trying group sizes: the same splits for every size, and whatever does not depend on the size done once.

Of each size it is told how far an intruder gets: the interval metric of the paper, and links to released rows.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from sfumato.assess.attacks.linkage import linkage_tries
from sfumato.assess.intervals import Tries
from sfumato.assess.risk.interval import counterparts, interval_privacy
from sfumato.assess.study import Study, read_columns
from sfumato.core.facts import Chained
from sfumato.core.records import Records
from sfumato.mechanisms.protocol import Mechanism, Sanitized
from sfumato.tables.codec import Codec
from sfumato.tuning.metrics import Metric, Score

__all__ = ["Reading", "Split", "Trial", "try_size"]


def interval_of(study: Study) -> float | None:
    """Mean of the 95 % interval metric over the columns of numbers; None where there is none.

    Each record is compared with a row drawn from its own group, the paper's reading [KCG12, "Metrics"].
    """
    workings = study.workings
    columns = [pair for pair in study.pairs if pair.is_number]
    if not columns or workings is None or workings.labels is None or workings.drawn_from is None:
        return None
    sides = [
        np.column_stack([np.where(cells.absent, np.nan, cells.values) for cells in side])
        for side in ([pair.original for pair in columns], [pair.released for pair in columns])
    ]
    partners = counterparts(workings.labels, workings.drawn_from, study.generator("counterparts"))
    return float(interval_privacy(sides[0], sides[1], partners=partners).mean())


def linkage_of(study: Study) -> tuple[Tries, Tries]:
    """People of the original who are linked to a released row, and those of the people held out."""
    attack, control = linkage_tries(study)
    assert control is not None
    return attack, control


@dataclass(frozen=True, eq=False, repr=False)
class Split:
    """One way to hold rows out. Encoding and what is read of the original are shared by all sizes."""

    codec: Codec
    records: Records
    study: Study


@dataclass(frozen=True)
class Reading:
    """What one group size gave on one split."""

    utility: Score
    interval: float | None
    linkage: Tries
    control: Tries
    groups: int
    seconds_sanitize: float
    seconds_measure: float


@dataclass(frozen=True)
class Trial:
    """A group size and what it gave on every split.

    ``share`` is test rows to training rows, by which the spread over overlapping splits is corrected.
    """

    size: int
    readings: tuple[Reading, ...]
    share: float

    @property
    def utility(self) -> float:
        """The mean over the splits."""
        return float(np.mean([reading.utility.value for reading in self.readings]))

    @property
    def spread(self) -> float:
        """The standard deviation over the splits; 0 for a single one."""
        values = [reading.utility.value for reading in self.readings]
        return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0

    @property
    def utility_interval(self) -> tuple[float, float] | None:
        """Where the mean may lie, 95 %; None for a single split.

        The splits share rows, so the variance of their mean is s^2 (1/r + test/train), not s^2/r [Nadeau and Bengio
        2003].
        """
        from scipy.stats import t

        count = len(self.readings)
        if count < 2:
            return None
        reach = float(t.ppf(0.975, count - 1)) * self.spread * np.sqrt(1 / count + self.share)
        return self.utility - float(reach), min(1.0, self.utility + float(reach))  # of no metric there is more than 1

    @property
    def smallest(self) -> float | None:
        """The mean utility on the smallest class, where there are classes."""
        values = [reading.utility.smallest for reading in self.readings if reading.utility.smallest is not None]
        return float(np.mean(values)) if values else None

    @property
    def interval(self) -> float | None:
        """The mean of the 95 % interval metric, where there are numbers."""
        values = [reading.interval for reading in self.readings if reading.interval is not None]
        return float(np.mean(values)) if values else None

    @property
    def linkage(self) -> Tries:
        """Successful links of all splits together."""
        return _pool([reading.linkage for reading in self.readings])

    @property
    def control(self) -> Tries:
        """The same for people held out."""
        return _pool([reading.control for reading in self.readings])

    @property
    def linkage_interval(self) -> tuple[float, float]:
        """Where the share of successful links may lie, 95 %."""
        return self.linkage.interval

    @property
    def seconds(self) -> float:
        """Time of one sanitize-and-evaluate pass, the mean over the splits."""
        return float(np.mean([reading.seconds_sanitize + reading.seconds_measure for reading in self.readings]))


def _pool(tries: Sequence[Tries]) -> Tries:
    return Tries(sum(each.hits for each in tries), sum(each.of for each in tries))


def try_size(
    size: int,
    splits: Sequence[Split],
    make: Callable[[int], Mechanism],
    metric: Metric,
    rngs: Sequence[np.random.Generator],
) -> Trial:
    """What groups of that size give on every split."""
    mechanism = make(size)
    readings = tuple(_read(split, mechanism, metric, rng) for split, rng in zip(splits, rngs, strict=True))
    first = splits[0].study
    share = 0.0 if first.holdout is None else len(first.holdout) / len(first.original)
    return Trial(size, readings, share)


def _read(split: Split, mechanism: Mechanism, metric: Metric, rng: np.random.Generator) -> Reading:
    begin = perf_counter()
    sanitized = mechanism.sanitize(split.records, rng=rng)
    study = _study_with(split, sanitized)
    made = perf_counter()
    utility = metric.run(study)
    interval = interval_of(study)
    linkage, control = linkage_of(study)
    return Reading(utility, interval, linkage, control, _groups(sanitized), made - begin, perf_counter() - made)


def _groups(sanitized: Sanitized) -> int:
    """Groups that rows were made from, or leaves of all columns of a chain."""
    labels = None if sanitized.workings is None else sanitized.workings.labels
    if labels is not None:
        return int(labels.max()) + 1
    return sum(sum(fact.leaves) for fact in sanitized.facts if isinstance(fact, Chained))


def _study_with(split: Split, sanitized: Sanitized) -> Study:
    """A split's study with the released rows as a recipient would read them."""
    table = split.codec.decode(sanitized.records.values)
    cells = read_columns(table, split.codec)
    pairs = tuple(
        dataclasses.replace(pair, released=column) for pair, column in zip(split.study.pairs, cells, strict=True)
    )
    released, original = split.codec.encode(table, unseen="mean").values, split.study.original
    kept = None if sanitized.workings is None else sanitized.workings.kept
    if kept is not None:
        original = original[kept]
        pairs = tuple(dataclasses.replace(pair, original=pair.original.take(kept)) for pair in pairs)
    return dataclasses.replace(
        split.study,
        pairs=pairs,
        original=original,
        released=released,
        facts=sanitized.facts,
        workings=sanitized.workings,
    )
