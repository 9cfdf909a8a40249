"""Undoing columns that were turned in pairs, one pair after the other, from two or more known rows.

A column that is turned once only is final after that turn: with two known rows the angle and the partner follow from it
alone, then those of the partner's next turn, and so on along the chain. Nobody needs to know the order of the pairs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Turn", "find_turns", "turn_back"]

_KEPT = 3  # unfinished explanations a column that are followed
_REFINED = 3  # whole ones whose angles are fitted to all known rows at once
_ROUNDS = 8
_SETTLED = 1e-12  # change of all angles after which they stay
_TINY = 1e-9  # of the largest number, below which a misfit is rounding of doubles
_EXPLAINED = 4.0  # misfits, in parts of what rounding allows, up to which known rows are explained

_Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Turn:
    """Two columns, by place, and the angle that they were turned by."""

    first: int
    second: int
    angle: float


@dataclass(frozen=True, eq=False)
class _Path:
    """An explanation of some columns: ``state`` are the known rows after its turns, ``carrier`` is turned next.

    ``begun`` holds the columns that were open when the chain of the carrier began: its own must have the first.
    """

    state: _Matrix
    carrier: int
    left: frozenset[int]
    begun: frozenset[int]
    turns: tuple[Turn, ...] = ()
    cost: float = 0.0


def find_turns(before: _Matrix, after: _Matrix, rounding: NDArray[np.float64]) -> tuple[Turn, ...] | None:
    """Find pairs and angles that explain the known rows; None where none do.

    Parameters
    ----------
    before, after : ndarray of shape (m, d)
        At least two known rows, each column counted in the unit in which it was turned.
    rounding : ndarray of shape (d,)
        By how much each released number may have been rounded.
    """
    d = before.shape[1]
    allowed = rounding + _TINY * max(float(np.abs(before).max()), float(np.abs(after).max()))
    everything = frozenset(range(d))
    paths = [_Path(before, start, everything - {start}, everything) for start in range(d)]
    for _ in range(d):  # each round explains one column more
        found = [one for path in paths for one in _follow(path, after, allowed)]
        paths = [_longer(*one) for one in sorted(found, key=lambda one: one[0])[: _KEPT * d]]
    fitted = [_fit(path.turns, before, after, allowed) for path in paths[:_REFINED]]
    misfit, turns = min(fitted, key=lambda one: one[0], default=(np.inf, ()))
    return turns if misfit <= _EXPLAINED else None


def turn_back(rows: _Matrix, turns: tuple[Turn, ...]) -> _Matrix:
    """Rows as they were before the turns.

    Examples
    --------
    >>> turns = (Turn(0, 1, 0.3), Turn(1, 2, 1.1))
    >>> rows = np.array([[1.0, 2.0, 3.0]])
    >>> turn_back(_turned(rows, turns), turns).round(9).tolist()
    [[1.0, 2.0, 3.0]]
    """
    return _turned(rows, tuple(Turn(turn.first, turn.second, -turn.angle) for turn in reversed(turns)))


def _follow(path: _Path, after: _Matrix, allowed: NDArray[np.float64]) -> list[tuple[float, _Path, Turn | int]]:
    """Explain the carrier: by a turn with each column that is left, or as the end of its chain, after which one begins.

    Each explanation has its cost so far, and is made only if it is followed.
    """
    here, left = path.carrier, sorted(path.left)
    was, became, partners = path.state[:, here], after[:, here], path.state[:, left]
    angles = _angles(was, partners, became)
    off = was[:, None] * np.cos(angles) + partners * np.sin(angles) - became[:, None]
    costs = path.cost + np.square(off / allowed[here]).mean(axis=0)
    longer: list[tuple[float, _Path, Turn | int]] = [
        (cost, path, Turn(here, partner, angle))
        for cost, partner, angle in zip(costs.tolist(), left, angles.tolist(), strict=True)
    ]
    if not left or min(path.begun) not in path.left:
        ended = path.cost + float(np.square((was - became) / allowed[here]).mean())
        longer += [(ended, path, start) for start in left or [here]]
    return longer


def _longer(cost: float, path: _Path, by: Turn | int) -> _Path:
    if isinstance(by, int):
        return _Path(path.state, by, path.left - {by}, path.left, path.turns, cost)
    left = path.left - {by.second}
    return _Path(_turned(path.state, (by,)), by.second, left, path.begun, (*path.turns, by), cost)


def _angles(was: NDArray[np.float64], partners: _Matrix, became: NDArray[np.float64]) -> NDArray[np.float64]:
    """Angle to each partner that explains a column best, by least squares of cosine and sine."""
    aa, bb = was @ was, (partners * partners).sum(axis=0)
    ab, ay, by = was @ partners, was @ became, became @ partners
    return np.asarray(np.arctan2(aa * by - ab * ay, bb * ay - ab * by))


def _fit(
    turns: tuple[Turn, ...], before: _Matrix, after: _Matrix, allowed: NDArray[np.float64]
) -> tuple[float, tuple[Turn, ...]]:
    """Fit all angles to all known rows at once; gives the misfit in parts of what rounding allows, and the turns."""
    for _ in range(_ROUNDS if turns else 0):
        turned, slopes = _slopes(before, turns)
        off = ((after - turned) / allowed).ravel()
        change = np.linalg.lstsq((slopes / allowed).reshape(len(turns), -1).T, off, rcond=None)[0]
        turns = tuple(
            Turn(turn.first, turn.second, turn.angle + step) for turn, step in zip(turns, change.tolist(), strict=True)
        )
        if np.abs(change).max() <= _SETTLED:
            break
    return float(np.sqrt(np.square((after - _turned(before, turns)) / allowed).mean())), turns


def _slopes(rows: _Matrix, turns: tuple[Turn, ...]) -> tuple[_Matrix, _Matrix]:
    """Turned rows, and how they change with each angle."""
    both = np.zeros((len(turns) + 1, *rows.shape))
    both[0] = rows
    for place, turn in enumerate(turns, 1):
        _turn(both[:place], turn)
        both[place, :, turn.first] = both[0, :, turn.second]
        both[place, :, turn.second] = -both[0, :, turn.first]
    return both[0], both[1:]


def _turned(rows: _Matrix, turns: tuple[Turn, ...]) -> _Matrix:
    turned = rows.copy()
    for turn in turns:
        _turn(turned, turn)
    return turned


def _turn(rows: _Matrix, turn: Turn) -> None:
    x, y, cos, sin = rows[..., turn.first], rows[..., turn.second], math.cos(turn.angle), math.sin(turn.angle)
    rows[..., turn.first], rows[..., turn.second] = cos * x + sin * y, cos * y - sin * x
