"""Every row counts exactly once, whatever is replayed, restarted or grown; rows out of the domain are counted apart."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.errors import BadInput, LevelError, OptionError, PrivacyRefusal
from sfumato.stream.entries import cut_batches
from sfumato.stream.session import StreamSession
from sfumato.stream.settings import StateError
from sfumato.tables.field import Domain, Field, Kind, Role
from sfumato.tables.schema import Schema
from tests.examples import examples
from tests.stream.cases import ROWS, SCHEMA, begin, groups_of, look, people, take

TABLE = people(600)


def uninterrupted(place: Path, table: pa.Table = TABLE, **options: Any) -> Path:
    begin(place, table, **options)
    key = {"pending_key": options["pending_key"]} if "pending_key" in options else {}
    take(place, table, **key)
    return place


def set_cells(table: pa.Table, column: str, cells: dict[int, object]) -> pa.Table:
    held = table.column(column).to_pylist()
    for row, cell in cells.items():
        held[row] = cell
    place = table.column_names.index(column)
    return table.set_column(place, column, pa.array(held, table.column(column).type))


def test_records_pending_and_quarantined_add_up_to_all_rows(tmp_path: Path) -> None:
    table = set_cells(TABLE, "age", dict.fromkeys(range(200, 230), 150))
    status = look(uninterrupted(tmp_path / "s.db", table))
    assert status.records + status.pending + status.quarantined == status.rows == 600
    assert status.quarantined == 30
    assert status.pending > 0


def test_the_first_records_given_again_are_known(tmp_path: Path) -> None:
    begin(tmp_path / "s.db", TABLE)
    before = groups_of(tmp_path / "s.db")
    done = take(tmp_path / "s.db", TABLE.slice(0, 100))
    assert (done.rows, done.repeated) == (0, 100)
    assert groups_of(tmp_path / "s.db") == before


def test_replays_change_nothing(tmp_path: Path) -> None:
    state = uninterrupted(tmp_path / "s.db")
    before, status = groups_of(state), look(state)
    for _ in range(2):
        done = take(state, TABLE)
        assert (done.batches, done.rows, done.repeated) == (0, 0, 600)
    assert groups_of(state) == before
    assert look(state).digest == status.digest


@pytest.mark.parametrize("pending", ["memory", "encrypted"])
def test_a_stream_in_many_sessions_is_one_in_a_single_session_bit_for_bit(tmp_path: Path, pending: str) -> None:
    key = tmp_path / "key"
    key.write_bytes(os.urandom(32))
    key.chmod(0o600)
    told: dict[str, Any] = {"pending": pending, "pending_key": key} if pending == "encrypted" else {}
    opened = {"pending_key": key} if told else {}
    whole = uninterrupted(tmp_path / "whole.db", **told)
    begin(tmp_path / "s.db", TABLE, **told)
    for end in (140, 141, 250, 600):  # the source grows, also in the middle of a batch
        take(tmp_path / "s.db", TABLE.slice(0, end), **opened)
    one, other = look(whole), look(tmp_path / "s.db")
    assert groups_of(whole, **opened) == groups_of(tmp_path / "s.db", **opened)
    assert (one.records, one.pending, one.splits) == (other.records, other.pending, other.splits)
    assert one.pending > 0


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return uninterrupted(tmp_path_factory.mktemp("whole") / "s.db")


@examples(8, few=2)
@given(ends=st.lists(st.integers(100, 600), max_size=5))
def test_no_way_of_cutting_a_growing_stream_into_runs_changes_a_bit(
    tmp_path_factory: pytest.TempPathFactory, whole: Path, ends: list[int]
) -> None:
    state = tmp_path_factory.mktemp("cut") / "s.db"
    begin(state, TABLE)
    for end in sorted(ends):
        take(state, TABLE.slice(0, end))
    take(state, TABLE)
    assert groups_of(state) == groups_of(whole)


def test_waiting_records_in_memory_come_back_with_their_batch_and_are_exactly_those(tmp_path: Path) -> None:
    state = uninterrupted(tmp_path / "s.db")
    status = look(state)
    assert status.pending == status.awaiting_replay > 0
    with StreamSession.open(state) as session:
        assert session.maintainer.pending == 0
        session.ingest(cut_batches([TABLE.slice(0, 320)], ROWS))
        some = session.status()
        assert 0 < some.awaiting_replay < some.pending == status.pending
        session.ingest(cut_batches([TABLE], ROWS))
        assert session.status().awaiting_replay == 0
        held = session.maintainer.state().pending_values
    with StreamSession.open(uninterrupted(tmp_path / "whole.db"), write=False) as fresh:
        fresh.ingest(cut_batches([TABLE], ROWS))
        expected = fresh.maintainer.state().pending_values
    np.testing.assert_array_equal(held, expected)


def test_records_that_wait_while_others_join_are_not_lost_when_they_come_late(tmp_path: Path) -> None:
    state = uninterrupted(tmp_path / "s.db")
    take(state, people(400, seed=5, share=0.0))  # without a replay first
    assert look(state).awaiting_replay == look(state).pending > 0
    take(state, TABLE)
    status = look(state)
    assert status.records + status.pending == 1_000
    take(state, TABLE)
    assert look(state).records == status.records


def test_waiting_records_join_when_a_group_has_grown(tmp_path: Path) -> None:
    table = people(900, high=12, share=0.1)
    state = uninterrupted(tmp_path / "s.db", table, split="strict")
    status = look(state)
    assert status.records + status.pending == 900
    with StreamSession.open(state, write=False) as session:
        rows = session.maintainer.rows()
    assert (rows.count >= rows.level_max).all()


def test_a_stream_that_was_told_nothing_keeps_every_level_in_every_group(tmp_path: Path) -> None:
    table = people(900, high=12, share=0.1)
    sf.stream(tmp_path / "usual.db", table.slice(0, 100), schema=SCHEMA, k=3, batch_rows=ROWS, seed=1)
    begin(tmp_path / "paper.db", table)
    for name in ("usual.db", "paper.db"):
        take(tmp_path / name, table)
    with StreamSession.open(tmp_path / "usual.db", write=False) as session:
        assert (session.settings.grouping, session.settings.split) == ("compact", "strict")
        rows = session.maintainer.rows()
        assert session.maintainer.splits > 0
    assert (rows.count >= rows.level_max).all()
    with StreamSession.open(tmp_path / "paper.db", write=False) as session:
        assert session.maintainer.violations > 0  # which is why it must be named


def test_a_pool_that_is_full_refuses_the_batch_and_keeps_those_before(tmp_path: Path) -> None:
    begin(tmp_path / "s.db", TABLE, pending_limit=3)
    with pytest.raises(PrivacyRefusal, match="more than 3 records would wait"):
        take(tmp_path / "s.db", TABLE)
    status = look(tmp_path / "s.db")
    assert 100 <= status.records + status.pending == status.rows < 600


def test_records_that_wait_for_a_replay_keep_their_room_in_the_pool(tmp_path: Path) -> None:
    begin(tmp_path / "s.db", TABLE, pending_limit=6)
    high = pa.table(TABLE.slice(100, 12)).set_column(5, "level", pa.array([500] * 12))
    early, late = high.slice(0, 4), high.slice(4, 4)
    assert take(tmp_path / "s.db", early).pending == 4
    before = look(tmp_path / "s.db")
    with pytest.raises(PrivacyRefusal, match="more than 6 records would wait"):
        take(tmp_path / "s.db", late)
    assert look(tmp_path / "s.db") == before
    low = TABLE.slice(112, 30).set_column(5, "level", pa.array([3] * 30))
    with StreamSession.open(tmp_path / "s.db") as session:
        with pytest.raises(PrivacyRefusal):
            session.ingest([("late", late)])
        assert session.ingest([("low", low), *cut_batches([early], ROWS)]).absorbed == 30  # the session goes on
    status = look(tmp_path / "s.db")
    assert (status.records, status.pending) == (130, 4)


@pytest.mark.parametrize("far", [1e30, -1e200, 1.7e308])
def test_a_number_beside_which_all_others_would_vanish_is_kept_out(tmp_path: Path, far: float) -> None:
    begin(tmp_path / "s.db", TABLE, schema=None, level="level", identifiers=["name"])
    table = TABLE.slice(100, 20)
    pay = [far, *table.column("pay").to_pylist()[1:]]
    done = take(tmp_path / "s.db", table.set_column(1, "pay", pa.array(pay)))
    assert (done.quarantined, look(tmp_path / "s.db").quarantine) == (1, {"pay": 1})


def test_a_level_outside_its_declared_bounds_is_kept_out(tmp_path: Path) -> None:
    bound = Field("level", Kind.INTEGER, Role.LEVEL, domain=Domain(declared=True, low=3, high=60))
    begin(tmp_path / "s.db", TABLE, schema=Schema((*tuple(SCHEMA)[:-1], bound)))
    table = TABLE.slice(100, 20).set_column(5, "level", pa.array([61, 2, *[3] * 18]))
    done = take(tmp_path / "s.db", table)
    assert (done.absorbed, done.pending, done.quarantined) == (18, 0, 2)


def test_cells_outside_the_domain_are_counted_by_column_and_nothing_of_them_is_kept(tmp_path: Path) -> None:
    table = set_cells(TABLE, "age", {150: 121, 151: -1, 152: None})
    table = set_cells(table, "sex", {152: "x", 153: ""})
    table = set_cells(table, "pay", {160: float("nan"), 161: float("inf"), 162: -0.5})
    table = set_cells(table, "note", {170: None})  # the schema says that cells may be missing here
    table = set_cells(table, "level", {180: 1, 181: None, 182: 0})
    status = look(uninterrupted(tmp_path / "s.db", table))
    assert status.quarantine == {"age": 3, "level": 3, "pay": 3, "sex": 2}
    assert status.quarantined == 10
    clean = table.filter(
        pa.array([row not in {*range(150, 154), *range(160, 163), *range(180, 183)} for row in range(600)])
    )
    other = look(uninterrupted(tmp_path / "clean.db", clean))
    assert (status.records, status.groups) == (other.records, other.groups)


def test_bounds_that_were_only_seen_bind_nothing(tmp_path: Path) -> None:
    table = TABLE.drop_columns(["note"])
    young = table.filter(pa.array(TABLE.column("age").to_numpy() < 60))
    begin(tmp_path / "s.db", young, schema=None, level="level", identifiers=["name"])
    take(tmp_path / "s.db", table)
    assert look(tmp_path / "s.db").quarantined == 0


def test_levels_come_from_rules_and_numbers_too(tmp_path: Path) -> None:
    table = TABLE.drop_columns(["level"])
    schema = type(SCHEMA)(SCHEMA.fields[:-1])
    begin(tmp_path / "r.db", table, schema=schema, level="age > 80: 9, sex == f: 5, else: 4")
    with StreamSession.open(tmp_path / "r.db") as session:
        session.ingest(cut_batches([table], 7))  # fewer rows than the highest level
        top = session.maintainer.groups.level_max
    assert set(top.tolist()) <= {4, 5, 9}
    assert top.max() == 9
    begin(tmp_path / "n.db", table, schema=schema, level=6)
    take(tmp_path / "n.db", table)
    with StreamSession.open(tmp_path / "n.db", write=False) as session:
        assert set(session.maintainer.groups.level_max.tolist()) == {6}


def test_a_table_with_other_columns_is_refused_whole(tmp_path: Path) -> None:
    begin(tmp_path / "s.db", TABLE)
    before = groups_of(tmp_path / "s.db")
    with pytest.raises(BadInput, match="lacks 1 columns of the schema, the first is 'age'"):
        take(tmp_path / "s.db", TABLE.drop_columns(["age"]))
    with pytest.raises(BadInput, match="the schema does not know"):
        take(tmp_path / "s.db", TABLE.append_column("more", TABLE.column("age")))
    with pytest.raises(LevelError, match="privacy levels are not numbers"):
        take(tmp_path / "s.db", TABLE.drop_columns(["level"]).append_column("level", pa.array([True] * 600)))
    assert groups_of(tmp_path / "s.db") == before


def test_two_sources_with_the_same_rows_are_told_apart_by_name(tmp_path: Path) -> None:
    begin(tmp_path / "s.db", TABLE)
    with StreamSession.open(tmp_path / "s.db") as session:
        assert session.ingest(cut_batches([TABLE], ROWS)).rows == 500
        assert session.ingest(cut_batches([TABLE], ROWS, source="north")).rows == 600
        assert session.ingest(cut_batches([TABLE], ROWS, source="north")).rows == 0


def test_ids_of_any_form_make_replays_harmless(tmp_path: Path) -> None:
    begin(tmp_path / "s.db", TABLE)
    given = [(f"offset {number}", table) for number, (_, table) in enumerate(cut_batches([TABLE.slice(100)], ROWS))]
    with StreamSession.open(tmp_path / "s.db") as session:
        session.ingest(given[:5])
        assert session.ingest(given).repeated == 5 * ROWS
        with pytest.raises(StateError, match="a batch that had 40 rows has 39 now"):
            session.ingest([(given[0][0], given[0][1].slice(1))])
    assert look(tmp_path / "s.db").rows == 600


def test_a_key_is_asked_for_checked_and_refused_where_it_is_of_no_use(tmp_path: Path) -> None:
    key, other, short = (tmp_path / name for name in ("key", "other", "short"))
    for path, length in ((key, 32), (other, 64), (short, 8)):
        path.write_bytes(os.urandom(length))
        path.chmod(0o600)
    begin(tmp_path / "e.db", TABLE, pending="encrypted", pending_key=key)
    begin(tmp_path / "m.db", TABLE)
    with pytest.raises(OptionError, match="give the key"):
        take(tmp_path / "e.db", TABLE)
    with pytest.raises(StateError, match="not the one"):
        take(tmp_path / "e.db", TABLE, pending_key=other)
    with pytest.raises(OptionError, match="kept in memory only"):
        take(tmp_path / "m.db", TABLE, pending_key=key)
    with pytest.raises(OptionError, match="holds 8 bytes"):
        take(tmp_path / "e.db", TABLE, pending_key=short)
    key.chmod(0o644)
    with pytest.raises(OptionError, match="open to others"):
        take(tmp_path / "e.db", TABLE, pending_key=key)
    with pytest.raises(OptionError, match="cannot be read"):
        take(tmp_path / "e.db", TABLE, pending_key=tmp_path / "none")
    with pytest.raises(OptionError, match="give pending='encrypted' with a key"):
        begin(tmp_path / "n.db", TABLE, pending="encrypted")
    key.chmod(0o600)
    take(tmp_path / "e.db", TABLE, pending_key=key)
    assert look(tmp_path / "e.db").awaiting_replay == 0


def test_nothing_that_is_printed_of_a_session_holds_a_cell(tmp_path: Path) -> None:
    with StreamSession.open(uninterrupted(tmp_path / "s.db")) as session:
        assert repr(session).startswith("StreamSession(")
        assert "person" not in repr(session.status())
