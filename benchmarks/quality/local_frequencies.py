"""Frequencies under local differential privacy beside multi-freq-ldpy, at equal epsilon.

Run from the repository root: ``python benchmarks/quality/local_frequencies.py --peers FOLDER [--quick]``.
FOLDER is made if it is not there: an environment of its own with multi-freq-ldpy and xxhash below 3.6, which it needs.
10, 100 and 1,000 labels, frequencies falling as 1/rank, 10,000 records, epsilon 0.5, 1, 2 and 4, means over seeds.
Peers: generalized randomized response, optimized unary encoding, optimized local hashing, subset selection, each by its
matrix inversion. Ours: the laws ``response`` and ``subset``. *Plain* is the mean squared error of unbiased inversion,
which compares the laws; *estimate* is that of what each tool gives out (ours: ``reconstruct``; theirs: the inversion,
cut at 0 and scaled to 1, as the package does). Nothing was tuned here.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[2]
RECORDS = 10_000
SIZES = (10, 100, 1_000)
EPSILONS = (0.5, 1.0, 2.0, 4.0)
PEERS = ("GRR", "OUE", "OLH", "SS")
Floats = NDArray[np.float64]

_THEIRS = """
import json, sys
import numpy as np
from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Client, GRR_Aggregator_MI
from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Client, UE_Aggregator_MI
from multi_freq_ldpy.pure_frequency_oracles.LH import LH_Client, LH_Aggregator_MI
from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Client, SS_Aggregator_MI

for line in sys.stdin:
    case = json.loads(line)
    k, epsilon, values = case["k"], case["epsilon"], case["values"]
    np.random.seed(case["seed"])
    found = {
        "GRR": GRR_Aggregator_MI([GRR_Client(x, k, epsilon) for x in values], k, epsilon),
        "OUE": UE_Aggregator_MI([UE_Client(x, k, epsilon, True) for x in values], epsilon, True),
        "OLH": LH_Aggregator_MI([LH_Client(x, k, epsilon, True) for x in values], k, epsilon, True),
        "SS": SS_Aggregator_MI([SS_Client(x, k, epsilon) for x in values], k, epsilon),
    }
    print(json.dumps({name: [float(each) for each in p] for name, p in found.items()}), flush=True)
"""


def prepare(folder: Path) -> Path:
    """Make the environment of the peers, and give its interpreter."""
    python = folder / "env" / "bin" / "python"
    if not python.exists():
        venv.create(folder / "env", with_pip=True)
        subprocess.run([str(python), "-m", "pip", "-q", "install", "multi-freq-ldpy", "xxhash<3.6"], check=True)
    return python


class Theirs:
    """The peers in a process of their own, which compiles once."""

    def __init__(self, python: Path) -> None:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen([str(python), "-c", _THEIRS], stdin=pipe, stdout=pipe, text=True)

    def __call__(self, values: NDArray[np.int64], k: int, epsilon: float, seed: int) -> dict[str, Floats]:
        """Estimate of each peer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        case = {"k": k, "epsilon": epsilon, "values": values.tolist(), "seed": seed}
        self._process.stdin.write(json.dumps(case) + "\n")
        self._process.stdin.flush()
        return {name: np.array(each) for name, each in json.loads(self._process.stdout.readline()).items()}


def ours(values: NDArray[np.int64], k: int, epsilon: float, seed: int) -> dict[str, tuple[Floats, Floats]]:
    """Unbiased inversion and estimate of each law."""
    from sfumato.core.distributions.domains import Labels
    from sfumato.core.distributions.operators import transition
    from sfumato.core.distributions.spec import NoiseSpec
    from sfumato.survey.reconstruct import reconstruct

    rng = np.random.default_rng([seed, k])
    found = {}
    for name in ("response", "subset"):
        spec = NoiseSpec(Labels(tuple(f"v{place}" for place in range(k))), {"name": name, "epsilon": epsilon})
        sent = spec.operator.randomize(values, rng)
        chances = transition(spec.operator)
        share = np.bincount(sent, minlength=chances.shape[1]) / len(values)
        plain = np.linalg.lstsq(chances.T, share, rcond=None)[0]
        found[name] = plain, reconstruct(spec.decode_output(sent), spec, least=0.0).probability
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers", type=Path, required=True, help="folder of the peers' environment")
    parser.add_argument("--quick", action="store_true", help="one size, one epsilon, nothing written")
    parser.add_argument("--seeds", type=int, default=2)
    chosen = parser.parse_args()
    theirs = Theirs(prepare(chosen.peers))
    sizes, epsilons = ((100,), (1.0,)) if chosen.quick else (SIZES, EPSILONS)
    rows: list[dict[str, Any]] = []
    for k in sizes:
        truth = 1.0 / np.arange(1, k + 1)
        truth /= truth.sum()
        for epsilon in epsilons:
            errors: dict[str, list[float]] = {}
            for seed in range(chosen.seeds):
                values = np.random.default_rng([seed, 7]).choice(k, size=RECORDS, p=truth)
                for name, (plain, found) in ours(values, k, epsilon, seed).items():
                    errors.setdefault(f"{name} plain", []).append(float(((plain - truth) ** 2).mean()))
                    errors.setdefault(f"{name} estimate", []).append(float(((found - truth) ** 2).mean()))
                for name, found in theirs(values, k, epsilon, seed).items():
                    errors.setdefault(name, []).append(float(((found - truth) ** 2).mean()))
            rows.append({"k": k, "epsilon": epsilon, **{name: float(np.mean(each)) for name, each in errors.items()}})
            print(rows[-1], flush=True)
    names = ("response plain", "subset plain", "response estimate", "subset estimate", *PEERS)
    lines = [f"| labels | epsilon | {' | '.join(names)} | estimate / best peer |", "|---" * (len(names) + 3) + "|"]
    ratios = []
    for row in rows:
        best = min(row[name] for name in PEERS)
        ratios.append(min(row["subset estimate"], row["response estimate"]) / best)
        told = " | ".join(f"{1e6 * row[name]:.1f}" for name in names)
        lines.append(f"| {row['k']:,} | {row['epsilon']:g} | {told} | {row['subset estimate'] / best:.2f} |")
    summary = (
        "Mean squared errors times a million. Geometric mean of the error of the better of our two laws over that of "
        f"the best peer: {np.exp(np.mean(np.log(ratios))):.2f}."
    )
    print("\n".join([summary, *lines]))
    if not chosen.quick:
        commit = subprocess.run(
            ["git", "log", "-1", "--format=%h of %cs"], cwd=ROOT, capture_output=True, text=True, check=False
        ).stdout.strip()
        head = ["# Frequencies under local differential privacy", "", *(__doc__ or "").strip().splitlines()[3:], ""]
        path = ROOT / "benchmarks" / "results" / "local_frequencies.md"
        text = [*head, f"{summary} {chosen.seeds} seeds.", "", *lines, "", f"Code: {commit}.", ""]
        path.write_text("\n".join(text), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
