"""The procedure to improve privacy: more noise for some of the rows [OZ03, sec. 5.4]."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from sfumato.core.errors import OptionError
from sfumato.core.laws.noise import LAWS, add_noise

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from sfumato.core.laws.noise import Law

__all__ = ["Pairs", "check_columns", "check_enhance", "check_size", "enhance_rows", "pairs_of"]

Pairs = tuple[tuple[str, str], ...]
"""Columns and the law of each."""

_SMALLEST, _LARGEST = 0.01, 100.0  # below a hundredth of the deviation nothing is hidden, above a hundredfold none left


def pairs_of(given: Iterable[Any]) -> Pairs:
    """Read pairs of column and law, which come as lists from a recipe."""
    pairs = tuple(tuple(pair) if isinstance(pair, list | tuple) else (pair,) for pair in given)
    if any(len(pair) != 2 or not all(isinstance(word, str) for word in pair) for pair in pairs):
        raise OptionError("enhance_laws takes pairs of a column and a law, such as ('age', 'uniform')")
    return tuple((pair[0], pair[1]) for pair in pairs)


def check_size(name: str, size: float) -> None:
    """Refuse a size of noise that is none."""
    if isinstance(size, bool) or not math.isfinite(size) or not _SMALLEST <= size <= _LARGEST:
        raise OptionError(f"{name} must lie between {_SMALLEST:g} and {_LARGEST:g} standard deviations; try 1")


def check_enhance(share: float, size: float, laws: Pairs) -> None:
    """Refuse laws that there are not, a size that is none, and what is no share of the rows."""
    check_size("enhance_size", size)
    for _, name in laws:
        if name not in LAWS:
            raise OptionError(f"there is no noise law {name!r}; choose one of {', '.join(LAWS)}")
    if isinstance(share, bool) or not 0.0 <= share <= 1.0:
        raise OptionError("enhance is a share of the rows and must lie between 0 and 1; the paper takes 0.05")
    columns = [column for column, _ in laws]
    if len(set(columns)) < len(columns):
        raise OptionError("enhance_laws names a column twice; give each column one law")
    if laws and not share:
        raise OptionError("enhance_laws needs a share of rows; set enhance, the paper takes 0.05")


def check_columns(laws: Pairs, columns: Iterable[str]) -> None:
    """Refuse a law for a column that gets no noise."""
    known = set(columns)
    unknown = [column for column, _ in laws if column not in known]
    if unknown:
        raise OptionError(f"enhance_laws names {unknown[0]!r}, which is no column of numbers; name another")


def enhance_rows(
    values: NDArray[np.float64], share: float, laws: Sequence[Law], rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Rows of which a share rho got noise, in each attribute by its own law, and which these are.

    Implements the three steps of [OZ03, sec. 5.4]; the laws are the choice of its step 1. The laws here have mean 0,
    those of the paper's example do not (uniform on [-12, 18], normal around 15,000). At least one row is chosen.
    """
    import numpy as np

    rho = min(len(values), max(1, round(share * len(values))))
    chosen = rng.choice(len(values), size=rho, replace=False)  # step 2
    enhanced = values.copy()
    for place, law in enumerate(laws):
        enhanced[chosen, place] = add_noise(values[chosen, place], law, rng)  # step 3, by ADP
    return enhanced, np.asarray(chosen, dtype=np.int64)
