"""Independent components: a turn undone without one known row."""

from __future__ import annotations

import warnings

import numpy as np
import pyarrow as pa
import pytest

from sfumato.assess.algebra import run_measure
from sfumato.assess.attacks.unknown_input import COMPONENTS, match_components, unmix
from sfumato.methods.geometry import Rotation, Translation
from tests.assess.moved import claimed, draw, moved, skewed, wine
from tests.assess.privacy_studies import case, check_sound, found, value
from tests.examples import at_length

SEEDS = [1, *at_length(2, 3)]
TURNED = ("rotate",)


@pytest.mark.parametrize("seed", SEEDS)
def test_five_independent_skewed_columns_come_back_with_correlation_0_999(seed: int) -> None:
    study = moved(skewed(seed), Rotation(), seed)
    check_sound(COMPONENTS, study)
    assert value(COMPONENTS, study, "ica-correlation") == pytest.approx(0.999, abs=0.012)


def test_public_distributions_may_come_from_other_people() -> None:
    study = moved(skewed(1), Rotation(), 1, holdout=skewed(9))
    assert value(COMPONENTS, study, "ica-correlation") > 0.98


@pytest.mark.parametrize("seed", SEEDS)
def test_columns_that_depend_on_each_other_do_not_come_back(seed: int) -> None:
    assert value(COMPONENTS, moved(wine(), Rotation(), seed), "ica-correlation") < 0.7


def test_components_are_matched_by_shape_either_way_round() -> None:
    rng = np.random.default_rng(2)
    known = np.column_stack([rng.exponential(size=2000), rng.uniform(size=2000), rng.standard_t(3, size=2000)])
    other = np.column_stack([rng.uniform(size=2000), rng.standard_t(3, size=2000), -5 * rng.exponential(size=2000)])
    places, which = match_components(other, known)
    assert dict(zip(places.tolist(), which.tolist(), strict=True)) == {0: 2, 1: 0, 2: 1}


def test_directions_without_spread_are_left_out() -> None:
    rng = np.random.default_rng(1)
    rows = rng.exponential(size=(300, 2))
    components = unmix(np.column_stack([rows, rows.sum(axis=1), np.ones(300)]), rng)
    assert components is not None
    assert components.shape == (300, 2)


def test_a_copy_is_recovered() -> None:
    study = claimed(skewed(1), skewed(1), TURNED)
    check_sound(COMPONENTS, study)
    assert value(COMPONENTS, study, "ica-correlation") > 0.98


@pytest.mark.parametrize("seed", SEEDS)
def test_an_independent_redraw_gives_nothing(seed: int) -> None:
    study = claimed(skewed(10 * seed), skewed(10 * seed + 1), TURNED, seed)
    check_sound(COMPONENTS, study)
    assert value(COMPONENTS, study, "ica-correlation") < 0.05


@pytest.mark.parametrize("name", ["constant", "one row", "two rows", "missing", "one column", "small holdout"])
def test_awkward_tables_are_got_through(name: str) -> None:
    table = draw(1, 40)
    same = table.take(pa.array(np.zeros(40, dtype=np.int64)))
    gone = table.set_column(1, "b", pa.nulls(40, pa.float64()))
    before, after = {
        "constant": (table, same),
        "one row": (table.slice(0, 1), table.slice(0, 1)),
        "two rows": (table.slice(0, 2), table.slice(1, 2)),
        "missing": (table, gone),
        "one column": (table.select(["a"]), table.select(["b"]).rename_columns(["a"])),
        "small holdout": (table, draw(2, 40)),
    }[name]
    holdout = draw(5, 2).select(before.column_names) if name == "small holdout" else None
    check_sound(COMPONENTS, claimed(before, after, TURNED, holdout=holdout))


def test_it_is_run_only_where_columns_were_mixed() -> None:
    for study, words in ((case("copy"), "by a key"), (moved(draw(1), Translation(), 1), "nothing to unmix")):
        finding = run_measure(COMPONENTS, study)[0]
        assert finding.value is None
        assert words in str(finding.reason)


def test_the_released_columns_as_they_are_stand_beside_it() -> None:
    finding = found(COMPONENTS, moved(skewed(2), Rotation(), 2))["ica-correlation"]
    assert finding.baseline is not None
    assert finding.value is not None
    assert finding.baseline < 0.95 < finding.value


def test_of_several_searches_that_one_counts_whose_components_are_least_like_normal_laws() -> None:
    """The contrast of Hyvarinen 1999: squared distance of the mean of log cosh from that of the normal law."""
    from sklearn.decomposition import FastICA

    chosen = set()
    for seed in range(6):
        rows = np.random.default_rng(seed).laplace(size=(40, 4)) @ np.random.default_rng(seed + 50).normal(size=(4, 4))
        standard = (rows - rows.mean(axis=0)) / rows.std(axis=0)
        rng, searches = np.random.default_rng(seed), []
        with warnings.catch_warnings(action="ignore"):
            for _ in range(3):
                search = FastICA(4, whiten="unit-variance", max_iter=500, random_state=int(rng.integers(2**31)))
                searches.append(search.fit_transform(standard))
        contrasts = [float(np.square(np.log(np.cosh(each)).mean(axis=0) - 0.3745672).sum()) for each in searches]
        best = int(np.argmax(contrasts))
        chosen.add(best)
        components = unmix(rows, np.random.default_rng(seed))
        assert components is not None
        np.testing.assert_allclose(components, searches[best], atol=1e-6)
    assert len(chosen) > 1


def test_as_few_rows_as_directions_bear_no_components() -> None:
    rows = np.random.default_rng(1).exponential(size=(5, 3))
    assert unmix(rows[:4], np.random.default_rng(1)) is None
    assert unmix(rows, np.random.default_rng(1)) is not None
    assert unmix(np.ones((50, 3)), np.random.default_rng(1)) is None


def test_the_value_is_the_mean_correlation_over_all_columns_that_differ() -> None:
    """A constant column does not count; one that has no component of its own counts as not recovered."""
    table = skewed(3, 1000)
    constant = moved(table.append_column("f", pa.array(np.full(1000, 0.1))), Rotation(), 3)
    assert value(COMPONENTS, constant, "ica-correlation") > 0.95
    twice = claimed(table.append_column("f", table["a"]), table.append_column("f", table["a"]), TURNED)
    assert value(COMPONENTS, twice, "ica-correlation") == pytest.approx(5 / 6, abs=0.02)


def test_the_baseline_is_the_mean_correlation_of_released_with_original_columns() -> None:
    table, noise = skewed(4, 1000), np.random.default_rng(4).normal(size=(5, 1000))
    released = {
        name: np.asarray(table[name]) * (1 if place % 2 else -1) + place * np.asarray(table[name]).std() * noise[place]
        for place, name in enumerate(table.column_names)
    }
    finding = found(COMPONENTS, claimed(table, pa.table(released), TURNED))["ica-correlation"]
    pairs = [np.corrcoef(np.asarray(table[name]), released[name])[0, 1] for name in released]
    assert finding.baseline == pytest.approx(np.abs(pairs).mean())
    assert finding.attempts == 1000
    assert finding.interval is not None
    assert finding.value is not None
    low, high = finding.interval
    assert 0.001 < finding.value - low < 0.1
    assert 0.001 < high - finding.value < 0.1


def test_distributions_of_too_few_people_are_not_taken_for_public() -> None:
    """Ninety-eight people of another kind would match components to the wrong columns."""
    order = ["b", "a", "d", "e", "c"]
    strange = skewed(9, 98).select(order).rename_columns(list("abcde"))
    assert value(COMPONENTS, moved(skewed(1), Rotation(), 1, holdout=strange), "ica-correlation") > 0.95
    more = skewed(9, 2000).select(order).rename_columns(list("abcde"))
    assert value(COMPONENTS, moved(skewed(1), Rotation(), 1, holdout=more), "ica-correlation") < 0.6
