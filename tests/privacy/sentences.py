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
    Aggregated,
    Alike,
    BasketPersons,
    BasketsRandomized,
    BasketsReleased,
    Blocked,
    BoundsKept,
    Celled,
    Chained,
    ClassPure,
    ColumnRulesKept,
    ColumnsDropped,
    ComponentNoise,
    CountsKept,
    DatesCoarsened,
    DespitePolicy,
    DomainsObserved,
    Downgraded,
    Drawn,
    Enhanced,
    EpochPublished,
    Fact,
    Grouped,
    Joint,
    Maintained,
    Noised,
    Opened,
    PersonRowsBounded,
    PersonsApart,
    PersonsBounded,
    PersonsLinked,
    Randomized,
    RareValues,
    RowsDrawn,
    RowsKept,
    RulesBlocked,
    RulesHidden,
    Sampled,
    Scored,
    Shuffled,
    ShuffledWithin,
    Stratified,
    Swapped,
    Synthesized,
    TailsCoded,
    TargetMoved,
    Transformed,
    Unchanged,
    UnlabelledRows,
    Unmeasured,
    Untouched,
    WeightsScaled,
)

Facts = tuple[Fact, ...]
F = TypeVar("F", bound=Fact)
True_ = Callable[[Facts, dict[str, str]], bool]


@dataclass(frozen=True)
class Sentence:
    """A sentence of a certificate; ``by_chance`` where it is only proved of randomness that nobody knows."""

    name: str
    pattern: str
    true: True_
    by_chance: bool = False
    assumed: True_ = lambda facts, said: False

    def match(self, text: str) -> dict[str, str] | None:
        found = re.fullmatch(self.pattern, text)
        return None if found is None else found.groupdict()


def every(facts: Facts, kind: type[F]) -> list[F]:
    return [fact for fact in facts if isinstance(fact, kind)]


def has(facts: Facts, kind: type[Fact]) -> bool:
    return bool(every(facts, kind))


def the(facts: Facts, kind: type[F]) -> F:
    return every(facts, kind)[0]


def released(facts: Facts) -> bool:
    return any(fact.mode == "release" for fact in every(facts, Drawn))


def plural(text: str) -> bool:
    """Tell whether no count of one stands before a plural, and no other before a singular."""
    return re.search(r"\b1 (columns|rows|records|persons|groups|families|lines|rounds|classes)\b", text) is None


def posterior(fact: ComponentNoise, components: int) -> float:
    odds = fact.rho1 / (1 - fact.rho1) * math.exp(min(700.0, components / fact.scale))
    return odds / (1 + odds)


def bound_of(facts: Facts, columns: list[Randomized], said: dict[str, str]) -> bool:
    """A bound is never below what it bounds, and not by a thousandth above it."""
    gamma = math.exp(min(700.0, sum(fact.epsilon or 0.0 for fact in columns)))
    told = float(said["gamma"])
    return all(fact.epsilon is not None for fact in columns) and gamma * (1 - 1e-9) <= told <= gamma * 1.002


def excepted(facts: Facts, but: str | None) -> bool:
    """Whether just what was not drawn is excepted: columns that a rule makes, and weights that were scaled."""
    ruled, scaled = "that a rule between columns makes from others" in (but or ""), "scaled afterwards" in (but or "")
    return ruled == has(facts, ColumnRulesKept) and scaled == has(facts, WeightsScaled)


def is_blurred(facts: Facts) -> bool:
    return has(facts, ComponentNoise)


def parted(facts: Facts) -> bool:
    """Whether rows were drawn from several parts of the table."""
    return any(fact.cells > 1 for fact in every(facts, Celled))


def copied(facts: Facts) -> int | None:
    return the(facts, Grouped).alike if has(facts, Grouped) else None


def widened(facts: Facts) -> set[str]:
    """Columns whose values became wider before anything else was done."""
    return {name for fact in facts if isinstance(fact, Aggregated | DatesCoarsened) for name in fact.columns}


def serfling(fact: Sampled) -> float:
    """Serfling's bound, from its tail: exp(-2 n t^2 / (1 - (n - 1) / N)) = 0.025."""
    return math.sqrt(-math.log(0.025) * (1 - (fact.drawn - 1) / fact.persons) / (2 * fact.drawn))


LAPLACE = r"e\^\((?P<m>\d+)/(?P<scale>[\d.e+-]+)\)"
BOUND = r"(?P<gamma>[\d.e+]+) \(local differential privacy with epsilon (?P<epsilon>[\d.e+-]+)\); what was .*"


def basket_factor(facts: Facts, epsilon: float, said: str) -> bool:
    """A factor that is told is never below e^epsilon, and not by a thousandth above it."""
    return math.exp(min(700.0, epsilon)) * (1 - 1e-9) <= float(said) <= math.exp(min(700.0, epsilon)) * 1.002


def of_item(fact: BasketsRandomized) -> float:
    """Logarithm of the factor for one item that is flipped."""
    assert fact.keep is not None
    assert fact.insert is not None
    return math.log(max(fact.keep / fact.insert, (1 - fact.insert) / (1 - fact.keep)))


def most_baskets(facts: Facts) -> int:
    return max([fact.most for fact in every(facts, BasketPersons)], default=1)


CLAIMS = (
    Sentence(
        "cells kept",
        r"The cells of (?P<n>\d+) columns? \(.*\) are (?P<wide>after their values were widened, )?those of the "
        r"original, each as often as there\.",
        lambda facts, said: (
            int(said["n"]) == len(the(facts, Swapped).columns)
            and (said["wide"] is not None) == bool(widened(facts) & set(the(facts, Swapped).columns))
        ),
    ),
    Sentence(
        "exchanged in pairs",
        r"Cells were exchanged in pairs of rows of different persons, at most (?P<window>[\d.]+) percent of the cells "
        r"of a column apart in rank; (?P<changed>\d+) of (?P<cells>\d+) cells are another value than before\.",
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
        r"Cells were put into random order within each of the (?P<leaves>\d+) (leaf|leaves) of a tree that tells "
        r"'.*'; the smallest leaf has (?P<least>\d+) persons?; (?P<changed>\d+) of \d+ cells are another value than "
        r"before\.",
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
        r"The (?P<rows>\d+) rows? of (?P<drawn>\d+) of (?P<persons>\d+) persons?, drawn at random with the same chance "
        r"for everybody, are in the release, and nobody else's\.",
        lambda facts, said: (
            int(said["rows"]) == the(facts, Sampled).rows
            and int(said["drawn"]) == the(facts, Sampled).drawn <= int(said["persons"]) == the(facts, Sampled).persons
        ),
        by_chance=True,
    ),
    Sentence(
        "sampling error",
        r"Whatever is asked of each person, the share of those in the release of whom it is true differs from that of "
        r"all by at most (?P<error>[\d.]+), in 95 of 100 such samples\.",
        lambda facts, said: serfling(the(facts, Sampled)) - 1e-12 <= float(said["error"]) <= 1,
        by_chance=True,
    ),
    Sentence(
        "wider labels",
        r"The values of (?P<n>\d+) columns? are given as labels of a hierarchy(?P<other>, or as one named other)?: "
        r".*\.",
        lambda facts, said: (
            int(said["n"]) == len(the(facts, Aggregated).columns)
            and (said["other"] is not None) == any(not fact.shown for fact in every(facts, RareValues))
        ),
    ),
    Sentence(
        "rows alike",
        r"Every released row is one of at least (?P<fewest>\d+) that are equal in (?P<n>\d+) columns? \(.*\)\.",
        lambda facts, said: (
            int(said["fewest"]) == the(facts, Alike).fewest > 1
            and the(facts, Alike).alone == 0
            and int(said["n"]) == len(the(facts, Alike).columns)
        ),
    ),
    Sentence(
        "blocked",
        r"What a released row shows of (?P<n>\d+) columns? \(.*\) is shown by the rows of at least (?P<least>\d+) "
        r"different persons, and of as many as any of these asked for; (?P<cells>\d+) cells? "
        r"became missing for it\.",
        lambda facts, said: (
            int(said["n"]) == len(the(facts, Blocked).columns)
            and int(said["least"]) == the(facts, Blocked).least > 1
            and int(said["cells"]) == sum(the(facts, Blocked).cells)
        ),
    ),
    Sentence(
        "downgraded",
        r"The label '.*' of (?P<hidden>\d+) rows? is missing, and a decision tree grown on these rows as they are "
        r"here, with their true labels, has no rule that lowers the entropy of the label by more than "
        r"(?P<most>[\d.e+-]+) bits \((?P<before>\d+) rules? before, (?P<after>\d+) after; (?P<cells>\d+) other cells? "
        r"became missing for it\)\.",
        lambda facts, said: (
            int(said["hidden"]) == the(facts, Downgraded).hidden > 0
            and float(said["most"]) >= the(facts, Downgraded).most
            and int(said["before"]) == the(facts, Downgraded).rules_before
            and int(said["after"]) == the(facts, Downgraded).rules_after
            and int(said["cells"]) == sum(the(facts, Downgraded).cells)
        ),
    ),
    Sentence(
        "item of a basket",
        r"To somebody who knows all other items of a basket, seeing it changes the odds that one more item was in it "
        r"by a factor of at most (?P<factor>[\d.e+]+)\.",
        lambda facts, said: (
            the(facts, BasketsRandomized).operator == "flip"
            and basket_factor(facts, of_item(the(facts, BasketsRandomized)), said["factor"])
        ),
        by_chance=True,
        assumed=lambda facts, said: not the(facts, BasketsRandomized).declared,
    ),
    Sentence(
        "item of a person's baskets",
        r"Over all baskets of one person, at most (?P<most>\d+), the odds that an item was in all of them rather "
        r"than in none change by a factor of at most (?P<factor>[\d.e+]+)\.",
        lambda facts, said: (
            int(said["most"]) == most_baskets(facts) > 1
            and the(facts, BasketsRandomized).operator == "flip"
            and basket_factor(facts, most_baskets(facts) * of_item(the(facts, BasketsRandomized)), said["factor"])
        ),
        by_chance=True,
        assumed=lambda facts, said: not the(facts, BasketsRandomized).declared,
    ),
    Sentence(
        "whole basket",
        r"To somebody who knows the size of a basket, seeing it changes the odds of whatever may be said of its items "
        r"by a factor of at most (?P<factor>[\d.e+]+)\.",
        lambda facts, said: (
            the(facts, BasketsRandomized).operator != "flip"
            and basket_factor(facts, the(facts, BasketsRandomized).epsilon, said["factor"])
        ),
        by_chance=True,
        assumed=lambda facts, said: not the(facts, BasketsRandomized).declared,
    ),
    Sentence(
        "baskets of a person",
        r"Over all baskets of one person, at most (?P<most>\d+), odds change by a factor of at most "
        r"(?P<factor>[\d.e+]+)\.",
        lambda facts, said: (
            int(said["most"]) == most_baskets(facts) > 1
            and the(facts, BasketsRandomized).operator != "flip"
            and basket_factor(facts, most_baskets(facts) * the(facts, BasketsRandomized).epsilon, said["factor"])
        ),
        by_chance=True,
        assumed=lambda facts, said: not the(facts, BasketsRandomized).declared,
    ),
    Sentence(
        "hidden rules",
        r"None of the rules that the owner named, (?P<n>\d+) in all, holds in the released baskets, at a support of "
        r"(?P<support>[\d.e-]+) and a confidence of (?P<confidence>[\d.e-]+)\.",
        lambda facts, said: (
            int(said["n"]) == the(facts, RulesHidden).rules
            and math.isclose(float(said["support"]), the(facts, RulesHidden).min_support, rel_tol=1e-5)
            and math.isclose(float(said["confidence"]), the(facts, RulesHidden).min_confidence, rel_tol=1e-5)
        ),
    ),
    Sentence(
        "blocked rules",
        r"None of the rules that the owner named, (?P<n>\d+) in all, surely holds in the released baskets, at a "
        r"support of (?P<support>[\d.e-]+) and a confidence of (?P<confidence>[\d.e-]+)\.",
        lambda facts, said: (
            int(said["n"]) == the(facts, RulesBlocked).rules
            and the(facts, BasketsReleased).unknown > 0
            and math.isclose(float(said["support"]), the(facts, RulesBlocked).min_support, rel_tol=1e-5)
        ),
    ),
    Sentence(
        "weights",
        r"The weights '.*' of the released rows add up to what those of the original records do"
        r"(?P<coded> once their tails are coded)?, (?P<total>[\d.e+-]+), up to [\d.e+-]+\.",
        lambda facts, said: (
            math.isclose(float(said["total"]), the(facts, WeightsScaled).total, rel_tol=1e-9)
            and (said["coded"] is not None) == any(fact.method != "keep" for fact in every(facts, TailsCoded))
        ),
    ),
    Sentence(
        "months",
        r"The release gives the dates of (?P<n>\d+) columns? to the month, never to the day: .*\.",
        lambda facts, said: int(said["n"]) == len(the(facts, DatesCoarsened).columns) > 0,
    ),
    Sentence(
        "rules",
        r"Every released row obeys (?P<n>\d+) rules? between columns: .*\.",
        lambda facts, said: int(said["n"]) == len(the(facts, ColumnRulesKept).rules) > 0,
    ),
    Sentence(
        "condensed",
        r"Each of the (?P<n>\d+) original records was condensed with others into a group at least as large as its own "
        r"privacy level; the smallest group has (?P<least>\d+)\.",
        lambda facts, said: (
            has(facts, Synthesized)
            and not is_blurred(facts)
            and not has(facts, PersonsApart)
            and the(facts, Grouped).alone == 0
            and int(said["least"]) == the(facts, Grouped).smallest > 1
            and int(said["n"]) == the(facts, Grouped).records
        ),
    ),
    Sentence(
        "persons apart",
        r"The (?P<n>\d+) records? of (?P<persons>\d+) persons? were condensed into groups that hold at least as many "
        r"different persons as the privacy level of each record inside; the smallest group has "
        r"(?P<least>\d+) persons?\.",
        lambda facts, said: (
            has(facts, Synthesized)
            and int(said["persons"]) == the(facts, PersonsApart).persons <= the(facts, Grouped).records
            and int(said["least"]) == the(facts, Grouped).smallest <= the(facts, PersonsApart).persons
            and int(said["n"]) == the(facts, Grouped).records
        ),
    ),
    Sentence(
        "cells apart",
        r"No group holds records of two of the (?P<n>\d+) cells that the table was cut into; the smallest cell has "
        r"(?P<least>\d+) records?\.",
        lambda facts, said: (
            has(facts, Grouped)
            and int(said["n"]) == the(facts, Celled).cells > 1
            and int(said["least"]) == the(facts, Celled).smallest
            and int(said["n"]) * int(said["least"]) <= the(facts, Grouped).records
        ),
    ),
    Sentence(
        "one cell",
        r"The table was put into groups in one cell\.",
        lambda facts, _: has(facts, Grouped) and the(facts, Celled).cells == 1,
    ),
    Sentence(
        "parts apart",
        r"No leaf holds records of two of the (?P<n>\d+) parts that the table was cut into; the smallest part has "
        r"(?P<least>\d+) records?, and rows were drawn from each in proportion to its records\.",
        lambda facts, said: (
            int(said["n"]) == the(facts, Celled).cells > 1
            and int(said["least"]) == the(facts, Celled).smallest >= min(the(facts, Chained).smallest)
            and int(said["n"]) * int(said["least"]) <= the(facts, Chained).records
        ),
    ),
    Sentence(
        "one part",
        r"The table was drawn from as one part\.",
        lambda facts, _: has(facts, Chained) and the(facts, Celled).cells == 1,
    ),
    Sentence(
        "records left out",
        r"No released row was drawn from an original record that no group could take without holding its person twice "
        r"or being too small for its level\.",
        lambda facts, _: has(facts, PersonsApart) and not has(facts, PersonsLinked),
    ),
    Sentence(
        "records of many left out",
        r"No released row was drawn from an original record beyond those that enough persons have\.",
        lambda facts, _: has(facts, PersonsApart) and has(facts, PersonsLinked),
    ),
    Sentence(
        "persons drawn together",
        r"The rows of each of the (?P<n>\d+) released persons? were drawn together from the records of at least "
        r"(?P<least>\d+) persons? who have as many, those left out not counted\.",
        lambda facts, said: (
            has(facts, Synthesized)
            and int(said["n"]) == the(facts, PersonsLinked).persons == the(facts, PersonsApart).persons
            and int(said["least"]) == the(facts, Grouped).smallest
        ),
    ),
    Sentence(
        "numbers of persons",
        r"The numbers of (?P<name>'.*') say nothing of the values of the person column\.",
        lambda facts, said: repr(the(facts, PersonsLinked).column) == said["name"],
        by_chance=True,
    ),
    Sentence(
        "constant within persons",
        r"No released person has two values in a column that never changes within a person of the original: "
        r"(?P<names>.*)\.",
        lambda facts, said: said["names"].count("'") == 2 * len(the(facts, PersonsLinked).constant) > 0,
    ),
    Sentence(
        "put",
        r"Each of the (?P<n>\d+) original records was put into a group at least as large as its own privacy level; "
        r"the smallest group has (?P<least>\d+)\.",
        lambda facts, said: (
            not has(facts, Synthesized)
            and not is_blurred(facts)
            and int(said["least"]) == the(facts, Grouped).smallest > 1
            and int(said["n"]) == the(facts, Grouped).records
        ),
    ),
    Sentence(
        "some alone",
        r"The (?P<n>\d+) original records? w(as|ere) put into groups at least as large as the privacy level of each, "
        r"(?P<alone>\d+) records? of level 1 into groups of one\.",
        lambda facts, said: (
            not is_blurred(facts)
            and not has(facts, PersonsApart)
            and int(said["alone"]) == the(facts, Grouped).alone > 0
            and the(facts, Grouped).smallest == 1
            and int(said["n"]) == the(facts, Grouped).records
        ),
    ),
    Sentence(
        "noised groups",
        r"Each of the (?P<n>\d+) original records was put into a group at least as large as its own privacy level, "
        r"and got noise in proportion to the ranges of that group; the smallest group has "
        r"(?P<least>\d+)\.",
        lambda facts, said: (
            is_blurred(facts)
            and int(said["n"]) == the(facts, Grouped).records
            and int(said["least"]) == the(facts, Grouped).smallest
        ),
    ),
    Sentence(
        "no copies",
        r"Every released row(?P<but>, but for [^;]*?,)? was drawn at random from the mean and covariance of a group "
        r"of at least "
        r"(?P<least>\d+) "
        r"records; no row was copied from an original record\.",
        lambda facts, said: (
            copied(facts) == 0
            and int(said["least"]) == the(facts, Grouped).smallest > 1
            and excepted(facts, said["but"])
        ),
    ),
    Sentence(
        "some drawn",
        r"(?P<drawn>\d+) of the (?P<rows>\d+) released rows(?P<but>, but for [^;]*?,)? were drawn at random from the "
        r"mean and covariance of a group "
        r"whose records differ; none of these was copied from an original record\.",
        lambda facts, said: (
            copied(facts) == int(said["rows"]) - int(said["drawn"]) > 0
            and excepted(facts, said["but"])
            and int(said["rows"]) == the(facts, Synthesized).rows > int(said["rows"]) - int(said["drawn"])
        ),
    ),
    Sentence(
        "rows of groups that differ",
        r"Every released row of a group whose records differ was drawn at random from its mean and covariance; none of "
        r"these was copied from an original record\.",
        lambda facts, said: has(facts, RowsDrawn) and bool(copied(facts)),
    ),
    Sentence(
        "chosen rows",
        r"Every released row fulfils the rule (?P<rule>'.*'|\".*\"), by which the owner chose what to draw\.",
        lambda facts, said: repr(the(facts, RowsDrawn).where) == said["rule"] and has(facts, Chained),
    ),
    Sentence(
        "numbers of scores",
        r"In (?P<columns>\d+) columns? of numbers a released number is computed from means of the numbers of at least "
        r"(?P<k>\d+) (original records|(?P<persons>persons)) each, and from numbers that as many hold\.",
        lambda facts, said: (
            (int(said["columns"]), int(said["k"])) == (the(facts, Scored).columns, the(facts, Scored).k)
            and (said["persons"] is not None) == has(facts, PersonsApart)
        ),
    ),
    Sentence(
        "cells of leaves",
        r"Each cell of the (?P<rows>\d+) released rows(?P<but>, but for [^;]*?,)? was drawn "
        r"from the cells of at least (?P<leaf>\d+) (original records that|persons who) "
        r"are (?P<part>in the same part of the table and )?alike in the columns drawn before it, and of at least as "
        r"many as any of these asked for; "
        r"the smallest such leaf has (?P<least>\d+)"
        r"(?P<persons> persons, and none supplies more than 2 in (?P<share>\d+) of what it is drawn from)?\."
        r"( In (?P<beyond>\d+) columns? of numbers(, in all or some (?P<inside>parts),)? what was drawn is how far "
        r"these records lie from a regression, over all records( of the part)?, on the columns before\.)?"
        r"( (In all or some (?P<within>parts) )?(?P<twice>\d+) column was drawn twice: first so that the others could "
        r"be drawn by it, then anew by all of them, and only the second draw is released\.)?"
        r"( A number that at least (?P<k>\d+) (records|(?P<who>persons)) hold may then have become, by chance, one "
        r"beside it that as many hold: at most a fiftieth of the column's numbers(?P<there> in the part)? lie "
        r"between\.)?",
        lambda facts, said: (
            int(said["rows"]) == the(facts, Chained).rows
            and excepted(facts, said["but"])
            and int(said["leaf"]) == the(facts, Chained).leaf <= int(said["least"]) == min(the(facts, Chained).smallest)
            and the(facts, Chained).violations == 0
            and int(said["beyond"] or 0) == len(the(facts, Chained).regressed)
            and int(said["twice"] or 0) == len(the(facts, Chained).twice)
            and (said["persons"] is not None) == has(facts, PersonsBounded)
            and said["share"] in (None, said["leaf"])
            and (said["part"] is not None) == parted(facts)
            and said["inside"] == ("parts" if parted(facts) and said["beyond"] else None)
            and said["within"] == ("parts" if parted(facts) and said["twice"] else None)
            and said["k"] == (str(the(facts, Chained).k) if the(facts, Chained).kept else None)
            and (said["who"] is not None) == (said["k"] is not None and has(facts, PersonsBounded))
            and (said["there"] is not None) == (said["k"] is not None and parted(facts))
        ),
    ),
    Sentence(
        "rare numbers",
        r"No number that fewer than (?P<k>\d+) (original records|(?P<persons>persons of the table)) hold was copied\.",
        lambda facts, said: (
            int(said["k"]) == the(facts, Chained).k > 1 and (said["persons"] is not None) == has(facts, PersonsBounded)
            if has(facts, Chained)
            else has(facts, Synthesized)
            and said["persons"] is not None
            and int(said["k"]) == the(facts, Grouped).smallest > 1
            and not any(fact.rare_pairs for fact in every(facts, ColumnRulesKept))
        ),
    ),
    Sentence(
        "rare categories",
        r"No category that fewer than (?P<k>\d+) persons of the (?P<where>table|stream) hold appears in the release\.",
        lambda facts, said: (
            int(said["k"]) == the(facts, RareValues).k > 1
            and not the(facts, RareValues).shown
            and (said["where"] == "stream") == has(facts, Maintained)
        ),
    ),
    Sentence(
        "columns without a common value",
        r"The release does not hold the columns without a value that as many persons hold as the highest privacy level "
        r"asks for \(.*\)\.",
        lambda facts, said: bool(the(facts, RareValues).dropped),
    ),
    Sentence(
        "tails",
        r"In each column, taken by itself, no released number or date lies beyond a limit that was computed from at "
        r"least (?P<k>\d+) persons\.",
        lambda facts, said: int(said["k"]) == the(facts, TailsCoded).k > 1 and the(facts, TailsCoded).method != "keep",
    ),
    Sentence(
        "pure classes",
        r"The class ['\"].*['\"] of every released row is that of all records of its group: no group mixes the "
        r"(?P<n>\d+) classes\.",
        lambda facts, said: int(said["n"]) == the(facts, ClassPure).classes > 1,
    ),
    Sentence(
        "one class",
        r"Every released row has the one class of (?P<column>['\"].*['\"]) that there is\.",
        lambda facts, said: the(facts, ClassPure).classes == 1,
    ),
    Sentence(
        "chosen group size",
        r"The group size, (?P<size>\d+), is the approximate greatest common divisor of the sizes of the classes\.",
        lambda facts, said: int(said["size"]) == the(facts, ClassPure).size > 0,
    ),
    Sentence(
        "rows without a class",
        r"No released row was made from an original row whose class (?P<column>['\"].*['\"]) is missing\.",
        lambda facts, said: bool(the(facts, UnlabelledRows).column),
    ),
    Sentence(
        "dropped",
        r"The release does not hold the (identifying columns|columns without any value|privacy levels) \(.*\)\.",
        lambda facts, said: bool(the(facts, ColumnsDropped).names),
    ),
    Sentence(
        "order",
        r"The order of the rows says nothing of the order or the groups of the original records\.",
        lambda facts, said: has(facts, Shuffled) and not has(facts, Joint),
        by_chance=True,
    ),
    Sentence(
        "order for readers",
        r"To readers who are not among the owners, the order of the rows says nothing of the order or the groups of "
        r"the "
        r"original records\.",
        lambda facts, said: has(facts, Shuffled) and has(facts, Joint),
        by_chance=True,
    ),
    Sentence(
        "order in runs",
        r"Within runs of at least (?P<rows>\d+) consecutive rows the order says nothing of that of the original\.",
        lambda facts, said: int(said["rows"]) == the(facts, ShuffledWithin).rows > 1,
        by_chance=True,
    ),
    Sentence(
        "noise",
        r"Every number of (?P<columns>\d+) columns? was (given noise|multiplied by a factor of mean 1) of a "
        r"(?P<law>\w+) "
        r"law with standard deviation (?P<size>[\d.]+)( times the column's own)?, drawn afresh for each row, .*\.",
        lambda facts, said: (
            int(said["columns"]) == the(facts, Noised).columns
            and float(said["size"]) == the(facts, Noised).size
            and said["law"] == the(facts, Noised).law
        ),
        by_chance=True,
    ),
    Sentence(
        "extra noise",
        r"(?P<rows>\d+) rows?, drawn at random, got extra noise\.",
        lambda facts, said: int(said["rows"]) == the(facts, Enhanced).rows,
        by_chance=True,
    ),
    Sentence(
        "component noise",
        r"Every principal component of every record got noise of a Laplace law of scale (?P<scale>[\d.e+-]+) times the "
        r"range of that component in the record's group, drawn afresh and independent of all else\.",
        lambda facts, said: math.isclose(float(said["scale"]), the(facts, ComponentNoise).scale, rel_tol=1e-5),
        by_chance=True,
    ),
    Sentence(
        "bound of a component",
        r"What is asked about one principal component of a record and had probability (?P<p>[\d.]+) looks no more "
        r"probable than (?P<q>[\d.]+) after the release; and what had (?P<r>[\d.]+) no less probable than "
        r"(?P<s>[\d.e-]+)\.",
        lambda facts, said: (
            posterior(the(facts, ComponentNoise), 1) - 1e-12 <= float(said["q"]) < 1
            and float(said["s"]) <= 1 - posterior(the(facts, ComponentNoise), 1) + 1e-12
        ),
        by_chance=True,
    ),
    Sentence(
        "bound of a record",
        r"What is asked about a whole record, or about one of its columns, and had probability (?P<p>[\d.]+) looks no "
        r"more probable than (?P<q>[\d.]+) after the release; and what had (?P<r>[\d.]+) no less probable than "
        r"(?P<s>[\d.e-]+)\.",
        lambda facts, said: (
            posterior(the(facts, ComponentNoise), the(facts, ComponentNoise).components) - 1e-12 <= float(said["q"]) < 1
        ),
        by_chance=True,
    ),
    Sentence(
        "bound of a value",
        r"Each value of (?P<column>['\"].*['\"]) was randomized by itself: whatever is released, the odds of anything "
        rf"about the true value change by at most a factor of {BOUND}\.",
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
        r"For a whole row of (?P<columns>\d+) columns?, the odds of anything about the person's values change by at "
        r"most "
        rf"a factor of {BOUND}\.( Which cells are missing is told on top of it\.)?",
        lambda facts, said: (
            bound_of(facts, every(facts, Randomized), said) and int(said["columns"]) == len(every(facts, Randomized))
        ),
        by_chance=True,
        assumed=lambda facts, said: has(facts, DomainsObserved),
    ),
    Sentence(
        "joined",
        r"Every record that stands behind the rows joined a group that, with it, was at least as large as its own "
        r"privacy level, (?P<k>\d+) or more, when it came; until there was one it waited and was not published\.",
        lambda facts, said: int(said["k"]) == the(facts, Maintained).k and not has(facts, PersonRowsBounded),
    ),
    Sentence(
        "persons joined",
        r"Every record that stands behind the rows joined a group that, with it, was of at least as many different "
        r"persons as its own privacy level, (?P<k>\d+) or more, when it came; until there was one it waited and was "
        r"not published\.",
        lambda facts, said: int(said["k"]) * the(facts, PersonRowsBounded).most == the(facts, Maintained).k,
    ),
    Sentence(
        "epochs",
        r"From one epoch to the next, the rows of a family of groups change only where at least (?P<fresh>\d+) records "
        r"are new behind them; all other rows are repeated unchanged\. In epoch (?P<epoch>\d+), (?P<renewed>\d+) "
        r"famil(y|ies) changed and (?P<repeated>\d+) (was|were) repeated\.",
        lambda facts, said: (
            int(said["fresh"]) == min(line.fresh for line in every(facts, EpochPublished) if line.renewed)
            and int(said["fresh"]) >= the(facts, Maintained).k
            and int(said["epoch"]) == every(facts, EpochPublished)[-1].epoch
            and int(said["renewed"]) == every(facts, EpochPublished)[-1].renewed
            and int(said["repeated"]) == every(facts, EpochPublished)[-1].repeated
        ),
    ),
    Sentence(
        "stream no copies",
        r"Every released row was drawn at random from the mean and covariance of a group; no row was copied from an "
        r"original record, and no original record was kept to draw from\.",
        lambda facts, said: the(facts, Maintained).alike == 0,
    ),
    Sentence(
        "stream some drawn",
        r"(?P<drawn>\d+) of the (?P<rows>\d+) released rows were drawn at random from the mean and covariance of a "
        r"group; "
        r"none of these was copied from an original record, and no original record was kept to draw from\.",
        lambda facts, said: the(facts, Maintained).alike == int(said["rows"]) - int(said["drawn"]) > 0,
    ),
    Sentence(
        "never taken in",
        r"(?P<n>\d+) records? that came (was|were) never taken into the stream, so no released row rests on "
        r"(it|them)\.",
        lambda facts, said: the(facts, RowsKept).outside == int(said["n"]) > 0,
    ),
    Sentence(
        "rows deleted",
        r"The original rows that were kept to measure releases by have been deleted from the owner's state\.",
        lambda facts, said: the(facts, RowsKept).forgotten and the(facts, RowsKept).rows == 0,
    ),
    Sentence(
        "ledger",
        r"The table was made by (?P<n>\d+) owners together \(.*\), each with some of the (rows|columns of all rows)\. "
        r"Nobody but its owner saw anything of a cell in the clear, save what the (?P<lines>\d+) lines? of the ledger "
        r"among the facts says?; all else went as shares or under masks\.",
        lambda facts, said: (
            the(facts, Joint).engine != "plain"
            and int(said["n"]) == len(the(facts, Joint).parties)
            and int(said["lines"]) == len(every(facts, Opened))
        ),
    ),
    Sentence(
        "shares",
        r"A share says nothing of the number that it is a share of\.",
        lambda facts, said: the(facts, Joint).engine != "plain",
        assumed=lambda facts, said: True,
    ),
    Sentence(
        "sums",
        r"Sums over all owners \(.*\) show the part of no single owner to another, save in a group where only one "
        r"other "
        r"has rows: what is left of the sum is then its part\.",
        lambda facts, said: (
            the(facts, Joint).engine != "plain"
            and len(the(facts, Joint).parties) > 2
            and any(line.action == "sum" for line in every(facts, Opened))
        ),
    ),
    Sentence(
        "two noises",
        r"Each of .* added a whole noise of that law, so that the other's is left when it takes its own off: against "
        rf"either of them, too, odds about a whole record change by a factor of at most {LAPLACE}\. The noise has "
        rf"twice "
        r"the variance of one\.",
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
    Sentence("near cells", r"A person's own cells stay unknown where cells were exchanged\.", of(Swapped)),
    Sentence(
        "gaps not exchanged",
        r"Which cells are missing was exchanged too\.",
        lambda facts, said: the(facts, Swapped).missing > 0,
    ),
    Sentence("drawn people", r"Being drawn at random protects the people who were drawn\.", of(Sampled)),
    Sentence("who was drawn", r"Nobody can tell whether a person was drawn\.", of(Sampled)),
    Sentence(
        "labels together", r"The labels of several columns tell no more together than each alone\.", of(Aggregated)
    ),
    Sentence(
        "alone among rows", r"Every released row is equal to another\.", lambda facts, said: the(facts, Alike).alone > 0
    ),
    Sentence("cells as they are", r"The cells of a released row are not those of one person\.", of(Unchanged)),
    Sentence(
        "gaps tell",
        r"A cell that is missing says nothing of its value\.",
        lambda facts, said: has(facts, Blocked) or has(facts, Downgraded),
    ),
    Sentence(
        "rest of a row", r"The rest of a row stays secret from whoever finds those who show the same\.", of(Blocked)
    ),
    Sentence("label told", r"The label '.*' cannot be told from the release\.", of(Downgraded)),
    Sentence(
        "labels shown",
        r"The label '.*' is hidden for everybody\.",
        lambda facts, said: the(facts, Downgraded).hidden < the(facts, Downgraded).rows,
    ),
    Sentence(
        "items there are",
        r"A reader cannot learn which items there are\.",
        lambda facts, said: not the(facts, BasketsRandomized).declared,
    ),
    Sentence(
        "basket as a whole",
        r"A reader cannot learn what is in a basket as a whole\.",
        lambda facts, said: the(facts, BasketsRandomized).operator == "flip",
    ),
    Sentence(
        "basket certain",
        r"Nothing that may be said of a basket becomes nearly certain to somebody who sees it\.",
        lambda facts, said: the(facts, BasketsRandomized).epsilon > math.log(1000),
    ),
    Sentence(
        "person certain",
        r"Nothing that may be said of a person's baskets together becomes nearly certain\.",
        lambda facts, said: most_baskets(facts) * the(facts, BasketsRandomized).epsilon > math.log(1000),
    ),
    Sentence(
        "sizes",
        r"The sizes of baskets are hidden\.",
        lambda facts, said: the(facts, BasketsRandomized).longest > 0,
    ),
    Sentence(
        "which rules",
        r"Nobody can find out which rules were hidden\.",
        lambda facts, said: has(facts, RulesHidden),
    ),
    Sentence(
        "question marks",
        r"Nobody can tell what a question mark stands for\.",
        lambda facts, said: has(facts, RulesBlocked),
    ),
    Sentence(
        "people behind baskets",
        r"The people behind the baskets are protected\.",
        lambda facts, said: has(facts, RulesHidden) or has(facts, RulesBlocked),
    ),
    Sentence(
        "the last weight",
        r"A person's weight '.*' stays unknown to whoever knows the weights of everybody else\.",
        of(WeightsScaled),
    ),
    Sentence(
        "rare pairs",
        r"Every pair of a label and what it decides is shared by as many records as the privacy level asks for\.",
        lambda facts, said: the(facts, ColumnRulesKept).rare_pairs,
    ),
    Sentence(
        "several records of a person",
        r"A person's several records give away no more than one of them does\.",
        lambda facts, said: (
            the(facts, PersonsApart).persons < the(facts, Grouped).records
            if has(facts, PersonsApart)
            else the(facts, PersonsBounded).persons < the(facts, Chained).records
        ),
    ),
    Sentence(
        "number of records",
        r"How many records a person has stays unknown to whoever finds that person's group\.",
        lambda facts, said: has(facts, PersonsLinked),
    ),
    Sentence(
        "rows together",
        r"Rows that stay together give away no more than single rows do\.",
        lambda facts, said: has(facts, PersonsLinked),
    ),
    Sentence(
        "more rows",
        r"More rows than there are records give away no more than as many would\.",
        lambda facts, said: the(facts, RowsDrawn).rows > the(facts, RowsDrawn).records,
    ),
    Sentence("anonymous", r"The table is anonymous\.", lambda facts, said: True),
    Sentence(
        "despite policy",
        r"The release meets the policy (?P<name>'.*'|\".*\")\.",
        lambda facts, said: repr(the(facts, DespitePolicy).policy) == said["name"],
    ),
    Sentence("seed", r"This table may be released\.", lambda facts, said: the(facts, Drawn).mode == "rehearsal"),
    Sentence(
        "private",
        r"The release is differentially private\.",
        lambda facts, said: not has(facts, Randomized),
    ),
    Sentence(
        "which group",
        r"Nobody can tell in which (of the (?P<n>\d+) groups|group) a known person is\.",
        lambda facts, said: (
            (the(facts, Grouped) if has(facts, Grouped) else the(facts, Maintained)).groups == int(said["n"] or 1)
        ),
    ),
    Sentence(
        "all but one",
        r"The statistics of a group stay safe from its own members\.",
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
        lambda facts, said: int(said["k"]) == the(facts, Chained).k,
    ),
    Sentence("equal rows", r"No released row equals an original record\.", lambda facts, said: has(facts, Chained)),
    Sentence(
        "values of a leaf",
        r"The values of a leaf's members stay unknown to whoever finds the leaf\.",
        lambda facts, said: has(facts, Chained),
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
        r"A reader cannot be sure of (the class label|the value of .*) of the people behind a row\.",
        of(Stratified),
    ),
    Sentence("class", r"A reader cannot be sure of the class ['\"].*['\"] of the people behind a row\.", of(ClassPure)),
    Sentence(
        "rare",
        r"Rare categories are hidden\.",
        lambda facts, said: has(facts, CountsKept) and all(fact.shown for fact in every(facts, RareValues)),
    ),
    Sentence(
        "rare in a group",
        r"Every category of a group is shared by several of its members\.",
        lambda facts, said: (
            (has(facts, CountsKept) and not the(facts, RareValues).shown)
            or (has(facts, Maintained) and (has(facts, RareValues) or the(facts, Maintained).missing_columns > 0))
        ),
    ),
    Sentence(
        "rare left",
        r"No category that fewer than (?P<k>\d+) persons of the (?P<where>table|stream) hold appears in the release\.",
        lambda facts, said: (
            int(said["k"]) == the(facts, RareValues).k
            and the(facts, RareValues).shown
            and (said["where"] == "stream") == has(facts, Maintained)
        ),
    ),
    Sentence(
        "tails left",
        r"In each column, taken by itself, no released number or date lies beyond a limit that was computed from at "
        r"least (?P<k>\d+) persons\.",
        lambda facts, said: int(said["k"]) == the(facts, TailsCoded).k and the(facts, TailsCoded).method == "keep",
    ),
    Sentence(
        "order known",
        r"The order of the rows says nothing of the order of the original records\.",
        of(ShuffledWithin),
    ),
    Sentence(
        "noise undone",
        r"An attacker stays as far from the true numbers as the noise is large\.",
        lambda facts, said: has(facts, Noised) or has(facts, ComponentNoise),
    ),
    Sentence(
        "made again",
        r"The table may be made again with fresh (noise|randomness)\.",
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
        r"The extra noise protects every row\.",
        lambda facts, said: not any(fact.rows == the(facts, Enhanced).rows for fact in every(facts, Shuffled)),
    ),
    Sentence(
        "bounds",
        r"Every column has the mean of the original, and the variance of the original and the noise together\.",
        of(BoundsKept),
    ),
    Sentence("untouched", r"Every column is protected\.", of(Untouched)),
    Sentence(
        "reversible",
        r"The numbers of the (?P<n>\d+) columns? that were moved \(.*\) are hidden from a recipient\.",
        lambda facts, said: int(said["n"]) == len(the(facts, Transformed).columns),
    ),
    Sentence(
        "digits",
        r"The digits of the moved numbers say nothing of the key\.",
        lambda facts, said: the(facts, Transformed).exact_digits,
    ),
    Sentence(
        "target", r"A model of .* that is learned from this table predicts it in its own units\.", of(TargetMoved)
    ),
    Sentence(
        "crowd",
        r"A record hides among the (?P<n>\d+) or more of its group\.",
        lambda facts, said: int(said["n"]) == the(facts, Grouped).smallest and is_blurred(facts),
    ),
    Sentence("narrow noise", r"The noise is as wide as a crowd\.", lambda facts, said: the(facts, Grouped).tiny > 0),
    Sentence(
        "void component",
        r"What is asked about one principal component of a record stays uncertain\.",
        lambda facts, said: posterior(the(facts, ComponentNoise), 1) > 0.99,
    ),
    Sentence(
        "void record",
        r"What is asked about a whole record, or about one of its columns, stays uncertain\.",
        lambda facts, said: posterior(the(facts, ComponentNoise), the(facts, ComponentNoise).components) > 0.99,
    ),
    Sentence("relative", r"The bounds hold against what was known before the release\.", of(ComponentNoise)),
    Sentence(
        "not a column",
        r"The bound for one component is a bound for one column\.",
        lambda facts, said: the(facts, ComponentNoise).components > 1,
    ),
    Sentence(
        "void value",
        r"There is a bound on what a released value of (?P<column>['\"].*['\"]) tells about the true one\.",
        lambda facts, said: any(
            repr(fact.column) == said["column"] and fact.gamma is None for fact in every(facts, Randomized)
        ),
    ),
    Sentence(
        "void row",
        r"There is a bound on what a whole released row tells about its person\.",
        lambda facts, said: (
            any(fact.gamma is None for fact in every(facts, Randomized))
            or sum(fact.epsilon or 0.0 for fact in every(facts, Randomized)) > 700
        ),
    ),
    Sentence("observed", r"The guarantees of the randomized columns hold for everybody\.", of(DomainsObserved)),
    Sentence(
        "last arrival",
        r"An arrival stays hidden from whoever brought the other arrivals\.",
        of(Maintained),
    ),
    Sentence("when", r"Nobody can tell when a record came\.", of(Maintained)),
    Sentence(
        "rows kept",
        r"The owner keeps no original record\.",
        lambda facts, said: (
            not the(facts, RowsKept).forgotten and the(facts, RowsKept).rows + the(facts, RowsKept).outside > 0
        ),
    ),
    Sentence(
        "pseudo",
        r"Each group stands for as many people as it has rows\.",
        lambda facts, said: the(facts, Maintained).pseudo > 0,
    ),
    Sentence(
        "short",
        r"Each group is as large as the highest privacy level among the records that it stems from\.",
        lambda facts, said: the(facts, Maintained).short > 0,
    ),
    Sentence(
        "in the clear",
        r"The owners kept their cells from each other\.",
        lambda facts, said: the(facts, Joint).engine == "plain",
    ),
    Sentence("owners before", r"The bounds hold against what an owner knew before the run\.", of(Joint)),
    Sentence("protocol", r"The run is safe from an owner that does not follow the protocol\.", of(Joint)),
    Sentence(
        "mark",
        r"A record that alone has a category, or a missing cell, in its group .* hidden from .*\.",
        lambda facts, said: the(facts, Joint).bare > 0 or has(facts, CountsKept),
    ),
    Sentence(
        "two owners",
        r"The (secure sums hide|sum that was opened hides) the two owners from each other\.",
        lambda facts, said: len(the(facts, Joint).parties) == 2,
    ),
    Sentence("whose", r"The owners cannot tell whose (row is|rows are) whose\.", of(Joint)),
    Sentence(
        "columns of a group",
        r"The columns of a group stay hidden from an owner that knows most of its records\.",
        lambda facts, said: the(facts, Joint).partition == "vertical",
    ),
    Sentence(
        "keys",
        r"Nobody learns which records another owner has\.",
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
        r"A row stays hidden from owners that have the rest of its group together\.",
        lambda facts, said: the(facts, Joint).bare == 0 and the(facts, Joint).partition == "horizontal",
    ),
    Sentence(
        "rounds",
        r"The rounds of clustering tell an owner nothing of single rows\.",
        lambda facts, said: the(facts, Joint).centres == "each",
    ),
    Sentence(
        "attacks were tried",
        r"Attacks were tried on this table before it left\.",
        lambda facts, said: Unmeasured() in facts,
    ),
)

CONTRADICTIONS = {
    ("rows alike", "alone among rows"),
    ("blocked", "alone among rows"),
    ("whole basket", "basket certain"),
    ("baskets of a person", "person certain"),
    ("whole basket", "basket as a whole"),
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
