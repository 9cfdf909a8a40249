"""Draw a key, and the four transformations of a table by it, one function for each algorithm [OZ03, sec. 4]."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from sfumato.core.arrays import Floats
from sfumato.core.errors import OptionError
from sfumato.methods.geometry.key import Add, Key, Mult, Rotate, Step

__all__ = [
    "KINDS",
    "PAIRS",
    "Ranges",
    "check_range",
    "draw_steps",
    "hybrid",
    "invert",
    "rotate",
    "rotate_pair",
    "scale",
    "translate",
]

KINDS = ("translate", "scale", "rotate", "hybrid")
PAIRS = ("chain", "disjoint")

_CLEARANCE = 0.1  # part of a range that is kept clear on either side of a term that would change nothing


@dataclass(frozen=True)
class Ranges:
    """Bounds between which terms are drawn, and the rotation unit of each column.

    Parameters
    ----------
    add : mapping of str to (float, float)
        Shifts, in each column's own units.
    mult : mapping of str to (float, float)
        Factors.
    degrees : (float, float)
        Angles, clockwise.
    units : mapping of str to float
        How much of a column counts as one when it is turned; 1 for a column that is not named.
    """

    add: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    mult: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    degrees: tuple[float, float] = (0.0, 360.0)
    units: Mapping[str, float] = field(default_factory=dict)


def check_range(name: str, bounds: Sequence[float]) -> tuple[float, float]:
    """Refuse an invalid range; a range of a single number would reveal the term."""
    given = list(bounds) if isinstance(bounds, list | tuple) else []
    numbers = [value for value in given if isinstance(value, int | float) and not isinstance(value, bool)]
    if len(given) != 2 or len(numbers) != 2 or not all(map(math.isfinite, numbers)) or not numbers[0] < numbers[1]:
        raise OptionError(f"the range of {name} is not a lower bound below an upper one; write two different numbers")
    return float(numbers[0]), float(numbers[1])


def draw_steps(
    columns: Sequence[str], ranges: Ranges, rng: np.random.Generator, *, kind: str, pairs: str = "chain"
) -> tuple[Step, ...]:
    """Draw the steps of a key, at least one for each column.

    Parameters
    ----------
    columns : sequence of str
    ranges : Ranges
    rng : numpy.random.Generator
    kind : {"translate", "scale", "rotate", "hybrid"}
        With ``"hybrid"`` the operation of each column is drawn [OZ03, sec. 4.5].
    pairs : {"chain", "disjoint"}
        ``"chain"`` turns the first column with the second, the second with the third and so on, in an order that is
        drawn, so that all are mixed. ``"disjoint"`` turns each column once; an odd one joins a column that was already
        turned (errata OZ03.5).
    """
    if kind not in KINDS or pairs not in PAIRS:
        raise OptionError(f"choose one of {', '.join(KINDS)} as kind and one of {', '.join(PAIRS)} as pairs")
    if not columns:
        raise OptionError("there is no column of numbers to move; choose another method")
    if kind == "rotate" and len(columns) < 2:
        raise OptionError(f"a turn takes two columns and {columns[0]!r} is the only one (n_features = 1); translate it")
    if kind != "hybrid":
        chosen = dict.fromkeys(columns, {"translate": "add", "scale": "mult", "rotate": "rotate"}[kind])
    else:
        operations = ("add", "mult", "rotate") if len(columns) > 1 else ("add", "mult")
        chosen = {column: operations[int(rng.integers(len(operations)))] for column in columns}
    steps: list[Step] = []
    for column, op in chosen.items():
        if op == "add":
            steps.append(Add(column, _draw(check_range(repr(column), ranges.add[column]), (0.0,), rng)))
        elif op == "mult":
            steps.append(Mult(column, _draw(check_range(repr(column), ranges.mult[column]), (0.0, 1.0), rng)))
    turned = [column for column, op in chosen.items() if op == "rotate"]
    others = [column for column in columns if column not in turned]
    return (*steps, *_turns(turned, others, ranges, pairs, rng))


def _turns(
    turned: list[str], others: list[str], ranges: Ranges, pairs: str, rng: np.random.Generator
) -> tuple[Rotate, ...]:
    if not turned:
        return ()
    if len(turned) == 1:  # a lone one needs a partner that is drawn too (errata OZ03.5)
        turned = [*turned, others[int(rng.integers(len(others)))]]
    order = [turned[int(place)] for place in rng.permutation(len(turned))]
    couples = list(pairwise(order))
    if pairs == "disjoint":
        couples = couples[::2]
        if len(order) % 2:
            couples.append((order[-1], order[int(rng.integers(len(order) - 1))]))
    low, high = check_range("the angle", ranges.degrees)
    quarters = [90.0 * turn for turn in range(math.ceil(low / 90), math.floor(high / 90) + 1)]
    return tuple(
        Rotate(
            (first, second),
            _draw((low, high), quarters, rng, widest=90.0),
            (float(ranges.units.get(first, 1.0)), float(ranges.units.get(second, 1.0))),
        )
        for first, second in couples
    )


def _draw(
    bounds: tuple[float, float], idle: Sequence[float], rng: np.random.Generator, *, widest: float = math.inf
) -> float:
    """Draw a term uniformly from a range, away from terms that change nothing or too much."""
    low, high = bounds
    clear = _CLEARANCE * min(high - low, widest)
    while True:
        term = float(rng.uniform(low, high))
        if all(abs(term - point) > clear for point in idle if low <= point <= high):
            return term


def translate(values: Floats, key: Key, columns: Sequence[str] | None = None) -> Floats:
    """Translate the columns of V by the terms of N: the TDP algorithm [OZ03, sec. 4.2].

    Parameters
    ----------
    values : ndarray of shape (n, d)
        V, in own units; a missing number is NaN and stays so.
    key : Key
        N, with additions only.
    columns : sequence of str, optional
        The names of the columns of V; by default those of the key, in its order.
    """
    key.check_operations((Add.op,), "translate")
    place = key.places(values, columns)
    moved = np.array(values, order="F")  # columns are worked on one by one
    for step in key.steps:
        assert isinstance(step, Add)
        moved[:, place[step.column]] += step.term  # a'_j <- a_j + e_j
    return moved


def scale(values: Floats, key: Key, columns: Sequence[str] | None = None) -> Floats:
    """Scale the columns of V by the terms of N: the SDP algorithm [OZ03, sec. 4.3].

    Parameters
    ----------
    values, columns
        As in `translate`.
    key : Key
        N, with multiplications only.
    """
    key.check_operations((Mult.op,), "scale")
    place = key.places(values, columns)
    moved = np.array(values, order="F")  # columns are worked on one by one
    for step in key.steps:
        assert isinstance(step, Mult)
        moved[:, place[step.column]] *= step.term  # a'_j <- a_j * e_j
    return moved


def rotate(values: Floats, key: Key, columns: Sequence[str] | None = None) -> Floats:
    """Rotate pairs of columns of V by the angles of N: the RDP algorithm [OZ03, sec. 4.4].

    Parameters
    ----------
    values : ndarray of shape (n, d)
        V, in own units; the key says in which unit each column counts (errata OZ03.1). Where one of a pair is missing
        (NaN) both become so.
    key : Key
        N, with rotations only. Pairs may overlap: they are turned one after the other.
    columns
        As in `translate`.

    Notes
    -----
    Distances between rows, each column counted in its unit, stay as they are.
    """
    key.check_operations((Rotate.op,), "rotate")
    place = key.places(values, columns)
    moved = np.array(values, order="F")  # columns are worked on one by one
    for step in key.steps:
        assert isinstance(step, Rotate)
        rotate_pair(moved, place[step.pair[0]], place[step.pair[1]], step.degrees, step.units)
    return moved


def rotate_pair(values: Floats, first: int, second: int, degrees: float, units: tuple[float, float]) -> None:
    """Rotate two columns of a matrix in place, clockwise, by the matrix of figure 1 C [OZ03, sec. 3.2]."""
    angle = math.radians(math.remainder(degrees, 360.0))
    cos, sin = math.cos(angle), math.sin(angle)
    x, y = values[:, first] / units[0], values[:, second] / units[1]
    values[:, first] = (cos * x + sin * y) * units[0]
    values[:, second] = (cos * y - sin * x) * units[1]


def hybrid(values: Floats, key: Key, columns: Sequence[str] | None = None) -> Floats:
    """Apply every operation of N to V in order: the HDP algorithm [OZ03, sec. 4.5].

    Row-wise and in one pass: the rows of a chunk come out as they do with all others. Arguments as of `translate` and
    `rotate`, with any operations.
    """
    place = key.places(values, columns)
    moved = np.array(values, order="F")  # columns are worked on one by one
    for step in key.steps:
        if isinstance(step, Add):
            moved[:, place[step.column]] += step.term
        elif isinstance(step, Mult):
            moved[:, place[step.column]] *= step.term
        else:
            rotate_pair(moved, place[step.pair[0]], place[step.pair[1]], step.degrees, step.units)
    return moved


def invert(values: Floats, key: Key, columns: Sequence[str] | None = None) -> Floats:
    """Recover the original numbers with the key; inverts all four methods.

    Examples
    --------
    >>> import numpy as np
    >>> key = Key((Add("age", -3), Mult("pay", 2.0)))
    >>> invert(hybrid(np.array([[29.0, 48.0]]), key), key).tolist()
    [[29.0, 48.0]]
    """
    place = key.places(values, columns)
    back = np.array(values, order="F")
    for step in reversed(key.steps):
        if isinstance(step, Add):
            back[:, place[step.column]] -= step.term
        elif isinstance(step, Mult):
            back[:, place[step.column]] /= step.term
        else:
            rotate_pair(back, place[step.pair[0]], place[step.pair[1]], -step.degrees, step.units)
    return back
