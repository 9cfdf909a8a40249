"""A released table as the miners of reconstructed distributions see it: output codes, cells, and true classes.

Serves AS00 (R. Agrawal, R. Srikant: Privacy-Preserving Data Mining, SIGMOD 2000), section 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.errors import BadInput, OptionError, SchemaError
from sfumato.mine.intervals import Intervals, Source, choose_intervals, count_missing, divide, places_in_order
from sfumato.randomize.reconstruct.counts import reconstruct_counts
from sfumato.randomize.reconstruct.stopping import STOPS

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "FEWEST_RECORDS",
    "Released",
    "check_classes",
    "check_stop",
    "distributions",
    "read_released",
    "true_intervals",
]

FEWEST_RECORDS = 30
"""Records that a class needs for its distributions to be reconstructed."""


@dataclass(frozen=True, eq=False, repr=False)
class Released:
    """Released records.

    Parameters
    ----------
    columns : tuple of Intervals
    outputs : ndarray of shape (n, d)
        What was sent, as codes of each column's law.
    cells : ndarray of shape (n, d)
        The cell of each.
    code : ndarray of shape (n,)
        Class of each record, an index into ``classes``.
    classes : ndarray of shape (c,)
    """

    columns: tuple[Intervals, ...]
    outputs: NDArray[np.int64]
    cells: NDArray[np.int64]
    code: NDArray[np.int64]
    classes: NDArray[Any]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Intervals of each column."""
        return tuple(column.size for column in self.columns)

    def counts(self, at: int, rows: NDArray[np.int64], groups: NDArray[np.int64], n_groups: int) -> NDArray[np.int64]:
        """Count the cells of one column in some rows, for each group of them."""
        matrix = self.columns[at].matrix
        k = self.columns[at].size if matrix is None else matrix.shape[1]
        return np.bincount(groups * k + self.cells[rows, at], minlength=n_groups * k).reshape(n_groups, k)

    def ranks(self, rng: np.random.Generator) -> NDArray[np.int64]:
        """Give the rank of each output in its column."""
        return np.stack([places_in_order(each, rng) for each in self.outputs.T], axis=1)


def read_released(specs: Mapping[str, Source], X: Any, y: Any, intervals: int | None) -> Released:  # noqa: N803
    """Check and encode a released table.

    Raises
    ------
    SchemaError, BadInput, OptionError
        For columns without specification, missing values, values that cannot have come from the law, a single class.
    """
    if not isinstance(specs, Mapping) or not specs:
        raise OptionError("specs must name each column and its noise specification; give at least one")
    cells_of = _table(X, tuple(specs))
    n = len(cells_of[0])
    classes, code = _read_classes(y, n)
    count = choose_intervals(n) if intervals is None else intervals
    columns = tuple(divide(name, specs[name], count, each) for name, each in zip(specs, cells_of, strict=True))
    outputs = [column.outputs(each) for column, each in zip(columns, cells_of, strict=True)]
    cells = [column.cells(each) for column, each in zip(columns, outputs, strict=True)]
    return Released(columns, np.stack(outputs, axis=1), np.stack(cells, axis=1), code, classes)


def true_intervals(columns: tuple[Intervals, ...], X: Any) -> NDArray[np.int64]:  # noqa: N803
    """Give the interval of every true value of rows to answer for."""
    cells_of = _table(X, tuple(column.name for column in columns))
    return np.stack([column.of_truth(each) for column, each in zip(columns, cells_of, strict=True)], axis=1)


def check_stop(stop: str) -> None:
    """Refuse a way to end the reconstruction that there is not."""
    if stop not in STOPS:
        raise OptionError(f"there is no stop {stop!r}; choose one of {', '.join(STOPS)}")


def check_classes(released: Released) -> None:
    """Refuse classes too small to reconstruct a distribution for each, if there is anything to reconstruct."""
    if all(column.matrix is None for column in released.columns):
        return
    held = np.bincount(released.code, minlength=len(released.classes))
    small = int((held < FEWEST_RECORDS).sum())
    if small:
        raise BadInput(
            f"{small} of {len(held)} classes have fewer than {FEWEST_RECORDS} records, too few to reconstruct their "
            "distributions; join classes, leave them out, or reconstruct all classes together"
        )


def distributions(column: Intervals, counts: NDArray[np.int64], stop: str) -> NDArray[np.float64]:
    """Reconstruct the distribution of a column over its intervals from counts of released cells, a row for each group.

    A column that came as it was has its counts for a distribution. Each group needs a record.
    """
    if column.channel is None:
        return np.asarray(counts / counts.sum(axis=1, keepdims=True))
    return reconstruct_counts(counts, column.channel, stop=stop).probability


def _table(X: Any, names: tuple[str, ...]) -> list[NDArray[Any]]:  # noqa: N803
    """Give the columns by name, or by place where the table has no names."""
    held = (
        X.column_names if hasattr(X, "column_names") else X if isinstance(X, Mapping) else getattr(X, "columns", None)
    )
    if held is None:
        return _matrix(X, names)
    there = [str(name) for name in held]
    for name in names:
        if name not in there:
            raise SchemaError(f"column {name!r} is not in the table; bring it, or leave its specification out")
    for name in there:
        if name not in names:
            raise SchemaError(f"column {name!r} has no noise specification; give one, or leave the column out")
    cells = [np.asarray(X[name]) for name in names]
    if len({len(each) for each in cells}) > 1:
        raise BadInput("the columns are not equally long; bring one value of each for every record")
    return cells


def _matrix(X: Any, names: tuple[str, ...]) -> list[NDArray[Any]]:  # noqa: N803
    array = np.asarray(X)
    if array.ndim != 2 or array.shape[1] != len(names):
        raise SchemaError(
            f"a table without names needs {len(names)} columns, one for each specification; it has shape {array.shape}"
        )
    return list(array.T)


def _read_classes(y: Any, n: int) -> tuple[NDArray[Any], NDArray[np.int64]]:
    labels = np.asarray(y)
    if labels.shape != (n,):
        raise BadInput(f"classes have shape {labels.shape} for {n} records; give one class for each record")
    gone = count_missing(labels)
    if gone:
        raise BadInput(f"{gone} of {n} classes are missing; leave these records out")
    classes, code = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise BadInput(f"the {n} records have fewer than two classes; classification needs two or more")
    return classes, code.astype(np.int64)
