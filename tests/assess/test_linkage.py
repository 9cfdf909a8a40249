"""Mutual links by distance, and links to the row that descends from a person."""

from __future__ import annotations

import dataclasses
import datetime

import numpy as np
import pyarrow as pa
import pytest

from sfumato.assess.algebra import run_measure
from sfumato.assess.attacks.linkage import (
    LINKAGE,
    OWN_ROW_LINKAGE,
    most_people,
    mutual_links,
    rank_view,
    whitening,
)
from sfumato.assess.findings import Finding, gains
from sfumato.assess.study import Sizes, Study
from sfumato.core.records import Block, BlockKind
from sfumato.methods.protocol import OwnerDetails
from tests.assess.cases import ROWS, constant_table, draw_table, study

WHOLE = ("euclid", "mahalanobis", "rank")
RARE_TREATMENTS = (*WHOLE, "few-columns", "half-columns")


def found(of: Study) -> dict[str, Finding]:
    return {finding.name: finding for finding in run_measure(LINKAGE, of)}


def overlap(first: tuple[float, float] | None, second: tuple[float, float] | None) -> bool:
    assert first is not None
    assert second is not None
    return first[0] <= second[1] and second[0] <= first[1]


def slow_mutual(population: np.ndarray, released: np.ndarray, people: np.ndarray) -> list[float]:
    hits = []
    for person in people:
        row = released[np.argmin(np.linalg.norm(released - population[person], axis=1))]
        away = np.linalg.norm(population - row, axis=1)
        near = np.isclose(away, away.min(), atol=1e-9)
        hits.append(float(near[person]) / near.sum())
    return hits


@pytest.mark.parametrize("width", [1, 3, 20])
def test_mutual_links_are_those_of_a_loop_over_all_pairs(width: int) -> None:
    rng = np.random.default_rng(width)
    population, released = rng.normal(size=(90, width)), rng.normal(size=(70, width))
    population[40:50] = population[:10]
    people = rng.permutation(90)[:60]
    np.testing.assert_allclose(mutual_links(population, released, people), slow_mutual(population, released, people))


@pytest.mark.parametrize("width", [2, 16])
def test_twins_share_a_link(width: int) -> None:
    population = np.repeat(np.arange(5.0)[:, None] * np.ones(width), [1, 2, 3, 4, 5], axis=0)
    hits = mutual_links(population, population, np.arange(15))
    np.testing.assert_allclose(hits, np.repeat(1 / np.arange(1.0, 6.0), [1, 2, 3, 4, 5]))


def test_a_copy_is_linked_whole_and_held_out_people_are_not() -> None:
    findings = found(study(draw_table(1), draw_table(1), holdout=draw_table(3)))
    for finding in (findings[f"linkage-{way}"] for way in WHOLE):
        assert finding.value == 1.0
        assert finding.baseline == pytest.approx(0.45, abs=0.1)  # an independent redraw links this share
        assert finding.control is not None
        assert finding.control < 0.1


def test_an_outsider_links_whoever_of_a_copy_is_alone_in_the_known_columns() -> None:
    table, known = draw_table(1), ("shape", "count")
    counts = table.group_by(known).aggregate([([], "count_all")]).num_rows
    finding = found(study(table, table, quasi_identifiers=known))["linkage-few-columns"]
    assert finding.value == pytest.approx(counts / ROWS)  # of t who are alike, each is found with a chance of 1/t
    assert "known are shape, count" in finding.meaning
    few, half = (found(study(table, table))[f"linkage-{name}"] for name in ("few-columns", "half-columns"))
    assert counts / ROWS < (few.value or 0.0) <= (half.value or 0.0) < 1.0


def test_a_copy_of_a_table_with_twins_is_linked_as_often_as_it_has_different_rows() -> None:
    table = pa.table({"a": [1.0, 1.0, 2.0, 3.0, 3.0, 3.0], "b": ["u", "u", "v", "v", "v", "v"]})
    for finding in found(study(table, table)).values():
        assert finding.value == pytest.approx(3 / 6)


def test_an_independent_redraw_links_no_more_than_held_out_people() -> None:
    beaten = dict.fromkeys(RARE_TREATMENTS, 0)
    for seed in range(10, 18):
        tables = [draw_table(10 * seed + place, 200) for place in range(3)]
        findings = found(study(tables[0], tables[1], seed=seed, holdout=tables[2]))
        for way in RARE_TREATMENTS:
            finding = findings[f"linkage-{way}"]
            beaten[way] += not overlap(finding.interval, finding.control_interval)
    assert max(beaten.values()) <= 1


def test_ranks_of_one_column_give_a_redraw_no_head_start() -> None:
    rng = np.random.default_rng(4)
    original, released, outside = (pa.table({"a": rng.normal(size=300)}) for _ in range(3))
    finding = found(study(original, released, holdout=outside))["linkage-rank"]
    assert finding.value == 1.0  # the same number of rows lie on the same ranks, whoever they are
    assert finding.control == 1.0


def test_a_constant_table_links_nobody_but_the_one_it_repeats() -> None:
    for name, finding in found(study(draw_table(1), constant_table(), holdout=draw_table(3))).items():
        assert finding.value is not None
        assert finding.value <= 1 / ROWS + 1e-12, name


def test_ranks_see_through_a_change_of_scale_and_distances_do_not() -> None:
    original = draw_table(1).select(["x", "count", "born"])
    scaled = original.set_column(0, "x", pa.array(np.exp(original.column("x").to_numpy()) * 50.0))
    found_of = found(study(original, scaled, holdout=draw_table(3).select(["x", "count", "born"])))
    rank, euclid = found_of["linkage-rank"].value, found_of["linkage-euclid"].value
    assert rank == 1.0
    assert euclid is not None
    assert euclid < 0.5


def test_whitened_rows_have_mahalanobis_distance() -> None:
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(500, 3)) @ rng.normal(size=(3, 3))
    covariance = np.cov(rows.T, bias=True)
    inverse = np.linalg.inv(covariance + 0.01 * np.trace(covariance) / 3 * np.eye(3))
    white, away = rows @ whitening(rows), rows[0] - rows[1]
    assert np.sum((white[0] - white[1]) ** 2) == pytest.approx(away @ inverse @ away)


def test_rank_view_ranks_what_is_present_and_leaves_categories() -> None:
    of = study(draw_table(1), draw_table(2))
    ranked = rank_view(of.original, of.layout)
    here = of.coordinates(["y"])
    absent = of.pair("y").original.absent
    assert not ranked[absent, here[0]].any()
    assert ranked[~absent, here[0]].std() == pytest.approx(1.0, abs=0.01)
    np.testing.assert_array_equal(ranked[:, of.coordinates(["colour"])], of.original[:, of.coordinates(["colour"])])


def test_own_rows_need_their_origin() -> None:
    findings = run_measure(OWN_ROW_LINKAGE, study(draw_table(1), draw_table(2)))
    assert {finding.status for finding in findings} == {"not-run"}


@pytest.mark.parametrize(("noise", "low", "high"), [(0.0, 1.0, 1.0), (0.02, 0.9, 1.0), (20.0, 0.0, 0.1)])
def test_own_rows_are_found_until_noise_hides_them(noise: float, low: float, high: float) -> None:
    rng = np.random.default_rng(8)
    values = rng.normal(size=(400, 4))
    order = rng.permutation(400)
    blurred = (values + noise * rng.normal(size=values.shape))[order]
    names = ("a", "b", "c", "d")
    tables = [
        pa.table(dict(zip(names, matrix.T, strict=True))) for matrix in (values, blurred, rng.normal(size=(90, 4)))
    ]
    of = study(tables[0], tables[1], workings=OwnerDetails(origin=order.astype(np.int64)), holdout=tables[2])
    for finding in run_measure(OWN_ROW_LINKAGE, of):
        assert finding.value is not None
        assert low <= finding.value <= high
        assert finding.control is None  # a person held out has no row of their own
        assert "Control" not in finding.meaning
        assert finding.baseline == 1 / 400


def test_links_to_the_own_row_that_are_few_and_far_beyond_guessing_are_a_success() -> None:
    """Noise that links one person in eleven to their own row: the nearest neighbour's row is no comparison."""
    rng = np.random.default_rng(9)
    values, outside = rng.normal(size=(1200, 3)), rng.normal(size=(400, 3))
    blurred = values + 0.5 * rng.normal(size=values.shape)
    tables = [pa.table(dict(zip("abc", matrix.T, strict=True))) for matrix in (values, blurred, outside)]
    of = study(tables[0], tables[1], workings=OwnerDetails(origin=np.arange(1200)), holdout=tables[2])
    findings = (*run_measure(LINKAGE, of), *run_measure(OWN_ROW_LINKAGE, of))
    found_of = {gain.finding.name: gain for gain in gains(findings)}
    assert set(found_of) == {f"own-row-linkage-{way}" for way in RARE_TREATMENTS}
    for gain in found_of.values():
        assert 0.02 < (gain.finding.value or 0.0) < 0.1
        assert gain.against == 1 / 1200
        assert gain.certain


def test_where_origins_are_known_links_are_those_to_the_own_row() -> None:
    of = study(draw_table(1), draw_table(1), workings=OwnerDetails(origin=np.arange(ROWS)))
    assert all("own row" in str(finding.reason) for finding in run_measure(LINKAGE, of))


def test_odd_tables_stop_nothing() -> None:
    date = datetime.date(2000, 1, 1)
    odd = pa.table({"a": [1.0, 1.0], "b": [2.0, None], "c": ["u", "v"], "d": [date, None]})
    for original, released in ((odd, odd), (odd.slice(0, 1), odd), (odd, odd.slice(1)), (odd.select(["a"]), odd)):
        names = original.column_names
        for finding in found(study(original, released.select(names), holdout=odd.select(names))).values():
            assert finding.value is not None
            assert 0.0 <= finding.value <= 1.0


def test_a_sample_says_so() -> None:
    of = study(draw_table(1, 3000), draw_table(2, 3000))
    finding = found(dataclasses.replace(of, sizes=Sizes(attempts=2000)))["linkage-euclid"]
    assert finding.attempts == 2000
    assert "counted on 2000 rows drawn at random." in finding.meaning
    assert finding.control is None
    assert "no records were held out" in finding.meaning


def test_of_three_rows_guessing_is_one_of_three() -> None:
    for finding in found(study(draw_table(1, 3), draw_table(2, 3))).values():
        assert finding.baseline == pytest.approx(1 / 3)


def test_few_attempts_have_a_control_of_fifty_people() -> None:
    of = dataclasses.replace(study(draw_table(1), draw_table(2), holdout=draw_table(3)), sizes=Sizes(attempts=10))
    for finding in found(of).values():
        assert finding.inside is not None
        assert finding.outside is not None
        assert (finding.inside.of, finding.outside.of) == (10, 50)


@pytest.mark.parametrize(
    ("rows", "released", "width", "people"),
    [
        (2_000_000, 9, 12, 2_000),  # a tree finds neighbours of few coordinates
        (2_000_000, 9, 13, 400),
        (9, 1_000_000, 13, 500),
        (10_000, 9, 13, 2_000),
    ],
)
def test_in_wide_tables_of_many_rows_fewer_people_are_attacked(
    rows: int, released: int, width: int, people: int
) -> None:
    sides = (np.broadcast_to(np.zeros(width), (count, width)) for count in (rows, released))
    of = study(draw_table(1, 9), draw_table(2, 9))
    original, other = sides
    assert most_people(dataclasses.replace(of, original=original, released=other)) == people


def test_of_ranks_a_missing_cell_lies_in_the_middle() -> None:
    layout = (Block("a", BlockKind.NUMBER, 0, 1), Block("a", BlockKind.MISSING, 1, 2))
    rows = np.array([[5.0, 0.0], [777.0, 1.0], [-3.0, 0.0], [9.0, 0.0]])
    ranks = np.sqrt(12.0) * (np.array([2.0, 1.0, 3.0]) - 2.0) / 3.0
    np.testing.assert_allclose(rank_view(rows, layout)[:, 0], [ranks[0], 0.0, ranks[1], ranks[2]], atol=1e-12)
