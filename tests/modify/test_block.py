"""Blocking: what is left of the known columns is shared by enough people, and every cell left is the person's own."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.errors import LevelError, OptionError
from sfumato.core.facts import Context
from sfumato.methods.modify import block_rare
from sfumato.methods.modify.facts import Blocked, IdenticalRows
from sfumato.publish.verify import verify_release
from sfumato.publish.verify_rows import read_released
from tests.examples import examples
from tests.modify.tables import mixed, origin_of


def held_by(shown: np.ndarray, levels: np.ndarray, persons: np.ndarray) -> bool:
    """Count literally: rows that are equal are of as many persons as the highest level among them."""
    for row in {tuple(each) for each in shown.tolist()}:
        alike = (shown == row).all(axis=1)
        if len(set(persons[alike])) < levels[alike].max():
            return False
    return True


@given(st.data())
@examples(60)
def test_what_is_left_is_shown_by_enough_persons_and_only_cells_that_were_there_are_lost(data: st.DataObject) -> None:
    rows, width = data.draw(st.integers(3, 24)), data.draw(st.integers(1, 4))
    cells = st.lists(st.integers(0, 3), min_size=width, max_size=width)
    codes = np.array(data.draw(st.lists(cells, min_size=rows, max_size=rows)))
    persons = np.array(data.draw(st.lists(st.integers(0, rows), min_size=rows, max_size=rows)))
    persons = np.unique(persons, return_inverse=True)[1]
    people = int(persons.max()) + 1
    levels = np.array(data.draw(st.lists(st.integers(1, people), min_size=rows, max_size=rows)))
    lost = block_rare(codes, levels, persons, np.random.default_rng(0))
    assert not lost[codes == 0].any()
    assert held_by(np.where(lost, 0, codes), levels, persons)


def test_rows_that_are_held_by_enough_lose_nothing() -> None:
    codes = np.repeat([[1, 1], [1, 2], [2, 1]], 4, axis=0)
    assert not block_rare(codes, np.full(12, 4), np.arange(12), np.random.default_rng(0)).any()


def least_lost(codes: np.ndarray, k: int) -> int:
    """Fewest cells that must be blocked, by trying all ways."""
    width, fewest = codes.shape[1], codes.size
    ways = list(itertools.product((False, True), repeat=width))
    for way in itertools.product(ways, repeat=len(codes)):
        lost = np.array(way)
        if lost.sum() < fewest and held_by(np.where(lost, 0, codes), np.full(len(codes), k), np.arange(len(codes))):
            fewest = int(lost.sum())
    return fewest


@pytest.mark.parametrize(
    "codes",
    [
        [[1, 1], [1, 1], [1, 2], [2, 1], [2, 2]],
        [[1, 1], [1, 2], [1, 3], [2, 1], [2, 1]],
        [[1, 2], [2, 1], [3, 3], [3, 3], [3, 1]],
        [[1, 1], [1, 1], [1, 1], [2, 2]],
    ],
)
def test_at_most_half_as_much_again_is_lost_as_must_be(codes: list[list[int]]) -> None:
    table = np.array(codes)
    lost = int(block_rare(table, np.full(len(table), 2), np.arange(len(table)), np.random.default_rng(0)).sum())
    assert least_lost(table, 2) <= lost <= 1.5 * least_lost(table, 2)


@pytest.mark.parametrize("library", ["pyarrow", "pandas"])
def test_a_release_shows_own_cells_or_none_and_a_reviewer_counts_them(library: str, tmp_path: Path) -> None:
    table = mixed()
    frame = table if library == "pyarrow" else table.to_pandas()
    release = sf.sanitize(frame, method="block", columns=["age", "smokes", "town"], k=4, level=5, report=False)
    made = release.table if library == "pyarrow" else pa.Table.from_pandas(release.table, preserve_index=False)
    (fact,) = (fact for fact in release.certificate.facts if isinstance(fact, Blocked))
    assert fact.least >= 5
    origin = origin_of(release)
    for name, cells in zip(fact.columns, fact.cells, strict=True):
        before, after = table[name].take(origin).to_pylist(), made[name].to_pylist()
        lost = sum(b is not None and (a is None or a != a) for a, b in zip(after, before, strict=True))
        assert lost == cells
        assert all(a is None or a != a or a == b for a, b in zip(after, before, strict=True))
    assert sum(fact.cells) > 0
    for name in ("pay", "ill"):
        assert made[name].to_pylist() == table[name].take(origin).to_pylist()
    folder = release.save(tmp_path / "out") / "release"
    found = {check.name: check for check in verify_release(folder)}
    assert all(check.holds for check in found.values())
    assert found["suppressed cells"].detail == f"{sum(fact.cells)} certified cells are missing"
    document = json.loads((folder / "certificate.json").read_text(encoding="utf-8"))
    place = next(place for place, each in enumerate(document["facts"]) if each["fact"] == "blocked")
    document["facts"][place]["cells"] = [120, 120, 120]
    (folder / "certificate.json").write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    assert not {check.name: check for check in verify_release(folder)}["suppressed cells"].holds


def test_cells_that_cannot_be_counted_do_not_hold(tmp_path: Path) -> None:
    schema = sf.Schema((sf.Field("town", sf.Kind.NOMINAL),))
    context = Context((IdenticalRows(("town",), 2, 2, 0), Blocked(("town",), (0,), 2, 2)))
    checks = [check for fact in context if (check := fact.row_check(schema, context)) is not None]
    pq.write_table(pa.table({"town": [[1], [2]]}), tmp_path / "table.parquet")
    found = read_released(tmp_path / "table.parquet", schema, 2, checks)
    assert [check.name for check in found.checks if not check.holds] == ["cell types"]


def test_persons_are_counted_and_not_rows() -> None:
    table = pa.table({"town": ["a"] * 6 + ["b"] * 6, "who": ["p1"] * 6 + [f"q{row}" for row in range(6)]})
    release = sf.sanitize(table, method="block", columns=["town"], k=3, person="who", report=False)
    (fact,) = (fact for fact in release.certificate.facts if isinstance(fact, Blocked))
    assert fact.by_person
    assert release.table["town"].to_pylist().count("a") == 0
    assert fact.least >= 3


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"k": 1}, (OptionError, LevelError), "k is"),
        ({"k": 500}, LevelError, "there are 120 records and the highest privacy level is 500"),
        ({"columns": ["towns"]}, OptionError, "did you mean 'town'"),
        ({"strata": "ill"}, OptionError, "blocking makes no groups"),
        ({"columns": "town,age"}, OptionError, "columns names 'town,age'"),
    ],
)
def test_what_cannot_be_blocked_is_refused_in_a_sentence(options: dict[str, Any], kind: type, words: str) -> None:
    with pytest.raises(kind, match=words):
        sf.sanitize(mixed(), method="block", report=False, **options)
