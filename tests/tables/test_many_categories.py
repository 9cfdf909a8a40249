"""Columns of more than 200 categories in methods that draw no rows from groups: every cell stays a category."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf

N, CODES = 1200, 300


@pytest.fixture(scope="module")
def table() -> pa.Table:
    rng = np.random.default_rng(3)
    code = rng.integers(0, CODES, N)
    lost = rng.random(N) < 0.05
    return pa.table(
        {
            "code": [None if gone else f"c{each:03d}" for each, gone in zip(code, lost, strict=True)],
            "cost": (code / 20 + rng.normal(size=N)).round(2),
            "age": rng.integers(18, 90, N),
        }
    )


def released(table: pa.Table, method: str, **told: Any) -> pa.Table:
    made = sf.sanitize(table, method=method, seed=1, report=False, rows_are_people=True, **told).table
    assert len(set(table.column("code").to_pylist())) > 200
    return made


@pytest.mark.parametrize(
    ("method", "told"),
    [
        ("noise", {"pass_categories": True}),
        ("translate", {"pass_categories": True}),
        ("laplace-pca", {"k": 5, "rare": "keep"}),
        ("swap", {"columns": ["cost"]}),
        ("block", {"columns": ["age"]}),
    ],
)
def test_categories_come_out_in_the_numbers_that_went_in(table: pa.Table, method: str, told: dict[str, Any]) -> None:
    made = released(table, method, **told)
    assert Counter(made.column("code").to_pylist()) == Counter(table.column("code").to_pylist())


def test_a_sample_holds_cells_of_the_table(table: pa.Table) -> None:
    made = released(table, "subsample", share=0.5)
    assert not Counter(made.column("code").to_pylist()) - Counter(table.column("code").to_pylist())


def test_answers_of_randomization_are_among_the_categories(table: pa.Table) -> None:
    made = released(table, "randomize", epsilon=2.0, allow_observed=True)
    listed = set(table.column("code").to_pylist())
    assert set(made.column("code").to_pylist()) <= listed | {"", None}
    kept = np.mean(
        [
            one == other
            for one, other in zip(made.column("code").to_pylist(), table.column("code").to_pylist(), strict=True)
        ]
    )
    assert kept < 0.3
