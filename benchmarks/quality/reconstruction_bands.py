"""How often the bands of a reconstruction hold the truth: laws x shapes x sizes, and real columns.

Run from the repository root: ``python benchmarks/quality/reconstruction_bands.py [--quick] [--draws N] [--workers N]``.
Made columns: eight shapes of the truth, ten laws, 500, 5,000 and 50,000 records of 24 values. Then a column made like
the incomes of a housing table (20,640 rows, lognormal, cut off at the top, steps of 0.0001) and real columns of the
shared tables (``SFUMATO_DATA``), all in 20 intervals: Laplace noise as ``--method randomize --epsilon 2`` makes it, and
keep-or-replace with 50 % (at most 20,000 rows); there the truth is the share of the column's own rows in each interval,
so that only the noise is random. 95 % bands; a null band counts as none, and their share is given. Nothing was tuned on
these draws; the radius of the chi-square and the number of parts were chosen on other seeds of like shapes, and on none
of the real columns.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from threadpoolctl import threadpool_limits

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.data import load_table  # noqa: E402
from sfumato.core.distributions.domains import Integers, Labels, Reals  # noqa: E402
from sfumato.core.distributions.spec import NoiseSpec  # noqa: E402
from sfumato.survey.reconstruct import reconstruct  # noqa: E402

SIZES = (500, 5_000, 50_000)
VALUES = 24


def laws() -> dict[str, dict[str, Any]]:
    """Laws by name."""
    shift = {"name": "shift-modulo", "reach": 3}
    return {
        "Gaussian 2": {"name": "gaussian", "sd": 2},
        "Gaussian 7": {"name": "gaussian", "sd": 7},
        "uniform 5": {"name": "uniform", "reach": 5},
        "Laplace, epsilon 2": {"name": "laplace", "scale": (VALUES - 1) / 2},
        "keep 50 %": {"name": "keep-or-replace", "keep": 0.5},
        "keep 15 %": {"name": "keep-or-replace", "keep": 0.15},
        "shift 3": shift,
        "mixture": {"name": "mixture", "weight": 0.5, "of": shift},
        "subset, epsilon 1": {"name": "subset", "epsilon": 1},
        "interval": {"name": "interval", "edges": list(range(4, VALUES, 4))},
    }


COLUMNS = {
    "adult_train": ("age", "capital_gain", "hours_per_week"),
    "magic_gamma": ("fLength", "fAlpha"),
    "abalone": ("whole_weight", "rings"),
    "census_casc": ("FEDTAX", "TAXINC"),
    "pima_diabetes": ("insulin", "age"),
}
Floats = NDArray[np.float64]


def shapes(values: int) -> dict[str, Floats]:
    """Distributions by name."""
    place = np.arange(values)
    x = place * 40 / values
    raw = {
        "uniform": np.ones(values),
        "normal": np.exp(-(((x - 20) / 6) ** 2) / 2),
        "two peaks": np.exp(-(((x - 10) / 2.5) ** 2) / 2) + np.exp(-(((x - 29) / 2.5) ** 2) / 2),
        "plateaus": (x // 8) % 2 + 0.05,
        "spike": np.where(place == values // 5, 1.0, 0.001),
        "heavily skewed": stats.lognorm(1.1, scale=3).pdf(x + 0.5),
        "zero-inflated": np.where(place == 0, 0.6, 0.4 * stats.gamma(3, scale=4).pdf(x)),
        "near-empty": np.where(place % 7 == 3, 1.0, 1e-4),
    }
    return {name: shape / shape.sum() for name, shape in raw.items()}


def inside(found: Any, truth: Floats) -> tuple[float, float, float]:
    """Share of the bands that hold the truth, share of null bands, mean width."""
    known = ~np.isnan(found.upper)
    held = (found.lower <= truth + 1e-12) & (truth <= found.upper + 1e-12)
    width = float((found.upper - found.lower)[known].mean()) if known.any() else float("nan")
    return float(held[known].mean()), float(1.0 - known.mean()), width


def made(law: dict[str, Any], truth: Floats, n: int, seed: int) -> tuple[float, float, float]:
    rng = np.random.default_rng([seed, n, 23])
    values = len(truth)
    drawn = rng.choice(values, size=n, p=truth)
    if law["name"] == "subset":
        spec = NoiseSpec(Labels(tuple(f"v{place}" for place in range(values))), law)
        released = spec.decode_output(spec.operator.randomize(drawn, rng))
    else:
        spec = NoiseSpec(Integers(0, values - 1), law)
        released = spec.randomize(drawn, rng)
    found = reconstruct(released, spec, least=0.0)
    return inside(found, np.add.reduceat(truth, found.cells.cuts[:-1]))


def incomes() -> Floats:
    """A column like the incomes of a housing table, in tens of thousands: skewed, cut off at 15.0001."""
    rng = np.random.default_rng(1990)
    return np.clip(np.round(rng.lognormal(np.log(3.5), 0.5, 20_640), 4), 0.4999, 15.0001)


def real_columns() -> dict[str, Floats]:
    return {"incomes, made": incomes()} | {
        f"{name} {column}": load_table(name).column(column).to_numpy().astype(np.float64)
        for name, columns in COLUMNS.items()
        for column in columns
    }


def real(values: Floats, law: str, seed: int) -> tuple[float, float, float]:
    rng = np.random.default_rng([seed, 29])
    if (values.min(), values.max()) == (0.4999, 15.0001):
        domain, numbers = Reals(0.4999, 15.0001, 0.0001), values
    else:
        domain, numbers = Reals(0.0, 1.0, 0.0001), (values - values.min()) / np.ptp(values)  # the range as declared
    numbers = numbers[:20_000] if law == "keep 50 %" else numbers
    chosen = {"name": "laplace", "scale": (domain.high - domain.low) / 2} if law == "Laplace, epsilon 2" else {
        "name": "keep-or-replace", "keep": 0.5,
    }  # fmt: skip
    spec = NoiseSpec(domain, chosen)
    found = reconstruct(spec.randomize(numbers, rng), spec, intervals=20, least=0.0)
    cell = np.searchsorted(found.cells.cuts, domain.encode(numbers), side="right") - 1
    return inside(found, np.bincount(cell, minlength=20) / len(numbers))


def told(runs: list[tuple[float, float, float]]) -> str:
    held, null, width = np.mean(runs, axis=0)
    return f"{100 * held:.0f} %" + (f" ({100 * null:.0f} % null)" if null else "") + f", {width:.2f}"


def run(task: tuple[str, str, Any, int]) -> list[tuple[float, float, float]]:
    """All draws of one cell of the tables."""
    row, law, size, draws = task
    with threadpool_limits(limits=1):
        if size is None:
            column = real_columns()[row]
            return [real(column, law, seed) for seed in range(draws)]
        truth = shapes(VALUES)[row]
        return [made(laws()[law], truth, size, seed) for seed in range(draws)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one size, two draws, nothing written")
    parser.add_argument("--draws", type=int, default=30)
    parser.add_argument("--workers", type=int, default=1)
    chosen = parser.parse_args()
    sizes, draws = ((5_000,), 2) if chosen.quick else (SIZES, chosen.draws)
    columns = {name: len(column) for name, column in real_columns().items()}
    sections: list[tuple[Any, list[str], list[str]]] = [(size, list(shapes(VALUES)), list(laws())) for size in sizes]
    sections.append((None, list(columns), ["Laplace, epsilon 2", "keep 50 %"]))
    tasks = [(row, law, size, draws) for size, rows, names in sections for row in rows for law in names]
    with ProcessPoolExecutor(chosen.workers, mp_context=get_context("spawn")) as pool:
        every = dict(zip(tasks, pool.map(run, tasks), strict=True))
    lines = ["Each cell: share of bands that hold the truth, mean width.", ""]
    for size, rows, names in sections:
        head = "column | rows" if size is None else f"{size:,} records"
        lines += [f"| {head} | {' | '.join(names)} |", "|---" * (len(names) + 1 + (size is None)) + "|"]
        for row in rows:
            cells = " | ".join(told(every[row, law, size, draws]) for law in names)
            lines.append(f"| {row} | {cells} |" if size is not None else f"| {row} | {columns[row]:,} | {cells} |")
        lines.append("")
    means = {task: float(np.mean([each[0] for each in runs])) for task, runs in every.items()}
    least = min(means, key=lambda task: means[task])
    null = float(np.mean([each[1] for runs in every.values() for each in runs]))
    below = sum(mean < 0.88 for mean in means.values())
    summary = (
        f"Over all {len(means)} cells of the tables {100 * np.mean(list(means.values())):.1f} % of the bands hold the "
        f"truth; least {100 * means[least]:.0f} % ({', '.join(str(each) for each in least[:3] if each)}); {below} "
        f"cells below 88 %; null {100 * null:.1f} %. {draws} draws each."
    )
    print("\n".join([summary, *lines]))
    if not chosen.quick:
        commit = subprocess.run(
            ["git", "log", "-1", "--format=%h of %cs"], cwd=ROOT, capture_output=True, text=True, check=False
        ).stdout.strip()
        head = ["# Bands of a reconstruction", "", *(__doc__ or "").strip().splitlines()[3:], "", summary, ""]
        path = ROOT / "benchmarks" / "results" / "reconstruction_bands.md"
        path.write_text("\n".join([*head, *lines, f"Code: {commit}.", ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
