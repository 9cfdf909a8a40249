"""Streams in cells, as a cluster keeps them: nobody lost or counted twice, and each batch published once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.errors import OptionError, PrivacyRefusal
from sfumato.methods.condense.maintainer import Maintainer
from sfumato.options import PublishOptions
from sfumato.publish.verify import verify_release
from sfumato.stream.cellwise import (
    StreamCells,
    StreamUpdate,
    _from_bytes,
    cells_of_groups,
    first_totals,
    following,
    in_one_order,
    take_in,
)
from sfumato.stream.pending import Vault
from sfumato.stream.publish import last_batch, write_batch
from sfumato.stream.session import StreamSession
from sfumato.stream.settings import ClusterHandover, StateError
from sfumato.stream.spark import _Encode, changes_of
from sfumato.tables.files import FileForm, FileFormat
from tests.stream.cases import begin, people

FORM = FileForm(FileFormat.CSV)


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "key"
    path.write_bytes(bytes(range(32)))
    path.chmod(0o600)
    return path


class Cluster:
    """A stream in cells of which every step is made here."""

    def __init__(self, state: Path, most: int, pending_key: Path | None = None) -> None:
        with StreamSession.open(state, write=False) as session:
            settings = session.settings
            self.cells: StreamCells = cells_of_groups(session, most)
            self.first = StreamUpdate(settings, session.codec, session.tails, first_totals(session))
        self.vault = None if pending_key is None else Vault.from_file(pending_key, settings.state_id)
        self.bodies: dict[int, bytes] = {}

    def take(self, table: pa.Table) -> pa.Table:
        """What workers tell of a batch; cells are on disk then."""
        rows = pa.Table.from_batches(list(_Encode(self.cells, None)(iter(table.to_batches()))))
        told = rows.filter(pa.compute.equal(rows.column("cell"), -1)).select(["cell", "body"])
        parts = [told]
        for cell in sorted(set(rows.column("cell").to_pylist()) - {-1}):
            mine = rows.filter(pa.compute.equal(rows.column("cell"), cell)).column("body").to_pylist()
            records = np.frombuffer(b"".join(in_one_order(mine, self.cells.settings)), "<f8").reshape(len(mine), -1)
            values, levels = records[:, 1:].copy(), records[:, 0].astype(np.int64)
            body = self.bodies.get(cell)
            self.bodies[cell], change = take_in(body, self.cells, cell, values, levels, self.vault)
            parts.append(pa.table({"cell": [cell], "body": [change]}, schema=told.schema))
        return pa.concat_tables(parts)

    def publish(self, folder: Path, told: pa.Table, batch: int, query: str = "q") -> None:
        changes, out = changes_of(told, self.cells)
        publishing = PublishOptions(report=False, form=FORM)
        write_batch(folder, self.first, changes, out, batch=batch, query=query, publishing=publishing)


@pytest.mark.parametrize("most", [1, 4])
def test_nobody_is_lost_and_each_batch_leaves_a_folder_that_verifies(tmp_path: Path, key: Path, most: int) -> None:
    table = people(900)
    begin(tmp_path / "state", table, 200, pending="encrypted", pending_key=key, split="strict", grouping="compact")
    cluster = Cluster(tmp_path / "state", most, key)
    assert len(cluster.cells.first) <= most
    for batch in range(7):
        cluster.publish(tmp_path / "out", cluster.take(table.slice(200 + 100 * batch, 100)), batch)
        totals = last_batch(tmp_path / "out", cluster.first).totals
        assert totals.records + totals.pending + totals.quarantined == 300 + 100 * batch == totals.rows
        checks = verify_release(tmp_path / "out" / f"batch-{batch:08d}" / "release")
        assert [check.name for check in checks if not check.holds] == ["made for release"]
    assert len(totals.ledger) == 7
    assert totals.splits > 0


def test_one_cell_has_the_groups_of_the_stream_that_is_not_cut(tmp_path: Path) -> None:
    table = people(600, share=0.0)
    begin(tmp_path / "state", table, 200, level=5, k=5)
    cluster = Cluster(tmp_path / "state", 1)
    rng = np.random.default_rng(5)
    with StreamSession.open(tmp_path / "state", write=False) as session:
        alone = Maintainer.from_state(session.maintainer.state())
    body, levels = cluster.cells.first[0], np.full(60, 5)
    for _ in range(5):
        values = rng.normal(size=(60, cluster.cells.settings.d))
        alone.absorb(values, levels)
        marks = alone.publish_marks()
        alone.mark_published(marks.family[marks.due])
        body, _ = take_in(body, cluster.cells, 0, values, levels, None)
    here = _from_bytes(body, cluster.cells, 0, None).rows()
    for name, numbers in vars(alone.rows()).items():
        np.testing.assert_array_equal(getattr(here, name), numbers)


def test_a_batch_that_is_taken_in_again_is_the_same_and_is_not_published_again(tmp_path: Path, key: Path) -> None:
    table = people(500)
    begin(tmp_path / "state", table, 200, pending="encrypted", pending_key=key)
    runs = [Cluster(tmp_path / "state", 3, key) for _ in range(2)]
    told = [cluster.take(table.slice(200, 150)) for cluster in runs]
    again = runs[1].take
    runs[1].bodies.clear()
    shuffled = table.slice(200, 150).take(pa.array(np.random.default_rng(0).permutation(150)))
    assert sorted(again(shuffled).to_pylist(), key=str) == sorted(told[0].to_pylist(), key=str)
    runs[0].publish(tmp_path / "out", told[0], 0)
    place = tmp_path / "out" / "batch-00000000" / "release" / "table.csv"
    before = place.stat().st_mtime_ns, place.read_bytes()
    runs[0].publish(tmp_path / "out", told[0], 0)
    assert (place.stat().st_mtime_ns, place.read_bytes()) == before
    with pytest.raises(OptionError, match="batches of another checkpoint"):
        runs[0].publish(tmp_path / "out", told[0], 1, query="another")
    with pytest.raises(OptionError, match="batches of another checkpoint"):
        runs[0].publish(tmp_path / "out", told[0], 0, query="another")


def test_families_that_are_not_due_repeat_their_rows(tmp_path: Path) -> None:
    table = people(600, share=0.0)
    begin(tmp_path / "state", table, 300, level=5, k=5, rare="keep")
    cluster = Cluster(tmp_path / "state", 4)
    told = cluster.take(table.slice(300, 60))
    first = following(cluster.first, *changes_of(told, cluster.cells), batch=0, query="q")
    few = following(first, *changes_of(cluster.take(table.slice(360, 2)), cluster.cells), batch=1, query="q")
    assert first.publication is not None
    assert not few.renewed
    assert few.publication is first.publication
    many = following(few, *changes_of(cluster.take(table.slice(362, 238)), cluster.cells), batch=2, query="q")
    assert many.publication is not None
    assert many.renewed
    kept = np.isin(many.publication.family, first.publication.family)
    line = many.totals.ledger[-1]
    assert 0 < line.repeated < len(first.publication.family)
    assert kept[: line.repeated].all()
    same = first.publication.of_families(many.publication.family[: line.repeated])
    assert many.publication.table.slice(0, same.table.num_rows).equals(same.table)


def test_a_batch_whose_rows_are_all_kept_out_is_counted_and_releases_nothing(tmp_path: Path) -> None:
    table = people(300, share=0.0)
    begin(tmp_path / "state", table, 200, level=5, k=5)
    cluster = Cluster(tmp_path / "state", 4)
    impossible = pa.array(np.full(table.num_rows, 999))
    told = cluster.take(table.set_column(2, "age", impossible).slice(200, 60))
    cluster.publish(tmp_path / "out", told, 0)
    totals = last_batch(tmp_path / "out", cluster.first).totals
    assert (totals.rows, totals.quarantined, totals.records) == (260, 60, 200)
    assert not (tmp_path / "out" / "batch-00000000" / "release").exists()
    cluster.publish(tmp_path / "out", cluster.take(table.slice(260, 40)), 1)
    assert last_batch(tmp_path / "out", cluster.first).totals.records == 240
    assert (tmp_path / "out" / "batch-00000001" / "release" / "table.csv").exists()


def test_waiting_records_lie_in_a_cell_encrypted_and_without_a_key_none_may_wait(tmp_path: Path, key: Path) -> None:
    table = people(300, high=250)
    begin(tmp_path / "state", table, 200, pending="encrypted", pending_key=key, level=3)
    cluster = Cluster(tmp_path / "state", 1, key)
    values = np.random.default_rng(0).normal(size=(4, cluster.cells.settings.d))
    body, _ = take_in(None, cluster.cells, 0, values, np.full(4, 250), cluster.vault)
    assert values[0].tobytes() not in body
    with pytest.raises(StateError, match="give the key"):
        take_in(body, cluster.cells, 0, values[:0], np.empty(0, dtype=np.int64), None)
    with pytest.raises(PrivacyRefusal, match="more than 0 records would wait"):
        take_in(None, cluster.cells, 0, values, np.full(4, 250), None)


def test_a_stream_that_a_cluster_goes_on_with_takes_in_and_publishes_nothing_here(tmp_path: Path) -> None:
    table = people(300)
    begin(tmp_path / "state", table, 200)
    with StreamSession.open(tmp_path / "state") as session:
        session.hand_over(ClusterHandover(4, "mark"))
    stream = sf.stream(tmp_path / "state")
    for step in (lambda: stream.ingest(table), lambda: stream.publish(tmp_path / "out", report=False)):
        with pytest.raises(OptionError, match="a cluster continues this stream"):
            step()


def test_what_a_cluster_cannot_go_on_with_is_refused_and_the_stream_stays_here(tmp_path: Path, key: Path) -> None:
    table = people(300)
    begin(tmp_path / "levels", table, 200)
    begin(tmp_path / "measured", table, 200, level=5, k=5, measure_rows=20, measure_key=key)
    begin(tmp_path / "target", table, 200, level=5, k=5, target="sex")
    for name, words in {"levels": "levels differ", "measured": "keeps no rows", "target": "rare class"}.items():
        with pytest.raises(OptionError, match=words):
            sf.stream(tmp_path / name).on_spark(None, tmp_path / "out", checkpoint=tmp_path / "checkpoint")
        with StreamSession.open(tmp_path / name, write=False) as session:
            assert session.over is None
