"""How far the published attacks get into randomized tables: noise that is filtered off, and answers that are guessed.

Run from the repository root: ``python benchmarks/quality/noise_attack.py [--runs 20] [--quick] [--data FOLDER]``.
Filters: three tables of scikit-learn, z-scored, go through ``Randomization`` with additive noise of one size on every
column (grid 0.001, domain -20 to 20); spectral filtering and the Bayes estimate know the covariance of the noise and
estimate that of the data from the released rows. Errors are root-mean-square over all cells, in standard deviations.
Best guess: categories of Adult under the k-ary response of an epsilon, the attacker estimates the distribution from the
answers. ``printed`` is what was measured before this code, where it was.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.data import load_table  # noqa: E402
from sfumato import Schema  # noqa: E402
from sfumato.assess.algebra import run_measure  # noqa: E402
from sfumato.assess.attacks.noise_filter import (  # noqa: E402
    BEST_GUESS,
    bayes_estimate,
    spectral_filter,
)
from sfumato.assess.study import study_of  # noqa: E402
from sfumato.core.distributions.domains import Reals  # noqa: E402
from sfumato.core.distributions.spec import NoiseSpec  # noqa: E402
from sfumato.methods.randomize import Randomization  # noqa: E402
from sfumato.tables.codec import Codec  # noqa: E402

_Matrix = NDArray[np.float64]

RESULTS = ROOT / "benchmarks" / "results"
TABLES = ("breast_cancer", "wine", "diabetes")
SIZES = (0.5, 1.0, 2.0)
LAWS = ("gaussian", "laplace", "uniform")
PRINTED = {
    ("breast_cancer", 1.0): (0.64, 0.51),
    ("breast_cancer", 2.0): (None, 0.75),
    ("wine", 1.0): (None, 0.67),
    ("diabetes", 1.0): (None, 0.64),
}
CATEGORIES = ("sex", "race", "workclass", "education", "marital_status", "occupation", "relationship", "native_country")
EPSILONS = (0.5, 1.0, 2.0, 4.0)


def standard(name: str) -> _Matrix:
    """Give a table of scikit-learn in standard deviations from the mean."""
    from sklearn import datasets

    rows = getattr(datasets, f"load_{name}")().data
    return np.asarray((rows - rows.mean(axis=0)) / rows.std(axis=0))


def law_of(name: str, size: float) -> dict[str, Any]:
    """Give the additive law of a standard deviation."""
    key, factor = {"gaussian": ("sd", 1.0), "laplace": ("scale", math.sqrt(0.5)), "uniform": ("reach", math.sqrt(3.0))}[
        name
    ]
    return {"name": name, key: round(size * factor, 6)}


def release(rows: _Matrix, law: dict[str, Any], seed: int) -> tuple[_Matrix, _Matrix]:
    """Randomize rows and give the released ones beside those that they descend from."""
    table = pa.table({f"v{place}": column for place, column in enumerate(rows.T)})
    spec = NoiseSpec(Reals(-20.0, 20.0, 0.001), law)
    codec = Codec.fit(table, Schema.infer(table))
    mechanism = Randomization(specs=dict.fromkeys(table.column_names, spec))
    made = mechanism.sanitize(codec.encode(table), rng=np.random.default_rng(seed))
    assert made.workings.origin is not None
    got = codec.decode(made.records.values, moved=made.records.moved, grids=made.records.grids)
    return np.column_stack([got.column(name).to_numpy() for name in got.column_names]), rows[made.workings.origin]


def filters(runs: int) -> Iterator[dict[str, Any]]:
    """Measure the error of both filters."""
    for name in TABLES:
        rows = standard(name)
        for law in LAWS:
            for size in SIZES:
                errors = []
                for seed in range(runs):
                    got, true = release(rows, law_of(law, size), seed)
                    noise = size**2 * np.eye(rows.shape[1])
                    guesses = (got, spectral_filter(got, noise), bayes_estimate(got, noise))
                    errors.append([float(np.sqrt(np.mean((guess - true) ** 2))) for guess in guesses])
                mean, spread = np.mean(errors, axis=0), np.std(errors, axis=0)
                yield {
                    "table": name,
                    "law": law,
                    "size": size,
                    "added": round(float(mean[0]), 4),
                    "spectral": round(float(mean[1]), 4),
                    "spectral_sd": round(float(spread[1]), 4),
                    "bayes": round(float(mean[2]), 4),
                    "bayes_sd": round(float(spread[2]), 4),
                    "printed": PRINTED.get((name, size), (None, None)) if law == "gaussian" else (None, None),
                }


def guesses(folder: str | None, *, rows: int | None) -> Iterator[dict[str, Any]]:
    """Measure how often categories of Adult are guessed behind their answers."""
    table = load_table("adult_train", folder)
    table = table.select([name for name in CATEGORIES if name in table.column_names])
    table = table if rows is None else table.slice(0, rows)
    codec = Codec.fit(table, Schema.infer(table))
    records = codec.encode(table)
    for epsilon in EPSILONS:
        mechanism = Randomization(epsilon=epsilon, allow_observed=True)
        made = mechanism.sanitize(records, rng=np.random.default_rng(1))
        got = codec.decode(made.records.values)
        study = study_of(table, got, codec, facts=made.facts, workings=made.workings, rng=np.random.default_rng(2))
        for finding in run_measure(BEST_GUESS, study):
            if finding.value is not None and finding.baseline is not None:
                column = finding.name.partition("/")[2] or "all columns"
                yield {
                    "column": column,
                    "epsilon": epsilon,
                    "guessed": round(finding.value, 4),
                    "most_frequent": round(finding.baseline, 4),
                }


def write(found: dict[str, list[dict[str, Any]]], runs: int, folder: Path) -> None:
    """Write what was found as JSON and as a page."""
    lines = [
        "# Attacks on randomized tables",
        "",
        f"`python benchmarks/quality/noise_attack.py`, {runs} draws a row. Errors in standard deviations of the data;",
        "1 is what guessing the mean gives. *Before* are figures measured before this code, spectral / Bayes.",
        "",
        "| table | law | noise | added | spectral filter | Bayes estimate | before |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in found["filters"]:
        before = " / ".join("-" if number is None else f"{number:g}" for number in row["printed"])
        lines.append(
            f"| {row['table']} | {row['law']} | {row['size']:g} | {row['added']:.3f} | {row['spectral']:.3f} ± "
            f"{row['spectral_sd']:.3f} | {row['bayes']:.3f} ± {row['bayes_sd']:.3f} | {before} |"
        )
    lines += ["", "Categories of Adult, k-ary response, share of cells guessed exactly by Bayes' rule:", ""]
    lines += ["| column | most frequent | " + " | ".join(f"epsilon {each:g}" for each in EPSILONS) + " |"]
    lines += ["|---|---|" + "---|" * len(EPSILONS)]
    for column in dict.fromkeys(row["column"] for row in found["guesses"]):
        own = [row for row in found["guesses"] if row["column"] == column]
        shares = " | ".join(f"{row['guessed']:.3f}" for row in own)
        lines.append(f"| {column} | {own[0]['most_frequent']:.3f} | {shares} |")
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in (("json", json.dumps(found, indent=1) + "\n"), ("md", "\n".join(lines) + "\n")):
        place = folder / f"noise_attack.{name}"
        work = place.with_suffix(f".{name}.new")
        work.write_text(text, encoding="utf-8")
        work.replace(place)


def main() -> None:
    """Run and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--quick", action="store_true", help="two draws and 2,000 rows of Adult")
    parser.add_argument("--data", help="folder of adult_train.csv.gz")
    parser.add_argument("-o", "--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    runs = 2 if options.quick else options.runs
    with threadpool_limits(limits=1):
        found = {
            "filters": list(filters(runs)),
            "guesses": list(guesses(options.data, rows=2000 if options.quick else None)),
        }
    write(found, runs, options.output)


if __name__ == "__main__":
    main()
