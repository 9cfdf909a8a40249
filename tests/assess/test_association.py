"""Association and covariance from sums, against libraries and hand counts."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from sfumato.assess.study import read_pairs
from sfumato.assess.utility.association import Coordinates, TableSums, association, covariance, gather, redraws
from sfumato.assess.utility.comparison import compatibility
from tests.assess.cases import draw_table, fit


def moments_of(table: pa.Table) -> TableSums:
    pairs = read_pairs(table, table, fit(table))
    return gather(Coordinates.of(pairs), [pair.original for pair in pairs], np.random.default_rng(1))


def matrix_of(table: pa.Table) -> np.ndarray:
    moments = moments_of(table)
    return association(moments.total, moments.coordinates)


def test_the_association_matrix_is_symmetric_with_ones_on_its_diagonal() -> None:
    matrix = matrix_of(draw_table(1))
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-12)
    np.testing.assert_array_equal(np.diagonal(matrix), 1.0)
    assert np.abs(matrix).max() <= 1.0


def test_two_numbers_have_the_correlation_of_the_rows_where_both_are_present() -> None:
    table = draw_table(1)
    x, y = (np.array(table.column(name).to_pandas(), dtype=float) for name in ("x", "y"))
    here = ~np.isnan(y)
    assert matrix_of(table)[0, 1] == pytest.approx(np.corrcoef(x[here], y[here])[0, 1])


def test_categories_and_a_number_have_the_correlation_ratio() -> None:
    table = draw_table(1)
    x, colour = np.array(table.column("x")), np.array(table.column("colour").to_pylist())
    parts = [x[colour == name] for name in np.unique(colour)]
    between = sum(len(part) * (part.mean() - x.mean()) ** 2 for part in parts)
    assert matrix_of(table)[0, 3] == pytest.approx(np.sqrt(between / ((x - x.mean()) ** 2).sum()))


def test_two_columns_of_categories_have_the_corrected_cramers_v() -> None:
    table = draw_table(1)
    one, two = table.column("colour").to_pylist(), [cell or "missing" for cell in table.column("shape").to_pylist()]
    counts = np.array(
        [[sum((a, b) == (i, j) for a, b in zip(one, two, strict=True)) for j in set(two)] for i in set(one)]
    )
    n, expected = counts.sum(), np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
    phi = ((counts - expected) ** 2 / expected).sum() / n
    free = np.array(counts.shape) - 1
    sides = free - free**2 / (n - 1)
    assert matrix_of(table)[3, 4] == pytest.approx(np.sqrt(max(0, phi - free.prod() / (n - 1)) / sides.min()))


def test_categories_that_do_not_hang_together_have_a_link_near_zero() -> None:
    rng = np.random.default_rng(3)
    table = pa.table({name: [f"c{code}" for code in rng.integers(0, 8, 500)] for name in ("a", "b")})
    assert matrix_of(table)[0, 1] < 0.08


def test_a_column_that_does_not_vary_is_linked_to_nothing() -> None:
    table = draw_table(1)
    table = table.set_column(2, "count", pa.array(np.full(len(table), 7))).set_column(
        3, "colour", pa.array(["u"] * len(table))
    )
    matrix = matrix_of(table)
    assert not np.delete(matrix[2], 2).any()
    assert not np.delete(matrix[3], 3).any()


def test_the_covariance_in_standard_deviations_is_the_correlation() -> None:
    table = draw_table(1).select(["x", "count"])
    moments = moments_of(table)
    columns = [np.array(table.column(name), dtype=float) for name in table.column_names]
    np.testing.assert_allclose(covariance(moments.total, moments.coordinates), np.corrcoef(columns), atol=1e-12)


def test_rare_categories_are_counted_together() -> None:
    numbers = np.random.default_rng(1).normal(size=2000)
    table = pa.table({"a": [f"c{place % 70:02d}" for place in range(2000)], "b": numbers})
    assert moments_of(table).coordinates.width == 3 + 1 + 50


def test_redraws_have_the_size_that_was_asked() -> None:
    moments = moments_of(draw_table(1))
    for rows in (300, 600, 1200):
        (sums,) = next(redraws(moments, rows, 1, np.random.default_rng(2)))
        assert sums[4, 4] == pytest.approx(rows, rel=0.1)  # the mask of x


def test_mu_is_the_correlation_of_the_entries_with_each_pair_once() -> None:
    rng = np.random.default_rng(1)
    first, second = (np.cov(rng.normal(size=(4, 30))) for _ in range(2))
    entries = [(first[i, j], second[i, j]) for i in range(4) for j in range(i, 4)]
    assert compatibility(first, second) == pytest.approx(np.corrcoef(np.transpose(entries))[0, 1])


def test_mu_of_a_single_column_does_not_exist() -> None:
    assert compatibility(np.ones((1, 1)), np.ones((1, 1))) is None


def test_mu_is_minus_one_for_entries_in_perfect_opposition() -> None:
    first = np.array([[1.0, 0.2], [0.2, 3.0]])
    assert compatibility(first, 5.0 - first) == pytest.approx(-1.0)


@pytest.mark.parametrize("size", [1e-200, 1e150])
def test_links_do_not_depend_on_the_units(size: float) -> None:
    table = draw_table(1)
    scaled = table.set_column(0, "x", pa.array(np.array(table.column("x")) * size))
    np.testing.assert_allclose(matrix_of(scaled), matrix_of(table), atol=1e-9)
