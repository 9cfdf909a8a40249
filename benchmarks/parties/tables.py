"""Tables for the benchmarks of joint runs: coordinates, their layout and declared bounds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.data import load_table
from sfumato.core.records import CATEGORY_SCALE, Block, BlockKind, Layout

__all__ = ["TITLES", "Coordinates", "coordinates", "more_rows"]

TITLES = {"concrete": "Concrete", "boston_housing": "Housing", "mixed": "mixed"}
_MIXED_ROWS = 2_000
_ROOM = 0.1  # declared bounds lie this part of the range beyond the extremes


@dataclass(frozen=True, eq=False, repr=False)
class Coordinates:
    """A table as a mechanism sees it, with the bounds that its owners would declare."""

    values: NDArray[np.float64]
    layout: Layout
    target: str
    low: NDArray[np.float64]
    high: NDArray[np.float64]


def coordinates(name: str, folder: str | None = None, rows: int | None = None) -> Coordinates:
    """Standardize a table; ``rows`` draws more of them, see `more_rows`."""
    if name == "mixed":
        values, layout = _mixed(rows or _MIXED_ROWS, np.random.default_rng(9))
        return _bounded(values, layout, "y")
    table = load_table(name, folder)
    values = np.column_stack([column.to_numpy().astype(np.float64) for column in table.columns])
    if rows is not None and rows != len(values):
        values = more_rows(values, rows, np.random.default_rng(9))
    values = (values - values.mean(axis=0)) / values.std(axis=0)
    names = table.column_names
    layout = tuple(Block(column, BlockKind.NUMBER, place, place + 1) for place, column in enumerate(names))
    return _bounded(values, layout, names[-1])


def more_rows(values: NDArray[np.float64], rows: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw rows again with a tenth of a standard deviation of noise, within the bounds of the columns."""
    drawn = values[rng.integers(0, len(values), rows)]
    noisy = drawn + 0.1 * values.std(axis=0) * rng.standard_normal(drawn.shape)
    return np.asarray(np.clip(noisy, values.min(axis=0), values.max(axis=0)).round(2))


def _mixed(rows: int, rng: np.random.Generator) -> tuple[NDArray[np.float64], Layout]:
    """Make numbers, two columns of categories, and a column with gaps, all tied to two hidden causes."""
    hidden = rng.standard_normal((rows, 2))
    numbers = hidden @ rng.standard_normal((2, 4)) + 0.5 * rng.standard_normal((rows, 4))
    numbers = (numbers - numbers.mean(axis=0)) / numbers.std(axis=0)
    gone = rng.random(rows) < 0.1
    numbers[gone, 1] = numbers[~gone, 1].mean()  # a missing cell takes the column mean
    town = np.digitize(hidden[:, 0] + 0.5 * rng.standard_normal(rows), [-1.0, -0.2, 0.4, 1.1])
    sex = (hidden[:, 1] + rng.standard_normal(rows) > 0).astype(np.int64)
    values = np.column_stack(
        [
            numbers[:, :2],
            gone,
            numbers[:, 2],
            *(CATEGORY_SCALE * np.eye(k)[c] for c, k in ((town, 5), (sex, 2))),
            numbers[:, 3],
        ]
    )
    layout = (
        Block("age", BlockKind.NUMBER, 0, 1),
        Block("pay", BlockKind.NUMBER, 1, 2),
        Block("pay", BlockKind.MISSING, 2, 3),
        Block("size", BlockKind.NUMBER, 3, 4),
        Block("town", BlockKind.CATEGORY, 4, 9),
        Block("sex", BlockKind.CATEGORY, 9, 11),
        Block("y", BlockKind.NUMBER, 11, 12),
    )
    return values, layout


def _bounded(values: NDArray[np.float64], layout: Layout, target: str) -> Coordinates:
    least, most = values.min(axis=0), values.max(axis=0)
    room = _ROOM * (most - least)
    return Coordinates(np.ascontiguousarray(values), layout, target, least - room, most + room)
