"""Randomization as a mechanism: every cell by the law of its column, and what is refused."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import sfumato as sf
from sfumato.core.distributions.domains import Dates, Integers, Labels, Reals
from sfumato.core.distributions.operators import transition
from sfumato.core.distributions.spec import NoiseSpec
from sfumato.core.errors import LevelError, OptionError, PrivacyRefusal, SchemaError
from sfumato.core.facts import PassedThrough, Shuffled
from sfumato.core.records import Records
from sfumato.methods.catalogue import make_mechanism
from sfumato.methods.protocol import MethodResult
from sfumato.methods.randomize import Randomization
from sfumato.methods.randomize.facts import DomainsObserved, Randomized
from tests.examples import examples
from tests.randomize.tables import (
    ROWS,
    STEPS,
    TOWNS,
    codec_of,
    declared_schema,
    draw_table,
    records_of,
    table_of,
    with_gaps,
)

RARE = 1e-7

AGE = NoiseSpec(Integers(0, 120), {"name": "keep-or-replace", "keep": 0.5})
LAWS: list[dict[str, Any]] = [
    {"name": "keep-or-replace", "keep": 0.3},
    {"name": "shift-modulo", "reach": 20},
    {"name": "mixture", "weight": 0.5, "of": {"name": "shift-modulo", "reach": 20}},
    {"name": "uniform", "reach": 15},
    {"name": "gaussian", "sd": 9.5},
    {"name": "laplace", "scale": 12.5},
    {"name": "rounding", "to": 10},
]


def run(made_by: Randomization, records: Records, seed: int = 4) -> MethodResult:
    return made_by.sanitize(records, rng=np.random.default_rng(seed))


def randomized(spec: NoiseSpec, table: pa.Table, column: str, seed: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """Give the original and the released cells of one column, side by side."""
    codec = codec_of(table)
    made = run(Randomization(specs={column: spec}, epsilon=3.0), codec.encode(table), seed)
    both = (table.column(column), table_of(made, codec).column(column))
    return tuple(np.array(cells.to_pylist()) for cells in both)  # type: ignore[return-value]


def facts_of(made: MethodResult) -> dict[str, Randomized]:
    return {fact.column: fact for fact in made.facts if isinstance(fact, Randomized)}


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law["name"])
def test_the_released_numbers_follow_the_law_of_their_column(law: dict[str, Any]) -> None:
    spec = NoiseSpec(Integers(0, 120), law)
    table = draw_table().set_column(0, "age", pa.array(np.full(ROWS, 40)))
    true, got = randomized(spec, table, "age")
    assert (true == 40).all()
    outputs, counts = np.unique(spec.encode_output(got), return_counts=True)
    chances = spec.operator.probabilities(outputs)[:, 40]
    assert (chances > 0).all()
    common = chances * ROWS >= 10
    expected = np.append(chances[common], max(1.0 - chances[common].sum(), 1e-12)) * ROWS
    observed = np.append(counts[common], counts[~common].sum())
    if len(expected) > 2:
        keep = expected > 1.0
        scale = observed[keep].sum() / expected[keep].sum()
        assert stats.chisquare(observed[keep], expected[keep] * scale).pvalue > RARE


@pytest.mark.parametrize(("column", "labels"), [("town", TOWNS), ("rank", STEPS)])
def test_the_released_labels_follow_the_law_of_their_column(column: str, labels: tuple[str, ...]) -> None:
    spec = NoiseSpec(Labels(labels), {"name": "response", "matrix": [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0, 0.5, 0.5]]})
    true, got = randomized(spec, draw_table(), column)
    for x, row in zip(labels, transition(spec.operator), strict=True):
        seen = [int((got[true == x] == y).sum()) for y in labels]
        possible = row > 0
        assert not any(count for count, chance in zip(seen, row, strict=True) if chance == 0)
        expected = row[possible] * sum(seen)
        assert stats.chisquare(np.array(seen)[possible], expected).pvalue > RARE


def test_epsilon_gives_labels_the_k_ary_response_and_numbers_laplace_noise_of_their_declared_range() -> None:
    facts = facts_of(run(Randomization(epsilon=1.5), records_of(draw_table())))
    specs = {name: NoiseSpec.from_document(json.loads(fact.spec)) for name, fact in facts.items()}
    assert specs["age"] == NoiseSpec(Integers(0, 120), {"name": "laplace", "scale": 80})
    assert specs["pay"] == NoiseSpec(Reals(0.0, 5000.0, 0.5), {"name": "laplace", "scale": 5000 / 1.5})
    assert specs["town"] == NoiseSpec(Labels(TOWNS), {"name": "response", "epsilon": 1.5})
    assert specs["rank"] == NoiseSpec(Labels(STEPS), {"name": "response", "epsilon": 1.5})
    for name, fact in facts.items():
        assert fact.epsilon == pytest.approx(1.5, rel=1e-6)
        assert fact.gamma == pytest.approx(math.exp(1.5), rel=1e-6)
        assert fact.digest == specs[name].digest


def test_infinite_amplification_is_stated_as_none() -> None:
    spec = NoiseSpec(Integers(0, 120), {"name": "uniform", "reach": 5})
    fact = facts_of(run(Randomization(specs={"age": spec}, epsilon=1.0), records_of(draw_table())))["age"]
    assert (fact.gamma, fact.epsilon) == (None, None)


def test_numbers_leave_their_bounds_unclipped_and_lie_exactly_on_their_grid() -> None:
    table, codec = draw_table(), codec_of(draw_table())
    made = run(Randomization(epsilon=1.0), codec.encode(table))
    assert made.records.moved == {"age", "pay"}
    released = table_of(made, codec)
    age, pay = (released.column(name).to_numpy() for name in ("age", "pay"))
    assert age.min() < 0 < 120 < age.max()
    assert pay.min() < 0 < 5000 < pay.max()
    np.testing.assert_array_equal(age, np.rint(age))
    np.testing.assert_array_equal(pay * 2, np.rint(pay * 2))


def test_numbers_of_a_decimal_grid_are_written_as_they_are_read() -> None:
    table = pa.table({"x": np.round(np.random.default_rng(1).random(300), 1)})
    schema = sf.Schema((sf.Field("x", sf.Kind.CONTINUOUS, domain=sf.Domain(declared=True, low=0.0, high=1.0)),))
    codec = codec_of(table, schema)
    spec = NoiseSpec(Reals(0.0, 1.0, 0.1), {"name": "laplace", "scale": 0.5})
    got = table_of(run(Randomization(specs={"x": spec}), codec.encode(table)), codec).column("x").to_pylist()
    assert all(len(repr(number)) <= len("-10.1") for number in got)


def test_a_column_without_a_step_gets_a_decimal_grid_that_holds_its_bounds() -> None:
    table = pa.table({"x": np.random.default_rng(1).random(300) * 6.0 + 0.25})
    schema = sf.Schema((sf.Field("x", sf.Kind.CONTINUOUS, domain=sf.Domain(declared=True, low=0.25, high=7.1234)),))
    fact = facts_of(run(Randomization(epsilon=2.0), records_of(table, schema)))["x"]
    domain = NoiseSpec.from_document(json.loads(fact.spec)).domain
    assert domain == Reals(0.25, 7.124, 0.001)
    assert fact.epsilon == pytest.approx(2.0, rel=1e-6)


def test_rows_are_shuffled_and_every_cell_is_drawn_by_itself() -> None:
    made = run(Randomization(epsilon=1.0), records_of(draw_table()))
    origin = made.workings.origin
    assert origin is not None
    np.testing.assert_array_equal(np.sort(origin), np.arange(ROWS))
    assert np.abs(np.corrcoef(origin, np.arange(ROWS)) - np.eye(2)).max() < 0.1
    assert Shuffled(ROWS) in made.facts
    noise = made.records.values[:, :2] - records_of(draw_table()).values[origin][:, :2]
    assert np.abs(np.corrcoef(noise[:, 0], noise[:, 1]) - np.eye(2)).max() < 0.15


def test_missing_numbers_are_refused_unless_they_may_be_told() -> None:
    table = with_gaps(draw_table(), "age")
    with pytest.raises(PrivacyRefusal, match=r"'age' has missing cells.*pass_missing=True"):
        run(Randomization(epsilon=1.0), records_of(table))
    codec = codec_of(table)
    made = run(Randomization(epsilon=1.0, pass_missing=True), codec.encode(table))
    assert PassedThrough(0, 1) in made.facts
    released = table_of(made, codec)
    assert released.column("age").is_null().to_pylist() == table.column("age").is_null().to_pylist()


def test_missing_labels_are_one_more_label_and_are_randomized() -> None:
    table = with_gaps(draw_table(), "town", every=4)
    spec = NoiseSpec(Labels((*TOWNS, "")), {"name": "keep-or-replace", "keep": 0.7})
    codec = codec_of(table)
    made = run(Randomization(specs={"town": spec}, epsilon=1.0), codec.encode(table))
    assert not any(isinstance(fact, PassedThrough | DomainsObserved) for fact in made.facts)
    true, got = (
        np.array([cell or "" for cell in of.column("town").to_pylist()]) for of in (table, table_of(made, codec))
    )
    for x in (*TOWNS, ""):
        kept = int((got[true == x] == x).sum())
        assert stats.binomtest(kept, int((true == x).sum()), 0.7).pvalue > RARE


def test_that_labels_are_missing_is_read_off_the_data() -> None:
    records = records_of(with_gaps(draw_table(), "rank"))
    with pytest.raises(PrivacyRefusal, match="'rank' has missing cells: that there are some is read off the data"):
        run(Randomization(epsilon=1.0), records)
    made = run(Randomization(epsilon=1.0, allow_observed=True), records)
    assert DomainsObserved(("rank",)) in made.facts
    assert json.loads(facts_of(made)["rank"].spec)["domain"]["values"] == [*STEPS, ""]
    passed = run(Randomization(epsilon=1.0, pass_missing=True), records)
    assert PassedThrough(0, 1) in passed.facts
    assert json.loads(facts_of(passed)["rank"].spec)["domain"]["values"] == list(STEPS)


@pytest.mark.parametrize(("column", "what"), [("age", "bounds"), ("town", "categories")])
def test_domains_that_were_read_off_the_data_are_refused_unless_allowed(column: str, what: str) -> None:
    table = draw_table().select([column])
    records = records_of(table, sf.Schema.infer(table))
    with pytest.raises(PrivacyRefusal, match=f"the {what} of column '{column}' were read off the data"):
        run(Randomization(epsilon=1.0), records)
    made = run(Randomization(epsilon=1.0, allow_observed=True), records)
    assert DomainsObserved((column,)) in made.facts


def test_a_given_specification_declares_the_domain_by_itself() -> None:
    table = draw_table().select(["age"])
    made = run(Randomization(specs={"age": AGE}), records_of(table, sf.Schema.infer(table)))
    assert not any(isinstance(fact, DomainsObserved) for fact in made.facts)


def test_specs_are_the_same_as_objects_texts_documents_and_from_a_recipe() -> None:
    wanted = Randomization(specs=(("age", AGE.canonical),))
    for form in (
        {"age": AGE},
        (("age", AGE.to_toml()),),
        [["age", json.dumps(AGE.to_document(), indent=1)]],
        {"age": AGE.to_document()},
    ):
        assert Randomization(specs=form) == wanted  # type: ignore[arg-type]
        assert hash(Randomization(specs=form)) == hash(wanted)  # type: ignore[arg-type]
    parameters = json.loads(json.dumps(dataclasses.asdict(wanted)))
    assert make_mechanism("randomize", parameters) == wanted


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({}, "how much"),
        ({"epsilon": 0.0}, "epsilon must be"),
        ({"epsilon": math.nan}, "epsilon must be"),
        ({"epsilon": True}, "epsilon is of type bool; give a number"),
        ({"epsilon": "1"}, "epsilon is of type str; give a number"),
        ({"epsilon": 1.0, "pass_missing": 1}, "pass_missing is of type int; give True or False"),
        ({"specs": ("age",)}, "pairs of a column"),
        ({"specs": (("age", AGE), ("age", AGE))}, "twice"),
        ({"specs": (("age", 3),)}, "is none"),
        ({"specs": (("age", "nonsense"),)}, "not valid TOML"),
    ],
)
def test_options_that_mean_nothing_are_refused(parameters: dict[str, Any], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        Randomization(**parameters)


def test_columns_and_specifications_that_do_not_fit_are_refused() -> None:
    records = records_of(draw_table())
    narrow = NoiseSpec(Integers(0, 50), {"name": "keep-or-replace", "keep": 0.5})
    labels = NoiseSpec(Labels(("a", "b")), {"name": "response", "epsilon": 1})
    wide = NoiseSpec(Labels((*TOWNS, "east")), {"name": "response", "epsilon": 1})
    few = NoiseSpec(Labels(TOWNS[:2]), {"name": "response", "epsilon": 1})
    gaps = NoiseSpec(Labels((*TOWNS, "")), {"name": "response", "epsilon": 1})
    days = NoiseSpec(Dates("2020-01-01", "2020-12-31", "day"), {"name": "laplace", "scale": 30})
    cases: list[tuple[str, NoiseSpec, str]] = [
        ("age", narrow, r"column 'age': \d+ values are not whole numbers from 0 to 50"),
        ("age", labels, "holds numbers and its specification labels"),
        ("age", days, "is of dates and the column holds none"),
        ("town", AGE, "holds labels and its specification numbers"),
        ("town", wide, "1 labels that the column does not list"),
        ("town", few, r"column 'town' has \d+ values that are none of the 2 labels"),
        ("town", gaps, "no cell is missing"),
    ]
    for column, spec, words in cases:
        with pytest.raises((SchemaError, OptionError), match=words):
            run(Randomization(specs={column: spec}, epsilon=1.0), records)
    with pytest.raises(OptionError, match="'height', which is no column"):
        run(Randomization(specs={"height": AGE}, epsilon=1.0), records)
    with pytest.raises(OptionError, match="'pay' has no specification"):
        run(Randomization(specs={"age": AGE}), records)


def test_a_parent_of_a_taxonomy_is_released_whether_the_column_lists_it_or_not() -> None:
    towns = (*TOWNS, "inland")
    field = sf.Field("town", sf.Kind.NOMINAL, domain=sf.Domain(declared=True, categories=towns))
    table = draw_table().select(["town"])
    codec = codec_of(table, sf.Schema((field,)))
    parents = {"north": "inland", "south": "inland", "west": "west"}
    spec = NoiseSpec(Labels(TOWNS), {"name": "taxonomy", "parents": parents})
    made = run(Randomization(specs={"town": spec}), codec.encode(table))
    (sent,) = made.records.answers
    assert made.workings.origin is not None
    towns_of_rows = np.array(table.column("town").to_pylist())[made.workings.origin]
    assert [sent.labels[code] for code in sent.codes] == [parents[town] for town in towns_of_rows]
    shown = np.array(table_of(made, codec).column("town").to_pylist())  # a label that fits, to compare rows by
    assert all(
        parents[str(label)] == parents[town] for label, town in zip(shown, table["town"].to_pylist(), strict=True)
    )


def test_domains_without_bounds_of_one_value_or_read_off_dates_are_refused() -> None:
    table = draw_table().select(["age"])
    half = sf.Schema((sf.Field("age", sf.Kind.INTEGER, domain=sf.Domain(declared=True, low=0)),))
    with pytest.raises(OptionError, match="without a lower and an upper bound"):
        run(Randomization(epsilon=1.0), records_of(table, half))
    dates = pa.table({"born": pa.array((np.arange(60) * 31).astype("datetime64[D]"))})
    with pytest.raises(PrivacyRefusal, match="bounds of column 'born' were read off the data"):
        run(Randomization(epsilon=1.0), records_of(dates, sf.Schema.infer(dates)))
    same = pa.table({"town": ["a"] * 30, "x": np.arange(30.0)})
    with pytest.raises(OptionError, match="'town' has a single label"):
        run(Randomization(epsilon=1.0, allow_observed=True), records_of(same, sf.Schema.infer(same)))


def test_levels_and_strata_are_not_silently_passed_over() -> None:
    records, some = records_of(draw_table()), np.arange(ROWS) % 2
    with pytest.raises(LevelError, match=f"{ROWS // 2} records"):
        run(Randomization(epsilon=1.0), dataclasses.replace(records, levels=some))
    with pytest.raises(OptionError, match="no groups"):
        run(Randomization(epsilon=1.0), dataclasses.replace(records, strata=some.copy()))


def test_no_refusal_holds_a_cell_of_the_data() -> None:
    table = draw_table().set_column(2, "town", pa.array(["Zanzibar"] * ROWS))
    fields = tuple(
        dataclasses.replace(field, domain=sf.Domain(declared=True, categories=("Zanzibar", "x")))
        if field.name == "town"
        else field
        for field in declared_schema()
    )
    spec = NoiseSpec(Labels(("x", "y")), {"name": "response", "epsilon": 1})
    with pytest.raises(SchemaError) as told:
        run(Randomization(specs={"town": spec}, epsilon=1.0), records_of(table, sf.Schema(fields)))
    assert "Zanzibar" not in str(told.value)


@examples(30)
@given(
    st.integers(2, 40),
    st.integers(-50, 50),
    st.integers(1, 200),
    st.floats(0.05, 20.0),
    st.integers(0, 2**32 - 1),
)
def test_whatever_the_domain_answers_are_whole_and_the_epsilon_is_spent(
    rows: int, low: int, reach: int, epsilon: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    table = pa.table({"x": rng.integers(low, low + reach, rows, endpoint=True)})
    domain = sf.Domain(declared=True, low=low, high=low + reach)
    codec = codec_of(table, sf.Schema((sf.Field("x", sf.Kind.INTEGER, domain=domain),)))
    made = run(Randomization(epsilon=epsilon), codec.encode(table), seed)
    got = table_of(made, codec).column("x").to_numpy()
    np.testing.assert_array_equal(got, np.rint(got))
    assert facts_of(made)["x"].epsilon == pytest.approx(epsilon, rel=1e-3)
