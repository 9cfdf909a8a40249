"""Known inputs: someone who knows a few original rows, or public figures, undoes what was done to all.

[Liu, Giannella, Kargupta 2006]. Who knows mean and deviation of each column undoes a shift or a change of scale.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.assess.algebra import COUNT, SHARE, Measure, Need, NotRun, Number, Stated, Values, where
from sfumato.assess.attacks.undo import undo
from sfumato.assess.findings import Family
from sfumato.assess.intervals import redraw_interval, wilson
from sfumato.assess.study import Matrix, Places, Study, drawn_note, sample
from sfumato.core.facts import Transformed
from sfumato.tables.grid import decimals_of_numbers, step_of_numbers

__all__ = ["CLOSE", "KNOWN_INPUT", "NOTHING", "PUBLIC_MOMENTS", "MovedColumns", "moved_columns", "not_moved"]

CLOSE = 0.1
"""Standard deviations within which a number counts as recovered."""
_ENOUGH = 0.95  # share of cells that is as good as all
_SMALL = 5  # known rows, each number of which is tried
_MOST = 64  # known rows a column, at most
_DRAWS = 10  # sets of known rows that are drawn for each number
NOTHING = "fewer than three rows without missing cells are there, or nothing differs in them"


not_moved = where(Transformed, "no column was shifted, scaled or turned by a key")
"""Why nothing can be undone."""


@dataclass(frozen=True, eq=False, repr=False)
class MovedColumns:
    """The moved columns of rows whose origin is known: what they were, what they became, and how they spread.

    ``before`` and ``after`` are in own units divided by the unit in which the column was turned; only rows without
    missing cells are held. ``rounding`` is half a whole number, in that unit, where all that was released are whole.
    """

    names: tuple[str, ...]
    before: Matrix
    after: Matrix
    rounding: Matrix

    @property
    def spread(self) -> Matrix:
        """Standard deviation of each column before, in its unit."""
        return np.asarray(self.before.std(axis=0))

    def recovered(self, guess: Matrix, rows: Places) -> float:
        """Share of cells of some rows that a guess comes close to; columns that are constant do not count."""
        spread = self.spread
        close = np.abs(guess - self.before[rows]) <= CLOSE * spread
        return float(close[:, spread > 0].mean())


def moved_columns(study: Study, most: int, rng: np.random.Generator) -> MovedColumns:
    """The moved columns of at most so many rows; `NotRun` where fewer than three are whole or nothing differs."""
    fact, workings = study.fact(Transformed), study.workings
    assert fact is not None
    told: dict[str, float] = getattr(workings, "units", {})  # known like the method: only the terms are secret
    pairs = [pair for pair in study.pairs if pair.name in fact.columns and pair.is_number]
    released, original = study.descent()
    for pair in pairs:
        whole = ~pair.released.absent[released] & ~pair.original.absent[original]
        released, original = released[whole], original[whole]
    chosen = sample(len(released), most, rng)
    if not pairs or len(chosen) < 3:
        raise NotRun(NOTHING)
    units = np.array([told.get(pair.name) or float(np.std(pair.original.present)) or 1.0 for pair in pairs])
    before = np.column_stack([pair.original.values[original[chosen]] for pair in pairs]) / units
    after = np.column_stack([pair.released.values[released[chosen]] for pair in pairs])
    if not (before.std(axis=0) > 0).any():
        raise NotRun(NOTHING)
    rounding = np.array([_rounding(column) for column in after.T]) / units
    return MovedColumns(tuple(pair.name for pair in pairs), before, after / units, rounding)


def _rounding(released: Matrix) -> float:
    """By how much numbers may have been rounded, from the digits that they are written in."""
    distinct = np.unique(released)
    decimals = decimals_of_numbers(distinct)
    return 0.0 if decimals is None else 0.5 * step_of_numbers(distinct, decimals)


def known_input_curve(
    moved: MovedColumns, operations: Sequence[str], numbers: Iterable[int], rng: np.random.Generator
) -> dict[int, Matrix]:
    """For each number of known rows, the shares of recovered cells over several sets of known rows."""
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


def _run(study: Study) -> Iterator[Stated]:
    rng, fact = study.generator("known-input"), study.fact(Transformed)
    assert fact is not None
    moved = moved_columns(study, study.sizes.attempts, rng)
    rows, d = len(moved.before), len(moved.names)
    claimed = min(fact.known_rows, rows - 1)
    numbers = sorted({*range(1, _SMALL + 1), d - 1, d, d + 1, claimed} & set(range(1, rows)))
    curve = known_input_curve(moved, fact.operations, numbers, rng)
    while max(map(np.mean, curve.values())) < _ENOUGH and 2 * max(curve) <= min(rows // 2, _MOST * d):
        curve |= known_input_curve(moved, fact.operations, [2 * max(curve)], rng)  # rare values take more rows
    everyone, note = np.arange(rows), drawn_note(rows, len(study.released))
    guess = moved.recovered(np.broadcast_to(moved.before.mean(axis=0), moved.before.shape), everyone)

    def share(number: int) -> Values:
        value = float(curve[number].mean())
        return Values(value, redraw_interval(value, curve[number]), guess, attempts=rows, note=note)

    yield "recovered-cells", share(claimed)
    bare = moved.recovered(moved.after, everyone) >= _ENOUGH  # the released numbers are the original ones
    yield "known-rows-needed", Values(0.0 if bare else float(fact.known_rows), baseline=0.0, attempts=rows, note=note)
    for number in curve:
        told = _RECOVERED.format(knowing=f"knows {number} original rows")
        yield f"recovered-cells/{number} rows", dataclasses.replace(share(number), meaning=told)


_RECOVERED = "The share of numbers that someone recovers to a tenth of a standard deviation who {knowing}"
_BESIDE = "beside what guessing the mean recovers (baseline)"
KNOWN_INPUT = Measure(
    "known-input",
    Family.ATTACK,
    "Liu, Giannella & Kargupta 2006; Giannella, Liu & Kargupta 2009",
    _run,
    needs=(Need.ORIGIN,),
    applies=not_moved,
).finds(
    Number("recovered-cells", "Numbers recovered with known rows", SHARE).means(
        _RECOVERED.format(
            knowing="knows as many original rows as the certificate names and which released rows they became"
        )
        + f", {_BESIDE}"
    ),
    Number("known-rows-needed", "Known rows that undo it", COUNT.more).means(
        "How many original rows, with the released rows that they became, fix the key: the number that the "
        "certificate names, fewer may do; more is better, and whoever took part knows one"
    ),
    Number("recovered-cells/", scale=SHARE).means(_RECOVERED.format(knowing="knows {column}")),
)


def match_moments(released: Matrix, mean: Matrix, deviation: Matrix, lean: Matrix) -> Matrix:
    """Each released column brought to a known mean and deviation, turned over where it leans the other way.

    Examples
    --------
    >>> ages = np.array([[20.0], [30.0], [70.0]])
    >>> match_moments(5 - 3 * ages, ages.mean(axis=0), ages.std(axis=0), np.ones(1)).round(9).tolist()
    [[20.0], [30.0], [70.0]]
    """
    centred = released - released.mean(axis=0)
    spread = centred.std(axis=0)
    standard = centred / np.where(spread > 0, spread, 1.0)
    side = np.where(lean * (standard**3).mean(axis=0) < 0, -1.0, 1.0)
    return np.asarray(mean + deviation * side * standard)


def _run_moments(study: Study) -> Iterator[Stated]:
    rng, fact = study.generator("public-moments"), study.fact(Transformed)
    assert fact is not None
    moved = moved_columns(study, study.sizes.training, rng)
    before, rows = moved.before, np.arange(len(moved.before))
    mean, spread = before.mean(axis=0), moved.spread
    lean = ((before - mean) ** 3).mean(axis=0) if "mult" in fact.operations else np.zeros(len(mean))
    value = moved.recovered(match_moments(moved.after, mean, spread, lean), rows)
    guess, note = moved.recovered(np.broadcast_to(mean, before.shape), rows), drawn_note(len(rows), len(study.released))
    interval = wilson(value * len(rows), len(rows))
    yield "recovered-cells-public-moments", Values(value, interval, guess, attempts=len(rows), note=note)


PUBLIC_MOMENTS = Measure(
    "public-moments",
    Family.ATTACK,
    "Oliveira & Zaiane 2003 undone by published figures",
    _run_moments,
    needs=(Need.ORIGIN,),
    applies=not_moved,
).finds(
    Number("recovered-cells-public-moments", "Numbers recovered with public mean and deviation", SHARE).means(
        _RECOVERED.format(
            knowing="knows no row, only the mean and the standard deviation of each original column and which way "
            "it leans"
        )
        + f", {_BESIDE}"
    )
)
