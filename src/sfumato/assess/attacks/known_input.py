"""Known inputs: someone who knows a few original rows, or public figures, undoes what was done to all.

[Liu, Giannella, Kargupta 2006]. Who knows mean and deviation of each column undoes a shift or a change of scale. Who
knows rows before and after undoes a turn, too. Of columns that were turned in pairs, one pair after the other, a column
that is turned once only is final after that turn: with two known rows the angle and the partner follow from it alone,
then those of the partner's next turn, and so on along the chain. Nobody needs to know the order of the pairs.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.algebra import COUNT, SHARE, Measure, Need, NotRun, Number, Stated, Values, where
from sfumato.assess.findings import Family, Tries, wilson
from sfumato.assess.plain import KNOWN_ROWS
from sfumato.assess.study import Matrix, Places, Study, drawn_note, given, sample
from sfumato.methods.geometry.facts import Transformed
from sfumato.tables.grid import decimals_of_numbers, step_of_numbers

__all__ = [
    "CLOSE",
    "KNOWN_INPUT",
    "NOTHING",
    "PUBLIC_MOMENTS",
    "MovedColumns",
    "Turn",
    "find_turns",
    "mean_as_tries",
    "moved_columns",
    "not_moved",
    "turn_back",
    "undo",
    "undo_lines",
    "undo_turn",
]

_EXACT = 1e-6  # misfit, in parts of a column's spread, below which known rows are explained
_TURN = 1e-4  # how far the columns of a turn may be from unit length
_BENT = 0.1  # the same where numbers were rounded
_COLUMNS = 40  # up to which every pair is tried
_KEPT = 3  # unfinished explanations a column that are followed
_REFINED = 3  # whole ones whose angles are fitted to all known rows at once
_ROUNDS = 8
_SETTLED = 1e-12  # change of all angles after which they stay
_TINY = 1e-9  # of the largest number, below which a misfit is rounding of doubles
_EXPLAINED = 4.0  # misfits, in parts of what rounding allows, up to which known rows are explained


def undo(
    before: Matrix, after: Matrix, released: Matrix, operations: Sequence[str], rounding: Matrix | None = None
) -> Matrix:
    """Original rows estimated from released ones, given rows known before and after.

    Columns that were never turned are lines of their own. Of the others, those that a line or another column explains
    on all known rows are taken so. The rest is undone pair by pair where turns of pairs explain the known rows, and
    together where they are too many for that or do not: as a turn where nothing else was done, else as an affine map.

    Each column of the known rows is counted in the unit in which it was turned; ``operations`` is what was done: add,
    mult, rotate. Whoever sees whole numbers knows by how much they may have been rounded (``rounding``).
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


def _undo_rest(before: Matrix, after: Matrix, released: Matrix, rounding: Matrix, *, pure: bool) -> Matrix:
    """Columns undone that no line explains: by turns of pairs where these explain few rows, else all together."""
    enough = before.shape[1] - 1 if pure else before.shape[1] + 1  # rows that fix the map whatever the pairs are
    if (2 if pure else 3) <= len(before) < enough and 2 < before.shape[1] <= _COLUMNS:
        turns = find_turns(before, after, rounding)
        if turns is not None:
            return turn_back(released, turns)
    return undo_turn(before, after, released) if pure else _undo_affine(before, after, released)


def undo_lines(before: Matrix, after: Matrix, released: Matrix) -> Matrix:
    """Rows with each column taken as a line through its known values; through one value, or equal ones, as a shift.

    Examples
    --------
    >>> known = np.array([[20.0], [30.0]])
    >>> undo_lines(known, 2 * known + 5, np.array([[85.0]])).tolist()
    [[40.0]]
    """
    return np.asarray(before.mean(axis=0) + _line_slopes(before, after) * (released - after.mean(axis=0)))


def _line_slopes(before: Matrix, after: Matrix) -> Matrix:
    x, y = before - before.mean(axis=0), after - after.mean(axis=0)
    square = (y * y).sum(axis=0)
    return np.asarray(np.divide((x * y).sum(axis=0), square, out=np.ones(len(square)), where=square > 0))


def undo_turn(before: Matrix, after: Matrix, released: Matrix) -> Matrix:
    """Rows turned back by the rotation that the known rows fix.

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


def _undo_affine(before: Matrix, after: Matrix, released: Matrix) -> Matrix:
    """Rows by the affine map of least norm that fits the known ones."""
    x, y = before.mean(axis=0), after.mean(axis=0)
    return np.asarray(x + (released - y) @ np.linalg.lstsq(after - y, before - x, rcond=None)[0])


def _undo_pairs(before: Matrix, after: Matrix, released: Matrix, guess: Matrix, rounding: Matrix) -> NDArray[np.bool_]:
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


def _are_lines(before: Matrix, after: Matrix, rounding: Matrix) -> NDArray[np.bool_]:
    """Which columns a line explains on all known rows; one of slope 0 would have wiped the column out."""
    size = np.abs(before).max(axis=0)
    off = np.abs(undo_lines(before, after, after) - before).max(axis=0)
    close = off <= _EXACT * np.where(size > 0, size, 1.0) + 2 * np.abs(_line_slopes(before, after)) * rounding
    return np.asarray(close & ((np.ptp(before, axis=0) > 0) | (np.ptp(after, axis=0) <= _EXACT)))


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

    state: Matrix
    carrier: int
    left: frozenset[int]
    begun: frozenset[int]
    turns: tuple[Turn, ...] = ()
    cost: float = 0.0


def find_turns(before: Matrix, after: Matrix, rounding: Matrix) -> tuple[Turn, ...] | None:
    """Pairs and angles that explain the known rows; None if none do.

    Of at least two known rows each column is counted in the unit in which it was turned; ``rounding`` is by how much
    each released number may have been rounded.
    """
    d = before.shape[1]
    allowed = rounding + _TINY * max(float(np.abs(before).max()), float(np.abs(after).max()))
    everything = frozenset(range(d))
    paths = [_Path(before, start, everything - {start}, everything) for start in range(d)]
    for _ in range(d):  # each round explains one column more
        found = [one for path in paths for one in _explanations(path, after, allowed)]
        paths = [_longer(*one) for one in sorted(found, key=lambda one: one[0])[: _KEPT * d]]
    fitted = [_fit(path.turns, before, after, allowed) for path in paths[:_REFINED]]
    misfit, turns = min(fitted, key=lambda one: one[0], default=(np.inf, ()))
    return turns if misfit <= _EXPLAINED else None


def turn_back(rows: Matrix, turns: tuple[Turn, ...]) -> Matrix:
    """Rows as they were before the turns.

    Examples
    --------
    >>> turns = (Turn(0, 1, 0.3), Turn(1, 2, 1.1))
    >>> rows = np.array([[1.0, 2.0, 3.0]])
    >>> turn_back(_turned(rows, turns), turns).round(9).tolist()
    [[1.0, 2.0, 3.0]]
    """
    return _turned(rows, tuple(Turn(turn.first, turn.second, -turn.angle) for turn in reversed(turns)))


def _explanations(path: _Path, after: Matrix, allowed: Matrix) -> list[tuple[float, _Path, Turn | int]]:
    """Explanations of the carrier: a turn with each column that is left, or its chain ends and one begins.

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


def _angles(was: Matrix, partners: Matrix, became: Matrix) -> Matrix:
    """Angle to each partner that explains a column best, by least squares of cosine and sine."""
    aa, bb = was @ was, (partners * partners).sum(axis=0)
    ab, ay, by = was @ partners, was @ became, became @ partners
    return np.asarray(np.arctan2(aa * by - ab * ay, bb * ay - ab * by))


def _fit(turns: tuple[Turn, ...], before: Matrix, after: Matrix, allowed: Matrix) -> tuple[float, tuple[Turn, ...]]:
    """Turns with all angles fitted to all known rows at once, after the misfit in parts of what rounding allows."""
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


def _slopes(rows: Matrix, turns: tuple[Turn, ...]) -> tuple[Matrix, Matrix]:
    """Turned rows, and how they change with each angle."""
    both = np.zeros((len(turns) + 1, *rows.shape))
    both[0] = rows
    for place, turn in enumerate(turns, 1):
        _turn(both[:place], turn)
        both[place, :, turn.first] = both[0, :, turn.second]
        both[place, :, turn.second] = -both[0, :, turn.first]
    return both[0], both[1:]


def _turned(rows: Matrix, turns: tuple[Turn, ...]) -> Matrix:
    turned = rows.copy()
    for turn in turns:
        _turn(turned, turn)
    return turned


def _turn(rows: Matrix, turn: Turn) -> None:
    x, y, cos, sin = rows[..., turn.first], rows[..., turn.second], math.cos(turn.angle), math.sin(turn.angle)
    rows[..., turn.first], rows[..., turn.second] = cos * x + sin * y, cos * y - sin * x


CLOSE = 0.1
"""Standard deviations within which a number counts as recovered."""
_ENOUGH = 0.95  # share of cells that is as good as all
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
        """Standard deviation of each column before, in its unit; exactly 0 if the column is constant."""
        return np.asarray(np.where(np.ptp(self.before, axis=0) > 0, self.before.std(axis=0), 0.0))

    def recovered(self, guess: Matrix, rows: Places) -> float:
        """Share of cells of some rows that a guess comes close to; columns that are constant do not count."""
        spread = self.spread
        close = np.abs(guess - self.before[rows]) <= CLOSE * spread
        return float(close[:, spread > 0].mean())


def moved_columns(study: Study, most: int, rng: np.random.Generator) -> MovedColumns:
    """The moved columns of at most ``most`` rows; `NotRun` if fewer than three are complete or nothing differs."""
    fact = given(study.fact(Transformed))
    entries: dict[str, float] = getattr(study.workings, "units", {})  # known like the method: only the terms are secret
    pairs = [pair for pair in study.pairs if pair.name in fact.columns and pair.is_number]
    released, original = study.descent()
    for pair in pairs:
        whole = ~pair.released.absent[released] & ~pair.original.absent[original]
        released, original = released[whole], original[whole]
    chosen = sample(len(released), most, rng)
    if not pairs or len(chosen) < 3:
        raise NotRun(NOTHING)
    units = np.array([entries.get(pair.name) or float(np.std(pair.original.present)) or 1.0 for pair in pairs])
    before = np.column_stack([pair.original.values[original[chosen]] for pair in pairs]) / units
    after = np.column_stack([pair.released.values[released[chosen]] for pair in pairs])
    if not (np.ptp(before, axis=0) > 0).any():
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
    rng, fact = study.generator("known-input"), given(study.fact(Transformed))
    moved = moved_columns(study, study.sizes.attempts, rng)
    rows, d = len(moved.before), len(moved.names)
    claimed = min(fact.known_rows, rows - 1)
    numbers = sorted({*range(1, KNOWN_ROWS + 1), d - 1, d, d + 1, claimed} & set(range(1, rows)))
    curve = known_input_curve(moved, fact.operations, numbers, rng)
    while max(map(np.mean, curve.values())) < _ENOUGH and 2 * max(curve) <= min(rows // 2, _MOST * d):
        curve |= known_input_curve(moved, fact.operations, [2 * max(curve)], rng)  # rare values take more rows
    everyone, note = np.arange(rows), drawn_note(rows, len(study.released))
    guess = moved.recovered(np.broadcast_to(moved.before.mean(axis=0), moved.before.shape), everyone)

    def share(number: int) -> Values:
        tries = mean_as_tries(curve[number], rows)
        return Values(tries.share, tries.interval, guess, attempts=rows, note=note, inside=tries)

    few = min(KNOWN_ROWS, rows - 1)
    yield "known-input-recovery", dataclasses.replace(share(few), meaning=_HEADLINE.format(number=few))
    bare = moved.recovered(moved.after, everyone) >= _ENOUGH  # the released numbers are the original ones
    yield "known-input-rows", Values(0.0 if bare else float(fact.known_rows), baseline=0.0, attempts=rows, note=note)
    for number in curve:
        meaning = _RECOVERED.format(knowing=f"knows {number} original rows")
        yield f"known-input-recovery/{number} rows", dataclasses.replace(share(number), meaning=meaning)


def mean_as_tries(shares: Matrix, most: int) -> Tries:
    """Mean of shares that were measured on several sets of known rows, as tries with its variance.

    They are at least as many as the sets, which is exact for sets that recover all or nothing, and at most ``most``.

    Examples
    --------
    >>> mean_as_tries(np.array([0.0, 1.0, 1.0, 1.0]), 100).of
    4
    """
    mean, sets = float(shares.mean()), len(shares)
    variance = float(shares.var(ddof=1))
    even = mean * (1.0 - mean) / variance if variance > 0.0 else 1.0
    tries = min(max(sets, sets * even), max(sets, most))
    return Tries(mean * tries, tries)


_RECOVERED = "The share of numbers recovered to a tenth of a standard deviation by an attacker who {knowing}"
_BESIDE = "beside guessing the mean (baseline)"
_HEADLINE = (
    _RECOVERED.format(knowing="knows {number} original rows and the released rows made from them") + f", {_BESIDE}"
)
KNOWN_INPUT = Measure(
    "known-input",
    Family.ATTACK,
    "Liu, Giannella & Kargupta 2006; Giannella, Liu & Kargupta 2009",
    _run,
    needs=(Need.ORIGIN,),
    applies=not_moved,
).finds(
    Number("known-input-recovery", "Known-input attack, numbers recovered", SHARE).means(
        _HEADLINE.format(number=KNOWN_ROWS)
    ),
    Number("known-input-rows", "Known-input attack, rows needed", COUNT.more, figure="").means(
        "Known-input attack: how many original rows, with their released rows, determine the key. The certificate "
        "states this number, fewer may suffice, and every participant knows one"
    ),
    Number("known-input-recovery/", scale=SHARE, figure="attacks/known-input-recovery").means(
        _RECOVERED.format(knowing="knows {column}")
    ),
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
    rng, fact = study.generator("public-moments"), given(study.fact(Transformed))
    moved = moved_columns(study, study.sizes.training, rng)
    before, rows = moved.before, np.arange(len(moved.before))
    mean, spread = before.mean(axis=0), moved.spread
    lean = ((before - mean) ** 3).mean(axis=0) if "mult" in fact.operations else np.zeros(len(mean))
    value = moved.recovered(match_moments(moved.after, mean, spread, lean), rows)
    guess, note = moved.recovered(np.broadcast_to(mean, before.shape), rows), drawn_note(len(rows), len(study.released))
    interval = wilson(value * len(rows), len(rows))
    yield "public-moments-recovery", Values(value, interval, guess, attempts=len(rows), note=note)


PUBLIC_MOMENTS = Measure(
    "public-moments",
    Family.ATTACK,
    "Oliveira & Zaiane 2003 undone by published figures",
    _run_moments,
    needs=(Need.ORIGIN,),
    applies=not_moved,
).finds(
    Number("public-moments-recovery", "Numbers recovered from public mean and variance", SHARE).means(
        _RECOVERED.format(
            knowing="knows no row, only the mean, the standard deviation and the sign of the skewness of each original "
            "column"
        )
        + f", {_BESIDE}"
    )
)
