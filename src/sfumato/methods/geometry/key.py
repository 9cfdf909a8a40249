"""The uniform noise vector as a key: an operation and a secret term for each confidential attribute [OZ03, def. 1].

Whoever has the key has the table, so its terms stand in no repr, no error and no file but its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.core.documents import Inline, Lines, read_text, toml_entries, write_toml
from sfumato.core.errors import OptionError, PrivacyRefusal, SfumatoError
from sfumato.core.replacing import reason, replacing_file

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from sfumato.methods.geometry.transformations import Ranges

__all__ = [
    "Add",
    "Key",
    "Mult",
    "Rotate",
    "Step",
    "check_key_path",
    "keeping_key",
]

_FEW = 3  # known rows that tell turns of pairs, two for each angle and its pair and one for doubt
_COLUMNS = 40  # up to which that was tried
_DIGITS = 6  # below the step of a column, of exact numbers


@dataclass(frozen=True, repr=False)
class _ColumnStep:
    """A step that changes one column."""

    column: str
    term: float

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.column!r})"

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the step changes."""
        return (self.column,)


@dataclass(frozen=True, repr=False)
class Add(_ColumnStep):
    """Shift a column by a term in its own units."""

    op = "add"

    def __post_init__(self) -> None:
        _check_term(self.term, self.column, "term")
        _check_change(self.term == 0, self.column)


@dataclass(frozen=True, repr=False)
class Mult(_ColumnStep):
    """Multiply a column by a term."""

    op = "mult"

    def __post_init__(self) -> None:
        _check_term(self.term, self.column, "term")
        if self.term == 0:
            raise OptionError(f"a step wipes out column {self.column!r}, which cannot be undone; choose another term")
        _check_change(self.term == 1, self.column)


@dataclass(frozen=True, repr=False)
class Rotate:
    """Rotate two columns clockwise by an angle, in units such as 1000 for salaries in thousands (errata OZ03.1).

    Parameters
    ----------
    pair : tuple of str
        The first column is the X axis, the second the Y axis.
    degrees : float
    units : tuple of float
        How much of each column counts as one.
    """

    pair: tuple[str, str]
    degrees: float
    units: tuple[float, float] = (1.0, 1.0)

    op = "rotate"

    def __post_init__(self) -> None:
        if len(self.pair) != 2 or self.pair[0] == self.pair[1]:
            raise OptionError(f"a rotation names column {self.pair[0]!r} alone; it needs two different columns")
        _check_term(self.degrees, self.pair[0], "angle")
        for column, unit in zip(self.pair, self.units, strict=True):
            _check_term(unit, column, "unit")
            if unit <= 0:
                raise OptionError(f"the unit of column {column!r} is not above 0; write how much of it counts as one")
        _check_change(self.degrees % 360 == 0, self.pair[0])

    def __repr__(self) -> str:
        return f"Rotate({self.pair[0]!r}, {self.pair[1]!r})"

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the step changes."""
        return self.pair


Step = Add | Mult | Rotate


@dataclass(frozen=True, repr=False)
class Key:
    """The operations applied to each confidential attribute, in order.

    Examples
    --------
    >>> Key((Add("age", -3), Mult("salary", 1.035)))
    Key(add, mult; 2 columns)
    """

    steps: tuple[Step, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", tuple(self.steps))
        if not self.steps:
            raise OptionError("the key has no step; give at least one")

    def __repr__(self) -> str:
        return f"Key({', '.join(self.operations)}; {len(self.columns)} columns)"

    @property
    def operations(self) -> tuple[str, ...]:
        """The kinds of operations, sorted."""
        return tuple(sorted({step.op for step in self.steps}))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns, in order of first use."""
        return tuple(dict.fromkeys(column for step in self.steps for column in step.columns))

    @property
    def known_rows(self) -> int:
        """Number of known rows that suffice to invert the key, for an attacker who knows the method.

        One row tells every shift, or every factor, if nothing else was done; of a line that may be both, two rows
        do. Turns of pairs follow from three rows, pair by pair (`sfumato.assess.attacks.known_input`), or from fewer
        where one row fewer than there are columns are fewer: that fixes any turn of all. Beyond 40 columns that hang
        together only that is counted on. Turned columns that were shifted or stretched too are an affine map, which one
        row more than there are of them fixes. Fewer rows may do.
        """
        turned = {column for step in self.steps if isinstance(step, Rotate) for column in step.columns}
        if not turned:
            return 1 if len(self.operations) == 1 else 2
        if any(step.column in turned for step in self.steps if not isinstance(step, Rotate)):
            return len(turned) + 1
        few = _FEW if len(turned) <= _COLUMNS else len(turned) - 1
        return min(few, len(turned) - 1) if self.operations == (Rotate.op,) else max(few, 3)

    def _together(self) -> set[frozenset[str]]:
        """Group the columns by which hang together."""
        together = {column: frozenset([column]) for column in self.columns}
        for step in self.steps:
            joined = frozenset[str]().union(*(together[column] for column in step.columns))
            together |= dict.fromkeys(joined, joined)
        return set(together.values())

    def written_steps(
        self, steps: Mapping[str, float | None], spacings: Mapping[str, float] | None = None
    ) -> dict[str, float]:
        """Step in which the transformed numbers of each column are written, from the original steps.

        It is no finer than the original's step is after the move: digits beyond would show the spacing, and with it the
        factor. A shift leaves the step as it is. A factor stretches it, and the next of 1, 2, 5, 10, ... is taken. What
        columns turned together hold is as fine as the finest of them, each counted in its unit. Columns without step
        and spacing, and those that are turned with one, have none. Whole numbers stay whole, so their step is never
        below 1; those that were shifted or turned have none here, and are rounded if they are written. Whole numbers
        whose step nothing names count as decimals where they are turned.

        Parameters
        ----------
        steps : mapping
            Of each column, or None.
        spacings : mapping, optional
            How far apart the numbers of a column really lie, where that was looked at: multiples of a thousand lie
            farther apart than their step, and others may have a spacing that no step names, or none and a fineness.
        """
        factors, units, written = self._factors(), self.units, {}
        for columns in self._together():
            apart = {column: max(steps.get(column) or 0.0, (spacings or {}).get(column, 0.0)) for column in columns}
            known = {column: steps.get(column) or value for column, value in apart.items() if value}
            if len(columns) == 1:
                (column,) = columns
                own = steps.get(column) or 0.0
                stretched = factors[column] * apart[column]
                if factors[column] != 1.0 and apart[column]:
                    if 0.0 < stretched < math.inf:  # others are refused if they are moved
                        written[column] = max(_next_round(stretched), 1.0 if own and not own % 1 else 0.0)
                elif known.get(column, 0.0) % 1:
                    written[column] = known[column]
                continue
            if len(known) < len(columns):
                continue
            finest = min(value / units[column] for column, value in known.items())
            parts = [column for column, value in known.items() if value % 1 or not steps.get(column)]
            written |= {column: 10.0 ** math.floor(math.log10(finest * units[column])) for column in parts}
        return {column: written[column] for column in self.columns if column in written}

    def exact_steps(self, steps: Mapping[str, float | None], spacings: Mapping[str, float]) -> dict[str, float]:
        """Step far below that of each transformed column: all digits of the result, no rounding error.

        The parameters are those of `written_steps`. Whole numbers have no such step and are rounded to the unit;
        neither have numbers without step and spacing, which keep all bits.
        """
        factors = self._factors()
        fine = {column: steps.get(column) or spacings.get(column) or 1.0 for column in self.columns}
        fractions = {column: step * min(1.0, factors[column]) for column, step in fine.items() if step % 1}
        return {column: 10.0 ** (math.floor(math.log10(step)) - _DIGITS) for column, step in fractions.items()}

    def _factors(self) -> dict[str, float]:
        """Product of the factors of each column."""
        factors = dict.fromkeys(self.columns, 1.0)
        for step in self.steps:
            if isinstance(step, Mult):
                factors[step.column] *= abs(step.term)
        return factors

    @property
    def units(self) -> dict[str, float]:
        """Rotation unit of each column; columns that were not rotated have none."""
        turns = [step for step in self.steps if isinstance(step, Rotate)]
        return {column: unit for turn in turns for column, unit in zip(turn.pair, turn.units, strict=True)}

    def check_operations(self, allowed: Sequence[str], method: str) -> None:
        """Refuse a key with operations that the method does not use."""
        foreign = [op for op in self.operations if op not in allowed]
        if foreign:
            raise OptionError(
                f"the key has a step {foreign[0]!r} and {method!r} uses only {' and '.join(map(repr, allowed))}; take "
                "the method 'hybrid' or another key"
            )

    def check_cover(self, columns: Sequence[str]) -> None:
        """Refuse a key that names an unknown column or leaves one unchanged."""
        unknown = [column for column in self.columns if column not in columns]
        if unknown:
            raise OptionError(
                f"the key names {len(unknown)} columns that are no confidential numbers of the table, the first is "
                f"{unknown[0]!r}; fix the key or the schema"
            )
        bare = [column for column in columns if column not in self.columns]
        if bare:
            raise PrivacyRefusal(
                f"the key leaves {len(bare)} columns of numbers as they are, the first is {bare[0]!r}; add a step for "
                "each, or declare them public or identifiers"
            )

    def places(self, values: NDArray[np.float64], columns: Sequence[str] | None) -> dict[str, int]:
        """Matrix column of each name; by default the key's columns in order."""
        names = self.columns if columns is None else tuple(columns)
        if values.ndim != 2 or values.shape[1] != len(names):
            raise ValueError(f"a matrix of shape {values.shape} does not have the {len(names)} columns that are named")
        self.check_cover(names)
        return {name: place for place, name in enumerate(names)}

    @classmethod
    def generate(
        cls,
        columns: Sequence[str],
        ranges: Ranges,
        rng: np.random.Generator,
        *,
        kind: str = "rotate",
        pairs: str = "chain",
    ) -> Key:
        """Draw a key; see `sfumato.methods.geometry.transformations.draw_steps`."""
        from sfumato.methods.geometry.transformations import draw_steps

        return cls(draw_steps(columns, ranges, rng, kind=kind, pairs=pairs))

    def to_toml(self) -> str:
        """Write the key as TOML, terms included."""
        steps = Lines(Inline(_to_document(step)) for step in self.steps)
        return write_toml({"format": _FORMAT, "step": steps}, _NOTE)

    @classmethod
    def from_toml(cls, text: str) -> Key:
        r"""Read a key from TOML.

        Examples
        --------
        >>> Key.from_toml('format = 1\nstep = [{ op = "add", column = "age", term = -3 }]')
        Key(add; 1 columns)
        """
        document = toml_entries(text, "key", "write it as the documentation shows", ("step",))
        steps = document.get("step")
        if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
            raise OptionError("the key has no list 'step'; write one with a table for each operation")
        return cls(tuple(_step(step, place) for place, step in enumerate(steps, start=1)))

    @classmethod
    def load(cls, path: str | Path) -> Key:
        """Read a key from a file."""
        return cls.from_toml(read_text(path, "key file", "make one with --new-key"))

    def save(self, path: str | Path, *, apart_from: str | Path | None = None) -> Path:
        """Write the key to a new file of mode 600.

        Parameters
        ----------
        path : path
            There must be no such file yet.
        apart_from : path, optional
            The folder of the release, in which a key is never written.
        """
        place = check_key_path(path, apart_from=apart_from)
        try:
            with replacing_file(place, private=True) as work:
                work.write_text(self.to_toml(), encoding="utf-8", newline="\n")
                check_key_path(place)
        except OSError as error:
            raise SfumatoError(f"the key could not be written ({reason(error)}); name another file") from None
        return place


def _next_round(step: float) -> float:
    """Smallest of 1, 2 and 5 times a power of ten that is not smaller.

    Examples
    --------
    >>> _next_round(0.137), _next_round(0.05), _next_round(61)
    (0.2, 0.05, 100.0)
    """
    power = math.floor(math.log10(step))
    return next(rounded for digit in (1, 2, 5, 10) if (rounded := float(f"{digit}e{power}")) >= step * (1 - 1e-9))


def _check_term(term: float, column: str, what: str) -> None:
    if isinstance(term, bool) or not isinstance(term, int | float) or not math.isfinite(term):
        raise OptionError(f"the {what} of a step on column {column!r} is not a finite number; write one")


def _check_change(idle: bool, column: str) -> None:
    if idle:
        raise OptionError(f"a step leaves column {column!r} as it is; choose another term")


_FORMAT = 1
_NOTE = """Key of a table that was moved: whoever has it has the original.
Keep it apart from the release, and never send it along."""
_ENTRIES = {
    "add": {"op", "column", "term"},
    "mult": {"op", "column", "term"},
    "rotate": {"op", "columns", "degrees", "units"},
}


def _to_document(step: Step) -> dict[str, object]:
    if not isinstance(step, Rotate):
        return {"op": step.op, "column": step.column, "term": step.term}
    units = {column: unit for column, unit in zip(step.pair, step.units, strict=True) if unit != 1}
    turn = {"op": step.op, "columns": list(step.pair), "degrees": step.degrees}
    return turn | {"units": units} if units else turn


def _step(document: Mapping[str, Any], place: int) -> Step:
    op = document.get("op")
    if not isinstance(op, str) or op not in _ENTRIES:
        raise OptionError(f"step {place} of the key has no operation; choose one of {', '.join(_ENTRIES)}")
    wrong = sorted(set(document) - _ENTRIES[op]) + sorted(_ENTRIES[op] - set(document) - {"units"})
    if wrong:
        raise OptionError(f"step {place} of the key lacks or should not have the entry {wrong[0]!r}; fix it")
    if op != "rotate":
        if not isinstance(document["column"], str):
            raise OptionError(f"the column of step {place} of the key is not a name; write it in quotes")
        return (Add if op == "add" else Mult)(document["column"], document["term"])
    pair, units = document["columns"], document.get("units", {})
    if not isinstance(pair, list) or len(pair) != 2 or not all(isinstance(name, str) for name in pair):
        raise OptionError(f"step {place} of the key does not name two columns to turn; write columns = ['a', 'b']")
    if not isinstance(units, dict) or not set(units) <= set(pair):
        raise OptionError(f"the units of step {place} of the key are not those of its two columns; fix them")
    return Rotate((pair[0], pair[1]), document["degrees"], (units.get(pair[0], 1.0), units.get(pair[1], 1.0)))


def check_key_path(path: str | Path, *, apart_from: str | Path | None = None) -> Path:
    """Refuse to write a new key over a file or into a release folder."""
    place = Path(path)
    if apart_from is not None:
        folder, real = Path(apart_from).resolve(), place.resolve()
        if folder == real or folder in real.parents:
            raise PrivacyRefusal("the key would be in the output folder, part of which is released; keep it elsewhere")
    if place.exists() or place.is_symlink():
        raise OptionError(f"there is a file {str(path)!r} already and a key that is overwritten is lost; name another")
    return place


@contextmanager
def keeping_key(key: Key | None, place: str | Path | None, folder: str | Path) -> Iterator[None]:
    """Write a new key before the release, and delete it if there is no release.

    Parameters
    ----------
    key : Key or None
    place : path or None
        Nothing is written where either is None.
    folder : path
        Of the release: as long as no other folder stands there than before, none has come.
    """
    if key is None or place is None:
        yield
        return
    before = _standing(folder)
    saved = key.save(place, apart_from=folder)
    try:
        yield
    except BaseException:
        if _standing(folder) == before:
            saved.unlink(missing_ok=True)
        raise


def _standing(folder: str | Path) -> tuple[int, int] | None:
    try:
        found = Path(folder).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
