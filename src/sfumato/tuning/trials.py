"""Trying candidates: parts of the table that all of them share, and what each gave on every part."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.assess.findings import ColumnRisk, risk_by_column
from sfumato.assess.report import Verdict
from sfumato.assess.study import study_of
from sfumato.core.randomness import Randomness
from sfumato.engines.memory import run_in_memory
from sfumato.engines.outcome import Comparison
from sfumato.engines.plan import Plan
from sfumato.publish.policy import Policy
from sfumato.publish.suggest import ColumnChange
from sfumato.publish.trial import Outlook, try_plan
from sfumato.tables.persons import persons_of_table
from sfumato.tables.schema import Schema
from sfumato.tuning.candidates import Candidate
from sfumato.tuning.use import Metric, Score, choose_metric, guess_of

__all__ = ["Bench", "Part", "People", "Reading", "Told"]


@dataclass(frozen=True, eq=False, repr=False)
class Part:
    """Rows to sanitize and rows of other people; what is drawn on it is the same for every candidate."""

    name: str
    inside: pa.Table
    outside: pa.Table
    people: int  # inside
    seed: int


@dataclass(frozen=True, eq=False, repr=False)
class People:
    """Rows of a table by whom they are about."""

    table: pa.Table
    units: NDArray[np.int64]

    @classmethod
    def of(cls, table: pa.Table, schema: Schema) -> People:
        """Rows as a schema says whom they are about; each about a person of its own where it does not."""
        persons = persons_of_table(table, schema)
        return cls(table, np.arange(table.num_rows) if persons is None else np.unique(persons, return_inverse=True)[1])

    @property
    def count(self) -> int:
        """How many there are."""
        return int(self.units.max(initial=-1)) + 1

    def some(self, most: int, rng: np.random.Generator) -> People:
        """At most so many of them, drawn at random, with all their rows."""
        if self.count <= most:
            return self
        return self._of(np.isin(self.units, rng.permutation(self.count)[:most]))

    def parted(self, share: float, rng: np.random.Generator) -> tuple[People, People]:
        """Those who stay, and a share who are held out."""
        out = np.isin(self.units, rng.permutation(self.count)[: max(1, round(share * self.count))])
        return self._of(~out), self._of(out)

    def part(self, name: str, share: float, rng: np.random.Generator) -> Part:
        """A part with a share of them held out."""
        stay, out = self.parted(share, rng)
        return Part(name, stay.table, out.table, stay.count, int(rng.integers(2**31)))

    def _of(self, kept: NDArray[np.bool_]) -> People:
        rows = self.table.take(pa.array(np.flatnonzero(kept)))
        return People(rows, np.unique(self.units[kept], return_inverse=True)[1])


@dataclass(frozen=True, eq=False, repr=False)
class Told:
    """What was told of the table and holds for every candidate."""

    schema: Schema
    policy: Policy
    found: bool  # whether the schema was proposed, and its rules found
    level: str | int | None = None
    strata: str | None = None
    no_rules: bool = False
    rare: Any = None
    k: int | None = None
    known: tuple[str, ...] = ()  # columns that an outsider knows

    def plan(self, candidate: Candidate, part: Part, change: ColumnChange | None = None) -> Plan:
        """Plan of a run of a candidate on a part; one column may be changed."""
        schema = self.schema if change is None else change.applied(self.schema)
        return Plan(
            candidate.mechanism(self.k),
            schema,
            self.level,
            self.strata,
            part.outside,
            Randomness(part.seed),
            self.no_rules,
            self.found,
            self.rare,
        )


@dataclass(frozen=True, eq=False, repr=False)
class Reading:
    """What one candidate gave on one part."""

    candidate: Candidate
    part: str
    people: int
    use: Score
    original: Score
    verdict: Verdict
    outlook: Outlook
    columns: tuple[ColumnRisk, ...]
    seconds: float
    change: ColumnChange | None = None

    @property
    def loss(self) -> float:
        """Use that is lost beside the original; below 0 by chance alone."""
        return self.original.value - self.use.value


@dataclass(eq=False, repr=False)
class Bench:
    """Tries candidates on parts; the original is scored once on each."""

    told: Told
    metric_name: str | None
    randomness: Randomness
    metric: Metric | None = None
    guess: float = 0.0
    readings: list[Reading] = field(default_factory=list)
    uses: dict[Candidate, dict[str, Score]] = field(default_factory=dict)
    originals: dict[str, Score] = field(default_factory=dict)
    watch: Callable[[Reading], None] | None = None  # is given every reading that is kept

    def read(self, candidate: Candidate, part: Part, change: ColumnChange | None = None) -> Reading:
        """Sanitize, attack, judge and score; of a run with a column changed nothing is kept here."""
        begin = perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what is dropped or pooled is said once, by the run itself
            tried = try_plan(part.inside, self.told.plan(candidate, part, change), self.told.policy, self.told.known)
        if self.metric is None:
            self.metric, self.guess = choose_metric(tried.study, self.metric_name), guess_of(tried.study)
        if part.name not in self.originals:
            self.originals[part.name] = self.metric.original(tried.study)
        reading = Reading(
            candidate,
            part.name,
            part.people,
            self.metric.released(tried.study),
            self.originals[part.name],
            tried.verdict,
            tried.outlook,
            risk_by_column(tried.study, tried.report.findings),
            perf_counter() - begin,
            change,
        )
        if change is None:
            self.readings.append(reading)
            self.uses.setdefault(candidate, {})[part.name] = reading.use
            if self.watch is not None:
                self.watch(reading)
        return reading

    def score(self, candidate: Candidate, part: Part) -> None:
        """Use of a candidate on one more part, without any attack."""
        assert self.metric is not None
        plan = self.told.plan(candidate, part)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            outcome = run_in_memory(part.inside, plan)
        compared = outcome.comparison
        assert isinstance(compared, Comparison)
        study = study_of(
            compared.original,
            compared.released,
            compared.codec,
            facts=outcome.facts,
            records=compared.records,
            holdout=compared.outside,
            rng=plan.randomness.generator("assess"),
        )
        if part.name not in self.originals:
            self.originals[part.name] = self.metric.original(study)
        self.uses.setdefault(candidate, {})[part.name] = self.metric.released(study)

    def latest(self) -> dict[Candidate, Reading]:
        """Of every candidate the reading on the largest part that it was tried on."""
        best: dict[Candidate, Reading] = {}
        for reading in self.readings:
            known = best.get(reading.candidate)
            if known is None or reading.people >= known.people:
                best[reading.candidate] = reading
        return best
