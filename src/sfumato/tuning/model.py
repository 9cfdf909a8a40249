"""The result of tuning: the best release that was found, alternatives with their trade-offs, and everything tried.

As lines, a JSON document, a page and a folder for the owner, with the frontier of utility and risk.
"""

from __future__ import annotations

import dataclasses
import math
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from sfumato.assess.figures import BASE, INK, MAIN, MUTED, Axes, Figure, draw
from sfumato.assess.glossary import CI, limit_name, limit_sentence, score, score_range, show
from sfumato.assess.report import ChangeTried, Ruling
from sfumato.assess.utility.prediction import is_class
from sfumato.core.documents import plain, write_json
from sfumato.core.errors import SfumatoError
from sfumato.core.pages import framed_page, page_template
from sfumato.engines.outcome import Recipe
from sfumato.methods.protocol import parameters_of
from sfumato.publish.folder import Contents, plain_errors, replacing_folder, write_text
from sfumato.publish.policy import BUILT_IN, Policy
from sfumato.publish.suggest import change_tried
from sfumato.publish.trial import SURE
from sfumato.tables.reading import FileReading
from sfumato.tuning.candidates import TUNED, Candidate
from sfumato.tuning.halving import Confirmation, Difference, NoTime, compare, in_order
from sfumato.tuning.trials import Reading, TableOptions, TrialRunner
from sfumato.version import __version__

__all__ = ["SizeSearch", "StopReason", "Tuning", "save_tuning", "write_tuning_page"]

_FORMAT = 2
_LEARNT = 0.01  # utility above the score of chance, from which something is learned
_Z = 1.959963984540054


def _open_limits(each: Confirmation) -> int:
    """Limits and requirements that were not shown to be met."""
    verdict = each.reading.verdict
    return len({one.limit for one in verdict.exceeded} | {one.limit for one in verdict.missing if one.needed})


class StopReason(StrEnum):
    """What ended the search."""

    DONE = "done"
    DEADLINE = "deadline"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class Alternative:
    """Another candidate beside the best one, on people that both were tried on."""

    candidate: Candidate
    use: Difference | None  # its use less that of the best
    limit: str | None  # the limit that it comes nearest to
    leak: Difference | None  # its gain or score there less that of the best
    meets: bool  # whether it kept the limits, as far as it was measured


@dataclass(frozen=True)
class SizeSearch:
    """What a search of KCG12 chose of the sizes from ``low`` to ``high``, and the sizes that it measured, in order."""

    candidate: Candidate
    low: int
    high: int
    tried: tuple[int, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Tuning:
    """The most useful release that meets a policy, as far as there was time to look; for the owner."""

    bench: TrialRunner
    confirmed: tuple[Confirmation, ...]  # what was tried against people whom the search had not used, in that order
    changed: tuple[tuple[Reading, Reading], ...]  # a candidate on a sample, and the same with a column changed
    refused: Mapping[Candidate, SfumatoError]  # what was not tried, and why
    stopped: StopReason
    search: str
    people: tuple[int, int]  # looked at, and in the table
    holdout: float | None  # held-out share; None if the control group came separately
    time_limit: float
    seconds: float
    searched: SizeSearch | None = None  # of a search of KCG12 that came to its end
    read: FileReading = field(default_factory=FileReading)  # how the file was read that the table came from
    command: tuple[str, ...] = ()

    def __repr__(self) -> str:
        best = "none" if self.best is None else self.best.reading.candidate.words
        return f"Tuning(best: {best}; {len(self.bench.latest())} settings tried)"

    def _repr_html_(self) -> str:
        """Show the page with the frontier in a notebook, in a frame of its own."""
        return framed_page("sfumato tuning", write_tuning_page(self))

    @property
    def table(self) -> TableOptions:
        """What holds for every candidate."""
        return self.bench.table

    @property
    def policy(self) -> Policy:
        """Policy that a release is to meet."""
        return self.table.policy

    @property
    def best(self) -> Confirmation | None:
        """The recommended candidate, confirmed; None if nothing qualifies."""
        return next((each for each in self.confirmed if each.holds), None)

    @property
    def nearest(self) -> Confirmation | None:
        """What comes nearest where nothing qualifies: the likeliest that was confirmed, else the first in order."""
        if self.best is not None:
            return None
        if self.confirmed:
            return max(self.confirmed, key=lambda each: (-_open_limits(each), each.chance, -each.reading.outlook.leak))
        latest = self.bench.latest()
        first = latest[in_order(latest)[0]]
        return Confirmation(first, first.outlook.chance, loses=False)

    @property
    def reason(self) -> str:
        """Why what comes nearest is not recommended."""
        nearest = self.nearest
        if nearest is None:
            return ""
        reading = nearest.reading
        if not self.confirmed:
            return "not confirmed: there was no time to measure it on people that the search had not used"
        failed = next((each for each in (reading, *nearest.again) if each.verdict.outcome is not Ruling.MEETS), None)
        if failed is not None:
            why = failed.verdict.reasons[0]
            return f"{why[:1].lower()}{why[1:]}"
        if nearest.loses:
            most = self.policy.keep["utility-loss"]
            return f"models lose {score(reading.loss)}; the policy allows {most:g}"
        runs = math.floor(100 * nearest.chance)
        return f"an estimated {runs}\u00a0% of runs meet the policy; {100 * SURE:g}\u00a0% are required"

    @property
    def binding(self) -> str:
        """The limit that keeps the nearest setting from being recommended, and the column that contributes most to it.

        The column is that of the attack, else the one whose change lowers the strongest attack most, else the one that
        contributes most to the risk.
        """
        nearest = self.nearest
        worst = None if nearest is None else nearest.reading.outlook.worst
        if nearest is None or worst is None:
            return ""
        column = (worst.finding or "").partition("/")[2]
        if not column and self.changed:
            before, after = min(self.changed, key=lambda each: each[1].outlook.leak)
            if after.change is not None and after.outlook.leak < before.outlook.leak:
                column = after.change.column
        if not column and nearest.reading.columns:
            column = nearest.reading.columns[0].column
        alone = "the only limit that it fails" if _open_limits(nearest) == 1 else "the limit that it fails most"
        caused = f'; column "{column}" contributes most' if column else ""
        return f"Binding limit: {limit_name(worst.limit, worst.finding)}, {alone}{caused}."

    @property
    def alternatives(self) -> tuple[Alternative, ...]:
        """The next two beside the best, or beside what comes nearest: the most useful that keep the limits first."""
        chosen = (self.best or self.nearest or self.confirmed[0]).reading.candidate
        latest = self.bench.latest()
        others = [each for each in in_order(latest) if each != chosen]
        others.sort(key=lambda each: -latest[each].people)
        return tuple(self._beside(chosen, each) for each in others[:2])

    def _beside(self, chosen: Candidate, other: Candidate) -> Alternative:
        uses, reading = self.bench.uses, self.bench.latest()[other]
        use = compare(uses[other], uses.get(chosen, {}))
        mine = self.bench.reading_of(chosen, reading.part)
        limit = None if reading.outlook.worst is None else reading.outlook.worst.limit
        leak = None
        if mine is not None and limit is not None and limit in mine.outlook.ends and limit in reading.outlook.ends:
            one, two = reading.outlook.ends[limit], mine.outlook.ends[limit]
            reach = _Z * (one.error**2 + two.error**2) ** 0.5
            leak = Difference(one.value - two.value, one.value - two.value - reach, one.value - two.value + reach)
        return Alternative(other, use, limit, leak, reading.verdict.outcome is not Ruling.DOES_NOT_MEET)

    def command_of(self, reading: Reading) -> str:
        """Command line that makes a release of a candidate, with all options of the table."""
        tool, _, source, *words = self.command or ("sfumato", "tune", "INPUT", *self._words())
        held = () if self.holdout is None else ("--holdout", f"{self.holdout:g}")
        floor = () if self.table.k is None or reading.candidate.method != "chain" else ("--k", str(self.table.k))
        policy = self.policy.name if self.policy == BUILT_IN.get(self.policy.name) else None
        judged = () if "--policy" in words else ("--policy", policy or "FILE")
        change = () if reading.change is None else reading.change.options
        line = [tool, "sanitize", source, "-o", "FOLDER", *reading.candidate.options, *floor, *held, *judged, *change]
        return shlex.join([*line, *words])

    def _words(self) -> tuple[str, ...]:
        """Arguments given in Python, as far as a command line can repeat them."""
        target = self.table.schema.target
        entries = {
            "--target": None if target is None else target.name,
            "--level": self.table.options.level,
            "--strata": self.table.options.strata,
            "--rare": self.table.options.rare,
        }
        words = [word for name, value in entries.items() if value is not None for word in (name, str(value))]
        return (
            *words,
            *(word for name in self.table.publishing.quasi_identifiers for word in ("--quasi-identifier", name)),
        )

    @property
    def recipe(self) -> Recipe | None:
        """Recipe of the best release; None if nothing qualifies."""
        if self.best is None:
            return None
        reading, table = self.best.reading, self.table
        schema = table.schema if reading.change is None else reading.change.applied(table.schema)
        parameters = parameters_of(reading.candidate.mechanism(self.table.k))
        return Recipe(
            reading.candidate.method, parameters, schema, dataclasses.replace(table.options, holdout=self.holdout),
            __version__, self.policy.title, self.read,
        )  # fmt: skip

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know before taking the recommendation."""
        notes = []
        if self.stopped is StopReason.DEADLINE:
            late = sum(isinstance(each, NoTime) for each in self.refused.values())
            untried = f"; {late} setting{'s were' if late > 1 else ' was'} not tried" if late else ""
            limit = f"Time limit reached ({self.seconds:.0f} s of {self.time_limit:.0f} s){untried}"
            notes.append(f"{limit}; allow more time with --time-limit.")
        if self.stopped is StopReason.INTERRUPTED:
            notes.append("Interrupted: these are the results so far.")
        if self.people[0] < self.people[1]:
            notes.append(f"Measured on a random sample of {self.people[0]:,} of {self.people[1]:,} people.")
        if self.searched is not None:
            notes.append(self.search_words)
        original = next(iter(self.bench.originals.values()), None)
        metric = self.bench.metric
        taught = original is not None and original.value > self.bench.guess + _LEARNT
        if original is not None and metric is not None and metric.of != "table" and not taught:
            notes.append(
                "A model of the original is no better than chance, so utility says little; name another target."
            )
        return tuple(notes)

    @property
    def search_words(self) -> str:
        """What a search of KCG12 chose, and of which sizes."""
        found = self.searched
        assert found is not None
        target = self.table.schema.target
        classes = target is not None and is_class(target)
        end = "the smallest class" if classes else "half of the people"
        sizes = f"the sizes from {found.low} to {found.high} ({end})"
        chose = f"The {self.search} search chose {found.candidate.words} of {sizes}"
        return f"{chose}; it measured {len(found.tried)} of them."

    def to_json(self) -> dict[str, Any]:
        """Everything that was tried as a JSON document."""
        best, nearest, metric = self.best, self.nearest, self.bench.metric
        return {
            "format": _FORMAT,
            "kind": "tuning",
            "policy": self.policy.title,
            "best": None if best is None else self._confirmed(best),
            "nearest": None
            if nearest is None
            else {**self._confirmed(nearest), "reason": self.reason, "binding": self.binding},
            "command": None if best is None else self.command_of(best.reading),
            "alternatives": [self._alternative(each) for each in self.alternatives],
            "columns": [self._change(before, after) for before, after in self.changed],
            "search": self.search,
            "searched": None if self.searched is None else self._searched(self.searched),
            "stopped": self.stopped.value,
            "time_limit": round(self.time_limit, 3),
            "seconds": round(self.seconds, 3),
            "metric": None if metric is None else metric.name,
            "holdout": self.holdout,
            "people": self.people[1],
            "people_looked_at": self.people[0],
            "notes": list(self.notes),
            "tried": [self._tried(each) for each in self.bench.readings],
            "not_tried": [
                {"method": each.method, each.parameter: each.size, "reason": str(reason)}
                for each, reason in sorted(self.refused.items(), key=lambda item: item[0].rank)
            ],
        }

    def _searched(self, found: SizeSearch) -> dict[str, object]:
        candidate = found.candidate
        entries = {"method": candidate.method, candidate.parameter: candidate.size}
        return {**entries, "low": found.low, "high": found.high, "tried": list(found.tried)}

    def _tried(self, reading: Reading) -> dict[str, object]:
        candidate, worst = reading.candidate, reading.outlook.worst
        return {
            "method": candidate.method,
            candidate.parameter: candidate.size,
            "part": reading.part,
            "people": reading.people,
            "use": reading.use.value,
            "use_original": reading.original.value,
            "use_smallest_class": reading.use.smallest,
            "use_smallest_class_original": reading.original.smallest,
            "leak": reading.outlook.leak,
            "worst": None if worst is None else plain(worst),
            "outcome": reading.verdict.outcome.value,
            "seconds": round(reading.seconds, 3),
        }

    def _confirmed(self, each: Confirmation) -> dict[str, object]:
        reading = each.reading
        lost = compare({"": reading.original}, {"": reading.use})
        return {
            **self._tried(reading),
            "loss": reading.loss,
            "loss_interval": None if lost is None else [lost.low, lost.high],
            "chance": each.chance,
            "verdict": reading.verdict.to_json(),
            "change": None if reading.change is None else reading.change.how,
            "command": self.command_of(reading),
        }

    def _alternative(self, each: Alternative) -> dict[str, object]:
        reading = self.bench.latest()[each.candidate]
        return {
            "method": each.candidate.method,
            each.candidate.parameter: each.candidate.size,
            "use_difference": plain(each.use),
            "limit": each.limit,
            "leak_difference": plain(each.leak),
            "keeps_limits": each.meets,
            "command": self.command_of(reading),
        }

    def _change(self, before: Reading, after: Reading) -> dict[str, object]:
        assert after.change is not None
        tried = change_tried(after.change, before.outlook, after.outlook, after.people)
        return {**plain(tried), "use_difference": plain(compare({"": after.use}, {"": before.use}))}

    def lines(self) -> list[tuple[int, str]]:
        """The result in a line each, with ranks for `sfumato.assess.plain.fitting`."""
        best, nearest = self.best, self.nearest
        lines: list[tuple[int, str]] = []
        if best is not None:
            lines.append((0, self.headline))
            lines.append((1, f"Strongest attack: {worst_words(best.reading)}."))
            lines += [(2, f"Smallest class: {words}.") for words in smallest_class_words(best.reading)]
        elif nearest is not None:
            lines.append((0, self.headline))
            lines.append((1, f"Nearest: {self._named(nearest.reading)}; {self.reason}."))
            lines += [(1, self.binding)] if self.binding else []
            lines += [(2, f"Smallest class: {words}.") for words in smallest_class_words(nearest.reading)]
        lines += [(3, self.alternative_words(each)) for each in self.alternatives]
        lines += [(4, words) for words in self.change_words()[:2]]
        lines += [(2, note) for note in self.notes]
        if best is not None:
            lines.append((0, f"Run it: {self.command_of(best.reading)}"))
        return lines

    @property
    def headline(self) -> str:
        """The answer in a sentence."""
        best = self.best
        if best is None:
            tried = len(self.bench.latest())
            settings = f"{tried} setting{'s' * (tried > 1)} tried"
            if not self.confirmed:
                return f"Nothing can be recommended yet: {settings}, none confirmed."
            once = any(each.reading.verdict.outcome is Ruling.MEETS for each in self.confirmed)
            runs = " in 9 of 10 runs" if once else ""
            return f'No setting (of {tried} tried) is shown to meet policy "{self.policy.title}"{runs}.'
        runs = "nearly every run" if best.chance > 0.985 else f"about {round(100 * best.chance)}\u00a0% of runs"
        return f'Best:   {self._named(best.reading)}. Meets policy "{self.policy.title}" in {runs}; {self.use_words}.'

    @property
    def use_words(self) -> str:
        """The score of the best release beside that of the original, and what is lost with its interval."""
        best, metric = self.best, self.bench.metric
        assert best is not None
        assert metric is not None
        reading = best.reading
        if metric.of == "table":
            return f"{metric.words} {reading.use.value:.2f} (control group {reading.original.value:.2f})"
        lost = compare({"": reading.original}, {"": reading.use})
        assert lost is not None
        beside = f"original {score(reading.original.value)}, {metric.guess} {self.bench.guess:.3g}"
        found = f"{metric.words} {score(reading.use.value)} ({beside})"
        if lost.low <= 0.0:
            return f"{found}; no significant loss (95\u00a0% CI up to {score(max(0.0, lost.high))})"
        return f"{found}; loss {score(lost.value)} (95\u00a0% CI {score_range(lost.low, lost.high)})"

    def alternative_words(self, each: Alternative) -> str:
        """Difference of another candidate to the best, in utility and risk."""
        utility = "utility not compared" if each.use is None else f"utility {_signed(each.use)}"
        risk = "" if each.leak is None else f"; {limit_name(each.limit or '')} {_signed(each.leak)}"
        kept = "" if each.meets else "; does not meet the policy"
        return f"Or:     {each.candidate.words}: {utility}{risk}{kept}."

    @property
    def changes(self) -> tuple[ChangeTried, ...]:
        """What changing a column did on a sample, the most helpful first."""
        tried = [
            change_tried(after.change, before.outlook, after.outlook, after.people)
            for before, after in self.changed
            if after.change is not None
        ]
        return tuple(sorted(tried, key=lambda each: (not each.clear, each.after)))

    def change_words(self) -> list[str]:
        """Columns that significantly lower the strongest attack if changed, and the option for it."""
        return [f"{each.sentence} On a sample; {each.how}." for each in self.changes if each.clear]

    def _named(self, reading: Reading) -> str:
        change = "" if reading.change is None else f", {reading.change.words}"
        return f"{reading.candidate.words}{change}"


def worst_words(reading: Reading) -> str:
    """The finding that comes nearest to its limit."""
    worst = reading.outlook.worst
    if worst is None:
        return "bounded by proof" if reading.verdict.by == "proof" else "no limit was judged"
    return limit_sentence(worst.limit, worst.finding, float(worst.value or 0.0), float(worst.allowed), worst.interval)


def smallest_class_words(reading: Reading) -> list[str]:
    """Accuracy on the smallest class, beside that of the original; nothing without classes."""
    released, original = reading.use.smallest, reading.original.smallest
    if released is None or original is None:
        return []
    return [f"accuracy {released:.2f} (original {original:.2f})"]


def _signed(gap: Difference) -> str:
    interval = f"{CI} {100 * gap.low:+.1f} to {100 * gap.high:+.1f}"
    return f"{100 * gap.value:+.1f} points ({interval})".replace("-", "\u2212")


_OUTCOMES = {"meets": "meets", "does-not-meet": "does not meet", "inconclusive": "inconclusive"}


def write_tuning_page(tuning: Tuning) -> str:
    """Write one self-contained page."""
    best, nearest, metric = tuning.best, tuning.nearest, tuning.bench.metric
    return page_template("tuning.html", "sfumato.tuning", "sfumato.assess").render(
        headline=tuning.headline.removeprefix("Best:   "),
        outcome="meets" if best is not None else "inconclusive",
        nearest=None if nearest is None else f"{nearest.reading.candidate.words}; {tuning.reason}. {tuning.binding}",
        worst=None if best is None else worst_words(best.reading),
        command=None if best is None else tuning.command_of(best.reading),
        alternatives=[tuning.alternative_words(each).removeprefix("Or:     ") for each in tuning.alternatives],
        changes=tuning.change_words(),
        notes=tuning.notes,
        figure=frontier_figure(tuning),
        policy=tuning.policy.title,
        words="utility" if metric is None else metric.words,
        confirmed=[_row(each.reading) for each in tuning.confirmed],
        rows=[_row(each) for each in tuning.bench.readings if each.part not in ("confirmation", "again")],
        refused=[
            f"{each.words}: {reason}" for each, reason in sorted(tuning.refused.items(), key=lambda item: item[0].rank)
        ],
        seconds=f"{tuning.seconds:.0f}",
    )


def _row(reading: Reading) -> list[str]:
    """Cells of a row: setting, people, utility, that of the original, of the smallest class, risk, and the verdict."""
    change = "" if reading.change is None else f", {reading.change.words}"
    return [
        f"{reading.candidate.words}{change}",
        f"{reading.people:,}",
        show(reading.use.value),
        show(reading.original.value),
        "-" if reading.use.smallest is None else show(reading.use.smallest),
        f"{reading.outlook.leak:.2f}",
        _OUTCOMES[reading.verdict.outcome.value],
    ]


def save_tuning(tuning: Tuning, folder: str | Path, *, overwrite: bool = False) -> Path:
    """Write ``report.html``, ``report.json`` and, where something qualifies, ``recipe.toml``; for the owner alone."""
    files = {"report.html": write_tuning_page(tuning), "report.json": write_json(tuning.to_json(), "pretty")}
    if tuning.recipe is not None:
        files["recipe.toml"] = tuning.recipe.to_toml()
    with plain_errors("the tuning"), replacing_folder(folder, overwrite=overwrite, contents=Contents.TUNING) as work:
        for name, text in files.items():
            write_text(work / name, text, mode=0o600)
    return Path(folder)


_SIZE = (6.4, 4.2)
_SHAPES = dict(zip(TUNED, ("circle", "square", "triangle", "diamond", "circle"), strict=True))
_COLOURS = dict(zip(TUNED, (MAIN, BASE, INK, MUTED, BASE), strict=True))
_MOST = 6.0  # risks beyond six times their limit are drawn at the edge


def frontier_figure(tuning: Tuning) -> Figure:
    """Utility and risk of every setting on the largest sample that it was tried on; for the owner."""
    latest = tuning.bench.latest()
    metric = tuning.bench.metric
    words = "utility" if metric is None else metric.words
    chosen = tuning.best or tuning.nearest
    named = "" if chosen is None else f" Star: {chosen.reading.candidate.words}."
    return draw(
        "frontier/leak",
        lambda axes: _draw(axes, list(latest.values()), None if chosen is None else chosen.reading, words),
        size=_SIZE,
        title="Utility and risk",
        caption=(
            "Each mark is a method and its size, on the largest sample that it was tried on; up and to the left is "
            f"better. Risk is the strongest attack as a multiple of its limit: right of the line it exceeds the limit. "
            f"Smaller samples show a larger risk. Risks above {_MOST:g} are drawn at the edge.{named}"
        ),
        alt=f"Scatter plot of {len(latest)} settings: {words} and the strongest attack as a multiple of its limit.",
        public=False,
    )


def _draw(axes: Axes, readings: list[Reading], chosen: Reading | None, words: str) -> None:
    uses = [each.use.value for each in (*readings, *(() if chosen is None else (chosen,)))] or [0.0]
    reach = 0.06 * (max(uses) - min(uses)) or 0.05
    axes.x = (0.0, 1.08 * max([1.0, *map(_leak, readings)]))
    axes.y = (min(uses) - reach, max(uses) + reach)
    axes.x_label, axes.y_label = "strongest attack, multiple of its limit", words
    axes.upright_line(1.0, MUTED, 1.6)
    for method in dict.fromkeys(reading.candidate.method for reading in readings):
        own = sorted(
            (each for each in readings if each.candidate.method == method), key=lambda each: each.candidate.size
        )
        xs, ys = [_leak(each) for each in own], [each.use.value for each in own]
        colour = _COLOURS[method]
        axes.marks(xs, ys, _SHAPES[method], colour, colour, 5.0)
        axes.name(method, _SHAPES[method], colour, colour, 5.0)
        for x, y, each in zip(xs, ys, own, strict=True):
            axes.write(x, y, f"{each.candidate.size:g}", colour=colour, off=(5.0, -3.0))
    if chosen is not None:
        axes.marks([_leak(chosen)], [chosen.use.value], "star", INK, INK, 13.0)
        axes.name(chosen.candidate.words, "star", INK, INK, 9.0)


def _leak(reading: Reading) -> float:
    return min(_MOST, max(0.0, reading.outlook.leak))
