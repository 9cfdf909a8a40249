"""Epochs: a family leaves only with enough fresh records behind it, all others repeat their rows to the cell."""

from __future__ import annotations

import json
import resource
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.errors import PrivacyRefusal, SfumatoError
from sfumato.core.facts import Shuffled, draw_claims
from sfumato.methods.condense.maintainer import Maintainer
from sfumato.publish.release import Release
from sfumato.publish.verify import verify_release
from sfumato.stream.entries import cut_batches
from sfumato.stream.epochs import Publication, renew
from sfumato.stream.facts import EpochPublished, Maintained
from sfumato.stream.session import StreamSession
from sfumato.tables.files import read_file
from sfumato.tables.frames import frame_of
from tests.stream.cases import ROWS, begin, look, people, take

TABLE = people(900)


def cells(table: pa.Table) -> Counter[tuple[object, ...]]:
    return Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))


def released(folder: Path) -> Counter[tuple[object, ...]]:
    return cells(read_file(folder / "release" / "table.csv")[0])


def by_family(publication: Publication) -> dict[int, pa.Table]:
    ends = np.cumsum(publication.count)
    return {
        int(family): publication.table.slice(int(end - count), int(count))
        for family, count, end in zip(publication.family, publication.count, ends, strict=True)
    }


def test_a_family_changes_only_when_enough_fresh_records_have_come(tmp_path: Path) -> None:
    state = tmp_path / "s.db"
    begin(state, TABLE, seed=None)
    before: dict[int, pa.Table] = {}
    renewed = 0
    for end in (100, 101, 120, 140, 200, 320, 500, 900):
        with StreamSession.open(state) as session:
            session.ingest(cut_batches([TABLE.slice(0, end)], ROWS))
            rows = session.maintainer.rows()
            now, ledger = session.publish()
            session.delivered()
        after = by_family(now)
        for family in np.unique(rows.family):
            own = rows.family == family
            needed = max(3, rows.level_max[own].max(), rows.fresh_level_max[own].max())
            if rows.fresh[own].sum() >= needed:
                assert all(
                    after[group].num_rows == count
                    for group, count in zip(rows.ids[own].tolist(), rows.count[own], strict=True)
                )
                renewed += bool(before)
            else:
                assert after[int(family)].equals(before[int(family)])
        assert ledger[-1].rows == sum(table.num_rows for table in after.values())
        assert ledger[-1].renewed == 0 or ledger[-1].fresh >= 3
        before = after
    assert renewed > 5


def last(release: Release) -> EpochPublished:
    return [fact for fact in release.certificate.facts if isinstance(fact, EpochPublished)][-1]


def test_with_nothing_new_every_row_is_repeated(tmp_path: Path) -> None:
    begin(tmp_path / "s.db", TABLE, seed=None)
    take(tmp_path / "s.db", TABLE)
    sf.stream(tmp_path / "s.db").publish(tmp_path / "one", report=False)
    again = sf.stream(tmp_path / "s.db").publish(tmp_path / "two", report=False)
    assert released(tmp_path / "one") == released(tmp_path / "two")
    assert (last(again).epoch, last(again).renewed, last(again).fresh) == (2, 0, 0)


def test_one_arrival_changes_nothing_that_is_published(tmp_path: Path) -> None:
    begin(tmp_path / "s.db", TABLE, seed=None)
    sf.stream(tmp_path / "s.db").publish(tmp_path / "one", report=False)
    take(tmp_path / "s.db", TABLE.slice(0, 101))
    assert look(tmp_path / "s.db").rows == 101
    second = sf.stream(tmp_path / "s.db").publish(tmp_path / "two", report=False)
    assert released(tmp_path / "one") == released(tmp_path / "two")
    one, two = (json.loads((tmp_path / name / "release" / "certificate.json").read_text()) for name in ("one", "two"))
    assert (one["rows_in"], one["rows_out"]) == (two["rows_in"], two["rows_out"]) == (100, 100)
    assert second.certificate.rows_in == 100


def test_without_epochs_every_family_leaves_every_time(tmp_path: Path) -> None:
    begin(tmp_path / "s.db", TABLE)
    with StreamSession.open(tmp_path / "s.db") as session:
        chance = np.random.default_rng(1)
        first, _ = renew(session.maintainer, None, session.codec, 1, chance, gated=False)
        session.ingest(cut_batches([TABLE.slice(0, 101)], ROWS))
        second, line = renew(session.maintainer, first, session.codec, 2, chance, gated=False)
    assert line.repeated == 0
    assert second.table.num_rows == first.table.num_rows + 1


def test_nothing_that_may_leave_is_refused(tmp_path: Path) -> None:
    begin(tmp_path / "s.db", TABLE)
    with StreamSession.open(tmp_path / "s.db") as session:
        codec = session.codec
        with pytest.raises(PrivacyRefusal, match=r"no family .*there are no groups"):
            renew(Maintainer(session.settings.d), None, codec, 1, np.random.default_rng(0))
        session.maintainer.mark_published(session.maintainer.publish_marks().family)
        with pytest.raises(PrivacyRefusal, match=r"the nearest lacks \d+"):
            renew(session.maintainer, None, codec, 1, np.random.default_rng(0))


def test_a_release_for_release_is_verified_and_states_its_epochs(tmp_path: Path) -> None:
    begin(tmp_path / "s.db", TABLE, seed=None)
    for number, end in enumerate((100, 900), 1):
        take(tmp_path / "s.db", TABLE.slice(0, end))
        sf.stream(tmp_path / "s.db").publish(tmp_path / f"out{number}", report=False)
    checks = verify_release(tmp_path / "out2" / "release")
    assert all(check.holds for check in checks), checks
    document = json.loads((tmp_path / "out2" / "release" / "certificate.json").read_text())
    ledger = [fact for fact in document["facts"] if fact["fact"] == "epoch-published"]
    assert [line["epoch"] for line in ledger] == [1, 2] == list(range(1, document["parameters"]["epoch"] + 1))
    assert ledger[-1]["rows"] == document["rows_out"]
    assert json.loads((tmp_path / "out2" / "owner" / "epochs.json").read_text())[1]["rows"] == document["rows_out"]
    assert (tmp_path / "out2" / "owner").stat().st_mode & 0o077 == 0
    assert {path.name for path in (tmp_path / "out2" / "release").iterdir()} == {
        "certificate.json", "certificate.sig", "schema.toml", "table.csv"}  # fmt: skip
    claims, refused = json.dumps(document["claims"]), json.dumps(document["refused"])
    assert "Anyone who contributed all of them but one" in refused
    assert "as many people as it has rows" in refused
    assert "people" not in claims


def test_a_dry_run_is_repeated_to_the_byte(tmp_path: Path) -> None:
    for name in ("a", "b"):
        begin(tmp_path / f"{name}.db", TABLE)
        take(tmp_path / f"{name}.db", TABLE)
        sf.stream(tmp_path / f"{name}.db").publish(tmp_path / name, report=False)
    one, two = ((tmp_path / name / "release" / "table.csv").read_bytes() for name in ("a", "b"))
    assert one == two
    assert look(tmp_path / "a.db").digest == look(tmp_path / "b.db").digest
    assert not all(check.holds for check in verify_release(tmp_path / "a" / "release"))


def test_an_epoch_whose_folder_could_not_be_written_is_written_by_the_next_call(tmp_path: Path) -> None:
    state = tmp_path / "s.db"
    begin(state, TABLE, seed=None)
    take(state, TABLE)
    with StreamSession.open(state) as session:
        kept, _ = session.publish()  # and the process ends here
    assert not look(state).delivered
    release = sf.stream(state).publish(tmp_path / "out", report=False)
    assert last(release).epoch == 1
    assert look(state).delivered
    assert Counter(row[2] for row in released(tmp_path / "out").elements()) == Counter(kept.table["sex"].to_pylist())
    assert sum(released(tmp_path / "out").values()) == kept.table.num_rows


def test_a_full_disk_keeps_the_epoch_and_leaves_no_folder(tmp_path: Path) -> None:
    state = tmp_path / "s.db"
    begin(state, people(6_000, share=0.0), 6_000, seed=None)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with StreamSession.open(state) as session:
        session.publish()
    resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, limits[1]))
    try:
        with pytest.raises(SfumatoError, match="the epoch is kept"):
            sf.stream(state).publish(tmp_path / "out", report=False)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not (tmp_path / "out").exists()
    assert last(sf.stream(state).publish(tmp_path / "out", report=False)).epoch == 1


def facts(**changes: Any) -> tuple[Maintained, EpochPublished, Shuffled]:
    counts = ("pseudo", "short", "tiny", "category_columns", "missing_columns", "alike")
    told: dict[str, Any] = dict.fromkeys(counts, 0)
    told |= {"algorithm": "a", "split": "paper", "k": 5, "groups": 4, "smallest": 6}
    epoch: dict[str, Any] = {"epoch": 1, "renewed": 4, "repeated": 0, "rows": 40, "fresh": 6}
    told |= {name: value for name, value in changes.items() if name in told}
    epoch |= {name: value for name, value in changes.items() if name in epoch}
    return Maintained(**told), EpochPublished(**epoch), Shuffled(40)


def test_claims_are_not_drawn_from_a_ledger_that_breaks_the_rule() -> None:
    assert draw_claims(facts())
    for wrong in ({"fresh": 4}, {"epoch": 2}, {"split": "strict", "short": 1}, {"category_columns": 1}):
        with pytest.raises(PrivacyRefusal, match="nothing is certified"):
            draw_claims(facts(**wrong))
    with pytest.raises(PrivacyRefusal, match="nothing is certified"):
        draw_claims(facts()[:1])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"pseudo": 2}, "as many people"),
        ({"short": 1}, "as large as"),
        ({"tiny": 1, "smallest": 3, "short": 1}, "recovered"),
        ({"missing_columns": 1}, "Every category"),
    ],
)
def test_what_is_not_guaranteed_is_refused_only_where_it_applies(change: dict[str, int], words: str) -> None:
    assert any(words in told.claim for told in draw_claims(facts(**change))[1])
    assert not any(words in told.claim for told in draw_claims(facts())[1])


@pytest.mark.parametrize("as_text", [False, True])
def test_published_numbers_have_the_decimals_of_the_first_records(tmp_path: Path, as_text: bool) -> None:
    rng = np.random.default_rng(2)
    pay = np.round(rng.lognormal(8.0, 0.5, 200), 2)
    given = pa.table({"pay": [str(each) for each in pay] if as_text else pay, "age": rng.integers(18, 90, 200)})
    sf.stream(tmp_path / "s.db", given, k=5, seed=1)
    sf.stream(tmp_path / "s.db").publish(tmp_path / "out", report=False)
    lines = (tmp_path / "out" / "release" / "table.csv").read_text().splitlines()[1:]
    cells = [line.split(",")[0] for line in lines]
    assert len(cells) == 200
    assert all(len(cell.partition(".")[2]) <= 2 for cell in cells)
    assert len(set(cells)) > 150


@pytest.mark.parametrize("kind", ["arrow", "pandas", "polars"])
def test_what_is_published_comes_in_the_kind_of_frame_that_the_stream_was_begun_with(kind: str, tmp_path: Path) -> None:
    first = frame_of(people(120, share=0.0).drop_columns(["level"]), kind)
    sf.stream(tmp_path / "state", first, k=3, identifiers=["name"], seed=1)
    table = sf.stream(tmp_path / "state").publish(tmp_path / "out", report=False).table
    assert type(table) is type(first)
