"""Mining groups themselves, beside mining the synthetic table drawn from them and the original.

Run from the repository root: ``python benchmarks/quality/mine_groups.py [--seeds 10] [--data FOLDER]``.
A seed is a new split (three quarters train, stratified by class where there is one), a new grouping and new synthetic
rows; none is left out. Columns are standardized with the training rows, constant ones dropped. Every record has level
k, the grouping is compact. Three jobs:

* classes: accuracy on the test rows. Condensed class by class, or with the class as a one-hot block of the
  moments ("block"). The original is asked by one and by five neighbours, since groups smooth as five do.
* clusters: centres learned from groups, from groups cut three times (`cut_groups`), from synthetic rows, from the
  original. Their inertia is taken on the ORIGINAL training records and divided by that of the original's own centres;
  agreement is the adjusted Rand index with the original's clusters. "again" is the original with another seed: what
  the chance of seeding does alone.
* mixtures: log-likelihood of a test row, as a difference to the mixture fitted to the original.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from threadpoolctl import threadpool_limits

from sfumato.core.groups import Groups, summarize
from sfumato.core.groups.generate import generate
from sfumato.core.records import CATEGORY_SCALE, Block, BlockKind, Layout
from sfumato.methods.condense.compact import CompactSearch
from sfumato.methods.condense.partition import partition
from sfumato.mining import CentroidNeighbours, GroupKMeans, GroupMixture, GroupNeighbours, cut_groups

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.data import load_table
from benchmarks.quality.mine_report import write_results

SIZES = (5, 10, 20, 50)
POOL_BELOW = 60
REG = 1e-2
"""Variance added to every coordinate of every mixture, original and groups alike: pixels of digits hardly vary."""
Floats = NDArray[np.float64]
Row = dict[str, str | int | float]
Finding = tuple[str, str, str, float]


@dataclass(frozen=True)
class Table:
    """Numeric columns, a class for each row (all 0 where there is none), and what to ask of it."""

    values: Floats
    classes: NDArray[np.int64]
    clusters: int
    components: int


def load(name: str, folder: str | None) -> Table:
    """Read a table; text columns are left out, Ecoli's classes below 60 records are one."""
    bundled = {"wine": datasets.load_wine, "digits": datasets.load_digits, "diabetes": datasets.load_diabetes}
    ask = {"abalone": (5, 4), "digits": (10, 3), "diabetes": (4, 2), "wdbc": (2, 2)}.get(name, (3, 2))
    if name in bundled:
        values, answer = bundled[name](return_X_y=True)
    else:
        table = load_table(name, folder)
        columns = [table.column(c).to_numpy() for c in table.column_names]
        numbers = [c.astype(np.float64) for c in columns[: None if name == "abalone" else -1] if c.dtype.kind in "iuf"]
        values, answer = np.stack(numbers, axis=1), columns[-1]
    if name in ("abalone", "diabetes"):
        answer = np.zeros(len(values))
    _, codes, counts = np.unique(np.asarray(answer).astype(str), return_inverse=True, return_counts=True)
    small = counts < POOL_BELOW if name == "ecoli" else np.zeros(len(counts), dtype=bool)
    merged = np.where(small, len(counts), np.arange(len(counts)))
    return Table(values, np.unique(merged[codes], return_inverse=True)[1].astype(np.int64), *ask)


def split(table: Table, seed: int) -> tuple[Floats, Floats, NDArray[np.int64], NDArray[np.int64]]:
    rows = np.arange(len(table.values))
    strata = table.classes if table.classes.any() else None
    train, test = train_test_split(rows, test_size=0.25, random_state=seed, stratify=strata)
    mean, scale = table.values[train].mean(axis=0), table.values[train].std(axis=0)
    keep = scale > 0.0
    coded = (table.values[:, keep] - mean[keep]) / scale[keep]
    return coded[train], coded[test], table.classes[train], table.classes[test]


def condense(
    values: Floats, strata: NDArray[np.int64], layout: Layout, k: int, seed: int
) -> tuple[Groups, Floats, NDArray[np.int64]]:
    """Group at level k; give the groups, synthetic rows group after group, and the stratum of each group."""
    rng = np.random.default_rng([seed, k])
    levels = np.full(len(values), k)
    labels = partition(values, levels, strata, rng, grouping="compact", search=CompactSearch(threads=1))
    groups = summarize(values, labels, levels)
    of_group = np.zeros(len(groups), dtype=np.int64)
    of_group[labels] = strata
    return groups, generate(groups, layout, rng), of_group


def number_layout(d: int) -> Layout:
    return tuple(Block(f"x{j}", BlockKind.NUMBER, j, j + 1, (0.0,)) for j in range(d))


def classify(name: str, table: Table, seed: int) -> list[Row]:
    """Ask every classifier, at every size that the smallest class allows."""
    train, test, classes, wanted = split(table, seed)

    def near(rows: Floats, own: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
        return {f"{n}-nn": KNeighborsClassifier(n).fit(rows, own).predict(test) for n in (1, 5)}

    answers = {(0, f"original {way}"): given for way, given in near(train, classes).items()}
    d, c = train.shape[1], int(classes.max()) + 1
    block = np.eye(c)[classes] * CATEGORY_SCALE
    layout = (*number_layout(d), Block("class", BlockKind.CATEGORY, d, d + c, tuple(block.mean(axis=0).tolist())))
    for k in SIZES:
        if np.bincount(classes).min() < k:
            continue
        groups, rows, own = condense(train, classes, number_layout(d), k, seed)
        for way, given in near(rows, np.repeat(own, groups.count)).items():
            answers[k, f"synthetic {way}"] = given
        answers[k, "groups, centroid"] = CentroidNeighbours().fit(groups, own).predict(test)
        answers[k, "groups, density"] = GroupNeighbours().fit(groups, own).predict(test)
        groups, rows, _ = condense(np.hstack([train, block]), np.zeros_like(classes), layout, k, seed)
        for way, given in near(rows[:, :d], rows[:, d:].argmax(axis=1)).items():
            answers[k, f"block: synthetic {way}"] = given
        for way, miner in (("centroid", CentroidNeighbours()), ("density", GroupNeighbours())):
            answers[k, f"block: groups, {way}"] = miner.fit_target(groups, layout, "class").predict(test)
    head: Row = {"table": name, "seed": seed}
    return [
        {**head, "k": k, "job": "classes", "way": way, "measure": "accuracy", "value": float((given == wanted).mean())}
        for (k, way), given in answers.items()
    ]


def inertia_of(values: Floats, centres: Floats) -> tuple[float, NDArray[np.int64]]:
    far = ((values[:, None, :] - centres) ** 2).sum(axis=2)
    return float(far.min(axis=1).sum()), far.argmin(axis=1)


def cluster_and_mix(name: str, table: Table, seed: int) -> list[Row]:
    """Compare clusters and mixtures of the same groups and synthetic rows."""
    train, test, _, _ = split(table, seed)
    clusters, mixtures = Clusters(train, table.clusters, seed), Mixtures(train, test, table.components, seed)
    found = [(0, *row) for row in clusters.baseline() + mixtures.baseline()]
    for k in SIZES:
        if len(train) // k < 2 * table.clusters:
            continue
        groups, rows, _ = condense(train, np.zeros(len(train), dtype=np.int64), number_layout(train.shape[1]), k, seed)
        for way, given in (("groups", groups), ("groups, cut", cut_groups(groups)), ("synthetic", rows)):
            found += [(k, *row) for row in clusters.compare(way, given) + mixtures.compare(way, given)]
    names = ("k", "job", "way", "measure", "value")
    return [{"table": name, "seed": seed, **dict(zip(names, row, strict=True))} for row in found]


@dataclass(frozen=True)
class Clusters:
    """K-means on the original training records, and what centres from elsewhere are worth on them."""

    train: Floats
    count: int
    seed: int

    @cached_property
    def base(self) -> tuple[float, NDArray[np.int64]]:
        """Inertia and clusters of the original."""
        own = KMeans(self.count, n_init=10, random_state=self.seed).fit(self.train)
        return inertia_of(self.train, own.cluster_centers_)

    def baseline(self) -> list[Finding]:
        """Measure the original with another seed."""
        start = time.process_time()
        again = KMeans(self.count, n_init=10, random_state=self.seed + 1000).fit(self.train)
        return self._measure("original again", again.cluster_centers_, time.process_time() - start)

    def compare(self, way: str, given: Groups | Floats) -> list[Finding]:
        """Measure the centres of groups or of rows."""
        start = time.process_time()
        if isinstance(given, Groups):
            centres = GroupKMeans(n_clusters=self.count, random_state=self.seed).fit(given).cluster_centers_
        else:
            centres = KMeans(self.count, n_init=10, random_state=self.seed).fit(given).cluster_centers_
        return self._measure(way, centres, time.process_time() - start)

    def _measure(self, way: str, centres: Floats, seconds: float) -> list[Finding]:
        best, own = self.base
        reached, labels = inertia_of(self.train, centres)
        agreement = float(adjusted_rand_score(own, labels))
        head = ("clusters", way)
        return [(*head, "inertia ratio", reached / best), (*head, "agreement", agreement), (*head, "seconds", seconds)]


@dataclass(frozen=True)
class Mixtures:
    """A Gaussian mixture on the original training records, and how others do on the test rows beside it."""

    train: Floats
    test: Floats
    count: int
    seed: int

    @cached_property
    def base(self) -> float:
        """Log-likelihood of a test row under the original's mixture."""
        return float(self._fit(self.train, self.seed).score(self.test))

    def baseline(self) -> list[Finding]:
        """Measure the original with another seed, and the plainest model."""
        again = self._fit(self.train, self.seed + 1000).score(self.test)
        one = GaussianMixture(1, reg_covar=REG).fit(self.train).score(self.test)
        return [
            ("mixtures", "original", "log-likelihood", self.base),
            ("mixtures", "original again", "difference", again - self.base),
            ("mixtures", "one Gaussian", "difference", one - self.base),
        ]

    def compare(self, way: str, given: Groups | Floats) -> list[Finding]:
        """Measure the mixture of groups or of rows."""
        start = time.process_time()
        fitted = self._fit(given, self.seed)
        seconds = time.process_time() - start
        gain = fitted.score(self.test) - self.base
        return [("mixtures", way, "difference", gain), ("mixtures", way, "seconds", seconds)]

    def _fit(self, given: Groups | Floats, seed: int) -> GroupMixture | GaussianMixture:
        options = {"reg_covar": REG, "n_init": 5, "random_state": seed, "max_iter": 200}
        if isinstance(given, Groups):
            return GroupMixture(n_components=self.count, **options).fit(given)
        return GaussianMixture(self.count, **options).fit(given)


JOBS = {
    classify: ("ionosphere", "ecoli", "pima_diabetes"),
    cluster_and_mix: ("abalone", "wdbc", "iris", "wine", "digits", "diabetes"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--data", default=None, help="folder of the tables; default: SFUMATO_DATA")
    chosen = parser.parse_args()
    found: list[Row] = []
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for job, names in JOBS.items():
            for name in names:
                table = load(name, chosen.data)
                start = time.perf_counter()
                for seed in range(chosen.seeds):
                    found += job(name, table, seed)
                print(f"{job.__name__} {name}: {time.perf_counter() - start:.1f} s", flush=True)
    write_results(found, chosen.seeds, Path(__file__).resolve().parents[1] / "results")


if __name__ == "__main__":
    main()
