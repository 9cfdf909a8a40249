"""What geometric transformations and noise do to four kinds of clustering: the question that OZ03 leaves open.

Run from the repository root: ``python benchmarks/quality/oz03_miners.py [--runs 2] [--data FOLDER]``.
Two sets: chameleon_t4_8k (shapes that wind around one another, with noise points) and five round clusters of the
paper's redone tables (benchmarks/papers/oz03.py, K = 5, separation 6). Each miner clusters the original and the release
with other starts, and misclassified are the points whose cluster differs, clusters paired by the best assignment; noise
points (-1) count as one more cluster. The first row of a set releases a copy: what a miner's own chance does.

K-means: 10 starts. Agglomerative: Ward. DBSCAN: 10 points within eps, eps a multiple of the median distance to the
tenth neighbour in the original, the multiple (`EPS`) chosen once on the original, for t4_8k by its true clusters; "same
eps" keeps it for the release, "own eps" takes the same multiple in the release. Chameleon: n_init=4. Coordinates as
they come, in equal units; distances as in docs/measures/distances.md but in these units. Noise is in standard
deviations of a column.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree
from sklearn.cluster import DBSCAN, AgglomerativeClustering, KMeans
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.chameleon import Chameleon  # noqa: E402
from benchmarks.data import load_table  # noqa: E402
from benchmarks.papers.oz03 import draw_set  # noqa: E402
from sfumato.assess.utility.clustering import error  # noqa: E402
from sfumato.assess.utility.distortion import distortion  # noqa: E402
from sfumato.core.distributions.noise import choose_step, enhance_rows, law_of_size  # noqa: E402
from sfumato.methods.geometry import Add, Key, Mult, Rotate  # noqa: E402
from sfumato.methods.geometry.transformations import hybrid  # noqa: E402
from sfumato.methods.perturb import perturb_additively  # noqa: E402

_Matrix = NDArray[np.float64]
_Labels = NDArray[np.int64]
Release = Callable[[_Matrix, np.random.Generator], _Matrix]

RESULTS = ROOT / "benchmarks" / "results"
EPS = {"t4_8k": 1.3, "five round": 2.0}
MINERS = ("K-means", "agglomerative", "DBSCAN, same eps", "DBSCAN, own eps", "Chameleon")
KEYS = {
    "translation": Key((Add("x", -30.0), Add("y", 62.0))),
    "scaling 0.9, 0.9": Key((Mult("x", 0.9), Mult("y", 0.9))),
    "scaling 0.93, 0.89": Key((Mult("x", 0.93), Mult("y", 0.89))),
    "scaling 2, 0.5": Key((Mult("x", 2.0), Mult("y", 0.5))),
    "rotation 356.71": Key((Rotate(("x", "y"), 356.71),)),
    "rotation 40": Key((Rotate(("x", "y"), 40.0),)),
    "hybrid -30, 0.92": Key((Add("x", -30.0), Mult("y", 0.92))),
}


def add_noise(points: _Matrix, rng: np.random.Generator, size: float) -> _Matrix:
    sds = points.std(axis=0)
    laws = [law_of_size("gaussian", size * sd, choose_step(size * sd)) for sd in sds]
    return np.column_stack([perturb_additively(x, law, rng) for x, law in zip(points.T, laws, strict=True)])


def turn_and_enhance(points: _Matrix, rng: np.random.Generator, share: float) -> _Matrix:
    """Turn by 40 degrees, then noise of half a deviation on a share of the rows [OZ03, sec. 5.4]."""
    turned = hybrid(points, KEYS["rotation 40"])
    laws = [law_of_size("gaussian", 0.5 * sd, choose_step(0.5 * sd)) for sd in turned.std(axis=0)]
    return enhance_rows(turned, share, laws, rng)[0]


def releases() -> dict[str, Release]:
    made: dict[str, Release] = {"copy": lambda points, _: points.copy()}
    for name, key in KEYS.items():
        made[name] = lambda points, _, key=key: hybrid(points, key)  # type: ignore[misc]
    made["rotation 40, in deviations"] = lambda points, _: hybrid(
        points, Key((Rotate(("x", "y"), 40.0, (float(points[:, 0].std()), float(points[:, 1].std()))),))
    )
    for share in (0.05, 0.10):
        made[f"rotation 40, enhance {share:.0%}"] = lambda p, rng, s=share: turn_and_enhance(p, rng, s)  # type: ignore[misc]
    for size in (0.01, 0.03, 0.1, 0.3):
        made[f"ADP {size:g}"] = lambda p, rng, s=size: add_noise(p, rng, s)  # type: ignore[misc]
    return made


def load(name: str, folder: str | None) -> tuple[_Matrix, _Labels]:
    """Give the points and their true cluster, 0 for noise."""
    if name == "five round":
        return draw_set(5, 6.0, 0), np.arange(6_000) % 5 + 1
    table = load_table(f"chameleon_{name}", folder)
    columns = [table.column(c).to_numpy() for c in table.column_names]
    return np.stack(columns[:2], axis=1).astype(np.float64), columns[2].astype(np.int64)


def tenth(points: _Matrix) -> float:
    return float(np.median(np.asarray(KDTree(points).query(points, k=11)[0])[:, -1]))


def mine(points: _Matrix, count: int, eps: tuple[float, float], seed: int) -> dict[str, _Labels]:
    """Cluster with all miners; labels from 0, which is noise where a miner knows it."""
    found = {
        "K-means": KMeans(count, n_init=10, random_state=seed).fit_predict(points),
        "agglomerative": AgglomerativeClustering(count, linkage="ward").fit_predict(points),
        "DBSCAN, same eps": DBSCAN(eps=eps[0], min_samples=10).fit_predict(points),
        "DBSCAN, own eps": DBSCAN(eps=eps[1], min_samples=10).fit_predict(points),
        "Chameleon": Chameleon(count, n_init=4, random_state=seed).fit_predict(points),
    }
    return {name: np.asarray(labels, dtype=np.int64) + 1 for name, labels in found.items()}


def distances(points: _Matrix, after: _Matrix, rng: np.random.Generator) -> tuple[float, float]:
    """Give the mean distortion of random pairs and of nearest neighbours."""
    pairs = rng.permutation(len(points)).reshape(2, -1)
    near = np.stack([np.arange(len(points)), np.asarray(KDTree(points).query(points, k=2)[1])[:, 1]])
    lengths = [
        [np.linalg.norm(rows[which[0]] - rows[which[1]], axis=1) for rows in (points, after)] for which in (pairs, near)
    ]
    return float(distortion(*lengths[0]).mean()), float(distortion(*lengths[1]).mean())


def study(name: str, runs: int, folder: str | None) -> dict[str, dict[str, float]]:
    """Measure one set: for each release the distortion and the misclassified of each miner, in percent."""
    points, truth = load(name, folder)
    count, unit, clustered = int(truth.max()), EPS[name], truth > 0
    eps = unit * tenth(points)
    before = [mine(points, count, (eps, eps), 2 * run) for run in range(runs)]
    good = {m: float(adjusted_rand_score(truth[clustered], before[0][m][clustered])) for m in MINERS}
    found = {"truth": good}
    for title, release in releases().items():
        rows = []
        for run in range(runs):
            rng = np.random.default_rng([run, 7])
            after = release(points, rng)
            labels = mine(after, count, (eps, unit * tenth(after)), 2 * run + 1)
            far, near = distances(points, after, rng)
            rows.append([far, near, *(error(before[run][m], labels[m]) for m in MINERS)])
        means = 100.0 * np.mean(rows, axis=0)
        found[title] = dict(zip(("far", "near", *MINERS), means.tolist(), strict=True))
        print(name, title, " ".join(f"{value:.2f}" for value in means), flush=True)
    return found


def table(name: str, found: dict[str, dict[str, float]]) -> list[str]:
    lines = [f"## {name}", "", "| release | distances | near distances | " + " | ".join(MINERS) + " |"]
    lines += ["| --- |" + " ---: |" * (2 + len(MINERS))]
    for title, row in found.items():
        if title != "truth":
            lines.append(f"| {title} | " + " | ".join(f"{value:.2f}" for value in row.values()) + " |")
    alike = ", ".join(f"{miner} {value:.2f}" for miner, value in found["truth"].items() if "own" not in miner)
    return [*lines, "", f"Adjusted Rand index of the original's clusters with the true ones: {alike}.", ""]


def answer(found: dict[str, dict[str, float]]) -> list[str]:
    """Say in one line for each miner what keeps its clusters: the worst of each kind of release."""
    kinds = {
        "shift and rotation in equal units": ("translation", "rotation 356.71", "rotation 40"),
        "one factor": ("scaling 0.9, 0.9",),
        "factors of the paper": ("scaling 0.93, 0.89", "hybrid -30, 0.92"),
        "noise of 3 % of a deviation": ("ADP 0.03",),
        "noise of 30 %": ("ADP 0.3",),
    }
    lines = ["Worst of each kind, less what a copy does:", ""]
    for miner in MINERS:
        parts = [
            f"{kind} {max(found[name][miner] for name in names) - found['copy'][miner]:.1f}"
            for kind, names in kinds.items()
        ]
        lines.append(f"- {miner}: {', '.join(parts)}.")
    return [*lines, ""]


def write(found: dict[str, dict[str, dict[str, float]]], runs: int, seconds: float) -> None:
    text = [
        "# Geometric transformations and four kinds of clustering",
        "",
        "Written by `benchmarks/quality/oz03_miners.py`, whose first lines say how. Percentages: mean change of the",
        "distance between two rows and between a row and its nearest, then points whose cluster differs from the one",
        f"that the same miner finds in the original. Means of {runs} runs; the whole took {seconds / 60:.1f} minutes.",
        "",
        *(line for name, rows in found.items() for line in (*table(name, rows), *answer(rows))),
    ]
    (RESULTS / "oz03_miners.md").write_text("\n".join(text), encoding="utf-8")
    (RESULTS / "oz03_miners.json").write_text(json.dumps(found) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--data", default=None)
    asked = parser.parse_args()
    begin = time.perf_counter()
    with threadpool_limits(1):
        found = {name: study(name, asked.runs, asked.data) for name in EPS}
    write(found, asked.runs, time.perf_counter() - begin)


if __name__ == "__main__":
    main()
