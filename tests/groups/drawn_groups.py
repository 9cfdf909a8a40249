"""Random groups and hand-built mixed records for the tests of `sfumato.core.groups`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.core.groups import Groups, summarize
from sfumato.core.records import CATEGORY_SCALE, Block, BlockKind, Layout


def random_groups(rng: np.random.Generator, *, count: int, size: int, dim: int) -> Groups:
    """Summarize groups of equal size about different places."""
    values = rng.normal(size=(count * size, dim)) @ rng.normal(size=(dim, dim)) + rng.normal(size=dim) * 3.0
    labels = np.repeat(np.arange(count), size)
    return summarize(values, labels, rng.integers(2, 9, count * size))


def from_moments(count: NDArray[np.int64], mean: NDArray[np.float64], covariance: NDArray[np.float64]) -> Groups:
    """Groups by counts, means and covariances (divisor n), without levels."""
    zeros = np.zeros(len(count), dtype=np.int64)
    return Groups(count, mean, covariance * count[:, None, None], zeros.astype(np.float64), zeros)


def merge(left: Groups, right: Groups) -> Groups:
    """Unite the groups of two sides pair by pair, as if their records had been grouped together."""
    count = left.count + right.count
    share = (right.count / count)[:, None]
    gap = right.mean - left.mean
    between = (left.count * right.count / count)[:, None, None] * gap[:, :, None] * gap[:, None, :]
    return Groups(
        count,
        left.mean + share * gap,
        left.scatter + right.scatter + between,
        left.level_sum + right.level_sum,
        np.maximum(left.level_max, right.level_max),
    )


@dataclass(frozen=True)
class Mixed:
    """Records in a layout, with the codes they were made from: -1 is a missing cell."""

    values: NDArray[np.float64]
    layout: Layout
    labels: NDArray[np.int64]
    codes: dict[str, NDArray[np.int64]]
    absent: dict[str, NDArray[np.bool_]]

    @property
    def groups(self) -> Groups:
        """The statistics of the labelled groups."""
        return summarize(self.values, self.labels, np.full(len(self.values), 2))


def mixed_records(
    rng: np.random.Generator, sizes: list[int], columns: list[tuple[int, float]], constant: bool = False
) -> Mixed:
    """Build records by hand: a column is (categories, share of missing cells), and 0 categories is a number."""
    labels = np.repeat(np.arange(len(sizes)), sizes)
    n, start = len(labels), 0
    parts: list[NDArray[np.float64]] = []
    blocks: list[Block] = []
    codes: dict[str, NDArray[np.int64]] = {}
    absent: dict[str, NDArray[np.bool_]] = {}
    for index, (categories, share) in enumerate(columns):
        name = f"column {index}"
        away = rng.random(n) < share
        if categories:
            chosen = np.zeros(n, dtype=np.int64) if constant else rng.integers(0, categories, n)
            part, fill = one_hot(chosen, categories, away)
            codes[name] = np.where(away, -1, chosen)
            blocks.append(Block(name, BlockKind.CATEGORY, start, start + categories, fill))
        else:
            part = np.where(away, 0.0, np.ones(n) if constant else rng.normal(size=n))[:, None]
            blocks.append(Block(name, BlockKind.NUMBER, start, start + 1, (0.0,)))
        parts.append(part)
        start = blocks[-1].stop
        if share > 0.0:
            absent[name] = away
            parts.append(away[:, None].astype(np.float64))
            blocks.append(Block(name, BlockKind.MISSING, start, start + 1))
            start += 1
    return Mixed(np.hstack(parts), tuple(blocks), labels, codes, absent)


def one_hot(
    chosen: NDArray[np.int64], categories: int, away: NDArray[np.bool_] | None = None
) -> tuple[NDArray[np.float64], tuple[float, ...]]:
    """Encode categories; missing cells take the mean of the present ones, which is given too."""
    part = np.zeros((len(chosen), categories))
    part[np.arange(len(chosen)), chosen] = CATEGORY_SCALE
    here = np.ones(len(chosen), dtype=np.bool_) if away is None else ~away
    fill = part[here].mean(axis=0) if here.any() else np.full(categories, CATEGORY_SCALE / categories)
    part[~here] = fill
    return part, tuple(fill.tolist())
