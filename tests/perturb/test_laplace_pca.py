"""Laplace noise on principal components: its size, its groups, what is settled, what is refused, what is claimed."""

from __future__ import annotations

import dataclasses
import math
import re

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import sfumato as sf
from sfumato.core.errors import LevelError, OptionError, PrivacyLeakWarning, TableError
from sfumato.core.facts import Fact, draw_claims
from sfumato.core.groups.facts import CountsKept, Grouped
from sfumato.core.records import CATEGORY_SCALE, Block, BlockKind, Records
from sfumato.methods.perturb.facts import ComponentNoise
from sfumato.methods.perturb.laplace_pca import (
    LaplacePCA,
    component_noise,
    component_places,
    component_ranges,
    flatten,
    most_components,
    noise_scales,
    perturb_group,
    principal_axes,
    rotate_back,
)
from sfumato.methods.protocol import MethodResult, OwnerDetails
from sfumato.tables.codec import Codec
from sfumato.tables.schema import Schema
from tests.condense.tables import no_strata
from tests.examples import examples

pytestmark = pytest.mark.usefixtures("without_figures")

seeds = st.integers(0, 2**32 - 1)


def numeric(values: NDArray[np.float64], levels: NDArray[np.int64] | None = None) -> Records:
    layout = tuple(Block(f"v{j}", BlockKind.NUMBER, j, j + 1, (0.0,)) for j in range(values.shape[1]))
    nothing = np.zeros(len(values), dtype=np.int64)
    return Records(values, layout, nothing if levels is None else levels, no_strata(values), layout[-1].column)


def mixed(seed: int, n: int = 60) -> Records:
    rng = np.random.default_rng(seed)
    table = pa.table(
        {
            "age": pa.array(rng.integers(20, 60, n).tolist(), mask=rng.random(n) < 0.2),
            "pay": rng.normal(size=n),
            "town": pa.array(rng.choice(["a", "b", "c", "d"], n).tolist(), mask=rng.random(n) < 0.1),
            "smokes": rng.random(n) < 0.3,
        }
    )
    return Codec.fit(table, Schema.infer(table, target="pay")).encode(table)


def one_hot(block: Block) -> set[tuple[float, ...]]:
    width = block.stop - block.start
    return {tuple(row) for row in (CATEGORY_SCALE * np.eye(width)).tolist()} | {block.fill}


def made(mechanism: LaplacePCA, records: Records, seed: int = 1) -> tuple[MethodResult, OwnerDetails]:
    sanitized = mechanism.sanitize(records, rng=np.random.default_rng(seed))
    return sanitized, sanitized.workings


def fact(sanitized: MethodResult, kind: type[Fact]) -> Fact:
    return next(each for each in sanitized.facts if isinstance(each, kind))


@pytest.mark.parametrize(
    ("b", "guarantee", "times"), [(0.2, "component", 1), (1.0, "component", 1), (0.2, "record", 3)]
)
def test_every_component_gets_laplace_noise_whose_scale_is_b_times_its_range(
    b: float, guarantee: str, times: int
) -> None:
    n = 4000
    values = np.random.default_rng(3).normal(size=(n, 3)) * [3.0, 1.0, 0.2] + 7.0
    sanitized, workings = made(LaplacePCA(groups=1, b=b, guarantee=guarantee), numeric(values))
    assert workings.origin is not None
    axes = principal_axes(np.cov(values.T, bias=True))
    noise = (sanitized.records.values - values[workings.origin]) @ axes
    scale = times * b * np.ptp(values @ axes, axis=0)
    unit = noise / scale
    assert np.abs(np.abs(unit).mean(axis=0) - 1.0).max() < 7.0 / math.sqrt(n)  # of scale 1: mean 1, deviation 1
    assert np.abs(np.abs(unit).std(axis=0) - 1.0).max() < 0.25  # a Gaussian law would give 0.76
    assert np.abs(np.corrcoef(noise.T) - np.eye(3)).max() < 7.0 / math.sqrt(n)
    assert np.abs(unit.mean(axis=0)).max() < 7.0 * math.sqrt(2.0 / n)


@examples(50, few=6)
@given(seeds, st.integers(2, 30), st.integers(1, 6), st.sampled_from(["modified", "holistic"]))
def test_every_group_is_as_large_as_the_highest_level_and_no_record_is_lost(
    seed: int, k: int, d: int, grouping: str
) -> None:
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 4, (60, d)).astype(np.float64) if seed % 2 else rng.normal(size=(60, d))
    levels = np.where(rng.random(60) < 0.1, rng.integers(2, 31, 60), 0)
    sanitized, workings = made(LaplacePCA(k=k, grouping=grouping), numeric(values, levels), seed)
    assert workings.labels is not None
    assert workings.origin is not None
    assert workings.drawn_from is not None
    assert np.bincount(workings.labels).min() >= max(k, levels.max())
    assert sorted(workings.origin.tolist()) == list(range(60))
    np.testing.assert_array_equal(workings.drawn_from, workings.labels[workings.origin])
    grouped = fact(sanitized, Grouped)
    assert isinstance(grouped, Grouped)
    assert (grouped.violations, grouped.smallest) == (0, np.bincount(workings.labels).min())


@examples(50, few=6)
@given(seeds, st.integers(2, 30))
def test_so_many_groups_are_made_as_were_asked_for(seed: int, groups: int) -> None:
    values = np.random.default_rng(seed).normal(size=(61, 2))
    _, workings = made(LaplacePCA(groups=groups), numeric(values), seed)
    assert workings.labels is not None
    sizes = np.bincount(workings.labels)
    assert len(sizes) == groups
    assert sizes.min() >= 61 // groups


@examples(50, few=6)
@given(seeds, st.sampled_from([2, 5, 12, 60]))
def test_categories_and_missing_cells_keep_the_counts_of_each_group(seed: int, k: int) -> None:
    records = mixed(seed)
    sanitized, workings = made(LaplacePCA(k=k), records, seed)
    assert workings.labels is not None
    assert workings.drawn_from is not None
    for block in records.layout:
        if block.kind is BlockKind.NUMBER:
            continue
        for group in range(workings.labels.max() + 1):
            before = records.values[workings.labels == group, block.where].sum(axis=0)
            after = sanitized.records.values[workings.drawn_from == group, block.where].sum(axis=0)
            np.testing.assert_allclose(after, before, atol=1e-9)
        allowed = {(0.0,), (1.0,)} if block.kind is BlockKind.MISSING else one_hot(block)
        assert {tuple(row) for row in sanitized.records.values[:, block.where].tolist()} <= allowed
    assert isinstance(fact(sanitized, CountsKept), CountsKept)


@examples(50, few=6)
@given(seeds, st.sampled_from([2, 4, 20, 60]))
def test_no_group_varies_in_more_components_than_are_counted(seed: int, k: int) -> None:
    records = mixed(seed)
    sanitized, workings = made(LaplacePCA(k=k), records, seed)
    noise = fact(sanitized, ComponentNoise)
    assert isinstance(noise, ComponentNoise)
    assert workings.labels is not None
    for group in range(workings.labels.max() + 1):
        rows = records.values[workings.labels == group]
        assert perturb_group(rows, 0.2, 2.0**-20, np.random.default_rng(0))[1] <= noise.components
    assert noise.components == most_components(records.layout) < records.values.shape[1]


def test_a_component_that_does_not_vary_is_published_as_its_mean_and_nothing_else_leaks_through() -> None:
    rng = np.random.default_rng(0)
    values = np.column_stack([rng.normal(size=50), np.full(50, 0.3), 1e-9 * rng.normal(size=50)])
    rows, noised = perturb_group(values, 0.2, 2.0**-20, rng)
    assert noised == 1
    assert np.ptp(rows[:, 1:], axis=0).max() < 1e-5  # the axes lean by rounding
    assert np.abs(rows[:, 1] - 0.3).max() < 1e-5


def test_the_arithmetic_in_whole_steps_is_the_one_that_owners_can_share() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(20, 3))
    axes = principal_axes(np.cov(values.T, bias=True))
    halves = values[:, :1] @ axes[:1] + values[:, 1:] @ axes[1:]  # columns of two owners, with their rows of M
    places = component_places(halves, 2.0**-20)
    np.testing.assert_array_equal(places, component_places(values @ axes, 2.0**-20))
    ranges = component_ranges(places)
    np.testing.assert_allclose(noise_scales(ranges, 0.2) * 2.0**-20, 0.2 * np.ptp(values @ axes, axis=0), atol=1e-6)
    np.testing.assert_allclose(rotate_back(places, axes, 2.0**-20), values, atol=1e-5)
    np.testing.assert_array_equal(flatten(places, np.array([5, 1, 0]), np.array([7, 8, 9]))[:, 1:], [[8, 9]] * 20)
    assert not component_noise(np.zeros(3), 20, rng).any()


def test_rows_stand_in_no_order_that_tells_their_record() -> None:
    values = np.arange(400.0)[:, None] * [1.0, 2.0]
    _, workings = made(LaplacePCA(k=100), numeric(values))
    assert workings.origin is not None
    assert abs(np.corrcoef(workings.origin, np.arange(400))[0, 1]) < 0.4  # 8 deviations of a uniform order


def test_more_weight_on_the_response_keeps_it_nearer() -> None:
    values = np.random.default_rng(0).normal(size=(600, 4))
    errors = []
    for weight in (0.0, 0.8):
        sanitized, workings = made(LaplacePCA(k=50, response_weight=weight), numeric(values))
        assert workings.origin is not None
        errors.append(np.abs(sanitized.records.values - values[workings.origin])[:, 3].mean())
    assert errors[1] < 0.8 * errors[0]


def test_groups_never_cross_strata() -> None:
    records = numeric(np.random.default_rng(0).normal(size=(90, 2)))
    strata = np.repeat([0, 1, 2], 30)
    stratified = dataclasses.replace(records, strata=strata)
    _, workings = made(LaplacePCA(k=7), stratified)
    assert workings.labels is not None
    assert all(len(set(strata[workings.labels == group].tolist())) == 1 for group in range(workings.labels.max() + 1))
    with pytest.raises(OptionError, match="each stratum has its own groups; give k instead"):
        made(LaplacePCA(groups=3), stratified)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"k": 1}, "at least 2"),
        ({"k": True}, "k is of type bool; give a whole number"),
        ({"k": 5, "groups": 2}, "give one of them"),
        ({"groups": 0}, "groups must be a whole number"),
        ({"guarantee": "column"}, "there is no guarantee 'column'; choose one of component, record"),
        ({"grouping": "compact"}, "there is no grouping 'compact'; choose one of modified, holistic"),
        ({"response_weight": 1.5}, "between 0 and 1"),
        ({"b": 0.0}, "b must lie between"),
        ({"b": float("nan")}, "b must lie between"),
        ({"b": 5000.0}, "b must lie between"),
        ({"rho2": 0.5}, "give either rho1 and rho2, or b"),
        ({"rho1": 0.1, "rho2": 0.5, "b": 0.2}, "give either rho1 and rho2, or b"),
        ({"rho1": 0.5, "rho2": 0.1}, "probabilities|rho2 must lie above"),
        ({"rho1": 0.5, "rho2": 0.5}, "rho2 must lie above rho1"),
        ({"rho1": 1.5}, "rho1 is a probability"),
    ],
)
def test_options_that_contradict_or_mean_nothing_are_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises((OptionError, LevelError), match=words):
        LaplacePCA(**options)  # type: ignore[arg-type]


def test_levels_that_cannot_be_met_are_refused() -> None:
    records = numeric(np.random.default_rng(0).normal(size=(50, 2)))
    with pytest.raises(LevelError, match="50 records and the highest privacy level is 100"):
        made(LaplacePCA(), records)
    with pytest.raises(LevelError, match="10 groups of 50 records have 5 each and the highest privacy level is 9"):
        made(LaplacePCA(groups=10), dataclasses.replace(records, levels=np.full(50, 9)))
    with pytest.raises(LevelError, match="50 privacy levels are negative"):
        made(LaplacePCA(k=5), dataclasses.replace(records, levels=np.full(50, -1)))
    with pytest.raises(TableError, match="1 records hold a number that is not finite"):
        made(LaplacePCA(k=5), numeric(np.array([[1.0, 2.0]] * 9 + [[np.nan, 1.0]])))


def test_tiny_groups_are_warned_of() -> None:
    records = numeric(np.random.default_rng(0).normal(size=(30, 2)))
    with pytest.warns(PrivacyLeakWarning, match="15 of 15 groups have 3 records or fewer"):
        made(LaplacePCA(groups=15), records)


def numbers_of(mechanism: LaplacePCA, d: int) -> tuple[list[str], list[str]]:
    values = np.random.default_rng(0).normal(size=(60, d))
    sanitized, _ = made(mechanism, numeric(values))
    claims, refused = draw_claims(sanitized.facts)
    return [claim.claim for claim in claims], [f"{each.claim} {each.reason}" for each in refused]


def test_the_paper_s_noise_is_claimed_for_one_component_and_refused_for_the_record() -> None:
    claims, refused = numbers_of(LaplacePCA(k=20), 8)
    (bound,) = [claim for claim in claims if "prior probability 0.001" in claim]
    assert "one principal component" in bound
    assert "posterior probability at most 0.1294" in bound
    assert "one with 0.999 has at least 0.8706" in bound
    assert any("whole record" in each and "from 0.001 to 1 " in each for each in refused)
    assert any("bound for one component is a bound for one column" in each for each in refused)
    for words in (
        "relative to what a record's group",
        "differentially private",
        "indistinguishable within",
        "released again",
    ):
        assert any(words in each.lower() or words in each for each in refused), words


def test_noise_for_the_record_is_claimed_for_both_and_meets_the_wanted_probability() -> None:
    claims, refused = numbers_of(LaplacePCA(k=20, guarantee="record", rho1=0.01, rho2=0.25), 8)
    bounds = [claim for claim in claims if "prior probability 0.01 " in claim]
    (record,) = [claim for claim in bounds if "whole record" in claim]
    assert "at most 0.25;" in record
    (component,) = [claim for claim in bounds if "one principal component" in claim]
    found = re.search(r"at most ([0-9.]+);", component)
    assert found is not None
    assert float(found[1]) < 0.02
    assert not any("bound for one component" in each for each in refused)


def test_groups_that_scale_noise_are_not_claimed_to_be_crowds() -> None:
    claims, refused = numbers_of(LaplacePCA(k=20), 3)
    assert not any("condensed" in claim for claim in claims)
    assert any("received noise scaled by the ranges of a group" in c and "Smallest group: 20." in c for c in claims)
    assert any("Every released row descends from one record" in each for each in refused)


def table(n: int = 240) -> pa.Table:
    rng = np.random.default_rng(5)
    x = rng.normal(size=n)
    return pa.table(
        {
            "x": x,
            "y": 2.0 * x + rng.normal(size=n),
            "town": rng.choice(["a", "b"], n).tolist(),
            "ward": [f"w{place % 7}" for place in range(n)],
        }
    )


@pytest.mark.usefixtures("without_utility")
def test_a_release_passes_public_columns_and_its_report_attacks_the_noise() -> None:
    release = sf.sanitize(table(), LaplacePCA(k=40), target="y", public=["ward"], holdout=0.1, seed=1, time_limit=5.0)
    assert release.certificate.method == "laplace-pca"
    assert release.certificate.levels["smallest_group"] >= 40
    assert release.table.column_names == ["x", "y", "town", "ward"]
    report = release.report
    assert report is not None
    for name in (
        "noise-filtered-error",
        "group-filtered-error",
        "group-filtered-near",
        "own-row-linkage-euclid",
        "group-linkage-likelihood",
        "interval-privacy",
    ):
        assert report[name].value is not None, name
    error, idle = report["group-filtered-error"].value, report["group-filtered-error"].baseline
    noise = report["noise-filtered-error"].baseline
    assert error is not None
    assert idle is not None
    assert noise is not None
    assert error < noise  # a group's statistics take some of the noise off
    assert error < idle  # and the row tells more than its group did
