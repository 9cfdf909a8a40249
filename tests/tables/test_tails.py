"""Tails: no number or date lies beyond what k persons reach, one person moves a cut-off little, and types stay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.errors import OptionError
from sfumato.core.randomness import Randomness
from sfumato.tables.cells import numbers_of_cells
from sfumato.tables.codec import Codec
from sfumato.tables.facts import TailsCoded
from sfumato.tables.field import DateStep, Role
from sfumato.tables.schema import Domain, Field, Kind, Schema
from sfumato.tables.tails import TailMethod, Tails, fit_tails
from tests.examples import examples

CLAIM = "In each column separately, no released number or date lies beyond a cut-off computed from at "


def fitted(table: pa.Table, schema: Schema | None = None, k: int = 5, seed: int = 1, **options: Any) -> Tails:
    schema = Schema(tuple(Field(name, Kind.CONTINUOUS) for name in table.column_names)) if schema is None else schema
    return fit_tails(table, schema, k=k, rng=Randomness(seed).generator("tails"), **options)


def coded(values: Any, k: int = 5, seed: int = 1, **options: Any) -> np.ndarray[Any, Any]:
    """Numbers of one column with their tails coded."""
    table = pa.table({"x": pa.array(np.asarray(values, dtype=np.float64), from_pandas=True)})
    uniform = np.random.default_rng(seed).random(table.num_rows)
    cells = fitted(table, k=k, seed=seed, **options).code(table, uniform).column("x")
    return np.asarray(cells.to_numpy(zero_copy_only=False), dtype=np.float64)


def of_persons(values: np.ndarray[Any, Any], persons: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Largest value of each person, in falling order."""
    return np.sort([values[persons == person].max() for person in np.unique(persons)])[::-1]


def drawn(rng: np.random.Generator, rows: int, kind: str) -> np.ndarray[Any, Any]:
    if kind == "skewed":
        return rng.lognormal(3.0, 1.5, rows)
    if kind == "heap":
        return np.where(rng.random(rows) < 0.6, 0.0, rng.normal(0.0, 9.0, rows))
    return rng.poisson(3.0, rows).astype(np.float64) if kind == "counts" else rng.normal(50.0, 20.0, rows).round(1)


KINDS = st.sampled_from(["skewed", "heap", "counts", "rounded"])


@given(seed=st.integers(0, 10_000), k=st.integers(2, 12), kind=KINDS, method=st.sampled_from(["code", None]))
@examples(200)
def test_no_coded_value_lies_beyond_what_k_persons_reach(
    seed: int, k: int, kind: str, method: TailMethod | None
) -> None:
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(2 * k, 300))
    values = drawn(rng, rows, kind)
    persons = rng.integers(0, max(2 * k, rows // 2), rows)
    persons[: 2 * k] = np.arange(2 * k)
    who = np.unique(persons, return_inverse=True)[1].astype(np.int64)
    made = coded(values, k, seed, persons=who, method=method)
    assert made.max() <= of_persons(values, who)[k - 1]
    assert made.min() >= -of_persons(-values, who)[k - 1]


@given(
    seed=st.integers(0, 10_000),
    k=st.integers(4, 12),
    share=st.floats(1.0, 4.0),
    extreme=st.sampled_from([1, 2, 3, 11]),
    sign=st.sampled_from([-1.0, 1.0]),
)
@examples(200)
def test_fewer_than_k_persons_far_off_do_not_move_the_numbers_of_a_column_that_few_fill(
    seed: int, k: int, share: float, extreme: int, sign: float
) -> None:
    values = np.random.default_rng(seed).normal(50.0, 10.0, int(share * k))
    extreme = min(extreme, k - 1, (len(values) - 2) // 2)
    values[:extreme] = sign * 1e9
    made = coded(values, k, seed)
    assert values[extreme:].min() <= made.min()
    assert made.max() <= values[extreme:].max()


@given(seed=st.integers(0, 10_000), k=st.integers(2, 12), far=st.sampled_from([1.0, 50.0, 1e9]))
@examples(200)
def test_one_extreme_person_moves_a_cut_off_by_one_rank_at_most(seed: int, k: int, far: float) -> None:
    rng = np.random.default_rng(seed)
    values = np.unique(rng.normal(0.0, 1.0, 300))
    ranks = np.sort(values)[::-1]
    without, inside = (coded(each, k, seed) for each in (values, np.append(values, ranks[0] + far)))
    gap = (ranks[k - 2 : 2 * k - 2] - ranks[k - 1 : 2 * k - 1]).max()
    assert without.max() <= inside.max() <= without.max() + gap + 1e-9
    assert inside.max() <= ranks[k - 2]  # which k - 1 others reach
    without, inside = (coded(each, k, seed) for each in (-values, np.append(-values, -ranks[0] - far)))
    assert without.min() - gap - 1e-9 <= inside.min() <= without.min()


@given(seed=st.integers(0, 10_000), k=st.integers(2, 10))
@examples(150)
def test_a_column_of_mostly_common_values_shows_none_that_fewer_than_k_persons_hold(seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    grade = rng.permutation(np.repeat(np.arange(6), [4 * k, 6 * k, k - 1, 5 * k, 3 * k, 1])).astype(np.float64)
    values, held = np.unique(grade, return_counts=True)
    common = values[held >= k]
    made = coded(grade, k, seed)
    assert set(made) == set(common)
    stays = np.isin(grade, common)
    np.testing.assert_array_equal(made[stays], grade[stays])
    assert set(made[grade == 5]) == {4.0}
    assert set(made[grade == 2]) <= {1.0, 3.0}


@pytest.mark.parametrize("rare", [1, 9, 30])
def test_a_heap_does_not_swallow_the_numbers_beside_it(rare: int) -> None:
    rng = np.random.default_rng(3)
    paid = np.append(np.zeros(2000), np.append(rng.gamma(2.0, 9.0, 200), np.full(rare, 500.0) + np.arange(rare)))
    made = coded(paid, 10)
    assert (made == 0).sum() == 2000
    assert made.max() <= np.sort(paid)[-10]
    assert len(np.unique(made)) > 150


@pytest.mark.parametrize("k", [2, 5, 10])
def test_two_values_of_which_fewer_than_k_persons_hold_one_become_one(k: int) -> None:
    flag = np.append(np.zeros(200), np.ones(k - 1))
    assert set(coded(flag, k)) == {0.0}
    assert set(coded(np.append(flag, 1.0), k)) == {0.0, 1.0}


def test_persons_with_several_rows_count_once() -> None:
    rng = np.random.default_rng(5)
    values = np.append(rng.normal(50.0, 5.0, 200), np.full(60, 400.0) + rng.random(60))
    persons = np.append(np.arange(200), np.full(60, 200))
    assert coded(values).max() > 400
    assert coded(values, persons=persons).max() < 70
    grade = np.append(np.arange(200) % 4, np.full(60, 9)).astype(np.float64)
    assert set(coded(grade, persons=persons)) == {0.0, 1.0, 2.0, 3.0}


@pytest.mark.parametrize("persons", [5, 6, 9])
def test_fewer_than_2k_persons_come_to_lie_between_each_other(persons: int) -> None:
    values = 10.0 + np.arange(persons) ** 2
    made = coded(values, 5)
    assert values.min() < made.min() <= made.max() < values.max()
    assert made.max() <= max(np.sort(values)[-5], (values.min() + values.max()) / 2)


def test_equal_numbers_and_missing_cells_stay() -> None:
    assert set(coded(np.full(40, 7.5))) == {7.5}
    rng = np.random.default_rng(2)
    values = np.where(rng.random(300) < 0.2, np.nan, rng.normal(size=300))
    made = coded(values)
    np.testing.assert_array_equal(np.isnan(made), np.isnan(values))
    assert np.nanmax(made) <= np.sort(values[~np.isnan(values)])[-5]


def test_further_rows_are_coded_by_the_tails_of_the_first() -> None:
    table = pa.table({"x": np.random.default_rng(4).normal(size=300)})
    tails = fitted(table)
    low, high = tails.bounds["x"]
    later = tails.code(pa.table({"x": [low, high, (low + high) / 2]}), np.full(3, 0.5)).column("x").to_pylist()
    assert later == [low, high, (low + high) / 2]


def _spread(rows: int = 300, step: int = 1) -> np.ndarray[Any, Any]:
    """Whole numbers, most of them different, with a few far away."""
    rng = np.random.default_rng(7)
    return np.append(rng.permutation(np.arange(100, 100 + rows)), [3, 5, 900, 930, 990]) * step


def _counts() -> np.ndarray[Any, Any]:
    return np.append(np.repeat(np.arange(40, 60), 8), [3, 5, 190, 193, 199])


def column_of(kind: pa.DataType, numbers: np.ndarray[Any, Any]) -> pa.Array:
    """Numbers as cells of a type."""
    if pa.types.is_date32(kind):
        return pa.array(numbers, pa.int32()).cast(kind)
    if pa.types.is_time32(kind):
        return pa.array(numbers, pa.int32()).cast(kind)
    if pa.types.is_temporal(kind):
        units = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[getattr(kind, "unit", "ms")]
        days = 86_400 if pa.types.is_timestamp(kind) or pa.types.is_date(kind) else 1
        return pa.array(numbers * units * days, pa.int64()).cast(kind)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or kind == pa.string_view():
        return pa.array([f"{number / 4:.2f}" for number in numbers]).cast(kind)
    if pa.types.is_decimal(kind) or pa.types.is_floating(kind):
        return pa.array(numbers / 4.0).cast(kind)
    return pa.array(numbers).cast(kind)


TYPES = [
    pa.int16(),
    pa.uint32(),
    pa.float32(),
    pa.float64(),
    pa.decimal128(9, 2),
    pa.string(),
    pa.large_string(),
    pa.date32(),
    pa.date64(),
    pa.timestamp("s"),
    pa.timestamp("ns", "Europe/Berlin"),
    pa.time32("s"),
    pa.time64("us"),
    pa.duration("ms"),
]


@pytest.mark.parametrize("numbers", [_spread(), _counts()], ids=["spread", "common"])
@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_a_column_comes_back_in_its_type_and_on_its_step(kind: pa.DataType, numbers: np.ndarray[Any, Any]) -> None:
    cells = column_of(kind, numbers).take(pa.array([*range(len(numbers)), None]))
    table = pa.table({"x": cells})
    schema = Schema.infer(table).with_role(Role.CONFIDENTIAL, "x")
    assert schema["x"].kind in (Kind.CONTINUOUS, Kind.INTEGER, Kind.DATE)
    made = fitted(table, schema, method="code").code(table, np.full(table.num_rows, 0.4))
    assert made.column("x").type == kind
    assert made.column("x").null_count == 1
    codec = Codec.fit(table, schema)
    codec.encode(made)  # refuses what is off the step
    before, _ = numbers_of_cells(table.column("x"), codec.schema["x"])
    after, absent = numbers_of_cells(made.column("x"), codec.schema["x"])
    known = np.sort(before[~absent])
    assert known[0] < after[~absent].min()
    assert after[~absent].max() < known[-1]
    assert known[4] <= after[~absent].min() <= after[~absent].max() <= known[-5]


def test_booleans_that_are_counted_as_numbers_stay_booleans() -> None:
    table = pa.table({"x": pa.array([True] * 3 + [False] * 60)})
    schema = Schema((Field("x", Kind.INTEGER),))
    made = fitted(table, schema).code(table, np.full(63, 0.5)).column("x")
    assert made.type == pa.bool_()
    assert made.to_pylist() == [False] * 63


def test_months_stay_months() -> None:
    months = [f"{1990 + place // 12}-{1 + place % 12:02d}-01" for place in range(240)]
    table = pa.table({"x": pa.array(months).cast(pa.date32())})
    schema = Schema((Field("x", Kind.DATE, domain=Domain(step=DateStep.MONTH)),))
    made = fitted(table, schema).code(table, np.full(240, 0.5)).column("x").to_pylist()
    assert {day.day for day in made} == {1}
    assert min(made).isoformat() >= months[4]
    assert max(made).isoformat() <= months[-5]


def test_decimal_commas_of_a_file_are_coded_on_their_step(tmp_path: Any) -> None:
    rng = np.random.default_rng(3)
    cells = [*(f"{number:.2f}".replace(".", ",") for number in rng.normal(50, 5, 300)), "4711,25"]
    lines = [f"{cell};{'ab'[row % 2]}" for row, cell in enumerate(cells)]
    (tmp_path / "table.csv").write_text("\n".join(["pay;kind", *lines]) + "\n", encoding="utf-8")
    sf.sanitize(
        tmp_path / "table.csv",
        folder=tmp_path / "out",
        engine="partitions",
        method="condense",
        k=5,
        report=False,
        seed=1,
    )
    rows = pa.csv.read_csv(tmp_path / "out" / "release" / "table.csv", parse_options=pa.csv.ParseOptions(delimiter=";"))
    released = rows.column("pay").to_numpy()
    assert released.max() < 70
    assert (np.round(released, 2) == released).all()


def test_smooth_tails_are_spread_beyond_the_cut_off_and_bounded() -> None:
    values = np.random.default_rng(8).exponential(100.0, 4000)
    table = pa.table({"x": values})
    code, smooth = (fitted(table, method=method) for method in ("code", "smooth"))
    uniform = np.random.default_rng(1).random(4000)
    drawn = np.asarray(smooth.code(table, uniform).column("x"))
    cut = code.bounds["x"][1]
    assert cut < drawn.max() <= smooth.bounds["x"][1]
    assert len(np.unique(drawn[drawn >= cut])) > 3
    assert abs(drawn.mean() - values.mean()) < abs(np.minimum(values, cut).mean() - values.mean())


@given(seed=st.integers(0, 10_000), sign=st.sampled_from([-1.0, 1.0]), origin=st.sampled_from([0.0, 5000.0]))
@examples(100)
def test_a_smooth_tail_does_not_end_at_the_value_of_the_most_extreme_person(
    seed: int, sign: float, origin: float
) -> None:
    values = (origin + sign * np.random.default_rng(seed).exponential(100.0, 300)).round(2)
    table = pa.table({"x": values})
    tails = fitted(table, seed=seed, method="smooth")
    drawn = np.asarray(tails.code(table, np.linspace(0.0, 0.999999, 300)).column("x"))
    assert not np.isin(drawn, [values.min(), values.max()]).any()
    assert not np.isin(tails.bounds["x"], [values.min(), values.max()]).any()
    if origin == 0.0:
        assert (sign * drawn >= 0.0).all()


def test_a_cell_that_took_the_value_of_another_record_counts_for_nobody() -> None:
    values = np.append(np.random.default_rng(3).normal(0.0, 1.0, 100), [1e6] * 6)
    copied = np.arange(106) > 100  # one person's value, in the cells of five others
    made = fitted(pa.table({"x": values}), k=5, copied={"x": copied}).bounds["x"][1]
    assert made <= np.sort(values[:101])[-5]
    assert fitted(pa.table({"x": values}), k=5).bounds["x"][1] > 1000.0


def people() -> pa.Table:
    rng = np.random.default_rng(1)
    return pa.table({"pay": np.append(rng.normal(1000.0, 50.0, 199).round(2), 99_999.5), "ill": [True, False] * 100})


def tails_of(release: sf.Release) -> TailsCoded:
    (fact,) = (fact for fact in release.certificate.facts if isinstance(fact, TailsCoded))
    return fact


@pytest.mark.parametrize("method", ["code", "smooth"])
def test_a_release_with_coded_tails_says_so(method: str) -> None:
    release = sf.sanitize(people(), method="condense", k=5, tails=method, seed=1, report=False)
    assert tails_of(release) == TailsCoded(method, 5, 1)
    assert f"{CLAIM}least 5 persons." in [claim.claim for claim in release.certificate.claims]
    assert max(release.table.column("pay").to_pylist()) < 1300


def test_kept_tails_change_nothing_and_their_claim_is_refused() -> None:
    table = people()
    tails = fitted(table, Schema((Field("pay", Kind.CONTINUOUS), Field("ill", Kind.BOOLEAN))), method="keep")
    assert tails.code(table, np.full(200, 0.5)) is table
    release = sf.sanitize(table, method="condense", k=5, tails="keep", seed=1, report=False)
    assert tails_of(release) == TailsCoded("keep", 5, 1)
    assert f"{CLAIM}least 5 persons." in [refused.claim for refused in release.certificate.refused]
    assert not any(claim.claim.startswith(CLAIM) for claim in release.certificate.claims)
    assert max(release.table.column("pay").to_pylist()) > 1300


def test_a_table_without_numbers_says_nothing_of_tails() -> None:
    release = sf.sanitize(people().select(["ill"]), method="condense", k=5, seed=1, report=False)
    assert not any(isinstance(fact, TailsCoded) for fact in release.certificate.facts)


@pytest.mark.parametrize("tails", ["code", "smooth", "keep"])
@pytest.mark.parametrize("method", ["noise", "randomize", "rotate", "swap", "subsample"])
def test_methods_that_make_no_synthetic_rows_take_no_word_about_tails(method: str, tails: str) -> None:
    options: dict[str, Any] = {"noise": {"size": 0.3}, "randomize": {"epsilon": 1.0}, "subsample": {"share": 0.5}}
    with pytest.raises(OptionError, match="makes no synthetic rows and codes no tails"):
        sf.sanitize(people(), method=method, tails=tails, seed=1, report=False, **options.get(method, {}))


def test_a_word_that_is_no_method_for_tails_is_refused() -> None:
    with pytest.raises(OptionError, match="there is no method 'cut' for tails; choose one of code, smooth, keep"):
        sf.sanitize(people(), k=5, tails="cut", report=False)


@pytest.mark.parametrize("tails", ["code", "smooth"])
@pytest.mark.parametrize("method", ["chain", "condense"])
def test_texts_of_numbers_with_all_their_digits_are_coded_within_their_bounds(tails: str, method: str) -> None:
    rng = np.random.default_rng(4)
    for scale in (1e-7, 0.1, 1.0, 1e5):
        values = rng.normal(size=(400, 2)) * scale
        texts = {f"v{place}": pa.array([repr(float(each)) for each in column]) for place, column in enumerate(values.T)}
        release = sf.sanitize(pa.table(texts), method=method, k=5, tails=tails, rows_are_people=True, report=False)
        released = np.array([[float(cell) for cell in column.to_pylist()] for column in release.table.columns]).T
        if tails == "code":
            assert (released.max(axis=0) < values.max(axis=0)).all()
            assert (released.min(axis=0) > values.min(axis=0)).all()
