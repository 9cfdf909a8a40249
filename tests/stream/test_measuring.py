"""Rows kept to measure a stream by: bounded, counted once, encrypted, forgotten; and the attack on published epochs."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.errors import OptionError, PrivacyRefusal, SfumatoError
from sfumato.publish.verify import verify_release
from sfumato.stream import session as session_room
from sfumato.stream.entries import UNKNOWN, cut_batches, families_left
from sfumato.stream.epochs import renew
from sfumato.stream.facts import RowsKept
from sfumato.stream.measuring import OUTSIDE, SAMPLE, KeptRow
from sfumato.stream.publish import attack_epochs, attack_tables
from sfumato.stream.session import StreamSession
from sfumato.stream.settings import BatchReceipt, StateError
from sfumato.stream.state import State, StateStore
from tests.stream.cases import ROWS, begin, groups_of, look, people, take
from tests.stream.test_canary import everything, forms

TABLE = people(600, share=0.0)
"""Nobody in it has to wait."""


@pytest.fixture
def key(tmp_path: Path) -> Path:
    return key_in(tmp_path)


def key_in(folder: Path, name: str = "measure.key") -> Path:
    path = folder / name
    path.write_bytes(hashlib.sha256(name.encode()).digest())  # no chance: who is chosen follows from it
    path.chmod(0o600)
    return path


def kept(state: Path, key: Path) -> tuple[set[tuple[str, int]], set[tuple[str, int]]]:
    """Batch and row of those sampled and of those outside."""
    with StreamSession.open(state, write=False, measure_key=key) as session:
        return tuple(  # type: ignore[return-value]
            {(row.batch, row.row) for row in (session.kept._read(kind, rank) for rank in session.kept._ranks[kind])}
            for kind in (SAMPLE, OUTSIDE)
        )


def total_of_groups(state: Path) -> np.ndarray:
    with StreamSession.open(state, write=False) as session:
        groups = session.maintainer.groups
    return np.asarray((groups.count[:, None] * groups.mean).sum(axis=0))


def values_of(state: Path, table: pa.Table) -> np.ndarray:
    with StreamSession.open(state, write=False) as session:
        return session._encode(table)[0]


@pytest.mark.parametrize("most", [5, 30, 1_000])
def test_what_is_kept_is_bounded_and_those_outside_are_in_no_group(tmp_path: Path, key: Path, most: int) -> None:
    begin(tmp_path / "s.db", TABLE, measure_rows=most, measure_key=key, tails="keep")  # groups add up what came
    first = look(tmp_path / "s.db")
    assert first.records + first.outside == first.rows == 100
    done = take(tmp_path / "s.db", TABLE, measure_key=key)
    assert done.absorbed + done.pending + done.quarantined + done.outside == done.rows == 500
    status = look(tmp_path / "s.db")
    assert status.records + status.pending + status.quarantined + status.outside == status.rows == 600
    assert status.rows_kept == min(most, status.records)
    assert status.outside == most if most < 40 else 30 <= status.outside <= 100  # about a tenth of 600
    sampled, outside = kept(tmp_path / "s.db", key)
    assert (len(sampled), len(outside)) == (status.rows_kept, status.outside)
    assert not sampled & outside
    with StreamSession.open(tmp_path / "s.db", write=False, measure_key=key) as session:
        aside = session.measured_by()
    assert aside is not None
    inside = values_of(tmp_path / "s.db", TABLE).sum(axis=0) - aside.outside.sum(axis=0)
    np.testing.assert_allclose(total_of_groups(tmp_path / "s.db"), inside, atol=1e-6)


def test_a_replay_adds_nothing_and_chooses_nobody_else(tmp_path: Path, key: Path) -> None:
    state = tmp_path / "s.db"
    begin(state, TABLE, measure_rows=20, measure_key=key)
    take(state, TABLE, measure_key=key)
    before, status = kept(state, key), look(state)
    take(state, TABLE, measure_key=key)
    assert kept(state, key) == before
    assert look(state) == status


def test_whoever_was_killed_between_two_batches_goes_on_as_if_nothing_had_been(tmp_path: Path, key: Path) -> None:
    """What is on disk at a moment is what a kill leaves then; here whenever a batch has been acknowledged."""
    home, left = tmp_path / "home", tmp_path / "left"
    home.mkdir()
    begin(home / "s.db", TABLE, measure_rows=20, measure_key=key)
    with StreamSession.open(home / "s.db", measure_key=key) as session:

        def copy(done: BatchReceipt) -> None:
            shutil.copytree(home, left / done.batch)

        session.ingest(cut_batches([TABLE], ROWS), tell=copy)
    for moment in sorted(left.iterdir(), key=lambda path: int(path.name.partition("-")[0]))[4:15:4]:
        take(moment / "s.db", TABLE, measure_key=key)
        assert kept(moment / "s.db", key) == kept(home / "s.db", key)
        assert groups_of(moment / "s.db") == groups_of(home / "s.db")


def test_a_batch_that_could_not_be_written_keeps_nobody(
    tmp_path: Path, key: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = tmp_path / "s.db"
    begin(state, TABLE, measure_rows=20, measure_key=key)
    take(state, TABLE.slice(0, 240), measure_key=key)
    before = kept(state, key)
    with monkeypatch.context() as patch:
        patch.setattr(StateStore, "commit", lambda *_: (_ for _ in ()).throw(SfumatoError("the disk is full")))
        with pytest.raises(SfumatoError, match="disk is full"):
            take(state, TABLE, measure_key=key)
    assert kept(state, key) == before
    take(state, TABLE, measure_key=key)
    status = look(state)
    assert status.records + status.outside == status.rows == 600


def test_a_batch_that_is_refused_in_the_middle_leaves_the_session_as_it_was(tmp_path: Path, key: Path) -> None:
    state = tmp_path / "s.db"
    begin(state, TABLE, pending_limit=2, measure_rows=20, measure_key=key)
    high = TABLE.slice(100, 80).set_column(5, "level", pa.array([3] * 60 + [500] * 20))
    with StreamSession.open(state, measure_key=key) as session:
        before = session.status()
        with pytest.raises(PrivacyRefusal, match="more than 2 records would wait"):
            session.ingest([("high", high)])
        assert session.status() == before
        session.ingest([("low", TABLE.slice(100, 80))])
    status = look(state)
    assert status.records + status.outside == status.rows == 180


def test_those_who_come_back_in_and_wait_are_found_again_by_a_replay(tmp_path: Path, key: Path) -> None:
    state, table = tmp_path / "s.db", people(600, share=0.3)
    begin(state, table, measure_rows=8, measure_key=key, measure_share=0.5)
    take(state, table, measure_key=key)
    status = look(state)
    assert status.records + status.pending + status.outside == 600
    assert status.awaiting_replay > 0
    with StreamSession.open(state, measure_key=key) as session:
        session.ingest(cut_batches([table], ROWS))
        assert session.status().awaiting_replay == 0
        assert session.status().pending == status.pending


def test_keeping_rows_changes_no_group_but_for_those_outside(tmp_path: Path, key: Path) -> None:
    begin(tmp_path / "with.db", TABLE, measure_rows=50, measure_key=key, measure_share=0.0)
    take(tmp_path / "with.db", TABLE, measure_key=key)
    begin(tmp_path / "without.db", TABLE)
    take(tmp_path / "without.db", TABLE)
    assert groups_of(tmp_path / "with.db") == groups_of(tmp_path / "without.db")


def test_as_many_of_a_whole_sample_are_behind_the_release_as_it_has_rows(tmp_path: Path, key: Path) -> None:
    state, table = tmp_path / "s.db", people(900, share=0.0)
    begin(state, table, measure_rows=1_000, measure_key=key, split="strict")
    for epoch in (1, 2, 3):
        take(state, table.slice(0, 100 + 250 * epoch), measure_key=key)
        with StreamSession.open(state, measure_key=key) as session:
            publication, _ = session.publish()
            session.delivered()
            sampled = session.measured_by()
            rows = [session.kept._read(SAMPLE, rank) for rank in session.kept._ranks[SAMPLE]]
        assert sampled is not None
        assert sampled.behind.sum() < len(rows) or epoch == 1  # some wait until their family may leave
        unknown = sum(row.family == UNKNOWN for row in rows)
        assert unknown <= len(rows) // 20
        assert publication.table.num_rows - unknown <= sampled.behind.sum() <= publication.table.num_rows
        assert (sampled.after < epoch).all()
        assert len(sampled.between(epoch - 1, epoch)) > 0


def test_nothing_kept_can_be_read_without_the_key(tmp_path: Path, key: Path) -> None:
    home, mark = tmp_path / "home", 31.415926535897
    home.mkdir()
    table = TABLE.set_column(1, "pay", pa.array([mark, *TABLE.column("pay").to_pylist()[1:]]))
    begin(home / "s.db", table, seed=None, measure_rows=1_000, measure_key=key)
    with StreamSession.open(home / "s.db", measure_key=key) as session:
        session.ingest(cut_batches([table.slice(0, 200)], ROWS))
        pay = session.codec.columns[0]
        place = (mark - pay.mean) / pay.scale
        found = session.measured_by()
        assert found is not None
        assert np.isclose(np.concatenate([found.values, found.outside])[:, 0], place).any()
        written = everything(home)
    written += everything(home)
    looked_for = [form for number in (mark, place) for form in forms(number) if len(form) >= 8]  # not by chance
    assert not [form for form in looked_for if form in written]
    with pytest.raises(StateError, match="the key is not the one that the rows kept for measuring were encrypted with"):
        StreamSession.open(home / "s.db", measure_key=key_in(tmp_path, "other.key"))


def test_the_two_keys_go_with_their_own_use_even_where_they_are_one_file(tmp_path: Path, key: Path) -> None:
    state = tmp_path / "s.db"
    begin(state, TABLE, measure_rows=9, measure_key=key, pending="encrypted", pending_key=key)
    with StreamSession.open(state, write=False, measure_key=key, pending_key=key) as session:
        (lock, check) = (session.settings.pending_key, session.settings.measure_key)
        assert session.kept.vault is not None
        with pytest.raises(StateError):
            session.kept.vault.unlock("-1", bytes.fromhex(str(lock)))
    assert lock != check


def test_rows_are_kept_with_a_key_or_not_at_all(tmp_path: Path, key: Path) -> None:
    state = tmp_path / "s.db"
    for told in ({"measure_rows": 9}, {"measure_key": key}):
        with pytest.raises(OptionError, match="give measure_rows= with measure_key=, or none"):
            begin(state, TABLE, **told)
    begin(state, TABLE, measure_rows=9, measure_key=key)
    with pytest.raises(OptionError, match="give their key with measure_key="):
        take(state, TABLE)
    begin(tmp_path / "none.db", TABLE)
    with pytest.raises(OptionError, match="keeps no rows for measuring; drop measure_key="):
        take(tmp_path / "none.db", TABLE, measure_key=key)
    with pytest.raises(OptionError, match="nothing to forget"):
        sf.stream(tmp_path / "none.db").forget()


def test_what_is_forgotten_is_gone_and_the_stream_goes_on(tmp_path: Path, key: Path) -> None:
    state = tmp_path / "s.db"
    begin(state, TABLE, measure_rows=20, measure_key=key)
    take(state, TABLE.slice(0, 300), measure_key=key)
    before = look(state)
    book = State.open(state, write=False)
    closed = [book.body(kind, rank) for kind in (SAMPLE, OUTSIDE) for rank in book.keys(kind)]
    book.close()
    assert len(closed) == 40
    assert all(body in state.read_bytes() for body in closed)
    status = sf.stream(state).forget()
    assert (status.rows_kept, status.outside, status.rows_forgotten) == (0, before.outside, True)
    assert not any(body in state.read_bytes() for body in closed)
    assert not Path(f"{state}-wal").exists()
    take(state, TABLE)  # needs no key any more
    after = look(state)
    assert after.records + after.pending + after.outside == after.rows == 600
    assert (after.rows_kept, after.outside) == (0, before.outside)
    with pytest.raises(OptionError, match="were forgotten in this state; drop measure_key="):
        StreamSession.open(state, measure_key=key)
    assert sf.stream(state).forget() == after
    certificate = sf.stream(state).publish(tmp_path / "out", report=False).certificate
    assert RowsKept(0, before.outside, True) in certificate.facts
    assert any("have been deleted from the data owner's state" in claim.claim for claim in certificate.claims)
    assert any(f"{before.outside} records were held out of the stream" in claim.claim for claim in certificate.claims)


@pytest.mark.parametrize("plain", [b"", b"\0" * 36, b"\0" * 44, b"\xff" * 60])
def test_a_kept_row_of_another_length_is_refused(plain: bytes) -> None:
    with pytest.raises(StateError):
        KeptRow.from_bytes(plain, 3)


def test_when_families_left_is_read_back_or_refused() -> None:
    assert families_left(b'{"3": 1, "7": 2}') == {3: 1, 7: 2}
    for body in (b"[]", b'{"x": 1}', b'{"1": null}', b"{"):
        with pytest.raises(StateError):
            families_left(body)


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory, undrawn: None) -> Path:
    """Two epochs of a stream that keeps rows, published with its key."""
    place, table = tmp_path_factory.mktemp("measured"), people(700, share=0.0).drop_columns(["name", "level"])
    key = key_in(place)
    sf.stream(place / "s.db", table.slice(0, 200), k=5, seed=1, measure_rows=150, measure_key=key)
    for epoch in (1, 2):
        with StreamSession.open(place / "s.db", measure_key=key) as session:
            session.ingest(cut_batches([table.slice(250 * epoch - 50, 250)], session.settings.batch_rows))
        sf.stream(place / "s.db").publish(place / f"epoch-{epoch}", measure_key=key, report=epoch == 2)
    return place


def finding(folder: Path, name: str) -> dict[str, Any]:
    report = json.loads((folder / "owner" / "report.json").read_text("utf-8"))
    return next(each for each in report["findings"] if each["name"] == name)


@pytest.mark.slow
def test_with_the_key_an_epoch_is_measured_in_full_on_the_sample(published: Path) -> None:
    last = published / "epoch-2"
    for name in ("linkage-euclid", "membership-auc-distance", "marginal-distance", "closest-record-distance"):
        assert finding(last, name)["value"] is not None, name
    assert finding(last, "membership-auc-distance")["control"] is not None or finding(last, "linkage-euclid")["control"]
    assert finding(last, "differencing-recovery")["value"] == 0.0
    assert finding(last, "differencing-recovery")["attempts"] > 20
    assert 0.0 < finding(last, "epoch-rows-repeated")["value"] < 1.0
    report = json.loads((last / "owner" / "report.json").read_text("utf-8"))
    assert any("Measured on a sample" in note for note in report["notes"])
    broken = [check.name for check in verify_release(last / "release") if not check.holds]
    assert broken == ["made for release"]
    facts = json.loads((last / "release" / "certificate.json").read_text("utf-8"))["facts"]
    status = look(published / "s.db")
    told = {"fact": "rows-kept", "rows": status.rows_kept, "outside": status.outside, "forgotten": False}
    assert told in facts


def test_the_attack_on_published_epochs_gains_nothing(published: Path) -> None:
    releases = [published / f"epoch-{epoch}" / "release" for epoch in (1, 2)]
    found = attack_epochs(published / "s.db", releases, measure_key=published / "measure.key")
    (pair,) = found.pairs
    assert (pair.first, pair.last) == (1, 2)
    assert 0 < pair.changed < pair.rows
    assert pair.fresh is not None
    assert pair.fresh >= 5
    assert pair.arrived > 20
    assert next(each for each in found.findings if each.name == "differencing-recovery").value == 0.0
    without = attack_epochs(published / "s.db", releases)
    assert [dataclasses.replace(each, arrived=pair.arrived) for each in without.pairs] == [pair]
    assert (without.succeeds, without.findings[0].value) == (None, None)
    assert "--measure-key" in str(without.findings[0].reason)


def test_only_epochs_of_this_stream_in_their_order_are_attacked(published: Path, tmp_path: Path) -> None:
    first, second = (published / f"epoch-{epoch}" / "release" for epoch in (1, 2))
    with pytest.raises(OptionError, match="two epochs or more"):
        attack_epochs(published / "s.db", [first])
    with pytest.raises(OptionError, match="epoch 1 comes after epoch 2"):
        attack_epochs(published / "s.db", [second, first])
    begin(tmp_path / "s.db", TABLE, seed=None)
    sf.stream(tmp_path / "s.db").publish(tmp_path / "other", report=False)
    with pytest.raises(OptionError, match="is not an epoch of this stream"):
        attack_epochs(published / "s.db", [tmp_path / "other" / "release", second])
    shutil.copytree(second, tmp_path / "altered")
    with (tmp_path / "altered" / "table.csv").open("a") as file:
        file.write("1,2\n")
    with pytest.raises(OptionError, match="does not verify"):
        attack_epochs(published / "s.db", [first, tmp_path / "altered"])


@pytest.mark.parametrize("gated", [True, False])
def test_the_attack_tells_categories_where_every_arrival_is_published(
    tmp_path: Path, key: Path, monkeypatch: pytest.MonkeyPatch, gated: bool
) -> None:
    monkeypatch.setattr(session_room, "renew", partial(renew, gated=gated))
    begin(tmp_path / "s.db", TABLE, measure_rows=1_000, measure_key=key, measure_share=0.0)
    tables = {}
    with StreamSession.open(tmp_path / "s.db", measure_key=key) as session:
        for epoch in range(1, 31):
            tables[epoch] = session.publish()[0].table
            session.delivered()
            session.ingest([(f"one {epoch}", TABLE.slice(100 + epoch, 1))])
        found = attack_tables(session, tables)
    told = {each.name: each for each in found.findings}
    assert told["differencing-recovery/sex"].attempts == 29
    assert found.succeeds is not gated
    if not gated:
        assert told["differencing-recovery/sex"].value == 1.0
        assert "The attack succeeds" in found.words()
