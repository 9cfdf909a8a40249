"""Transactions drawn at random, and literal counting to hold the fast ways to."""

from __future__ import annotations

from itertools import combinations

import hypothesis.strategies as st
import numpy as np

from sfumato.core.itemsets import Transactions

__all__ = ["count_slowly", "draw_transactions", "frequent_slowly", "transaction_lists"]


def transaction_lists(*, most: int = 70, width: int = 7, least: int = 0) -> st.SearchStrategy[list[list[int]]]:
    """Lists of transactions, some of them empty, over a word's border."""
    return st.lists(st.lists(st.integers(0, width - 1), unique=True), min_size=least, max_size=most)


def draw_transactions(seed: int, transactions: int = 400, width: int = 12) -> Transactions:
    """Transactions in which some items go together."""
    rng = np.random.default_rng(seed)
    chances = rng.uniform(0.05, 0.5, size=(3, width))
    held = rng.random((transactions, width)) < chances[rng.integers(0, 3, size=transactions)]
    rows, items = np.nonzero(held)
    return Transactions.from_pairs(rows, items, transactions, width)


def count_slowly(transactions: list[list[int]], items: tuple[int, ...]) -> int:
    """Transactions that hold all of the items."""
    return sum(set(items) <= set(transaction) for transaction in transactions)


def frequent_slowly(transactions: list[list[int]], least: int, longest: int) -> dict[tuple[int, ...], int]:
    """Every itemset up to a size that enough transactions hold."""
    items = sorted({item for transaction in transactions for item in transaction})
    sets = [some for size in range(1, longest + 1) for some in combinations(items, size)]
    return {some: count for some in sets if (count := count_slowly(transactions, some)) >= least}
