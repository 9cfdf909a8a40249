"""Known inputs: someone who knows a few original rows undoes what was done to all [Liu, Giannella, Kargupta 2006]."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.attacks.undo import undo
from sfumato.assess.findings import Direction, Family, Finding
from sfumato.assess.frame import Measure, Need
from sfumato.assess.intervals import holding
from sfumato.assess.study import Study, sample
from sfumato.facts import Fact, Transformed
from sfumato.tables.grid import decimals_of_numbers, step_of_numbers

__all__ = ["CLOSE", "KNOWN_INPUT", "NOTHING", "Moved", "known_input_curve", "moved_columns", "not_moved"]

CLOSE = 0.1
"""Standard deviations within which a number counts as recovered."""

_ENOUGH = 0.95  # share of cells that is as good as all
_SMALL = 5  # known rows, each number of which is tried
_MOST = 64  # known rows a column, at most
_DRAWS = 10  # sets of known rows that are drawn for each number

NOTHING = "fewer than three rows without missing cells are there, or nothing differs in them"

_Matrix = NDArray[np.float64]

_CELLS = (
    "The share of numbers that someone recovers to a tenth of a standard deviation who knows as many original rows as "
    "the certificate names and which released rows they became, beside what guessing the mean recovers (baseline)"
)
_NEEDED = (
    "How many original rows, with the released rows that they became, fix the key: the number that the certificate "
    "names, fewer may do; more is better, and whoever took part knows one"
)
_SOME = "The share of numbers that someone recovers to a tenth of a standard deviation who knows {rows}"


@dataclass(frozen=True, eq=False, repr=False)
class Moved:
    """The moved columns of rows whose origin is known: what they were, what they became, and how they spread.

    ``before`` and ``after`` are in own units divided by the unit in which the column was turned; only rows without
    missing cells are held. ``rounding`` is half a whole number, in that unit, where all that was released are whole.
    """

    names: tuple[str, ...]
    before: _Matrix
    after: _Matrix
    rounding: NDArray[np.float64]

    @property
    def spread(self) -> NDArray[np.float64]:
        """Standard deviation of each column before, in its unit."""
        return np.asarray(self.before.std(axis=0))

    def recovered(self, guess: _Matrix, rows: NDArray[np.int64]) -> float:
        """Give the share of cells of some rows that a guess comes close to; columns that are constant do not count."""
        spread = self.spread
        close = np.abs(guess - self.before[rows]) <= CLOSE * spread
        return float(close[:, spread > 0].mean())


def not_moved(facts: Sequence[Fact]) -> str | None:
    """Say why the attack does not apply where no column was moved by a key."""
    moved = any(isinstance(fact, Transformed) for fact in facts)
    return None if moved else "no column was shifted, scaled or turned by a key"


def moved_columns(study: Study, most: int, rng: np.random.Generator) -> Moved | None:
    """Read the moved columns of at most so many rows; None where fewer than three are whole or nothing differs."""
    fact, workings = study.fact(Transformed), study.workings
    assert fact is not None
    assert workings is not None
    assert workings.origin is not None
    told: dict[str, float] = getattr(workings, "units", {})  # known like the method: only the terms are secret
    origin = workings.origin
    pairs = [pair for pair in study.pairs if pair.name in fact.columns and pair.is_number]
    rows = np.flatnonzero((origin >= 0) & (origin < len(study.original)))
    for pair in pairs:
        rows = rows[~pair.released.absent[rows] & ~pair.original.absent[origin[rows]]]
    rows = rows[sample(len(rows), most, rng)]
    if not pairs or len(rows) < 3:
        return None
    units = np.array([told.get(pair.name) or float(np.std(pair.original.present)) or 1.0 for pair in pairs])
    before = np.column_stack([pair.original.values[origin[rows]] for pair in pairs]) / units
    after = np.column_stack([pair.released.values[rows] for pair in pairs])
    rounding = np.array([_rounding(column) for column in after.T]) / units
    names = tuple(pair.name for pair in pairs)
    return Moved(names, before, after / units, rounding) if (before.std(axis=0) > 0).any() else None


def _rounding(released: NDArray[np.float64]) -> float:
    """Tell by how much numbers may have been rounded, from the digits that they are written in."""
    distinct = np.unique(released)
    decimals = decimals_of_numbers(distinct)
    return 0.0 if decimals is None else 0.5 * step_of_numbers(distinct, decimals)


def known_input_curve(
    moved: Moved, operations: Sequence[str], numbers: Iterable[int], rng: np.random.Generator
) -> dict[int, NDArray[np.float64]]:
    """Give, for each number of known rows, the shares of recovered cells over several sets of known rows."""
    everyone = len(moved.before)
    curve = {}
    for number in numbers:
        shares = np.empty(_DRAWS)
        for draw in range(_DRAWS):
            order = rng.permutation(everyone)
            known, others = order[:number], order[number:]
            guess = undo(moved.before[known], moved.after[known], moved.after[others], operations, moved.rounding)
            shares[draw] = moved.recovered(guess, others)
        curve[number] = shares
    return curve


def _run(study: Study) -> Iterable[Finding]:
    rng, fact = study.generator(KNOWN_INPUT.name), study.fact(Transformed)
    assert fact is not None
    moved = moved_columns(study, study.sizes.attempts, rng)
    if moved is None:
        return KNOWN_INPUT.not_run(NOTHING)
    rows, d = len(moved.before), len(moved.names)
    claimed = min(fact.known_rows, rows - 1)
    numbers = sorted({*_numbers(d), claimed} & set(range(1, rows)))
    curve = known_input_curve(moved, fact.operations, numbers, rng)
    while max(map(np.mean, curve.values())) < _ENOUGH and 2 * max(curve) <= min(rows // 2, _MOST * d):
        curve |= known_input_curve(moved, fact.operations, [2 * max(curve)], rng)  # rare values take more rows
    everyone = np.arange(rows)
    guess = moved.recovered(np.broadcast_to(moved.before.mean(axis=0), moved.before.shape), everyone)
    bare = moved.recovered(moved.after, everyone)
    note = f"; counted on {rows} rows drawn at random" if rows < len(study.released) else ""
    single = [
        _share(
            f"recovered-cells/{number} rows", _SOME.format(rows=f"{number} original rows") + note, shares, guess, rows
        )
        for number, shares in curve.items()
    ]
    cells = _share("recovered-cells", _CELLS + note, curve[claimed], guess, rows)
    return (cells, _needed(fact.known_rows, bare, rows, note), *single)


def _numbers(d: int) -> set[int]:
    """Choose numbers of known rows: a few, and those about the number of columns."""
    return {*range(1, _SMALL + 1), d - 1, d, d + 1}


def _share(name: str, meaning: str, shares: NDArray[np.float64], guess: float, rows: int) -> Finding:
    value = float(shares.mean())
    return Finding(
        name,
        Family.ATTACK,
        value,
        Direction.LOWER,
        (0.0, 1.0),
        meaning + ".",
        interval=holding(value, shares),
        baseline=guess,
        attempts=rows,
        unit="share",
    )


def _needed(known: int, bare: float, rows: int, note: str) -> Finding:
    """State the number that the certificate states, 0 where the released numbers are the original ones."""
    return Finding(
        "known-rows-needed",
        Family.ATTACK,
        0.0 if bare >= _ENOUGH else float(known),
        Direction.HIGHER,
        (0.0, None),
        _NEEDED + note + ".",
        baseline=0.0,
        attempts=rows,
        unit="count",
    )


KNOWN_INPUT = Measure(
    name="known-input",
    family=Family.ATTACK,
    source="Liu, Giannella & Kargupta 2006; Giannella, Liu & Kargupta 2009",
    findings={"recovered-cells": _CELLS + ".", "known-rows-needed": _NEEDED + "."},
    run=_run,
    higher=frozenset({"known-rows-needed"}),
    needs=(Need.ORIGIN,),
    applies=not_moved,
)
