"""Baskets drawn at random, and literal counting to hold the fast ways to."""

from __future__ import annotations

from itertools import combinations

import hypothesis.strategies as st
import numpy as np

from sfumato.core.itemsets.baskets import Baskets

__all__ = ["basket_lists", "count_slowly", "draw_baskets", "frequent_slowly"]


def basket_lists(*, most: int = 70, width: int = 7, least: int = 0) -> st.SearchStrategy[list[list[int]]]:
    """Lists of baskets, some of them empty, over a word's border."""
    return st.lists(st.lists(st.integers(0, width - 1), unique=True), min_size=least, max_size=most)


def draw_baskets(seed: int, baskets: int = 400, width: int = 12) -> Baskets:
    """Baskets in which some items go together."""
    rng = np.random.default_rng(seed)
    chances = rng.uniform(0.05, 0.5, size=(3, width))
    held = rng.random((baskets, width)) < chances[rng.integers(0, 3, size=baskets)]
    rows, items = np.nonzero(held)
    return Baskets.from_pairs(rows, items, baskets, width)


def count_slowly(baskets: list[list[int]], items: tuple[int, ...]) -> int:
    """Baskets that hold all of the items."""
    return sum(set(items) <= set(basket) for basket in baskets)


def frequent_slowly(baskets: list[list[int]], least: int, longest: int) -> dict[tuple[int, ...], int]:
    """Every set of at most so many items that enough baskets hold."""
    items = sorted({item for basket in baskets for item in basket})
    sets = [some for size in range(1, longest + 1) for some in combinations(items, size)]
    return {some: count for some in sets if (count := count_slowly(baskets, some)) >= least}
