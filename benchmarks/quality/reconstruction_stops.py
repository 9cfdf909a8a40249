"""Where the iteration stops, and what the bands hold: both stops beside the best iteration that nobody knows.

Run from the repository root: ``python benchmarks/quality/reconstruction_stops.py [--quick]``.
50 values; nine shapes of the truth, six noises (Gaussian of sd 3, 8 and 15, uniform of reach 10 and 25, keep-or-replace
with 20 %), 1,000, 10,000 and 100,000 records; four draws each, none left out. *Excess* is the total variation at the
stop over the least that any of 3,000 iterations has (below 0.01 counted as 0.01); its geometric mean and 95 % quantile.
*Inside* is the share of the truth inside the 95 % bands of the likelihood stop, by noise and shape.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from threadpoolctl import threadpool_limits

from sfumato.core.distributions.domains import Integers
from sfumato.core.distributions.spec import NoiseSpec
from sfumato.survey.reconstruct import Channel, reconstruct
from sfumato.survey.reconstruct.channel import cut_domain, cut_outputs, summed
from sfumato.survey.reconstruct.iterate import bayes_step

ROOT = Path(__file__).resolve().parents[2]
CELLS, LONGEST, FLOOR = 50, 3_000, 0.01
STOPS = ("likelihood", "chi-square")
NOISES: dict[str, dict[str, Any]] = {
    **{f"Gaussian {sd}": {"name": "gaussian", "sd": sd} for sd in (3, 8, 15)},
    **{f"uniform {reach}": {"name": "uniform", "reach": reach} for reach in (10, 25)},
    "keep 20 %": {"name": "keep-or-replace", "keep": 0.2},
}
Floats = NDArray[np.float64]


def shapes() -> dict[str, Floats]:
    x = np.arange(CELLS)
    raw = {
        "uniform": np.ones(CELLS),
        "Gaussian": np.exp(-(((x - 25) / 8) ** 2) / 2),
        "two peaks": np.exp(-(((x - 12) / 3) ** 2) / 2) + np.exp(-(((x - 36) / 3) ** 2) / 2),
        "Poisson": stats.poisson(8).pmf(x),
        "spike": np.where(x == 10, 1.0, 0.001),
        "triangle": np.minimum(x + 1.0, CELLS - x),
        "plateaus": (x // 10) % 2 + 0.05,
        "block": ((x >= 10) & (x < 35)) + 1e-9,
        "skewed": stats.gamma(2, scale=5).pdf(x + 0.5),
    }
    return {name: shape / shape.sum() for name, shape in raw.items()}


def variation(p: Floats, truth: Floats) -> float:
    return float(np.abs(p - truth).sum() / 2)


def least_error(sent: NDArray[np.int64], spec: NoiseSpec, truth: Floats) -> float:
    cells = cut_domain(spec.domain, spec.operator, None)
    outputs = cut_outputs(cells, spec.operator, sent)
    assert outputs is not None
    channel = Channel(summed(spec.operator, cells.cuts, outputs))
    tails = channel.outputs == len(outputs) + 1
    places = np.searchsorted(outputs, sent, side="right") - (0 if tails else 1)
    counts = np.bincount(places, minlength=channel.outputs).astype(np.float64)[None, :]
    pr = np.full((1, CELLS), 1.0 / CELLS)
    least = variation(pr[0], truth)
    for _ in range(LONGEST):
        pr = bayes_step(counts, channel, pr, channel.mix(pr))
        least = min(least, variation(pr[0], truth))
    return least


def trial(truth: Floats, spec: NoiseSpec, n: int, seed: int) -> dict[str, float]:
    rng = np.random.default_rng([seed, n])
    sent = spec.operator.randomize(rng.choice(CELLS, size=n, p=truth), rng)
    released = spec.decode_output(sent)
    found: dict[str, float] = {"best": least_error(sent, spec, truth)}
    for stop in STOPS:
        made = reconstruct(released, spec, stop=stop, least=0.0)
        found[stop] = variation(made.probability, truth)
        found[f"{stop} inside"] = float(((made.lower <= truth) & (truth <= made.upper)).mean())
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one size, one draw, nothing written")
    chosen = parser.parse_args()
    sizes, draws = ((10_000,), 1) if chosen.quick else ((1_000, 10_000, 100_000), 4)
    domain = Integers(0, CELLS - 1)
    rows: list[dict[str, Any]] = []
    with threadpool_limits(limits=1):
        for noise, law in NOISES.items():
            for shape, truth in shapes().items():
                for n in sizes:
                    for seed in range(draws):
                        found = trial(truth, NoiseSpec(domain, law), n, seed)
                        rows.append({"noise": noise, "shape": shape, "n": n, **found})
            print(noise, file=sys.stderr, flush=True)
    lines = [
        "| stop | mean total variation | excess, geometric mean | excess, 95 % quantile | inside |",
        "|---|---|---|---|---|",
    ]
    for stop in STOPS:
        excess = [max(row[stop], FLOOR) / max(row["best"], FLOOR) for row in rows]
        told = [np.mean([row[stop] for row in rows]), np.exp(np.mean(np.log(excess))), np.quantile(excess, 0.95)]
        inside = 100 * float(np.mean([row[f"{stop} inside"] for row in rows]))
        lines.append(f"| {stop} | {told[0]:.4f} | {told[1]:.2f} | {told[2]:.2f} | {inside:.0f} % |")
    lines += [f"| best iteration | {np.mean([row['best'] for row in rows]):.4f} | 1 | 1 | |", ""]
    lines += [
        f"Inside the bands, {len(rows)} trials:",
        "",
        f"| shape | {' | '.join(NOISES)} |",
        "|---" * (1 + len(NOISES)) + "|",
    ]
    for shape in shapes():
        cells = []
        for noise in NOISES:
            here = [row["likelihood inside"] for row in rows if (row["noise"], row["shape"]) == (noise, shape)]
            cells.append(f"{100 * float(np.mean(here)):.0f} %")
        lines.append(f"| {shape} | {' | '.join(cells)} |")
    print("\n".join(lines))
    if not chosen.quick:
        head = ["# Where the reconstruction stops", "", *(__doc__ or "").strip().splitlines()[3:], ""]
        path = ROOT / "benchmarks" / "results" / "reconstruction_stops.md"
        path.write_text("\n".join([*head, *lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
