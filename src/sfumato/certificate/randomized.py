"""Claims about cells that were randomized one by one, by noise distributions among the facts [JS07; EGS03].

EGS03: A. Evfimievski, J. Gehrke, R. Srikant: Limiting Privacy Breaches in Privacy Preserving Data Mining. PODS 2003.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

from sfumato.certificate.statements import (
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
from sfumato.core.distributions.amplification import combine, downward_bound, upward_bound
from sfumato.core.distributions.spec import NoiseSpec
from sfumato.core.documents import Unparsable, parse_json, read_text
from sfumato.core.errors import BadInput, OptionError, PrivacyRefusal
from sfumato.core.facts import DomainsObserved, Fact, Randomized, Untouched

__all__ = ["CLAIMS", "of_rows", "read_spec", "specs_of"]

_PRIORS = (0.01, 0.1)
_TOLERANCE = 1e-9
_TABLE_ALONE = "The bound covers the table alone; a report is measured on true values and reveals more."


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
    told = _is_told(fact.gamma, spec.gamma) and _is_told(fact.epsilon, spec.epsilon)
    if spec.digest != fact.digest or not told:
        raise PrivacyRefusal(
            f"the facts of column {fact.column!r} do not fit its noise specification, so nothing can be certified"
        )
    return spec


def specs_of(facts: Iterable[Fact]) -> dict[str, NoiseSpec]:
    """Read the specification of every randomized column, which a recipient needs for reconstruction."""
    return {fact.column: spec_of(fact) for fact in facts if isinstance(fact, Randomized)}


def read_spec(path: str | Path, column: str) -> NoiseSpec:
    """Read the specification of a column from its own file or from a certificate.

    Raises
    ------
    OptionError
        If the file is neither, or the certificate has no such column.
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
    """State the local differential privacy of one column, or refuse it."""
    spec = spec_of(fact)
    if math.isinf(spec.gamma):
        yield Refused(
            f"What a released value of {fact.column!r} reveals about the true value is bounded.", _why_infinite(spec)
        )
        return
    yield Claim(
        f"Each value of {fact.column!r} has local differential privacy (epsilon {at_most(spec.epsilon)}): the odds of "
        f"any statement about it change by at most a factor of {at_most(spec.gamma)}.",
        "assumed" if fact.column in _observed(facts) else "proved",
        f"{_beliefs(spec.gamma)} No property of one value changes its odds by more than the amplification "
        "[Evfimievski, Gehrke, Srikant 2003]. The amplification follows from the noise distribution and the domain, "
        f"whose digest is {fact.digest[:16]}. The person's other columns may reveal more about this one; see the bound "
        f"for the whole row. {_TABLE_ALONE}",
        f"the domain does not depend on the data, and {SECRET_RANDOMNESS}",
    )


def of_rows(facts: tuple[Fact, ...]) -> Statements:
    """State what all values of a row reveal together: amplifications multiply, epsilons add up."""
    specs = specs_of(facts)
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
    missing = any(isinstance(fact, Untouched) and fact.missing_columns for fact in facts)
    yield Claim(
        f"{'Apart from missing cells, a' if missing else 'A'} row of {columns} has local differential privacy (epsilon "
        f"{at_most(epsilon)}): the odds of any statement about it change by at most a factor of {at_most(gamma)}.",
        "assumed" if _observed(facts) else "proved",
        f"{_beliefs(gamma)} Cells were randomized independently, so the factors of a row's columns multiply and their "
        f"epsilons add up. {'The positions of missing cells are published. ' if missing else ''}Columns passed through "
        f"as public are not covered. {_TABLE_ALONE}",
        "one row is one person, who is in one release only, the domains do not depend on the data, and "
        f"{SECRET_RANDOMNESS}",
    )


def of_observed(fact: DomainsObserved, _: tuple[Fact, ...]) -> Statements:
    """Refuse the bounds for persons at the edge of a domain that was read from the data."""
    yield Refused(
        "The bounds of the randomized columns hold for everyone.",
        f"The domains of {counted(len(fact.columns), 'column', 'columns')} ({quoted(fact.columns)}) were read from the "
        "data and are published. They reveal extremes, and values that one person alone has.",
    )


def _certified_facts(path: Path) -> tuple[Fact, ...] | None:
    """Read the facts of a certificate; None if the file is something else."""
    if path.suffix.lower() != ".json":
        return None
    try:
        text = read_text(path, "certificate", "name a certificate.json")
        document = parse_json(text)
    except (OptionError, Unparsable):
        return None
    if not isinstance(document, dict) or not isinstance(document.get("facts"), list):
        return None
    from sfumato.certificate.certificate import Certificate  # which draws its claims here

    return Certificate.from_json(text).facts


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
    if spec.weakness is not None:
        return f"The amplification is infinite: {spec.weakness}."
    return f"The odds can change by a factor of e^{spec.epsilon:.0f}, more than any useful factor."


def _observed(facts: tuple[Fact, ...]) -> set[str]:
    return {column for fact in facts if isinstance(fact, DomainsObserved) for column in fact.columns}


def _is_told(told: float | None, true: float) -> bool:
    number = math.inf if told is None else float(told)
    return number == true or math.isclose(number, true, rel_tol=_TOLERANCE)


CLAIMS: ClaimsOf = {DomainsObserved: of_observed, Randomized: of_randomized}
