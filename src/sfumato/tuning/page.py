"""What tuning found, as a page and a folder for the owner, with the frontier: use against leak, a dot a setting."""

from __future__ import annotations

import os
from pathlib import Path

from sfumato.assess.figures.svg import BASE, INK, MAIN, MUTED, Axes, Figure, draw
from sfumato.assess.plain import show
from sfumato.core.documents import write_json
from sfumato.core.errors import SfumatoError
from sfumato.core.pages import page_template
from sfumato.publish.folder import Contents, check_folder, replacing_folder, write_text
from sfumato.tuning.candidates import TUNED
from sfumato.tuning.model import Tuning, worst_words
from sfumato.tuning.trials import Reading

__all__ = ["check_tuning_folder", "frontier_figure", "save_tuning", "write_tuning_page"]

_OUTCOMES = {"meets": "meets it", "does-not-meet": "does not meet it", "cannot-tell": "cannot be told"}


def write_tuning_page(tuning: Tuning) -> str:
    """Write one self-contained page."""
    best, nearest, metric = tuning.best, tuning.nearest, tuning.bench.metric
    said = best or nearest
    return page_template("tuning.html", "sfumato.tuning", "sfumato.assess").render(
        headline=tuning.headline.removeprefix("Best:   "),
        outcome="meets" if best is not None else "cannot-tell",
        nearest=None if nearest is None else f"{nearest.reading.candidate.words}; {tuning.because}",
        worst=None if best is None else worst_words(best.reading.outlook.worst),
        command=None if best is None else tuning.command_of(best.reading),
        alternatives=[tuning.alternative_words(each).removeprefix("Or:     ") for each in tuning.alternatives],
        changes=tuning.change_words(),
        notes=tuning.notes,
        figure=frontier_figure(tuning),
        policy=tuning.policy.title,
        words="use" if metric is None else metric.words,
        confirmed=[_row(each.reading) for each in tuning.confirmed],
        rows=[_row(each) for each in tuning.bench.readings if each.part not in ("confirmation", "again")],
        refused=[
            f"{each.words}: {reason}" for each, reason in sorted(tuning.refused.items(), key=lambda item: item[0].rank)
        ],
        seconds=f"{tuning.seconds:.0f}",
        said=said is not None,
    )


def _row(reading: Reading) -> list[str]:
    """Cells of what was tried: setting, people, use, the original's, leak, and what the judge says."""
    change = "" if reading.change is None else f", {reading.change.words}"
    return [
        f"{reading.candidate.words}{change}",
        f"{reading.people:,}",
        show(reading.use.value),
        show(reading.original.value),
        f"{reading.outlook.leak:.2f}",
        _OUTCOMES[reading.verdict.outcome.value],
    ]


def check_tuning_folder(folder: str | Path, *, overwrite: bool = False) -> Path:
    """Refuse an output folder that exists, unless it holds an earlier tuning and may be replaced."""
    return check_folder(folder, overwrite=overwrite, contents=Contents.TUNING)


def save_tuning(tuning: Tuning, folder: str | Path, *, overwrite: bool = False) -> Path:
    """Write ``report.html``, ``report.json`` and, where something qualifies, ``recipe.toml``; for the owner alone."""
    files = {"report.html": write_tuning_page(tuning), "report.json": write_json(tuning.to_json(), "pretty")}
    if tuning.recipe is not None:
        files["recipe.toml"] = tuning.recipe.to_toml()
    try:
        with replacing_folder(folder, overwrite=overwrite, contents=Contents.TUNING) as work:
            for name, text in files.items():
                write_text(work / name, text, mode=0o600)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else type(error).__name__
        raise SfumatoError(f"the tuning could not be written ({reason}); nothing was changed") from None
    return Path(folder)


_SIZE = (6.4, 4.2)
_SHAPES = dict(zip(TUNED, ("circle", "square", "triangle", "diamond"), strict=True))
_COLOURS = dict(zip(TUNED, (MAIN, BASE, INK, MUTED), strict=True))
_MOST = 6.0  # leaks beyond so many times what is allowed are drawn at the edge


def frontier_figure(tuning: Tuning) -> Figure:
    """Use against leak of every setting on the largest part that it was tried on; for the owner."""
    latest = tuning.bench.latest()
    metric = tuning.bench.metric
    words = "use" if metric is None else metric.words
    chosen = tuning.best or tuning.nearest
    named = "" if chosen is None else f" The star: {chosen.reading.candidate.words}."
    return draw(
        "frontier/leak",
        lambda axes: _draw(axes, list(latest.values()), None if chosen is None else chosen.reading, words),
        size=_SIZE,
        title="Use against leak",
        caption=(
            "Each mark is a method and its size, on the largest sample that it was tried on; up and to the left is "
            f"better. The leak is the worst attack as a multiple of what the policy allows: right of the line is too "
            f"much. On smaller samples leaks are larger.{named}"
        ),
        alt=f"Scatter plot of {len(latest)} settings: {words} against the worst attack, times what is allowed.",
        public=False,
    )


def _draw(axes: Axes, readings: list[Reading], chosen: Reading | None, words: str) -> None:
    uses = [each.use.value for each in (*readings, *(() if chosen is None else (chosen,)))] or [0.0]
    reach = 0.06 * (max(uses) - min(uses)) or 0.05
    axes.x = (0.0, 1.08 * max([1.0, *map(_leak, readings)]))
    axes.y = (min(uses) - reach, max(uses) + reach)
    axes.x_label, axes.y_label = "worst attack, times what the policy allows", words
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
            axes.write(x, y, str(each.candidate.size), colour=colour, off=(5.0, -3.0))
    if chosen is not None:
        axes.marks([_leak(chosen)], [chosen.use.value], "star", INK, INK, 13.0)
        axes.name(chosen.candidate.words, "star", INK, INK, 9.0)


def _leak(reading: Reading) -> float:
    return min(_MOST, max(0.0, reading.outlook.leak))
