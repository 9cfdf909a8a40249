"""The frontier: use against leak, a dot for every setting that was tried."""

from __future__ import annotations

from sfumato.assess.figures.axes import Axes, draw
from sfumato.assess.figures.svg import BASE, INK, MAIN, MUTED, Figure
from sfumato.tuning.candidates import TUNED
from sfumato.tuning.model import Tuning
from sfumato.tuning.trials import Reading

__all__ = ["frontier_figure"]

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
