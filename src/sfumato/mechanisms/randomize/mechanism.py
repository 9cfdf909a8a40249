"""Randomization as a mechanism: every cell of a table as its person would have sent it [JS07, sec. 3]."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from sfumato.core.errors import LevelError, OptionError, PrivacyRefusal
from sfumato.core.facts import DomainsObserved, Fact, Randomized, Shuffled, Untouched
from sfumato.core.laws.spec import NoiseSpec
from sfumato.core.records import Layout, Records
from sfumato.mechanisms.protocol import Sanitized, Traits, Workings
from sfumato.mechanisms.randomize.columns import Column, fit_column, places_of_layout, spec_for_epsilon

__all__ = ["Randomization"]

_LARGEST = 100.0  # of epsilon for one column: above it answers are the truth


@dataclass(frozen=True)
class Randomization:
    """Every cell of every column randomized by itself, by a noise specification of its column.

    Parameters
    ----------
    specs : pairs of (str, NoiseSpec)
        Columns and their specifications; also as TOML or JSON text, or as a mapping. Kept as JSON text.
    epsilon : float, optional
        Local differential privacy of each column that has no specification; those of a row add up. Categories get the
        k-ary response that keeps the most, numbers Laplace noise with a scale of range / epsilon.
    pass_missing : bool
        Publish which cells are missing. Without it missing categories are randomized like one more category, and
        missing numbers are refused.
    allow_observed : bool
        Let ``epsilon`` use bounds and categories that were read off the data. They are published then.

    Examples
    --------
    >>> Randomization(epsilon=1.0).method
    'randomize'
    >>> Randomization()
    Traceback (most recent call last):
        ...
    sfumato.core.errors.OptionError: randomization needs to know how much; give specs, or an epsilon for each column
    """

    method: ClassVar[str] = "randomize"
    traits: ClassVar[Traits] = Traits(synthetic=False, row_is_person=True, codes=True)

    specs: tuple[tuple[str, str], ...] | Mapping[str, Any] = ()
    epsilon: float | None = None
    pass_missing: bool = False
    allow_observed: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "specs", _pairs(self.specs))
        if not self.specs and self.epsilon is None:
            raise OptionError("randomization needs to know how much; give specs, or an epsilon for each column")
        epsilon = self.epsilon
        if epsilon is not None and (
            isinstance(epsilon, bool) or not isinstance(epsilon, int | float) or not 0.0 < epsilon <= _LARGEST
        ):
            raise OptionError(f"epsilon must be a number above 0 and at most {_LARGEST:g}; try 1")
        object.__setattr__(self, "epsilon", None if epsilon is None else float(epsilon))
        for name in ("pass_missing", "allow_observed"):
            if not isinstance(getattr(self, name), bool):
                raise OptionError(f"{name} is neither true nor false; write one of them")

    def sanitize(self, records: Records, *, rng: np.random.Generator) -> Sanitized:
        """Randomize every cell and shuffle the rows."""
        _refuse_asked(records)
        columns, observed = self._columns(records.layout)
        values = records.values.copy()
        found = [column.randomize(values, rng) for column in columns]
        order = rng.permutation(len(records)).astype(np.int64)
        nothing = np.zeros(len(records), dtype=np.int64)
        grids = tuple(column.grid for column in columns if column.grid is not None)
        moved = frozenset(column.name for column in columns if column.moves)
        answers = tuple(each.take(order) for each in found if each is not None)
        released = Records(
            values[order], records.layout, nothing, nothing.copy(), records.target, moved, grids, answers=answers
        )
        facts = (*_facts(columns, observed), Shuffled(len(records)))
        return Sanitized(released, facts, Workings(origin=order, answers={each.column: each.codes for each in answers}))

    def _columns(self, layout: Layout) -> tuple[list[Column], tuple[str, ...]]:
        """Specification of each column, and those whose domain was read off the data."""
        given = {name: NoiseSpec.from_json(text) for name, text in dict(self.specs).items()}
        columns: list[Column] = []
        observed = []
        for places in places_of_layout(layout):
            name = places.block.column
            spec = given.pop(name, None)
            if spec is None:
                if self.epsilon is None:
                    raise OptionError(
                        f"column {name!r} has no specification; give it one (--spec), or an epsilon for such columns"
                    )
                spec = spec_for_epsilon(
                    places, self.epsilon, allow_observed=self.allow_observed, pass_missing=self.pass_missing
                )
                if places.has_observed(spec):
                    observed.append(name)
            columns.append(fit_column(places, spec))
            self._refuse_missing(columns[-1])
        if given:
            raise OptionError(f"there is a specification for {next(iter(given))!r}, which is no column to randomize")
        return columns, tuple(observed)

    def _refuse_missing(self, column: Column) -> None:
        if column.passes_missing and not self.pass_missing:
            raise PrivacyRefusal(
                f"column {column.name!r} has missing cells, and its specification does not say what becomes of them; "
                "fill them, drop the column, or publish which are missing (--pass-missing)"
            )


def _facts(columns: list[Column], observed: tuple[str, ...]) -> list[Fact]:
    facts: list[Fact] = []
    for column in columns:
        spec = column.spec
        gamma, epsilon = (number if math.isfinite(number) else None for number in (spec.gamma, spec.epsilon))
        facts.append(Randomized(column.name, spec.canonical, spec.digest, gamma, epsilon))
    if observed:
        facts.append(DomainsObserved(observed))
    passed = sum(column.passes_missing for column in columns)
    if passed:
        facts.append(Untouched(0, passed))
    return facts


def _refuse_asked(records: Records) -> None:
    """Refuse what this method cannot give: privacy levels and groups."""
    asked = int((records.levels > 0).sum())
    if asked:
        raise LevelError(
            f"{asked} records ask for a privacy level, which randomization does not give; use condense for them"
        )
    if records.strata.any():
        raise OptionError("randomization makes no groups, so there is nothing to keep apart; leave strata out")


def _pairs(given: Iterable[Any] | Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Read pairs of column and specification, which come as lists and texts from a recipe."""
    items = list(given.items() if isinstance(given, Mapping) else given)
    if any(not isinstance(item, list | tuple) or len(item) != 2 or not isinstance(item[0], str) for item in items):
        raise OptionError("specs takes pairs of a column and its noise specification")
    names = [name for name, _ in items]
    if len(set(names)) < len(names):
        raise OptionError("specs names a column twice; give each column one specification")
    return tuple((name, _spec(name, spec).canonical) for name, spec in items)


def _spec(name: str, given: Any) -> NoiseSpec:
    if isinstance(given, NoiseSpec):
        return given
    if isinstance(given, Mapping):
        return NoiseSpec.from_document(given)
    if not isinstance(given, str):
        raise OptionError(f"the specification of column {name!r} is none; read one with NoiseSpec.read")
    return NoiseSpec.from_json(given) if given.lstrip().startswith("{") else NoiseSpec.from_toml(given)
