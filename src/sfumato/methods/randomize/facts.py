"""Facts about cells that were randomized one by one, by noise distributions that they state [JS07; EGS03].

EGS03: A. Evfimievski, J. Gehrke, R. Srikant: Limiting Privacy Breaches in Privacy Preserving Data Mining. PODS 2003.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from sfumato.core.distributions.amplification import combine, downward_bound, upward_bound
from sfumato.core.distributions.spec import NoiseSpec
from sfumato.core.errors import BadInput, PrivacyRefusal
from sfumato.core.facts import (
    SECRET_RANDOMNESS,
    Claim,
    Context,
    Fact,
    PassedThrough,
    Refused,
    Statements,
    at_least,
    at_most,
    counted,
    quoted,
)

__all__ = [
    "DomainsObserved",
    "Randomized",
    "specs_of",
]

_PRIORS = (0.01, 0.1)
_TOLERANCE = 1e-9
_CLOSE = 1e-6  # of an epsilon on a grid
_TABLE_ALONE = "The bound covers the table alone; a report is measured on true values and reveals more."


@dataclass(frozen=True)
class Randomized(Fact):
    """Every cell of this column was randomized by itself, by the law of a noise specification.

    ``spec`` is the specification as JSON text: all that an analyst needs to recover the column's distribution.
    ``digest`` is its SHA-256, ``gamma`` the amplification and ``epsilon`` its logarithm; None where infinite.
    """

    methods = ("randomize",)
    repeatable = True

    column: str
    spec: str
    digest: str
    gamma: float | None
    epsilon: float | None

    def claims(self, context: Context) -> Statements:
        """State the local differential privacy of the column, and after the last column that of a whole row."""
        yield _of_column(self, context)
        if self is context.all(Randomized)[-1]:
            yield from _of_rows(context)

    def agrees(self, context: Context) -> bool:
        return [other.column for other in context.all(Randomized)].count(self.column) == 1

    def summary(self, context: Context, file_format: str) -> tuple[int, str] | None:
        columns = context.all(Randomized)
        if self is not columns[-1]:
            return None
        bounded = [each.epsilon for each in columns if each.epsilon is not None]
        total = f"local epsilon {sum(bounded):.3g} per row" if len(bounded) == len(columns) else "no bound"
        return 3, f"{len(columns)} columns randomized: {total}. The certificate has their noise distributions."

    def fits(self, context: Context) -> bool:
        specs, most = dict(context.mechanism.specs), context.mechanism.epsilon
        if not set(specs) <= {other.column for other in context.all(Randomized)}:
            return False
        if self.column in specs:
            return bool(specs[self.column] == self.spec)
        return most is not None and self.epsilon is not None and self.epsilon <= most * (1 + _CLOSE)


@dataclass(frozen=True)
class DomainsObserved(Fact):
    """The domains that these columns were randomized over were read off the data, and are published."""

    methods = ("randomize",)

    columns: tuple[str, ...]

    def claims(self, context: Context) -> Statements:
        """Refuse the bounds for persons at the edge of a domain that was read from the data."""
        yield Refused(
            "The bounds of the randomized columns hold for everyone.",
            f"The domains of {counted(len(self.columns), 'column', 'columns')} ({quoted(self.columns)}) were read from "
            "the data and are published. They reveal extremes, and values that one person alone has.",
        )

    def agrees(self, context: Context) -> bool:
        randomized = {other.column for other in context.all(Randomized)}
        return not randomized or set(self.columns) <= randomized

    def fits(self, context: Context) -> bool:
        return bool(context.parameters["allow_observed"]) and context.has(Randomized)

    @property
    def shows_categories(self) -> bool:
        return True


def spec_of(fact: Randomized) -> NoiseSpec:
    """Read the noise specification of a fact.

    Raises
    ------
    PrivacyRefusal
        If digest, amplification or epsilon are not those of the specification.
    """
    try:
        spec = NoiseSpec.from_json(fact.spec)
    except BadInput:
        raise PrivacyRefusal(
            f"the noise specification of column {fact.column!r} cannot be read, so nothing can be certified"
        ) from None
    stated_correctly = _is_stated(fact.gamma, spec.gamma) and _is_stated(fact.epsilon, spec.epsilon)
    if spec.digest != fact.digest or not stated_correctly:
        raise PrivacyRefusal(
            f"the facts of column {fact.column!r} do not fit its noise specification, so nothing can be certified"
        )
    return spec


def _beliefs(gamma: float) -> str:
    """State how far the probability of a statement can change, for two priors."""
    low, high = _PRIORS
    return (
        f"A statement with prior probability {100 * low:g} % has at most {_percent(upward_bound(gamma, low))} % after "
        f"release. One with {100 * high:g} % has at most {_percent(upward_bound(gamma, high))} % and at least "
        f"{at_least(100 * downward_bound(gamma, high), 2)} %."
    )


def _percent(probability: float) -> str:
    """A probability in percent with one decimal, rounded up."""
    short = f"{100 * probability:.1f}"
    return short if float(short) >= 100 * probability else f"{math.ceil(1000 * probability) / 10:.1f}"


def _why_infinite(spec: NoiseSpec) -> str:
    if spec.unbounded_reason is not None:
        return f"The amplification is infinite: {spec.unbounded_reason}."
    return f"The odds can change by a factor of e^{spec.epsilon:.0f}, more than any useful factor."


def _observed(context: Context) -> set[str]:
    return {column for fact in context if isinstance(fact, DomainsObserved) for column in fact.columns}


def _is_stated(stated: float | None, true: float) -> bool:
    number = math.inf if stated is None else float(stated)
    return number == true or math.isclose(number, true, rel_tol=_TOLERANCE)


def _of_column(fact: Randomized, context: Context) -> Claim | Refused:
    spec = spec_of(fact)
    if math.isinf(spec.gamma):
        return Refused(
            f"What a released value of {fact.column!r} reveals about the true value is bounded.", _why_infinite(spec)
        )
    return Claim(
        f"Each value of {fact.column!r} has local differential privacy (epsilon {at_most(spec.epsilon)}): the odds of "
        f"any statement about it change by at most a factor of {at_most(spec.gamma)}.",
        f"{_beliefs(spec.gamma)} No property of one value changes its odds by more than the amplification "
        "[Evfimievski, Gehrke, Srikant 2003]. The amplification follows from the noise distribution and the domain, "
        f"whose digest is {fact.digest[:16]}. The person's other columns may reveal more about this one; see the bound "
        f"for the whole row. {_TABLE_ALONE}",
        f"the domain does not depend on the data, and {SECRET_RANDOMNESS}",
        kind="assumed" if fact.column in _observed(context) else "proved",
    )


def _of_rows(context: Context) -> Statements:
    """State what all values of a row reveal together: amplifications multiply, epsilons add up."""
    specs = specs_of(context)
    if not specs:
        return
    unbounded = sorted(name for name, spec in specs.items() if math.isinf(spec.gamma))
    gamma = combine(spec.gamma for spec in specs.values())
    epsilon = math.fsum(spec.epsilon for spec in specs.values())
    columns = counted(len(specs), "column", "columns")
    yield Refused(
        "The table may be released again with new randomness.",
        "The epsilons of a person's two answers to one question add up, and the average of many answers approaches the "
        "truth.",
    )
    if unbounded or math.isinf(gamma):
        why = f"The epsilons of {columns} add up to {epsilon:.4g}, which allows more than any useful factor."
        if unbounded:
            have = "has" if len(unbounded) == 1 else "have"
            why = f"{len(unbounded)} of {columns} {have} no bound, the first is {unbounded[0]!r}."
        if len(specs) == 1:
            why = "Its one column has no bound."
        yield Refused("What a whole released row reveals about its person is bounded.", why)
        return
    missing = any(isinstance(fact, PassedThrough) and fact.missing_columns for fact in context)
    yield Claim(
        f"{'Apart from missing cells, a' if missing else 'A'} row of {columns} has local differential privacy (epsilon "
        f"{at_most(epsilon)}): the odds of any statement about it change by at most a factor of {at_most(gamma)}.",
        f"{_beliefs(gamma)} Cells were randomized independently, so the factors of a row's columns multiply and their "
        f"epsilons add up. {'The positions of missing cells are published. ' if missing else ''}Columns passed through "
        f"as public are not covered. {_TABLE_ALONE}",
        "one row is one person, who is in one release only, the domains do not depend on the data, and "
        f"{SECRET_RANDOMNESS}",
        kind="assumed" if _observed(context) else "proved",
    )


def specs_of(context: Iterable[Fact]) -> dict[str, NoiseSpec]:
    """Read the specification of every randomized column, which a recipient needs for reconstruction."""
    return {fact.column: spec_of(fact) for fact in context if isinstance(fact, Randomized)}
