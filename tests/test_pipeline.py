from __future__ import annotations

import datetime
import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.errors import LevelError, OptionError, PrivacyRefusal, TableError
from sfumato.core.facts import ColumnsDropped
from sfumato.tables.schema import Field, Kind, Schema

pytestmark = pytest.mark.usefixtures("without_figures")


def columns(n: int = 90) -> dict[str, Any]:
    rng = np.random.default_rng(3)
    return {
        "code": [f"x{row}" for row in range(n)],
        "age": rng.integers(18, 90, n),
        "weight": rng.normal(70, 12, n).round(1),
        "town": rng.choice(["Ulm", "Bari", "Lodz"], n).tolist(),
        "born": [datetime.date(1950, 1, 1) + datetime.timedelta(days=int(day)) for day in rng.integers(0, 20000, n)],
        "smokes": rng.random(n) < 0.3,
    }


FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}


@pytest.mark.usefixtures("columns_only")
@pytest.mark.parametrize("library", list(FRAMES))
def test_a_frame_gives_back_its_own_type(library: str) -> None:
    frame = FRAMES[library](columns())
    release = sf.sanitize(frame, sf.Condensation(k=5))
    assert type(release.table) is type(frame)
    before, after = pa.table(frame), pa.table(release.table)
    assert after.column_names == before.column_names[1:]
    assert after.num_rows == before.num_rows
    assert [after.schema.field(name).type for name in after.column_names] == [
        before.schema.field(name).type for name in after.column_names
    ]


def test_the_same_seed_gives_the_same_table_and_another_gives_another() -> None:
    table = pa.table(columns())
    first, again, other = (sf.sanitize(table, sf.Condensation(k=5), seed=seed, report=False) for seed in (1, 1, 2))
    assert first.table.equals(again.table)
    assert not first.table.equals(other.table)
    assert first.certificate.randomness == "dry-run"


def test_the_original_is_untouched() -> None:
    frame = pd.DataFrame(columns())
    copy = frame.copy(deep=True)
    sf.sanitize(frame, sf.Condensation(k=5), report=False)
    pd.testing.assert_frame_equal(frame, copy)


def test_a_pandas_index_does_not_leak() -> None:
    frame = pd.DataFrame(columns()).set_index("code")
    table = sf.sanitize(frame, sf.Condensation(k=5), report=False).table
    assert list(table.index) == list(range(len(frame)))
    assert "code" not in table.columns


def test_levels_come_from_rules_and_the_column_that_carries_them_is_dropped() -> None:
    table = pa.table(columns() | {"asks": [4, 7] * 45})
    by_column = sf.sanitize(table, sf.Condensation(k=2), level="asks", report=False)
    assert "asks" not in by_column.table.column_names
    assert by_column.certificate.levels["smallest_group"] >= 4
    by_rule = sf.sanitize(table, sf.Condensation(k=3), level="age > 60 and town == Ulm: 9, else: 4", report=False)
    assert by_rule.certificate.levels["smallest_group"] >= 4
    for release in (by_column, by_rule):
        assert release.certificate.levels["violations"] == 0
        assert set(release.certificate.levels) == {"smallest_group", "groups", "violations"}


def test_a_rule_without_else_leaves_the_rest_to_k() -> None:
    release = sf.sanitize(pa.table(columns()), sf.Condensation(k=3), level="age > 60: 9", report=False)
    assert 3 <= release.certificate.levels["smallest_group"] < 9


def test_held_out_rows_do_not_enter_the_release() -> None:
    table = pa.table(columns() | {"age": [30.0] * 45 + [50.0] * 45})
    release = sf.sanitize(table, sf.Condensation(k=5), holdout=0.2, report=False)
    assert release.certificate.rows_in == 72
    assert any(type(fact).__name__ == "HeldOut" for fact in release.certificate.facts)


@pytest.mark.usefixtures("without_utility")
def test_rows_given_as_holdout_may_hold_what_the_table_does_not() -> None:
    table = pa.table(columns())
    other = pa.table(columns(20) | {"town": ["Oslo"] * 20, "age": [None] * 10 + [99] * 10})
    report = sf.sanitize(table, sf.Condensation(k=5), holdout=other).report
    assert report is not None


@pytest.mark.parametrize(
    ("frame", "error", "words"),
    [
        ([1, 2], TableError, "pandas, polars or pyarrow"),
        (pa.table({"a": pa.array([], pa.int64())}), TableError, "no rows"),
        (pa.table({"a": [1, 2, 3]}), LevelError, "3 records"),
    ],
)
def test_what_is_no_table_is_refused(frame: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        sf.sanitize(frame, sf.Condensation(k=5))


def test_a_public_column_is_refused() -> None:
    with pytest.raises(PrivacyRefusal, match="'town'"):
        sf.sanitize(pa.table(columns()), public=["town"])


def test_an_unknown_column_is_named() -> None:
    for option in ({"target": "x"}, {"strata": "x"}, {"level": "x"}, {"identifiers": ["x"]}, {"public": ["x"]}):
        with pytest.raises(OptionError, match="'x'"):
            sf.sanitize(pa.table(columns()), **option)


def test_strata_keep_their_counts_and_their_pairs() -> None:
    table = pa.table(columns())
    release = sf.sanitize(table, sf.Condensation(k=5), strata="town", target="town", report=False)
    count = table.group_by("town").aggregate([("smokes", "sum")]).sort_by("town")
    again = release.table.group_by("town").aggregate([("smokes", "sum")]).sort_by("town")
    assert again.equals(count)


@pytest.mark.usefixtures("columns_only")
def test_no_repr_shows_a_cell() -> None:
    table = pa.table(columns() | {"town": ["Zyxwv"] * 90, "age": [987654321] * 90})
    release = sf.sanitize(table, sf.Condensation(k=5))
    shown = [repr(release), repr(release.schema), str(release.schema), repr(release.certificate), repr(release.report)]
    shown += [repr(release.recipe), repr(release.schema["town"]), repr(release.schema["age"].domain)]
    assert not any(cell in text for text in shown for cell in ("Zyxwv", "987654321"))


@pytest.mark.usefixtures("columns_only")
def test_evaluate_measures_a_table_of_any_tool() -> None:
    frame = pd.DataFrame(columns())
    report = sf.evaluate(frame, frame.sample(frac=1.0, random_state=1))
    assert {finding.family.value for finding in report.findings} >= {"utility", "privacy"}
    with pytest.raises(TableError, match="lacks 1 columns"):
        sf.evaluate(frame, frame.drop(columns="town"))


def test_the_public_names_are_sorted_and_load() -> None:
    assert sf.__all__ == sorted(sf.__all__)
    assert all(hasattr(sf, name) for name in sf.__all__)
    with pytest.raises(AttributeError):
        sf.nothing  # noqa: B018


def with_empty(count: int = 40) -> pa.Table:
    return pa.table(
        {"age": [place % 23 for place in range(count)], "sex": ["f", "m"] * (count // 2), "note": pa.nulls(count)}
    )


def test_a_column_without_any_value_is_dropped_with_a_word() -> None:
    with pytest.warns(UserWarning, match="any of the 40 rows were dropped: 1, the first is 'note'"):
        release = sf.sanitize(with_empty(), sf.Condensation(k=5), seed=1, report=False)
    assert release.table.column_names == ["age", "sex"]
    assert ColumnsDropped((), (), ("note",)) in release.certificate.facts


@pytest.mark.parametrize("told", [(), ("note",)])
def test_a_column_without_any_value_is_not_said_to_identify_anybody(told: tuple[str, ...]) -> None:
    table = with_empty().append_column("name", pa.array([f"person {place}" for place in range(40)]))
    with warnings.catch_warnings(action="ignore"):
        release = sf.sanitize(table, sf.Condensation(k=5), seed=1, report=False, identifiers=["name", *told])
    said = [claim.claim for claim in release.certificate.claims]
    assert "The release omits 1 direct identifier and 1 empty column." in said


def test_a_column_without_any_value_that_is_told_to_be_dropped_needs_no_word() -> None:
    release = sf.sanitize(with_empty(), sf.Condensation(k=5), seed=1, report=False, identifiers=["note"])
    assert release.table.column_names == ["age", "sex"]


def test_a_column_that_a_schema_declares_and_that_has_no_value_is_dropped_with_a_word() -> None:
    schema = Schema((Field("age", Kind.INTEGER), Field("sex", Kind.NOMINAL), Field("note", Kind.INTEGER)))
    with pytest.warns(UserWarning, match="columns without a value in any of the 40 rows were dropped"):
        release = sf.sanitize(with_empty(), sf.Condensation(k=5), schema=schema, seed=1, report=False)
    assert release.table.column_names == ["age", "sex"]


def test_a_table_without_any_value_is_refused() -> None:
    with pytest.raises(TableError, match="none of the 2 columns has a value"):
        sf.sanitize(pa.table({"a": pa.nulls(9), "b": [""] * 9}), sf.Condensation(k=3), seed=1)


@pytest.mark.parametrize("far", [2**63, 2**64 - 1])
def test_whole_numbers_beyond_63_bits_come_back_exactly(far: int) -> None:
    cells = pa.array([far - place % 3 for place in range(60)], pa.uint64())
    table = pa.table({"age": list(range(60)), "code": cells})
    release = sf.sanitize(table, sf.Condensation(k=5), seed=1, report=False)
    assert release.table.column("code").type == pa.uint64()
    assert sorted(release.table.column("code").to_pylist()) == sorted(cells.to_pylist())
