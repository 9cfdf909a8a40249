"""How often the bands of a reconstruction hold the truth: laws x shapes x sizes, and real columns.

Run from the repository root: ``python benchmarks/quality/reconstruction_bands.py [--quick] [--draws N]``.
Made columns: 40 values, eight shapes of the truth, eight laws, 500, 5,000 and 50,000 records. Real columns of the
shared tables (``SFUMATO_DATA``), 20 intervals: Laplace noise as ``--method randomize --epsilon 2`` makes it, and
keep-or-replace with 50 %; the truth is the share of the table's own rows in each interval, so that only the noise is
random. 95 % bands; a null band counts as none, and their share is told. Nothing was tuned on these draws; the radius of
the chi-square and the number of parts were chosen on other seeds of like shapes, and on none of the real columns.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from threadpoolctl import threadpool_limits

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.data import load_table  # noqa: E402
from sfumato.core.laws.domains import Integers, Reals  # noqa: E402
from sfumato.core.laws.spec import NoiseSpec  # noqa: E402
from sfumato.mine.reconstruct import reconstruct  # noqa: E402

CELLS = 40
SIZES = (500, 5_000, 50_000)
LAWS: dict[str, dict[str, Any]] = {
    "Gaussian 3": {"name": "gaussian", "sd": 3},
    "Gaussian 12": {"name": "gaussian", "sd": 12},
    "uniform 8": {"name": "uniform", "reach": 8},
    "Laplace, epsilon 2": {"name": "laplace", "scale": 19.5},
    "keep 50 %": {"name": "keep-or-replace", "keep": 0.5},
    "keep 15 %": {"name": "keep-or-replace", "keep": 0.15},
    "shift 4": {"name": "shift-modulo", "reach": 4},
    "mixture": {"name": "mixture", "weight": 0.5, "of": {"name": "shift-modulo", "reach": 4}},
}
COLUMNS = {
    "adult_train": ("age", "capital_gain", "hours_per_week"),
    "magic_gamma": ("fLength", "fAlpha"),
    "abalone": ("whole_weight", "rings"),
    "census_casc": ("FEDTAX", "TAXINC"),
    "pima_diabetes": ("insulin", "age"),
}
Floats = NDArray[np.float64]


def shapes() -> dict[str, Floats]:
    x = np.arange(CELLS)
    raw = {
        "uniform": np.ones(CELLS),
        "normal": np.exp(-(((x - 20) / 6) ** 2) / 2),
        "two peaks": np.exp(-(((x - 10) / 2.5) ** 2) / 2) + np.exp(-(((x - 29) / 2.5) ** 2) / 2),
        "plateaus": (x // 8) % 2 + 0.05,
        "spike": np.where(x == 8, 1.0, 0.001),
        "heavily skewed": stats.lognorm(1.1, scale=3).pdf(x + 0.5),
        "zero-inflated": np.where(x == 0, 0.6, 0.4 * stats.gamma(3, scale=4).pdf(x)),
        "near-empty": np.where(x % 7 == 3, 1.0, 1e-4),
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
    spec = NoiseSpec(Integers(0, CELLS - 1), law)
    return inside(reconstruct(spec.randomize(rng.choice(CELLS, size=n, p=truth), rng), spec, least=0.0), truth)


def real_columns() -> dict[str, Floats]:
    return {
        f"{name} {column}": load_table(name).column(column).to_numpy().astype(np.float64)
        for name, columns in COLUMNS.items()
        for column in columns
    }


def real(values: Floats, law: str, seed: int) -> tuple[float, float, float]:
    rng = np.random.default_rng([seed, 29])
    scaled = (values - values.min()) / np.ptp(values)  # the range is taken as declared
    domain = Reals(0.0, 1.0, 0.0001)
    chosen = {"name": "laplace", "scale": (domain.high - domain.low) / 2} if law == "Laplace, epsilon 2" else {
        "name": "keep-or-replace", "keep": 0.5,
    }  # fmt: skip
    spec = NoiseSpec(domain, chosen)
    found = reconstruct(spec.randomize(scaled, rng), spec, intervals=20, least=0.0)
    truth = np.bincount(np.searchsorted(found.cells.cuts, domain.encode(scaled), side="right") - 1, minlength=20) / len(
        values
    )
    return inside(found, truth)


def told(runs: list[tuple[float, float, float]]) -> str:
    held, null, width = np.mean(runs, axis=0)
    return f"{100 * held:.0f} %" + (f" ({100 * null:.0f} % null)" if null else "") + f", {width:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one size, two draws, nothing written")
    parser.add_argument("--draws", type=int, default=12)
    chosen = parser.parse_args()
    sizes, draws = ((5_000,), 2) if chosen.quick else (SIZES, chosen.draws)
    began = time.process_time()
    every: list[tuple[str, list[tuple[float, float, float]]]] = []
    lines = ["Each cell: share of bands that hold the truth, mean width.", ""]
    with threadpool_limits(limits=1):
        for n in sizes:
            lines += [f"| {n:,} records | {' | '.join(LAWS)} |", "|---" * (len(LAWS) + 1) + "|"]
            for shape, truth in shapes().items():
                row = []
                for law, form in LAWS.items():
                    runs = [made(form, truth, n, seed) for seed in range(draws)]
                    every.append((f"{shape}, {law}, {n:,}", runs))
                    row.append(told(runs))
                lines.append(f"| {shape} | {' | '.join(row)} |")
                print(lines[-1], flush=True)
            lines.append("")
        lines += ["| real column | rows | Laplace, epsilon 2 | keep 50 % |", "|---|---|---|---|"]
        for name, values in real_columns().items():
            row = []
            for law in ("Laplace, epsilon 2", "keep 50 %"):
                runs = [real(values, law, seed) for seed in range(draws)]
                every.append((f"{name}, {law}", runs))
                row.append(told(runs))
            lines.append(f"| {name} | {len(values):,} | {' | '.join(row)} |")
            print(lines[-1], flush=True)
    means = {name: float(np.mean([run[0] for run in runs])) for name, runs in every}
    least = min(means, key=lambda name: means[name])
    null = float(np.mean([run[1] for _, runs in every for run in runs]))
    below = sum(mean < 0.88 for mean in means.values())
    summary = (
        f"Over all {len(means)} cells of the tables {100 * np.mean(list(means.values())):.1f} % of the bands hold the "
        f"truth; least {100 * means[least]:.0f} % ({least}); {below} cells below 88 %; null {100 * null:.1f} %. "
        f"{draws} draws each, {time.process_time() - began:.0f} CPU seconds."
    )
    print(summary)
    if not chosen.quick:
        commit = subprocess.run(
            ["git", "log", "-1", "--format=%h of %cs"], cwd=ROOT, capture_output=True, text=True, check=False
        ).stdout.strip()
        head = ["# Bands of a reconstruction", "", *(__doc__ or "").strip().splitlines()[3:], "", summary, ""]
        path = ROOT / "benchmarks" / "results" / "reconstruction_bands.md"
        path.write_text("\n".join([*head, *lines, "", f"Code: {commit}.", ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
