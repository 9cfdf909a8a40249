"""One step at a time: which changed parameter or fact of a certificate a review sees, and which counts."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from sfumato.certificate import Certificate
from sfumato.core.errors import SfumatoError
from sfumato.core.facts import (
    ColumnsDropped,
    Context,
    Enhanced,
    Fact,
    PassedThrough,
    RandomnessSource,
    ReleasedColumns,
    Shuffled,
    ShuffledWithin,
    draw_claims,
)
from sfumato.core.groups.facts import Grouped
from sfumato.methods.chain.facts import ChainSynthesis
from sfumato.methods.condense.facts import ClassPure, GroupSynthesis, NormalScoreColumns
from sfumato.methods.geometry.facts import TargetMoved, Transformed
from sfumato.methods.modify.facts import Blocked, Downgraded, IdenticalRows, Sampled, Swapped, Unchanged
from sfumato.methods.perturb.facts import ComponentNoise, Noised
from sfumato.methods.private.facts import PrivatelyMeasured
from sfumato.methods.randomize.facts import Randomized
from sfumato.parties.facts import Joint, Opened
from sfumato.publish.verify import columns_check, fact_checks
from sfumato.stream.facts import EpochPublished, Maintained, PersonRowsBounded
from sfumato.tables.facts import Aggregated, RareValues, RowsDrawn
from sfumato.transactions.facts import RulesBlocked, RulesHidden, TransactionsRandomized, TransactionsReleased
from tests.fuzz.fuzzing import GOLDENS, golden_bytes

SEEN: dict[str, str] = {
    "aggregate": "coarsened~ widths~ aggregated.columns~ aggregated.levels~",
    "transactions-block": (
        "margin+- min_confidence+- min_support+- rules-blocked.min_support+- rules-blocked.min_confidence+- "
        "rules-blocked.margin+-"
    ),
    "transactions-hide": (
        "min_confidence+- min_support+- strategy~ rules-hidden.min_support+- rules-hidden.min_confidence+-"
    ),
    "transactions-randomize": "cutoff~ gamma~ insert~ keep~ operator~ transactions-randomized.chosen~",
    "transactions-sizes": (
        "cutoff~ gamma+- insert~ keep~ operator~ transactions-randomized.insert+ transactions-randomized.chosen~"
    ),
    "block": "columns<~",
    "chain": "k+ leaf+- order~ rare-values.k- tails-coded.k- chain-synthesis.k- chain-synthesis.leaf-",
    "chunks-hybrid": "degrees< deviations< enhance+- exact_digits~ factor< pairs~ transformed.exact_digits~",
    "chunks-rotate": "degrees< enhance+- exact_digits~ pairs~ transformed.exact_digits~",
    "classwise": "effort~ grouping~ k+ rare-values.k- tails-coded.k- grouped.algorithm~ grouped.smallest-",
    "condense": "effort~ grouping~ k+ scores~ rare-values.k- tails-coded.k- grouped.algorithm~ grouped.smallest-",
    "condense-paper": "effort~ grouping~ k+ scores~ rare-values.k- tails-coded.k- grouped.algorithm~ grouped.smallest-",
    "downgrade": "hidden+ limit+- private~ downgraded.private~ downgraded.limit+-",
    "hybrid": "degrees< deviations< enhance+- exact_digits~ factor< pairs~ transformed.exact_digits~",
    "joint-columns": (
        "b~ centres~ engine~ few~ grouping~ groups~ guarantee~ k+ noise~ parties<~ partition~ rho1~ rho2~ rounds- "
        "grouped.algorithm~ grouped.smallest- component-noise.scale+- component-noise.rho1+ component-noise.grid+ "
        "joint.rounds+ opened.label~ opened.what~ opened.to< opened.times-"
    ),
    "joint-rows": (
        "b~ centres~ engine~ few~ grouping~ groups~ guarantee~ k+ noise~ parties<~ partition~ rho1~ rho2~ rounds- "
        "grouped.algorithm~ grouped.smallest- component-noise.scale+- component-noise.rho1+ component-noise.grid+ "
        "joint.rounds+ opened.label~ opened.what~ opened.to< opened.times-"
    ),
    "laplace-pca": (
        "b~ grouping~ groups~ guarantee~ k+ rho1~ rho2~ rare-values.k- grouped.algorithm~ grouped.smallest- "
        "component-noise.scale+- component-noise.rho1+ component-noise.grid+"
    ),
    "noise": "correlated~ enhance+- kind~ law~ size+- noised.size+- noised.correlated~ noised.grid+",
    "noise-multiplicative": "enhance+- kind~ law~ size+- noised.size+- noised.correlated~ noised.grid+",
    "randomize": "allow_observed~ epsilon- pass_missing~",
    "rotate": "degrees< enhance+- exact_digits~ pairs~ transformed.exact_digits~",
    "subsample": "share+-",
    "scale": "enhance+- exact_digits~ factor< transformed.exact_digits~",
    "stream-first": "epoch+- grouping~ k+- split~ maintained.algorithm~ maintained.k- rare-values.k+-",
    "stream-second": "epoch+- grouping~ k+- split~ maintained.algorithm~ maintained.k- rare-values.k+-",
    "swap": "window+- within~ swapped.window+-",
    "swap-leaves": "leaf+ within~ swapped.within~ swapped.columns~ swapped.target~ swapped.smallest-",
    "translate": "deviations< enhance+- exact_digits~ transformed.exact_digits~",
    "transactions-cut": "cutoff+- gamma~ insert~ keep~ operator~",
    "transactions-usual-sizes": (
        "cutoff~ gamma~ insert~ keep~ operator~ transactions-randomized.insert+ transactions-randomized.chosen~"
    ),
    "laplace-pca in groups": (
        "b~ grouping~ groups- guarantee~ k~ rho1~ rho2~ component-noise.scale+- component-noise.rho1+ "
        "component-noise.grid+ grouped.algorithm~ grouped.smallest-"
    ),
    "laplace-pca of records": (
        "b~ grouping~ groups~ guarantee~ k+ rho1+- rho2~ rare-values.k- grouped.algorithm~ grouped.smallest- "
        "component-noise.scale+- component-noise.components+- component-noise.rho1+ component-noise.grid+"
    ),
    "condense in scores": (
        "effort~ grouping~ k+ scores~ rare-values.k- tails-coded.k- grouped.algorithm~ grouped.smallest-"
    ),
    "classwise by trial": "effort~ grouping~ k+ rare-values.k- tails-coded.k- grouped.algorithm~ grouped.smallest-",
    "chain where": "k+ leaf+- order<~ rare-values.k- tails-coded.k- chain-synthesis.k- chain-synthesis.leaf-",
    "noise enhanced": (
        "correlated~ enhance+- kind~ law~ pass_categories~ size+- noised.size+- noised.correlated~ noised.grid+ "
        "enhanced.share+- enhanced.rows+-"
    ),
    "rotate target": "degrees< enhance+- exact_digits~ pairs~ pass_categories~ transformed.exact_digits~",
    "randomize by a spec": "allow_observed~ epsilon- pass_missing~ specs~",
    "stream of persons": (
        "epoch+- grouping~ k+- split~ person_rows+- rare-values.k+- person-rows-bounded.most- maintained.algorithm~"
    ),
    "joint-rows without few": (
        "b~ centres~ engine~ few~ grouping~ groups~ guarantee~ k+ noise~ parties<~ partition~ rho1~ rho2~ rounds- "
        "grouped.algorithm~ grouped.smallest- component-noise.scale+- component-noise.rho1+ component-noise.grid+ "
        "opened.label~ opened.what~ opened.to< opened.times- joint.rounds+ joint.bare+"
    ),
    "swap some": "columns<~ window+- within~ swapped.columns~ swapped.window+-",
}
"""Of every certificate what cannot be another: + higher, - lower, < shorter, ~ another."""


@cache
def golden(name: str) -> Certificate:
    return Certificate.from_json(golden_bytes(GOLDENS / name / "release-certificate.json").decode())


def redrawn(certificate: Certificate, *more: Fact, **told: Any) -> Certificate:
    """The same with other parameters, facts in place of those of their kind or beside them, and the claims of these."""
    kinds = {type(fact) for fact in more}
    facts = (*(fact for fact in certificate.facts if type(fact) not in kinds), *more)
    claims, refused = draw_claims(facts)
    parameters = {**certificate.parameters, **told}
    return dataclasses.replace(certificate, facts=facts, claims=claims, refused=refused, parameters=parameters)


def the(kind: type[Fact], certificate: Certificate, **entries: Any) -> Any:
    """The one fact of a kind, with other entries."""
    (fact,) = (fact for fact in certificate.facts if type(fact) is kind)
    return dataclasses.replace(fact, **entries)


@cache
def certificates() -> dict[str, Certificate]:
    """Certificates of golden runs, and of runs that differ from them in what is written here."""
    found = {path.name: golden(path.name) for path in sorted(GOLDENS.iterdir())}
    pca, stream, rows = found["laplace-pca"], found["stream-first"], found["joint-rows"]
    bare = dataclasses.replace(pca, facts=tuple(fact for fact in pca.facts if not isinstance(fact, RareValues)))
    seven = the(Grouped, pca, groups=7, smallest=10)
    loud = the(ComponentNoise, pca, rho1=0.01, guarantee="record", scale=0.2 * 7)
    many = the(Maintained, stream, k=10, groups=14, pseudo=9, smallest=10)
    ages = next(fact for fact in found["randomize"].facts if isinstance(fact, Randomized))
    walk = the(ChainSynthesis, found["chain"], columns=("town", "ill", "age", "pay", "smoker", "born"))
    class_wise = the(Grouped, found["classwise"])
    chosen = dataclasses.replace(class_wise, algorithm=f"{class_wise.algorithm}, chosen by trial")
    cut = TransactionsRandomized(
        "cut-and-paste", 12, None, 0.1, 4, None, 9, 9.31569088758401, declared=False, chosen=False
    )
    sizes = the(TransactionsRandomized, found["transactions-sizes"], chosen=True)
    return found | {
        "transactions-cut": redrawn(
            found["transactions-randomize"], cut, TransactionsReleased(72, 12, 224), operator="cut-and-paste", cutoff=4
        ),
        "transactions-usual-sizes": redrawn(found["transactions-sizes"], sizes, operator="usual", gamma=None),
        "laplace-pca in groups": redrawn(bare, seven, k=None, groups=7),
        "laplace-pca of records": redrawn(pca, loud, rho1=0.01, guarantee="record"),
        "condense in scores": redrawn(found["condense"], NormalScoreColumns(2, 8), scores="normal"),
        "classwise by trial": redrawn(found["classwise"], chosen),
        "chain where": redrawn(found["chain"], walk, RowsDrawn(72, 72, "town == Oslo"), order=["ill"]),
        "noise enhanced": redrawn(
            found["noise"], Enhanced(0.1, 9), PassedThrough(1, 0), enhance=0.1, pass_categories=True
        ),
        "rotate target": redrawn(found["rotate"], TargetMoved("pay"), PassedThrough(1, 0), pass_categories=True),
        "randomize by a spec": redrawn(
            found["randomize"], specs=[["age", ages.spec]], pass_missing=True, allow_observed=True
        ),
        "stream of persons": redrawn(
            stream, PersonRowsBounded(2), many, the(EpochPublished, stream, fresh=10), person_rows=2
        ),
        "joint-rows without few": redrawn(rows, the(Joint, rows, bare=0), few="refuse"),
        "swap some": redrawn(found["swap"], columns=["age", "pay", "born"]),
    }


def others(value: Any) -> dict[str, Any]:
    """A value one step higher, lower or shorter, or another."""
    if isinstance(value, bool):
        return {"~": not value}
    if isinstance(value, int | float):
        step = 1 if isinstance(value, int) else 0.01 * (1 + value)
        return {"+": value + step, "-": value - step}
    if isinstance(value, list | tuple) and value:
        last = next(iter(others(value[-1]).values()), None)
        return {"<": type(value)(value[1:]), "~": type(value)((*value[:-1], last))}
    return {"~": 1 if value is None else f"{value}x"} if value is None or isinstance(value, str) else {}


def steps(certificate: Certificate) -> Iterator[tuple[str, str, Certificate]]:
    """Certificates that differ in one parameter or one entry of a fact, with its name; facts bear their claims."""
    for name, value in certificate.parameters.items():
        for mark, other in others(value).items():
            yield name, mark, dataclasses.replace(certificate, parameters={**certificate.parameters, name: other})
    for place, fact in enumerate(certificate.facts):
        for field in dataclasses.fields(fact):
            for mark, other in others(getattr(fact, field.name)).items():
                changed = dataclasses.replace(fact, **{field.name: other})
                facts = (*certificate.facts[:place], changed, *certificate.facts[place + 1 :])
                try:
                    claims, refused = draw_claims(facts)
                except SfumatoError:  # the facts contradict each other
                    continue
                told = dataclasses.replace(certificate, facts=facts, claims=claims, refused=refused)
                yield f"{fact.fact}.{field.name}", mark, told


def failing(certificate: Certificate) -> list[str]:
    return [check.name for check in fact_checks(certificate) if not check.holds]


def meets_levels(certificate: Certificate) -> bool:
    try:
        draw_claims(certificate.facts)
    except SfumatoError:
        return False
    return "privacy levels met" not in failing(certificate)


def seen_in(certificate: Certificate) -> str:
    found = defaultdict(set)
    for name, mark, changed in steps(certificate):
        if "method follows from facts" in failing(changed):
            found[name].add(mark)
    return " ".join(name + "".join(sorted(marks)) for name, marks in found.items())


@pytest.mark.parametrize("name", SEEN)
def test_a_parameter_or_fact_that_was_changed_is_seen(name: str) -> None:
    assert failing(certificates()[name]) == []
    assert seen_in(certificates()[name]) == SEEN[name]


def test_a_method_is_held_to_its_own_words_and_edges() -> None:
    found = certificates()
    scored, condensed, class_wise = found["condense in scores"], found["condense"], found["classwise"]
    others = the(Grouped, found["condense-paper"]).algorithm
    by_classes = the(Grouped, class_wise)
    specs = {fact.column: fact.spec for fact in found["randomize"].facts if isinstance(fact, Randomized)}
    some = the(Downgraded, found["downgrade"], hidden=89, cells=(89, 84, 89))
    one = the(Grouped, condensed, smallest=1, tiny=1, alone=1, alike=1)
    pca, group_facts = found["laplace-pca in groups"], Grouped("", 200, 2, 100, 0, 0, 0, 0)
    group_facts = dataclasses.replace(group_facts, algorithm=the(Grouped, pca).algorithm)
    usual = redrawn(pca, group_facts, Shuffled(200), groups=None)
    few = redrawn(pca, dataclasses.replace(group_facts, smallest=99), Shuffled(200), groups=None)
    told: list[tuple[Certificate, bool]] = [
        (redrawn(scored, scores="plain"), False),
        (redrawn(condensed, the(Grouped, condensed, algorithm=others)), False),
        (redrawn(class_wise, dataclasses.replace(by_classes, algorithm=f"class-wise: {others}")), True),
        (redrawn(class_wise, dataclasses.replace(by_classes, algorithm=others)), False),
        (redrawn(condensed, one, k=1, allow_level_1=True), True),
        (redrawn(condensed, one, k=1, allow_level_1=False), False),
        (redrawn(found["randomize"], specs=[["age", specs["age"]]]), True),
        (redrawn(found["randomize"], specs=[["age", specs["pay"]]]), False),
        (redrawn(found["randomize"], specs=[["nobody", specs["age"]]]), False),
        (redrawn(found["randomize"], specs=[["age", specs["age"]]], epsilon=None), False),
        (redrawn(found["randomize"], specs=[list(each) for each in specs.items()], epsilon=None), True),
        (redrawn(found["block"], k=5), True),
        (redrawn(found["block"], k=6), False),
        (dataclasses.replace(usual, rows_in=200, rows_out=200), True),
        (dataclasses.replace(few, rows_in=200, rows_out=200), False),
        (redrawn(found["downgrade"], some), False),
        (redrawn(found["downgrade"], some, hidden=0.9), True),
    ]
    for place, (certificate, holds) in enumerate(told):
        assert failing(certificate) == ([] if holds else ["method follows from facts"]), place


ALWAYS: dict[str, tuple[type[Fact], ...]] = {
    "condense": (Grouped, GroupSynthesis),
    "condense-paper": (Grouped, GroupSynthesis),
    "classwise": (ClassPure, Grouped, GroupSynthesis),
    "chain": (ChainSynthesis,),
    "laplace-pca": (Grouped, ComponentNoise),
    "private": (PrivatelyMeasured,),
    "noise": (Noised,),
    "translate": (Transformed,),
    "scale": (Transformed,),
    "rotate": (Transformed,),
    "hybrid": (Transformed,),
    "randomize": (Randomized,),
    "randomize-transactions": (TransactionsRandomized, TransactionsReleased),
    "hide-rules": (RulesHidden, TransactionsReleased),
    "block-rules": (RulesBlocked, TransactionsReleased),
    "swap": (Swapped,),
    "subsample": (Sampled, Unchanged),
    "aggregate": (Aggregated, Unchanged, IdenticalRows),
    "block": (Blocked, IdenticalRows, Unchanged),
    "downgrade": (Downgraded,),
    "stream": (Maintained, EpochPublished),
    "joint-laplace-pca": (Grouped, ComponentNoise, Joint, Opened),
}


@pytest.mark.parametrize("name", sorted(path.name for path in GOLDENS.iterdir()))
def test_a_method_states_all_that_it_always_does_and_nothing_of_others(name: str) -> None:
    certificate = golden(name)
    for kind in {type(fact) for fact in certificate.facts} - {RandomnessSource}:
        left = dataclasses.replace(
            certificate, facts=tuple(fact for fact in certificate.facts if type(fact) is not kind)
        )
        try:
            without = redrawn(left)
        except SfumatoError:  # what is left contradicts itself
            continue
        always = kind in (ColumnsDropped, Shuffled, ShuffledWithin, *ALWAYS[certificate.method])
        assert ("method follows from facts" in failing(without)) == always, kind
    foreign = NormalScoreColumns(1, 5) if certificate.method == "stream" else PersonRowsBounded(1)
    with pytest.raises(SfumatoError, match="nothing can be certified"):
        redrawn(certificate, foreign)


def test_claims_are_those_of_the_facts() -> None:
    certificate = golden("condense")
    for entry in ("claims", "refused"):
        fewer = dataclasses.replace(certificate, **{entry: getattr(certificate, entry)[1:]})
        assert failing(fewer) == ["claims follow from facts"]
    other = dataclasses.replace(certificate, randomness="release")
    assert failing(other) == ["claims follow from facts"]
    torn = dataclasses.replace(certificate, facts=(*certificate.facts, the(Grouped, certificate)))
    assert "claims follow from facts" in failing(torn)


COUNTS: list[tuple[str, type[Fact], dict[str, Any], bool]] = [
    ("condense", Grouped, {"violations": 1}, False),
    ("condense", Grouped, {"groups": 12, "smallest": 6}, True),
    ("condense", Grouped, {"groups": 15}, False),
    ("condense", Grouped, {"records": 71}, False),
    ("condense", GroupSynthesis, {"rows": 71}, False),
    ("condense", Shuffled, {"rows": 73}, False),
    ("chain", ChainSynthesis, {"violations": 1}, False),
    ("chain", ChainSynthesis, {"smallest": (72, 19, 12, 16, 16, 11)}, True),
    ("chain", ChainSynthesis, {"smallest": (72, 19, 12, 16, 16, 9)}, False),
    ("chain", ChainSynthesis, {"leaf": 10}, True),
    ("chain", ChainSynthesis, {"leaf": 11}, False),
    ("chain", ChainSynthesis, {"smallest": ()}, False),
    ("chain", ChainSynthesis, {"records": 71}, False),
    ("chain", ChainSynthesis, {"rows": 71}, False),
    ("stream-second", Maintained, {"smallest": 7}, True),
    ("stream-second", Maintained, {"groups": 36, "smallest": 7}, False),
    ("subsample", Sampled, {"records": 71}, False),
    ("subsample", Sampled, {"rows": 71}, False),
    ("aggregate", IdenticalRows, {"rows": 91}, False),
    ("block", Blocked, {"rows": 91}, False),
    ("downgrade", Downgraded, {"rows": 91}, False),
    ("swap", Swapped, {"rows": 91}, False),
    ("noise", Shuffled, {"rows": 89}, False),
]


@pytest.mark.parametrize(("name", "kind", "entries", "holds"), COUNTS)
def test_counts_of_records_groups_and_rows_are_held_to_each_other(
    name: str, kind: type[Fact], entries: dict[str, Any], holds: bool
) -> None:
    certificate = golden(name)
    facts = tuple(dataclasses.replace(fact, **entries) if type(fact) is kind else fact for fact in certificate.facts)
    assert meets_levels(dataclasses.replace(certificate, facts=facts)) == holds
    for counted in ("rows_in", "rows_out"):
        other = dataclasses.replace(certificate, **{counted: getattr(certificate, counted) + 1})
        assert failing(other) == ["privacy levels met"]


@pytest.mark.parametrize("name", ["stream-first", "stream-second"])
def test_the_rows_of_a_stream_are_those_of_its_last_epoch(name: str) -> None:
    certificate = golden(name)
    *before, last = (place for place, fact in enumerate(certificate.facts) if isinstance(fact, EpochPublished))
    for place, holds in [*((place, True) for place in before), (last, False)]:
        facts = list(certificate.facts)
        facts[place] = dataclasses.replace(facts[place], rows=77)  # type: ignore[call-arg]
        assert meets_levels(dataclasses.replace(certificate, facts=tuple(facts))) == holds


@pytest.mark.parametrize(
    ("drawn", "holds"),
    [(RowsDrawn(72, 100), True), (RowsDrawn(71, 100), False), (RowsDrawn(72, 99), False), (None, False)],
)
def test_rows_that_were_asked_for_are_as_many(drawn: RowsDrawn | None, holds: bool) -> None:
    certificate = golden("condense")
    rows = (the(GroupSynthesis, certificate, rows=100), the(Shuffled, certificate, rows=100))
    kept = tuple(fact for fact in certificate.facts if not isinstance(fact, GroupSynthesis | Shuffled))
    facts = (*kept, *rows, *(() if drawn is None else (drawn,)))
    assert meets_levels(dataclasses.replace(certificate, rows_out=100, facts=facts)) == holds


@pytest.mark.parametrize("name", sorted(path.name for path in GOLDENS.iterdir()))
def test_every_column_that_a_fact_names_is_in_the_table(name: str) -> None:
    certificate = golden(name)
    header = (GOLDENS / name / "release-table.csv").read_text(encoding="utf-8").partition("\n")[0]
    columns = [column.strip('"') for column in header.split(",")]
    assert columns_check(certificate.facts, columns).holds
    told = [getattr(fact, entry, ()) for fact in certificate.facts for entry in ("column", "columns", "private")]
    named = {
        column for each in told if not isinstance(each, int) for column in ([each] if isinstance(each, str) else each)
    }
    for column in columns:
        there = [each if each != column else "other" for each in columns]
        assert columns_check(certificate.facts, there).holds == (column not in named), column


def test_columns_that_were_dropped_are_not_in_the_table() -> None:
    certificate = golden("condense")
    columns = ["age", "pay", "town", "smoker", "born", "ill"]
    for dropped in ("name", "level"):
        check = columns_check(certificate.facts, [*columns, dropped])
        assert (check.holds, check.detail) == (False, "1 dropped column is in the table")
    rare = redrawn(certificate, the(RareValues, certificate, dropped=("hobby",)))
    assert columns_check(rare.facts, columns).detail == ("the table has 1 named column and none of 3 dropped ones")
    assert columns_check(rare.facts, [*columns, "hobby"]).detail == "1 dropped column is in the table"
    assert columns_check(certificate.facts, columns[:4]).detail == "1 column in the facts but not in the table"


@pytest.mark.parametrize("name", ["condense", "noise", "stream-first"])
def test_facts_count_no_more_columns_than_the_table_has(name: str) -> None:
    context = Context(golden(name).facts)
    for count, wrong in ((3, False), (2, True)):
        released = ReleasedColumns(("a", "b", "born")[:count], count, count, frozenset())
        found = {each for fact in context for each in fact.wrong_columns(released, context)}
        assert bool(found) == wrong, found
