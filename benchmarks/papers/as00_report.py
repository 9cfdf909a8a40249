"""What the AS00 benchmark prints, draws and writes: accuracies, and the share of the gap that came back."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["SETTINGS", "Curves", "print_curves", "write_report"]

SETTINGS = (("uniform", 0.5), ("uniform", 1.0), ("gaussian", 0.5), ("gaussian", 1.0))
_TREES = ("original", "none", "global", "by-class", "local")
_BAYES = ("bayes original", "bayes none", "bayes by-class")
_CHECKS = ("true shares", "local, all columns")
_WORDS = {
    "original": "original",
    "none": "uncorrected",
    "global": "global",
    "by-class": "by class",
    "local": "local",
    "bayes original": "original",
    "bayes none": "uncorrected",
    "bayes by-class": "by class",
}
_SMALL = 0.02  # gaps below two points are too small to say what share of them came back


@dataclass(frozen=True)
class Curves:
    """Measurements of one table: each of ``measured`` has the shape (seeds, settings)."""

    title: str
    records: int
    columns: int
    measured: dict[str, NDArray[np.float64]]

    @classmethod
    def of(cls, title: str, records: int, columns: int, found: list[dict[str, list[float]]]) -> Curves:
        """Put the measurements of all seeds together."""
        return cls(title, records, columns, {key: np.array([each[key] for each in found]) for key in found[0]})

    def shown(self, way: str, at: int) -> str:
        """Give mean and standard deviation over seeds."""
        numbers = self.measured[way][:, at]
        return f"{numbers.mean():.3f} ± {numbers.std(ddof=1):.3f}"

    def recovered(self, way: str, at: int, prefix: str = "") -> tuple[float, float] | None:
        """Give the share of the gap between uncorrected and original that a way closes, and its standard error.

        It is a ratio of means over seeds, its error that of the jackknife. None where the gap is below two points.
        """
        a, low, high = (self.measured[key][:, at] for key in (way, f"{prefix}none", f"{prefix}original"))
        if high.mean() - low.mean() < _SMALL:
            return None
        seeds = len(a)
        without = [np.delete(np.stack([a - low, high - low]), each, axis=1).mean(axis=1) for each in range(seeds)]
        if min(bottom for _, bottom in without) <= 0.0:
            return None
        ratios = np.array([top / bottom for top, bottom in without])
        error = float(np.sqrt((seeds - 1) / seeds * ((ratios - ratios.mean()) ** 2).sum()))
        return float((a - low).mean() / (high - low).mean()), error

    def share(self, way: str, at: int, prefix: str = "") -> str:
        """Give the recovered share in words."""
        found = self.recovered(way, at, prefix)
        return "-" if found is None else f"{100 * found[0]:.0f} ± {100 * found[1]:.0f} %"


def print_curves(curves: Curves) -> None:
    """Print one table, aligned."""
    print(f"\n{curves.title}: {curves.records} records, {curves.columns} columns")
    for at, (law, privacy) in enumerate(SETTINGS):
        ways = [way for way in (*_TREES, *_BAYES, *_CHECKS) if way in curves.measured]
        print(
            f"  {law:8s} {privacy:4.0%}  "
            + "  ".join(f"{way} {curves.measured[way][:, at].mean():.3f}" for way in ways)
        )
    print(f"  by class, seconds of CPU: {curves.measured['seconds'].mean():.2f}", flush=True)


def write_report(fresh: Curves, titles: tuple[str, ...], folder: Path, figure: Path, *, quick: bool) -> None:
    """Put one table's measurements into as00.json and write as00.md and the figure from all that it holds."""
    folder.mkdir(parents=True, exist_ok=True)
    name = "as00_quick" if quick else "as00"
    store = folder / f"{name}.json"
    held = json.loads(store.read_text(encoding="utf-8")) if store.exists() else {}
    rounded = {key: np.round(each, 5).tolist() for key, each in fresh.measured.items()}
    held[fresh.title] = {"records": fresh.records, "columns": fresh.columns, "settings": SETTINGS, "measured": rounded}
    _write(store, json.dumps({title: held[title] for title in titles if title in held}, indent=1) + "\n")
    curves = [_read(title, held[title]) for title in titles if title in held]
    _write(folder / f"{name}.md", page(curves))
    if any("true shares" in c.measured for c in curves):
        draw(curves, folder / f"{name}.svg" if quick else figure)


def _read(title: str, document: dict[str, Any]) -> Curves:
    measured = {key: np.array(each) for key, each in document["measured"].items()}
    return Curves(title, document["records"], document["columns"], measured)


def _write(path: Path, text: str) -> None:
    fresh = path.with_name(path.name + ".new")
    fresh.write_text(text, encoding="utf-8")
    fresh.replace(path)


def page(curves: list[Curves]) -> str:
    """Give the results as a page."""
    real, made = (
        [c for c in curves if "true shares" in c.measured],
        [c for c in curves if "true shares" not in c.measured],
    )
    lines = [
        "# AS00: mining randomized records",
        "",
        "`python benchmarks/papers/as00.py`. Accuracy on test rows that were not randomized, mean ± standard deviation",
        "over splits of a real table (" + _seeds(real) + ") or fresh draws of a function (" + _seeds(made) + ").",
        "Privacy is at 95 % confidence. *Recovered* is the share of the gap between uncorrected and original that came",
        "back, ± its standard error; `-` where the gap is below two points. Naive Bayes is compared with naive Bayes.",
        "",
        "## Real tables, numeric columns",
        "",
        *_accuracies(real),
        "",
        *_shares(real),
        "",
        "### Two checks",
        "",
        "*True shares*: the tree by class with every class's true distributions instead of reconstructed ones:",
        "all that is then lost is lost by holding records in the order of noisy values. *Local, all columns*: columns",
        "that were asked about on the way to a node are reconstructed anew there too, although its records were",
        "chosen by them.",
        "",
        "| table | noise | by class | true shares | local | local, all columns |",
        "|---|---|---:|---:|---:|---:|",
        *(
            f"| {c.title} | {law} {privacy:.0%} | "
            + " | ".join(c.shown(way, at) for way in ("by-class", "true shares", "local", "local, all columns"))
            + " |"
            for c in real
            for at, (law, privacy) in enumerate(SETTINGS)
        ),
        "",
        "## The paper's functions",
        "",
        *_accuracies(made),
        "",
        *_shares(made),
        "",
        "## Time",
        "",
        "Seconds of CPU to learn by class, mean: "
        + ", ".join(f"{c.title} {c.measured['seconds'].mean():.2f}" for c in curves)
        + ".",
        "",
    ]
    return "\n".join(lines)


def _seeds(curves: list[Curves]) -> str:
    return ", ".join(sorted({str(len(c.measured["none"])) for c in curves})) or "none"


def _accuracies(curves: list[Curves]) -> list[str]:
    ways = (*_TREES, *_BAYES)
    head = " | ".join([*(f"tree, {_WORDS[w]}" for w in _TREES), *(f"Bayes, {_WORDS[w]}" for w in _BAYES)])
    lines = [f"| table | records | noise | {head} |", "|---|---:|---|" + "---:|" * len(ways)]
    return lines + [
        f"| {c.title} | {c.records:,} | {law} {privacy:.0%} | " + " | ".join(c.shown(way, at) for way in ways) + " |"
        for c in curves
        for at, (law, privacy) in enumerate(SETTINGS)
    ]


def _shares(curves: list[Curves]) -> list[str]:
    lines = ["| recovered | noise | global | by class | local | Bayes, by class |", "|---|---|---:|---:|---:|---:|"]
    return lines + [
        f"| {c.title} | {law} {privacy:.0%} | "
        + " | ".join([*(c.share(way, at) for way in _TREES[2:]), c.share("bayes by-class", at, "bayes ")])
        + " |"
        for c in curves
        for at, (law, privacy) in enumerate(SETTINGS)
    ]


def draw(curves: list[Curves], path: Path) -> None:
    """Draw the accuracy of every way for the real tables."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    real = [c for c in curves if "true shares" in c.measured]
    styles = {
        "none": ("#8a8a8a", "s", "uncorrected"),
        "global": ("#b3541e", "v", "global"),
        "by-class": ("#1b5e8c", "o", "by class"),
        "local": ("#2e7d4f", "D", "local"),
    }
    plain: Any = {"svg.fonttype": "none", "svg.hashsalt": "as00", "font.family": "sans-serif", "font.size": 9}
    with plt.rc_context(plain):
        figure, axes = plt.subplots(1, len(real), figsize=(3.0 * len(real), 3.2), layout="constrained", squeeze=False)
        for axis, c in zip(axes[0], real, strict=True):
            axis.axhline(c.measured["original"].mean(), color="#222222", linestyle="--", linewidth=1, label="original")
            for shift, (way, (color, marker, label)) in enumerate(styles.items()):
                mean, spread = c.measured[way].mean(axis=0), c.measured[way].std(axis=0, ddof=1)
                where = np.arange(len(SETTINGS)) + 0.12 * (shift - 1.5)
                axis.errorbar(where, mean, spread, color=color, marker=marker, markersize=4, linestyle="", label=label)
            axis.set_xticks(range(len(SETTINGS)), [f"{law[0].upper()} {privacy:.0%}" for law, privacy in SETTINGS])
            axis.set_title(c.title)
            axis.grid(axis="y", alpha=0.25)
            axis.spines[["top", "right"]].set_visible(False)
        axes[0, 0].set_ylabel("accuracy of the tree on true rows")
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False)
        fresh = path.with_name(path.name + ".new")
        figure.savefig(fresh, format="svg", metadata={"Date": None})
        plt.close(figure)
    fresh.replace(path)
