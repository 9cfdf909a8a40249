"""OZ03 again: tables 1 to 6, printed beside measured, and how far noise shuffles clusters at other separations.

Run from the repository root: ``python benchmarks/papers/oz03.py [--quick]``. With ``--quick`` it takes one run of 1,500
points in each set, three separations, and Chameleon on the tables only: less than a minute of processor time.
The paper's five sets of 6,000 points are not published, but its tables give their spread: a translated table with noise
on a share rho of its rows has Sec = (rho E(e^2) - (rho E e)^2) / Var(X), so tables 4 and 6 give Var(X) of both
attributes (`spread`). The sets here are drawn with just these variances: K clusters of equal size with centres as in
`LAYOUTS`, normal around them within `REACH` deviations; what the paper leaves open is how far the clusters stand apart:
`SEPARATION` deviations of a cluster from a centre to the nearest other one. Ages are in years around 45, salaries in
thousands around 70: the paper's own unit, see the report. One set for each K, drawn with seed K; run r starts K-means,
Chameleon and all noise with seed r, other starts for the original than for what is released. None is left out.

K-means is scikit-learn's with 10 starts, and once with a single one; Chameleon has n_init=2, and what it calls noise is
given the cluster of its nearest neighbour, since the paper labels all points. Misclassified are points whose cluster
differs, clusters paired by the best assignment. TDP, SDP and RDP have the paper's vectors. HDP "combines the three
previous ones": its printed Sec of exactly 0 for age and 0.64 % for salary is that of <Add, -3>, <Mult, 0.92>. The extra
noise of section 5.4 has the paper's laws, which are not centred: `enhance_rows` with their means.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.chameleon import Chameleon  # noqa: E402
from benchmarks.papers.oz03_report import COUNTS, spread, write  # noqa: E402
from sfumato.assess.utility.clustering import error  # noqa: E402
from sfumato.assess.utility.distortion import security  # noqa: E402
from sfumato.core.distributions.noise import choose_step, enhance_rows, law_of_size  # noqa: E402
from sfumato.methods.geometry import Add, Key, Mult, Rotate  # noqa: E402
from sfumato.methods.geometry.transformations import hybrid  # noqa: E402
from sfumato.methods.perturb import perturb_additively  # noqa: E402

_Matrix = NDArray[np.float64]
_Labels = NDArray[np.int64]
Ways = dict[str, Callable[[_Matrix, int, int], _Labels]]

ROWS = 6_000
RUNS, CHAMELEON_RUNS, CURVE_RUNS = 20, 20, 5
QUICK_ROWS, QUICK_SEPARATIONS = 1_500, (1.0, 4.0, 12.0)
CENTRE = (45.0, 70.0)  # mean age, mean salary in thousands
REACH = 2.5  # deviations within which the points of a cluster lie
SEPARATION = 6.0
SEPARATIONS = (1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0)
LAYOUTS = {
    2: ((-1, -1), (1, 1)),
    3: ((-1, -1), (1, -1), (0, 1)),
    4: ((-1, -1), (1, -1), (-1, 1), (1, 1)),
    5: ((-1, -1), (1, -1), (-1, 1), (1, 1), (0, 0)),
    6: ((-1, -1), (0, -1), (1, -1), (-1, 1), (0, 1), (1, 1)),
}
KEYS = {
    "TDP": Key((Add("age", -3.0), Add("salary", 6.235))),
    "SDP": Key((Mult("age", 0.93), Mult("salary", 0.89))),
    "RDP": Key((Rotate(("age", "salary"), 356.71),)),
    "HDP": Key((Add("age", -3.0), Mult("salary", 0.92))),
}
NOISE = 10.0  # of ADP: variance 100
MORE = (("uniform", 3.0, 30.0 / np.sqrt(12.0)), ("gaussian", 15.0, 12.0))  # U[-12, 18] and N(15, 144): law, mean, sd
SHARES = (0.05, 0.10)


def draw_set(count: int, separation: float, seed: int, layout: str = "plane", rows: int = ROWS) -> _Matrix:
    """Draw a set of points (age in years, salary in thousands) with the variances of the paper's set."""
    rng = np.random.default_rng([count, seed])
    centres = np.array(LAYOUTS[count] if layout == "plane" else [(k, k) for k in range(count)], dtype=np.float64)
    centres = (centres - centres.mean(axis=0)) / centres.std(axis=0)
    nearest = min(float(np.linalg.norm(a - b)) for place, a in enumerate(centres) for b in centres[:place])
    around = rng.normal(size=(4 * rows, 2))
    around = around[(around**2).sum(axis=1) <= REACH**2][:rows]
    points = separation / nearest * centres[np.arange(rows) % count] + around / around.std(axis=0)
    points = (points - points.mean(axis=0)) / points.std(axis=0)
    return np.asarray(points * np.sqrt(spread(count)) + CENTRE)


def distort(points: _Matrix, method: str, rng: np.random.Generator) -> _Matrix:
    """Give V' of a method."""
    if method == "ADP":
        law = law_of_size("gaussian", NOISE, choose_step(NOISE))
        return np.column_stack([perturb_additively(column, law, rng) for column in points.T])
    return hybrid(points, KEYS[method])


def enhance(points: _Matrix, share: float, rng: np.random.Generator) -> _Matrix:
    """Add the noise of section 5.4, whose laws are not centred, to a share of the rows."""
    laws = [law_of_size(name, sd, choose_step(sd)) for name, _, sd in MORE]
    return enhance_rows(points, share, laws, rng, [mean for _, mean, _ in MORE])[0]


def k_means(points: _Matrix, count: int, seed: int, starts: int = 10) -> _Labels:
    from sklearn.cluster import KMeans

    return np.asarray(KMeans(count, n_init=starts, random_state=seed).fit_predict(points), dtype=np.int64)


def chameleon(points: _Matrix, count: int, seed: int) -> _Labels:
    """Cluster with Chameleon; a point that it calls noise belongs to its nearest neighbour that is none."""
    from scipy.spatial import KDTree

    labels = Chameleon(count, n_init=2, random_state=seed).fit_predict(points)
    noise = labels == -1
    if noise.any():
        labels[noise] = labels[~noise][KDTree(points[~noise]).query(points[noise])[1]]
    return np.asarray(labels)


def once(points: _Matrix, count: int, seed: int) -> _Labels:
    return k_means(points, count, seed, 1)


def compare(
    points: _Matrix, made: dict[str, _Matrix], count: int, seed: int, ways: Ways
) -> dict[str, dict[str, float]]:
    """Give the misclassification error in percent of each way to cluster, for each distorted table."""
    found: dict[str, dict[str, float]] = {}
    for way, cluster in ways.items():
        before = cluster(points, count, 2 * seed)
        for name, table in made.items():
            wrong = 100.0 * error(before, cluster(table, count, 2 * seed + 1))
            found.setdefault(name, {})[way] = wrong
    return found


def run_tables(job: tuple[int, int, bool, int]) -> dict[str, Any]:
    """Make all six tables' cells for one set and one run."""
    count, seed, slow, rows = job
    rng = np.random.default_rng([count, seed, 1])
    points = draw_set(count, SEPARATION, 0, rows=rows)
    made = {method: distort(points, method, rng) for method in (*KEYS, "ADP")}
    for share in SHARES:
        made |= {f"{method} {share}": enhance(made[method], share, rng) for method in KEYS}
    ways: Ways = {"K-means": k_means, "one start": once}
    if slow:
        ways["Chameleon"] = chameleon
    with threadpool_limits(1):
        errors = compare(points, made, count, seed, ways)
    privacy = {name: [100.0 * security(points[:, j], table[:, j]) for j in range(2)] for name, table in made.items()}
    return {"count": count, "seed": seed, "errors": errors, "privacy": privacy}


def run_curve(job: tuple[str, int, float, int, bool, int]) -> dict[str, Any]:
    """Distort one set at one separation."""
    layout, count, separation, seed, slow, rows = job
    points = draw_set(count, separation, seed, layout, rows)
    rng = np.random.default_rng([count, seed, 2])
    made = {method: distort(points, method, rng) for method in ("SDP", "ADP")}
    ways: Ways = {"K-means": k_means}
    if slow:
        ways["Chameleon"] = chameleon
    with threadpool_limits(1):
        errors = compare(points, made, count, seed, ways)
    return {"layout": layout, "count": count, "separation": separation, "seed": seed, "errors": errors}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="One run of small sets; writes nothing.")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    begin = time.perf_counter()
    quick = options.quick
    runs, slow, rows = (1, 1, QUICK_ROWS) if quick else (RUNS, CHAMELEON_RUNS, ROWS)
    jobs = [(count, seed, seed < slow, rows) for seed in range(runs) for count in COUNTS]
    wide = [
        (layout, count, far, seed, not quick and seed == 0 and layout == "plane", rows)
        for seed in range(1 if quick else CURVE_RUNS)
        for layout in ("plane", "row")
        for far in (QUICK_SEPARATIONS if quick else SEPARATIONS)
        for count in COUNTS
    ]
    with ProcessPoolExecutor(options.processes) as pool:
        tables = list(pool.map(run_tables, jobs))
        curve = list(pool.map(run_curve, wide))
    about = {"runs": runs, "chameleon": slow, "separation": SEPARATION, "seconds": time.perf_counter() - begin}
    sets = {count: draw_set(count, SEPARATION, 0, rows=rows) for count in COUNTS}
    ranges = {count: np.percentile(points, [0, 100], axis=0).tolist() for count, points in sets.items()}
    write({"about": about, "ranges": ranges, "tables": tables, "curve": curve}, save=not quick)


if __name__ == "__main__":
    main()
