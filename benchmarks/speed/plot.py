"""The picture of the grouping benchmark: seconds against rows, and compactness against seconds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.speed.cases import Case
from benchmarks.speed.goals import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw"]

SIZES = (10_000, 100_000, 300_000, 1_000_000)
STYLES = {  # colour, marker, label: ours in one hue, others in greys and browns
    "compact fast": ("#7fb3d5", "o", "compact, fast"),
    "compact": ("#1b5e8c", "o", "compact, default"),
    "compact thorough": ("#0b2e4a", "o", "compact, thorough"),
    "mdav": ("#b3541e", "s", "exact MDAV"),
    "paper": ("#2e7d4f", "^", "AY05 ConstructGroups"),
    "naive": ("#8a6d9e", "v", "naive condensation"),
    "kmeans": ("#999999", "x", "KMeans(n/k): not k-anonymous"),
    "kdtree": ("#444444", "D", "yardstick: KDTree neighbours"),
}


def draw(results: Results, path: Path) -> bool:
    """Draw both panels for the mixture, d = 10, k = 5; tell whether there was anything to draw."""
    if results.get(Case("mixture", SIZES[0], 10, 5), "compact") is None:
        return False
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    plain: Any = {"svg.fonttype": "none", "svg.hashsalt": "grouping", "font.family": "sans-serif", "font.size": 9}
    with plt.rc_context(plain):
        figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
        _seconds(left, results)
        _compactness(right, results)
        for axes in (left, right):
            axes.grid(alpha=0.25)
            axes.spines[["top", "right"]].set_visible(False)
        handles, labels = left.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
        figure.suptitle("Grouping a mixture of 20 Gaussians, 10 columns, k = 5, one thread")
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)
    return True


def _seconds(axes: Axes, results: Results) -> None:
    for method, (colour, marker, label) in STYLES.items():
        rows = [row for n in SIZES if (row := results.get(Case("mixture", n, 10, 5), method))]
        style = "--" if method == "kdtree" else "-"
        axes.plot([r.n for r in rows], [r.cpu_s for r in rows], style, color=colour, marker=marker, ms=4, label=label)
    axes.set(xscale="log", yscale="log", xlabel="rows", ylabel="CPU seconds", title="Seconds against rows")


def _compactness(axes: Axes, results: Results) -> None:
    """Mark each method, filled at 100,000 rows and hollow at 10,000."""
    for n, filled in ((10_000, False), (100_000, True)):
        case = Case("mixture", n, 10, 5)
        for method, (colour, marker, _) in STYLES.items():
            row, loss = results.get(case, method), results.ratio(case, method, "mdav", "loss")
            if row is not None and not np.isnan(loss):
                face = colour if filled or marker == "x" else "white"
                axes.plot(row.cpu_s, loss, marker, color=colour, markerfacecolor=face, ms=7 if filled else 6)
    axes.axhline(1.0, color="#b3541e", linewidth=0.8, linestyle=":")
    axes.set(xscale="log", xlabel="CPU seconds", ylabel="information loss / exact MDAV")
    axes.set_title("Lower left is better (hollow: 10,000 rows, filled: 100,000)")
