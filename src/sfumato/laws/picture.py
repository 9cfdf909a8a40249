"""The picture of a guarantee: how likely a property was against how likely any answer can make it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from sfumato.laws.amplification import downward_bound, upward_bound
from sfumato.laws.breach import Breach, percent

__all__ = ["draw_guarantee"]

_POINTS = 401
_STYLE: Any = {"svg.fonttype": "none", "svg.hashsalt": "sfumato", "font.size": 9.0, "text.parse_math": False}


def draw_guarantee(path: Path, gamma: float, found: Breach | None = None, form: str = "png") -> None:
    """Draw the bounds of an amplification over all priors, and the point of one property.

    Parameters
    ----------
    path : path
        Where the picture is written.
    gamma : float
        With an infinite one the bounds are the edges of the picture, and it says so.
    found : Breach, optional
        A property; its prior is marked against its posterior for the worst answers.
    form : {"png", "svg"}
    """
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_STYLE):
        sheet = Figure(figsize=(5.2, 6.2), layout="constrained", facecolor="white")
        axes: Any = sheet.add_subplot()
        _paint_bounds(axes, gamma)
        if found is not None:
            _paint_property(axes, found)
        axes.set(xlim=(0, 1), ylim=(-0.02, 1.02), aspect="equal")
        axes.set(xlabel="how likely a property is before the answer", ylabel="how likely it can be after the answer")
        sheet.legend(loc="outside lower center", frameon=False)
        canvas: Any = FigureCanvasSVG(sheet) if form == "svg" else FigureCanvasAgg(sheet)
        metadata = {"Date": None, "Creator": None} if form == "svg" else {"Software": None}
        canvas.print_figure(path, format=form, dpi=150, metadata=metadata)


def _paint_bounds(axes: Any, gamma: float) -> None:
    priors = [step / (_POINTS - 1) for step in range(_POINTS)]
    inside = priors[1:-1]  # what is certain before stays certain
    highest = [upward_bound(gamma, rho1) for rho1 in inside]
    lowest = [downward_bound(gamma, rho1) for rho1 in inside]
    told = (
        "no guarantee: anything can become certain" if math.isinf(gamma) else f"bound for any answer, gamma {gamma:.4g}"
    )
    axes.fill_between(inside, lowest, highest, color="#7aa6c2", alpha=0.25, linewidth=0)
    axes.plot(inside, highest, color="#1f5f8b", linewidth=1.6, label=told)
    axes.plot(inside, lowest, color="#1f5f8b", linewidth=1.6)
    axes.plot(priors, priors, color="#888888", linewidth=0.8, linestyle=":", label="answer tells nothing")


def _paint_property(axes: Any, found: Breach) -> None:
    ends = (found.worst.lowest, found.worst.highest)
    axes.plot([found.prior] * 2, ends, color="#b5482e", linewidth=1.0)
    axes.plot([found.prior] * 2, ends, "o", color="#b5482e", markersize=5, label="this property, worst answers")
    if not any(math.isclose(found.posterior, end, rel_tol=1e-9) for end in ends):
        axes.plot(
            [found.prior], [found.posterior], "x", color="#b5482e", markersize=6, label="this property, this answer"
        )
    right = found.prior < 0.6
    axes.annotate(
        f"{percent(found.prior)} \u2192 {percent(found.worst.highest)}",
        (found.prior, found.worst.highest),
        textcoords="offset points",
        xytext=(7 if right else -7, -12 if found.worst.highest > 0.9 else 6),
        ha="left" if right else "right",
        color="#b5482e",
    )
