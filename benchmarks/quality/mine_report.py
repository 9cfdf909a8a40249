"""Writes what `mine_groups` measured: every number as csv, tables and a verdict as markdown."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

__all__ = ["write_results"]

Row = dict[str, str | int | float]
Series = dict[tuple[str, str, int, str, str], NDArray[np.float64]]
NAMES = {"pima_diabetes": "Pima", "wdbc": "WDBC"}
CLEAR = 2.0
"""Standard errors that a difference must exceed to be called clear."""
TIE = 1e-5
"""Means nearer than this are equal: the csv has six digits."""

RARE_TREATMENTS = {
    ("classes", "accuracy"): (
        ["original 1-nn", "original 5-nn"],
        ["synthetic 1-nn", "synthetic 5-nn", "groups, centroid", "groups, density"],
    ),
    ("classes", "accuracy with the class as a block"): (
        ["original 1-nn", "original 5-nn"],
        ["block: synthetic 1-nn", "block: synthetic 5-nn", "block: groups, centroid", "block: groups, density"],
    ),
    ("clusters", "inertia ratio"): (["original again"], ["synthetic", "groups", "groups, cut"]),
    ("clusters", "agreement"): (["original again"], ["synthetic", "groups", "groups, cut"]),
    ("mixtures", "difference"): (["original again", "one Gaussian"], ["synthetic", "groups", "groups, cut"]),
}

DUELS = [
    ("classes", "accuracy", "groups, density", "synthetic 1-nn", 1),
    ("classes", "accuracy", "groups, density", "synthetic 5-nn", 1),
    ("classes", "accuracy", "groups, centroid", "synthetic 1-nn", 1),
    ("classes", "accuracy", "groups, density", "groups, centroid", 1),
    ("classes", "accuracy", "groups, density", "original 1-nn", 1),
    ("classes", "accuracy", "groups, density", "original 5-nn", 1),
    ("classes", "accuracy", "block: groups, density", "block: synthetic 1-nn", 1),
    ("classes", "accuracy", "block: groups, density", "block: synthetic 5-nn", 1),
    ("classes", "accuracy", "block: groups, density", "block: groups, centroid", 1),
    ("classes", "accuracy", "block: groups, density", "original 5-nn", 1),
    ("clusters", "inertia ratio", "groups", "synthetic", -1),
    ("clusters", "inertia ratio", "groups, cut", "synthetic", -1),
    ("clusters", "agreement", "groups", "synthetic", 1),
    ("clusters", "agreement", "groups, cut", "synthetic", 1),
    ("mixtures", "difference", "groups", "synthetic", 1),
    ("mixtures", "difference", "groups, cut", "synthetic", 1),
]


def write_results(found: list[Row], seeds: int, folder: Path) -> None:
    """Write mine_groups.csv and mine_groups.md."""
    columns = ["job", "table", "k", "way", "measure", "seed", "value"]
    with (folder / "mine_groups.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows({**row, "value": f"{row['value']:.6g}"} for row in found)
    series = _series(found)
    parts = [_HEAD.format(seeds=seeds), "## Verdict\n", _verdict(series, seeds), _noisy(series), _seconds(series)]
    for (job, measure), (free, by_size) in RARE_TREATMENTS.items():
        parts.append(f"## {job.capitalize()}: {measure}\n")
        parts.append(_table(series, job, measure.split(" with ")[0], free, by_size))
    (folder / "mine_groups.md").write_text("\n".join(parts), encoding="utf-8")


def _series(found: list[Row]) -> Series:
    """Gather the values of each point in the order of the seeds."""
    gathered: dict[tuple[str, str, int, str, str], list[float]] = {}
    for row in found:
        key = (str(row["job"]), str(row["table"]), int(row["k"]), str(row["way"]), str(row["measure"]))
        gathered.setdefault(key, []).append(float(row["value"]))
    return {key: np.asarray(values) for key, values in gathered.items()}


def _points(series: Series, job: str, way: str, measure: str) -> list[tuple[str, int]]:
    return [(t, k) for j, t, k, w, m in series if (j, w, m) == (job, way, measure)]


def _gains(series: Series, duel: tuple[str, str, str, str, int]) -> dict[tuple[str, int], NDArray[np.float64]]:
    """Give, for each table and size, the first way less the second in the good direction, one number for each seed."""
    job, measure, first, second, sign = duel
    gains = {}
    for table, k in _points(series, job, first, measure):
        at = 0 if second.startswith("original") else k
        gains[table, k] = sign * (series[job, table, k, first, measure] - series[job, table, at, second, measure])
    return gains


def _verdict(series: Series, seeds: int) -> str:
    """Count, for each pair of ways, at how many points the first is better, clearly better, clearly worse."""
    lines = [
        "| measure | first | second | points | better | clearly | clearly worse | median gain | where it is worse |",
        "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    for duel in DUELS:
        gains = _gains(series, duel)
        mean = {point: float(gain.mean()) for point, gain in gains.items()}
        error = {point: float(gain.std(ddof=1)) * (1.0 / seeds + 1.0 / 3.0) ** 0.5 for point, gain in gains.items()}
        clear = sum(mean[p] > CLEAR * error[p] for p in mean)
        worse = sum(mean[p] < -CLEAR * error[p] for p in mean)
        low = sorted((p for p in mean if mean[p] < -TIE), key=lambda point: mean[point])
        said = ", ".join(f"{_name(t)} {k}: {mean[t, k]:+.3f}" for t, k in low[:4]) + (" ..." if len(low) > 4 else "")
        lines.append(
            f"| {' | '.join(duel[1:4])} | {len(mean)} | {sum(m > TIE for m in mean.values())} | {clear} | {worse} "
            f"| {np.median(list(mean.values())):+.4f} | {said or 'nowhere'} |"
        )
    return "\n".join(lines) + "\n"


def _noisy(series: Series) -> str:
    """Name the tables whose mixtures differ more from seed to seed than from one Gaussian: nothing follows there."""
    names = []
    for table in {t: None for t, _ in _points(series, "mixtures", "original again", "difference")}:
        again = series["mixtures", table, 0, "original again", "difference"]
        one = series["mixtures", table, 0, "one Gaussian", "difference"]
        if again.std(ddof=1) > abs(one.mean()):
            names.append(_name(table))
    return (
        "Mixtures say nothing about tables where the original with another seed moves more than one Gaussian is away: "
        f"{', '.join(names) or 'none'}.\n"
    )


def _seconds(series: Series) -> str:
    """Say how long mining took, generation and grouping not counted."""
    said = []
    for job in ("clusters", "mixtures"):
        ways = {}
        for way in ("groups", "groups, cut", "synthetic"):
            points = _points(series, job, way, "seconds")
            ways[way] = sum(float(series[job, t, k, way, "seconds"].mean()) for t, k in points)
        said.append(f"{job}: " + ", ".join(f"{way} {total:.2f} s" for way, total in ways.items()))
    return (
        f"CPU seconds of mining, summed over tables and sizes, grouping and generating left out: {'; '.join(said)}.\n"
    )


def _table(series: Series, job: str, measure: str, free: list[str], by_size: list[str]) -> str:
    head = "| table | k | " + " | ".join(free + by_size) + " |"
    lines = [head, "| --- | ---: |" + " ---: |" * len(free + by_size)]
    for table, k in _points(series, job, by_size[0], measure):
        cells = [_cell(series[job, table, 0, way, measure]) for way in free]
        cells += [_cell(series[job, table, k, way, measure]) for way in by_size]
        lines.append(f"| {_name(table)} | {k} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _cell(values: NDArray[np.float64]) -> str:
    return f"{values.mean():.3f} ± {values.std(ddof=1):.3f}"


def _name(table: str) -> str:
    return NAMES.get(table, table.capitalize())


_HEAD = """# Mining groups, the synthetic table, the original

Written by `benchmarks/quality/mine_groups.py`; every number is in `mine_groups.csv`. Mean ± standard deviation over
{seeds} seeds; a seed is a new split (three quarters train), a new grouping (compact, every level k) and new synthetic
rows, and none was left out. Sizes that leave too few groups are not run.
What is measured stands in the script's first lines.

A gain is the first way minus the second, in the direction that is good. It is called clear above 2 standard errors of
the paired difference, which allow for overlapping splits: sd * sqrt(1/seeds + 1/3) (Nadeau and Bengio, 2003).
The kind of rule behind `GroupNeighbours` was settled on ten tables, these three among them (three to six splits); its
shrinkage on the seven others alone.
"""
