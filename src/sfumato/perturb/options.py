"""Options that both kinds of noise share, and what is refused of them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from sfumato.errors import OptionError
from sfumato.laws import LAWS, choose_step

__all__ = ["LARGEST", "SMALLEST", "Pairs", "check_noise", "common_step", "pairs_of"]

Pairs = tuple[tuple[str, str], ...]
"""Columns and the law of each."""

SMALLEST, LARGEST = 0.01, 100.0
"""Noise below a hundredth of the deviation hides nothing; above a hundredfold nothing is left."""


def pairs_of(given: Iterable[Any]) -> Pairs:
    """Read pairs of column and law, which come as lists from a recipe."""
    pairs = tuple(tuple(pair) if isinstance(pair, list | tuple) else (pair,) for pair in given)
    if any(len(pair) != 2 or not all(isinstance(word, str) for word in pair) for pair in pairs):
        raise OptionError("enhance_laws takes pairs of a column and a law, such as ('age', 'uniform')")
    return tuple((pair[0], pair[1]) for pair in pairs)


def check_noise(law: str, size: float, enhance: float, enhance_size: float, enhance_laws: Pairs) -> None:
    """Refuse laws that there are not and sizes that are none."""
    for name in (law, *(name for _, name in enhance_laws)):
        if name not in LAWS:
            raise OptionError(f"there is no noise law {name!r}; choose one of {', '.join(LAWS)}")
    for name, number in (("size", size), ("enhance_size", enhance_size)):
        if isinstance(number, bool) or not math.isfinite(number) or not SMALLEST <= number <= LARGEST:
            raise OptionError(f"{name} must lie between {SMALLEST:g} and {LARGEST:g} standard deviations; try 1")
    if isinstance(enhance, bool) or not 0.0 <= enhance <= 1.0:
        raise OptionError("enhance is a share of the rows and must lie between 0 and 1; the paper takes 0.05")
    columns = [column for column, _ in enhance_laws]
    if len(set(columns)) < len(columns):
        raise OptionError("enhance_laws names a column twice; give each column one law")
    if enhance_laws and not enhance:
        raise OptionError("enhance_laws needs a share of rows; set enhance, the paper takes 0.05")


def common_step(size: float, enhance: float, enhance_size: float) -> float:
    """Choose one grid for all rows: on another one the rows with more noise would stand out."""
    return choose_step(min(size, enhance_size) if enhance else size)
