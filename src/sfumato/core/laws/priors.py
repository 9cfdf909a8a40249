"""What is believed of an answer before it is sent: a probability for each value of the domain."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.core.documents import open_regular
from sfumato.core.errors import OptionError, TableError
from sfumato.core.laws.dates import Dates
from sfumato.core.laws.domains import Labels, Universe

__all__ = ["MOST", "observed_prior", "prior_of", "read_prior", "uniform_prior"]

MOST = 10_000_000
"""Values of a domain for which a prior is written out."""

_SUM = 1e-3  # how far written probabilities may be from 1 together, for they are rounded


def uniform_prior(domain: Universe) -> NDArray[np.float64]:
    """The same probability for each value of the domain."""
    _check_size(domain)
    return np.full(domain.size, 1.0 / domain.size)


def observed_prior(domain: Universe, values: ArrayLike) -> NDArray[np.float64]:
    """Share of each value of the domain among observed values.

    Examples
    --------
    >>> observed_prior(Labels(("no", "yes")), ["yes", "no", "no", "no"])
    array([0.75, 0.25])
    """
    _check_size(domain)
    codes = domain.encode(values)
    if not codes.size:
        raise TableError("a prior needs at least one observed value; the file has none")
    return np.bincount(codes.ravel(), minlength=domain.size) / codes.size


def prior_of(domain: Universe, values: ArrayLike, probabilities: ArrayLike) -> NDArray[np.float64]:
    """Prior that names values and their probabilities; values that are not named have none.

    Examples
    --------
    >>> prior_of(Labels(("a", "b", "c")), ["c", "a"], [0.25, 0.75])
    array([0.75, 0.  , 0.25])
    """
    _check_size(domain)
    chances = np.asarray(probabilities, dtype=np.float64)
    bad = int((~(chances >= 0) | np.isinf(chances)).sum())
    if bad:
        raise TableError(f"{bad} probabilities of the prior are not numbers of 0 or more; correct them")
    total = math.fsum(chances)
    if abs(total - 1.0) > _SUM:
        raise TableError(f"the probabilities of the prior add up to {total:.4g}; make it 1")
    return np.bincount(domain.encode(values), weights=chances, minlength=domain.size) / total


def read_prior(path: str | Path, domain: Universe) -> NDArray[np.float64]:
    """Read a prior from a CSV file: values and probabilities in two columns, or observed values in one.

    A first row that is no such row is taken as names of the columns.
    """
    try:
        with open_regular(path) as data, io.TextIOWrapper(data, encoding="utf-8-sig", newline="") as file:
            rows = [row for row in csv.reader(file) if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise TableError(f"the prior cannot be read ({type(error).__name__}); check the path and the file") from None
    widths = {len(row) for row in rows}
    if not rows or len(widths) > 1 or not widths <= {1, 2}:
        raise TableError("a prior is a CSV file of values and probabilities, or of observed values alone")
    if _is_heading(rows[0], domain):
        rows = rows[1:]
    values = [_value(row[0], domain) for row in rows]
    if widths == {1}:
        return observed_prior(domain, values)
    return prior_of(domain, values, [_number(row[1]) for row in rows])


def _is_heading(row: list[str], domain: Universe) -> bool:
    if len(row) == 2:
        return math.isnan(_number(row[1]))
    if isinstance(domain, Dates):
        return not _is_date(row[0], domain)
    return row[0] not in domain.values if isinstance(domain, Labels) else math.isnan(_number(row[0]))


def _is_date(text: str, domain: Dates) -> bool:
    try:
        domain.count(text)
    except OptionError:
        return False
    return True


def _value(text: str, domain: Universe) -> Any:
    return text if isinstance(domain, Labels | Dates) else _number(text)


def _number(text: str) -> float:
    """Read a number; what is none is not a number, and is counted where numbers are checked."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def _check_size(domain: Universe) -> None:
    if domain.size > MOST:
        raise OptionError(f"a prior is written out for at most {MOST:,} values; choose a coarser grid")
