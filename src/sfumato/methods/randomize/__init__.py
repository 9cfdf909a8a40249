"""Randomized answers: cells as their persons would have sent them, and the person's own side [JS07, sec. 3]."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from sfumato.core.arguments import option
from sfumato.core.distributions.spec import NoiseSpec
from sfumato.core.errors import OptionError, PrivacyRefusal
from sfumato.core.facts import Fact, PassedThrough, Shuffled
from sfumato.core.randomness import Randomness
from sfumato.core.records import Layout, Records
from sfumato.methods.protocol import (
    MethodResult,
    OwnerDetails,
    Traits,
    check_parameters,
    pairs_by_column,
    refuse_levels,
    refuse_strata,
)
from sfumato.methods.randomize.columns import RandomizedColumn, fit_column, places_of_layout, spec_for_epsilon
from sfumato.methods.randomize.facts import DomainsObserved, Randomized

__all__ = ["Randomization", "answer", "check_spec"]

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

    specs: tuple[tuple[str, str], ...] | Mapping[str, Any] = option(
        (), "randomize: noise specification of a column, as in age=age.toml; repeatable.", spelled="spec"
    )
    epsilon: float | None = option(
        None, "private: privacy budget. randomize: local epsilon of each column without --spec."
    )
    pass_missing: bool = option(False, "randomize: release which values are missing.")
    allow_observed: bool = option(False, "randomize: use domains observed in the data.")

    def __post_init__(self) -> None:
        check_parameters(self)
        pairs = pairs_by_column(self.specs, "specs", "its noise specification")
        object.__setattr__(self, "specs", tuple((name, _spec(name, given).canonical) for name, given in pairs))
        if not self.specs and self.epsilon is None:
            raise OptionError("randomization needs to know how much; give specs, or an epsilon for each column")
        epsilon = self.epsilon
        if epsilon is not None and not 0.0 < epsilon <= _LARGEST:
            raise OptionError(f"epsilon must be a number above 0 and at most {_LARGEST:g}; try 1")
        object.__setattr__(self, "epsilon", None if epsilon is None else float(epsilon))

    def sanitize(self, records: Records, *, rng: np.random.Generator) -> MethodResult:
        """Randomize every cell and shuffle the rows."""
        refuse_levels(records, "randomization")
        refuse_strata(records, "randomization")
        columns, observed = self._columns(records.layout)
        values = records.values.copy()
        found = [column.randomize(values, rng) for column in columns]
        order = rng.permutation(len(records)).astype(np.int64)
        grids = tuple(column.grid for column in columns if column.grid is not None)
        moved = frozenset(column.name for column in columns if column.moves)
        answers = tuple(each.take(order) for each in found if each is not None)
        released = records.made(values[order], moved=moved, grids=grids, answers=answers)
        facts = (*_facts(columns, observed), Shuffled(len(records)))
        return MethodResult(
            released, facts, OwnerDetails(origin=order, answers={each.column: each.codes for each in answers})
        )

    def _columns(self, layout: Layout) -> tuple[list[RandomizedColumn], tuple[str, ...]]:
        """Specification of each column, and those whose domain was read off the data."""
        given = {name: NoiseSpec.from_json(text) for name, text in dict(self.specs).items()}
        columns: list[RandomizedColumn] = []
        observed = []
        for places in places_of_layout(layout):
            name = places.block.column
            spec = given.pop(name, None)
            if spec is None:
                if self.epsilon is None:
                    raise OptionError(
                        f"column {name!r} has no specification; give it one with --spec, or an epsilon for such columns"
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

    def _refuse_missing(self, column: RandomizedColumn) -> None:
        if column.passes_missing and not self.pass_missing:
            raise PrivacyRefusal(
                f"column {column.name!r} has missing cells, and its specification does not say what becomes of them; "
                "fill them, drop the column, or publish which are missing (--pass-missing)"
            )


def _facts(columns: list[RandomizedColumn], observed: tuple[str, ...]) -> list[Fact]:
    facts: list[Fact] = []
    for column in columns:
        spec = column.spec
        gamma, epsilon = (number if math.isfinite(number) else None for number in (spec.gamma, spec.epsilon))
        facts.append(Randomized(column.name, spec.canonical, spec.digest, gamma, epsilon))
    if observed:
        facts.append(DomainsObserved(observed))
    passed = sum(column.passes_missing for column in columns)
    if passed:
        facts.append(PassedThrough(0, passed))
    return facts


def _spec(name: str, given: Any) -> NoiseSpec:
    if isinstance(given, NoiseSpec):
        return given
    if isinstance(given, Mapping):
        return NoiseSpec.from_document(given)
    if not isinstance(given, str):
        raise OptionError(f"the specification of column {name!r} is none; read one with NoiseSpec.read")
    return NoiseSpec.from_json(given) if given.lstrip().startswith("{") else NoiseSpec.from_toml(given)


_EXPECTED = 64  # hexadecimal digits of a SHA-256


def answer(
    value: str | float,
    spec: NoiseSpec,
    *,
    digest: str | None = None,
    max_gamma: float | None = None,
    rho1: float | None = None,
    max_rho2: float | None = None,
    rng: np.random.Generator | None = None,
) -> str | int | float:
    """What is sent in place of a value; nothing of the value leaves before the specification has been checked.

    Send one answer once. Whoever needs to send again sends the *same* answer: fresh ones average to the truth.

    Parameters
    ----------
    value : str or number
        The truth.
    spec : NoiseSpec
    digest, max_gamma, rho1, max_rho2
        What `check_spec` checks first.
    rng : numpy.random.Generator, optional
        By default from the operating system's entropy.

    Raises
    ------
    PrivacyRefusal
        If the specification promises less than was wanted.
    SchemaError
        If the value is none of the domain; the message does not hold it.

    Examples
    --------
    >>> from sfumato.core.distributions.domains import Labels
    >>> from sfumato.core.distributions.spec import NoiseSpec
    >>> spec = NoiseSpec(Labels(("no", "yes")), {"name": "response", "epsilon": 1.0})
    >>> answer("yes", spec, max_gamma=3.0) in ("no", "yes")
    True
    >>> answer("yes", spec, rho1=0.01, max_rho2=0.02)
    Traceback (most recent call last):
        ...
    sfumato.core.errors.PrivacyRefusal: after an answer, what was 1 % likely may be 2.7 % likely; do not answer it
    """
    check_spec(spec, digest=digest, max_gamma=max_gamma, rho1=rho1, max_rho2=max_rho2)
    rng = Randomness().generator("answer") if rng is None else rng
    sent: str | int | float = spec.shown(spec.operator.randomize(spec.domain.encode([value]), rng))[0]
    return sent


def check_spec(
    spec: NoiseSpec,
    *,
    digest: str | None = None,
    max_gamma: float | None = None,
    rho1: float | None = None,
    max_rho2: float | None = None,
) -> None:
    """Refuse a specification that is not the one that was read, or promises less than is wanted.

    Parameters
    ----------
    spec : NoiseSpec
    digest : str, optional
        Of the specification that was read and trusted.
    max_gamma : float, optional
        Most that an answer may change the odds of anything about the truth.
    rho1, max_rho2 : float, optional
        Most that something about the truth, of probability rho1 before, may be believed after the answer.

    Raises
    ------
    PrivacyRefusal
        If that does not hold.
    """
    if digest is not None and _hex(digest) != spec.digest:
        raise PrivacyRefusal("the specification is not the one that was expected, its digest differs; do not answer it")
    if max_gamma is not None:
        if isinstance(max_gamma, bool) or not max_gamma >= 1.0:
            raise OptionError("the most that odds may change is a factor of 1 or more; try 10")
        if spec.gamma > max_gamma:
            raise PrivacyRefusal(
                f"the specification lets an answer change odds by a factor of {spec.gamma:.3g} and at most "
                f"{max_gamma:.3g} is wanted; do not answer it"
                if math.isfinite(spec.gamma)
                else "the specification gives no guarantee: some answers make facts about the truth certain or nearly "
                "so; do not answer it"
            )
    if (rho1 is None) != (max_rho2 is None):
        raise OptionError("a wanted bound needs both rho1 and max_rho2; give the other one too")
    if rho1 is not None and max_rho2 is not None:
        _check_bound(spec, rho1, max_rho2)


def _check_bound(spec: NoiseSpec, rho1: float, max_rho2: float) -> None:
    if isinstance(max_rho2, bool) or not 0.0 < rho1 <= max_rho2 < 1.0:
        raise OptionError("a wanted bound needs 0 < rho1 <= max_rho2 < 1; choose other probabilities")
    rho2 = spec.bound(rho1)
    if rho2 > max_rho2:
        raise PrivacyRefusal(
            f"after an answer, what was {100 * rho1:g} % likely may be {100 * rho2:.1f} % likely; do not answer it"
        )


def _hex(digest: str) -> str:
    text = str(digest).strip().lower()
    if len(text) != _EXPECTED or set(text) - set("0123456789abcdef"):
        raise OptionError(f"a digest has {_EXPECTED} hexadecimal digits; copy all of it")
    return text
