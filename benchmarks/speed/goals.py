"""What the measured rows say about the goals set for the compact grouping: met, missed, or not measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.speed.cases import ALPHAS, LEVEL_TABLES, NORMAL, REFERENCE_GOALS, REFERENCE_KS, Case, reference_case
from benchmarks.speed.measure import Row
from benchmarks.speed.peers import METHODS

__all__ = ["Results", "Verdict", "judge"]

SKETCH = {100_000: 0.925, 300_000: 0.940}  # loss of the sketch's 8 rounds against exact MDAV, k = 5
FREE_LOAD, FREE_WALL = 1.5, 1.1  # of a machine on which threads can be judged: load before, wall against CPU
AGAINST_MDAV = {  # (n, k): the highest loss against exact MDAV
    (10_000, 5): 0.93, (50_000, 5): 0.93, (100_000, 5): 0.93, (300_000, 5): 0.95,
    (10_000, 25): 0.85, (50_000, 25): 0.85, (100_000, 25): 0.85,
}  # fmt: skip


class Results:
    """Rows by case and method."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows = list(rows)
        self._found = {(row.run.case, row.method, row.threads): row for row in self.rows}

    def get(self, case: Case, method: str, threads: int = 1) -> Row | None:
        """Give the row of a run if it has numbers."""
        row = self._found.get((case, method, threads))
        return None if row is None or np.isnan(row.cpu_s) else row

    def ratio(self, case: Case, method: str, to: str, field: str, *, threads: int = 1) -> float:
        """Divide a number of one method by that of another on the same case; nan where either is not there."""
        ours, theirs = self.get(case, method, threads), self.get(case, to)
        if ours is None or theirs is None:
            return float("nan")
        above, below = float(getattr(ours, field)), float(getattr(theirs, field))
        return above / below if below > 0.0 else float("nan")

    def exponent(self, method: str, small: int, large: int) -> float:
        """Give b of CPU seconds ~ n^b between two sizes of the mixture, d = 10, k = 5."""
        first, last = (self.get(Case("mixture", n, 10, 5), method) for n in (small, large))
        if first is None or last is None:
            return float("nan")
        return float(np.log(last.cpu_s / first.cpu_s) / np.log(large / small))


@dataclass(frozen=True)
class Verdict:
    """One goal, what was measured, and whether it is met; None is not measured, or not to be judged."""

    subject: str
    goal: str
    measured: str
    met: bool | None

    @property
    def word(self) -> str:
        """The verdict in words."""
        unknown = "not judged" if self.measured else "not measured"
        return unknown if self.met is None else "met" if self.met else "MISSED"


def judge(results: Results) -> list[Verdict]:
    """Judge every goal."""
    return [*_million(results), *_against_mdav(results), *_references(results), *_levels(results), *_wide(results),
            *_threads(results), *_guarantee(results)]  # fmt: skip


def _at_most(subject: str, goal: float, found: float, show: Callable[[float], str] = "{:.3f}".format) -> Verdict:
    missing = bool(np.isnan(found))
    return Verdict(subject, f"<= {show(goal)}", "" if missing else show(found), None if missing else found <= goal)


def _at_least(subject: str, goal: float, found: float, show: Callable[[float], str] = "{:.3f}".format) -> Verdict:
    missing = bool(np.isnan(found))
    return Verdict(subject, f">= {show(goal)}", "" if missing else show(found), None if missing else found >= goal)


def _million(results: Results) -> Iterator[Verdict]:
    case = Case("mixture", 1_000_000, 10, 5)
    for method, goal in (("compact", 60_000), ("compact fast", 170_000)):
        row = results.get(case, method)
        speed = float("nan") if row is None else case.n / row.cpu_s
        yield _at_least(
            f"mixture 1M, d = 10, k = 5: rows per CPU second, {_effort(method)}", goal, speed, "{:,.0f}".format
        )
    for n, sketch in SKETCH.items():
        loss = results.ratio(Case("mixture", n, 10, 5), "compact", "mdav", "loss")
        yield _at_most(f"quality of the sketch's 8 rounds: loss / MDAV, default, {n:,} rows", sketch, loss)
    yardstick = results.ratio(case, "compact", "kdtree", "cpu_s")
    yield _at_most("mixture 1M: CPU / KDTree yardstick, default", 1 / 25, yardstick, "{:.4f}".format)
    row = results.get(case, "compact")
    size = case.n * case.d * 8 / 1e6
    held = float("nan") if row is None else (size + row.memory_mb) / size
    yield _at_most("mixture 1M: memory with the input / input, default", 10.0, held, "{:.1f}".format)
    for small, large in ((10_000, 100_000), (100_000, 1_000_000)):
        power = results.exponent("compact", small, large)
        yield _at_most(f"exponent of growth, default, {small:,} to {large:,} rows", 1.2, power, "{:.2f}".format)


def _against_mdav(results: Results) -> Iterator[Verdict]:
    for (n, k), goal in AGAINST_MDAV.items():
        loss = results.ratio(Case("mixture", n, 10, k), "compact", "mdav", "loss")
        if n != 50_000 or not np.isnan(loss):  # 50,000 is of the full design only
            yield _at_most(f"mixture, k = {k}, {n:,} rows: loss / exact MDAV, default", goal, loss)


def _references(results: Results) -> Iterator[Verdict]:
    for (table, method), goals in REFERENCE_GOALS.items():
        for k, goal in zip(REFERENCE_KS, goals, strict=True):
            row = results.get(reference_case(table, k), method)
            subject = f"{table}, k = {k}: information loss, {_effort(method)}"
            if row is None:
                yield Verdict(subject, f"<= {goal:.2f}", "", None)
                continue
            each = row.each_loss.round(2)
            spread = f"{row.loss:.2f} (one run each of {len(each)} seeds: {each.min():.2f} to {each.max():.2f}, "
            spread += f"{int((each <= goal).sum())} within the goal)"
            yield Verdict(subject, f"<= {goal:.2f}", spread, bool(round(row.loss, 2) <= goal))


def _levels(results: Results) -> Iterator[Verdict]:
    for table in LEVEL_TABLES:
        for alpha in ALPHAS:
            case = reference_case(table, alpha, "k-4..k")
            ours, theirs = results.get(case, "compact"), results.get(case, "paper")
            subject = f"{table}, levels {alpha - 4} to {alpha}: SSQ / ConstructGroups, default"
            if ours is None or theirs is None:
                yield Verdict(subject, "<= 0.75", "", None)
                continue
            each = ours.each_loss / theirs.each_loss
            spread = f"{each.mean():.3f} (mean of {len(each)} seeds, {each.min():.3f} to {each.max():.3f})"
            yield Verdict(subject, "<= 0.75", spread, bool(each.mean() <= 0.75))


def _wide(results: Results) -> Iterator[Verdict]:
    case = Case(NORMAL, 500, 2_000, 5)
    row = results.get(case, "compact")
    yield _at_most(f"{case}: CPU seconds, default", 3.0, float("nan") if row is None else row.cpu_s, "{:.2f}".format)
    more = results.ratio(case, "compact", "compact thorough", "loss")
    yield _at_most(f"{case}: loss, default / thorough", 1.01, more, "{:.4f}".format)


def _threads(results: Results) -> Iterator[Verdict]:
    pairs = [row for row in results.rows if row.threads == 2 and not np.isnan(row.cpu_s)]
    if not pairs:
        yield Verdict("2 threads against 1", ">= 1.70, same partition", "", None)
    for row in pairs:
        one = results.get(row.run.case, row.method)
        if one is None:
            continue
        gain, same = one.wall_s / row.wall_s, one.digest == row.digest
        subject = f"2 threads against 1, {_effort(row.method)}, {row.run.case}"
        busy = max(one.load, row.load) > FREE_LOAD or one.wall_s > FREE_WALL * one.cpu_s
        load = f"load {one.load:.1f} and {row.load:.1f} before the runs{': the machine was not free' if busy else ''}"
        found = f"{gain:.2f} of wall, {'same partition' if same else 'ANOTHER PARTITION'}; {load}"
        met = bool(gain >= 1.7 and same)
        yield Verdict(subject, ">= 1.70, same partition", found, None if busy and same and not met else met)


def _guarantee(results: Results) -> Iterator[Verdict]:
    rows = [row for row in results.rows if METHODS[row.method].source and not np.isnan(row.below)]
    short = sum(row.below > 0.0 for row in rows)
    met = None if not rows else not short
    yield Verdict("groups below their level, all our methods", "none", f"{short} of {len(rows)} runs have some", met)


def _effort(method: str) -> str:
    return method.partition(" ")[2] or "default"
