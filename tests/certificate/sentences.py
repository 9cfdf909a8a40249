"""Every sentence that a certificate may hold, and what must be true of the facts for it: written apart from the code.

A sentence is known by a pattern; ``true`` looks at the facts and at the numbers in it. A new sentence is entered here,
with its own reason, before a test lets it pass.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from sfumato.core.facts import (
    BoundsKept,
    ColumnsDropped,
    DespitePolicy,
    Enhanced,
    Fact,
    NoMeasurement,
    PassedThrough,
    RandomnessSource,
    Shuffled,
    ShuffledWithin,
    Stratified,
    UnlabelledRows,
)
from sfumato.core.groups.facts import CountsKept, Grouped, Partitioned
from sfumato.methods.chain.facts import ChainSynthesis, PersonsBounded
from sfumato.methods.condense.facts import (
    ClassPure,
    GroupSynthesis,
    NormalScoreColumns,
    PersonsInDistinctGroups,
    PersonsLinked,
)
from sfumato.methods.geometry.facts import TargetMoved, Transformed
from sfumato.methods.modify.facts import Blocked, Downgraded, IdenticalRows, Sampled, Swapped, Unchanged
from sfumato.methods.perturb.facts import ComponentNoise, Noised
from sfumato.methods.randomize.facts import DomainsObserved, Randomized
from sfumato.parties.facts import Joint, KeysMatched, Opened, PartJudged
from sfumato.stream.facts import EpochPublished, Maintained, PersonRowsBounded, RowsKept
from sfumato.tables.facts import (
    Aggregated,
    ColumnRulesKept,
    DatesCoarsened,
    RareValues,
    RowsDrawn,
    TailsCoded,
    WeightsScaled,
)
from sfumato.transactions.facts import (
    RulesBlocked,
    RulesHidden,
    TransactionPersons,
    TransactionsRandomized,
    TransactionsReleased,
)

Facts = tuple[Fact, ...]
F = TypeVar("F", bound=Fact)
True_ = Callable[[Facts, dict[str, str]], bool]


@dataclass(frozen=True)
class Sentence:
    """A sentence of a certificate; ``by_chance`` if it is only proved as long as random numbers stay secret.

    ``basis`` is the pattern of a basis that holds numbers or names, which ``true`` looks at too.
    """

    name: str
    pattern: str
    true: True_
    by_chance: bool = False
    assumed: True_ = lambda facts, said: False
    basis: str = ".*"

    def match(self, text: str, basis: str = "") -> dict[str, str] | None:
        found, behind = re.fullmatch(self.pattern, text), re.fullmatch(self.basis, basis)
        return None if found is None or behind is None else found.groupdict() | behind.groupdict()


def every(facts: Facts, kind: type[F]) -> list[F]:
    return [fact for fact in facts if isinstance(fact, kind)]


def has(facts: Facts, kind: type[Fact]) -> bool:
    return bool(every(facts, kind))


def the(facts: Facts, kind: type[F]) -> F:
    return every(facts, kind)[0]


def released(facts: Facts) -> bool:
    return any(fact.mode == "release" for fact in every(facts, RandomnessSource))


def plural(text: str) -> bool:
    """Tell whether no count of one stands before a plural, and no other before a singular."""
    return re.search(r"\b1 (columns|rows|records|persons|groups|families|lines|rounds|classes)\b", text) is None


def posterior(fact: ComponentNoise, components: int) -> float:
    odds = fact.rho1 / (1 - fact.rho1) * math.exp(min(700.0, components / fact.scale))
    return odds / (1 + odds)


def bound_of(facts: Facts, columns: list[Randomized], said: dict[str, str]) -> bool:
    """A bound is never below what it bounds, and not by a thousandth above it."""
    epsilon = sum(fact.epsilon or 0.0 for fact in columns)
    gamma = math.exp(min(700.0, epsilon))
    return (
        all(fact.epsilon is not None for fact in columns)
        and gamma * (1 - 1e-9) <= float(said["gamma"]) <= gamma * 1.002
        and epsilon * (1 - 1e-9) <= float(said["epsilon"]) <= epsilon * 1.002
    )


def excepted(facts: Facts, but: str | None) -> bool:
    """Whether just what was not drawn is excepted: columns that a rule makes, and weights that were scaled."""
    ruled, scaled = "derived columns" in (but or ""), "scaled weights" in (but or "")
    return ruled == has(facts, ColumnRulesKept) and scaled == has(facts, WeightsScaled)


def is_blurred(facts: Facts) -> bool:
    return has(facts, ComponentNoise)


def parted(facts: Facts) -> bool:
    """Whether rows were drawn from several parts of the table."""
    return any(fact.cells > 1 for fact in every(facts, Partitioned))


def copied(facts: Facts) -> int | None:
    return the(facts, Grouped).alike if has(facts, Grouped) else None


def widened(facts: Facts) -> set[str]:
    """Columns whose values became wider before anything else was done."""
    return {name for fact in facts if isinstance(fact, Aggregated | DatesCoarsened) for name in fact.columns}


def serfling(fact: Sampled) -> float:
    """Serfling's bound, from its tail: exp(-2 n t^2 / (1 - (n - 1) / N)) = 0.025."""
    return math.sqrt(-math.log(0.025) * (1 - (fact.drawn - 1) / fact.persons) / (2 * fact.drawn))


LAPLACE = r"e\^\((?P<m>\d+)/(?P<scale>[\d.e+-]+)\)"
BOUND = (
    r"local differential privacy \(epsilon (?P<epsilon>[\d.e+-]+)\): the odds of any statement about it change by at "
    r"most a factor of (?P<gamma>[\d.e+]+)\."
)
LEAVES = (
    r"(?P<columns>\d+) columns? of (?P<rows>\d+) rows were drawn one after another, each value from a group that is a "
    r"leaf of a decision tree\. Similar values are on the same side of every split\. Every leaf was counted and is at "
    r"least as large as the highest privacy level inside\."
    r"(?P<part> Every leaf lies within one partition of the table\.)?"
    r"( No person supplies more than 2 in (?P<share>\d+) of the values drawn from a leaf; others were left out\.)?"
    r"( In (some or all (?P<inside>partitions), in )?(?P<beyond>\d+) numeric columns?, the drawn value is the residual "
    r"of a regression on the preceding columns over all records( of the partition)?\.)?"
    r"( (In some or all (?P<within>partitions), )?(?P<twice>\d+) column was drawn twice: first to draw the others, "
    r"then again from all of them\. Only the second draw is released\.)?"
    r"( A number that at least (?P<k>\d+) (records|(?P<who>persons)) share may then be replaced at random by a "
    r"neighbouring number that as many share\. At most a fiftieth of the column's numbers(?P<there> of the partition)? "
    r"lie between the two\.)?"
    r"(?P<ruled> Derived columns are computed from others by a rule between columns\.)?"
    r"(?P<scaled> Weights were scaled after drawing\.)?"
)
BUT = r"(?P<but>Except for (?:derived columns)?(?: and )?(?:scaled weights)?, )?"


def leaves_explained(facts: Facts, said: dict[str, str]) -> bool:
    """Whether the basis of a chain's leaves holds the numbers of its facts, and what applies to it and no more."""
    chained, partitions = the(facts, ChainSynthesis), "partitions" if parted(facts) else None
    return (
        int(said["rows"]) == chained.rows
        and int(said["columns"]) == len(chained.columns)
        and int(said["beyond"] or 0) == len(chained.regressed)
        and int(said["twice"] or 0) == len(chained.twice)
        and said["share"] == (said["leaf"] if has(facts, PersonsBounded) else None)
        and (said["part"] is not None) == parted(facts)
        and said["inside"] == (partitions if said["beyond"] else None)
        and said["within"] == (partitions if said["twice"] else None)
        and said["k"] == (str(chained.k) if chained.kept else None)
        and (said["who"] is not None) == (said["k"] is not None and has(facts, PersonsBounded))
        and (said["there"] is not None) == (said["k"] is not None and parted(facts))
        and (said["ruled"] is not None) == has(facts, ColumnRulesKept)
        and (said["scaled"] is not None) == has(facts, WeightsScaled)
    )


def transaction_factor(facts: Facts, epsilon: float, said: str) -> bool:
    """A stated factor is never below e^epsilon, and not by a thousandth above it."""
    return math.exp(min(700.0, epsilon)) * (1 - 1e-9) <= float(said) <= math.exp(min(700.0, epsilon)) * 1.002


def of_item(fact: TransactionsRandomized) -> float:
    """Logarithm of the factor for one item that is flipped."""
    assert fact.keep is not None
    assert fact.insert is not None
    return math.log(max(fact.keep / fact.insert, (1 - fact.insert) / (1 - fact.keep)))


def most_transactions(facts: Facts) -> int:
    return max([fact.most for fact in every(facts, TransactionPersons)], default=1)


CLAIMS = (
    Sentence(
        "cells kept",
        r"(?P<n>\d+) columns? ha(s|ve) the original values(?P<wide> after generalization)?, each with its "
        r"original frequency\.",
        lambda facts, said: (
            int(said["n"]) == len(the(facts, Swapped).columns)
            and (said["wide"] is not None) == bool(widened(facts) & set(the(facts, Swapped).columns))
        ),
    ),
    Sentence(
        "exchanged in pairs",
        r"Cells were swapped in pairs of rows of different persons, at most (?P<window>[\d.]+) % of a "
        r"column's ranks apart; (?P<changed>\d+) of (?P<cells>\d+) cells changed\.",
        lambda facts, said: (
            the(facts, Swapped).within == "window"
            and float(said["window"]) == the(facts, Swapped).window
            and int(said["changed"]) == sum(the(facts, Swapped).changed) <= int(said["cells"])
            and int(said["cells"]) == the(facts, Swapped).rows * len(the(facts, Swapped).columns)
        ),
        by_chance=True,
    ),
    Sentence(
        "exchanged in leaves",
        r"Cells were permuted at random within (?P<leaves>\d+) (leaf|leaves) of a tree that predicts '.*'; "
        r"(?P<changed>\d+) of \d+ cells changed\. Smallest leaf: (?P<least>\d+) persons?\.",
        lambda facts, said: (
            the(facts, Swapped).within == "leaves"
            and int(said["leaves"]) == the(facts, Swapped).leaves
            and int(said["least"]) == the(facts, Swapped).smallest
            and int(said["changed"]) == sum(the(facts, Swapped).changed)
        ),
        by_chance=True,
    ),
    Sentence(
        "sampled",
        r"The release contains (?P<rows>\d+) rows?, exactly those of a simple random sample of "
        r"(?P<drawn>\d+) of (?P<persons>\d+) persons?\.",
        lambda facts, said: (
            int(said["rows"]) == the(facts, Sampled).rows
            and int(said["drawn"]) == the(facts, Sampled).drawn <= int(said["persons"]) == the(facts, Sampled).persons
        ),
        by_chance=True,
    ),
    Sentence(
        "sampling error",
        r"A proportion of persons in the release differs from that in the original by at most "
        r"(?P<error>[\d.]+), in 95 % of such samples\.",
        lambda facts, said: serfling(the(facts, Sampled)) - 1e-12 <= float(said["error"]) <= 1,
        by_chance=True,
    ),
    Sentence(
        "wider labels",
        r"The values of (?P<n>\d+) columns? were generalized to labels of a hierarchy(?P<other>, or to a "
        r"label named other)?\.",
        lambda facts, said: (
            int(said["n"]) == len(the(facts, Aggregated).columns)
            and (said["other"] is not None) == any(not fact.shown for fact in every(facts, RareValues))
        ),
    ),
    Sentence(
        "rows alike",
        r"Every released row is in an equivalence class of at least (?P<fewest>\d+) rows that agree in "
        r"(?P<n>\d+) columns?\.",
        lambda facts, said: (
            int(said["fewest"]) == the(facts, IdenticalRows).fewest > 1
            and the(facts, IdenticalRows).alone == 0
            and int(said["n"]) == len(the(facts, IdenticalRows).columns)
        ),
    ),
    Sentence(
        "blocked",
        r"Each combination of values in (?P<n>\d+) columns? is shared by at least (?P<least>\d+) different "
        r"persons; (?P<cells>\d+) cells? (was|were) suppressed for this\.",
        lambda facts, said: (
            int(said["n"]) == len(the(facts, Blocked).columns)
            and int(said["least"]) == the(facts, Blocked).least > 1
            and int(said["cells"]) == sum(the(facts, Blocked).cells)
        ),
    ),
    Sentence(
        "downgraded",
        r"The label '.*' is missing in (?P<hidden>\d+) rows?, and no rule of a decision tree grown on these "
        r"lowers its entropy by more than (?P<most>[\d.e+-]+) bits\.",
        lambda facts, said: (
            int(said["hidden"]) == the(facts, Downgraded).hidden > 0
            and float(said["most"]) >= the(facts, Downgraded).most
            and int(said["before"]) == the(facts, Downgraded).rules_before
            and int(said["after"]) == the(facts, Downgraded).rules_after
            and int(said["cells"]) == sum(the(facts, Downgraded).cells)
        ),
        basis=r".* The first tree had (?P<before>\d+) rules? and the last one (?P<after>\d+); (?P<cells>\d+) other "
        r"cells? (was|were) suppressed\. .*",
    ),
    Sentence(
        "item of a transaction",
        r"To anyone who knows all other items of a transaction, its release changes the odds of one more item by "
        r"at most a factor of (?P<factor>[\d.e+]+)\.",
        lambda facts, said: (
            the(facts, TransactionsRandomized).operator == "flip"
            and transaction_factor(facts, of_item(the(facts, TransactionsRandomized)), said["factor"])
        ),
        by_chance=True,
        assumed=lambda facts, said: not the(facts, TransactionsRandomized).declared,
    ),
    Sentence(
        "item of a person's transactions",
        r"Over all transactions of one person, at most (?P<most>\d+), the odds that all rather than none contain "
        r"an item change by at most a factor of (?P<factor>[\d.e+]+)\.",
        lambda facts, said: (
            int(said["most"]) == most_transactions(facts) > 1
            and the(facts, TransactionsRandomized).operator == "flip"
            and transaction_factor(
                facts, most_transactions(facts) * of_item(the(facts, TransactionsRandomized)), said["factor"]
            )
        ),
        by_chance=True,
        assumed=lambda facts, said: not the(facts, TransactionsRandomized).declared,
    ),
    Sentence(
        "whole transaction",
        r"To anyone who knows the size of a transaction, its release changes the odds of any statement about its "
        r"items by at most a factor of (?P<factor>[\d.e+]+)\.",
        lambda facts, said: (
            the(facts, TransactionsRandomized).operator != "flip"
            and transaction_factor(facts, the(facts, TransactionsRandomized).epsilon, said["factor"])
        ),
        by_chance=True,
        assumed=lambda facts, said: not the(facts, TransactionsRandomized).declared,
    ),
    Sentence(
        "transactions of a person",
        r"Over all transactions of one person, at most (?P<most>\d+), the odds of any statement change by at most "
        r"a factor of (?P<factor>[\d.e+]+)\.",
        lambda facts, said: (
            int(said["most"]) == most_transactions(facts) > 1
            and the(facts, TransactionsRandomized).operator != "flip"
            and transaction_factor(
                facts, most_transactions(facts) * the(facts, TransactionsRandomized).epsilon, said["factor"]
            )
        ),
        by_chance=True,
        assumed=lambda facts, said: not the(facts, TransactionsRandomized).declared,
    ),
    Sentence(
        "hidden rules",
        r"None of the association rules that the data owner named \((?P<n>\d+)\) holds in the released "
        r"transactions, at support (?P<support>[\d.e-]+) and confidence (?P<confidence>[\d.e-]+)\.",
        lambda facts, said: (
            int(said["n"]) == the(facts, RulesHidden).rules
            and math.isclose(float(said["support"]), the(facts, RulesHidden).min_support, rel_tol=1e-5)
            and math.isclose(float(said["confidence"]), the(facts, RulesHidden).min_confidence, rel_tol=1e-5)
        ),
    ),
    Sentence(
        "blocked rules",
        r"None of the association rules that the data owner named \((?P<n>\d+)\) certainly holds in the "
        r"released transactions, at support (?P<support>[\d.e-]+) and confidence (?P<confidence>[\d.e-]+)\.",
        lambda facts, said: (
            int(said["n"]) == the(facts, RulesBlocked).rules
            and the(facts, TransactionsReleased).unknown > 0
            and math.isclose(float(said["support"]), the(facts, RulesBlocked).min_support, rel_tol=1e-5)
        ),
    ),
    Sentence(
        "weights",
        r"The released weights '.*' sum to the original total(?P<coded> after top and bottom coding)?: "
        r"(?P<total>[\d.e+-]+), within [\d.e+-]+\.",
        lambda facts, said: (
            math.isclose(float(said["total"]), the(facts, WeightsScaled).total, rel_tol=1e-9)
            and (said["coded"] is not None) == any(fact.method != "keep" for fact in every(facts, TailsCoded))
        ),
    ),
    Sentence(
        "months",
        r"The release gives the dates of (?P<n>\d+) columns? to the month, never to the day\.",
        lambda facts, said: int(said["n"]) == len(the(facts, DatesCoarsened).columns) > 0,
    ),
    Sentence(
        "rules",
        r"Every released row satisfies (?P<n>\d+) rules? between columns\.",
        lambda facts, said: int(said["n"]) == len(the(facts, ColumnRulesKept).rules) > 0,
    ),
    Sentence(
        "condensed",
        r"Each of the (?P<n>\d+) original records was condensed with others into a group at least as large "
        r"as its privacy level\. Smallest group: (?P<least>\d+)\.",
        lambda facts, said: (
            has(facts, GroupSynthesis)
            and not is_blurred(facts)
            and not has(facts, PersonsInDistinctGroups)
            and the(facts, Grouped).alone == 0
            and int(said["least"]) == the(facts, Grouped).smallest > 1
            and int(said["n"]) == the(facts, Grouped).records
        ),
    ),
    Sentence(
        "persons apart",
        r"The (?P<n>\d+) records? of (?P<persons>\d+) persons? were condensed into groups with at least as "
        r"many different persons as each record's privacy level\. Smallest group: (?P<least>\d+) persons?\.",
        lambda facts, said: (
            has(facts, GroupSynthesis)
            and int(said["persons"]) == the(facts, PersonsInDistinctGroups).persons <= the(facts, Grouped).records
            and int(said["least"]) == the(facts, Grouped).smallest <= the(facts, PersonsInDistinctGroups).persons
            and int(said["n"]) == the(facts, Grouped).records
        ),
    ),
    Sentence(
        "cells apart",
        r"No group contains records of two of the (?P<n>\d+) partitions of the table\. Smallest partition: "
        r"(?P<least>\d+) records?\.",
        lambda facts, said: (
            int(said["n"]) == the(facts, Partitioned).cells > 1
            and int(said["least"]) == the(facts, Partitioned).smallest
            and (
                int(said["n"]) * int(said["least"]) <= the(facts, Grouped).records
                if has(facts, Grouped)
                else int(said["least"]) >= min(the(facts, ChainSynthesis).smallest)
                and int(said["n"]) * int(said["least"]) <= the(facts, ChainSynthesis).records
            )
        ),
    ),
    Sentence(
        "one cell",
        r"The table was processed as a single partition\.",
        lambda facts, _: the(facts, Partitioned).cells == 1,
    ),
    Sentence(
        "records left out",
        r"No released row was drawn from a record that no group could take\.",
        lambda facts, _: has(facts, PersonsInDistinctGroups) and not has(facts, PersonsLinked),
    ),
    Sentence(
        "records of many left out",
        r"No released row was drawn from a record beyond the number of records that enough persons have\.",
        lambda facts, _: has(facts, PersonsInDistinctGroups) and has(facts, PersonsLinked),
    ),
    Sentence(
        "persons drawn together",
        r"The rows of each of (?P<n>\d+) released persons? were drawn together from the records of at least "
        r"(?P<least>\d+) persons? with equally many records\.",
        lambda facts, said: (
            has(facts, GroupSynthesis)
            and int(said["n"]) == the(facts, PersonsLinked).persons == the(facts, PersonsInDistinctGroups).persons
            and int(said["least"]) == the(facts, Grouped).smallest
        ),
    ),
    Sentence(
        "numbers of persons",
        r"The numbers in (?P<name>'.*') reveal nothing about the values of the person column\.",
        lambda facts, said: repr(the(facts, PersonsLinked).column) == said["name"],
        by_chance=True,
    ),
    Sentence(
        "constant within persons",
        r"No released person has two values in (?P<n>\d+) columns? that (is|are) constant for each original "
        r"person\.",
        lambda facts, said: int(said["n"]) == len(the(facts, PersonsLinked).constant) > 0,
    ),
    Sentence(
        "put",
        r"Each of the (?P<n>\d+) original records was put into a group at least as large as its privacy "
        r"level\. Smallest group: (?P<least>\d+)\.",
        lambda facts, said: (
            not has(facts, GroupSynthesis)
            and not is_blurred(facts)
            and int(said["least"]) == the(facts, Grouped).smallest > 1
            and int(said["n"]) == the(facts, Grouped).records
        ),
    ),
    Sentence(
        "some alone",
        r"(?P<n>\d+) original records? w(as|ere) put into groups at least as large as their privacy levels, "
        r"(?P<alone>\d+) records? of level 1 into groups of one\.",
        lambda facts, said: (
            not is_blurred(facts)
            and not has(facts, PersonsInDistinctGroups)
            and int(said["alone"]) == the(facts, Grouped).alone > 0
            and the(facts, Grouped).smallest == 1
            and int(said["n"]) == the(facts, Grouped).records
        ),
    ),
    Sentence(
        "noised groups",
        r"Each of the (?P<n>\d+) original records received noise scaled by the ranges of a group at least as "
        r"large as its privacy level\. Smallest group: (?P<least>\d+)\.",
        lambda facts, said: (
            is_blurred(facts)
            and int(said["n"]) == the(facts, Grouped).records
            and int(said["least"]) == the(facts, Grouped).smallest
        ),
    ),
    Sentence(
        "no copies",
        rf"{BUT}(?:E|e)very released row was drawn from the mean and covariance of a group of at least "
        r"(?P<least>\d+) records; no record was copied\.",
        lambda facts, said: (
            copied(facts) == 0
            and int(said["least"]) == the(facts, Grouped).smallest > 1
            and excepted(facts, said["but"])
        ),
    ),
    Sentence(
        "some drawn",
        rf"{BUT}(?P<drawn>\d+) of (?P<rows>\d+) released rows were drawn from the mean and covariance of "
        r"groups whose records differ; none of these was copied\.",
        lambda facts, said: (
            copied(facts) == int(said["rows"]) - int(said["drawn"]) > 0
            and excepted(facts, said["but"])
            and int(said["rows"]) == the(facts, GroupSynthesis).rows > int(said["rows"]) - int(said["drawn"])
        ),
    ),
    Sentence(
        "rows of groups that differ",
        rf"{BUT}(?:E|e)very released row of a group whose records differ was drawn from its mean and "
        r"covariance; none of these was copied\.",
        lambda facts, said: has(facts, RowsDrawn) and bool(copied(facts)) and excepted(facts, said["but"]),
    ),
    Sentence(
        "chosen rows",
        r"Every released row satisfies the condition (?P<rule>'.*'|\".*\"), which the data owner chose\.",
        lambda facts, said: repr(the(facts, RowsDrawn).where) == said["rule"] and has(facts, ChainSynthesis),
    ),
    Sentence(
        "numbers of scores",
        r"In (?P<columns>\d+) numeric columns?, released numbers are computed from means over at least "
        r"(?P<k>\d+) (records|(?P<persons>persons)) and from numbers that as many share\.",
        lambda facts, said: (
            (int(said["columns"]), int(said["k"]))
            == (the(facts, NormalScoreColumns).columns, the(facts, NormalScoreColumns).k)
            and (said["persons"] is not None) == has(facts, PersonsInDistinctGroups)
        ),
    ),
    Sentence(
        "cells of leaves",
        rf"{BUT}(?:E|e)very released value was drawn from a group of at least (?P<leaf>\d+) "
        r"(records|(?P<persons>persons)) with similar values in the preceding columns\. Smallest group: "
        r"(?P<least>\d+)\.",
        lambda facts, said: (
            excepted(facts, said["but"])
            and int(said["leaf"])
            == the(facts, ChainSynthesis).leaf
            <= int(said["least"])
            == min(the(facts, ChainSynthesis).smallest)
            and the(facts, ChainSynthesis).violations == 0
            and (said["persons"] is not None) == has(facts, PersonsBounded)
            and leaves_explained(facts, said)
        ),
        basis=LEAVES,
    ),
    Sentence(
        "rare numbers",
        r"No number that fewer than (?P<k>\d+) (records|(?P<persons>persons)) in the table have was copied\.",
        lambda facts, said: (
            int(said["k"]) == the(facts, ChainSynthesis).k > 1
            and (said["persons"] is not None) == has(facts, PersonsBounded)
            if has(facts, ChainSynthesis)
            else has(facts, GroupSynthesis)
            and said["persons"] is not None
            and int(said["k"]) == the(facts, Grouped).smallest > 1
            and not any(fact.rare_pairs for fact in every(facts, ColumnRulesKept))
        ),
    ),
    Sentence(
        "rare categories",
        r"The release contains no category that fewer than (?P<k>\d+) persons in the (?P<where>table|stream) "
        r"have\.",
        lambda facts, said: (
            int(said["k"]) == the(facts, RareValues).k > 1
            and not the(facts, RareValues).shown
            and (said["where"] == "stream") == has(facts, Maintained)
        ),
    ),
    Sentence(
        "columns without a common value",
        r"The release omits (?P<n>\d+) columns? in which no value is shared by as many persons as the "
        r"highest privacy level requires\.",
        lambda facts, said: int(said["n"]) == len(the(facts, RareValues).dropped) > 0,
    ),
    Sentence(
        "tails",
        r"In each column separately, no released number or date lies beyond a cut-off computed from at least "
        r"(?P<k>\d+) persons\.",
        lambda facts, said: int(said["k"]) == the(facts, TailsCoded).k > 1 and the(facts, TailsCoded).method != "keep",
    ),
    Sentence(
        "pure classes",
        r"Every released row has the class ['\"].*['\"] of all records in its group; no group mixes the "
        r"(?P<n>\d+) classes\.",
        lambda facts, said: int(said["n"]) == the(facts, ClassPure).classes > 1,
    ),
    Sentence(
        "one class",
        r"Every released row has the only class (?P<column>['\"].*['\"]) in the table\.",
        lambda facts, said: the(facts, ClassPure).classes == 1,
    ),
    Sentence(
        "chosen group size",
        r"The group size, (?P<size>\d+), is the approximate greatest common divisor of the class sizes\.",
        lambda facts, said: int(said["size"]) == the(facts, ClassPure).size > 0,
    ),
    Sentence(
        "rows without a class",
        r"No released row was made from a record whose class (?P<column>['\"].*['\"]) is missing\.",
        lambda facts, said: bool(the(facts, UnlabelledRows).column),
    ),
    Sentence(
        "dropped",
        r"The release omits ((?P<identifiers>\d+) direct identifiers?)?(, | and )?((?P<empty>\d+) empty "
        r"columns?)?( and )?((?P<levels>\d+) columns? of privacy levels)?\.",
        lambda facts, said: (
            bool(the(facts, ColumnsDropped).names)
            and int(said["identifiers"] or 0) == len(the(facts, ColumnsDropped).identifiers)
            and int(said["empty"] or 0) == len(the(facts, ColumnsDropped).empty)
            and int(said["levels"] or 0) == len(the(facts, ColumnsDropped).levels)
        ),
    ),
    Sentence(
        "order",
        r"The order of the rows reveals nothing about the order or the groups of the original records\.",
        lambda facts, said: has(facts, Shuffled) and not has(facts, Joint),
        by_chance=True,
    ),
    Sentence(
        "order for readers",
        r"To readers other than the data owners, the order of the rows reveals nothing about the order or "
        r"the groups of the original records\.",
        lambda facts, said: has(facts, Shuffled) and has(facts, Joint),
        by_chance=True,
    ),
    Sentence(
        "order in runs",
        r"Within runs of at least (?P<rows>\d+) consecutive rows, order reveals nothing about the original "
        r"order\.",
        lambda facts, said: int(said["rows"]) == the(facts, ShuffledWithin).rows > 1,
        by_chance=True,
    ),
    Sentence(
        "noise",
        r"Every number in (?P<columns>\d+) columns? was (given (?P<law>\w+) noise with|multiplied by a "
        r"(?P<factor>\w+) factor of mean 1 and) standard deviation (?P<size>[\d.]+)( times the column's "
        r"own)?, drawn independently for each row( and column|(?P<correlated>, with the correlations of the "
        r"data))\.",
        lambda facts, said: (
            int(said["columns"]) == the(facts, Noised).columns
            and float(said["size"]) == the(facts, Noised).size
            and (said["law"] or said["factor"]).lower() == the(facts, Noised).law
            and (said["factor"] is not None) == (the(facts, Noised).kind == "multiplicative")
            and (said["correlated"] is not None) == the(facts, Noised).correlated
        ),
        by_chance=True,
    ),
    Sentence(
        "extra noise",
        r"(?P<rows>\d+) rows?, drawn at random, received additional noise\.",
        lambda facts, said: int(said["rows"]) == the(facts, Enhanced).rows,
        by_chance=True,
    ),
    Sentence(
        "component noise",
        r"Every principal component of every record received independent Laplace noise of scale "
        r"(?P<scale>[\d.e+-]+) times its range in the record's group\.",
        lambda facts, said: math.isclose(float(said["scale"]), the(facts, ComponentNoise).scale, rel_tol=1e-5),
        by_chance=True,
    ),
    Sentence(
        "bound of a component",
        r"A statement about one principal component of a record with prior probability (?P<p>[\d.]+) has "
        r"posterior probability at most (?P<q>[\d.]+); one with (?P<r>[\d.]+) has at least (?P<s>[\d.e-]+)\.",
        lambda facts, said: (
            posterior(the(facts, ComponentNoise), 1) - 1e-12 <= float(said["q"]) < 1
            and float(said["s"]) <= 1 - posterior(the(facts, ComponentNoise), 1) + 1e-12
        ),
        by_chance=True,
    ),
    Sentence(
        "bound of a record",
        r"A statement about a whole record or one of its columns with prior probability (?P<p>[\d.]+) has "
        r"posterior probability at most (?P<q>[\d.]+); one with (?P<r>[\d.]+) has at least (?P<s>[\d.e-]+)\.",
        lambda facts, said: (
            posterior(the(facts, ComponentNoise), the(facts, ComponentNoise).components) - 1e-12 <= float(said["q"]) < 1
        ),
        by_chance=True,
    ),
    Sentence(
        "bound of a value",
        rf"Each value of (?P<column>['\"].*['\"]) has {BOUND}",
        lambda facts, said: bound_of(
            facts, [fact for fact in every(facts, Randomized) if repr(fact.column) == said["column"]], said
        ),
        by_chance=True,
        assumed=lambda facts, said: any(
            said["column"] in map(repr, fact.columns) for fact in every(facts, DomainsObserved)
        ),
    ),
    Sentence(
        "bound of a row",
        rf"(A|(?P<gaps>Apart from missing cells, a)) row of (?P<columns>\d+) columns? has {BOUND}",
        lambda facts, said: (
            bound_of(facts, every(facts, Randomized), said)
            and int(said["columns"]) == len(every(facts, Randomized))
            and (said["gaps"] is not None) == any(fact.missing_columns > 0 for fact in every(facts, PassedThrough))
        ),
        by_chance=True,
        assumed=lambda facts, said: has(facts, DomainsObserved),
    ),
    Sentence(
        "joined",
        r"Every record behind the rows joined a group that, including it, was at least as large as its "
        r"privacy level \((?P<k>\d+) or more\)\.",
        lambda facts, said: int(said["k"]) == the(facts, Maintained).k and not has(facts, PersonRowsBounded),
    ),
    Sentence(
        "persons joined",
        r"Every record behind the rows joined a group that, including it, had at least as many different "
        r"persons as its privacy level \((?P<k>\d+) or more\)\.",
        lambda facts, said: int(said["k"]) * the(facts, PersonRowsBounded).most == the(facts, Maintained).k,
    ),
    Sentence(
        "epochs",
        r"Between epochs, the rows of a family of groups change only after at least (?P<fresh>\d+) new "
        r"records; all other rows are repeated unchanged\.",
        lambda facts, said: (
            int(said["fresh"]) == min(line.fresh for line in every(facts, EpochPublished) if line.renewed)
            and int(said["fresh"]) >= the(facts, Maintained).k
            and int(said["epoch"]) == every(facts, EpochPublished)[-1].epoch
            and int(said["renewed"]) == every(facts, EpochPublished)[-1].renewed
            and int(said["repeated"]) == every(facts, EpochPublished)[-1].repeated
        ),
        basis=r"In epoch (?P<epoch>\d+), (?P<renewed>\d+) famil(y|ies) changed and (?P<repeated>\d+) (was|were) "
        r"repeated\. .*",
    ),
    Sentence(
        "stream no copies",
        r"Every released row was drawn from the mean and covariance of a group; no original record was "
        r"copied or kept for drawing\.",
        lambda facts, said: the(facts, Maintained).alike == 0,
    ),
    Sentence(
        "stream some drawn",
        r"(?P<drawn>\d+) of (?P<rows>\d+) released rows were drawn from the mean and covariance of a group; "
        r"none of these was copied, and no original record was kept for drawing\.",
        lambda facts, said: the(facts, Maintained).alike == int(said["rows"]) - int(said["drawn"]) > 0,
    ),
    Sentence(
        "never taken in",
        r"(?P<n>\d+) records? (was|were) held out of the stream as a control group, so no released row "
        r"depends on (it|them)\.",
        lambda facts, said: the(facts, RowsKept).outside == int(said["n"]) > 0,
    ),
    Sentence(
        "rows deleted",
        r"The original rows kept for measuring releases have been deleted from the data owner's state\.",
        lambda facts, said: the(facts, RowsKept).forgotten and the(facts, RowsKept).rows == 0,
    ),
    Sentence(
        "ledger",
        r"(?P<n>\d+) data owners made the table together; apart from (?P<lines>\d+) ledger lines?, no one "
        r"saw anything of another's cells in the clear\.",
        lambda facts, said: (
            the(facts, Joint).engine != "plain"
            and int(said["n"]) == len(the(facts, Joint).parties)
            and int(said["lines"]) == len(every(facts, Opened))
        ),
    ),
    Sentence(
        "shares",
        r"A share reveals nothing about the number that it belongs to\.",
        lambda facts, said: the(facts, Joint).engine != "plain",
        assumed=lambda facts, said: True,
    ),
    Sentence(
        "sums",
        r"Sums over all data owners show no owner's part to another, except in a group in which only one "
        r"other owner has rows\.",
        lambda facts, said: (
            the(facts, Joint).engine != "plain"
            and len(the(facts, Joint).parties) > 2
            and any(line.action == "sum" for line in every(facts, Opened))
        ),
    ),
    Sentence(
        "two noises",
        r"Against .* too, the odds of any statement about a whole record change by at most a factor of "
        rf"{LAPLACE}\.",
        lambda facts, said: (
            the(facts, Joint).engine != "plain"
            and the(facts, Joint).noise == "each"
            and int(said["m"]) == the(facts, ComponentNoise).components
            and float(said["scale"]) <= the(facts, ComponentNoise).scale
        ),
        by_chance=True,
    ),
)


def of(kind: type[Fact]) -> True_:
    return lambda facts, said: has(facts, kind)


REFUSED = (
    Sentence("near cells", r"A person's own values stay unknown in swapped columns\.", of(Swapped)),
    Sentence(
        "gaps not exchanged",
        r"The positions of missing cells were swapped too\.",
        lambda facts, said: the(facts, Swapped).missing > 0,
    ),
    Sentence("drawn people", r"Random sampling protects the people in the sample\.", of(Sampled)),
    Sentence("who was drawn", r"No one can tell whether a person was sampled\.", of(Sampled)),
    Sentence(
        "labels together", r"The labels of several columns disclose no more together than each alone\.", of(Aggregated)
    ),
    Sentence(
        "alone among rows",
        r"Every released row agrees with another one\.",
        lambda facts, said: the(facts, IdenticalRows).alone > 0,
    ),
    Sentence("cells as they are", r"The values of a released row come from different persons\.", of(Unchanged)),
    Sentence(
        "gaps tell",
        r"A missing cell reveals nothing about its value\.",
        lambda facts, said: has(facts, Blocked) or has(facts, Downgraded),
    ),
    Sentence(
        "rest of a row",
        r"The other columns stay unknown to anyone who finds a person's equivalence class\.",
        of(Blocked),
    ),
    Sentence("label told", r"The label '.*' cannot be inferred from the release\.", of(Downgraded)),
    Sentence(
        "labels shown",
        r"The label '.*' is hidden in every row\.",
        lambda facts, said: the(facts, Downgraded).hidden < the(facts, Downgraded).rows,
    ),
    Sentence(
        "items there are",
        r"A reader cannot learn which items occur\.",
        lambda facts, said: not the(facts, TransactionsRandomized).declared,
    ),
    Sentence(
        "transaction as a whole",
        r"A reader cannot learn the content of a whole transaction\.",
        lambda facts, said: the(facts, TransactionsRandomized).operator == "flip",
    ),
    Sentence(
        "transaction certain",
        r"No statement about a transaction becomes nearly certain after its release\.",
        lambda facts, said: the(facts, TransactionsRandomized).epsilon > math.log(1000),
    ),
    Sentence(
        "person certain",
        r"No statement about all transactions of a person becomes nearly certain\.",
        lambda facts, said: most_transactions(facts) * the(facts, TransactionsRandomized).epsilon > math.log(1000),
    ),
    Sentence(
        "sizes",
        r"The sizes of transactions are hidden\.",
        lambda facts, said: the(facts, TransactionsRandomized).longest > 0,
    ),
    Sentence(
        "which rules",
        r"No one can find out which rules were hidden\.",
        lambda facts, said: has(facts, RulesHidden),
    ),
    Sentence(
        "question marks",
        r"No one can tell what a question mark stands for\.",
        lambda facts, said: has(facts, RulesBlocked),
    ),
    Sentence(
        "people behind transactions",
        r"The people behind the transactions are protected\.",
        lambda facts, said: has(facts, RulesHidden) or has(facts, RulesBlocked),
    ),
    Sentence(
        "the last weight",
        r"A person's weight '.*' stays unknown to anyone who knows all other weights\.",
        of(WeightsScaled),
    ),
    Sentence(
        "rare pairs",
        r"Every pair of values tied by a rule is shared by as many records as the privacy level requires\.",
        lambda facts, said: the(facts, ColumnRulesKept).rare_pairs,
    ),
    Sentence(
        "several records of a person",
        r"Several records of a person disclose no more than one of them\.",
        lambda facts, said: (
            the(facts, PersonsInDistinctGroups).persons < the(facts, Grouped).records
            if has(facts, PersonsInDistinctGroups)
            else the(facts, PersonsBounded).persons < the(facts, ChainSynthesis).records
        ),
    ),
    Sentence(
        "number of records",
        r"The number of a person's records stays unknown to anyone who finds the person's group\.",
        lambda facts, said: has(facts, PersonsLinked),
    ),
    Sentence(
        "rows together",
        r"The linked rows of a person disclose no more than single rows\.",
        lambda facts, said: has(facts, PersonsLinked),
    ),
    Sentence(
        "more rows",
        r"More rows than original records disclose no more than equally many rows\.",
        lambda facts, said: the(facts, RowsDrawn).rows > the(facts, RowsDrawn).records,
    ),
    Sentence("anonymous", r"The table is anonymous\.", lambda facts, said: True),
    Sentence(
        "despite policy",
        r"The release meets the policy (?P<name>'.*'|\".*\")\.",
        lambda facts, said: repr(the(facts, DespitePolicy).policy) == said["name"],
    ),
    Sentence(
        "part despite policy",
        r"The part of '(?P<owner>.*)' meets the policy '(?P<name>.*)'\.",
        lambda facts, said: any(
            (each.owner, each.policy) == (said["owner"], said["name"]) for each in every(facts, PartJudged)
        ),
    ),
    Sentence(
        "part not measured",
        r"Attacks were run against the part of '(?P<owner>.*)' before the release\.",
        lambda facts, said: PartJudged(said["owner"], "not-measured") in facts,
    ),
    Sentence(
        "not signed by all",
        r"Every data owner signed this certificate\.",
        lambda facts, said: "" in the(facts, Joint).signers,
    ),
    Sentence(
        "seed", r"This table may be released\.", lambda facts, said: the(facts, RandomnessSource).mode == "dry-run"
    ),
    Sentence(
        "private",
        r"The release is differentially private\.",
        lambda facts, said: not has(facts, Randomized),
    ),
    Sentence(
        "which group",
        r"No one can tell in which (of the (?P<n>\d+) groups|group) a known person is\.",
        lambda facts, said: (
            (the(facts, Grouped) if has(facts, Grouped) else the(facts, Maintained)).groups == int(said["n"] or 1)
        ),
    ),
    Sentence(
        "all but one",
        r"The statistics of a group protect each member from the other members\.",
        lambda facts, said: has(facts, Grouped) or has(facts, Maintained),
    ),
    Sentence(
        "tiny",
        r"No record can be recovered from the statistics of its group\.",
        lambda facts, said: (the(facts, Grouped) if has(facts, Grouped) else the(facts, Maintained)).tiny > 0,
    ),
    Sentence(
        "combinations",
        r"A combination of values in a released row is shared by (?P<k>\d+) people\.",
        lambda facts, said: int(said["k"]) == the(facts, ChainSynthesis).k,
    ),
    Sentence(
        "equal rows", r"No released row equals an original record\.", lambda facts, said: has(facts, ChainSynthesis)
    ),
    Sentence(
        "values of a leaf",
        r"The values of a leaf's members stay unknown to anyone who finds the leaf\.",
        lambda facts, said: has(facts, ChainSynthesis),
    ),
    Sentence("alone", r"Every record is protected\.", lambda facts, said: the(facts, Grouped).alone > 0),
    Sentence(
        "copies",
        r"No released row is an original record\.",
        lambda facts, said: bool(copied(facts) if has(facts, Grouped) else the(facts, Maintained).alike),
    ),
    Sentence("no noise", r"The noise changes every record\.", lambda facts, said: bool(the(facts, Grouped).alike)),
    Sentence(
        "stratum",
        r"A reader cannot be certain of (the class label|the value of .*) of the people behind a row\.",
        of(Stratified),
    ),
    Sentence(
        "class", r"A reader cannot be certain of the class ['\"].*['\"] of the people behind a row\.", of(ClassPure)
    ),
    Sentence(
        "rare",
        r"Rare categories are hidden\.",
        lambda facts, said: has(facts, CountsKept) and all(fact.shown for fact in every(facts, RareValues)),
    ),
    Sentence(
        "rare in a group",
        r"Every category in a group is shared by several of its members\.",
        lambda facts, said: (
            (has(facts, CountsKept) and not the(facts, RareValues).shown)
            or (has(facts, Maintained) and (has(facts, RareValues) or the(facts, Maintained).missing_columns > 0))
        ),
    ),
    Sentence(
        "rare left",
        r"The release contains no category that fewer than (?P<k>\d+) persons in the (?P<where>table|stream) "
        r"have\.",
        lambda facts, said: (
            int(said["k"]) == the(facts, RareValues).k
            and the(facts, RareValues).shown
            and (said["where"] == "stream") == has(facts, Maintained)
        ),
    ),
    Sentence(
        "tails left",
        r"In each column separately, no released number or date lies beyond a cut-off computed from at least "
        r"(?P<k>\d+) persons\.",
        lambda facts, said: int(said["k"]) == the(facts, TailsCoded).k and the(facts, TailsCoded).method == "keep",
    ),
    Sentence(
        "order known",
        r"The order of the rows reveals nothing about the order of the original records\.",
        of(ShuffledWithin),
    ),
    Sentence(
        "noise undone",
        r"An attacker's error in the true numbers is as large as the noise\.",
        lambda facts, said: has(facts, Noised) or has(facts, ComponentNoise),
    ),
    Sentence(
        "made again",
        r"The table may be released again with new (noise|randomness)\.",
        lambda facts, said: any(has(facts, kind) for kind in (Noised, ComponentNoise, Randomized, Swapped, Sampled)),
    ),
    Sentence(
        "bounded noise",
        r"No released number proves anything about its original\.",
        lambda facts, said: the(facts, Noised).law == "uniform",
    ),
    Sentence(
        "zeros",
        r"Zeros and small numbers are hidden\.",
        lambda facts, said: the(facts, Noised).kind == "multiplicative",
    ),
    Sentence(
        "some rows",
        r"The additional noise protects every row\.",
        lambda facts, said: not any(fact.rows == the(facts, Enhanced).rows for fact in every(facts, Shuffled)),
    ),
    Sentence(
        "bounds",
        r"Every column keeps its mean, and its variance grows by that of the noise\.",
        of(BoundsKept),
    ),
    Sentence("untouched", r"Every column is protected\.", of(PassedThrough)),
    Sentence(
        "reversible",
        r"The transformation \(.*\) hides the numbers of (?P<n>\d+) columns? from a recipient\.",
        lambda facts, said: int(said["n"]) == len(the(facts, Transformed).columns),
    ),
    Sentence(
        "digits",
        r"The digits of the transformed numbers reveal nothing about the key\.",
        lambda facts, said: the(facts, Transformed).exact_digits,
    ),
    Sentence("target", r"A model of .* trained on this table predicts it in its original units\.", of(TargetMoved)),
    Sentence(
        "indistinguishable",
        r"A record is indistinguishable within its group of at least (?P<n>\d+)\.",
        lambda facts, said: int(said["n"]) == the(facts, Grouped).smallest and is_blurred(facts),
    ),
    Sentence(
        "narrow noise",
        r"The noise is always wide enough to hide a record\.",
        lambda facts, said: the(facts, Grouped).tiny > 0,
    ),
    Sentence(
        "void component",
        r"A statement about one principal component of a record stays uncertain\.",
        lambda facts, said: posterior(the(facts, ComponentNoise), 1) > 0.99,
    ),
    Sentence(
        "void record",
        r"A statement about a whole record or one of its columns stays uncertain\.",
        lambda facts, said: posterior(the(facts, ComponentNoise), the(facts, ComponentNoise).components) > 0.99,
    ),
    Sentence("relative", r"The bounds are relative to what was known before the release\.", of(ComponentNoise)),
    Sentence(
        "not a column",
        r"The bound for one component is a bound for one column\.",
        lambda facts, said: the(facts, ComponentNoise).components > 1,
    ),
    Sentence(
        "void value",
        r"What a released value of (?P<column>['\"].*['\"]) reveals about the true value is bounded\.",
        lambda facts, said: any(
            repr(fact.column) == said["column"] and fact.gamma is None for fact in every(facts, Randomized)
        ),
    ),
    Sentence(
        "void row",
        r"What a whole released row reveals about its person is bounded\.",
        lambda facts, said: (
            any(fact.gamma is None for fact in every(facts, Randomized))
            or sum(fact.epsilon or 0.0 for fact in every(facts, Randomized)) > 700
        ),
    ),
    Sentence("observed", r"The bounds of the randomized columns hold for everyone\.", of(DomainsObserved)),
    Sentence(
        "last arrival",
        r"A new record stays hidden from anyone who contributed the other new records\.",
        of(Maintained),
    ),
    Sentence("when", r"No one can tell when a record was added\.", of(Maintained)),
    Sentence(
        "rows kept",
        r"The data owner keeps no original record\.",
        lambda facts, said: (
            not the(facts, RowsKept).forgotten and the(facts, RowsKept).rows + the(facts, RowsKept).outside > 0
        ),
    ),
    Sentence(
        "pseudo",
        r"Each group represents as many people as it has rows\.",
        lambda facts, said: the(facts, Maintained).pseudo > 0,
    ),
    Sentence(
        "short",
        r"Each group is as large as the highest privacy level among the records behind it\.",
        lambda facts, said: the(facts, Maintained).short > 0,
    ),
    Sentence(
        "in the clear",
        r"The data owners hid their cells from each other\.",
        lambda facts, said: the(facts, Joint).engine == "plain",
    ),
    Sentence("owners before", r"The bounds are relative to what an owner knew before the run\.", of(Joint)),
    Sentence("protocol", r"The run is safe from an owner who does not follow the protocol\.", of(Joint)),
    Sentence(
        "mark",
        r"A record that alone (has|among all other owners' rows of a group has) a category, or a missing "
        r"cell, .*stays hidden from .*\.",
        lambda facts, said: the(facts, Joint).bare > 0 or has(facts, CountsKept),
    ),
    Sentence(
        "two owners",
        r"The (secure sums hide|opened sum hides) the two owners from each other\.",
        lambda facts, said: len(the(facts, Joint).parties) == 2,
    ),
    Sentence("common keys", r"All records of the data owners are in the table\.", of(KeysMatched)),
    Sentence("statistics seen", r"The statistics of the groups are hidden from the owners\.", of(Joint)),
    Sentence("which group of owners", r"The owners cannot tell in which group a person is\.", of(Joint)),
    Sentence("whose", r"The owners cannot tell whose (row is|rows are) whose\.", of(Joint)),
    Sentence(
        "columns of a group",
        r"The columns of a group stay hidden from an owner who knows most of its records\.",
        lambda facts, said: the(facts, Joint).partition == "vertical",
    ),
    Sentence(
        "keys",
        r"No one learns which records another owner has\.",
        lambda facts, said: the(facts, Joint).partition == "vertical",
    ),
    Sentence(
        "component of an owner",
        r"The bound for one component holds against another owner\.",
        lambda facts, said: the(facts, ComponentNoise).components > 1,
    ),
    Sentence(
        "halves", r"The bounds hold against '\w+' and '\w+'\.", lambda facts, said: the(facts, Joint).noise == "split"
    ),
    Sentence(
        "bare",
        r"Every row stays hidden from the other owners\.",
        lambda facts, said: the(facts, Joint).bare > 0 and the(facts, Joint).partition == "horizontal",
    ),
    Sentence(
        "rest of a group",
        r"A row stays hidden from owners who have the rest of its group together\.",
        lambda facts, said: the(facts, Joint).bare == 0 and the(facts, Joint).partition == "horizontal",
    ),
    Sentence(
        "rounds",
        r"The rounds of clustering reveal nothing about single rows to an owner\.",
        lambda facts, said: the(facts, Joint).centres == "each",
    ),
    Sentence(
        "attacks were tried",
        r"Attacks were run against this table before its release\.",
        lambda facts, said: NoMeasurement() in facts,
    ),
)

CONTRADICTIONS = {
    ("rows alike", "alone among rows"),
    ("blocked", "alone among rows"),
    ("whole transaction", "transaction certain"),
    ("transactions of a person", "person certain"),
    ("whole transaction", "transaction as a whole"),
    ("hidden rules", "question marks"),
    ("condensed", "alone"),
    ("no copies", "copies"),
    ("no copies", "equal rows"),
    ("rare categories", "rare"),
    ("rare categories", "rare left"),
    ("tails", "tails left"),
    ("no copies", "alone"),
    ("stream no copies", "copies"),
    ("order", "order known"),
    ("order", "whose"),
    ("bound of a component", "void component"),
    ("bound of a record", "void record"),
    ("bound of a row", "void row"),
    ("bound of a row", "void value"),
    ("ledger", "in the clear"),
    ("shares", "in the clear"),
    ("sums", "in the clear"),
    ("two noises", "in the clear"),
    ("two noises", "halves"),
}
"""A claim and a refused claim that cannot stand on one certificate."""

RIVALS = (
    {"condensed", "persons apart", "put", "some alone", "noised groups", "cells of leaves"},
    {"no copies", "some drawn", "stream no copies", "stream some drawn"},
    {"order", "order for readers", "order in runs"},
    {"exchanged in pairs", "exchanged in leaves", "sampled", "blocked", "downgraded", "noise", "component noise"},
    {"pure classes", "one class"},
)
"""Claims of which one certificate holds at most one."""
