"""Rows that are weighted by noisy counts of pairs agree with them, and damaged counts are refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.arrays import Floats, Ints
from sfumato.core.distributions.amplification import rho_of
from sfumato.core.errors import OptionError
from sfumato.methods.private.columns import Domain
from sfumato.methods.private.draw import draw_rows
from sfumato.methods.private.ledger import Ledger
from sfumato.methods.private.measure import measure
from sfumato.methods.private.model import Model
from sfumato.methods.private.pairs import choose_rows
from sfumato.methods.private.people import People
from sfumato.methods.private.settings import settings_for
from sfumato.methods.private.stored import StoredModel
from tests.private.test_sample import changed

COLUMNS = 6
DOMAINS = (*(Domain(f"x{i}", 64, True, False) for i in range(COLUMNS)), Domain("class", 2, False, False))


def table(rows: int) -> tuple[Ints, ...]:
    """Every pair depends on each other in its own way, which no order of columns with few parents can show."""
    rng = np.random.default_rng(5)
    common, own = rng.normal(size=(rows, 3)), rng.integers(0, 2, rows)
    turn = rng.normal(size=(3, COLUMNS))
    score = common @ turn + np.abs(common[:, [0]]) * rng.normal(size=COLUMNS) + 0.3 * rng.normal(size=(rows, COLUMNS))
    places = np.clip(32 + 9 * score, 0, 63).astype(np.int64)
    return *places.T, own


def two_way(columns: tuple[Ints, ...] | list[Ints], rows: int) -> Floats:
    pairs = [(a, b) for a in range(COLUMNS) for b in range(a)]
    return np.array([np.bincount(columns[a] // 8 * 8 + columns[b] // 8, minlength=64) / rows for a, b in pairs])


def made(epsilon: float, rows: int, columns: tuple[Ints, ...]) -> Model:
    ledger = Ledger(rho_of(epsilon, 1e-5), np.random.default_rng(2))
    return measure(People(columns), DOMAINS, COLUMNS, settings_for(DOMAINS, COLUMNS, epsilon), ledger, ledger.rng)


def test_two_way_margins_are_nearer_with_counts_of_pairs() -> None:
    columns = table(8_000)
    model, rng = made(20.0, 8_000, columns), np.random.default_rng(3)
    assert len(model.pairs) == COLUMNS * (COLUMNS - 1) // 2
    truth = two_way(columns, 8_000)
    with_pairs, without = (
        np.abs(two_way(draw_rows(each, 30_000, rng), 30_000) - truth).sum(axis=1).mean()
        for each in (model, replace(model, pairs=()))
    )
    assert with_pairs < 0.8 * without


def test_too_few_people_for_counts_of_pairs_leave_their_budget_to_other_tables() -> None:
    columns = table(100)
    assert not made(1.0, 100, columns).pairs
    assert made(300.0, 100, columns).pairs


def test_rows_are_chosen_as_often_as_their_weights_say() -> None:
    rng = np.random.default_rng(4)
    weights = rng.random(500)
    weights /= weights.sum()
    often = np.bincount(choose_rows(weights, 2_000, rng), minlength=500)
    assert often.sum() == 2_000
    assert np.abs(often - 2_000 * weights).max() < 1 + 1e-9


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    names = [domain.name for domain in DOMAINS]
    columns = dict(zip(names, map(pa.array, table(3_000)), strict=True))
    schema = sf.Schema(
        tuple(
            sf.Field(name, sf.Kind.INTEGER, domain=sf.Domain(declared=True, low=0, high=domain.size - 1))
            for name, domain in zip(names, DOMAINS, strict=True)
        )
    )
    release = sf.sanitize(
        pa.table(columns), sf.PrivateChain(epsilon=5.0), schema=schema, target="class", report=False, seed=1
    )
    place = tmp_path_factory.mktemp("pairs") / "out"
    release.save(place, sign=False)
    return place / "release" / "model.json"


def test_a_model_with_pairs_is_read_as_it_was_written(stored: Path) -> None:
    model = StoredModel.load(stored)
    assert len(model.model.pairs) == COLUMNS * (COLUMNS - 1) // 2
    assert model.to_json() == stored.read_text()
    assert sf.sample(stored, rows=100, seed=1).num_rows == 100


@pytest.mark.parametrize(
    ("place", "to"),
    [
        (("pairs", 0, "columns"), [0, 6]),
        (("pairs", 0, "columns"), [1, 0]),
        (("pairs", 0, "columns"), [0, 2]),
        (("pairs", 0, "bins", 0, 0), 63),
        (("pairs", 0, "bins", 1), [0]),
        (("pairs", 1, "table"), [1]),
        (("pairs", 1, "table", 0), 1e300),
        (("pairs", 2, "sd"), 0),
        (("pairs", 2, "sd"), None),
    ],
)
def test_damaged_counts_of_pairs_are_refused(stored: Path, tmp_path: Path, place: tuple[Any, ...], to: Any) -> None:
    with pytest.raises(OptionError, match="model"):
        StoredModel.load(changed(stored, tmp_path, *place, to=to))
