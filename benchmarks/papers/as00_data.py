"""The tables of the AS00 benchmark: real ones with declared domains, and the paper's generator with its five functions.

AS00: R. Agrawal, R. Srikant: Privacy-Preserving Data Mining, SIGMOD 2000. Generator and functions are those of its
section 5, after R. Agrawal, T. Imielinski, A. Swami: Database Mining: A Performance Perspective, TKDE 5(6), 1993.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.data import load_table
from sfumato.core.distributions.domains import Integers, Reals
from sfumato.core.distributions.spec import NoiseSpec
from sfumato.survey.mining import noise_for_privacy

__all__ = ["FUNCTIONS", "TABLES", "Problem", "generate", "load_problem", "specs_for"]

TABLES = {"adult_train": "Adult", "magic_gamma": "Magic", "waveform5000_noise": "Waveform", "pima_diabetes": "Pima"}
FUNCTIONS = ("Fn1", "Fn2", "Fn3", "Fn4", "Fn5")
_FINENESS = 1000  # places that the range of a real column has at least

Columns = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Problem:
    """Columns of numbers, their declared domains, and the class."""

    columns: Columns
    domains: dict[str, Integers | Reals]
    classes: NDArray[Any]


def load_problem(name: str, folder: str | None, rows: int | None) -> Problem:
    """Read the numeric columns of a table; the domain of each is from its lowest to its highest value."""
    table = load_table(name, folder)
    cells = {column: table.column(column).to_numpy() for column in table.column_names}
    target = table.column_names[-1]
    columns = {key: each for key, each in cells.items() if key != target and each.dtype.kind in "if"}
    domains = {key: _domain(each) for key, each in columns.items()}
    kept = np.random.default_rng(0).permutation(table.num_rows)[:rows]
    return Problem({key: each[kept] for key, each in columns.items()}, domains, cells[target][kept])


def _domain(values: NDArray[Any]) -> Integers | Reals:
    if values.dtype.kind == "i":
        return Integers(int(values.min()), int(values.max()))
    grid = Decimal(10) ** math.floor(math.log10(float(np.ptp(values)) / _FINENESS))
    low, high = math.floor(Decimal(float(values.min())) / grid), math.ceil(Decimal(float(values.max())) / grid)
    return Reals(float(low * grid), float(high * grid), float(grid))


def specs_for(domains: dict[str, Integers | Reals], law: str, privacy: float) -> dict[str, NoiseSpec]:
    """Give the noise of a wanted privacy for every column."""
    return {
        name: NoiseSpec(domain, noise_for_privacy(law, privacy, domain.low, domain.high, step=domain.step))
        for name, domain in domains.items()
    }


def generate(function: str, n: int, rng: np.random.Generator) -> Problem:
    """Draw records of the paper's people and classify them by one of its functions."""
    salary = rng.integers(20_000, 150_000, n, endpoint=True)
    zipcode = rng.integers(1, 9, n, endpoint=True)
    columns: Columns = {
        "salary": salary,
        "commission": np.where(salary >= 75_000, 0, rng.integers(10_000, 75_000, n, endpoint=True)),
        "age": rng.integers(20, 80, n, endpoint=True),
        "elevel": rng.integers(0, 4, n, endpoint=True),
        "car": rng.integers(1, 20, n, endpoint=True),
        "zipcode": zipcode,
        "hvalue": rng.integers(zipcode * 50_000, zipcode * 150_000, endpoint=True),
        "hyears": rng.integers(1, 30, n, endpoint=True),
        "loan": rng.integers(0, 500_000, n, endpoint=True),
    }
    domains: dict[str, Integers | Reals] = {
        "salary": Integers(20_000, 150_000),
        "commission": Integers(0, 75_000),
        "age": Integers(20, 80),
        "elevel": Integers(0, 4),
        "car": Integers(1, 20),
        "zipcode": Integers(1, 9),
        "hvalue": Integers(50_000, 1_350_000),
        "hyears": Integers(1, 30),
        "loan": Integers(0, 500_000),
    }
    return Problem(columns, domains, np.where(_group_a(function, columns), "A", "B"))


def _group_a(function: str, c: Columns) -> NDArray[np.bool_]:
    """Say who is in group A."""
    salary, age, level = c["salary"], c["age"], c["elevel"]
    young, middle, old = age < 40, (age >= 40) & (age < 60), age >= 60

    def earns(low: int, high: int) -> NDArray[np.bool_]:
        return np.asarray((salary >= low * 1000) & (salary <= high * 1000))

    if function == "Fn1":
        return np.asarray(young | old)
    if function == "Fn2":
        return np.asarray((young & earns(50, 100)) | (middle & earns(75, 125)) | (old & earns(25, 75)))
    if function == "Fn3":
        first = ((level <= 1) & earns(25, 75)) | ((level >= 2) & (level <= 3) & earns(50, 100))
        second = ((level >= 1) & (level <= 3) & earns(50, 100)) | ((level == 4) & earns(75, 125))
        third = ((level >= 2) & earns(50, 100)) | ((level == 1) & earns(25, 75))
        return np.asarray((young & first) | (middle & second) | (old & third))
    left = 0.67 * (salary + c["commission"]) - 0.2 * c["loan"] - 10_000
    equity = 0.1 * c["hvalue"] * np.maximum(c["hyears"] - 20, 0)
    return np.asarray(left + (0.2 * equity if function == "Fn5" else 0.0) > 0)
