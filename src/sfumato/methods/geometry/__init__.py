"""Translation, scaling, rotation and hybrid as mechanisms; parameters are ranges, never the key [OZ03, sec. 4]."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import InitVar, dataclass, replace
from typing import Any, ClassVar

import numpy as np

from sfumato.core.arguments import option
from sfumato.core.distributions.noise import Means, Pairs, check_enhance, means_of, pairs_of
from sfumato.core.errors import OptionError
from sfumato.core.records import Layout, Records
from sfumato.methods.geometry.key import Add, Key, Mult, Rotate
from sfumato.methods.geometry.transformations import (
    PAIRS,
    EnhancementNoise,
    Ranges,
    check_range,
    invert,
    move,
    number_blocks,
)
from sfumato.methods.protocol import MethodResult, Traits, check_parameters

__all__ = ["Add", "Hybrid", "Key", "Mult", "Ranges", "Rotate", "Rotation", "Scaling", "Translation", "invert"]

Bounds = tuple[str, float, float]
Unit = tuple[str, float]


@dataclass(frozen=True)
class _Geometric:
    """Shared part of the four. ``key`` is not a field: it is in no repr, comparison, certificate or recipe."""

    traits: ClassVar[Traits] = Traits(synthetic=False, keyed=True, codes=True)
    _key: ClassVar[Key | None] = None
    operations: ClassVar[tuple[str, ...]] = ()
    method: ClassVar[str] = ""

    pass_categories: bool = option(False, "noise, geometry, swap: release categories as they are.")
    enhance: float = option(0.0, "noise and geometry: share of the rows that get extra noise.")
    enhance_size: float = option(1.0, "noise and geometry: standard deviation of the extra noise.")
    enhance_laws: Pairs | Mapping[str, str] = option(
        (), "noise and geometry: distribution of a column's extra noise, as in age=uniform; repeatable."
    )
    enhance_means: Means | Mapping[str, float] = option(
        (), "noise and geometry: mean of that noise in standard deviations, as in age=0.5; repeatable."
    )
    exact_digits: bool = option(False, "geometry: write all digits of the transformed numbers, which reveal the key.")
    key: InitVar[Key | None] = None

    def __post_init__(self, key: Key | None) -> None:
        check_parameters(self)
        _set_fields(self, enhance_laws=pairs_of(self.enhance_laws), enhance_means=means_of(self.enhance_means))
        check_enhance(self)
        if key is not None and not isinstance(key, Key):
            raise OptionError("the key is not one; read it with Key.load")
        if key is not None:
            key.check_operations(self.operations, self.method)
        _set_fields(self, key=key, _key=key)  # attributes and no fields: asdict and repr pass them by

    @property
    def given_key(self) -> Key | None:
        """The given key; None if one is to be drawn."""
        return self._key

    def ranges(self, layout: Layout) -> Ranges:
        """Range of each term that a column may get; a column's standard deviation counts as one."""
        return Ranges(units=_units_of(layout))

    def new_key(self, layout: Layout, *, rng: np.random.Generator) -> Key:
        """Draw a key for the numeric columns."""
        columns = [block.column for block in number_blocks(layout)]
        return Key.generate(columns, self.ranges(layout), rng, kind=self.method, pairs=self._pairs)

    @property
    def _pairs(self) -> str:
        return PAIRS[0]

    def sanitize(self, records: Records, *, rng: np.random.Generator) -> MethodResult:
        """Transform the numbers of every record by the given or a new key; return rows in random order.

        The key that was used is in the workings, which stay with the owner.
        """
        key = self._key or self.new_key(records.layout, rng=rng)
        extra = EnhancementNoise(
            self.enhance, self.enhance_size, pairs_of(self.enhance_laws), means_of(self.enhance_means)
        )
        return move(
            records,
            key,
            extra=extra,
            pass_categories=self.pass_categories,
            exact_digits=self.exact_digits,
            method=self.method,
            rng=rng,
        )


@dataclass(frozen=True)
class Translation(_Geometric):
    """Add a secret constant to every numeric column [OZ03, sec. 4.2].

    Outsourcing obfuscation, undone by one known row.

    Parameters
    ----------
    pass_categories : bool
        Release categories, orders and dates as they are; without it a table that has some is refused.
    enhance : float
        Share of the rows, drawn at random, that get noise after the move: the privacy enhance rho [OZ03, sec. 5.4].
    enhance_size : float
        Standard deviation of what they get, in standard deviations of the moved column.
    enhance_laws : mapping of str to str
        Columns and the law of what they get, gaussian, uniform or laplace; gaussian for those that are not named.
    enhance_means : mapping of str to float
        Columns and the mean of what they get, in standard deviations of the moved column; 0 for those that are not
        named.
    exact_digits : bool
        Write moved numbers with all their digits, whole ones rounded to the unit as in the figures of the paper. The
        digits show how far apart the numbers lie, and with it the factor; by default they are rounded so that they do
        not (errata OZ03.2).
    key : Key, optional
        By default one is drawn; never part of what is printed or written.
    shifts : mapping of str to (float, float)
        Between which bounds the shift of a column is drawn, in its own units.
    deviations : (float, float)
        The same for all other columns, in standard deviations.

    Examples
    --------
    >>> Translation(shifts={"age": (-5, 5)})
    Translation(pass_categories=False, enhance=0.0, enhance_size=1.0, enhance_laws=(), enhance_means=(),
        exact_digits=False, shifts=(('age', -5.0, 5.0),), deviations=(-3.0, 3.0))
    """

    operations: ClassVar[tuple[str, ...]] = ("add",)
    method: ClassVar[str] = "translate"

    shifts: tuple[Bounds, ...] | Mapping[str, Any] = option(
        (), "translate, hybrid: range of a column's shift in its own units, as in age=-5,5; repeatable."
    )
    deviations: tuple[float, float] = option(
        (-3.0, 3.0), "translate, hybrid: range of all other shifts, in standard deviations.  [default: -3 3]"
    )

    def __post_init__(self, key: Key | None) -> None:
        super().__post_init__(key)
        _set_fields(self, shifts=_bounds(self.shifts), deviations=check_range("deviations", self.deviations))

    def ranges(self, layout: Layout) -> Ranges:
        """Range of each term, shifts among them."""
        low, high = self.deviations
        usual = {name: (low * unit, high * unit) for name, unit in _units_of(layout).items()}
        return replace(super().ranges(layout), add=usual | _named(usual, self.shifts))


@dataclass(frozen=True)
class Scaling(_Geometric):
    """Multiply every numeric column by a secret constant [OZ03, sec. 4.3].

    Outsourcing obfuscation, undone by one known row.

    Parameters
    ----------
    pass_categories, enhance, enhance_size, enhance_laws, enhance_means, exact_digits, key
        As in `Translation`.
    factors : mapping of str to (float, float)
        Between which bounds the factor of a column is drawn.
    factor : (float, float)
        The same for all other columns.
    """

    operations: ClassVar[tuple[str, ...]] = ("mult",)
    method: ClassVar[str] = "scale"

    factors: tuple[Bounds, ...] | Mapping[str, Any] = option(
        (), "scale, hybrid: range of a column's factor, as in pay=0.5,0.9; repeatable."
    )
    factor: tuple[float, float] = option((0.5, 2.0), "scale, hybrid: range of all other factors.  [default: 0.5 2]")

    def __post_init__(self, key: Key | None) -> None:
        super().__post_init__(key)
        _set_fields(self, factors=_bounds(self.factors), factor=check_range("factor", self.factor))

    def ranges(self, layout: Layout) -> Ranges:
        """Range of each term, factors among them."""
        usual = dict.fromkeys(_units_of(layout), self.factor)
        return replace(super().ranges(layout), mult=usual | _named(usual, self.factors))


@dataclass(frozen=True)
class Rotation(_Geometric):
    """Rotate pairs of numeric columns by secret angles [OZ03, sec. 4.4].

    Outsourcing obfuscation, undone by a few known rows. Distances between rows stay as they are, each column counted in
    its unit.

    Parameters
    ----------
    pass_categories, enhance, enhance_size, enhance_laws, enhance_means, exact_digits, key
        As in `Translation`.
    degrees : (float, float)
        Between which bounds an angle is drawn, clockwise.
    units : mapping of str to float
        How much of a column counts as one: 1000 for a salary in thousands (errata OZ03.1). By default a column's
        standard deviation.
    pairs : {"chain", "disjoint"}
        ``"chain"`` turns each column with the next, in an order that is drawn; ``"disjoint"`` turns each once, an odd
        one with a column already turned (errata OZ03.5).
    """

    operations: ClassVar[tuple[str, ...]] = ("rotate",)
    method: ClassVar[str] = "rotate"

    degrees: tuple[float, float] = option((0.0, 360.0), "rotate, hybrid: range of the angles.  [default: 0 360]")
    units: tuple[Unit, ...] | Mapping[str, float] = option(
        (), "rotate, hybrid: unit of a column, as in pay=1000; repeatable."
    )
    pairs: str = option("chain", "rotate, hybrid: which columns are rotated together.  [default: chain]", choices=PAIRS)

    def __post_init__(self, key: Key | None) -> None:
        super().__post_init__(key)
        if self.pairs not in PAIRS:
            raise OptionError(f"there are no pairs {self.pairs!r}; choose one of {', '.join(PAIRS)}")
        _set_fields(self, degrees=check_range("degrees", self.degrees), units=_units(self.units))

    @property
    def _pairs(self) -> str:
        return self.pairs

    def ranges(self, layout: Layout) -> Ranges:
        """Range of each term, angles among them, and the unit of each column."""
        found, own = super().ranges(layout), dict(self.units)
        for name in own:
            _check_known(name, found.units)
        return replace(found, degrees=self.degrees, units={**found.units, **own})


@dataclass(frozen=True)
class Hybrid(Rotation, Scaling, Translation):
    """Translate, scale or rotate each column, chosen at random [OZ03, sec. 4.5].

    Outsourcing obfuscation, undone by a few known rows. A given key may hold any steps, several for a column.

    Parameters
    ----------
    pass_categories, enhance, enhance_size, enhance_laws, enhance_means, exact_digits, key, shifts, deviations
        As in `Translation`.
    factors, factor
        As in `Scaling`.
    degrees, units, pairs
        As in `Rotation`.
    """

    operations: ClassVar[tuple[str, ...]] = ("add", "mult", "rotate")
    method: ClassVar[str] = "hybrid"


def _set_fields(mechanism: _Geometric, **values: Any) -> None:
    """Store parameters in hashable form."""
    for name, value in values.items():
        object.__setattr__(mechanism, name, value)


def _rows(given: Mapping[str, Any] | Iterable[Any]) -> Iterable[tuple[str, list[Any]]]:
    """Normalize a mapping, or rows that begin with a column name, as read from a file."""
    if isinstance(given, Mapping):
        return [(name, list(value) if isinstance(value, list | tuple) else [value]) for name, value in given.items()]
    if not isinstance(given, list | tuple) or not all(isinstance(row, list | tuple) and row for row in given):
        raise OptionError("ranges and units are not given by column; write a mapping from columns to numbers")
    return [(str(row[0]), list(row[1:])) for row in given]


def _bounds(given: Mapping[str, Any] | Iterable[Any]) -> tuple[Bounds, ...]:
    return tuple((name, *check_range(f"column {name!r}", values)) for name, values in _rows(given))


def _units(given: Mapping[str, Any] | Iterable[Any]) -> tuple[Unit, ...]:
    rows = _rows(given)
    for name, values in rows:
        if len(values) != 1 or isinstance(values[0], bool) or not isinstance(values[0], int | float) or values[0] <= 0:
            raise OptionError(f"the unit of column {name!r} is not a number above 0; write how much counts as one")
    return tuple((name, float(values[0])) for name, values in rows)


def _units_of(layout: Layout) -> dict[str, float]:
    """Standard deviation of each numeric column, which counts as one."""
    return {block.column: block.scale or 1.0 for block in number_blocks(layout)}


def _named(usual: Mapping[str, Any], given: Iterable[Any]) -> dict[str, tuple[float, float]]:
    for name, *_ in given:
        _check_known(name, usual)
    return {name: (low, high) for name, low, high in given}


def _check_known(name: str, known: Mapping[str, Any]) -> None:
    if name not in known:
        raise OptionError(f"column {name!r} has a range or a unit and is no confidential number; fix its name or kind")
