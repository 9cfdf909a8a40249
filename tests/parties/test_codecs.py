"""The codec of owners who each have some rows: that of the joined table, and nothing but sums is seen."""

from __future__ import annotations

import dataclasses
import datetime
import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.errors import PrivacyRefusal, SchemaError, SfumatoError, TableError
from sfumato.parties.channel import PartyError
from sfumato.parties.codecs import LEAKS, count_cells, joint_codec
from sfumato.parties.session import Session
from sfumato.tables.codec import Codec
from sfumato.tables.field import DateStep, Domain, Field, Kind, Role
from sfumato.tables.schema import Schema
from tests.examples import examples
from tests.parties.conftest import Together

NAMES = ("ann", "bob", "cy", "dee")
DAY = datetime.datetime(2020, 1, 1)
SCHEMA = Schema(
    (
        Field("name", Kind.NOMINAL, Role.IDENTIFIER),
        Field("age", Kind.INTEGER, domain=Domain(True, 0, 120)),
        Field("pay", Kind.CONTINUOUS, domain=Domain(True, 0.0, 1e6, step=0.5)),
        Field("heat", Kind.CONTINUOUS, domain=Domain(True, -50.0, 50.0)),
        Field("since", Kind.DATE, domain=Domain(True, DAY, datetime.datetime(2030, 1, 1), DateStep.DAY)),
        Field("grade", Kind.ORDINAL, domain=Domain(True, categories=("low", "mid", "high"))),
        Field("town", Kind.NOMINAL, domain=Domain(True, categories=("a", "b", "c")), missing=("?",)),
        Field("sick", Kind.BOOLEAN, Role.TARGET, domain=Domain(True, categories=(False, True))),
    )
)


def a_table(n: int, rng: np.random.Generator) -> pa.Table:
    def holes(values: list[object], share: float) -> list[object]:
        return [None if gone else value for value, gone in zip(values, rng.random(n) < share, strict=True)]

    return pa.table(
        {
            "name": pa.array([f"p{i}" for i in range(n)], pa.string()),
            "age": pa.array(holes(rng.integers(18, 90, n).tolist(), 0.1), pa.int64()),
            "pay": pa.array((rng.integers(0, 2000, n) / 2).tolist(), pa.float64()),
            "heat": pa.array(holes(rng.normal(10, 5, n).tolist(), 0.2), pa.float64()),
            "since": pa.array(
                [DAY.date() + datetime.timedelta(int(day)) for day in rng.integers(0, 900, n)], pa.date32()
            ),
            "grade": pa.array(rng.choice(["low", "mid", "high"], n).tolist(), pa.string()),
            "town": pa.array(holes(rng.choice(["a", "b", "?"], n).tolist(), 0.1), pa.string()),
            "sick": pa.array(rng.integers(0, 2, n).astype(bool).tolist(), pa.bool_()),
        }
    )


def codecs_of(together: Together, tables: list[pa.Table], schemas: list[Schema]) -> list[tuple[Codec, int]]:
    def play(session: Session, rank: int) -> tuple[Codec, int]:
        counts = count_cells(session, tables[rank], schemas[rank], few="allow")
        return joint_codec(session, tables[rank], schemas[rank], counts), counts.rows

    return together(play, NAMES[: len(tables)], LEAKS)


@examples(25, few=5)
@given(seed=st.integers(0, 2**32 - 1), parties=st.integers(2, 4), n=st.integers(3, 60))
def test_the_joint_codec_is_that_of_the_joined_table(together: Together, seed: int, parties: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    table = a_table(n, rng)
    if any(table.column(name).null_count == n for name in table.column_names) or set(
        table.column("town").to_pylist()
    ) <= {"?", None}:
        return  # refused: see below
    cuts = [0, *np.sort(rng.integers(0, n + 1, parties - 1)).tolist(), n]
    tables = [table.slice(a, b - a) for a, b in itertools.pairwise(cuts)]
    pooled = Codec.fit(table, SCHEMA)
    for codec, count in codecs_of(together, tables, [SCHEMA] * parties):
        assert count == n
        assert [(block.column, block.kind, block.start, block.stop) for block in codec.layout] == [
            (block.column, block.kind, block.start, block.stop) for block in pooled.layout
        ]
        np.testing.assert_allclose(codec.encode(table).values, pooled.encode(table).values, rtol=1e-9, atol=1e-9)
        back = codec.decode(codec.encode(table).values)
        for name in ("age", "pay", "since", "grade", "sick"):
            assert back.column(name).to_pylist() == table.column(name).to_pylist()


def test_a_column_that_is_the_same_for_all_works(together: Together) -> None:
    table = a_table(12, np.random.default_rng(1))
    for name, cell in (("pay", 333.5), ("heat", 0.1)):
        table = table.set_column(table.column_names.index(name), name, pa.array([cell] * 12))
    codec, _ = codecs_of(together, [table.slice(0, 5), table.slice(5)], [SCHEMA] * 2)[0]
    encoded = codec.encode(table).values
    for name in ("pay", "heat"):
        where = next(block.where for block in codec.layout if block.column == name)
        np.testing.assert_allclose(encoded[:, where], 0.0, atol=1e-12)
        np.testing.assert_allclose(codec.decode(encoded).column(name).to_pylist(), table.column(name).to_pylist())


@pytest.mark.parametrize("high", [1e9, 1e12, 3e14])
def test_bounds_that_are_far_too_wide_do_not_spoil_the_scale(together: Together, high: float) -> None:
    numbers = np.random.default_rng(6).normal(0.0, 100.0, 60)
    field = Field("x", Kind.CONTINUOUS, domain=Domain(True, -high, high))
    tables = [pa.table({"x": part}) for part in np.split(numbers, [20, 40])]
    codec, _ = codecs_of(together, tables, [Schema((field,))] * 3)[0]
    encoded = np.concatenate([codec.encode(table).values for table in tables])
    np.testing.assert_allclose([encoded.mean(), encoded.std()], [0.0, 1.0], atol=1e-2)


@pytest.mark.parametrize("width", [1e-8, 1e-4, 1.0])
def test_a_narrow_column_in_wide_bounds_is_standardized_all_the_same(together: Together, width: float) -> None:
    numbers = 0.25 + width * np.random.default_rng(5).random(50)
    field = Field("x", Kind.CONTINUOUS, domain=Domain(True, 0.0, 2.0 + 1e3 * width))
    tables = [pa.table({"x": part}) for part in np.split(numbers, [3, 20])]
    codec, _ = codecs_of(together, tables, [Schema((field,))] * 3)[2]
    encoded = np.concatenate([codec.encode(table).values for table in tables])
    np.testing.assert_allclose([encoded.mean(), encoded.std()], [0.0, 1.0], atol=1e-6)


def test_an_owner_without_missing_cells_marks_them_too_where_another_has_some(together: Together) -> None:
    field = Field("x", Kind.INTEGER, domain=Domain(True, 0, 9))
    tables = [pa.table({"x": pa.array([1, 2, 3])}), pa.table({"x": pa.array([None, None], pa.int64())})]
    codec, _ = codecs_of(together, tables, [Schema((field,))] * 2)[0]
    np.testing.assert_allclose(codec.encode(tables[0]).values[:, 1], 0.0)
    np.testing.assert_allclose(codec.encode(tables[1]).values, [[0.0, 1.0]] * 2)


def test_a_column_without_any_value_at_any_owner_is_refused(together: Together) -> None:
    field = Field("x", Kind.INTEGER, domain=Domain(True, 0, 9))
    tables = [pa.table({"x": pa.array([None] * n, pa.int64())}) for n in (2, 3)]
    with pytest.raises(SchemaError, match="'x' has no value in any of the 5 rows of all owners"):
        codecs_of(together, tables, [Schema((field,))] * 2)
    with pytest.raises(TableError, match="have no rows"):
        codecs_of(together, [table.slice(0, 0) for table in tables], [Schema((field,))] * 2)


@pytest.mark.parametrize(
    ("field", "lacking"),
    [
        (Field("age", Kind.INTEGER, domain=Domain(False, 0, 120)), "bounds"),
        (Field("age", Kind.INTEGER, domain=Domain(True, 0)), "bounds"),
        (Field("age", Kind.CONTINUOUS), "bounds"),
        (Field("age", Kind.DATE, domain=Domain(True, DAY, DAY)), "step"),
        (Field("age", Kind.NOMINAL, domain=Domain(False, categories=("a",))), "categories"),
        (Field("age", Kind.ORDINAL), "categories"),
    ],
)
def test_a_domain_that_is_only_observed_is_refused(together: Together, field: Field, lacking: str) -> None:
    with pytest.raises(SchemaError, match=f"the {lacking} of column 'age' are not declared; declare them in the schem"):
        codecs_of(together, [pa.table({"age": [1, 2]})] * 2, [Schema((field,))] * 2)


def test_a_cell_outside_the_declared_domain_stops_its_owner_and_the_others_hear_of_it(together: Together) -> None:
    tables = [pa.table({"age": [30, 40]}), pa.table({"age": [30, 777]})]
    schema = Schema((SCHEMA["age"],))
    heard: dict[int, str] = {}

    def play(session: Session, rank: int) -> None:
        try:
            count_cells(session, tables[rank], schema)
        except SfumatoError as error:
            heard[rank] = f"{type(error).__name__}: {error}"
            raise

    with pytest.raises(SchemaError, match="1 values outside its bounds"):
        together(play, NAMES[:2], LEAKS)
    assert heard[0].startswith("PartyError: party 'bob' gave up")
    assert "777" not in "".join(heard.values())


def test_owners_with_other_columns_are_told_which(together: Together) -> None:
    table = pa.table({"age": [30, 40], "pay": [1.0, 2.0]})
    schema = Schema((SCHEMA["age"], SCHEMA["pay"]))
    wider = dataclasses.replace(SCHEMA["pay"], domain=Domain(True, 0.0, 2e6, step=0.5))
    tables = [table, table, table.set_column(0, "age", pa.array([30.0, 40.0]))]
    with pytest.raises(PartyError, match=r"party '(ann|cy)' differ from those here, the first difference is in 'age'"):
        codecs_of(together, tables, [schema] * 3)
    with pytest.raises(PartyError, match=r"party '(ann|bob)' differ from those here, the first difference is in 'pay'"):
        codecs_of(together, [table] * 2, [schema, Schema((SCHEMA["age"], wider))])
    other = schema.with_role(Role.TARGET, "pay")
    with pytest.raises(PartyError, match="the first difference is in names and roles"):
        codecs_of(together, [table] * 2, [schema, other])


def test_nothing_is_seen_but_sums_and_digests(together: Together) -> None:
    table = a_table(30, np.random.default_rng(8))

    def play(session: Session, rank: int) -> list[tuple[str, str]]:
        own = table.slice(10 * rank, 10)
        joint_codec(session, own, SCHEMA, count_cells(session, own, SCHEMA))
        return [(entry.action, entry.label) for entry in session.transcript.entries]

    seen = together(play, NAMES[:3], LEAKS)[0]
    assert [step for step in seen if step[0] == "sum"] == [
        ("sum", "rows"),
        ("sum", "bare rows"),
        ("sum", "column sums"),
        ("sum", "column squares"),
    ]
    assert {step for step in seen if step[0] != "sum"} == {("told", "columns"), ("told", "codec")}


@pytest.mark.parametrize("few", [1, 2])
@pytest.mark.parametrize("what", ["rows", "cells"])
def test_one_or_two_rows_or_cells_of_the_others_are_refused_before_a_sum_of_cells_is_opened(
    together: Together, what: str, few: int
) -> None:
    """Else the first owner would take its own part off the column sums and have the others' cells."""
    heat = SCHEMA["heat"]
    cells = [float(value) for value in range(20)]
    missing: list[float | None] = [None] * (9 if what == "cells" else 0)
    parts = [cells, [1.0] * few + missing, missing]
    tables = [pa.table({"heat": pa.array(part, pa.float64())}) for part in parts]
    seen: list[set[str]] = []

    def play(session: Session, rank: int) -> None:
        try:
            count_cells(session, tables[rank], Schema((heat,)))
        finally:
            seen.append({entry.label for entry in session.transcript.entries if entry.action == "sum"})

    with pytest.raises(PrivacyRefusal, match=r"1 times|2 times"):
        together(play, NAMES[:3], LEAKS)
    assert seen == [{"rows", "bare rows"}] * 3
