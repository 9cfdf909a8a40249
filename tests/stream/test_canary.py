"""Raw rows never touch the disk: no cell of a marked record is found in any file of the state, in any encoding."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.stream.entries import cut_batches
from sfumato.stream.session import StreamSession
from tests.stream.cases import ROWS, begin, people

JOINS, WAITS, KEPT_OUT = 31.415926535897, 27.182818284590, -161.80339887498
NAME, WORD = "a canary in the mine", "zebra finch"


def marked(rows: int = 400) -> pa.Table:
    """Make a table with a record that joins a group, one that waits, and one that is excluded."""
    table = people(rows).to_pydict()
    for row, pay, level, sex in (
        (150, JOINS, 3, "f"),
        (151, WAITS, 90, "m"),
        (152, KEPT_OUT, 3, "f"),
        (153, 9.5, 3, WORD),
    ):
        table["pay"][row], table["level"][row], table["sex"][row] = pay, level, sex
        table["name"][row] = f"{NAME} {row}"
    return pa.table(table)


def forms(number: float) -> list[bytes]:
    texts = [repr(number), f"{number:.12f}", f"{number:.10g}"]
    return [text.encode(code) for text in texts for code in ("utf-8", "utf-16-le")] + [
        struct.pack(form, number) for form in ("<d", ">d", "<f", ">f")
    ]


def everything(folder: Path) -> bytes:
    return b"\0\0".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


@pytest.mark.parametrize("pending", ["memory", "encrypted"])
def test_no_cell_of_a_record_is_found_in_the_state(tmp_path: Path, pending: str) -> None:
    key, home = tmp_path / "key", tmp_path / "home"
    home.mkdir()
    key.write_bytes(os.urandom(32))
    key.chmod(0o600)
    told: dict[str, Any] = {"pending": pending, "pending_key": key} if pending == "encrypted" else {}
    opened: dict[str, Any] = {"pending_key": key} if told else {}
    table = marked()
    begin(home / "s.db", table, seed=None, **told)
    with StreamSession.open(home / "s.db", **opened) as session:
        scale = session.codec.columns[0]
        coordinates = [(pay - scale.mean) / scale.scale for pay in (JOINS, WAITS, KEPT_OUT)]
        session.ingest(cut_batches([table], ROWS))
        status = session.status()
        assert status.quarantine == {"pay": 1, "sex": 1}
        values = session.maintainer.state().pending_values[:, 0]
        assert min(abs(values - coordinates[1])) == 0.0  # it waits, in memory
        open_files = everything(home)
        assert (home / "s.db-wal").stat().st_size > 0
    sf.stream(home / "s.db").publish(tmp_path / "out")
    found = [*forms(JOINS), *forms(WAITS), *forms(KEPT_OUT), NAME.encode(), WORD.encode(), NAME.encode("utf-16-le")]
    found += [struct.pack(form, coordinate) for coordinate in coordinates for form in ("<d", ">d")]
    for data in (open_files, everything(home)):
        assert not [form for form in found if form in data]


def test_the_search_for_cells_finds_those_that_are_there(tmp_path: Path) -> None:
    (tmp_path / "s.db-wal").write_bytes(b"x" * 999 + struct.pack("<d", WAITS) + NAME.encode())
    data = everything(tmp_path)
    assert any(form in data for form in forms(WAITS))
    assert NAME.encode() in data
    assert not any(form in data for form in forms(JOINS))


def test_no_earlier_state_of_a_group_is_left_in_a_state_at_rest(tmp_path: Path) -> None:
    table, seen = people(250), set()
    begin(tmp_path / "s.db", table)
    with StreamSession.open(tmp_path / "s.db") as session:
        for row in range(100, 250):
            session.ingest([(f"row {row}", table.slice(row, 1))])
            seen |= {mean.tobytes() for mean in session.maintainer.rows().mean}
        now = {mean.tobytes() for mean in session.maintainer.rows().mean}
    data = everything(tmp_path)
    assert all(mean in data for mean in now)
    assert not [mean for mean in seen - now if mean in data]
