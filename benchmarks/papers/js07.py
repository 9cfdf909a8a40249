"""JS07 again: figures 5.1 to 5.3, recovery error against the number of records and the noise, and two real columns.

Run from the repository root: ``python benchmarks/papers/js07.py [--quick] [--repeats 10] [--data FOLDER]``.
The thesis prints pictures without numbers: of Poisson and binomial data (figures 5.1, 5.2), of uniform and Gaussian
data (figure 5.3), each as original, randomized and reconstructed. It names its measure "percentage deviation" and does
not define it; here it is the mean of 100 |p' - p| / p over the cells that hold at least a tenth of an even share. Total
variation, half the sum of |p' - p|, is beside it. Both are of the reconstruction against the law that the data were
drawn from, so they hold the sampling error of the original too ("original": the error of its own histogram), and are
means over repetitions with seeds 0, 1, 2, ...; none is left out. For the real columns the truth is the column itself,
from which records are drawn with replacement. "Randomized" is what one has without reconstruction, cut to the domain.
Methods: *default* is auto (em with the likelihood stop, or direct, whichever predicts better), *thesis* is bayes with
the chi-square stop, *direct* is the regularised solution. "In bands" is the share of the truth inside the 95 %
bands of the default, "worth" its effective records.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from threadpoolctl import threadpool_limits

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.data import load_table  # noqa: E402
from sfumato.core.distributions.domains import Integers, Reals  # noqa: E402
from sfumato.core.distributions.spec import NoiseSpec  # noqa: E402
from sfumato.survey.reconstruct import Reconstruction, reconstruct  # noqa: E402

Floats = NDArray[np.float64]
METHODS: dict[str, dict[str, Any]] = {
    "default": {},
    "thesis": {"method": "bayes", "stop": "chi-square"},
    "direct": {"method": "direct"},
}
RING = {"name": "shift-modulo", "reach": 100}
SIZES = (1_000, 10_000, 100_000, 1_000_000)


@dataclass(frozen=True)
class Case:
    """A truth over the places of a domain, a law, and the intervals in which both are estimated."""

    name: str
    noise: str
    spec: NoiseSpec
    truth: Floats
    intervals: int


def published() -> list[Case]:
    """Figures 5.1 to 5.3: counts under R2 modulo 1001, and numbers under additive noise of two sizes."""
    domain, places = Integers(0, 1000), np.arange(1001)
    laws = {
        "Poisson, mean 300": stats.poisson(300).pmf(places),
        "binomial, 1000 at 0.4": stats.binom(1000, 0.4).pmf(places),
        "uniform, 200 to 700": ((places >= 200) & (places < 700)).astype(np.float64),
        "Gaussian, 500 +- 120": np.exp(-(((places - 500) / 120) ** 2) / 2),
    }
    noises: dict[str, dict[str, Any]] = {
        "R2 +-100": RING,
        "uniform +-100": {"name": "uniform", "reach": 100},
        "uniform +-400": {"name": "uniform", "reach": 400},
        "Gaussian sd 50": {"name": "gaussian", "sd": 50},
        "Gaussian sd 200": {"name": "gaussian", "sd": 200},
    }
    return [
        Case(name, noise, NoiseSpec(domain, law), truth / truth.sum(), 50)
        for name, truth in laws.items()
        for noise, law in noises.items()
    ]


def real(folder: str | None) -> list[Case]:
    """Adult's age and Magic's fLength, noise of half and once the width that holds 95 % of the column."""
    cases = []
    for table, column, domain in (
        ("adult_train", "age", Integers(0, 100)),
        ("magic_gamma", "fLength", Reals(0.0, 340.0, 0.1)),
    ):
        values = np.asarray(load_table(table, folder).column(column).to_numpy(), dtype=np.float64)
        truth = np.bincount(domain.encode(values), minlength=domain.size) / len(values)
        for share in (0.5, 1.0):
            sd = share * float(np.ptp(np.quantile(values, [0.025, 0.975]))) / (2 * 1.96)
            law = {"name": "gaussian", "sd": round(sd, 1)}
            cases.append(Case(f"{table} {column}", f"Gaussian sd {sd:.1f}", NoiseSpec(domain, law), truth, 50))
    return cases


def cells(found: Reconstruction, truth: Floats) -> Floats:
    return np.add.reduceat(truth, found.cells.cuts[:-1])


def variation(p: Floats, q: Floats) -> float:
    return float(np.abs(p - q).sum() / 2)


def deviation(p: Floats, truth: Floats) -> float:
    """Give the percentage deviation."""
    there = truth >= 0.1 / len(truth)
    return float(100 * np.mean(np.abs(p[there] - truth[there]) / truth[there]))


def measure(case: Case, n: int, seed: int) -> list[dict[str, Any]]:
    """Draw, randomize and reconstruct once."""
    rng = np.random.default_rng([seed, n])
    codes = rng.choice(len(case.truth), size=n, p=case.truth)
    sent = case.spec.operator.randomize(codes, rng)
    released = case.spec.decode_output(sent)
    rows: list[dict[str, Any]] = []
    head = {"case": case.name, "noise": case.noise, "n": n, "seed": seed}
    for name, options in METHODS.items():
        start = time.process_time()
        found = reconstruct(released, case.spec, intervals=case.intervals, **options)
        seconds = time.process_time() - start
        truth = cells(found, case.truth)
        inside = float(((found.lower <= truth) & (truth <= found.upper)).mean())
        rows.append(
            {
                **head,
                "way": name,
                "tv": variation(found.probability, truth),
                "deviation": deviation(found.probability, truth),
                "iterations": found.iterations,
                "inside": inside,
                "worth": found.effective_records,
                "seconds": seconds,
            }
        )
    places = len(case.truth)
    for name, given in (("original", codes), ("randomized", np.clip(sent, 0, places - 1))):
        told = np.add.reduceat(np.bincount(given, minlength=places) / n, found.cells.cuts[:-1])
        rows.append({**head, "way": name, "tv": variation(told, truth), "deviation": deviation(told, truth)})
    return rows


def table(rows: list[dict[str, Any]], heading: str) -> list[str]:
    """Write one table: a line for each case, noise and size."""
    ways = ("original", "randomized", *METHODS)
    lines = [f"## {heading}", "", "Total variation / percentage deviation.", ""]
    lines += [f"| truth | noise | n | {' | '.join(ways)} | in bands | worth |", "|---" * (5 + len(ways)) + "|"]
    keys = dict.fromkeys((row["case"], row["noise"], row["n"]) for row in rows)
    for case, noise, n in keys:
        here = [row for row in rows if (row["case"], row["noise"], row["n"]) == (case, noise, n)]

        def mean(way: str, what: str, of: list[dict[str, Any]] = here) -> float:
            return float(np.mean([row[what] for row in of if row["way"] == way]))

        told = " | ".join(f"{mean(way, 'tv'):.3f} / {mean(way, 'deviation'):.0f} %" for way in ways)
        inside, worth = 100 * mean("default", "inside"), mean("default", "worth")
        lines.append(f"| {case} | {noise} | {n:,} | {told} | {inside:.0f} % | {worth:,.0f} |")
    return [*lines, ""]


def ratios(rows: list[dict[str, Any]]) -> list[str]:
    """Say how the methods compare over all cases."""
    lines = [
        "## Over all cases",
        "",
        "| way | mean total variation | median iterations | CPU seconds, mean |",
        "|---|---|---|---|",
    ]
    for way in METHODS:
        here = [row for row in rows if row["way"] == way]
        told = [float(np.mean([row[key] for row in here])) for key in ("tv", "seconds")]
        steps = float(np.median([row["iterations"] for row in here]))
        lines.append(f"| {way} | {told[0]:.4f} | {steps:.0f} | {told[1]:.2f} |")
    return [*lines, ""]


def draw(case_of: Callable[[str, str], Case], path: Path) -> None:
    """Draw figures 5.1 to 5.3 for 20,000 records: original, randomized, reconstructed with its band."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    mpl.rcParams.update({"svg.hashsalt": "sfumato", "svg.fonttype": "none", "font.size": 8})
    cache = Figure(figsize=(8, 4.6), layout="constrained")
    shown = (
        ("Poisson, mean 300", "R2 +-100"),
        ("binomial, 1000 at 0.4", "R2 +-100"),
        ("uniform, 200 to 700", "uniform +-100"),
        ("Gaussian, 500 +- 120", "Gaussian sd 200"),
    )
    for place, (name, noise) in enumerate(shown):
        case = case_of(name, noise)
        rng = np.random.default_rng(place)
        sent = case.spec.operator.randomize(rng.choice(1001, size=20_000, p=case.truth), rng)
        found = reconstruct(case.spec.decode_output(sent), case.spec, intervals=50)
        axes = cache.add_subplot(2, 2, place + 1)
        edges = found.edges
        assert edges is not None
        axes.stairs(np.histogram(sent, edges)[0] / len(sent), edges, color="#999999", label="randomized")
        axes.stairs(found.upper, edges, baseline=found.lower, fill=True, color="#7aa6c2", alpha=0.5, label="95 % band")
        axes.stairs(found.probability, edges, color="#1f5f8b", label="reconstructed")
        axes.stairs(cells(found, case.truth), edges, color="#b5482e", linestyle="--", label="original")
        axes.set_title(f"{name}; {noise}")
        axes.set_yticks([])
        if place == 0:
            axes.legend(frameon=False)
    cache.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two sizes, one repetition, nothing written")
    parser.add_argument("--repeats", type=int, default=10, help="draws of each case; fewer than 3 leave a million out")
    parser.add_argument("--data", default=None, help="folder of the tables; default: SFUMATO_DATA")
    chosen = parser.parse_args()
    sizes, repeats = (SIZES[:2], 1) if chosen.quick else (SIZES, chosen.repeats)
    sizes = sizes if repeats >= 3 else sizes[:3]
    groups = {"Figures 5.1 to 5.3: 50 intervals of 0 to 1000": published(), "Real columns": real(chosen.data)}
    lines, every = [], []
    start = time.perf_counter()
    with threadpool_limits(limits=1):
        for heading, cases in groups.items():
            rows = [
                row
                for case in cases
                for n in sizes
                for seed in range(repeats if n < SIZES[-1] else max(1, repeats // 3))
                for row in measure(case, n, seed)
            ]
            lines += table(rows, heading)
            every += [row for row in rows if row["way"] in METHODS]
        lines = [*ratios(every), *lines]
        print("\n".join(lines))
        print(f"{time.perf_counter() - start:.0f} s")
        if not chosen.quick:
            head = ["# JS07: reconstruction", "", *(__doc__ or "").strip().splitlines()[3:], ""]
            results = ROOT / "benchmarks" / "results"
            hint = f"{repeats} draws of each case, {', '.join(f'{size:,}' for size in sizes)} records."
            (results / "js07.md").write_text("\n".join([*head, hint, "", *lines]), encoding="utf-8")
            known = {(case.name, case.noise): case for case in published()}
            draw(lambda name, noise: known[name, noise], ROOT / "docs" / "reconstruct.svg")


if __name__ == "__main__":
    main()
