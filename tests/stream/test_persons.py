"""Persons of a stream: a limit of rows for each, keyed digests, and groups as many times as large."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.errors import OptionError, PrivacyRefusal
from sfumato.publish.verify import verify_release
from sfumato.stream.entries import cut_batches
from sfumato.stream.facts import Maintained, PersonRowsBounded
from sfumato.stream.session import StreamSession
from sfumato.stream.settings import StateError
from tests.examples import examples
from tests.stream.cases import look

MOST, K = 3, 4


def visits(rows: int = 400, persons: int = 90, seed: int = 1) -> pa.Table:
    rng = np.random.default_rng(seed)
    who = np.minimum(rng.geometric(0.03, rows), persons)
    return pa.table(
        {"who": [f"p{each}" for each in who], "age": rng.integers(18, 90, rows), "x": rng.normal(size=rows)}
    )


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "persons.key"
    path.write_bytes(bytes(range(40)))
    path.chmod(0o600)
    return path


def begun(place: Path, table: pa.Table, key: Path, first: int = 150, **options: Any) -> Path:
    told: dict[str, Any] = {
        "person": "who",
        "person_rows": MOST,
        "person_key": key,
        "k": K,
        "seed": 1,
        "batch_rows": 25,
    }
    sf.stream(place, table.slice(0, first), **(told | options))
    return place


def taken(place: Path, table: pa.Table, key: Path) -> Any:
    with StreamSession.open(place, person_key=key) as session:
        return session.ingest(cut_batches([table], 25))


def expected(table: pa.Table) -> int:
    return int(np.minimum(np.unique(table.column("who").to_pylist(), return_counts=True)[1], MOST).sum())


@examples(12)
@given(seed=st.integers(0, 1_000), cut=st.integers(150, 399))
def test_no_more_rows_of_a_person_are_taken_in_whatever_is_replayed(
    tmp_path_factory: pytest.TempPathFactory, seed: int, cut: int
) -> None:
    folder = tmp_path_factory.mktemp("persons")
    secret = folder / "key"
    secret.write_bytes(bytes(32))
    secret.chmod(0o600)
    table = visits(seed=seed)
    state = begun(folder / "s.db", table, secret)
    taken(state, table.slice(0, cut), secret)
    taken(state, table, secret)
    taken(state, table, secret)
    status = look(state)
    assert status.records + status.pending == expected(table)
    assert status.quarantined == status.rows - expected(table)
    assert status.quarantine.get("who", 0) == status.quarantined
    assert status.k == K


def test_the_state_holds_no_value_of_the_person_column(tmp_path: Path, key: Path) -> None:
    table = visits()
    table = table.set_column(0, "who", pa.array([f"marker-{name}" for name in table.column("who").to_pylist()]))
    state = begun(tmp_path / "s.db", table, key)
    taken(state, table, key)
    assert b"marker-" not in state.read_bytes()
    with sqlite3.connect(state) as connection:
        names = [row[0] for row in connection.execute("select key from sfumato_stream where kind = 'person'")]
    assert len(names) == len(set(table.column("who").to_pylist()))
    assert all(len(name) == 32 for name in names)


def test_the_certificate_speaks_of_persons_and_a_reviewer_accepts_it(tmp_path: Path, key: Path) -> None:
    table = visits()
    state = begun(tmp_path / "s.db", table, key)
    taken(state, table, key)
    release = sf.stream(state).publish(tmp_path / "out", report=False)
    facts = {type(fact): fact for fact in release.certificate.facts}
    assert facts[PersonRowsBounded] == PersonRowsBounded(MOST)
    kept = facts[Maintained]
    assert isinstance(kept, Maintained)
    assert kept.k == K * MOST
    assert kept.smallest >= K * MOST
    texts = [claim.claim for claim in release.certificate.claims]
    assert any(f"as many different persons as its privacy level ({K} or more)" in text for text in texts)
    failed = [check for check in verify_release(tmp_path / "out" / "release") if not check.holds]
    assert [check.name for check in failed] == ["made for release"]  # a dry run
    assert "who" not in release.table.column_names
    sf.stream(tmp_path / "again.db", table, recipe=tmp_path / "out" / "owner" / "recipe.toml", person_key=key)
    assert look(tmp_path / "again.db").k == K


def test_what_could_not_be_counted_is_refused(tmp_path: Path, key: Path) -> None:
    table, other = visits(), tmp_path / "other.key"
    other.write_bytes(bytes(32))
    other.chmod(0o600)
    with pytest.raises(PrivacyRefusal, match="counted under a key"):
        begun(tmp_path / "s.db", table, key, person_key=None, person_rows=1)
    with pytest.raises(OptionError, match="add person="):
        begun(tmp_path / "s.db", table, key, person=None, identifiers=["who"])
    with pytest.raises(OptionError, match="drop measure_rows= or person="):
        begun(tmp_path / "s.db", table, key, measure_rows=10, measure_key=key)
    state = begun(tmp_path / "s.db", table, key)
    with pytest.raises(OptionError, match="give it with person_key="):
        taken(state, table, None)  # type: ignore[arg-type]
    with pytest.raises(StateError, match="not the one that the persons"):
        taken(state, table, other)
    sf.stream(tmp_path / "plain.db", table, identifiers=["who"], k=K, seed=1)
    with pytest.raises(OptionError, match="drop person_key="):
        taken(tmp_path / "plain.db", table, key)


def test_a_row_that_does_not_say_whom_it_is_about_is_kept_out(tmp_path: Path, key: Path) -> None:
    table = visits(200, 200)
    state = begun(tmp_path / "s.db", table, key)
    later = table.slice(150).set_column(0, "who", pa.array([None] * 50, pa.string()))
    assert taken(state, later, key).quarantined == 50
