"""Persons counted: the frequency of a value, a group or a table counts each person once."""

from __future__ import annotations

import numpy as np

from sfumato.core.arrays import Bools, Ints

__all__ = ["count_persons", "number_of_persons"]


def count_persons(codes: Ints, persons: Ints | None, size: int = 0) -> Ints:
    """Number of persons with each of ``size`` codes, or more if the codes go further.

    Negative codes are ignored. Without ``persons`` each row is one.

    Examples
    --------
    >>> count_persons(np.array([0, 0, 1, -1]), None, 3).tolist()
    [2, 1, 0]
    >>> count_persons(np.array([0, 0, 1, -1]), np.array([7, 7, 7, 8]), 3).tolist()
    [1, 1, 0]
    """
    there = codes >= 0
    held = codes[there]
    if persons is not None and len(held):
        whose, width = persons[there], max(size, int(held.max()) + 1)
        if int(whose.min()) < 0 or int(whose.max()) >= 2**31:  # hashes
            whose = np.unique(whose, return_inverse=True)[1]
        if width == 1:
            return np.array([np.count_nonzero(np.bincount(whose))])
        pairs = np.sort(whose * width + held)
        held = pairs[np.append(True, pairs[1:] != pairs[:-1])] % width
    return np.bincount(held, minlength=size).astype(np.int64)


def number_of_persons(persons: Ints | None, rows: Bools | Ints) -> int:
    """Number of persons in some rows, given by a mask or by their indices. Without ``persons`` each row is one."""
    if persons is None:
        return int(np.count_nonzero(rows)) if rows.dtype == np.bool_ else len(rows)
    return len(np.unique(persons[rows]))
