"""What came of tuning: the sizes tried, the choices marked on the frontier, and the recipe to run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sfumato.engines.recipe import Recipe
from sfumato.tuning.search import Choice
from sfumato.tuning.trials import Trial

__all__ = ["Mark", "SearchPlan", "Tuning"]

_FORMAT = 1


@dataclass(frozen=True)
class Mark:
    """A group size that a rule chose, how many sizes it looked at, and the seconds that they took."""

    rule: str
    size: int
    tried: tuple[int, ...]
    seconds: float


@dataclass(frozen=True)
class SearchPlan:
    """What is tried: sizes from ``low`` to ``high``, each on so many splits, with so many rows held out.

    ``least`` is where the searches of the paper begin, its t; None where they are not run.
    """

    low: int
    least: int | None
    high: int
    steps: int
    repeats: int
    holdout: float
    budget: float | None = None
    estimate: float | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Tuning:
    """Sizes of groups or leaves that were tried, what each gave, and which one to take."""

    trials: tuple[Trial, ...]  # in rising order of size
    choice: Choice  # the recommended size and why
    marks: tuple[Mark, ...]  # what the approximate GCD, the rule-based search and the brute force chose; none of leaves
    front: tuple[int, ...]  # the sizes that no other beats in both utility and attack success
    recipe: Recipe  # runs the recommended size
    plan: SearchPlan
    # metric, words: the utility's name, and how it is called
    metric: str
    words: str
    baseline: float | None  # the utility of the original rows themselves
    seconds: float  # the whole run
    notes: tuple[str, ...] = ()  # what a reader must know before taking the recommendation

    def __repr__(self) -> str:
        return f"Tuning({self.parameter}={self.choice.size}, {len(self.trials)} sizes tried)"

    def __getitem__(self, size: int) -> Trial:
        """Find the trial of a size."""
        return next(trial for trial in self.trials if trial.size == size)

    @property
    def parameter(self) -> str:
        """Name of the size in `sanitize`: ``leaf`` of the chain, else ``k``."""
        return "leaf" if self.recipe.method == "chain" else "k"

    @property
    def passes(self) -> float:
        """Time of the whole search as a multiple of one sanitize-and-evaluate pass at the recommended size."""
        return self.seconds / max(self[self.choice.size].seconds, 1e-9)

    def to_json(self) -> dict[str, Any]:
        """Everything that was tried as a JSON document."""
        return {
            "format": _FORMAT,
            "kind": "tuning",
            self.parameter: self.choice.size,
            "reason": self.choice.reason,
            "method": self.recipe.method,
            "metric": self.metric,
            "utility_of_original": self.baseline,
            **{key: getattr(self.plan, key) for key in ("repeats", "holdout", "budget", "estimate")},
            "seconds": round(self.seconds, 3),
            "passes": round(self.passes, 1),
            "passes_made": sum(len(trial.readings) for trial in self.trials),
            "notes": list(self.notes),
            "frontier": list(self.front),
            "marks": {
                mark.rule: {self.parameter: mark.size, "sizes": list(mark.tried), "seconds": round(mark.seconds, 3)}
                for mark in self.marks
            },
            "tried": [self._tried(trial) for trial in self.trials],
        }

    def _tried(self, trial: Trial) -> dict[str, Any]:
        return {
            self.parameter: trial.size,
            "groups": round(sum(reading.groups for reading in trial.readings) / len(trial.readings), 1),
            "utility": trial.utility,
            "utility_interval": trial.utility_interval,
            "utility_spread": trial.spread,
            "utility_smallest_class": trial.smallest,
            "linkage": trial.linkage.share,
            "linkage_interval": trial.linkage_interval,
            "linkage_attempts": trial.linkage.of,
            "linkage_control": trial.control.share,
            "linkage_control_interval": trial.control.interval,
            "interval_privacy": trial.interval,
            "seconds": round(trial.seconds, 4),
            "on_frontier": trial.size in self.front,
        }

    def summary(self) -> str:
        """Say the recommendation and list what was tried."""
        smallest = any(trial.smallest is not None for trial in self.trials)
        interval = any(trial.interval is not None for trial in self.trials)
        names = [f"{self.parameter:>7}", f"{'utility':>14}", *([f"{'smallest':>9}"] if smallest else [])]
        names += [f"{'linked (95 %)':>25}", *([f"{'interval':>9}"] if interval else [])]
        head = "".join([*names, f"{'s/pass':>8}"])
        lines = [self.choice.reason, *self.notes, "", head]
        marks: dict[int, list[str]] = {self.choice.size: ["recommended"]}
        for mark in self.marks:
            marks.setdefault(mark.size, []).append(mark.rule)
        for trial in self.trials:
            spread = "" if trial.utility_interval is None else f" ±{trial.utility_interval[1] - trial.utility:.3f}"
            low, high = trial.linkage_interval
            cells = [f"{trial.size:>7}", f"{trial.utility:.3f}{spread}".rjust(14)]
            if smallest:
                cells.append(f"{'' if trial.smallest is None else f'{trial.smallest:.3f}':>9}")
            cells.append(f"{100 * trial.linkage.share:.2f} % ({100 * low:.2f} to {100 * high:.2f})".rjust(25))
            if interval:
                cells.append(f"{'' if trial.interval is None else f'{trial.interval:.3f}':>9}")
            cells.append(f"{trial.seconds:8.2f}")
            lines.append("".join(cells) + ("  " + ", ".join(marks[trial.size]) if trial.size in marks else ""))
        lines.append("")
        lines.append(
            f"{len(self.trials)} sizes on {self.plan.repeats} splits in {self.seconds:.1f} s, {self.passes:.0f} times "
            f"one sanitize-and-evaluate pass; utility is {self.words}"
            + ("." if self.baseline is None else f", that of the original {self.baseline:.3f}.")
        )
        return "\n".join(lines)
