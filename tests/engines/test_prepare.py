"""Before a mechanism: an extreme that fewer people share than a privacy level asks for never cuts the release."""

from __future__ import annotations

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.randomness import Randomness
from sfumato.engines.plan import Plan, prepare
from sfumato.methods.protocol import Mechanism
from sfumato.options import RunOptions
from sfumato.tables.grid import Grid
from sfumato.tables.schema import Schema
from sfumato.tables.tails import TailMethod


def people() -> pa.Table:
    """Twenty people of whom three have the lowest number and five the highest; one asks for level 4."""
    number = [10] * 3 + list(range(11, 23)) + [30] * 5
    return pa.table({"number": number, "level": [2] * 19 + [4], "kind": ["a", "b"] * 10})


def grid_of(mechanism: Mechanism, level: str | int | None, tails: TailMethod | None = "keep") -> Grid:
    table = people()
    job = prepare(
        table,
        Plan(
            mechanism,
            Schema.infer(table, target="kind"),
            RunOptions(level=level, rare="keep", tails=tails),
            Randomness(1),
        ),
    )
    found = job.codec.columns[0].grid
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("mechanism", "level", "folds"),
    [
        (sf.Condensation(k=2), None, (False, False)),
        (sf.Condensation(k=2), 3, (False, False)),
        (sf.Condensation(k=2), "level", (True, False)),  # one person's level counts for everybody's extremes
        (sf.Condensation(k=2), "number > 21: 6, else: 2", (True, True)),
        (sf.Condensation(k=4), None, (True, False)),
        (sf.Condensation(k=6), "level", (True, True)),
        (sf.ClasswiseCondensation(k=2), None, (False, False)),
        (sf.ClasswiseCondensation(), None, (True, False)),  # groups of 5 or more
    ],
)
def test_an_extreme_folds_where_fewer_share_it_than_the_highest_level(
    mechanism: Mechanism, level: str | int | None, folds: tuple[bool, bool]
) -> None:
    grid = grid_of(mechanism, level)
    assert (grid.fold_low, grid.fold_high) == folds


@pytest.mark.parametrize("k", [2, 4, 6])
def test_coded_tails_cut_the_release_between_values_of_k_people_and_nothing_folds(k: int) -> None:
    grid = grid_of(sf.Condensation(k=k), None, None)
    numbers = sorted(people().column("number").to_pylist())
    assert (grid.fold_low, grid.fold_high) == (False, False)
    assert numbers[k - 1] <= grid.low <= grid.high <= numbers[-k]
