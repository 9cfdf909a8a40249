"""Independent components: a turn undone without one known row."""

from __future__ import annotations

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
