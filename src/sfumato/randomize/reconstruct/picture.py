"""The picture of a reconstruction: probabilities with their bands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from sfumato.laws.domains import Labels
from sfumato.randomize.reconstruct.model import Reconstruction

__all__ = ["draw_reconstruction"]

_STYLE: Any = {"svg.fonttype": "none", "svg.hashsalt": "sfumato", "font.size": 9.0, "text.parse_math": False}
_LINE, _BAND = "#1f5f8b", "#7aa6c2"


def draw_reconstruction(path: Path, found: Reconstruction, *, name: str, form: str = "png") -> None:
    """Draw a reconstruction.

    Parameters
    ----------
    path : path
        Where the picture is written.
    found : Reconstruction
    name : str
        Of the column.
    form : {"png", "svg"}
    """
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_STYLE):
        sheet = Figure(figsize=(6.4, 3.6), layout="constrained", facecolor="white")
        axes: Any = sheet.add_subplot()
        if isinstance(found.cells.universe, Labels):
            _paint_labels(axes, found)
        else:
            _paint_steps(axes, found)
        axes.set(xlabel=name, ylabel="probability", ylim=(0, None))
        told = f"{found.records} randomized records, worth about {found.effective_records:.0f} without noise"
        axes.set_title(f"{told}\nband: {100 * found.level:g} % of each", fontsize=9.0)
        canvas: Any = FigureCanvasSVG(sheet) if form == "svg" else FigureCanvasAgg(sheet)
        metadata = {"Date": None, "Creator": None} if form == "svg" else {"Software": None}
        canvas.print_figure(path, format=form, dpi=150, metadata=metadata)


def _paint_labels(axes: Any, found: Reconstruction) -> None:
    places = np.arange(len(found.probability))
    axes.bar(places, found.probability, color=_BAND, width=0.7)
    axes.vlines(places, found.lower, found.upper, color=_LINE)
    axes.set_xticks(places, [str(value) for value in found.values or ()], rotation=30 if len(places) > 4 else 0)


def _paint_steps(axes: Any, found: Reconstruction) -> None:
    edges = found.edges
    if edges is None:
        edges = found.cells.universe.decode(found.cells.cuts).astype(np.float64) - found.cells.universe.step / 2.0
    axes.stairs(found.upper, edges, baseline=found.lower, fill=True, color=_BAND, alpha=0.4, linewidth=0)
    axes.stairs(found.probability, edges, color=_LINE, linewidth=1.2)
