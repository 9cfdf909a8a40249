"""The methods that the grouping benchmark times, ours and the others, behind one call: values and levels to labels."""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.metadata
import importlib.util
import inspect
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

__all__ = ["METHODS", "QUERY_ALL_BELOW", "Job", "Method", "fingerprint", "is_installed", "queried"]

QUERY_ALL_BELOW, QUERIED, QUERIED_WIDE = 20_000, 10_000, 1_000
WIDE = 50  # columns from which the k-d tree looks at so much that fewer points are asked


@dataclass
class Job:
    """What a method is given, and the seconds it adds for the part of the work that it only sampled."""

    values: NDArray[np.float64]
    levels: NDArray[np.int64]
    seed: int = 0
    threads: int = 1
    added_seconds: float = field(default=0.0, init=False)

    @property
    def highest(self) -> int:
        """The one level for methods that know no other."""
        return int(self.levels.max())


@dataclass(frozen=True)
class Method:
    """How to run a method; ``quadratic`` ones are tried on a part first, to know what the whole would cost."""

    run: Callable[[Job], NDArray[np.int64] | None]
    title: str
    quadratic: bool = False
    source: str = ""  # our module that does the work
    package: str = ""  # or the distribution that does
    guaranteed: bool = True  # no group below its level


def _ours(grouping: str, effort: str = "default") -> Callable[[Job], NDArray[np.int64]]:
    def run(job: Job) -> NDArray[np.int64]:
        from sfumato.methods.condense.compact import CompactSearch
        from sfumato.methods.condense.partition import partition

        return partition(
            job.values, job.levels, np.zeros(len(job.values), dtype=np.int64), np.random.default_rng(job.seed),
            grouping=grouping, effort=effort, search=CompactSearch(job.threads),
        )  # fmt: skip

    return run


def queried(n: int, d: int) -> int:
    """Give the number of points that the yardstick asks for their neighbours."""
    return n if n <= QUERY_ALL_BELOW else QUERIED if d < WIDE else QUERIED_WIDE


def _kdtree(job: Job) -> None:
    """Find the k nearest neighbours of every point: scikit-learn's tree, build and query."""
    from sklearn.neighbors import KDTree

    n, d = job.values.shape
    tree = KDTree(job.values, leaf_size=30)
    asked = queried(n, d)
    points = job.values if asked == n else job.values[np.random.default_rng(job.seed).choice(n, asked, replace=False)]
    began = time.process_time()
    tree.query(points, k=int(np.median(job.levels)))
    job.added_seconds = (time.process_time() - began) * (n / asked - 1.0)


def _naive(job: Job) -> NDArray[np.int64]:
    """Take a random record and its k-1 nearest of those left, until fewer than k are left: they join the nearest."""
    values, k = job.values, job.highest
    rng = np.random.default_rng(job.seed)
    labels = np.full(len(values), -1, dtype=np.int64)
    left = rng.permutation(len(values))
    rows = values[left]
    remaining, formed, centres = len(left), 0, []
    while remaining >= k:
        apart = rows[:remaining] - rows[remaining - 1]  # the order is random, so the last is a random record
        taken = np.argpartition(np.einsum("ij,ij->i", apart, apart), k - 1)[:k]
        labels[left[taken]] = formed
        centres.append(rows[taken].mean(axis=0))
        formed += 1
        keep = np.ones(remaining, dtype=bool)
        keep[taken] = False
        holes = taken[taken < remaining - k]  # the tail fills the holes: k records move, not all
        tail = np.flatnonzero(keep[remaining - k :]) + remaining - k
        rows[holes], left[holes] = rows[tail], left[tail]
        remaining -= k
    for place in range(remaining):
        labels[left[place]] = int(((np.array(centres) - rows[place]) ** 2).sum(axis=1).argmin())
    return labels


def _kmeans(job: Job) -> NDArray[np.int64]:
    from sklearn.cluster import KMeans

    model = KMeans(len(job.values) // job.highest, init="random", n_init=1, max_iter=20, random_state=job.seed)
    return np.asarray(model.fit_predict(job.values), dtype=np.int64)


def _constrained(job: Job) -> NDArray[np.int64]:
    from k_means_constrained import KMeansConstrained  # type: ignore[import-untyped]

    k = job.highest
    model = KMeansConstrained(
        len(job.values) // k, size_min=k, n_init=1, max_iter=10, random_state=job.seed, n_jobs=1
    )  # fmt: skip
    return np.asarray(model.fit_predict(job.values), dtype=np.int64)


def _generate(job: Job) -> None:
    """Draw as many rows again from groups that are given: what follows the grouping."""
    from sfumato.core.groups import summarize
    from sfumato.core.groups.generate import generate
    from sfumato.core.records import Block, BlockKind

    n, d = job.values.shape
    order = np.argsort(job.values[:, 0])
    labels = np.empty(n, dtype=np.int64)
    labels[order] = np.minimum(np.arange(n) // job.highest, n // job.highest - 1)
    layout = tuple(Block(f"x{j}", BlockKind.NUMBER, j, j + 1, (0.0,)) for j in range(d))
    generate(summarize(job.values, labels, job.levels), layout, np.random.default_rng(job.seed))


METHODS = {
    "compact fast": Method(
        _ours("compact", "fast"), "sfumato compact, fast", source="sfumato.methods.condense.compact"
    ),
    "compact": Method(_ours("compact"), "sfumato compact, default", source="sfumato.methods.condense.compact"),
    "compact thorough": Method(
        _ours("compact", "thorough"), "sfumato compact, thorough", source="sfumato.methods.condense.compact"
    ),
    "mdav": Method(_ours("mdav"), "sfumato exact MDAV", quadratic=True, source="sfumato.methods.condense.partition"),
    "paper": Method(_ours("paper"), "AY05 ConstructGroups", quadratic=True, source="sfumato.methods.condense.paper"),
    "kdtree": Method(_kdtree, "yardstick: KDTree k-NN", package="scikit-learn"),
    "naive": Method(_naive, "naive condensation", quadratic=True, package="numpy"),
    "kmeans": Method(_kmeans, "KMeans(n/k)", quadratic=True, package="scikit-learn", guaranteed=False),
    "constrained": Method(_constrained, "k-means-constrained", package="k-means-constrained"),
    "generate": Method(_generate, "sfumato summarize + generate", source="sfumato.core.groups.generate"),
}


def is_installed(method: Method) -> bool:
    """Tell whether the package of a method is there; k-means-constrained may be absent."""
    try:
        return not method.package or bool(importlib.metadata.version(method.package))
    except importlib.metadata.PackageNotFoundError:
        return False


def fingerprint(method: Method) -> str:
    """Hash the code behind a method, so that a kept row is known to be of today's code."""
    text = [inspect.getsource(method.run), method.title, f"{QUERY_ALL_BELOW} {QUERIED} {QUERIED_WIDE} {WIDE}"]
    text += [f"{name} {importlib.metadata.version(name)}" for name in ("numpy", "numba")]
    if method.package and is_installed(method):
        text.append(f"{method.package} {importlib.metadata.version(method.package)}")
    if method.source:
        text += [path.read_text(encoding="utf-8") for path in _files(method.source)]
    return hashlib.sha256("\n".join(text).encode()).hexdigest()[:12]


@functools.cache
def _files(module: str) -> tuple[Path, ...]:
    return tuple(sorted(_imports(module, set())))


def _imports(module: str, seen: set[Path]) -> set[Path]:
    """Gather the files of a module of ours and of all it imports from us."""
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None or (path := Path(spec.origin)) in seen:
        return seen
    seen.add(path)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sfumato."):
            _imports(str(node.module), seen)
    return seen
