"""With and without extreme people: what fewer than k of them hold at the end of a column shows in no release."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import mannwhitneyu

import sfumato as sf
from sfumato.tables.schema import Domain, Field, Kind, Schema
from tests.partitions.test_partitions import run

K, ROWS = 10, 400
MECHANISMS: dict[str, Callable[[], Any]] = {
    "chain": lambda: sf.Chain(k=K, leaf=20),
    "condense": lambda: sf.Condensation(k=K, effort="fast"),
    "classwise": lambda: sf.ClasswiseCondensation(k=K, effort="fast"),
    "condense-paper": lambda: sf.Condensation(k=K, grouping="paper"),
}
Ends = dict[str, tuple[float, float]]


def numbers(rng: np.random.Generator, rows: int = ROWS) -> dict[str, np.ndarray[Any, Any]]:
    """Numbers of all kinds within known ends: few and many values, whole ones and others, skewed ones."""
    pay = np.minimum(np.round(rng.lognormal(8, 0.5, rows)), 12_000)
    return {
        "visits": np.minimum(rng.poisson(2, rows), 6),
        "age": rng.integers(18, 90, rows),
        "bmi": np.round(np.clip(rng.normal(26, 3, rows), 18, 36), 1),
        "seen": rng.integers(0, 90, rows),
        "pay": pay,
        "debt": -pay,
        "exact": rng.normal(0, 1, rows),
    }


def people(extreme: int, seed: int) -> tuple[pa.Table, Ends]:
    """People some of whom hold extreme values at both ends of all columns, and the range of everybody else's."""
    rng = np.random.default_rng(seed)
    columns: dict[str, Any] = {}
    ends: Ends = {}
    for end in ("low", "high"):
        for name, values in numbers(rng).items():
            values = values.astype(np.float64)
            others = values[extreme:]
            ends[f"{name}_{end}"] = float(others.min()), float(others.max())
            far = (3.0 + np.arange(extreme)) * max(1.0, round(np.ptp(others)))
            values[:extreme] = others.max() + far if end == "high" else others.min() - far
            columns[f"{name}_{end}"] = values
    table = pa.table(columns)
    for name in table.column_names:
        if name.startswith(("visits", "age")):
            table = with_column(table, name, table.column(name).cast(pa.int64()))
        elif name.startswith("seen"):
            table = with_column(table, name, (table.column(name).cast(pa.int32())).cast(pa.date32()))
    table = table.append_column("sex", pa.array(rng.choice(["F", "M"], ROWS)))
    return table.append_column("ill", pa.array(rng.choice(["no", "yes"], ROWS))), ends


def with_column(table: pa.Table, name: str, cells: Any) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, cells)


def beyond(released: pa.Table, ends: Ends) -> list[str]:
    """Columns in which something lies beyond everybody else's values."""
    found = []
    for name, (low, high) in ends.items():
        cells = released.column(name)
        cells = cells.cast(pa.int32()) if pa.types.is_date(cells.type) else cells
        values = cells.drop_null().to_numpy()
        if values.min() < low or values.max() > high:
            found.append(name)
    return found


def released(table: pa.Table, method: str, **options: Any) -> pa.Table:
    schema = options.pop("schema", None) or Schema.infer(table).without_rules()
    told: dict[str, Any] = {"schema": schema, "target": "ill", "seed": 3, "report": False} | options
    if "person" not in told:
        told["rows_are_people"] = True
    made = sf.sanitize(table, MECHANISMS[method](), **told).table
    assert isinstance(made, pa.Table)
    return made


@pytest.mark.parametrize("extreme", [1, 3, K - 1])
@pytest.mark.parametrize("method", MECHANISMS)
def test_nothing_beyond_everybody_elses_value_is_released(method: str, extreme: int) -> None:
    table, ends = people(extreme, extreme)
    assert beyond(table, ends) == list(ends)
    assert not beyond(released(table, method), ends)


def test_kept_tails_show_the_extreme_people() -> None:
    table, ends = people(3, 1)
    assert len(beyond(released(table, "chain", tails="keep"), ends)) > len(ends) / 2


@pytest.mark.parametrize("extreme", [1, 3, K - 1])
@pytest.mark.parametrize("method", MECHANISMS)
def test_persons_with_several_rows_are_as_well_hidden(method: str, extreme: int) -> None:
    table, ends = people(extreme, 10 + extreme)
    who = np.concatenate([np.arange(extreme), np.arange(extreme), np.arange(extreme, ROWS - extreme)])
    twice = pa.concat_tables([table.slice(0, extreme), table.slice(0, ROWS - extreme)])
    twice = twice.append_column("who", pa.array([f"p{person}" for person in who]))
    assert not beyond(released(twice, method, person="who"), ends)


@pytest.mark.parametrize("extreme", [1, 3, K - 1])
def test_rows_that_stay_with_their_person_are_as_well_hidden(extreme: int) -> None:
    table, ends = people(extreme, 20 + extreme)
    who = pa.array([f"p{row // 2}" for row in range(ROWS)])
    table = table.append_column("who", who)
    assert not beyond(released(table, "condense", person="who", keep_persons=True), ends)


@pytest.mark.parametrize("extreme", [1, 3, K - 1])
@pytest.mark.parametrize("method", ["chain", "condense", "classwise"])
def test_large_weights_show_neither_in_a_weight_nor_in_their_sum(method: str, extreme: int) -> None:
    table, ends = people(extreme, 30 + extreme)
    usual = np.random.default_rng(extreme).uniform(0.5, 2.0, ROWS).round(2)
    far = np.where(np.arange(ROWS) < extreme, 500.0, usual)
    totals = []
    for weights in (usual, far):
        made = released(table.append_column("weight", pa.array(weights)), method, weight="weight")
        assert not beyond(made, ends)
        own = made.column("weight").to_numpy()
        assert own.max() <= 2.0
        totals.append(own.sum())
    assert totals[1] - totals[0] <= 1.5 * extreme


@pytest.mark.parametrize("extreme", [1, 3, K - 1])
@pytest.mark.parametrize("method", MECHANISMS)
def test_extreme_people_of_one_stratum_are_as_well_hidden(method: str, extreme: int) -> None:
    table, ends = people(extreme, 40 + extreme)
    sex = np.array(table.column("sex").to_pylist(), dtype=object)
    sex[:extreme] = "F"
    table = with_column(table, "sex", pa.array(sex.tolist()))
    options = {"strata": "sex"} if method != "classwise" else {}
    assert not beyond(released(table, method, **options), ends)


@pytest.mark.parametrize("extreme", [1, 3, K - 1])
@pytest.mark.parametrize("method", MECHANISMS)
def test_declared_bounds_do_not_show_who_reaches_them(method: str, extreme: int) -> None:
    table, ends = people(extreme, 50 + extreme)
    fields = []
    for field in Schema.infer(table).without_rules():
        if field.kind in (Kind.CONTINUOUS, Kind.INTEGER):
            domain = Domain(declared=True, low=-1_000_000.0, high=1_000_000.0, step=field.domain.step)
            field = Field(field.name, field.kind, domain=domain)
        fields.append(field)
    made = released(table, method, schema=Schema(tuple(fields)))
    assert not beyond(made, ends)


@pytest.mark.parametrize("extreme", [1, 3, K - 1])
@pytest.mark.parametrize("method", MECHANISMS)
def test_a_table_in_partitions_hides_extreme_people(method: str, extreme: int) -> None:
    table, ends = people(extreme, 60 + extreme)
    told: dict[str, Any] = {"schema": Schema.infer(table).without_rules(), "target": "ill", "rows_are_people": True}
    outcome = run(table, MECHANISMS[method](), most_rows=150, **told)
    assert isinstance(outcome.table, pa.Table)
    assert not beyond(outcome.table, ends)


def visits(extreme: int, seed: int) -> tuple[pa.Table, Ends]:
    """Stays computed from two dates, and sums of two numbers, with a given number of long and costly ones."""
    rng = np.random.default_rng(seed)
    admission, stay = rng.integers(0, 300, ROWS), rng.poisson(4, ROWS)
    net, tax = rng.integers(100, 9_999, ROWS), rng.integers(1, 2_000, ROWS)
    ends = {
        name: (float(each.min()), float(each.max()))
        for name, each in zip(("stay", "net", "tax"), (stay, net, tax), strict=True)
    }
    ends["admission"] = float(admission.min()), float(admission.max())
    stay[:extreme] = 900 + 7 * np.arange(extreme)
    net[:extreme], tax[:extreme] = 90_000, 40_000
    admission[:extreme] -= 2_000
    table = {
        "admission": pa.array(admission, pa.int32()).cast(pa.date32()),
        "discharge": pa.array(admission + stay, pa.int32()).cast(pa.date32()),
        "stay": stay,
        "net": net,
        "tax": tax,
        "total": net + tax,
        "ill": rng.choice(["no", "yes"], ROWS),
    }
    return pa.table(table), ends


RULES = ("admission <= discharge", "stay = discharge - admission", "total = net + tax")


@pytest.mark.parametrize("extreme", [1, 3, K - 1])
@pytest.mark.parametrize("method", MECHANISMS)
def test_columns_of_rules_hide_extreme_people(method: str, extreme: int) -> None:
    table, ends = visits(extreme, 70 + extreme)
    ends |= {
        name: (ends[one][0] + ends[other][0], ends[one][1] + ends[other][1])
        for name, one, other in (("discharge", "admission", "stay"), ("total", "net", "tax"))
    }
    schema = Schema(Schema.infer(table).fields, RULES)
    made = released(table, method, schema=schema)
    assert set(beyond(table, ends)) >= {"admission", "stay", "net", "tax", "total"}
    assert not beyond(made, ends)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["chain", "condense", "classwise"])
def test_neither_extremes_nor_means_nor_spreads_of_releases_tell_whether_an_extreme_person_is_inside(
    method: str,
) -> None:
    """Each of 14 columns is compared by three statistics; a false alarm has a chance below 42 times 1e-8."""
    told: dict[int, list[list[float]]] = {0: [], 1: []}
    for extreme in told:
        for seed in range(60):
            table, ends = people(extreme, 1000 * (1 + extreme) + seed)
            made = released(table, method, seed=seed)
            row = []
            for name in ends:
                cells = made.column(name)
                cells = cells.cast(pa.int32()) if pa.types.is_date(cells.type) else cells
                values = cells.to_numpy().astype(np.float64) * (1 if name.endswith("high") else -1)
                row += [values.max(), values.mean(), values.std()]
            told[extreme].append(row)
    chances = mannwhitneyu(np.array(told[0]), np.array(told[1]), axis=0).pvalue
    assert np.nanmin(chances) > 1e-8
