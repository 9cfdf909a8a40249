"""How wide the bands of a reconstruction are beside the narrowest that any honest band can be.

Run from the repository root: ``python benchmarks/quality/reconstruction_widths.py [--draws N]``.
Without smoothness taken for granted, a 95 % band that holds for every distribution cannot be shorter on average, at a
given truth, than 0.95 E[w(z - Z) | Z <= z], z the 95 % quantile and w(d) the range of the cell over all distributions
whose chi-square from the truth is at most d^2 [Armstrong, Kolesar: Optimal inference in a class of regression models,
2018, theorem 3.3, in the Gaussian limit of the counts; below 1 is the chance of few draws]. *Fisher* is 2 * 1.96
deviations of the plain unbiased solution, which may leave 0 to 1: beside it one sees what it is worth that
probabilities are not below 0. 24 values, 5,000 records, every fifth value. Nothing was tuned here.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path

import numpy as np
from scipy.stats import norm
from threadpoolctl import threadpool_limits

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.quality.reconstruction_bands import VALUES, Floats, laws, shapes  # noqa: E402
from sfumato.core.distributions.domains import Integers  # noqa: E402
from sfumato.core.distributions.spec import NoiseSpec  # noqa: E402
from sfumato.survey.reconstruct import reconstruct  # noqa: E402
from sfumato.survey.reconstruct.bands import Admissible  # noqa: E402
from sfumato.survey.reconstruct.channel import cut_domain, cut_outputs, summed  # noqa: E402

RECORDS = 5_000
NODES = 9  # of the mean over Z
WHICH = np.arange(1, VALUES, 5)
LAWS = ("Gaussian 2", "Gaussian 7", "Laplace, epsilon 2", "uniform 5", "shift 3", "mixture", "keep 50 %", "keep 15 %")


def narrowest(truth: Floats, chances: Floats) -> float:
    """Mean over the values of the narrowest honest band."""
    expected = np.maximum(RECORDS * truth @ chances, 1e-9)
    form = RECORDS * chances.T / np.sqrt(expected)[:, None]
    gram = form.T @ form
    gram.flat[:: VALUES + 1] += 1e-10 * np.trace(gram) / VALUES
    ideal = Admissible(gram, form.T @ np.sqrt(expected), truth.copy(), 0.0, 1.0)
    lower = 0.95 * (np.arange(NODES) + 0.5) / NODES
    radii = (norm.ppf(0.95) - norm.ppf(lower)) ** 2
    widths = []
    for value in WHICH:
        weights = np.zeros(VALUES)
        weights[value] = 1.0
        ranges = [dataclasses.replace(ideal, radius=float(radius)).range(weights) for radius in radii]
        widths.append(0.95 * np.mean([high - low for low, high in (each for each in ranges if each is not None)]))
    return float(np.mean(widths))


def fisher(truth: Floats, chances: Floats) -> float:
    """Mean over the values of 2 * 1.96 deviations of the plain solution."""
    expected = np.maximum(RECORDS * truth @ chances, 1e-9)
    covariance = np.linalg.pinv((RECORDS * chances / expected) @ (RECORDS * chances.T))
    return float(2 * 1.96 * np.sqrt(np.maximum(np.diag(covariance)[WHICH], 0.0)).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=10)
    draws = parser.parse_args().draws
    lines = ["| law | truth | ours | narrowest honest | ours / narrowest | Fisher |", "|---|---|---|---|---|---|"]
    ratios = []
    with threadpool_limits(limits=1):
        for name in LAWS:
            for shape in ("normal", "heavily skewed", "near-empty"):
                truth, spec = shapes(VALUES)[shape], NoiseSpec(Integers(0, VALUES - 1), laws()[name])
                rng = np.random.default_rng(11)
                found = []
                for _ in range(draws):
                    released = spec.randomize(rng.choice(VALUES, size=RECORDS, p=truth), rng)
                    bands = reconstruct(released, spec, least=0.0)
                    found.append(float((bands.upper - bands.lower)[WHICH].mean()))
                cells = cut_domain(spec.domain, spec.operator, None)
                codes = spec.encode_output(released)
                chances = summed(spec.operator, cells.cuts, cut_outputs(cells, spec.operator, codes))
                ours, least = float(np.mean(found)), narrowest(truth, chances)
                ratios.append(ours / least)
                hint = f"{ours:.4f} | {least:.4f} | {ours / least:.2f} | {fisher(truth, chances):.3g}"
                lines.append(f"| {name} | {shape} | {hint} |")
                print(lines[-1], flush=True)
    summary = (
        f"Ours are {np.exp(np.mean(np.log(ratios))):.2f} times the narrowest honest ones (geometric mean; "
        f"{min(ratios):.2f} to {max(ratios):.2f}). {draws} draws each."
    )
    print(summary)
    head = ["# Widths of the bands of a reconstruction", "", *(__doc__ or "").strip().splitlines()[3:], "", summary, ""]
    path = ROOT / "benchmarks" / "results" / "reconstruction_widths.md"
    path.write_text("\n".join([*head, *lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
