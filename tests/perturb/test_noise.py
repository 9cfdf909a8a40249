"""Additive and multiplicative noise as mechanisms."""

from __future__ import annotations

import dataclasses
import datetime
import json
import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

import sfumato as sf
from sfumato.core.distributions.noise import LAWS, enhance_rows, law_of_size
from sfumato.core.errors import LevelError, OptionError, PrivacyRefusal, SchemaError
from sfumato.core.facts import BoundsKept, Enhanced, PassedThrough, Shuffled
from sfumato.core.records import Block, BlockKind, Records
from sfumato.methods.perturb import AdditiveNoise, MultiplicativeNoise, make_noise, perturb_with_shape
from sfumato.methods.perturb.facts import Noised
from sfumato.methods.perturb.laplace_pca import LaplacePCA
from sfumato.methods.protocol import Mechanism, MethodResult
from sfumato.tables.codec import Codec
from sfumato.tables.schema import Domain, Field, Kind, Schema
from tests.examples import examples

pytestmark = pytest.mark.usefixtures("without_figures")

ROWS = 4000
RARE = 1e-6

Noise = AdditiveNoise | MultiplicativeNoise
NOISES: list[Noise] = [
    *(AdditiveNoise(law=law, size=0.5) for law in LAWS),
    AdditiveNoise(correlated=True),
    AdditiveNoise(size=0.3, enhance=0.2, enhance_size=2.0, enhance_laws=(("v0", "uniform"),)),
    *(MultiplicativeNoise(law=law, size=0.2) for law in LAWS),
    MultiplicativeNoise(size=0.2, enhance=0.1),
]


def numbers(values: NDArray[np.float64], centre: float = 50.0, scale: float = 10.0) -> Records:
    """Give records of plain numbers, in deviations from a mean of 50."""
    layout = tuple(
        Block(f"v{place}", BlockKind.NUMBER, place, place + 1, (0.0,), centre, scale)
        for place in range(values.shape[1])
    )
    nothing = np.zeros(len(values), dtype=np.int64)
    return Records(values, layout, nothing, nothing.copy())


def correlated_values(seed: int = 1, rows: int = ROWS) -> NDArray[np.float64]:
    rng = np.random.default_rng(seed)
    common = rng.normal(size=rows)
    values = np.column_stack([common, common + 0.3 * rng.normal(size=rows), rng.normal(size=rows)])
    return np.asarray((values - values.mean(axis=0)) / values.std(axis=0))


def mixed_table(rows: int = 200) -> pa.Table:
    rng = np.random.default_rng(1)
    return pa.table(
        {
            "age": [None, *rng.integers(20, 60, rows - 1).tolist()],
            "pay": rng.normal(3000, 500, rows).round(2),
            "town": rng.choice(["a", "b", "c"], rows),
        }
    )


def mixed_records() -> Records:
    table = mixed_table()
    return Codec.fit(table, Schema.infer(table)).encode(table)


def added(noise: Mechanism, records: Records, seed: int = 4) -> NDArray[np.float64]:
    """Give what was added to each row."""
    made = noise.sanitize(records, rng=np.random.default_rng(seed))
    return np.asarray(made.records.values - records.values[origin_of(made)])


def origin_of(made: MethodResult) -> NDArray[np.int64]:
    assert made.workings.origin is not None
    return made.workings.origin


@pytest.mark.parametrize("noise", NOISES, ids=repr)
class TestNoise:
    def test_rows_descend_from_rows_in_an_order_that_was_drawn(self, noise: Noise) -> None:
        records = numbers(correlated_values())
        made = noise.sanitize(records, rng=np.random.default_rng(4))
        origin = origin_of(made)
        np.testing.assert_array_equal(np.sort(origin), np.arange(ROWS))
        assert abs(stats.spearmanr(origin, np.arange(ROWS)).statistic) < 0.1
        assert Shuffled(ROWS) in made.facts
        assert np.corrcoef(made.records.values[:, 0], records.values[origin, 0])[0, 1] > 0.5

    def test_every_result_lies_on_the_one_grid_that_the_facts_state(self, noise: Noise) -> None:
        made = noise.sanitize(numbers(correlated_values()), rng=np.random.default_rng(4))
        (fact,) = (fact for fact in made.facts if isinstance(fact, Noised))
        assert (fact.law, fact.kind, fact.size, fact.columns) == (noise.law, noise.kind, noise.size, 3)
        np.testing.assert_array_equal(made.records.values % fact.grid, 0.0)

    def test_it_comes_back_from_its_parameters_also_as_json(self, noise: Noise) -> None:
        parameters = dataclasses.asdict(noise)
        assert make_noise(**parameters) == noise
        assert make_noise(**json.loads(json.dumps(parameters))) == noise
        assert hash(dataclasses.replace(noise, size=0.7)) != hash(noise)

    def test_the_mean_is_kept(self, noise: Noise) -> None:
        records = numbers(correlated_values())
        more = added(noise, records)
        assert (np.abs(more.mean(axis=0)) < 5.5 * more.std(axis=0) / math.sqrt(ROWS)).all()  # once in 10^7


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("size", [0.1, 1.5])
def test_additive_noise_has_the_law_and_the_size_in_every_column(law: str, size: float) -> None:
    more = added(AdditiveNoise(law=law, size=size), numbers(correlated_values()))
    shape = {
        "gaussian": stats.norm(scale=size),
        "uniform": stats.uniform(-size * math.sqrt(3), 2 * size * math.sqrt(3)),
        "laplace": stats.laplace(scale=size / math.sqrt(2)),
    }[law]
    for column in more.T:
        assert stats.kstest(column, shape.cdf).pvalue > RARE


def test_independent_noise_goes_with_nothing() -> None:
    records = numbers(correlated_values())
    made = AdditiveNoise().sanitize(records, rng=np.random.default_rng(4))
    x = records.values[origin_of(made)]
    together = np.asarray(np.corrcoef(np.column_stack([x, made.records.values - x]).T))[3:]
    np.fill_diagonal(together[:, 3:], 0.0)
    assert np.abs(together).max() < 0.1


def test_correlated_noise_has_the_correlations_of_the_data_and_the_size() -> None:
    values = correlated_values()
    more = added(AdditiveNoise(size=2.0, correlated=True), numbers(values))
    np.testing.assert_allclose(np.corrcoef(more.T), np.corrcoef(values.T), atol=0.1)
    np.testing.assert_allclose(more.std(axis=0), 2.0, rtol=0.1)


def test_correlated_noise_of_columns_that_repeat_each_other_is_the_same_noise() -> None:
    x = correlated_values()[:, 0]
    law = law_of_size("gaussian", 1.0, 2.0**-16)
    more = perturb_with_shape(np.column_stack([x, x, np.zeros(ROWS)]), law, np.random.default_rng(1))
    np.testing.assert_allclose(more[:, 0], more[:, 1], atol=1e-4)  # a few steps of the grid
    assert more[:, 2].std() == pytest.approx(1.0, rel=0.1)


@pytest.mark.parametrize("rows", [1, 2])
def test_correlated_noise_needs_no_more_than_a_row(rows: int) -> None:
    assert np.isfinite(added(AdditiveNoise(correlated=True), numbers(np.ones((rows, 2))))).all()


@pytest.mark.parametrize("law", LAWS)
def test_a_factor_has_mean_one_and_the_size_and_a_zero_stays_zero(law: str) -> None:
    raw = np.concatenate([np.zeros(500), np.random.default_rng(2).lognormal(3.0, 1.0, ROWS)])
    records = numbers(((raw - 50.0) / 10.0)[:, None])
    noise = MultiplicativeNoise(law=law, size=0.25)
    made = noise.sanitize(records, rng=np.random.default_rng(4))
    x, y = raw[origin_of(made)], made.records.values[:, 0] * 10.0 + 50.0
    np.testing.assert_allclose(y[x == 0], 0.0, atol=10.0 * noise.grid)
    factor = y[x > 1] / x[x > 1]
    assert factor.mean() == pytest.approx(1.0, abs=0.03)
    assert factor.std() == pytest.approx(0.25, rel=0.1)
    assert np.unique(y[x == 0]).size == 1


def test_a_factor_leaves_no_place_of_the_grid_out() -> None:
    noise = MultiplicativeNoise(law="uniform", size=0.01)
    many = noise.sanitize(numbers(np.full((ROWS * 50, 1), 1e4)), rng=np.random.default_rng(1)).records.values
    assert (many / noise.grid % 2 == 0).mean() == pytest.approx(0.5, abs=0.02)
    assert (many / noise.grid % 3 == 0).mean() == pytest.approx(1 / 3, abs=0.02)


@pytest.mark.parametrize("share", [0.05, 0.1, 1.0])
def test_enhancing_gives_more_noise_to_exactly_that_share_of_the_rows(share: float) -> None:
    values = np.zeros((ROWS, 2))
    laws = [law_of_size("uniform", 5.0, 2.0**-10), law_of_size("gaussian", 1.0, 2.0**-10)]
    enhanced, chosen = enhance_rows(values, share, laws, np.random.default_rng(3))
    assert len(np.unique(chosen)) == round(share * ROWS)
    others = np.setdiff1d(np.arange(ROWS), chosen)
    np.testing.assert_array_equal(enhanced[others], 0.0)
    assert enhanced[chosen].std(axis=0) == pytest.approx([5.0, 1.0], rel=0.3)
    assert np.abs(enhanced[:, 0]).max() <= 5.0 * math.sqrt(3) + 0.01


def test_enhanced_rows_are_stated_and_named_columns_have_their_own_law() -> None:
    noise = AdditiveNoise(size=0.01, enhance=0.5, enhance_size=3.0, enhance_laws=(("v1", "uniform"),))
    made = noise.sanitize(numbers(correlated_values()), rng=np.random.default_rng(4))
    assert Enhanced(0.5, ROWS // 2) in made.facts
    more = np.abs(added(noise, numbers(correlated_values())))
    bound = 3.0 * math.sqrt(3) + 0.1
    assert more[:, 1].max() < bound
    assert more[:, 0].max() > bound  # 1.7 deviations out, in 2,000 rows


def test_categories_are_refused_unless_the_steward_lets_them_pass() -> None:
    with pytest.raises(PrivacyRefusal, match="1 columns are categories, the first is 'town'"):
        AdditiveNoise().sanitize(mixed_records(), rng=np.random.default_rng(1))


def test_categories_that_may_pass_and_missing_cells_stay_as_they_are_and_that_is_a_fact() -> None:
    records = mixed_records()
    made = AdditiveNoise(pass_categories=True).sanitize(records, rng=np.random.default_rng(1))
    assert PassedThrough(1, 1) in made.facts
    origin, places = origin_of(made), {block.column: block for block in records.layout}
    for block in records.layout:
        if block.kind is not BlockKind.NUMBER:
            np.testing.assert_array_equal(made.records.values[:, block.where], records.values[origin][:, block.where])
    absent = records.values[origin, places["age"].start] > 0.5
    assert absent.sum() == 1


def test_a_table_goes_through_and_comes_back_in_its_types() -> None:
    table = mixed_table()
    release = sf.sanitize(table, AdditiveNoise(size=0.5, pass_categories=True), seed=1, report=False)
    got = release.table
    assert got.schema == table.schema
    assert got.column("age").null_count == 1
    assert sorted(got.column("town").to_pylist()) == sorted(table.column("town").to_pylist())
    assert release.certificate.method == "noise"
    assert release.certificate.levels == {}
    assert any("categories of 1 column " in one.reason for one in release.certificate.refused)


def leaning_table(rows: int = ROWS) -> pa.Table:
    """Most people have no gain, and the rest of a column leans on its lowest number too."""
    rng = np.random.default_rng(2)
    days = rng.exponential(900, rows).astype(int)
    return pa.table(
        {
            "gain": np.where(rng.random(rows) < 0.7, 0, rng.exponential(2000, rows)).astype(np.int64),
            "rate": rng.gamma(0.7, 2.0, rows).round(2),
            "born": pa.array([datetime.date(1990, 1, 1) + datetime.timedelta(days=int(day)) for day in days]),
        }
    )


@pytest.mark.parametrize(
    "noise",
    [
        *(AdditiveNoise(law=law) for law in LAWS),
        AdditiveNoise(correlated=True),
        AdditiveNoise(size=0.5, enhance=0.3, enhance_size=2.0),
        MultiplicativeNoise(size=0.5),
        LaplacePCA(k=40, b=0.5),
    ],
    ids=repr,
)
def test_no_observed_bound_moves_the_mean_or_the_variance_of_a_noisy_column(noise: Mechanism) -> None:
    """What was added has mean 0 and goes with nothing, so that E(Y) = E(X) and Var(Y) = Var(X) + Var(noise).

    Eight standard errors, each measured on the rows themselves: below 1e-12 for each of the numbers tested.
    """
    table = leaning_table()
    if isinstance(noise, MultiplicativeNoise):
        table = table.drop(["born"])  # a date cannot be multiplied
    codec = Codec.fit(table, Schema.infer(table), min_frequency=10)
    made = noise.sanitize(codec.encode(table), rng=np.random.default_rng(4))
    released = codec.decode(made.records.values, unbounded=made.records.unbounded)
    assert released.schema == table.schema
    for name in table.column_names:
        before, _ = codec.numbers(table, name)
        after, _ = codec.numbers(released, name, unseen="mean")
        before = before[origin_of(made)]
        drift = after - before
        assert not np.isclose(drift, 0).all()
        for part in (drift, (before - before.mean()) * drift):
            assert abs(part.mean()) < 8 * part.std() / math.sqrt(ROWS)
        if isinstance(noise, AdditiveNoise):  # the others leave a zero, or a group of zeros, as it is
            assert (after == before.min()).mean() < 0.02


def test_declared_bounds_and_orders_are_kept_and_the_certificate_says_what_that_costs() -> None:
    table = pa.table(
        {"age": np.arange(200) % 40, "pay": np.arange(200) % 30, "mark": ["low", "mid", "high", "top"] * 50}
    )
    fields = (
        Field("age", Kind.INTEGER, domain=Domain(declared=True, low=0)),
        Field("pay", Kind.INTEGER),
        Field("mark", Kind.ORDINAL, domain=Domain(categories=("low", "mid", "high", "top"))),
    )
    release = sf.sanitize(table, AdditiveNoise(size=2.0), schema=Schema(fields), seed=1, report=False)
    assert min(release.table.column("age").to_pylist()) == 0
    assert min(release.table.column("pay").to_pylist()) < 0
    assert BoundsKept(("age", "mark")) in release.certificate.facts
    assert any("In 2 columns ('age', 'mark')" in each.reason for each in release.certificate.refused)
    free = sf.sanitize(table.select(["pay"]), AdditiveNoise(), seed=1, report=False)
    assert not any(isinstance(fact, BoundsKept) for fact in free.certificate.facts)


def test_whole_numbers_of_a_narrow_type_are_widened() -> None:
    table = pa.table(
        {"age": pa.array([0, 1, 2, 3, 90] * 20, pa.uint8()), "pay": pa.array([Decimal("1.5"), Decimal("9.9")] * 50)}
    )
    fields = Schema((Field("age", Kind.INTEGER), Field("pay", Kind.CONTINUOUS)))
    got = sf.sanitize(table, AdditiveNoise(size=3.0), schema=fields, seed=1, report=False).table
    assert min(got.column("age").to_pylist()) < 0
    assert [got.schema.field(name).type for name in ("age", "pay")] == [pa.int64(), pa.decimal128(38, 1)]
    assert max(got.column("pay").to_pylist()) > 10


def test_dates_and_orders_are_not_multiplied() -> None:
    born = [datetime.date(1990, 1, 1) + datetime.timedelta(days=37 * day) for day in range(60)]
    table = pa.table({"born": born, "pay": np.arange(60.0)})
    records = Codec.fit(table, Schema.infer(table)).encode(table)
    with pytest.raises(SchemaError, match="the first is 'born'"):
        MultiplicativeNoise().sanitize(records, rng=np.random.default_rng(1))
    AdditiveNoise().sanitize(records, rng=np.random.default_rng(1))


def test_a_number_far_from_zero_for_its_deviation_is_not_multiplied() -> None:
    with pytest.raises(SchemaError, match="use additive noise"):
        MultiplicativeNoise().sanitize(
            numbers(correlated_values(), centre=1e12, scale=1.0), rng=np.random.default_rng(1)
        )


@pytest.mark.parametrize("noise", [AdditiveNoise(), MultiplicativeNoise()], ids=repr)
def test_levels_and_strata_are_not_silently_passed_over(noise: Noise) -> None:
    records, some = numbers(np.ones((10, 1))), np.array([0] * 7 + [3] * 3)
    with pytest.raises(LevelError, match="3 records"):
        noise.sanitize(dataclasses.replace(records, levels=some), rng=np.random.default_rng(1))
    with pytest.raises(OptionError, match="no groups"):
        noise.sanitize(dataclasses.replace(records, strata=some), rng=np.random.default_rng(1))


def test_a_table_without_numbers_is_refused() -> None:
    table = pa.table({"town": ["a", "b"] * 20})
    records = Codec.fit(table, Schema.infer(table)).encode(table)
    with pytest.raises(OptionError, match="no column is a number"):
        AdditiveNoise(pass_categories=True).sanitize(records, rng=np.random.default_rng(1))


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"law": "cauchy"}, "unknown noise distribution"),
        ({"size": 0.0}, "size must lie"),
        ({"size": math.nan}, "size must lie"),
        ({"size": True}, "size is of type bool; give a number"),
        ({"enhance": 1.5}, "share of the rows"),
        ({"enhance": 0.1, "enhance_size": -1.0}, "enhance_size must lie"),
        ({"enhance_laws": (("v0", "uniform"),)}, "needs a share"),
        ({"enhance": 0.1, "enhance_laws": (("v0", "flat"),)}, "unknown noise distribution"),
        ({"enhance": 0.1, "enhance_laws": ("v0",)}, "columns and their laws"),
        ({"enhance": 0.1, "enhance_laws": (("v0", "uniform"), ("v0", "laplace"))}, "twice"),
    ],
)
@pytest.mark.parametrize("kind", ["additive", "multiplicative"])
def test_options_that_mean_nothing_are_refused(kind: str, parameters: dict[str, object], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        make_noise(kind, **parameters)


def test_kinds_and_columns_that_there_are_not_are_refused() -> None:
    with pytest.raises(OptionError, match="no kind of noise"):
        make_noise("divided")
    with pytest.raises(OptionError, match="leave correlated out"):
        make_noise("multiplicative", correlated=True)
    with pytest.raises(OptionError, match="is Gaussian"):
        AdditiveNoise(law="laplace", correlated=True)
    with pytest.raises(OptionError, match="no column of numbers"):
        AdditiveNoise(enhance=0.1, enhance_laws=(("v9", "uniform"),)).sanitize(
            numbers(np.ones((5, 1))), rng=np.random.default_rng(1)
        )


@examples(30)
@given(
    st.integers(1, 40),
    st.sampled_from(NOISES[:4] + NOISES[5:8]),
    st.floats(-100.0, 100.0),
    st.integers(0, 2**32 - 1),
)
def test_no_record_is_lost_and_every_number_is_finite(rows: int, noise: Noise, x: float, seed: int) -> None:
    records = numbers(np.full((rows, 2), x + 1e-3))
    made = noise.sanitize(records, rng=np.random.default_rng(seed))
    assert len(made.records) == rows
    assert np.isfinite(made.records.values).all()
    assert not records.values.flags.writeable


@pytest.mark.parametrize("mechanism", [sf.AdditiveNoise(), sf.Rotation(), sf.Swapping()])
def test_a_refusal_of_large_whole_numbers_says_why_they_count_as_categories(mechanism: Mechanism) -> None:
    large = np.array([2**63 + 5, 2**63 + 10**6, 2**64 - 1], dtype=np.uint64)
    table = pa.table({"code": np.tile(large, 20), "size": np.arange(60) * 1.5, "pay": np.arange(60) % 7 * 2.5})
    with pytest.raises(PrivacyRefusal, match=r"'code' \(whole numbers beyond 2\^53, which cannot be computed with"):
        sf.sanitize(table, mechanism, report=False)
