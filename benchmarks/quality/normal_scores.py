"""Condensation of numbers as they are, and of their normal scores, in pairs over tables and splits.

Run from the repository root: ``python benchmarks/quality/normal_scores.py [--splits N] [--k K]``. Half of a table is
inside, at most 800 people; use, leak and marginals are those of ``frontier_judge.py``. Writes
benchmarks/results/normal_scores.md.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

import frontier_judge as judging  # noqa: E402
import numpy as np  # noqa: E402
import pyarrow as pa  # noqa: E402
from frontier import TABLES, Table  # noqa: E402
from numpy.typing import NDArray  # noqa: E402
from scipy.stats import t as student  # noqa: E402

import sfumato as sf  # noqa: E402
from benchmarks.data import load_table  # noqa: E402
from sfumato.methods.condense import SCORES  # noqa: E402

INSIDE = 800
MORE = {
    "boston": Table(lambda: load_table("boston_housing"), ""),
    "census": Table(lambda: load_table("census_casc"), ""),
    "tarragona": Table(lambda: load_table("tarragona_casc"), ""),
}
NAMES = ("concrete", "boston", "census", "tarragona", "abalone", "magic", "pima", "german", "patients", "adult")
FIGURES = ("use", "linear", "leak", "marginals", "pairs")

_TEXT = """# Condensation of normal scores

`python benchmarks/quality/normal_scores.py`: `condense` with k = {k}, of numbers as they are (`--scores plain`, the
papers') and of their normal scores (`--scores normal`), half of a table inside (at most {inside} people), {splits}
splits. Use, leak and marginals as in [the frontier](frontier.md). Difference: normal less plain, in pairs, with half of
a 95 % interval over the splits; over all tables, over the tables' means. Less leak and smaller marginals are better.

| table | use plain | normal | difference | leak plain | normal | difference | marginals plain | normal |
|---|---|---|---|---|---|---|---|---|
{lines}
"""


def split(name: str, seed: int) -> tuple[pa.Table, pa.Table, judging.Columns]:
    """People inside and outside, and what the columns are; the same people for every seed of a table."""
    chosen = (TABLES | MORE)[name]
    table = chosen.load()
    target = chosen.target or table.column_names[-1]
    if chosen.classes:
        place = table.column_names.index(target)
        table = table.set_column(place, target, table[target].cast(pa.string()))
    table = table.take(np.random.default_rng(99).permutation(table.num_rows)[: 2 * INSIDE])
    columns = judging.Columns.of(table, target)
    order, half = np.random.default_rng(seed).permutation(table.num_rows), table.num_rows // 2
    return table.take(order[:half]), table.take(order[half : 2 * half]), columns


def measure(name: str, k: int, seed: int) -> list[list[float]]:
    """Figures of plain and of normal scores on one split; a column that was dropped is what most people have."""
    inside, outside, columns = split(name, seed)
    found = []
    for scores in SCORES:
        made = sf.sanitize(
            inside, sf.Condensation(k=k, scores=scores), target=columns.target, report=False, seed=seed
        ).table
        made = judging.with_dropped(made, inside)
        figures = judging.quick_judge(*(judging.numbers(t, columns) for t in (made, inside, outside)), columns, seed)
        found.append([figures[each] for each in FIGURES])
    return found


def within(differences: NDArray[np.float64]) -> str:
    """Mean and half of a 95 % interval."""
    half = student.ppf(0.975, len(differences) - 1) * differences.std(ddof=1) / np.sqrt(len(differences))
    return f"{differences.mean():+.3f} ± {half:.3f}"


def main() -> None:
    """Measure all tables, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--k", type=int, default=25)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    lines, means = [], []
    use, leak, marginals = (FIGURES.index(each) for each in ("use", "leak", "marginals"))
    for name in NAMES:
        found = np.array([measure(name, asked.k, seed) for seed in range(asked.splits)])  # split, way, figure
        plain, normal = found.mean(axis=0)
        means.append(normal - plain)
        apart = found[:, 1] - found[:, 0]
        lines.append(
            f"| {name} | {plain[use]:.3f} | {normal[use]:.3f} | {within(apart[:, use])} | {plain[leak]:.3f} | "
            f"{normal[leak]:.3f} | {within(apart[:, leak])} | {plain[marginals]:.3f} | {normal[marginals]:.3f} |"
        )
        print(lines[-1], flush=True)
    over = np.array(means)
    lines.append(
        f"| all {len(NAMES)} | | | {within(over[:, use])} | | | {within(over[:, leak])} | | "
        f"{within(over[:, marginals])} |"
    )
    text = _TEXT.format(k=asked.k, inside=INSIDE, splits=asked.splits, lines="\n".join(lines))
    (ROOT / "benchmarks" / "results" / "normal_scores.md").write_text(text)


if __name__ == "__main__":
    main()
