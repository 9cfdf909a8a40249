"""Attacks on one shadow release: each on a release that only its own ingredients see through."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from sfumato.assess.audit import attacks
from sfumato.assess.audit.attacks import AttackedPeople
from sfumato.tables.codec import Codec
from sfumato.tables.schema import Schema

Floats = NDArray[np.float64]
LINKS = ("shadow-linkage-euclid", "shadow-linkage-rank", "shadow-linkage-mahalanobis")


def people_of(table: pa.Table, persons: NDArray[np.int64] | None = None) -> AttackedPeople:
    return AttackedPeople.of(table, Codec.fit(table, Schema.infer(table)), persons)


def scores(
    table: pa.Table, released: pa.Table, persons: NDArray[np.int64] | None = None
) -> dict[str, tuple[NDArray[np.int64], Floats]]:
    """Rows that were attacked and how well, by attack."""
    made = people_of(table, persons).attack(released, np.arange(table.num_rows), np.random.default_rng(1))
    return {name: (rows, score) for name, rows, score in made}


def numbers(values: Floats) -> pa.Table:
    return pa.table(dict(zip("abcdef", values.T, strict=False)))


def area(score: Floats, member: NDArray[np.bool_]) -> float:
    inside, outside = score[member], score[~member]
    return float(np.mean((inside[:, None] > outside) + 0.5 * (inside[:, None] == outside)))


@pytest.mark.parametrize("name", LINKS)
def test_a_link_is_mutual_and_shared_by_people_who_are_alike(name: str) -> None:
    values = np.random.default_rng(1).normal(size=(60, 3))
    values[1] = values[0]
    table = numbers(values)
    released = table.take(pa.array([0, 5]))
    expected = np.zeros(60)
    expected[[0, 1, 5]] = 0.5, 0.5, 1.0
    np.testing.assert_array_equal(scores(table, released)[name][1], expected)
    persons = np.r_[0, np.arange(59)]  # the two rows that are alike are one person's
    expected[[0, 1]] = 1.0
    np.testing.assert_array_equal(scores(table, released, persons)[name][1], expected)


def test_ranks_link_people_whom_one_outlier_hides() -> None:
    rng = np.random.default_rng(2)
    values = np.column_stack([rng.lognormal(0.0, 5.0, 300), rng.normal(size=300)])
    found = scores(numbers(values), numbers(values + np.column_stack([np.zeros(300), rng.normal(0, 0.1, 300)])))
    assert found["shadow-linkage-rank"][1].mean() > found["shadow-linkage-euclid"][1].mean() + 0.1


def test_mahalanobis_distance_links_by_what_noise_along_a_correlation_leaves() -> None:
    rng = np.random.default_rng(3)
    values = rng.normal(size=(300, 1)) + rng.normal(0.0, 0.05, size=(300, 3))
    found = scores(numbers(values), numbers(values + rng.normal(0.0, 0.3, size=(300, 1))))
    assert found["shadow-linkage-mahalanobis"][1].mean() > found["shadow-linkage-euclid"][1].mean() + 0.1


def test_distances_relative_to_other_people_infer_membership_where_people_lie_dense_and_sparse() -> None:
    rng = np.random.default_rng(4)
    wide = np.where(np.arange(400) < 200, 0.01, 1.0)[:, None]
    values, member = wide * rng.normal(size=(400, 3)), rng.random(400) < 0.5
    found = scores(numbers(values), numbers((values + wide * rng.normal(0.0, 0.2, size=(400, 3)))[member]))
    relative, plain = (area(found[f"shadow-auc-{name}"][1], member) for name in ("relative", "distance"))
    assert relative > plain + 0.1
    assert relative > 0.75
    for name in ("relative", "distance"):
        np.testing.assert_array_equal(found[f"shadow-tpr-{name}"][1], found[f"shadow-auc-{name}"][1])


def test_the_fifth_neighbour_infers_membership_where_the_nearest_released_row_is_a_decoy() -> None:
    """Five rows near each member, and one that is exactly a control's."""
    rng = np.random.default_rng(5)
    values, member = rng.normal(size=(200, 4)), rng.random(200) < 0.5
    near = np.repeat(values[member], 5, axis=0)
    released = np.concatenate([near + rng.normal(0.0, 0.05, size=near.shape), values[~member]])
    found = scores(numbers(values), numbers(released))
    for name in ("density-ratio", "density-ratio-rank"):
        assert area(found[f"shadow-auc-{name}"][1], member) > 0.9
    for name in ("distance", "relative"):
        assert area(found[f"shadow-auc-{name}"][1], member) < 0.1


def test_a_cell_is_inferred_from_the_row_nearest_by_all_other_columns_to_a_tolerance() -> None:
    rng = np.random.default_rng(6)
    values = rng.normal(size=(200, 4)).round(3)
    table = numbers(values)
    tolerance = people_of(table).tolerances[2]
    assert tolerance > 0
    for off, share in ((0.9, 1.0), (-0.9, 1.0), (1.2, 0.0), (-1.2, 0.0)):
        moved = values.copy()
        moved[:, 2] += off * tolerance
        assert scores(table, numbers(moved))["shadow-attribute-inference/c"][1].mean() == share
    shuffled = values.copy()
    shuffled[:, 2] = rng.permutation(values[:, 2])
    assert scores(table, numbers(shuffled))["shadow-attribute-inference/c"][1].mean() < 0.3


def test_missing_cells_are_not_inferred_and_tell_nothing() -> None:
    rng = np.random.default_rng(7)
    values = rng.normal(size=(200, 3)).round(3)
    gone, behind = np.arange(200) < 50, np.arange(200) >= 120
    table = numbers(values).set_column(2, "c", pa.array(values[:, 2], mask=gone))
    released = numbers(values).set_column(2, "c", pa.array(values[:, 2], mask=behind))
    rows, score = scores(table, released)["shadow-attribute-inference/c"]
    np.testing.assert_array_equal(rows, np.arange(50, 200))
    np.testing.assert_array_equal(score, np.arange(50, 200) < 120)


def test_two_halves_of_columns_are_linked_only_if_they_lead_to_one_row() -> None:
    rng = np.random.default_rng(8)
    values = rng.normal(size=(200, 6))
    assert scores(numbers(values), numbers(values))["shadow-linkability"][1].mean() == 1.0
    for place in range(6):
        values[:, place] = values[rng.permutation(200), place]
    other = rng.permutation(values)
    assert scores(numbers(other), numbers(rng.normal(size=(200, 6))))["shadow-linkability"][1].mean() < 0.1


def test_a_description_counts_for_the_one_person_whom_it_fits_and_only_if_it_is_unique_in_the_release() -> None:
    table = numbers(np.random.default_rng(9).normal(size=(100, 4)).round(3))
    half = table.slice(0, 50)
    alone = scores(table, half)["shadow-singling-out"][1]
    assert alone[:50].mean() > 4 * alone[50:].mean()
    twice = scores(table, pa.concat_tables([half, half]))["shadow-singling-out"][1]
    assert twice.mean() < 0.3 * alone.mean()
    persons = np.repeat(np.arange(50), 2)  # a person's success is that of all rows
    both = scores(table, half, persons)["shadow-singling-out"][1]
    np.testing.assert_array_equal(both[::2], both[1::2])
    assert both[:50].mean() > 4 * both[50:].mean()
    twins = scores(pa.concat_tables([half, half]), half)["shadow-singling-out"][1]
    assert twins.max() == 0.0  # unique in the release, but they fit two people each


def test_people_are_described_by_one_column_and_by_several() -> None:
    rng = np.random.default_rng(11)
    one = numbers(rng.normal(size=(100, 1)).round(3))
    assert scores(one, one)["shadow-singling-out"][1].mean() > 0.1
    words = pa.table({name: [f"{name}{code}" for code in rng.permutation(100) % 6] for name in "abcd"})
    assert scores(words, words)["shadow-singling-out"][1].mean() > 0.02  # no value alone fits one person


def test_of_many_people_as_many_controls_as_members_are_attacked_each_by_one_row(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    persons = np.repeat(np.arange(200), 3)
    people = people_of(numbers(np.random.default_rng(10).normal(size=(600, 2))), persons)
    rows = people.attacked(np.arange(200) < 100, np.random.default_rng(1))
    np.testing.assert_array_equal(np.sort(people.whose[rows]), np.arange(200))
    assert len(np.unique(rows % 3)) == 3  # any of a person's rows
    monkeypatch.setattr(attacks, "_FEWEST", 80)
    monkeypatch.setattr(attacks, "_MOST", 80)
    for controls, attacked in ((100, 40), (30, 30)):
        member = np.arange(200) >= controls
        whose = people.whose[people.attacked(member, np.random.default_rng(2))]
        assert len(np.unique(whose)) == len(whose) == 80
        assert int((~member[whose]).sum()) == attacked
        again = people.whose[people.attacked(member, np.random.default_rng(3))]
        assert set(again) != set(whose)
