"""The three fixed cases with and without the control group: a redraw never leads, a copy always does."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pytest

from sfumato.assess.algebra import STAND_IN, Measure, run_measure, split_in_tenths, split_in_two
from sfumato.assess.attacks.linkage import LINKABILITY, LINKAGE
from sfumato.assess.attacks.rare_combinations import UNIQUE_VALUES, WHOLE_ROWS
from sfumato.assess.attacks.singling import SINGLING_OUT
from sfumato.assess.findings import Family, Finding, gains
from sfumato.assess.measure import catalogue
from sfumato.assess.plain import risk_sentence
from tests.assess.cases import draw_table, study
from tests.examples import at_length

ATTACKS = tuple(measure for measure in catalogue() if measure.family is Family.ATTACK)
HELD = pytest.mark.parametrize("held", [False, True], ids=["alone", "with the control group"])


def numbers(seed: int, rows: int) -> pa.Table:
    """Numbers alone, one of them skewed and one in whole steps."""
    x = np.random.default_rng(seed).normal(size=(rows, 4))
    kind = np.where(x[:, 0] + x[:, 3] > 0, "p", "q")
    return pa.table({"a": x[:, 0], "b": np.exp(x[:, 1]), "c": np.round(10 * x[:, 2] + x[:, 0]), "colour": kind})


def few_values(seed: int, rows: int) -> pa.Table:
    """Columns of few values, so that people have many twins."""
    rng = np.random.default_rng(seed)
    a, c = rng.integers(0, 3, rows), rng.integers(0, 2, rows)
    b = (a + rng.integers(0, 2, rows)) % 4
    return pa.table({"colour": [f"v{each}" for each in a], "b": b, "c": [f"w{each}" for each in c]})


def wages(seed: int, rows: int) -> pa.Table:
    """Nine columns, some of whose values recur by chance: rounded wages, and codes from a list with gaps."""
    codes = np.random.default_rng(0).integers(10_000, 1_000_000, 4_000)
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 3))
    pay, rounded = np.exp(10 + 0.5 * x[:, 1] + 0.2 * x[:, 0]), rng.random(rows)
    pay = np.where(rounded < 0.5, np.rint(pay / 1000) * 1000, np.where(rounded < 0.8, np.rint(pay / 100) * 100, pay))
    return pa.table(
        {
            "age": np.clip(np.rint(45 + 15 * x[:, 0]), 18, 95).astype(int),
            "pay": np.rint(pay).astype(int),
            "rent": np.rint(pay / 40 + 50 * rng.normal(size=rows)).astype(int),
            "height": np.round(170 + 8 * x[:, 2], 1),
            "weight": np.round(75 + 10 * x[:, 2] + 8 * rng.normal(size=rows), 1),
            "job": [f"j{each}" for each in np.minimum(rng.geometric(0.15, rows), 30)],
            "code": codes[rng.integers(0, len(codes), rows)],
            "region": [f"r{each}" for each in rng.integers(0, 12, rows)],
            "colour": np.where(x[:, 0] + rng.normal(size=rows) > 1, "yes", "no"),
        }
    )


SHAPES: dict[str, tuple[Callable[[int, int], pa.Table], int]] = {
    "mixed": (draw_table, 160),
    "small": (draw_table, 40),
    "numbers": (numbers, 160),
    "few": (few_values, 120),
    "wages": (wages, 1_500),
}


def attacked(
    original: pa.Table, released: pa.Table, holdout: pa.Table | None, seed: int, attacks: Sequence[Measure] = ATTACKS
) -> dict[str, Finding]:
    of = study(original, released, seed=seed, target="colour", holdout=holdout)
    return {finding.name: finding for measure in attacks for finding in run_measure(measure, of)}


def tables(shape: str, seed: int, held: bool) -> tuple[pa.Table, pa.Table, pa.Table | None]:
    draw, rows = SHAPES[shape]
    original, redraw, outside = (draw(10 * seed + place, rows) for place in range(3))
    return original, redraw, outside if held else None


@HELD
@pytest.mark.parametrize("shape", ["numbers", "few", "wages", *at_length("mixed", "small")])
@pytest.mark.parametrize("seed", [1, *at_length(2)])
def test_a_redraw_never_leads(shape: str, seed: int, held: bool) -> None:
    """A release of unrelated data is accused in one report of a thousand; none of these."""
    original, redraw, outside = tables(shape, seed, held)
    findings = attacked(original, redraw, outside, seed).values()
    assert [gain.finding.name for gain in gains(findings) if gain.certain] == []
    assert risk_sentence(findings).startswith("No attack (of ")


@HELD
@pytest.mark.parametrize("shape", ["numbers", "wages", *at_length("mixed", "small")])
def test_a_copy_always_leads(shape: str, held: bool) -> None:
    original, _, outside = tables(shape, 1, held)
    findings = attacked(original, original, outside, 1)
    assert not risk_sentence(findings.values()).startswith("No attack")
    certain = {gain.finding.name for gain in gains(findings.values()) if gain.certain}
    expected = {"linkability", "attribute-inference-all-columns", "singling-out-multivariate"}
    expected |= {"unique-values-disclosed", "exact-row-matches"} | ({"membership-auc-distance"} if held else set())
    if held or shape != "small":  # half of forty people links too few others to tell
        expected |= {"linkage-euclid", "linkage-mahalanobis", "linkage-rank"}
    assert expected <= certain


@HELD
@pytest.mark.parametrize("shape", ["small", "wages", *at_length("mixed", "numbers", "few")])
def test_a_constant_table_never_leads(shape: str, held: bool) -> None:
    original, _, outside = tables(shape, 1, held)
    constant = original.take(pa.array(np.full(original.num_rows, 7)))
    findings = attacked(original, constant, outside, 1).values()
    assert [gain.finding.name for gain in gains(findings) if gain.certain] == []


def test_the_baseline_of_linkage_is_what_a_release_that_knows_nobody_gives() -> None:
    """It is that of the control group, and of the redraw itself, with and without the control group."""
    original, redraw, outside = (draw_table(place, 600) for place in (1, 2, 3))
    for held in (None, outside):
        findings = attacked(original, redraw, held, 5, (LINKAGE,))
        for way in ("euclid", "mahalanobis", "rank"):
            finding = findings[f"linkage-{way}"]
            assert finding.baseline is not None
            assert finding.baseline == pytest.approx(finding.value, abs=0.12)  # four deviations of the difference
            assert finding.baseline_interval is not None
            assert finding.baseline_interval[0] < finding.baseline < finding.baseline_interval[1]


@pytest.mark.parametrize("ratio", [1, 3])
def test_the_baseline_of_shown_values_is_what_a_redraw_shows(ratio: int) -> None:
    """On average over ten pairs of tables, of which the mean is off by a hundredth; it errs to the cautious side."""
    names = ("unique-values-disclosed", "exact-row-matches", "singling-out-univariate")
    excess: dict[str, list[float]] = {name: [] for name in names}
    for seed in range(10):
        of = study(wages(20 * seed, 1_000), wages(20 * seed + 1, 1_000 * ratio), seed=seed, target="colour")
        for measure in (UNIQUE_VALUES, WHOLE_ROWS, SINGLING_OUT):
            for finding in run_measure(measure, of):
                if finding.name in names and finding.value is not None and finding.baseline is not None:
                    excess[finding.name].append(finding.value - finding.baseline)
    for name, found in excess.items():
        assert len(found) == 10, name
        assert -0.05 < float(np.mean(found)) < 0.02, name


def test_halves_of_columns_are_those_of_the_study_in_its_baseline() -> None:
    """How columns are halved decides how many halves join: of two pairs of twins none join if twins are together."""
    rng = np.random.default_rng(3)
    tables = []
    for _ in range(2):
        a, b = rng.normal(size=(2, 400))
        tables.append(pa.table({"a": a, "a2": a, "b": b, "b2": b}))
    shares = []
    for seed in range(6):
        of = study(*tables, seed=seed)
        finding = next(each for each in run_measure(LINKABILITY, of) if each.name == "linkability")
        assert finding.value is not None
        assert finding.baseline == pytest.approx(finding.value, abs=0.15)
        shares.append(finding.value)
    assert max(shares) - min(shares) > 0.2


@pytest.mark.parametrize("released", [120, 240, 480])
def test_the_parts_are_people_and_rows_as_the_tables_are(released: int) -> None:
    original = numbers(1, 240)
    (made,) = split_in_two(study(original, numbers(2, released), target="colour"))
    assert len(made.original) + len(made.released) == 240
    assert len(made.released) / len(made.original) == pytest.approx(released / 240, rel=0.02)
    together = np.concatenate([made.original, made.released])
    whole = study(original, original, target="colour").original
    np.testing.assert_array_equal(np.sort(together, axis=0), np.sort(whole, axis=0))


@pytest.mark.parametrize("released", [50, 240, 480])
def test_in_each_fold_nobody_who_is_held_out_is_released(released: int) -> None:
    of = study(numbers(1, 240), numbers(2, released), target="colour")
    seen = []
    for made in split_in_tenths(of):
        assert made.holdout is not None
        assert made.held is not None
        assert len(made.released) == min(released, 216)
        assert not set(map(tuple, made.holdout.tolist())) & set(map(tuple, made.released.tolist()))
        places = place_of(of.original, made.holdout)
        np.testing.assert_array_equal(made.held[0].values, of.pairs[0].original.values[places])
        seen += list(map(tuple, made.holdout.tolist()))
    assert len(seen) == len(set(seen)) == 72


def place_of(rows: np.ndarray, some: np.ndarray) -> np.ndarray:
    return np.array([int(np.flatnonzero((rows == row).all(axis=1))[0]) for row in some])


@pytest.mark.parametrize("rows", [1, 3, *at_length(2, 4)])
def test_few_rows_stop_nothing(rows: int) -> None:
    for finding in attacked(draw_table(1, rows), draw_table(2, rows), None, 1).values():
        assert finding.value is None or finding.range != (0.0, 1.0) or 0.0 <= finding.value <= 1.0
        assert "failed" not in str(finding.reason)


def test_the_meaning_says_where_the_baseline_comes_from() -> None:
    original, redraw, outside = tables("mixed", 1, held=True)
    alone, beside = (attacked(original, redraw, held, 1, (LINKABILITY,))["linkability"] for held in (None, outside))
    assert alone.meaning.endswith(STAND_IN)
    assert STAND_IN not in beside.meaning
    assert beside.baseline_interval is None
