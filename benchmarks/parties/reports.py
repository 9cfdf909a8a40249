"""Writes tables and pictures of the benchmarks of joint runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["COLOURS", "RESULTS", "draw", "head", "mean", "row", "save"]

RESULTS = Path(__file__).resolve().parents[1] / "results"
COLOURS = ("#1b5e8c", "#b3541e", "#2e7d4f", "#8a6d9e", "#444444")


def row(*cells: object) -> str:
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def head(*names: str) -> list[str]:
    return [row(*names), "|" + "---|" * len(names)]


def mean(values: Sequence[float], digits: int = 1) -> str:
    """Give mean ± standard deviation; the mean alone of one value."""
    if len(values) == 1:
        return f"{values[0]:.{digits}f}"
    return f"{np.mean(values):.{digits}f} ± {np.std(values, ddof=1):.{digits}f}"


def save(name: str, lines: Sequence[str]) -> None:
    """Write a page under another name first."""
    RESULTS.mkdir(exist_ok=True)
    fresh = RESULTS / f"{name}.new"
    fresh.write_text("\n".join(lines) + "\n", encoding="utf-8")
    fresh.rename(RESULTS / name)


def draw(name: str, title: str, panels: Sequence[Callable[[Axes], None]]) -> None:
    """Draw panels side by side, as the other pictures of the project."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    plain: Any = {"svg.fonttype": "none", "svg.hashsalt": name, "font.family": "sans-serif", "font.size": 9}
    with plt.rc_context(plain):
        figure, axes = plt.subplots(1, len(panels), figsize=(3.6 * len(panels), 3.6), layout="constrained")
        for one, panel in zip(np.atleast_1d(axes), panels, strict=True):
            panel(one)
            one.grid(alpha=0.25)
            one.spines[["top", "right"]].set_visible(False)
        handles, labels = np.atleast_1d(axes)[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
        figure.suptitle(title)
        RESULTS.mkdir(exist_ok=True)
        figure.savefig(RESULTS / f"{name}.new", format="svg", metadata={"Date": None})
        (RESULTS / f"{name}.new").rename(RESULTS / name)
        plt.close(figure)
