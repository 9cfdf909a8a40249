"""The reconstruction beside PyUnfold's iterative Bayesian unfolding, on the same counts and the same matrix.

Run from the repository root: ``python benchmarks/quality/reconstruction.py [--quick] [--pyunfold FOLDER]``.
PyUnfold is not a dependency: ``pip install --no-deps --target FOLDER PyUnfold`` (it needs pandas). Three comparisons,
means over repetitions with seeds 0, 1, 2, ..., one BLAS thread, CPU seconds:

* equal: as many iterations as ours took. The rule is the same, so the estimates must agree.
* default: PyUnfold's own stop (Kolmogorov-Smirnov below 0.01) against ours (likelihood), by total variation to the
  truth; *best* is the least error that any of 2,000 iterations has, which nobody can know.
* bands: share of the truth inside ours (95 %) and inside PyUnfold's estimate +- 1.96 of its statistical
  errors, and the time with them. PyUnfold always propagates errors; ours without bands is beside it.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from threadpoolctl import threadpool_limits

ROOT = Path(__file__).resolve().parents[2]

from sfumato.core.distributions.domains import Integers  # noqa: E402
from sfumato.core.distributions.spec import NoiseSpec  # noqa: E402
from sfumato.survey.reconstruct import Channel, reconstruct, reconstruct_counts  # noqa: E402
from sfumato.survey.reconstruct.channel import cut_domain, cut_outputs, summed  # noqa: E402
from sfumato.survey.reconstruct.iterate import bayes_step  # noqa: E402

Floats = NDArray[np.float64]
LONGEST = 2_000
CELLS = 50


def truths(m: int) -> dict[str, Floats]:
    places = np.arange(m) * 50 / m
    shapes = {
        "Gaussian": np.exp(-(((places - 25) / 8) ** 2) / 2),
        "two peaks": np.exp(-(((places - 12) / 3) ** 2) / 2) + np.exp(-(((places - 36) / 5) ** 2) / 2),
        "Poisson": stats.poisson(8).pmf(np.floor(places)),
    }
    return {name: shape / shape.sum() for name, shape in shapes.items()}


def noises(m: int) -> dict[str, dict[str, Any]]:
    return {
        "Gaussian": {"name": "gaussian", "sd": m / 10},
        "uniform": {"name": "uniform", "reach": m / 5},
        "R2": {"name": "shift-modulo", "reach": m // 10},
        "R1": {"name": "keep-or-replace", "keep": 0.3},
    }


def variation(p: Floats, q: Floats) -> float:
    return float(np.abs(p - q).sum() / 2)


def best_of(counts: Floats, channel: Channel, truth: Floats) -> float:
    pr = np.full((1, len(truth)), 1.0 / len(truth))
    least = variation(pr[0], truth)
    for _ in range(LONGEST):
        pr = bayes_step(counts[None, :], channel, pr, channel.mix(pr))
        least = min(least, variation(pr[0], truth))
    return least


def unfold(counts: Floats, matrix: Floats, iterations: int, stop: float) -> tuple[dict[str, Any], float]:
    from pyunfold import iterative_unfold

    ones, nothing = np.ones(len(matrix)), np.zeros(len(matrix))
    start = time.process_time()
    found = iterative_unfold(
        data=counts, data_err=np.sqrt(counts), response=matrix.T, response_err=np.zeros(matrix.T.shape),
        efficiencies=ones, efficiencies_err=nothing, ts="ks", ts_stopping=stop, max_iter=iterations,
    )  # fmt: skip
    return found, time.process_time() - start


def compare(m: int, truth: Floats, law: dict[str, Any], n: int, seed: int) -> dict[str, float]:
    rng = np.random.default_rng([seed, n, m])
    spec = NoiseSpec(Integers(0, m - 1), law)
    sent = spec.operator.randomize(rng.choice(m, size=n, p=truth), rng)
    cells = cut_domain(spec.domain, spec.operator, m)
    outputs = cut_outputs(cells, spec.operator, sent)
    assert outputs is not None
    channel = Channel(summed(spec.operator, cells.cuts, outputs))
    tails = channel.outputs == len(outputs) + 1
    places = np.searchsorted(outputs, sent, side="right") - (0 if tails else 1)
    counts = np.bincount(places, minlength=channel.outputs).astype(np.float64)
    start = time.process_time()
    ours = reconstruct_counts(counts, channel)
    bare = time.process_time() - start
    start = time.process_time()
    banded = reconstruct(spec.decode_output(sent), spec, least=0.0)
    seconds = time.process_time() - start
    same, same_seconds = unfold(counts, channel.matrix, int(ours.iterations), 1e-300)
    own, _ = unfold(counts, channel.matrix, LONGEST, 0.01)
    low, high = same["unfolded"] - 1.96 * same["stat_err"], same["unfolded"] + 1.96 * same["stat_err"]
    return {
        "iterations": float(ours.iterations),
        "difference": float(np.abs(same["unfolded"] / n - ours.probability).max()),
        "tv": variation(ours.probability, truth),
        "tv theirs": variation(own["unfolded"] / own["unfolded"].sum(), truth),
        "iterations theirs": float(own["num_iterations"]),
        "tv best": best_of(counts, channel, truth),
        "inside": float(((banded.lower <= truth) & (truth <= banded.upper)).mean()),
        "inside theirs": float(((low / n <= truth) & (truth <= high / n)).mean()),
        "seconds": bare,
        "seconds banded": seconds,
        "seconds theirs": same_seconds,
    }


def row(mean: dict[str, float]) -> str:
    """Write the numbers of one case."""
    a = mean
    return " | ".join(
        [
            f"{a['iterations']:.0f} / {a['iterations theirs']:.0f}",
            f"{a['tv']:.3f} | {a['tv theirs']:.3f} | {a['tv'] / a['tv theirs']:.2f} | {a['tv best']:.3f}",
            f"{100 * a['inside']:.0f} % | {100 * a['inside theirs']:.0f} % | {a['difference']:.0e}",
            f"{1e3 * a['seconds']:.1f} | {1e3 * a['seconds banded']:.0f} | {1e3 * a['seconds theirs']:.0f}",
            f"{a['seconds theirs'] / a['seconds']:.0f}",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one size, one repetition, nothing written")
    parser.add_argument("--repeats", type=int, default=3, help="repetitions of each case")
    parser.add_argument("--pyunfold", default=None, help="folder that PyUnfold was installed into")
    chosen = parser.parse_args()
    if chosen.pyunfold:
        sys.path.insert(0, chosen.pyunfold)
    try:
        import pyunfold  # noqa: F401
    except ImportError:
        sys.exit("PyUnfold is not there: pip install --no-deps --target FOLDER PyUnfold, then --pyunfold FOLDER")
    sizes, repeats = ((10_000,), 1) if chosen.quick else ((1_000, 10_000, 100_000), chosen.repeats)
    lines = [
        "| truth | noise | n | iterations ours / theirs | TV ours | TV theirs | ratio | TV best | inside ours | "
        "inside theirs | equal: largest difference | ms ours | ms with bands | ms theirs | time theirs / ours |",
        "|---" * 15 + "|",
    ]
    totals: list[dict[str, float]] = []
    with threadpool_limits(limits=1):
        for shape, truth in truths(CELLS).items():
            for noise, law in noises(CELLS).items():
                for n in sizes:
                    runs = [compare(CELLS, truth, law, n, seed) for seed in range(repeats)]
                    mean = {key: float(np.mean([run[key] for run in runs])) for key in runs[0]}
                    totals.append(mean)
                    lines.append(f"| {shape} | {noise} | {n:,} | {row(mean)} |")
                    print(lines[-1], flush=True)
    error = np.exp(np.mean([np.log(a["tv"] / a["tv theirs"]) for a in totals]))
    faster = np.exp(np.mean([np.log(a["seconds theirs"] / a["seconds"]) for a in totals]))
    banded = np.exp(np.mean([np.log(a["seconds theirs"] / a["seconds banded"]) for a in totals]))
    hint = (
        f"Over {len(totals)} cases of {CELLS} values, {repeats} runs each, geometric means: error ours / theirs "
        f"{error:.2f}; time theirs / ours at equal iterations {faster:.0f} without bands, {banded:.1f} "
        "with bands."
    )
    print(hint)
    if not chosen.quick:
        head = ["# Reconstruction beside PyUnfold", "", *(__doc__ or "").strip().splitlines()[2:], "", hint, ""]
        path = ROOT / "benchmarks" / "results" / "reconstruction.md"
        path.write_text("\n".join([*head, *lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
