"""What follows from a table that several owners made together, against readers and against each other [BCG10, sec. 4].

The claims of the noise are drawn elsewhere and speak of readers. Here is what owners learn of each other.
"""

from __future__ import annotations

from collections.abc import Sequence

from sfumato.core.errors import PrivacyRefusal
from sfumato.core.facts import ComponentNoise, CountsKept, Fact, Joint, Opened
from sfumato.privacy.statements import SECRET_RANDOMNESS, Claim, ClaimsOf, Refused, Statements, at_least, counted

__all__ = ["CLAIMS"]

_SEMI_HONEST = "all parties follow the protocol and look at nothing but what it sends them (semi-honest)"
_ENGINES = {
    "cheetah": "CHEETAH, secure computation by two parties: a share by itself is uniformly random",
    "aby3": "ABY3, secure computation by three parties: what one of them holds is uniformly random by itself",
}
_PLAIN = "plain"
_PARTITIONS = {"horizontal": "some of the rows", "vertical": "some of the columns of all rows"}


def of_joint(fact: Joint, facts: tuple[Fact, ...]) -> Statements:
    """Say what the owners of a joint run hid from each other, on what that rests, and what they did not hide.

    Raises
    ------
    PrivacyRefusal
        Where the facts of the run contradict each other or the ledger is lacking.
    """
    ledger = [line for line in facts if isinstance(line, Opened)]
    _check(fact, ledger)
    if fact.engine == _PLAIN:
        yield Refused(
            "The owners kept their cells from each other.",
            "all of them ran in one process that had every table and computed in the clear: a trial of the "
            "protocol, which protects from readers alone",
        )
    else:
        yield from _kept_apart(fact, ledger)
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
        raise PrivacyRefusal("the way of a joint run is not known to this version, so nothing can be certified")
    if not ledger or any(not line.to or not set(line.to) <= known for line in ledger):
        raise PrivacyRefusal(
            f"the ledger of the joint run has {len(ledger)} lines and does not say who saw what; nothing is certified"
        )


def _kept_apart(fact: Joint, ledger: Sequence[Opened]) -> Statements:
    count, lines = len(fact.parties), len(ledger)
    yield Claim(
        f"The table was made by {count} owners together ({_named(fact.parties)}), each with "
        f"{_PARTITIONS[fact.partition]}. Nobody but its owner saw anything of a cell in the clear, save what the "
        f"{counted(lines, 'line', 'lines')} of the ledger among the facts {'says' if lines == 1 else 'say'}; all "
        "else went as shares or under masks.",
        "proved",
        "Every party wrote down every step, all alike; an opening that the protocol does not declare stops the run "
        "before it is made, and the finished list was compared once more [BCG10, alg. 2].",
        _SEMI_HONEST,
    )
    yield Claim(
        "A share says nothing of the number that it is a share of.",
        "assumed",
        f"{_ENGINES[fact.engine]}. The engine is a library that was not audited by us.",
        f"{_trust(fact)}; {_SEMI_HONEST}; the engine does what its authors say",
    )
    sums = sorted({line.label for line in ledger if line.action == "sum"})
    if sums and count > 2:
        yield Claim(
            f"Sums over all owners ({', '.join(sums)}) show the part of no single owner to another, save in a "
            "group where only one other has rows: what is left of the sum is then its part.",
            "proved",
            "Every two owners add and subtract a mask of their own modulo 2^64; a sum takes them all off.",
            f"no {count - 1} owners pool what they know, which takes their parts off the sum; masks that SHAKE-256 "
            f"grows from a secret look random to whoever lacks it; {_SEMI_HONEST}",
        )


def _trust(fact: Joint) -> str:
    if len(fact.computing) == 2:
        return f"{_named(fact.computing)} do not collude"
    return f"no two of {_named(fact.computing)} collude"


def _of_any_owners(fact: Joint) -> Statements:
    yield Refused(
        "The bounds hold against what an owner knew before the run.",
        "they are relative to the statistics of the groups, and every owner saw means, covariances and ranges of "
        "all groups exactly, where a reader only sees how the rows of a group lie",
    )
    yield Refused(
        "The run is safe from an owner that does not follow the protocol.",
        "nobody checks that the numbers which a party sends are those that it should send: one that sends others "
        "spoils the table, and may learn more than the ledger says",
    )
    if len(fact.parties) == 2:
        yield _of_two_owners(fact)


def _of_marks(fact: Joint) -> Refused:
    """Say what exact covariances tell of a coordinate that one record alone has: its products are that record."""
    mark = "A record that alone has a category, or a missing cell, in its group"
    exact = (
        "the covariances of a group are exact, and the products of what one record alone has with every column are the "
        "cells of that record"
    )
    if fact.partition == "vertical":
        return Refused(
            f"{mark} stays hidden from the other owners.",
            f"{exact}: {fact.bare} times all owners saw its cells in the columns of all of them without any noise, and "
            "each finds by its own columns whose they are; pool rare categories and take larger groups",
        )
    return Refused(
        f"{mark} among the rows of all other owners stays hidden from an owner.",
        f"{exact}: an owner that takes its own rows off has the row without any noise; pool rare categories and take "
        "larger groups",
    )


def _of_two_owners(fact: Joint) -> Refused:
    first, last = fact.parties
    if fact.partition == "horizontal":
        return Refused(
            "The secure sums hide the two owners from each other.",
            f"{first!r} and {last!r} each take their own part off a sum and have the other's exactly (errata BCG10.6): "
            "for every group its number of rows, their mean and their covariance",
        )
    return Refused(
        "The sum that was opened hides the two owners from each other.",
        f"{first!r} and {last!r} each take their own columns off it (errata BCG10.6) and have the other's part of "
        "every component of every row alone, with the noise that the other drew",
    )


def _of_two_noises(fact: Joint, noise: ComponentNoise | None) -> Statements:
    if fact.noise != "each" or noise is None:
        return
    names = _named(fact.computing[:1] + fact.computing[-1:])
    yield Claim(
        f"Each of {names} added a whole noise of that law, so that the other's is left when it takes its own off: "
        "against either of them, too, odds about a whole record change by a factor of at most "
        f"e^({noise.components}/{at_least(noise.scale, 6)}). The noise has twice the variance of one.",
        "proved",
        "Theorem 1 [BCG10] for all components at once; more noise that is independent takes nothing from it.",
        f"{names} do not collude; {SECRET_RANDOMNESS}; the odds before the release take in the statistics of the "
        "record's group and the columns that the owner itself has",
    )


def _of_columns(fact: Joint, noise: ComponentNoise | None) -> Statements:
    yield Refused(
        "The owners cannot tell whose row is whose.",
        "rows are matched by a key and shuffled by randomness that all owners have: each knows which released row "
        "belongs to which of its keys, and saw the cluster of every row in each of "
        f"{counted(fact.rounds, 'round', 'rounds')}",
    )
    yield Refused(
        "The columns of a group stay hidden from an owner that knows most of its records.",
        "every owner saw, group by group, the products of its own columns with those of the others: each of its "
        "columns is a linear equation, and so is the mean, for the cells of another's column. Of cells that can "
        "have few values, such as categories, far fewer equations than records leave one solution",
    )
    yield Refused(
        "Nobody learns which records another owner has.",
        "the run goes on only where all owners have the same keys, so that each knows of every record of its own "
        "that all others have it too",
    )
    if noise is not None and noise.components > 1:
        yield Refused(
            "The bound for one component holds against another owner.",
            "an owner knows its own columns, and what is left when it takes them off depends in all "
            f"{noise.components} components on the columns of the others alone: components then speak of each "
            "other, and only the bound for a whole record covers that",
        )
    if fact.noise == "split":
        yield _of_halves(fact)


def _of_halves(fact: Joint) -> Refused:
    first, last = fact.computing[0], fact.computing[-1]
    return Refused(
        f"The bounds hold against {first!r} and {last!r}.",
        f"the noise is the difference R1 - R2 of two halves that are never negative, and {first!r} drew R1: it takes "
        f"R1 off and has D - R2 with R2 >= 0, which proves that a component D is no less; {last!r} has D + R1 in the "
        "same way. What is left is noise to one side, the ratio of likelihoods has no bound, and theorem 1 does not "
        'apply to them; have each draw a whole noise (noise = "each") to mend it',
    )


def _of_rows(fact: Joint) -> Statements:
    yield Refused(
        "The owners cannot tell whose rows are whose.",
        "each owner told its noised rows to all, so that every owner knows which released rows are another's, and "
        "of which group",
    )
    yield _of_bare_rows(fact)
    if fact.centres == "each":
        yield Refused(
            "The rounds of clustering tell an owner nothing of single rows.",
            f"centres and sizes were opened in each of {counted(fact.rounds, 'round', 'rounds')}: from one to "
            "the next a centre moves "
            "by the rows that changed cluster, and differences of its sums give them away; keep centres hidden "
            '(centres = "last")',
        )


def _of_bare_rows(fact: Joint) -> Refused:
    """Say what the exact sums of a group give away, and whether it happened."""
    if fact.bare:
        return Refused(
            "Every row stays hidden from the other owners.",
            f"{fact.bare} times an owner had all rows of a group but one or two, or all cells of a column there that "
            "are not missing but one or two, and this was allowed: it takes its own off the exact sums of the group "
            "and has the others' without any noise",
        )
    return Refused(
        "A row stays hidden from owners that have the rest of its group together.",
        "the sums of a group are exact: no owner alone had all rows of a group but one or two, which was checked, but "
        "owners that put their rows together can take them all off",
    )


def _named(names: Sequence[str]) -> str:
    quoted = [repr(name) for name in names]
    return " and ".join(quoted) if len(quoted) < 3 else ", ".join(quoted[:-1]) + f" and {quoted[-1]}"


CLAIMS: ClaimsOf = {Joint: of_joint}
