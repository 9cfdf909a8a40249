"""Facts as engines state them, with random values, drawn from groups and rows that could have been."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import strategies as st

from sfumato.core.distributions.domains import Integers, Labels
from sfumato.core.distributions.operators import TransactionOperator
from sfumato.core.distributions.spec import NoiseSpec
from sfumato.core.facts import (
    BoundsKept,
    ColumnsDropped,
    DespitePolicy,
    Enhanced,
    Fact,
    HeldOut,
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
SPECS = (
    NoiseSpec(Integers(0, 20), {"name": "mixture", "weight": 0.5, "of": {"name": "shift-modulo", "reach": 2}}),
    NoiseSpec(Labels(("n", "s")), {"name": "response", "matrix": [[0.75, 0.25], [0.25, 0.75]]}),
    NoiseSpec(Integers(0, 9), {"name": "gaussian", "sd": 5}),
    NoiseSpec(Integers(0, 9), {"name": "uniform", "reach": 5}),
    NoiseSpec(Integers(0, 40), {"name": "laplace", "scale": 0.08}),
)
COLUMNS = ("age", "pay", "town", "class", "it's")


def maybe(fact: Fact) -> st.SearchStrategy[Facts]:
    return st.sampled_from(((), (fact,)))


@st.composite
def around(draw: Any) -> Facts:
    mode, generator = draw(st.sampled_from((("release", "ChaCha20"), ("dry-run", "PCG64"))))
    names = draw(st.sampled_from(((), ("name",), ("name", "id). The table is anonymous ("))))
    levels = draw(st.sampled_from(((), ("level",))))
    empty = draw(st.sampled_from(((), ("note",))))
    policy = draw(st.sampled_from(("research", "ours'. The table is anonymous ('")))
    despite = DespitePolicy(policy, draw(st.sampled_from(("does-not-meet", "inconclusive"))))
    return (
        RandomnessSource(mode, generator),
        ColumnsDropped(names, levels, empty),
        *draw(maybe(HeldOut(draw(st.integers(1, 9))))),
        *draw(maybe(UnlabelledRows("class", draw(st.integers(0, 9)), 5))),
        *draw(maybe(DatesCoarsened(("born", "died")[: draw(st.integers(1, 2))]))),
        *draw(st.sampled_from(((), (NoMeasurement(),), (despite,)))),
    )


@st.composite
def groups(draw: Any) -> Grouped:
    """Draw groups first, and then what is stated of them."""
    sizes = draw(st.lists(st.integers(1, 9), min_size=1, max_size=6))
    same = [size == 1 or draw(st.booleans()) for size in sizes]
    alike = sum(size for size, equal in zip(sizes, same, strict=True) if equal)
    return Grouped(
        algorithm="MDAV",
        records=sum(sizes),
        groups=len(sizes),
        smallest=min(sizes),
        violations=0,
        tiny=sum(size <= 3 for size in sizes),
        alone=sizes.count(1),
        alike=alike,
    )


@st.composite
def condensed(draw: Any) -> Facts:
    grouped = draw(groups())
    rules = ColumnRulesKept(("age <= pay", "town -> class")[: draw(st.integers(1, 2))], draw(st.booleans()))
    persons = draw(st.integers(grouped.smallest, grouped.records))
    asked = draw(maybe(RowsDrawn(grouped.records, draw(st.integers(1, 90)))))
    rows = asked[0].rows if asked else grouped.records
    apart = draw(maybe(PersonsInDistinctGroups(persons)))
    count = draw(st.integers(1, grouped.groups))
    cells = Partitioned(count, draw(st.integers(grouped.smallest, grouped.records // count)))
    sizes = st.sampled_from(((), (10, 5), (7, 7)))
    most, constant = -(-grouped.records // persons), ("age", "town")[: draw(st.integers(0, 2))]
    linked = () if asked or not apart else draw(maybe(PersonsLinked("released_person", persons, most, constant)))
    return (
        *draw(around()),
        *draw(rare_values(grouped.smallest)),
        *draw(tails(grouped.smallest)),
        *apart,
        *draw(maybe(Stratified(draw(st.sampled_from(COLUMNS)), draw(st.integers(1, 3)), draw(st.booleans())))),
        *(
            ()
            if linked
            else draw(maybe(ClassPure(draw(st.sampled_from(COLUMNS)), draw(st.integers(1, 3)), *draw(sizes))))
        ),
        *linked,
        grouped,
        GroupSynthesis("mean and covariance", "uniform along eigenvectors", rows),
        *draw(maybe(NormalScoreColumns(draw(st.integers(1, 3)), draw(st.integers(2, 9))))),
        *draw(maybe(CountsKept(1, draw(st.integers(0, 2))))),
        Shuffled(rows),
        *asked,
        *draw(maybe(rules)),
        *draw(maybe(WeightsScaled("weight", draw(st.floats(0.5, 1e6)), 0.5))),
        *draw(maybe(cells)),
    )


@st.composite
def rare_values(draw: Any, least: int) -> Facts:
    """Draw what became of rare values, if they were counted."""
    way = draw(st.sampled_from(("pool", "lift", "keep")))
    fact = RareValues(
        way,
        max(2, least),
        draw(st.integers(1, 4)),
        draw(st.integers(0, 1)),
        () if way == "keep" else draw(st.sampled_from(((), ("gone",), ("gone", "it's gone")))),
        draw(st.booleans()),
    )
    return tuple(draw(maybe(fact)))


@st.composite
def tails(draw: Any, least: int) -> Facts:
    """Draw what became of the ends of columns, if it is stated."""
    method = draw(st.sampled_from(("code", "smooth", "keep")))
    return tuple(draw(maybe(TailsCoded(method, max(2, least), draw(st.integers(1, 4)), draw(st.booleans())))))


@st.composite
def chained(draw: Any) -> Facts:
    """Draw the leaves of each column first, and then what is stated of them."""
    k = draw(st.integers(2, 4))
    leaf, asked = draw(st.integers(k, 6)), draw(st.integers(k, 8))
    rows, columns = draw(st.integers(16, 40)), COLUMNS[: draw(st.integers(1, 4))]
    bounded = draw(maybe(PersonsBounded(draw(st.integers(max(leaf, asked), rows)))))
    people = bounded[0].persons if bounded else rows
    smallest = tuple(draw(st.integers(max(leaf, asked), people)) for _ in columns)
    leaves = tuple(draw(st.integers(1, rows // least)) for least in smallest)
    smallest = tuple(people if count == 1 else least for count, least in zip(leaves, smallest, strict=True))
    wanted = draw(
        maybe(RowsDrawn(rows, draw(st.integers(20, 90)), draw(st.sampled_from(("", "age > 3", "age == 'It'")))))
    )
    out = wanted[0].rows if wanted else rows
    regressed = columns[1 : draw(st.integers(1, len(columns)))]
    fact = ChainSynthesis(
        columns=columns,
        leaves=leaves,
        smallest=smallest,
        alike=tuple(draw(st.integers(0, count)) for count in leaves),
        records=rows,
        rows=out,
        k=k,
        leaf=leaf,
        violations=0,
        kept=draw(st.integers(0, out // 2)),
        moved=draw(st.integers(0, out // 2)),
        regressed=regressed,
        twice=columns[-1:] if columns[-1] in regressed and draw(st.booleans()) else (),
    )
    strata = Stratified(draw(st.sampled_from(columns)), draw(st.integers(1, 2)), draw(st.booleans()))
    rules = ColumnRulesKept(("age <= pay",), draw(st.booleans()))
    count = draw(st.integers(1, min(leaves)))
    cells = Partitioned(count, rows // count)
    more = (*wanted, *bounded, *draw(maybe(rules)), *draw(maybe(cells)))
    known = [each for each in draw(around()) if not isinstance(each, UnlabelledRows) or each.column in columns]
    return (*known, *draw(rare_values(k)), *draw(tails(k)), *draw(maybe(strata)), fact, Shuffled(out), *more)


@st.composite
def component_noise(draw: Any) -> ComponentNoise:
    return ComponentNoise(
        "laplace",
        draw(st.sampled_from((0.01, 0.1997531, 0.2, 0.3, 1.0, 7.7, 1000.0))),
        draw(st.integers(1, 9)),
        draw(st.sampled_from(("component", "record"))),
        draw(st.sampled_from((0.001, 0.1, 0.5))),
        2.0**-20,
    )


@st.composite
def blurred(draw: Any) -> Facts:
    grouped = draw(groups())
    facts: Facts = (
        *draw(around()),
        grouped,
        draw(component_noise()),
        *draw(maybe(CountsKept(0, 1))),
        Shuffled(grouped.records),
    )
    if draw(st.booleans()):
        return facts
    clash = (PartJudged,) if NoMeasurement() in facts else ()
    return (*facts, *(fact for fact in draw(joint()) if not isinstance(fact, clash)))


@st.composite
def joint(draw: Any) -> Facts:
    parties = ("bank", "clinic", "shop", "school")[: draw(st.integers(2, 4))]
    vertical = draw(st.booleans())
    engine = draw(st.sampled_from(("plain", "cheetah", "aby3") if len(parties) > 2 else ("plain", "cheetah")))
    computing = parties[:3] if engine == "aby3" else (parties[0], parties[-1])
    run = Joint(
        "vertical" if vertical else "horizontal",
        parties,
        computing,
        engine,
        "" if vertical else draw(st.sampled_from(("last", "each"))),
        draw(st.sampled_from(("split", "each"))) if vertical else "",
        draw(st.integers(1, 3)),
        draw(st.integers(0, 2)),
        draw(st.sampled_from(((), ("SHA256:one", *[""] * (len(parties) - 1))))),
    )
    judged = (PartJudged(parties[0], "inconclusive", "ours"), PartJudged(parties[1], "not-measured"))
    lines = [
        Opened(f"line {place}", "this", draw(st.sampled_from(("opened", "sum"))), parties, 3, 1) for place in (1, 2)
    ]
    counts = tuple(draw(st.integers(40, 60)) for _ in parties)
    keys = (KeysMatched(min(counts), counts, counts, counts),) if vertical and draw(st.booleans()) else ()
    return (run, *keys, *lines[: draw(st.integers(1, 2))], *judged[: draw(st.integers(0, 2))])


@st.composite
def noised(draw: Any) -> Facts:
    rows, kind = draw(st.integers(1, 40)), draw(st.sampled_from(("additive", "multiplicative")))
    law = draw(st.sampled_from(("gaussian", "uniform", "laplace")))
    share = draw(st.sampled_from((0.05, 0.5, 1.0)))
    return (
        *draw(around()),
        Noised(law, kind, draw(st.sampled_from((0.5, 1.0, 2.25))), draw(st.integers(1, 3)), draw(st.booleans()), 0.01),
        *draw(maybe(Enhanced(share, min(rows, max(1, round(share * rows)))))),
        *draw(maybe(PassedThrough(draw(st.integers(0, 2)), 1))),
        *draw(maybe(BoundsKept(COLUMNS[: draw(st.integers(1, 3))]))),
        Shuffled(rows),
    )


@st.composite
def moved(draw: Any) -> Facts:
    rows, columns = draw(st.integers(1, 40)), COLUMNS[: draw(st.integers(1, 3))]
    share = draw(st.sampled_from((0.05, 1.0)))
    order: Fact = draw(st.sampled_from((Shuffled(rows), ShuffledWithin(1), ShuffledWithin(7))))
    return (
        *draw(around()),
        Transformed(
            draw(st.sampled_from((("add",), ("mult", "rotate")))), columns, draw(st.integers(1, 4)), draw(st.booleans())
        ),
        *draw(maybe(TargetMoved(columns[-1]))),
        *draw(maybe(Enhanced(share, min(rows, max(1, round(share * rows)))))),
        *draw(maybe(PassedThrough(1, draw(st.integers(0, 2))))),
        order,
    )


def randomized_column(column: str, spec: NoiseSpec) -> Randomized:
    gamma, epsilon = (number if math.isfinite(number) else None for number in (spec.gamma, spec.epsilon))
    return Randomized(column, spec.canonical, spec.digest, gamma, epsilon)


@st.composite
def randomized(draw: Any) -> Facts:
    names = COLUMNS[: draw(st.integers(1, 3))]
    columns = tuple(randomized_column(name, draw(st.sampled_from(SPECS))) for name in names)
    return (
        *draw(around()),
        *columns,
        *draw(maybe(DomainsObserved(names[: draw(st.integers(1, len(names)))]))),
        *draw(maybe(PassedThrough(0, 1))),
        Shuffled(draw(st.integers(1, 40))),
    )


@st.composite
def streamed(draw: Any) -> Facts:
    sizes = draw(st.lists(st.integers(1, 9), min_size=1, max_size=5))
    k = draw(st.integers(2, 4))
    levels = [draw(st.integers(k, 6)) for _ in sizes]
    short = sum(size < level for size, level in zip(sizes, levels, strict=True))
    rows, epochs = sum(sizes), draw(st.integers(1, 3))
    kept = Maintained(
        algorithm="AY05 dynamic maintenance",
        split="paper" if short else draw(st.sampled_from(("paper", "strict"))),
        k=k,
        groups=len(sizes),
        pseudo=draw(st.integers(0, len(sizes))),
        smallest=min(sizes),
        short=short,
        tiny=sum(size <= 3 for size in sizes),
        category_columns=draw(st.integers(0, 1)),
        missing_columns=draw(st.integers(0, 1)),
        alike=draw(st.sampled_from((0, draw(st.sampled_from(sizes)), rows))),
    )
    ledger = []
    for epoch in range(1, epochs + 1):
        renewed = draw(st.integers(0 if epoch > 1 else 1, 3))
        fresh = draw(st.integers(k, 12)) if renewed else 0
        ledger.append(EpochPublished(epoch, renewed, draw(st.integers(0, 2)), rows, fresh))
    measured = draw(
        st.sampled_from((RowsKept(0, 3, True), RowsKept(0, 1, True), RowsKept(7, 1, False), RowsKept(0, 0, False)))
    )
    several = draw(st.integers(1, 3))
    fits = not k % several and not max(levels) % several
    aside = draw(maybe(PersonRowsBounded(several))) if fits and draw(st.booleans()) else draw(maybe(measured))
    rare = rare_values(k).filter(bool) if kept.category_columns else rare_values(k)
    strata = draw(maybe(Stratified(draw(st.sampled_from(COLUMNS)), draw(st.integers(1, 3)), draw(st.booleans()))))
    return (*draw(around()), *strata, kept, *ledger, *aside, *draw(rare), *draw(tails(k)), Shuffled(rows))


OPERATORS = (
    TransactionOperator("flip", 30, keep=0.9, insert=0.1),
    TransactionOperator("flip", 5, keep=0.3, insert=0.001),
    TransactionOperator("uniform", 30, keep=0.4),
    TransactionOperator("cut-and-paste", 30, cutoff=2, insert=0.3),
    TransactionOperator("select-a-size", 30, gamma=2.5, insert=0.2),
)


def randomized_transactions(law: TransactionOperator, longest: int, *, declared: bool) -> TransactionsRandomized:
    size = longest if law.by_size else 0
    told = (law.name, law.width, law.keep, law.insert, law.cutoff, law.gamma)
    chosen = declared and law.name in ("flip", "select-a-size")
    return TransactionsRandomized(*told, size, law.epsilon_up_to(size), declared, chosen)


@st.composite
def transactions(draw: Any) -> Facts:
    """Draw how many transactions and entries there are, and then what was done to them."""
    rows, items, rules = draw(st.integers(2, 40)), draw(st.integers(1, 5)), draw(st.integers(1, 3))
    entries = draw(st.integers(items, rows * items - 1))
    support, confidence = draw(st.sampled_from(((0.01, 0.5), (1.0, 1.0), (0.3, 0.123456))))
    most = draw(st.integers(1, 4))
    way = draw(
        st.sampled_from(
            (
                randomized_transactions(
                    draw(st.sampled_from(OPERATORS)), draw(st.integers(1, 6)), declared=draw(st.booleans())
                ),
                RulesHidden("consequent", rules, support, confidence, draw(st.integers(1, 9)), 0),
                RulesHidden("antecedent", rules, support, confidence, 0, draw(st.integers(1, 9))),
                RulesBlocked(rules, support, confidence, 0.1),
            )
        )
    )
    unknown = 1 if isinstance(way, RulesBlocked) else 0
    return (
        *draw(around()),
        *draw(maybe(TransactionPersons(-(-rows // most), most))),
        way,
        TransactionsReleased(rows, items, entries, unknown),
        Shuffled(rows),
    )


@st.composite
def modified(draw: Any) -> Facts:
    """Draw what one of the classic modifications states of its rows."""
    rows = draw(st.integers(4, 40))
    way = draw(st.sampled_from((swapped, sampled, widened, blocked, downgraded)))
    wide = Aggregated(("died", "born"), ("calendar", "file"), (draw(st.integers(1, 3)), 1))
    return (*draw(around()), *draw(maybe(wide)), *draw(way(rows)))


def as_they_are(draw: Any, *columns: str) -> Unchanged:
    return Unchanged(columns, draw(st.integers(0, len(columns))))


@st.composite
def swapped(draw: Any, rows: int) -> Facts:
    columns = COLUMNS[: draw(st.integers(1, 3))]
    changed = tuple(draw(st.integers(0, rows)) for _ in columns)
    missing = draw(st.integers(0, len(columns)))
    if draw(st.booleans()):
        fact = Swapped("window", columns, changed, rows, draw(st.sampled_from((0.5, 5.0, 100.0))), missing=missing)
    else:
        smallest = draw(st.integers(1, rows))
        leaves = draw(st.integers(1, rows // smallest))
        fact = Swapped("leaves", columns, changed, rows, None, "class", leaves, smallest, missing)
    return (fact, *draw(maybe(as_they_are(draw, "class", "it's"))), Shuffled(rows))


@st.composite
def sampled(draw: Any, rows: int) -> Facts:
    drawn = draw(st.integers(2, rows))
    persons = draw(st.integers(drawn, 3 * drawn))
    told = draw(st.booleans())
    more = rows + persons - drawn + draw(st.integers(0, 50)) if persons > drawn else rows
    fact = Sampled(max(more, persons), rows, persons, drawn, True) if told else Sampled(persons, drawn, persons, drawn)
    return (fact, as_they_are(draw, *COLUMNS[:2]), Shuffled(fact.rows))


def equivalence_classes(draw: Any, columns: tuple[str, ...], rows: int, least: int) -> IdenticalRows:
    fewest = draw(st.integers(least, rows))
    return IdenticalRows(columns, rows, fewest, draw(st.integers(1, rows)) if fewest == 1 else 0)


@st.composite
def widened(draw: Any, rows: int) -> Facts:
    columns = COLUMNS[: draw(st.integers(1, 4))]
    return (as_they_are(draw, *columns), equivalence_classes(draw, columns, rows, 1), Shuffled(rows))


@st.composite
def blocked(draw: Any, rows: int) -> Facts:
    columns = COLUMNS[: draw(st.integers(1, 3))]
    asked = draw(st.integers(2, rows))
    least = draw(st.integers(asked, rows))
    cells = tuple(draw(st.integers(0, rows)) for _ in columns)
    fact = Blocked(columns, cells, rows, least, draw(st.booleans()))
    return (fact, equivalence_classes(draw, columns, rows, least), as_they_are(draw, *columns), Shuffled(rows))


@st.composite
def downgraded(draw: Any, rows: int) -> Facts:
    columns = COLUMNS[: draw(st.integers(0, 3))]
    hidden, limit = draw(st.integers(1, rows)), draw(st.sampled_from((0.0, 0.1, 1.0)))
    fact = Downgraded(
        "class",
        rows,
        hidden,
        limit,
        draw(st.sampled_from((0.0, limit / 3, limit))),
        draw(st.integers(1, rows)),
        draw(st.integers(1, rows)),
        columns,
        tuple(draw(st.integers(1, hidden)) for _ in columns),
    )
    return (fact, *draw(maybe(as_they_are(draw, *COLUMNS[:3]))), Shuffled(rows))


ENGINES = (transactions, condensed, chained, blurred, noised, moved, randomized, streamed, modified)
engine_facts: st.SearchStrategy[Facts] = st.one_of(*(engine() for engine in ENGINES))


@st.composite
def any_facts(draw: Any) -> Facts:
    """Draw a part of what one engine states, or of what two do: most of it cannot be."""
    facts = draw(engine_facts) if draw(st.booleans()) else (*draw(engine_facts), *draw(engine_facts))
    kept = draw(st.lists(st.booleans(), min_size=len(facts), max_size=len(facts)))
    return tuple(fact for fact, keep in zip(facts, kept, strict=True) if keep)
