"""Audit the private chain over many runs: ``python benchmarks/quality/private_audit.py`` writes private_audit.md.

What it does is in ``tests/private/audit.py``; here it runs long enough for small epsilon.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from sfumato.core.distributions.amplification import membership_bounds, rho_of  # noqa: E402
from tests.private.audit import (  # noqa: E402
    DELTA,
    attack_rows,
    epsilon_shown,
    epsilon_shown_by_gaussian_noise,
    less_noise,
    losses,
)

RUNS = {10.0: 1_000, 3.0: 2_500, 1.0: 13_000}
RELEASES = 1_000
LEVEL = 0.05
PAGE = """# Audit of the private chain

The product runs on two neighbouring tables: 100 people who are all alike, with and without one person at the other end
of every column. That person changes every measurement by its full sensitivity.

## White box: all noisy counts of a run are seen

Lower 95 % confidence bounds on epsilon at delta = 1e-5 from the log-likelihood ratios of the noisy counts. One bound
takes the noise as Gaussian of unknown scale; the other assumes nothing, and cannot come near a small epsilon, because
no feasible number of runs shows events of probability delta. The last column is the product with noise whose standard
deviation is too small by a factor of 1.5, which its ledger does not know.

|claimed epsilon|runs on each table|shown, Gaussian noise|shown, any noise|shown, noise / 1.5|
|---|---|---|---|---|
{counts}

## Black box: released rows are seen

The attacker knows everybody else and the method, and learns from {releases} releases with and without the person
what the person's cells look like in 2,000 rows; half of the releases are attacked. Beside it is what the proof allows.

|epsilon|membership AUC (95 % lower bound)|at most by the proof|TPR at 1 % FPR (95 % lower bound)|at most by the proof|
|---|---|---|---|---|
{rows}
"""


def main() -> None:
    """Measure and write the page."""
    counts, rows = [], []
    for epsilon, runs in RUNS.items():
        members, others = (losses(member=way, runs=runs, epsilon=epsilon, seed=31 + way) for way in (True, False))
        gaussian = epsilon_shown_by_gaussian_noise(members, others, DELTA, LEVEL)
        anyhow = epsilon_shown(members, others, DELTA, LEVEL)
        with less_noise(1.5):
            members, others = (losses(member=way, runs=runs, epsilon=epsilon, seed=41 + way) for way in (True, False))
        broken = epsilon_shown_by_gaussian_noise(members, others, DELTA, LEVEL)
        counts.append(f"|{epsilon:g}|{runs:,}|{gaussian:.2f}|{anyhow:.2f}|{broken:.2f}|")
        print(counts[-1], flush=True)
    for epsilon in (1.0, 3.0, 10.0):
        found = attack_rows(runs=RELEASES, epsilon=epsilon, seed=51, false_alarm=LEVEL)
        auc, rate = membership_bounds(rho_of(epsilon, DELTA))
        rows.append(
            f"|{epsilon:g}|{found.auc:.3f} ({found.least_auc:.3f})|{auc:.3f}"
            f"|{100 * found.rate:.1f} % ({100 * found.least_rate:.1f} %)|{100 * rate:.1f} %|"
        )
        print(rows[-1], flush=True)
    page = PAGE.format(counts="\n".join(counts), rows="\n".join(rows), releases=f"{RELEASES:,}")
    (ROOT / "benchmarks" / "results" / "private_audit.md").write_text(page)


if __name__ == "__main__":
    main()
