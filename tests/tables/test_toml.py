"""The schema as a file: what is written comes back, what a person edits counts, what is malformed is named."""

from __future__ import annotations

import dataclasses
import datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.errors import OptionError, SchemaError
from sfumato.engines.outcome import Recipe
from sfumato.tables.codec import Codec
from sfumato.tables.schema import DateStep, Domain, Field, Kind, Role, Schema
from tests.examples import examples

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NUMBERS = st.one_of(st.integers(-(2**53), 2**53), st.floats(allow_nan=False, allow_infinity=False))
MOMENTS = st.datetimes(datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31))


@st.composite
def domains(draw: st.DrawFn, kind: Kind) -> Domain:
    units = draw(st.none() | TEXTS)
    declared = draw(st.booleans())
    if kind in (Kind.NOMINAL, Kind.ORDINAL, Kind.BOOLEAN):
        pool: st.SearchStrategy[Any] = draw(st.sampled_from([TEXTS, st.booleans(), st.integers(-9, 9), NUMBERS]))
        most = 2 if kind is Kind.BOOLEAN else 5
        categories = draw(st.none() | st.lists(pool, min_size=1, max_size=most, unique=True))
        return Domain(declared, categories=None if categories is None else tuple(categories), units=units)
    low, high = sorted(draw(st.tuples(*[MOMENTS if kind is Kind.DATE else st.integers(-99, 99)] * 2)))
    steps: st.SearchStrategy[Any] = st.sampled_from(DateStep) if kind is Kind.DATE else st.integers(1, 9).map(float)
    if kind is Kind.CONTINUOUS:
        steps = st.sampled_from([0.005, 0.1, 1e-9, 20.0])
    low, high = (draw(st.none() | st.just(edge)) for edge in (low, high))
    return Domain(declared, low, high, draw(st.none() | steps), None, units)


@st.composite
def fields(draw: st.DrawFn, name: str) -> Field:
    kind = draw(st.sampled_from(Kind))
    forms = {Kind.DATE: "%d.%m.%Y", Kind.CONTINUOUS: "0.000", Kind.INTEGER: "0.0"}
    return Field(
        name,
        kind,
        draw(st.sampled_from([Role.IDENTIFIER, Role.CONFIDENTIAL, Role.PUBLIC])),
        draw(domains(kind)),
        tuple(draw(st.lists(TEXTS, max_size=2))),
        draw(st.none() | st.just(forms[kind])) if kind in forms else None,
        draw(st.sampled_from(["", "whole numbers, 3 different"])),
    )


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    names = draw(st.lists(TEXTS, max_size=4, unique=True))
    return Schema(tuple(draw(fields(name)) for name in names))


@examples(150, few=37)
@given(schemas())
def test_a_schema_comes_back_from_toml_all_but_its_reasons(schema: Schema) -> None:
    back = Schema.from_toml(schema.to_toml())
    kept = (
        dataclasses.replace(each, domain=Domain())
        if each.role is Role.IDENTIFIER and not each.domain.declared
        else each
        for each in schema.without_reasons()
    )
    assert back == Schema(tuple(kept))
    assert back.digest == schema.digest
    for one, other in zip(schema, back, strict=True):
        if one.role is Role.IDENTIFIER:
            continue
        types = [[type(category) for category in field.domain.categories or ()] for field in (one, other)]
        assert types[0] == types[1]


def test_reasons_and_directions_stand_as_comments() -> None:
    text = Schema.infer(pa.table({"age": [30, 41, 52]})).to_toml()
    assert "# why: whole numbers, 3 different" in text
    assert "# kind: continuous, integer" in text
    assert "--schema" in text


@pytest.mark.parametrize("role", [Role.IDENTIFIER, Role.PERSON])
def test_a_column_that_is_dropped_lists_no_value_in_a_file(role: Role) -> None:
    patients = tuple(f"p{row}" for row in range(3_500))
    schema = Schema((Field("who", Kind.NOMINAL, role, Domain(categories=patients)), Field("age", Kind.INTEGER)))
    recipe = Recipe("chain", {}, schema).to_toml()
    for text in (schema.to_toml(), recipe):
        assert "p17" not in text
    assert Recipe.from_toml(recipe).schema["who"] == Field("who", Kind.NOMINAL, role)


def test_no_line_of_a_schema_is_wider_than_a_page() -> None:
    codes = tuple(f"K{row:03d}" for row in range(400))
    why = ", ".join(["whole numbers, 3 different"] * 9)
    schema = Schema((Field("code", Kind.NOMINAL, domain=Domain(categories=codes), reason=why),))
    text = schema.to_toml()
    assert max(map(len, text.splitlines())) <= 122
    assert Schema.from_toml(text)["code"].domain.categories == codes


def test_an_edited_role_counts() -> None:
    text = Schema.infer(pa.table({"age": [30, 41, 52], "pay": [1, 2, 7]})).to_toml()
    schema = Schema.from_toml(text.replace('role = "confidential"', 'role = "target"', 1))
    assert schema.target is not None
    assert schema.target.name == "age"


def test_declared_bounds_leave_with_the_release_and_observed_ones_do_not() -> None:
    table = pa.table({"age": [30, 41, 52], "pay": [1, 2, 7]})
    text = Schema.infer(table).to_toml()
    old = 'domain = {source = "observed", low = 30, high = 52, step = 1.0}'
    assert old in text
    schema = Schema.from_toml(text.replace(old, "domain = { low = 0, high = 120 }"))
    assert schema["age"].domain == Domain(declared=True, low=0, high=120)
    assert [field.domain for field in schema.public_part()] == [schema["age"].domain, Domain()]


def test_what_leaves_of_a_schema_says_neither_how_values_were_widened_nor_why() -> None:
    zip_code = Field("zip", Kind.NOMINAL, hierarchy="prefix 3", coarsened=1, reason="text with 7 categories")
    schema = Schema((zip_code, Field("name", Kind.NOMINAL, Role.IDENTIFIER), Field("who", Kind.NOMINAL, Role.PERSON)))
    assert schema.public_part().fields == (Field("zip", Kind.NOMINAL),)


def test_a_role_that_one_column_has_is_taken_from_another() -> None:
    schema = Schema(tuple(Field(name, Kind.NOMINAL) for name in "abc"))
    for role, left in (
        (Role.TARGET, Role.CONFIDENTIAL),
        (Role.LEVEL, Role.CONFIDENTIAL),
        (Role.PERSON, Role.IDENTIFIER),
    ):
        told = schema.with_role(role, "a")
        assert [field.role for field in told.with_role(role, "b")] == [left, role, Role.CONFIDENTIAL]
        assert told.with_role(role) == told
    both = schema.with_role(Role.IDENTIFIER, "a").with_role(Role.IDENTIFIER, "b")
    assert [field.role for field in both] == [Role.IDENTIFIER, Role.IDENTIFIER, Role.CONFIDENTIAL]
    assert [field.role for field in both.with_role(Role.TARGET, "c").without_target()] == [field.role for field in both]


def test_edited_categories_are_the_ones_encoded() -> None:
    table = pa.table({"grade": ["low", "high", "low"]})
    text = 'format = 1\n[[column]]\nname = "grade"\nkind = "ordinal"\ndomain = { categories = ["low", "mid", "high"] }'
    codec = Codec.fit(table, Schema.from_toml(text))
    assert codec.numbers(table, "grade")[0].tolist() == [0.0, 2.0, 0.0]


def test_a_changed_kind_needs_no_list_of_what_was_seen() -> None:
    table = pa.table({"code": [3, 5, 9, 3], "day": ["2020-01-01", "2020-03-01", "2020-01-05", "2020-01-01"]})
    text = 'format = 1\n[[column]]\nname = "code"\nkind = "nominal"\n[[column]]\nname = "day"\nkind = "date"\n'
    codec = Codec.fit(table, Schema.from_toml(text))
    assert codec.schema["code"].domain == Domain(categories=(3, 5, 9))
    assert codec.schema["day"].domain.step is DateStep.DAY
    assert codec.decode(codec.encode(table).values).equals(table)


def test_categories_filled_in_are_observed_even_in_a_declared_domain() -> None:
    schema = Schema((Field("code", Kind.NOMINAL, domain=Domain(declared=True, units="ICD")),))
    codec = Codec.fit(pa.table({"code": ["a", "b"]}), schema)
    assert codec.schema.public_part()["code"].domain == Domain()


def test_a_moment_with_a_time_zone_counts_in_utc() -> None:
    text = 'format = 1\n[[column]]\nname = "seen"\nkind = "date"\ndomain = { low = 2020-01-01T01:00:00+02:00 }'
    assert Schema.from_toml(text)["seen"].domain.low == datetime.datetime(2019, 12, 31, 23)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"kind": '"number"'}, "has no known kind"),
        ({"role": '"secret"'}, "has no known role"),
        ({"role": "[]"}, "has no known role"),
        ({"missing": '"?"'}, "is not a list of texts"),
        ({"missing": "[1]"}, "is not a list of texts"),
        ({"format": "3"}, "is not a text"),
        ({"format": '"%Y"'}, "not a number of decimals"),
        ({"colour": '"red"'}, "unknown entry 'colour'"),
        ({"domain": "3"}, "is not a table"),
        ({"domain": '{ source = "guess" }'}, "unknown source"),
        ({"domain": "{ lowest = 1 }"}, "unknown entry 'lowest'"),
        ({"domain": '{ low = "8642" }'}, "not a finite number"),
        ({"domain": "{ low = nan }"}, "not a finite number"),
        ({"domain": "{ high = inf }"}, "not a finite number"),
        ({"domain": "{ low = true }"}, "not a finite number"),
        ({"domain": "{ low = 2020-01-01 }"}, "not a finite number"),
        ({"domain": "{ low = 8642, high = 1 }"}, "lower bound above its upper"),
        ({"domain": "{ low = 8642.2, high = 8642.8 }"}, "no whole number between"),
        ({"domain": "{ step = 0 }"}, "not a number above 0"),
        ({"domain": "{ step = inf }"}, "not a number above 0"),
        ({"domain": '{ step = "day" }'}, "not a number above 0"),
        ({"domain": "{ step = 0.5 }"}, "is not whole"),
        ({"domain": "{ units = 3 }"}, "is not a text"),
        ({"domain": "{ categories = [8642] }"}, "has categories"),
        ({"kind": '"nominal"', "domain": '{ categories = "8642" }'}, "are not a list"),
        ({"kind": '"nominal"', "domain": "{ categories = [] }"}, "are not a list of different"),
        ({"kind": '"nominal"', "domain": '{ categories = ["8642", "8642"] }'}, "are not a list of different"),
        ({"kind": '"nominal"', "domain": '{ categories = ["8642", 1] }'}, "are not a list of different"),
        ({"kind": '"nominal"', "domain": "{ categories = [[8642]] }"}, "are not a list of different"),
        ({"kind": '"nominal"', "domain": "{ categories = [nan] }"}, "are not a list of different"),
        ({"kind": '"nominal"', "domain": "{ low = 8642 }"}, "has bounds"),
        ({"kind": '"nominal"', "domain": "{ step = 1 }"}, "has a step"),
        ({"kind": '"nominal"', "format": '"0.0"'}, "has a format"),
        ({"kind": '"boolean"', "domain": "{ categories = [1, 2, 8642] }"}, "lists 3 categories"),
        ({"kind": '"date"', "domain": "{ low = 8642 }"}, "is not a date"),
        ({"kind": '"date"', "domain": "{ step = 1 }"}, "has no known step"),
        ({"kind": '"date"', "format": '"8642"'}, "is not one"),
    ],
)
def test_a_malformed_entry_is_refused_by_column_and_without_data(changes: dict[str, str], words: str) -> None:
    lines = [f"{key} = {value}" for key, value in {"name": '"age"', "kind": '"integer"', **changes}.items()]
    with pytest.raises(SchemaError, match=words) as caught:
        Schema.from_toml("format = 1\n[[column]]\n" + "\n".join(lines))
    assert "'age'" in str(caught.value)
    assert "8642" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None or caught.value.__suppress_context__


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("format = 1\n[[column]\n", r"not valid TOML \(at line 2"),
        ("", "no 'format = 1'"),
        ("format = 2", "no 'format = 1'"),
        ("format = 1\nrows = 3", "unknown entry 'rows'"),
        ("format = 1\ncolumn = 3", r"not written as \[\[column\]\]"),
        ("format = 1\n[[column]]\nkind = 'integer'", "column number 1 of the schema has no name"),
        ("format = 1\n[[column]]\nname = 'a'", "column 'a' has no known kind"),
        ("format = 1\n" + "[[column]]\nname = 'a'\nkind = 'integer'\n" * 2, "column 'a' stands 2 times"),
        ("format = 1\n" + "".join(f"[[column]]\nname='{n}'\nkind='date'\nrole='target'\n" for n in "ab"), "2 columns"),
    ],
)
def test_a_malformed_file_is_refused(text: str, words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        Schema.from_toml(text)


def test_a_schema_file_that_is_not_there_or_not_text_is_refused(tmp_path: Any) -> None:
    (tmp_path / "latin.toml").write_bytes(b"\xff")
    for path, words in [(tmp_path / "no.toml", "no schema file"), (tmp_path / "latin.toml", "not UTF-8")]:
        with pytest.raises(OptionError, match=words):
            Schema.load(path)


def test_bounds_of_numpy_and_of_dates_are_kept_plain() -> None:
    import numpy as np

    domain = Domain(low=np.int64(3), high=np.float64(4.5), categories=None)  # type: ignore[arg-type]
    assert (type(domain.low), type(domain.high)) == (int, float)
    assert Domain(low=datetime.date(2020, 1, 2)).low == datetime.datetime(2020, 1, 2)  # type: ignore[arg-type]


def test_a_field_changed_by_hand_is_checked_too() -> None:
    with pytest.raises(SchemaError, match="column 'a' is nominal and has bounds"):
        dataclasses.replace(Field("a", Kind.INTEGER, domain=Domain(low=1)), kind=Kind.NOMINAL)
