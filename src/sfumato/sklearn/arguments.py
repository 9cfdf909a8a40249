"""What the estimators share: chance, privacy levels, and rows drawn from groups."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from sfumato.condense.mechanism import effective_levels
from sfumato.errors import LevelError
from sfumato.groups import Groups, generate
from sfumato.records import Block, BlockKind

__all__ = ["draw_rows", "generator_of", "levels_of_rows"]


def generator_of(random_state: Any, step: int) -> np.random.Generator:
    """Give the generator of one step: seeded where a state was given, else a release's own randomness."""
    if random_state is None:
        from sfumato.randomness import Randomness

        return Randomness().generator("estimator")
    seed = check_random_state(random_state).randint(2**31 - 1)
    return np.random.default_rng([int(seed), step])


def levels_of_rows(levels: Any, n: int, k: int) -> NDArray[np.int64]:
    """Give the level that holds for each row; the floor k is at least 2, for a row that stands alone is published."""
    if k < 2:
        raise LevelError(f"k is {k}, which is no protection; take k of at least 2")
    return effective_levels(_whole_levels(levels, n), k, allow_level_1=False)


def _whole_levels(levels: Any, n: int) -> NDArray[np.int64]:
    """Read privacy levels, one a row, none missing; zeros, which ask for nothing, where there are none."""
    if levels is None:
        return np.zeros(n, dtype=np.int64)
    numbers = np.asarray(levels, dtype=np.float64)
    if numbers.shape != (n,):
        raise LevelError(f"privacy_levels has shape {numbers.shape} for {n} rows; give one level a row")
    odd = int((~np.isfinite(numbers) | (numbers != np.rint(numbers))).sum())
    if odd:
        raise LevelError(f"{odd} privacy levels are missing or not whole numbers; levels are whole numbers from 2")
    return numbers.astype(np.int64)


def draw_rows(groups: Groups, rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw as many rows as the groups have records, group after group; every coordinate is a number."""
    d = groups.mean.shape[1]
    layout = tuple(Block(f"x{column}", BlockKind.NUMBER, column, column + 1, (0.0,)) for column in range(d))
    return generate(groups, layout, rng)
