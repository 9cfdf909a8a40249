"""AY05 section 4: accuracy and covariance compatibility against the level, static and dynamic (figures 8 to 15).

Run from the repository root: ``python benchmarks/papers/ay05.py [--seeds 20] [--data FOLDER] [--quick]``.
Levels are uniform integers in [a - 4, a]. Each seed is a new split (three quarters train, stratified by class), new
levels and a new condensation; nothing is chosen by seed. Readings of what the paper leaves open:

* Distances are Euclidean on columns standardized with the training rows; Abalone's sex is a one-hot block.
* Ionosphere, Ecoli and Pima are condensed class by class; Ecoli's classes of fewer than 60 records are one class, for
  original and condensed alike, as levels up to 50 need. Abalone has no classes: its response is one more column.
* "Within an accuracy of less than one year" is |predicted rings - true rings| <= 1, rings released as whole numbers.
  The strict reading, the same number of rings, is reported beside it.
* Dynamic condensation sees the training rows in the random order of the split, class by class. *InitNumber*, which the
  paper leaves open, is a quarter of the stratum (``--init-share``) or a, the highest level, where that is more. Levels
  are those of the static run. Records that still wait at the end are in no group and are not released.
* mu is over the numeric attributes of the whole table (class and response left out, and columns that are constant in
  training), each unordered pair once, diagonal included; raw in the table's units, standardized by training rows.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits

from sfumato.core.groups import Groups, concat, summarize
from sfumato.core.groups.generate import generate
from sfumato.core.records import CATEGORY_SCALE, Block, BlockKind, Layout
from sfumato.methods.condense.maintainer import Maintainer
from sfumato.methods.condense.partition import partition

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.data import load_table
from benchmarks.papers.ay05_dynamic import DYNAMIC, dynamic_points, dynamic_verdicts
from benchmarks.papers.ay05_report import ALPHAS, BETA, TABLES, Curves, print_table, write_report

INIT_SHARE = 0.25
"""Share of a stratum that dynamic condensation begins with."""

POOL_BELOW = 60
"""Classes of fewer records are pooled, as levels up to 50 need."""


@dataclass(frozen=True)
class Problem:
    """One table: attributes, the answer to be predicted, and the strata in which it is condensed."""

    numbers: NDArray[np.float64]
    onehot: NDArray[np.float64]
    answer: NDArray[np.float64]
    strata: NDArray[np.int64]
    regression: bool


@dataclass(frozen=True)
class Split:
    """One problem split and standardized with its training rows; the last column of a regression is the response."""

    train: NDArray[np.float64]
    test: NDArray[np.float64]
    answer: NDArray[np.float64]
    wanted: NDArray[np.float64]
    strata: NDArray[np.int64]
    scale: NDArray[np.float64]
    answer_mean: float
    answer_scale: float
    layout: Layout
    regression: bool


def load_problem(name: str, folder: str | None) -> Problem:
    """Read a table: text columns become one-hot blocks, a text or class answer becomes codes."""
    table = load_table(name, folder)
    numbers, onehot = [], []
    for column in table.column_names[:-1]:
        cells = table.column(column).to_numpy()
        if cells.dtype.kind in "OU":
            onehot.append(np.equal.outer(cells, np.unique(cells)) * CATEGORY_SCALE)
        else:
            numbers.append(cells.astype(np.float64))
    last = table.column(table.num_columns - 1).to_numpy()
    regression = name == "abalone"
    answer = last.astype(np.float64) if regression else _pool(last).astype(np.float64)
    return Problem(
        np.stack(numbers, axis=1),
        np.concatenate([np.empty((len(answer), 0)), *onehot], axis=1),
        answer,
        np.zeros(len(answer), dtype=np.int64) if regression else answer.astype(np.int64),
        regression,
    )


def _pool(classes: NDArray[np.generic]) -> NDArray[np.int64]:
    """Code classes 0, 1, ...; those of fewer than POOL_BELOW records share the last code."""
    _, codes, counts = np.unique(classes.astype(str), return_inverse=True, return_counts=True)
    merged = np.where(counts < POOL_BELOW, len(counts), np.arange(len(counts)))
    return np.unique(merged[codes], return_inverse=True)[1]


def split_problem(problem: Problem, seed: int) -> Split:
    """Split at random, three quarters for training, and standardize with the training rows."""
    rows = np.arange(len(problem.answer))
    classes = None if problem.regression else problem.strata
    train, test = train_test_split(rows, test_size=0.25, random_state=seed, stratify=classes)
    mean, scale = problem.numbers[train].mean(axis=0), problem.numbers[train].std(axis=0)
    divisor = np.where(scale > 0.0, scale, 1.0)
    coded = np.concatenate([(problem.numbers - mean) / divisor, problem.onehot], axis=1)
    answer_mean, answer_scale = float(problem.answer[train].mean()), float(problem.answer[train].std())
    values = coded[train]
    if problem.regression:
        response = (problem.answer[train, None] - answer_mean) / answer_scale
        values = np.concatenate([values, response], axis=1)
    return Split(
        values,
        coded[test],
        problem.answer[train],
        problem.answer[test],
        problem.strata[train],
        scale,
        answer_mean,
        answer_scale,
        _layout(problem),
        problem.regression,
    )


def _layout(problem: Problem) -> Layout:
    d, width = problem.numbers.shape[1], problem.onehot.shape[1]
    blocks = [Block(f"x{j}", BlockKind.NUMBER, j, j + 1, (0.0,)) for j in range(d)]
    if width:
        blocks.append(Block("category", BlockKind.CATEGORY, d, d + width, (0.0,) * width))
    if problem.regression:
        blocks.append(Block("response", BlockKind.NUMBER, d + width, d + width + 1, (0.0,)))
    return tuple(blocks)


def accuracy(split: Split, rows: NDArray[np.float64], answer: NDArray[np.float64], *, strict: bool = False) -> float:
    """Give the share of test rows that their nearest row answers rightly: a response within one, or equal if strict."""
    attributes = rows[:, : split.test.shape[1]]
    nearest = NearestNeighbors(n_neighbors=1).fit(attributes).kneighbors(split.test, return_distance=False)[:, 0]
    miss = np.abs(answer[nearest] - split.wanted)
    return float((miss <= (1.0 if split.regression and not strict else 0.0)).mean())


def compatibility(split: Split, rows: NDArray[np.float64], *, raw: bool) -> float:
    """Give mu: the correlation of the entries of original and condensed covariance matrix [AY05, sec. 4]."""
    varying = np.flatnonzero(split.scale > 0.0)
    unit = split.scale[varying] if raw else np.ones(len(varying))
    original = np.cov(split.train[:, varying] * unit, rowvar=False)
    condensed = np.cov(rows[:, varying] * unit, rowvar=False)
    once = np.triu_indices(len(varying))
    return float(np.corrcoef(original[once], condensed[once])[0, 1])


def draw_levels(split: Split, alpha: int, seed: int) -> tuple[NDArray[np.int64], np.random.Generator]:
    """Draw levels in [alpha - 4, alpha], and give the generator to go on with."""
    rng = np.random.default_rng([seed, alpha])
    return rng.integers(alpha - BETA, alpha + 1, size=len(split.train)), rng


def condense(split: Split, alpha: int, seed: int) -> dict[str, float]:
    """Condense the training rows once at levels in [alpha - 4, alpha] and measure everything."""
    levels, rng = draw_levels(split, alpha, seed)
    labels = partition(split.train, levels, split.strata, rng, grouping="paper")
    groups = summarize(split.train, labels, levels)
    classes = split.strata[np.unique(labels, return_index=True)[1]]
    return measure(split, groups, classes, rng) | {"violations": count_violations(labels, levels)}


def maintain(split: Split, alpha: int, seed: int, test: Literal["paper", "strict"], share: float) -> dict[str, float]:
    """Condense the first training rows of each stratum, let the others join one by one, and measure everything."""
    levels, _ = draw_levels(split, alpha, seed)
    rng = np.random.default_rng([seed, alpha, 1])
    parts, classes, pending = [], [], 0
    for stratum in np.unique(split.strata):
        rows = np.flatnonzero(split.strata == stratum)
        first = max(alpha, int(np.ceil(share * len(rows))))
        begin, more = rows[:first], rows[first:]
        maintainer = Maintainer(split.train.shape[1], k=alpha - BETA, split=test, track=False)
        labels = partition(split.train[begin], levels[begin], np.zeros(len(begin), np.int64), rng, grouping="paper")
        maintainer.start(split.train[begin], levels[begin], labels)
        maintainer.absorb(split.train[more], levels[more])
        parts.append(maintainer.groups)
        classes.append(np.full(len(maintainer.ids), stratum))
        pending += maintainer.pending
    groups = concat(*parts)
    short = float((groups.count < groups.level_max).mean())
    found = measure(split, groups, np.concatenate(classes), rng)
    return found | {"pending": pending / len(split.train), "short": short}


def measure(split: Split, groups: Groups, classes: NDArray[np.int64], rng: np.random.Generator) -> dict[str, float]:
    """Draw rows from groups, one class a group, and measure them."""
    rows = generate(groups, split.layout, rng)
    if split.regression:
        answer = np.rint(rows[:, -1] * split.answer_scale + split.answer_mean)
    else:
        answer = np.repeat(classes, groups.count).astype(np.float64)
    total = float(((split.train - split.train.mean(axis=0)) ** 2).sum())
    return {
        "accuracy": accuracy(split, rows, answer),
        "strict": accuracy(split, rows, answer, strict=True) if split.regression else np.nan,
        "mu_raw": compatibility(split, rows, raw=True),
        "mu_std": compatibility(split, rows, raw=False),
        "loss": groups.ssq / total,
        "group_size": float(groups.count.mean()),
    }


def count_violations(labels: NDArray[np.int64], levels: NDArray[np.int64]) -> int:
    """Count the records whose group is smaller than their level."""
    return int((np.bincount(labels)[labels] < levels).sum())


def run_table(name: str, folder: str | None, seeds: int, share: float) -> Curves:
    """Measure the curves of one table over all seeds and levels; those of dynamic condensation have a prefix."""
    problem = load_problem(name, folder)
    measured: dict[str, NDArray[np.float64]] = {}
    baseline, strict = np.empty(seeds), np.full(seeds, np.nan)
    for seed in range(seeds):
        split = split_problem(problem, seed)
        baseline[seed] = accuracy(split, split.train, split.answer)
        if split.regression:
            strict[seed] = accuracy(split, split.train, split.answer, strict=True)
        for place, alpha in enumerate(ALPHAS):
            found = condense(split, alpha, seed)
            for prefix, test in DYNAMIC.items():
                joined = maintain(split, alpha, seed, test, share)
                found |= {f"{prefix}{key}": value for key, value in joined.items()}
            for key, value in found.items():
                measured.setdefault(key, np.empty((seeds, len(ALPHAS))))[seed, place] = value
    return Curves(name, baseline, strict, measured)


def check_levels(folder: str | None, seeds: int) -> int:
    """Group every table at every level and seed, measure nothing else, and count the violations."""
    violations = runs = 0
    for name in TABLES:
        problem = load_problem(name, folder)
        for seed in range(seeds):
            split = split_problem(problem, seed)
            for alpha in ALPHAS:
                levels, rng = draw_levels(split, alpha, seed)
                violations += count_violations(partition(split.train, levels, split.strata, rng), levels)
                runs += 1
    print(f"{runs} condensations, records in a group smaller than their level: {violations}")
    return violations


def main() -> int:
    """Run the benchmark; the exit status is 1 if any group is smaller than a level inside it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20, help="number of splits, from seed 0 on (default 20)")
    parser.add_argument("--data", help="folder of the tables (default: SFUMATO_DATA, else OpenML)")
    parser.add_argument("--level-check", action="store_true", help="only count violations of levels")
    parser.add_argument("--init-share", type=float, default=INIT_SHARE, help="of a stratum, before records arrive")
    parser.add_argument("--quick", action="store_true", help="two splits, written to a temporary folder")
    options = parser.parse_args()
    seeds = 2 if options.quick else options.seeds
    began = time.perf_counter()
    with threadpool_limits(limits=1):
        if options.level_check:
            return int(check_levels(options.data, seeds) > 0)
        curves = []
        for name in TABLES:
            curves.append(run_table(name, options.data, seeds, options.init_share))
            print_table(curves[-1])
    results = Path(tempfile.mkdtemp()) if options.quick else Path(__file__).resolve().parents[1] / "results"
    violations = write_report(curves, results, dynamic_verdicts(curves), dynamic_points(curves))
    print(f"\n{time.perf_counter() - began:.0f} s on one thread; written to {results}")
    return int(violations > 0)


if __name__ == "__main__":
    sys.exit(main())
