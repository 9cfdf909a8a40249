"""Facts about a table that several data owners made together, with claims against each other [BCG10, sec. 4].

Claims about noise, against readers, are those of `ComponentNoise`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sfumato.core.documents import UNLESS_DEFAULT, fits, write_json
from sfumato.core.errors import PrivacyRefusal
from sfumato.core.facts import (
    SECRET_RANDOMNESS,
    Claim,
    Context,
    Fact,
    NoMeasurement,
    Refused,
    Statements,
    at_least,
    counted,
    joined,
)
from sfumato.core.groups.facts import CountsKept, Grouped
from sfumato.methods.condense.facts import GroupSynthesis
from sfumato.methods.perturb.facts import ComponentNoise

if TYPE_CHECKING:
    from sfumato.parties.plan import JointPlan

__all__ = [
    "Joint",
    "KeysMatched",
    "Opened",
    "PartJudged",
]

_UNKNOWN = "a fact is not known to this version of sfumato, so nothing can be certified; use a newer version"
_SEMI_HONEST = "all parties are semi-honest"
_ENGINES = {
    "cheetah": "CHEETAH is secure computation by two parties, and a single share is uniformly random.",
    "aby3": "ABY3 is secure computation by three parties, and what one of them has is uniformly random.",
}
_PLAIN = "plain"
_PARTITIONS = {"horizontal": "some of the rows", "vertical": "some of the columns of all rows"}


@dataclass(frozen=True)
class Joint(Fact):
    """Several owners made the table together, none showing the others its cells.

    ``partition`` says whether each had some of the rows or some of the columns. ``computing`` are those that held
    shares, and ``engine`` what they computed with: "plain" where all ran in one process, in the clear. ``centres`` says
    when cluster centres were opened and ``noise`` how it was drawn, each "" where the partition knows no such choice.
    ``rounds`` are those of K-means; ``bare`` is how often an owner has all rows of a group but one or two, or all cells
    of a column there, and for owners of columns how often a record alone has a category or a missing cell in its group.
    ``signers`` are the fingerprints that the owners sign the certificate with, "" of one who does not; () if nobody.
    """

    methods = ("joint-laplace-pca", "joint-condense")
    grouped = True

    partition: str
    parties: tuple[str, ...]
    computing: tuple[str, ...]
    engine: str
    centres: str
    noise: str
    rounds: int
    bare: int = 0
    signers: tuple[str, ...] = field(default=(), metadata=UNLESS_DEFAULT)

    def claims(self, context: Context) -> Statements:
        """State what the data owners hid from each other, what that rests on, and what they did not hide.

        Raises
        ------
        PrivacyRefusal
            If the facts of the run contradict each other or the ledger is missing.
        """
        ledger = [line for line in context if isinstance(line, Opened)]
        _check(self, ledger)
        if self.engine == _PLAIN:
            yield Refused(
                "The data owners hid their cells from each other.",
                "All of them ran in one process that had every table in the clear. This trial of the protocol protects "
                "against readers alone.",
            )
        else:
            yield from _of_secure_run(self, ledger)
        condensed = context.has(GroupSynthesis)
        yield from _of_any_owners(self, condensed=condensed)
        unsigned = [name for name, key in zip(self.parties, self.signers, strict=False) if not key]
        if unsigned:
            yield Refused(
                "Every data owner signed this certificate.",
                f"No signature of {_named(unsigned)}. The signatures of the other owners stand beside the certificate.",
            )
        marked = context.has(CountsKept)
        if self.bare if self.partition == "vertical" else marked:
            yield _of_marks(self)
        if self.partition == "vertical":
            noise = context.one(ComponentNoise)
            yield from _of_two_noises(self, noise) if self.engine != _PLAIN else []
            yield from _of_columns(self, noise, context)
        else:
            yield from _of_rows(self, condensed=condensed)

    def check(self) -> bool:
        whole = not self.signers or (len(self.signers) == len(self.parties) and any(self.signers))
        return whole and self.centres in ("", "last", "each") and self.noise in ("", "each", "split")

    def owner_keys(self) -> Mapping[str, str]:
        return {name: key for name, key in zip(self.parties, self.signers, strict=False) if key}

    def fits(self, context: Context) -> bool:
        from sfumato.parties.plan import JointPlan

        plan = JointPlan.from_document(context.parameters)
        stated = {key: value for key, value in plan.document().items() if key != "seed"}
        vertical = plan.partition == "vertical"
        return (
            all(
                key == "mechanism" or fits(JointPlan, {key: value}) or fits(type(plan.mechanism), {key: value})
                for key, value in context.parameters.items()
            )
            and context.method == plan.method
            and write_json(stated, "canonical") == write_json(context.parameters, "canonical")
            and (self.partition, self.parties) == (plan.partition, plan.parties)
            and self.engine in (plan.engine, "plain")
            and (self.centres, self.noise) == (("", plan.noise) if vertical else (plan.centres, ""))
            and self.rounds <= plan.rounds
            and all(line.is_declared(plan) for line in context.all(Opened))
            and (vertical or plan.few == "allow" or not self.bare)
            and _fits_method(context, plan)
        )


def _fits_method(context: Context, plan: JointPlan) -> bool:
    from sfumato.methods.condense import ALGORITHMS, Condensation

    groups, mechanism = context.the(Grouped), plan.mechanism
    if isinstance(mechanism, Condensation):
        whole = context.has(GroupSynthesis) and not context.has(ComponentNoise)
        return whole and groups.algorithm == ALGORITHMS[mechanism.grouping] and groups.smallest >= mechanism.k
    return context.the(ComponentNoise).fits_mechanism(mechanism, groups)


@dataclass(frozen=True)
class Opened(Fact):
    """A line of a joint run's ledger: this was seen in the clear by these parties.

    ``action`` is "opened", "sum" or "told"; ``numbers`` are those of all ``times``.
    """

    methods = ("joint-laplace-pca", "joint-condense")
    grouped = repeatable = True

    label: str
    what: str
    action: str
    to: tuple[str, ...]
    numbers: int
    times: int

    def claims(self, context: Context) -> Statements:
        """Draw nothing from a line of the ledger: the claims of the joint run cover it."""
        if not context.has(Joint):
            raise PrivacyRefusal(_UNKNOWN)
        return iter(())

    def check(self) -> bool:
        return self.action in ("opened", "sum", "told")

    def agrees(self, context: Context) -> bool:
        return context.has(Joint)

    def is_declared(self, plan: JointPlan) -> bool:
        """Whether the protocol of the plan declares this disclosure, in these words and to this number of parties."""
        from sfumato.parties.plan import leaks_of

        leak = leaks_of(plan).get(self.label)
        if leak is None or self.times <= 0 or (self.what, self.action) != (leak.what, leak.action):
            return False
        return self.to == plan.parties if leak.to == "all" else len(self.to) == 1


@dataclass(frozen=True)
class KeysMatched(Fact):
    """Owners of columns went on with the ``common`` keys that all have; of each the numbers of keys and odd cells.

    ``missing`` and ``repeated`` are cells of the key column, whose rows were left out.
    """

    methods = ("joint-laplace-pca", "joint-condense")
    grouped = True

    common: int
    keys: tuple[int, ...]
    missing: tuple[int, ...]
    repeated: tuple[int, ...]

    def claims(self, context: Context) -> Statements:
        yield Refused(
            "All records of the data owners are in the table.",
            f"It was made of the {counted(self.common, 'key', 'keys')} that all owners have, of "
            f"{joined([str(count) for count in self.keys])}. Each owner learned which of its keys the others have. "
            f"Rows with a missing key ({sum(self.missing)}) or a repeated one ({sum(self.repeated)}) were left out.",
        )

    def check(self) -> bool:
        return 0 < self.common <= min(self.keys, default=0) and min((*self.missing, *self.repeated), default=0) >= 0

    def agrees(self, context: Context) -> bool:
        run = context.one(Joint)
        whole = len(self.keys) == len(self.missing) == len(self.repeated)
        return run is not None and whole and len(self.keys) == len(run.parties) and run.partition == "vertical"

    def fits(self, context: Context) -> bool:
        share = context.parameters.get("common")
        return isinstance(share, float) and all(self.common >= share * count for count in self.keys)


@dataclass(frozen=True)
class PartJudged(Fact):
    """An owner let the table leave although its part was not measured, or not found to meet the owner's policy.

    ``outcome`` is "not-measured", "does-not-meet" or "inconclusive"; ``policy`` is "" if nothing was measured.
    """

    methods = ("joint-laplace-pca", "joint-condense")
    grouped = repeatable = True

    owner: str
    outcome: str
    policy: str = field(default="", metadata=UNLESS_DEFAULT)

    def claims(self, context: Context) -> Statements:
        if self.outcome == "not-measured":
            yield Refused(
                f"Attacks were run against the part of {self.owner!r} before the release.",
                "This data owner asked for no report, so no disclosure risk of its part was measured.",
            )
            return
        found = "found that it does not" if self.outcome == "does-not-meet" else "found the result inconclusive"
        yield Refused(
            f"The part of {self.owner!r} meets the policy {self.policy!r}.",
            f"This data owner measured it and {found}. The table is released by the owners' decision.",
        )

    def check(self) -> bool:
        return self.outcome in ("not-measured", "does-not-meet", "inconclusive") and (
            (self.outcome == "not-measured") == (self.policy == "")
        )

    def agrees(self, context: Context) -> bool:
        run, same = context.one(Joint), [fact for fact in context.all(PartJudged) if fact.owner == self.owner]
        return run is not None and self.owner in run.parties and len(same) == 1 and not context.has(NoMeasurement)


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
        f"Owners: {_named(fact.parties)}, each with {_PARTITIONS[fact.partition]}. The ledger is among the facts; all "
        "else went as shares or under masks. Every party recorded every step, and the records agree. An opening that "
        "the protocol does not declare stops the run, and the finished list was compared once more [BCG10, alg. 2]. "
        "Semi-honest parties follow the protocol and use only what it sends them.",
        _SEMI_HONEST,
    )
    yield Claim(
        "A share reveals nothing about the number that it belongs to.",
        f"{_ENGINES[fact.engine]} The engine is a library that was not audited for sfumato.",
        f"{_trust(fact)}, {_SEMI_HONEST}, and the engine does what its authors state",
        kind="assumed",
    )
    sums = sorted({line.label for line in ledger if line.action == "sum"})
    if sums and count > 2:
        yield Claim(
            "Sums over all data owners show no owner's part to another, except in a group in which only one other "
            "owner has rows.",
            f"Sums: {', '.join(sums)}. Every two owners add and subtract a common mask modulo 2^64, and a sum cancels "
            "all masks. In a group in which only one other owner has rows, the rest of the sum is that owner's part.",
            f"no {count - 1} owners collude, masks that SHAKE-256 grows from a secret look random, and {_SEMI_HONEST}",
        )


def _trust(fact: Joint) -> str:
    if len(fact.computing) == 2:
        return f"{_named(fact.computing)} do not collude"
    return f"no two of {_named(fact.computing)} collude"


def _of_any_owners(fact: Joint, *, condensed: bool) -> Statements:
    if condensed:
        yield Refused(
            "The statistics of the groups are hidden from the owners.",
            "Every owner saw the exact means and covariances of all groups; a reader sees only rows drawn from them.",
        )
    else:
        yield _of_bounds()
    yield Refused(
        "The run is safe from an owner who does not follow the protocol.",
        "No one checks that a party sends the numbers that it should. A party that sends others spoils the table, and "
        "may learn more than the ledger states.",
    )
    if len(fact.parties) == 2:
        yield _of_two_owners(fact)


def _of_bounds() -> Refused:
    return Refused(
        "The bounds are relative to what an owner knew before the run.",
        "They are relative to the statistics of the groups. Every owner saw the exact means, covariances and ranges of "
        "all groups; a reader sees only the rows of a group.",
    )


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
        "Each of the two added a full noise, so the other's remains when it subtracts its own. The noise has twice the "
        "variance of one. Theorem 1 [BCG10] holds for all components at once, and additional independent noise does "
        "not weaken it. The prior odds include the statistics of the record's group and the columns that the owner "
        "itself has.",
        f"{names} do not collude, and {SECRET_RANDOMNESS}",
    )


def _of_columns(fact: Joint, noise: ComponentNoise | None, context: Context) -> Statements:
    condensed = context.has(GroupSynthesis)
    saw = f"saw the cluster of every row in each of {counted(fact.rounds, 'round', 'rounds')}."
    if condensed:
        yield Refused("The owners cannot tell in which group a person is.", f"Rows have a key. Each owner {saw}")
    else:
        yield Refused(
            "The owners cannot tell whose row is whose.",
            "Rows are matched by a key and shuffled by randomness that all owners have. Each owner knows which "
            f"released row belongs to which of its keys, and {saw}",
        )
    yield Refused(
        "The columns of a group stay hidden from an owner who knows most of its records.",
        "For each group, every owner saw the mean of each other column and its products with the owner's own columns: "
        "linear equations for that column's cells. If cells can have few values, far fewer equations than records "
        "leave one solution.",
    )
    if not context.has(KeysMatched):
        yield _of_same_keys()
    if noise is not None and noise.components > 1:
        yield Refused(
            "The bound for one component holds against another owner.",
            f"After subtracting its own columns, an owner has {noise.components} components that depend on the others' "
            "columns alone. Components then reveal each other, and only the bound for a whole record covers that.",
        )
    if fact.noise == "split" and not condensed:
        yield _of_halves(fact)


def _of_same_keys() -> Refused:
    return Refused(
        "No one learns which records another owner has.",
        "The run continues only if all owners have the same keys. Each owner thus knows that all others have its "
        "records too.",
    )


def _of_halves(fact: Joint) -> Refused:
    first, last = fact.computing[0], fact.computing[-1]
    return Refused(
        f"The bounds hold against {first!r} and {last!r}.",
        f"The noise is R1 - R2, a difference of two halves that are never negative. {first!r} drew R1 and obtains D - "
        f"R2, which a component D never falls below; {last!r} obtains D + R1. Likelihood ratios of one-sided noise "
        'have no bound, so theorem 1 does not apply; have each draw a full noise (noise = "each").',
    )


def _of_rows(fact: Joint, *, condensed: bool) -> Statements:
    if not condensed:
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
