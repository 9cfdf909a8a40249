"""What follows from cells that were randomized one by one, by laws that the facts hold [JS07; EGS03].

EGS03: A. Evfimievski, J. Gehrke, R. Srikant: Limiting Privacy Breaches in Privacy Preserving Data Mining. PODS 2003.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

from sfumato.core.documents import Unparsable, parse_json, read_text
from sfumato.core.errors import BadInput, OptionError, PrivacyRefusal
from sfumato.core.facts import DomainsObserved, Fact, Randomized, Untouched
from sfumato.core.laws.amplification import combine, downward_bound, upward_bound
from sfumato.core.laws.spec import NoiseSpec
from sfumato.privacy.statements import (
    SECRET_RANDOMNESS,
    Claim,
    ClaimsOf,
    Refused,
    Statements,
    at_least,
    at_most,
    counted,
    quoted,
)

__all__ = ["CLAIMS", "of_rows", "read_spec", "specs_of"]

_PRIORS = (0.01, 0.1)
_TOLERANCE = 1e-9
_TABLE_ALONE = "the table alone is seen: what a report tells was measured on the true values and comes on top"
_EGS = "No property of one value changes its odds by more than the amplification [Evfimievski, Gehrke, Srikant 2003]"


def spec_of(fact: Randomized) -> NoiseSpec:
    """Read the specification that a fact holds.

    Raises
    ------
    PrivacyRefusal
        Where digest, amplification or epsilon are not those of the specification.
    """
    try:
        spec = NoiseSpec.from_json(fact.spec)
    except BadInput:
        raise PrivacyRefusal(
            f"the noise specification of column {fact.column!r} cannot be read, so nothing can be certified"
        ) from None
    told = _is_told(fact.gamma, spec.gamma) and _is_told(fact.epsilon, spec.epsilon)
    if spec.digest != fact.digest or not told:
        raise PrivacyRefusal(
            f"the facts of column {fact.column!r} do not fit its noise specification, so nothing can be certified"
        )
    return spec


def specs_of(facts: Iterable[Fact]) -> dict[str, NoiseSpec]:
    """Specification of every column that was randomized: what a recipient reconstructs with."""
    return {fact.column: spec_of(fact) for fact in facts if isinstance(fact, Randomized)}


def read_spec(path: str | Path, column: str) -> NoiseSpec:
    """Read the specification of a column from a file of its own, or from the certificate of a release.

    Raises
    ------
    OptionError
        Where the file is neither, or the certificate speaks of no such column.
    """
    facts = _certified_facts(Path(path))
    if facts is None:
        return NoiseSpec.read(path)
    specs = specs_of(facts)
    if column not in specs:
        names = ", ".join(map(repr, specs)) or "none"
        raise OptionError(f"the certificate has no specification of column {column!r}; it has {names}")
    return specs[column]


def of_randomized(fact: Randomized, facts: tuple[Fact, ...]) -> Statements:
    """Say what an answer of one column can tell, or that nothing bounds it."""
    spec = spec_of(fact)
    if math.isinf(spec.gamma):
        yield Refused(
            f"There is a bound on what a released value of {fact.column!r} tells about the true one.",
            f"no guarantee: {_why_infinite(spec)}",
        )
        return
    yield Claim(
        f"Each value of {fact.column!r} was randomized by itself: whatever is released, the odds of anything about the "
        f"true value change by at most a factor of {at_most(spec.gamma)} (local differential privacy with epsilon "
        f"{at_most(spec.epsilon)}); what was {_words(spec.gamma)}.",
        "assumed" if fact.column in _observed(facts) else "proved",
        f"{_EGS}; it follows from the law and the domain, whose digest is {fact.digest[:16]}.",
        f"the domain does not depend on the data; {SECRET_RANDOMNESS}; what the "
        f"person's other columns tell of this one comes on top, see the whole row; {_TABLE_ALONE}",
    )


def of_rows(facts: tuple[Fact, ...]) -> Statements:
    """Say what all answers of a person tell together: amplifications multiply, epsilons add up."""
    specs = specs_of(facts)
    if not specs:
        return
    unbounded = sorted(name for name, spec in specs.items() if math.isinf(spec.gamma))
    gamma = combine(spec.gamma for spec in specs.values())
    epsilon = math.fsum(spec.epsilon for spec in specs.values())
    yield Refused(
        "The table may be made again with fresh randomness.",
        "two answers of a person to one question tell more than one: their epsilons add up, and many average to "
        "the truth",
    )
    if unbounded or math.isinf(gamma):
        columns = counted(len(specs), "column", "columns")
        why = f"the factors of {columns} multiply beyond all numbers (epsilon {epsilon:.4g})"
        if unbounded:
            why = f"{len(unbounded)} of {columns} have no bound, the first is {unbounded[0]!r}"
        if len(specs) == 1:
            why = "its one column has none"
        yield Refused("There is a bound on what a whole released row tells about its person.", why)
        return
    missing = any(isinstance(fact, Untouched) and fact.missing_columns for fact in facts)
    beside = " Which cells are missing is told on top of it." if missing else ""
    yield Claim(
        f"For a whole row of {counted(len(specs), 'column', 'columns')}, the odds of anything about the person's "
        f"values change by at most a factor of {at_most(gamma)} (local differential privacy with epsilon "
        f"{at_most(epsilon)}); what was {_words(gamma)}.{beside}",
        "assumed" if _observed(facts) else "proved",
        "Cells were randomized independently: the factors of a row's columns multiply and their epsilons add up.",
        f"{SECRET_RANDOMNESS}; one row is one person, who is in one release only; the domains do not depend on the "
        f"data; columns that are passed through as public do not count; {_TABLE_ALONE}",
    )


def of_observed(fact: DomainsObserved, _: tuple[Fact, ...]) -> Statements:
    """Refuse the guarantee for who stands at the edge of a domain that was read off the data."""
    yield Refused(
        "The guarantees of the randomized columns hold for everybody.",
        f"the domains of {counted(len(fact.columns), 'column', 'columns')} ({quoted(fact.columns)}) were read off the "
        "data and are published: they tell the extremes, and who alone has a value that nobody else has",
    )


def _certified_facts(path: Path) -> tuple[Fact, ...] | None:
    """Facts of the certificate that a file holds; None where it is something else."""
    if path.suffix.lower() != ".json":
        return None
    try:
        text = read_text(path, "certificate", "name a certificate.json")
        document = parse_json(text)
    except (OptionError, Unparsable):
        return None
    if not isinstance(document, dict) or not isinstance(document.get("facts"), list):
        return None
    from sfumato.privacy.certificate import Certificate  # which draws its claims here

    return Certificate.from_json(text).facts


def _words(gamma: float) -> str:
    """Say in words how far beliefs can move."""
    low, high = _PRIORS
    return (
        f"{100 * low:g} % likely is at most {_percent(upward_bound(gamma, low))} % likely after, what was "
        f"{100 * high:g} % likely at most {_percent(upward_bound(gamma, high))} % and at least "
        f"{at_least(100 * downward_bound(gamma, high), 2)} %"
    )


def _percent(probability: float) -> str:
    """A probability in percent with one decimal, rounded up."""
    short = f"{100 * probability:.1f}"
    return short if float(short) >= 100 * probability else f"{math.ceil(1000 * probability) / 10:.1f}"


def _why_infinite(spec: NoiseSpec) -> str:
    if spec.weakness is not None:
        return f"{spec.weakness} (the amplification is infinite)"
    return f"odds can change by a factor of e^{spec.epsilon:.0f}, beyond all numbers"


def _observed(facts: tuple[Fact, ...]) -> set[str]:
    return {column for fact in facts if isinstance(fact, DomainsObserved) for column in fact.columns}


def _is_told(told: float | None, true: float) -> bool:
    number = math.inf if told is None else float(told)
    return number == true or math.isclose(number, true, rel_tol=_TOLERANCE)


CLAIMS: ClaimsOf = {DomainsObserved: of_observed, Randomized: of_randomized}
