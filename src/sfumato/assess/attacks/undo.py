"""Undoing a shift, a change of scale or a turn from a few rows that are known before and after."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.attacks.turns import find_turns, turn_back

__all__ = ["undo", "undo_lines", "undo_turn"]

_EXACT = 1e-6  # misfit, in parts of a column's spread, below which known rows are explained
_TURN = 1e-4  # how far the columns of a turn may be from unit length
_BENT = 0.1  # the same where numbers were rounded
_COLUMNS = 40  # up to which every pair is tried

_Matrix = NDArray[np.float64]


def undo(
    before: _Matrix,
    after: _Matrix,
    released: _Matrix,
    operations: Sequence[str],
    rounding: NDArray[np.float64] | None = None,
) -> _Matrix:
    """Estimate original rows from released ones, given rows known before and after.

    Columns that were never turned are lines of their own. Of the others, those that a line or another column explains
    on all known rows are taken so. The rest is undone pair by pair where turns of pairs explain the known rows, and
    together where they are too many for that or do not: as a turn where nothing else was done, else as an affine map.

    Parameters
    ----------
    before, after : ndarray of shape (m, d)
        The known rows, each column counted in the unit in which it was turned.
    released : ndarray of shape (n, d)
    operations : sequence of str
        What was done: add, mult, rotate.
    rounding : ndarray of shape (d,), optional
        By how much each released number may have been rounded; whoever sees whole numbers knows.
    """
    rounding = np.zeros(before.shape[1]) if rounding is None else rounding
    if set(operations) == {"mult"} and len(before) == 1:
        factor = np.divide(before, after, out=np.ones_like(before), where=after != 0)
        return np.asarray(released * factor)
    if "rotate" not in operations:
        return undo_lines(before, after, released)
    pure = set(operations) == {"rotate"}
    guess = np.zeros_like(released)
    rest = np.ones(before.shape[1], dtype=np.bool_)
    if not pure and len(before) > 2:
        rest = ~_are_lines(before, after, rounding)
        guess[:, ~rest] = undo_lines(before, after, released)[:, ~rest]
    elif pure and len(before) > 2 and 2 < before.shape[1] <= _COLUMNS:
        rest = ~_undo_pairs(before, after, released, guess, rounding)
    if rest.any():
        guess[:, rest] = _undo_rest(before[:, rest], after[:, rest], released[:, rest], rounding[rest], pure=pure)
    return guess


def _undo_rest(
    before: _Matrix, after: _Matrix, released: _Matrix, rounding: NDArray[np.float64], *, pure: bool
) -> _Matrix:
    """Undo columns that no line explains: by turns of pairs where these explain few rows, else all together."""
    enough = before.shape[1] - 1 if pure else before.shape[1] + 1  # rows that fix the map whatever the pairs are
    if (2 if pure else 3) <= len(before) < enough and 2 < before.shape[1] <= _COLUMNS:
        turns = find_turns(before, after, rounding)
        if turns is not None:
            return turn_back(released, turns)
    return undo_turn(before, after, released) if pure else _undo_affine(before, after, released)


def undo_lines(before: _Matrix, after: _Matrix, released: _Matrix) -> _Matrix:
    """Take each column as a line through its known values; through one value, or equal ones, as a shift.

    Examples
    --------
    >>> known = np.array([[20.0], [30.0]])
    >>> undo_lines(known, 2 * known + 5, np.array([[85.0]])).tolist()
    [[40.0]]
    """
    return np.asarray(before.mean(axis=0) + _slopes(before, after) * (released - after.mean(axis=0)))


def _slopes(before: _Matrix, after: _Matrix) -> NDArray[np.float64]:
    x, y = before - before.mean(axis=0), after - after.mean(axis=0)
    square = (y * y).sum(axis=0)
    return np.asarray(np.divide((x * y).sum(axis=0), square, out=np.ones(len(square)), where=square > 0))


def undo_turn(before: _Matrix, after: _Matrix, released: _Matrix) -> _Matrix:
    """Turn rows back by the rotation that the known rows fix.

    One row fewer than columns fix all of it. With fewer rows, what lies outside the space that they span has no
    direction that is likelier than another, so its mean, 0, is taken: the map of least norm.
    """
    d = before.shape[1]
    if np.linalg.matrix_rank(after) < d - 1:
        return np.asarray(released @ np.linalg.lstsq(after, before, rcond=None)[0])
    left, _, right = np.linalg.svd(after.T @ before)
    flip = np.ones(d)
    flip[-1] = np.sign(np.linalg.det(left) * np.linalg.det(right))  # a turn, not a mirror
    return np.asarray(released @ ((left * flip) @ right))


def _undo_affine(before: _Matrix, after: _Matrix, released: _Matrix) -> _Matrix:
    """Fit the affine map of least norm to the known rows."""
    x, y = before.mean(axis=0), after.mean(axis=0)
    return np.asarray(x + (released - y) @ np.linalg.lstsq(after - y, before - x, rcond=None)[0])


def _undo_pairs(
    before: _Matrix, after: _Matrix, released: _Matrix, guess: _Matrix, rounding: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Fill in the pairs of columns that a turn of their own explains on all known rows; tells which."""
    d = before.shape[1]
    first, second = np.triu_indices(d, 1)
    was, became = (np.stack([part[:, first], part[:, second]], axis=-1).transpose(1, 0, 2) for part in (before, after))
    weights = np.linalg.pinv(became) @ was  # for each pair (2, 2)
    misfit = np.abs(became @ weights - was).max(axis=(1, 2))
    bent = np.abs(weights.transpose(0, 2, 1) @ weights - np.eye(2)).max(axis=(1, 2))  # 0 for a turn
    found = np.zeros(d, dtype=np.bool_)
    off = np.maximum(rounding[first], rounding[second])
    weakest = np.linalg.svd(became, compute_uv=False)[:, -1]
    shaken = np.divide(off * np.sqrt(8 * len(before)), weakest, out=np.zeros(len(off)), where=weakest > 0)
    fits = misfit <= _EXACT * np.abs(became).max(axis=(1, 2)) + 2 * off
    for pair in np.flatnonzero(fits & (bent <= np.minimum(_TURN + shaken, _BENT))):
        couple = [first[pair], second[pair]]
        guess[:, couple] = released[:, couple] @ weights[pair]
        found[couple] = True
    return found


def _are_lines(before: _Matrix, after: _Matrix, rounding: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Tell which columns a line explains on all known rows; one of slope 0 would have wiped the column out."""
    size = np.abs(before).max(axis=0)
    off = np.abs(undo_lines(before, after, after) - before).max(axis=0)
    close = off <= _EXACT * np.where(size > 0, size, 1.0) + 2 * np.abs(_slopes(before, after)) * rounding
    return np.asarray(close & ((np.ptp(before, axis=0) > 0) | (np.ptp(after, axis=0) <= _EXACT)))
