"""Tables of more columns than records: the same distances in fewer columns, and the same groups."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.methods.condense import compact
from sfumato.methods.condense.compact import in_fewer_columns
from sfumato.methods.condense.partition import partition
from tests.condense.tables import Floats, draw_values, mixture, no_strata


def squared_distances(values: Floats) -> Floats:
    return np.asarray(((values[:, None, :] - values[None, :, :]) ** 2).sum(axis=2))


@given(st.integers(0, 2**32 - 1), st.sampled_from(["mixture", "heavy tails", "grid", "duplicates", "constant columns"]))
def test_no_distance_changes_and_columns_are_at_most_as_many_as_records(seed: int, kind: str) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 40))
    values = draw_values(rng, kind, n, n + int(rng.integers(1, 700)))
    few = in_fewer_columns(values)
    assert few.shape[0] == n
    assert 1 <= few.shape[1] <= n
    wanted = squared_distances(values)
    np.testing.assert_allclose(squared_distances(few), wanted, rtol=1e-9, atol=1e-12 * wanted.max())


@pytest.mark.parametrize("n", [1, 2, 5])
def test_equal_records_have_one_column_and_lie_together(n: int) -> None:
    few = in_fewer_columns(np.full((n, 9), 0.1))
    assert few.shape == (n, 1)
    assert np.ptp(few) <= 1e-15


def test_records_of_few_directions_have_few_columns() -> None:
    rng = np.random.default_rng(3)
    values = rng.normal(size=(60, 3)) @ rng.normal(size=(3, 400)) + 5.0
    assert in_fewer_columns(values).shape == (60, 3)


@pytest.mark.parametrize(
    ("n", "columns"), [(60, 513), *(pytest.param(260, columns, marks=pytest.mark.slow) for columns in (513, 1300))]
)
@pytest.mark.parametrize("levels", ["one", "several"])
def test_groups_are_those_of_all_columns(monkeypatch: pytest.MonkeyPatch, n: int, columns: int, levels: str) -> None:
    rng = np.random.default_rng(columns)
    values = mixture(rng, n, columns)
    asked = np.full(n, 5) if levels == "one" else rng.integers(3, 9, n)
    few = partition(values, asked, no_strata(values), np.random.default_rng(1))
    monkeypatch.setattr(compact, "_FOLDED", 0)  # no table is small enough
    every = partition(values, asked, no_strata(values), np.random.default_rng(1))
    assert few.max() == every.max()
    assert len({*zip(few.tolist(), every.tolist(), strict=True)}) == every.max() + 1  # only rounding numbers them
