"""Draw a key, and the four transformations of a table by it, one function for each algorithm [OZ03, sec. 4]."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from sfumato.core.arrays import Floats
from sfumato.core.distributions.noise import Means, Pairs, check_columns, choose_step, enhance_rows, law_of_size, snap
from sfumato.core.errors import OptionError, PrivacyRefusal
from sfumato.core.facts import Enhanced, Fact, PassedThrough, Shuffled
from sfumato.core.records import Block, BlockKind, Grids, Layout, Records
from sfumato.methods.geometry.facts import TargetMoved, Transformed
from sfumato.methods.geometry.key import Add, Key, Mult, Rotate, Step
from sfumato.methods.protocol import MethodResult, OwnerDetails

__all__ = [
    "KINDS",
    "PAIRS",
    "EnhancementNoise",
    "KeyedOwnerDetails",
    "Ranges",
    "Spacing",
    "check_range",
    "draw_steps",
    "hybrid",
    "invert",
    "move",
    "number_blocks",
    "rotate",
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
    return hybrid(values, key, columns)


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
    return hybrid(values, key, columns)


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
    return hybrid(values, key, columns)


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
            moved[:, place[step.column]] += step.term  # a'_j <- a_j + e_j
        elif isinstance(step, Mult):
            moved[:, place[step.column]] *= step.term  # a'_j <- a_j * e_j
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


_MOST_DECIMALS = 12  # of numbers that are looked at for a spacing
_SHARES = (1, 9 * 7 * 11 * 13)  # of a decimal: degrees of Fahrenheit in Celsius are ninths, means of three are thirds
_TOO_ROUGH = 0.25  # of a place: numbers rounded by more lie on no places, or on any
_MOST_PLACES = 1e12  # within which doubles that went through coordinates still tell neighbouring numbers apart
_ROUNDING = 1e-6  # of a place, which small numbers are exact to
_LAST_DIGITS = 8 * np.finfo(np.float64).eps  # of a difference of two numbers, as a share of the larger
_FEW = 1_000
_FINE = 1_000  # places that numbers without a spacing have within their quartiles, at least


@dataclass
class Spacing:
    """Resolution of a column: largest decimal number, or share of one, that divides all differences.

    ``apart`` is that number of all numbers that were added, 0 if they are equal or have none; ``lost`` says that
    they have none, so that no further number gives one. ``per_one`` places make one, and ``head`` are the first
    numbers of the column.

    Examples
    --------
    >>> import numpy as np
    >>> salaries = Spacing()
    >>> salaries.add(np.array([31_000.0, 52_000.0, 37_000.0]))
    >>> salaries.apart
    3000.0
    >>> salaries.add(np.array([32_500.0]))
    >>> salaries.apart
    1500.0
    """

    apart: float = 0.0
    lost: bool = False
    first: float | None = None
    per_one: float = 1.0
    low: float = 0.0
    high: float = 0.0
    head: list[float] = field(default_factory=list)

    def add(self, numbers: Floats) -> None:
        """Add numbers of the column."""
        self.head += numbers[: _FEW - len(self.head)].tolist()
        if self.lost or not len(numbers):
            return
        if self.first is None:
            self.first = self.low = self.high = float(numbers[0])
        self.low, self.high = min(self.low, float(numbers.min())), max(self.high, float(numbers.max()))
        self._take(np.abs(numbers - self.first))

    def merge(self, other: Spacing) -> None:
        """Add the numbers of a later spacing of the same column."""
        head = [*self.head, *other.head][:_FEW]
        if not self.lost and other.first is not None:
            self._join(other)
        self.head = head

    def _join(self, other: Spacing) -> None:
        self.add(np.array([other.first, other.low, other.high]))
        if other.lost:
            self.apart, self.lost = 0.0, True
        self._take(np.array([other.apart]))

    @property
    def known(self) -> bool:
        """Whether further numbers cannot change the resolution of the output."""
        return self.lost and len(self.head) == _FEW

    def finest(self, step: float | None) -> float:
        """Finest resolution of the numbers before the transformation.

        If neither a spacing stands out nor a step is named, the power of ten below a thousandth of the distance
        between the quartiles of the first values. Nearly all of a column may lie on places that are no short decimals,
        such as tenths of psi in MPa, and digits beyond would show how far these lie apart after the move.
        """
        if not self.lost or step:
            return self.apart
        low, high = np.quantile(np.unique(self.head), [0.25, 0.75])
        return float(10.0 ** np.floor(np.log10((high - low) / _FINE) + _ROUNDING)) if high > low else 0.0

    def _take(self, away: Floats) -> None:
        """Take in how far some numbers lie from the first."""
        away = np.append(away, self.apart)
        for some in (away[-_FEW:], away):  # most columns without a spacing are recognized by a few numbers
            if not self._fits(some):
                self._narrow(some)

    @property
    def _farthest(self) -> float:
        """How far from the first number the others lie at most."""
        assert self.first is not None
        return max(self.first - self.low, self.high - self.first)

    def _fits(self, away: Floats) -> bool:
        if self.lost or not self.apart or not self._can_tell(self.per_one):
            return self.lost
        places = away / self.apart
        off = np.abs(places - np.rint(places)).max() * self.apart * self.per_one
        return bool(off <= self._rounding(self.per_one))

    def _can_tell(self, per_one: float) -> bool:
        """Whether doubles resolve the given number of steps per unit at this magnitude."""
        return self._farthest * per_one <= _MOST_PLACES and self._rounding(per_one) <= _TOO_ROUGH

    def _rounding(self, per_one: float) -> float:
        """Largest rounding error of a difference on a grid with the given number of steps per unit."""
        return max(_ROUNDING, _LAST_DIGITS * max(abs(self.low), abs(self.high)) * per_one)

    def _narrow(self, away: Floats) -> None:
        for per_one in (share * 10.0**decimals for share in _SHARES for decimals in range(_MOST_DECIMALS + 1)):
            if not self._can_tell(per_one):
                continue
            places = away * per_one
            if np.abs(places - np.rint(places)).max() <= self._rounding(per_one):
                common = int(np.gcd.reduce(np.rint(places).astype(np.int64)))
                if not common and self._farthest > _LAST_DIGITS * max(abs(self.low), abs(self.high)):
                    continue  # numbers that are not equal, and far below one place
                self.apart, self.per_one = common / per_one, per_one
                return
        self.apart, self.lost = 0.0, True


_USUAL = "gaussian"  # law of the extra noise of a column that is not named


@dataclass(frozen=True, eq=False, repr=False)
class KeyedOwnerDetails(OwnerDetails):
    """Details for the owner with the key, and the rotation unit of each column."""

    key: Key | None = None
    units: dict[str, float] = field(default_factory=dict)


def number_blocks(layout: Layout) -> tuple[Block, ...]:
    """Blocks of plain numbers, which can be transformed."""
    return tuple(block for block in layout if block.scale is not None and block.centre is not None)


@dataclass(frozen=True)
class EnhancementNoise:
    """Noise added to a share of the rows after the transformation: the privacy enhancement rho [OZ03, sec. 5.4].

    ``size`` and ``means`` are in standard deviations of the moved column. Columns without a law in ``laws`` get a
    Gaussian one, those without a mean noise of mean 0.
    """

    share: float = 0.0
    size: float = 1.0
    laws: Pairs = ()
    means: Means = ()


def move(
    records: Records,
    key: Key,
    *,
    extra: EnhancementNoise,
    pass_categories: bool,
    method: str,
    rng: np.random.Generator,
    exact_digits: bool = False,
) -> MethodResult:
    """Transform every number by the key, optionally add noise to a share of the rows, and shuffle the rows.

    A missing cell counts as its column's mean where it is turned with another, and stays missing. Moved numbers are
    written so that their digits do not show the key, unless ``exact_digits``.
    """
    _refuse_levels_and_groups(records, method)
    blocks = number_blocks(records.layout)
    untouched = _state_unchanged(records.layout, pass_categories=pass_categories)
    places = [block.start for block in blocks]
    centre, scale = (np.array([getattr(block, name) for block in blocks]) for name in ("centre", "scale"))
    names = tuple(block.column for block in blocks)
    check_columns(extra.laws, extra.means, names)
    own = records.values[:, places] * scale + centre
    order = rng.permutation(len(records))
    values = records.values.copy()
    values[:, places] = (hybrid(own, key, names) - centre) / scale
    beyond = int((~np.isfinite(values)).sum())
    if beyond:
        raise OptionError(f"the key moves {beyond} numbers beyond what a double holds; choose smaller terms")
    facts: list[Fact] = [Transformed(key.operations, names, key.known_rows, exact_digits)]
    if records.target in names:
        facts.append(TargetMoved(records.target))
    if extra.share:
        values[:, places], chosen = _enhance(values[:, places], names, extra, rng)
        facts.append(Enhanced(extra.share, chosen))
    grids = _grids(records, blocks, key, exact_digits=exact_digits)
    moved = records.made(values[order], moved=frozenset(names), grids=grids)
    facts.extend([*untouched, Shuffled(len(records))])
    return MethodResult(moved, tuple(facts), KeyedOwnerDetails(origin=order.astype(np.int64), key=key, units=key.units))


def _grids(records: Records, blocks: Sequence[Block], key: Key, *, exact_digits: bool) -> Grids:
    """Grids on which transformed numbers are written."""
    steps = {block.column: None if block.extent is None else block.extent.step for block in blocks}
    spacings = {block.column: _spacing(records, block).finest(steps[block.column]) for block in blocks}
    written = key.exact_steps(steps, spacings) if exact_digits else key.written_steps(steps, spacings)
    return tuple((column, 0.0, step) for column, step in written.items())


def _spacing(records: Records, block: Block) -> Spacing:
    """Resolution of a column."""
    marks = [other.start for other in records.layout if (other.column, other.kind) == (block.column, BlockKind.MISSING)]
    there = ~(records.values[:, marks] > 0.5).any(axis=1)
    assert block.scale is not None
    assert block.centre is not None
    spacing = Spacing()
    spacing.add(records.values[there, block.start] * block.scale + block.centre)
    return spacing


def _enhance(
    values: Floats, names: Sequence[str], extra: EnhancementNoise, rng: np.random.Generator
) -> tuple[Floats, int]:
    """Add noise to the transformed numbers of a share of the rows, and count these rows.

    All rows are brought to the grid of the noise: on another one those that got it would stand out.
    """
    mean, spread = values.mean(axis=0), values.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    step, named = choose_step(extra.size), dict(extra.laws)
    laws = [law_of_size(named.get(name, _USUAL), extra.size, step) for name in names]
    on_grid = np.asarray(snap((values - mean) / spread, step) * step, dtype=np.float64)
    means = dict(extra.means)
    enhanced, chosen = enhance_rows(on_grid, extra.share, laws, rng, [means.get(name, 0.0) for name in names])
    return mean + enhanced * spread, len(chosen)


def _refuse_levels_and_groups(records: Records, method: str) -> None:
    """Refuse privacy levels and groups, which these methods cannot give."""
    asked = int((records.levels > 0).sum())
    if asked:
        raise PrivacyRefusal(
            f"{asked} records have a privacy level and {method!r} gives none; leave the levels out, or condense"
        )
    if records.strata.any():
        raise OptionError(f"{method!r} makes no groups, so it takes no strata; drop them")


def _state_unchanged(layout: Layout, *, pass_categories: bool) -> tuple[Fact, ...]:
    """State which columns are released unchanged; refuse non-numeric columns unless allowed."""
    numbers = {block.column for block in number_blocks(layout)}
    gaps = sum(block.kind is BlockKind.MISSING for block in layout)
    passed = [block for block in layout if block.column not in numbers and block.kind is not BlockKind.MISSING]
    if passed and not pass_categories:
        raise PrivacyRefusal(
            f"{len(passed)} columns are no plain numbers and would be released as they are, the first is "
            f"{passed[0].named}; drop them as identifiers, or allow it with --pass-categories"
        )
    return (PassedThrough(len(passed), gaps),) if passed or gaps else ()
