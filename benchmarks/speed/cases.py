"""What the grouping benchmark runs on: made tables, reference tables, levels, and which method runs where.

The design is a star around the mixture with d = 10, k = 5 and one level: each axis is varied alone, at 10,000 rows with
every method and at 100,000 rows with those that can.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.data import load_table
from sfumato.core.records import CATEGORY_SCALE

__all__ = [
    "ALPHAS",
    "LEVEL_TABLES",
    "MADE",
    "NORMAL",
    "REFERENCES",
    "REFERENCE_GOALS",
    "REFERENCE_KS",
    "Case",
    "Run",
    "compared",
    "design",
    "make_levels",
    "make_values",
    "reference_case",
    "values_of",
]

MADE = ("mixture", "heavy tails", "duplicates", "categories")
REFERENCES = {
    "Tarragona": ("tarragona_casc", 834, 13),
    "Census": ("census_casc", 1080, 13),
    "WDBC": ("wdbc", 569, 30),
}
LEVEL_TABLES = {
    "Abalone": ("abalone", 4177, 8),
    "Pima": ("pima_diabetes", 768, 8),
    "Ecoli": ("ecoli", 336, 7),
    "Ionosphere": ("ionosphere", 351, 34),
}
REFERENCE_GOALS = {  # information loss at k = 3, 4, 5, 10
    ("Tarragona", "compact"): (15.17, 17.69, 20.92, 30.80),
    ("Tarragona", "compact thorough"): (14.75, 17.28, 20.37, 30.59),
    ("Census", "compact"): (5.33, 6.81, 8.25, 12.50),
    ("Census", "compact thorough"): (5.18, 6.64, 7.95, 12.16),
}
REFERENCE_KS, ALPHAS, BETA = (3, 4, 5, 10), (10, 30, 50), 4
NORMAL = "normal"  # independent normal columns, which have no groups to find; the wide tables
WIDTHS = (250, 2_000)
COMPARED = ("Tarragona", "Census", "WDBC", "Ionosphere")
COMPARED_KS = (3, 5, 10, 25)
COMPONENTS, SEPARATION = 20, 3.3  # MDAV loses here about what it lost on the mixture of the issue

OURS = ("compact fast", "compact", "compact thorough")
EXACT = (*OURS, "mdav", "paper", "kdtree", "naive", "kmeans")
PLAIN = tuple(method for method in EXACT if method != "compact thorough")
LARGE = ("compact fast", "compact", "mdav", "kdtree")
SEEDS = {"compact thorough": 3, "mdav": 1}  # of a reference table, others five: one run is one seed, all are shown


@dataclass(frozen=True)
class Case:
    """One table with its levels: ``one`` is k for all, ``k..5k`` uniform up to 5k, ``k-4..k`` uniform below k."""

    table: str
    n: int
    d: int
    k: int
    levels: str = "one"

    def __str__(self) -> str:
        low, high = (self.k, 5 * self.k) if self.levels == "k..5k" else (self.k - BETA, self.k)
        asked = f"k = {self.k}" if self.levels == "one" else f"levels {low} to {high}"
        return f"{self.table}, n = {self.n:,}, d = {self.d}, {asked}"


@dataclass(frozen=True)
class Run:
    """One method on one case, in a process of its own."""

    case: Case
    method: str
    threads: int = 1
    seeds: int = 1

    @property
    def name(self) -> str:
        """The method, and its threads where they are not one."""
        return self.method if self.threads == 1 else f"{self.method}, {self.threads} threads"


def make_values(case: Case) -> NDArray[np.float64]:
    """Give the rows of a case, numbers standardized; the same for the same table, n and d.

    Raises
    ------
    TableNotFoundError
        Where a reference table is not to be had.
    """
    if case.table not in MADE:
        return _reference(case.table)
    rng = np.random.default_rng([MADE.index(case.table), case.d])  # the law first, so that n does not change it
    if case.table == "categories":
        return _categories(rng, case.n)
    if case.table == "heavy tails":
        turn = rng.standard_normal((case.d, case.d))
        return _standardized(rng.standard_t(2.5, size=(case.n, case.d)) @ turn)
    values = _standardized(_mixture(rng, case.n, case.d))
    if case.table == "duplicates":
        most = case.n // 4  # three of four rows repeat another
        return np.ascontiguousarray(values[rng.integers(most, size=case.n)].round(1))
    return values


def values_of(case: Case) -> NDArray[np.float64]:
    """Rows of any case; those of `make_values`, whose text is in the key of every kept row, and the wide tables."""
    if case.table == NORMAL:
        return _standardized(np.random.default_rng([case.n, case.d]).standard_normal((case.n, case.d)))
    return make_values(case)


def make_levels(case: Case, n: int, seed: int) -> NDArray[np.int64]:
    """Draw the levels of a case."""
    rng = np.random.default_rng([n, case.k, seed])
    if case.levels == "k..5k":
        return rng.integers(case.k, 5 * case.k + 1, size=n)
    if case.levels == "k-4..k":
        return rng.integers(case.k - BETA, case.k + 1, size=n)
    return np.full(n, case.k, dtype=np.int64)


def _mixture(rng: np.random.Generator, n: int, d: int) -> NDArray[np.float64]:
    """Draw from Gaussians of random covariance."""
    centres = SEPARATION * rng.standard_normal((COMPONENTS, d))
    shapes = rng.standard_normal((COMPONENTS, d, d)) / np.sqrt(d)
    which = rng.integers(COMPONENTS, size=n)
    values = rng.standard_normal((n, d))
    for component in range(COMPONENTS):
        rows = which == component
        values[rows] = values[rows] @ shapes[component] + centres[component]
    return values


def _categories(rng: np.random.Generator, n: int) -> NDArray[np.float64]:
    """Draw eight columns of 3 to 12 categories, coded as the codec does, and two numbers, tied by a hidden class."""
    counts = (3, 4, 5, 6, 8, 9, 10, 12)
    shares = [rng.dirichlet(np.full(count, 0.5), size=6).cumsum(axis=1) for count in counts]
    centres = 2.0 * rng.standard_normal((6, 2))
    hidden = rng.integers(6, size=n)
    blocks = []
    for count, share in zip(counts, shares, strict=True):
        codes = np.minimum((rng.random(n)[:, None] > share[hidden]).sum(axis=1), count - 1)
        blocks.append(np.eye(count)[codes] * CATEGORY_SCALE)
    numbers = _standardized(rng.standard_normal((n, 2)) + centres[hidden])
    return np.concatenate([*blocks, numbers], axis=1)


def _reference(name: str) -> NDArray[np.float64]:
    """Read the numeric columns of a table, its class left out."""
    table = load_table((REFERENCES | LEVEL_TABLES)[name][0])
    kept = table.column_names if name in REFERENCES or name == "Abalone" else table.column_names[:-1]
    cells = [table.column(column).to_numpy() for column in kept]
    return _standardized(np.stack([c.astype(np.float64) for c in cells if c.dtype.kind not in "OU"], axis=1))


def _standardized(values: NDArray[np.float64]) -> NDArray[np.float64]:
    values = values - values.mean(axis=0)
    scale = values.std(axis=0)
    return np.ascontiguousarray(values / np.where(scale > 0.0, scale, 1.0))


def design(mode: str, most_rows: int) -> list[Run]:
    """List the runs of ``quick``, ``default`` or ``full``, cases together, none above a number of rows."""
    runs = {"quick": _quick, "default": _default, "full": _full}[mode]()
    return [run for run in dict.fromkeys(runs) if run.case.n <= most_rows]


def _default() -> Iterator[Run]:
    centre = _mix(10_000)
    yield from _each(centre, (*EXACT, "generate"))
    for k in (3, 25):
        yield from _each(_mix(10_000, k=k), EXACT)
    yield from _each(_mix(10_000, k=200), PLAIN)
    yield from _each(_mix(10_000, d=2), EXACT)
    for d in (50, 100):
        yield from _each(_mix(10_000, d=d), PLAIN)
    for table in MADE[1:]:
        yield from _each(Case(table, 10_000, _width(table), 5), EXACT)
    yield from _each(Case("mixture", 10_000, 10, 5, "k..5k"), tuple(m for m in PLAIN if m != "kmeans"))
    yield from _each(_mix(4_000), (*OURS, "mdav", "naive", "kmeans", "constrained"))
    yield from _each(_mix(100_000), (*EXACT, "generate"))
    yield Run(_mix(100_000), "compact", threads=2)
    for k in (3, 25, 200):
        yield from _each(_mix(100_000, k=k), LARGE)
    for d in (2, 50, 100):
        yield from _each(_mix(100_000, d=d), LARGE)
    for table in MADE[1:]:
        yield from _each(Case(table, 100_000, _width(table), 5), LARGE)
    yield from _each(Case("mixture", 100_000, 10, 5, "k..5k"), (*LARGE, "paper"))
    yield from _each(_mix(300_000), ("compact fast", "compact"))
    yield from _each(_mix(1_000_000), ("compact fast", "compact", "mdav", "paper", "kdtree", "naive", "generate"))
    yield Run(_mix(1_000_000), "compact", threads=2)
    yield from _each(_mix(1_000_000, k=25), ("compact fast", "compact", "kdtree"))
    yield from _tables()


def _full() -> Iterator[Run]:
    yield from _default()
    yield Run(_mix(1_000_000), "compact fast", threads=2)
    yield Run(_mix(10_000, k=200), "compact thorough")
    for d in (50, 100):
        yield Run(_mix(10_000, d=d), "compact thorough")
    yield Run(Case("mixture", 10_000, 10, 5, "k..5k"), "compact thorough")
    for k in (5, 25):
        yield from _each(_mix(50_000, k=k), EXACT)
    for k in (3, 25, 200):
        yield from _each(_mix(100_000, k=k), EXACT)
    for d in (2, 50, 100):
        yield from _each(_mix(100_000, d=d), EXACT)
    for table in MADE[1:]:
        yield from _each(Case(table, 100_000, _width(table), 5), EXACT)
        yield from _each(Case(table, 10_000, _width(table), 25), EXACT)
        yield from _each(Case(table, 1_000_000, _width(table), 5), ("compact fast", "compact", "kdtree"))
    for n in (10_000, 100_000):
        yield from _each(Case("mixture", n, 10, 25, "k..5k"), (*OURS, "mdav", "paper", "naive"))
    yield from _each(Case("mixture", 1_000_000, 10, 5, "k..5k"), ("compact fast", "compact", "kdtree"))
    yield from _each(_mix(300_000), (*LARGE, "compact thorough"))
    yield from _each(_mix(300_000, k=25), LARGE)
    for k in (3, 200):
        yield from _each(_mix(1_000_000, k=k), ("compact fast", "compact", "kdtree"))
    for d in (2, 50):
        yield from _each(_mix(1_000_000, d=d), ("compact fast", "compact", "kdtree"))


def _quick() -> Iterator[Run]:
    yield from _each(_mix(5_000), (*OURS, "mdav", "paper", "kdtree", "naive", "kmeans", "generate"))
    yield from _each(_mix(500), ("compact", "constrained"))
    for table in MADE[1:]:
        yield from _each(Case(table, 5_000, _width(table), 5), ("compact", "mdav"))
    yield from _each(Case("mixture", 5_000, 10, 5, "k..5k"), ("compact", "paper"))
    yield from _each(_mix(30_000), ("compact fast", "compact", "kdtree"))
    yield Run(_mix(30_000), "compact", threads=2)
    for method in ("compact", "mdav"):
        yield Run(reference_case("Tarragona", 3), method)
    for method in ("compact", "paper"):
        yield Run(reference_case("Ecoli", 10, "k-4..k"), method)


def compared() -> list[Run]:
    """List the runs in which an earlier version is set beside this one: usual tables and wide ones."""
    usual = [
        Run(reference_case(table, k), "compact", seeds=SEEDS.get("compact", 5))
        for table in COMPARED
        for k in COMPARED_KS
    ]
    return [*usual, *(Run(Case(NORMAL, 500, d, 5), "compact", seeds=1) for d in WIDTHS)]


def _mix(n: int, d: int = 10, k: int = 5) -> Case:
    return Case("mixture", n, d, k)


def reference_case(table: str, k: int, levels: str = "one") -> Case:
    """Give a reference table with one level, or with levels up to k."""
    _, n, d = (REFERENCES | LEVEL_TABLES)[table]
    return Case(table, n, d, k, levels)


def _width(table: str) -> int:
    return 59 if table == "categories" else 10


def _each(case: Case, methods: tuple[str, ...]) -> Iterator[Run]:
    for method in methods:
        yield Run(case, method)


def _tables() -> Iterator[Run]:
    """Run the reference tables: one level beside published figures, and levels in [a - 4, a] beside the paper's way.

    Then what `compared` lists, and on the wide tables what the default might have missed.
    """
    for table in REFERENCES:
        for k in REFERENCE_KS:
            for method in (*OURS, "mdav", "paper"):
                yield Run(reference_case(table, k), method, seeds=SEEDS.get(method, 5))
    for table in LEVEL_TABLES:
        for alpha in ALPHAS:
            for method in ("compact", "paper"):
                yield Run(reference_case(table, alpha, "k-4..k"), method, seeds=20)
    yield from compared()
    for d in WIDTHS:
        yield from _each(Case(NORMAL, 500, d, 5), ("compact fast", "compact thorough", "mdav"))
