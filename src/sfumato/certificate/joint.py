"""Claims about a table that several data owners made together, against each other [BCG10, sec. 4].

The claims about noise, against readers, are drawn in `perturbed`.
"""

from __future__ import annotations

from collections.abc import Sequence

from sfumato.certificate.statements import (
    SECRET_RANDOMNESS,
    Claim,
    ClaimsOf,
    Refused,
    Statements,
    at_least,
    counted,
    joined,
)
from sfumato.core.errors import PrivacyRefusal
from sfumato.core.facts import ComponentNoise, CountsKept, Fact, Joint, Opened

__all__ = ["CLAIMS"]

_SEMI_HONEST = "all parties are semi-honest"
_ENGINES = {
    "cheetah": "CHEETAH is secure computation by two parties, and a single share is uniformly random.",
    "aby3": "ABY3 is secure computation by three parties, and what one of them has is uniformly random.",
}
_PLAIN = "plain"
_PARTITIONS = {"horizontal": "some of the rows", "vertical": "some of the columns of all rows"}


def of_joint(fact: Joint, facts: tuple[Fact, ...]) -> Statements:
    """State what the data owners of a joint run hid from each other, what that rests on, and what they did not hide.

    Raises
    ------
    PrivacyRefusal
        If the facts of the run contradict each other or the ledger is missing.
    """
    ledger = [line for line in facts if isinstance(line, Opened)]
    _check(fact, ledger)
    if fact.engine == _PLAIN:
        yield Refused(
            "The data owners hid their cells from each other.",
            "All of them ran in one process that had every table in the clear. This trial of the protocol protects "
            "against readers alone.",
        )
    else:
        yield from _of_secure_run(fact, ledger)
    yield from _of_any_owners(fact)
    marked = any(isinstance(other, CountsKept) for other in facts)
    if fact.bare if fact.partition == "vertical" else marked:
        yield _of_marks(fact)
    if fact.partition == "vertical":
        noise = next((other for other in facts if isinstance(other, ComponentNoise)), None)
        yield from _of_two_noises(fact, noise) if fact.engine != _PLAIN else []
        yield from _of_columns(fact, noise)
    else:
        yield from _of_rows(fact)


def _check(fact: Joint, ledger: Sequence[Opened]) -> None:
    known = set(fact.parties)
    if len(known) < 2 or len(known) < len(fact.parties) or not set(fact.computing) <= known:
        raise PrivacyRefusal(f"a joint run of {len(known)} parties does not fit its own facts; nothing is certified")
    vertical = fact.partition == "vertical"
    choices = (fact.centres == "") == vertical == (fact.noise != "")
    if fact.partition not in _PARTITIONS or fact.engine not in (*_ENGINES, _PLAIN) or not choices:
        raise PrivacyRefusal("the joint protocol is not known to this version, so nothing can be certified")
    if not ledger or any(not line.to or not set(line.to) <= known for line in ledger):
        raise PrivacyRefusal(
            f"the ledger of the joint run has {len(ledger)} lines and does not state who saw what; nothing is certified"
        )


def _of_secure_run(fact: Joint, ledger: Sequence[Opened]) -> Statements:
    count, lines = len(fact.parties), counted(len(ledger), "ledger line", "ledger lines")
    yield Claim(
        f"{count} data owners made the table together; apart from {lines}, no one saw anything of another's "
        "cells in the clear.",
        "proved",
        f"Owners: {_named(fact.parties)}, each with {_PARTITIONS[fact.partition]}. The ledger is among the facts; all "
        "else went as shares or under masks. Every party recorded every step, and the records agree. An opening that "
        "the protocol does not declare stops the run, and the finished list was compared once more [BCG10, alg. 2]. "
        "Semi-honest parties follow the protocol and use only what it sends them.",
        _SEMI_HONEST,
    )
    yield Claim(
        "A share reveals nothing about the number that it belongs to.",
        "assumed",
        f"{_ENGINES[fact.engine]} The engine is a library that was not audited for sfumato.",
        f"{_trust(fact)}, {_SEMI_HONEST}, and the engine does what its authors state",
    )
    sums = sorted({line.label for line in ledger if line.action == "sum"})
    if sums and count > 2:
        yield Claim(
            "Sums over all data owners show no owner's part to another, except in a group in which only one other "
            "owner has rows.",
            "proved",
            f"Sums: {', '.join(sums)}. Every two owners add and subtract a common mask modulo 2^64, and a sum cancels "
            "all masks. In a group in which only one other owner has rows, the rest of the sum is that owner's part.",
            f"no {count - 1} owners collude, masks that SHAKE-256 grows from a secret look random, and {_SEMI_HONEST}",
        )


def _trust(fact: Joint) -> str:
    if len(fact.computing) == 2:
        return f"{_named(fact.computing)} do not collude"
    return f"no two of {_named(fact.computing)} collude"


def _of_any_owners(fact: Joint) -> Statements:
    yield Refused(
        "The bounds are relative to what an owner knew before the run.",
        "They are relative to the statistics of the groups. Every owner saw the exact means, covariances and ranges of "
        "all groups; a reader sees only the rows of a group.",
    )
    yield Refused(
        "The run is safe from an owner who does not follow the protocol.",
        "No one checks that a party sends the numbers that it should. A party that sends others spoils the table, and "
        "may learn more than the ledger states.",
    )
    if len(fact.parties) == 2:
        yield _of_two_owners(fact)


def _of_marks(fact: Joint) -> Refused:
    """Refuse that exact covariances hide a record with a category or missing cell that no other record has."""
    exact = (
        "The covariances of a group are exact, and a value that one record alone has shows that record's cells in "
        "every "
        "column."
    )
    if fact.partition == "vertical":
        return Refused(
            "A record that alone has a category, or a missing cell, in its group stays hidden from the other owners.",
            f"{exact} In {counted(fact.bare, 'case', 'cases')}, all owners saw its cells in all columns without noise, "
            "and each finds the record by its own columns; pool rare categories and use larger groups.",
        )
    return Refused(
        "A record that alone among all other owners' rows of a group has a category, or a missing cell, stays hidden "
        "from an owner.",
        f"{exact} An owner that subtracts its own rows has the record without noise; pool rare categories and use "
        "larger groups.",
    )


def _of_two_owners(fact: Joint) -> Refused:
    first, last = fact.parties
    if fact.partition == "horizontal":
        return Refused(
            "The secure sums hide the two owners from each other.",
            f"By subtracting their own part from a sum, {first!r} and {last!r} each obtain the other's exactly (errata "
            "BCG10.6). For every group this is its number of rows, their mean and their covariance.",
        )
    return Refused(
        "The opened sum hides the two owners from each other.",
        f"By subtracting their own columns from it, {first!r} and {last!r} each obtain the other's part of every "
        "component of every row (errata BCG10.6). Only the noise that the other drew remains on it.",
    )


def _of_two_noises(fact: Joint, noise: ComponentNoise | None) -> Statements:
    if fact.noise != "each" or noise is None:
        return
    names = _named(fact.computing[:1] + fact.computing[-1:])
    yield Claim(
        f"Against {names} too, the odds of any statement about a whole record change by at most a factor of "
        f"e^({noise.components}/{at_least(noise.scale, 6)}).",
        "proved",
        "Each of the two added a full noise, so the other's remains when it subtracts its own. The noise has twice the "
        "variance of one. Theorem 1 [BCG10] holds for all components at once, and additional independent noise does "
        "not weaken it. The prior odds include the statistics of the record's group and the columns that the owner "
        "itself has.",
        f"{names} do not collude, and {SECRET_RANDOMNESS}",
    )


def _of_columns(fact: Joint, noise: ComponentNoise | None) -> Statements:
    yield Refused(
        "The owners cannot tell whose row is whose.",
        "Rows are matched by a key and shuffled by randomness that all owners have. Each owner knows which released "
        "row belongs to which of its keys, and saw the cluster of every row in each of "
        f"{counted(fact.rounds, 'round', 'rounds')}.",
    )
    yield Refused(
        "The columns of a group stay hidden from an owner who knows most of its records.",
        "For each group, every owner saw the mean of each other column and its products with the owner's own columns: "
        "linear equations for that column's cells. If cells can have few values, far fewer equations than records "
        "leave one solution.",
    )
    yield Refused(
        "No one learns which records another owner has.",
        "The run continues only if all owners have the same keys. Each owner thus knows that all others have its "
        "records too.",
    )
    if noise is not None and noise.components > 1:
        yield Refused(
            "The bound for one component holds against another owner.",
            f"After subtracting its own columns, an owner has {noise.components} components that depend on the others' "
            "columns alone. Components then reveal each other, and only the bound for a whole record covers that.",
        )
    if fact.noise == "split":
        yield _of_halves(fact)


def _of_halves(fact: Joint) -> Refused:
    first, last = fact.computing[0], fact.computing[-1]
    return Refused(
        f"The bounds hold against {first!r} and {last!r}.",
        f"The noise is R1 - R2, a difference of two halves that are never negative. {first!r} drew R1 and obtains D - "
        f"R2, which a component D never falls below; {last!r} obtains D + R1. Likelihood ratios of one-sided noise "
        'have no bound, so theorem 1 does not apply; have each draw a full noise (noise = "each").',
    )


def _of_rows(fact: Joint) -> Statements:
    yield Refused(
        "The owners cannot tell whose rows are whose.",
        "Each owner sent its noisy rows to all. Every owner knows which released rows are another's, and of which "
        "group.",
    )
    yield _of_bare_rows(fact)
    if fact.centres == "each":
        yield Refused(
            "The rounds of clustering reveal nothing about single rows to an owner.",
            f"Centres and sizes were opened in each of {counted(fact.rounds, 'round', 'rounds')}. A centre moves by "
            "the rows that change cluster, and differences of its sums reveal them; keep centres hidden (centres = "
            '"last").',
        )


def _of_bare_rows(fact: Joint) -> Refused:
    """Refuse that the exact sums of a group hide the last rows of the others, and state whether it happened."""
    if fact.bare:
        return Refused(
            "Every row stays hidden from the other owners.",
            f"In {counted(fact.bare, 'case', 'cases')}, an owner had all rows of a group but one or two, or all "
            "non-missing cells of a column there but one or two, and this was allowed. By subtracting its own from the "
            "exact sums it has the others' without noise.",
        )
    return Refused(
        "A row stays hidden from owners who have the rest of its group together.",
        "The sums of a group are exact. It was checked that no single owner had all rows of a group but one or two, "
        "but owners who pool their rows can subtract them all.",
    )


def _named(names: Sequence[str]) -> str:
    return joined([repr(name) for name in names])


CLAIMS: ClaimsOf = {Joint: of_joint}
