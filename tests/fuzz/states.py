"""What a stream reads: its state, entry by entry and as a whole, its keys, and the records of its sources."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from sfumato.core import documents
from sfumato.core.errors import BadInput
from sfumato.core.records import Block, BlockKind, Extent
from sfumato.stream.connectors import ReadOptions, read_lines
from sfumato.stream.entries import entry_of_left, families_left, rows_of_bytes, tally_of_bytes
from sfumato.stream.epochs import Publication
from sfumato.stream.measuring import KeptRow
from sfumato.stream.pending import Purpose, Vault, open_vault
from sfumato.stream.rare import counts_of_bins, counts_of_bytes, rare_on_disk
from sfumato.stream.session import StreamSession
from sfumato.stream.settings import (
    EpochLine,
    Head,
    Progress,
    StateEntry,
    StreamSettings,
    document_of,
    entry_digest,
    entry_of,
)
from sfumato.stream.state import PAGE, State, StateStore, seal
from sfumato.tables.codec import Codec, codec_from_document, codec_to_document
from tests.fuzz.fuzzing import Parser
from tests.fuzz.inputs import as_file, as_json, folder_in_memory

__all__ = ["STATES"]

_PUBLISHED = b'{"family": [1, 3], "count": [2, 1], "level_max": [3, 3], "pseudo": [false, true]}'
_CODED = [Block("code", BlockKind.CODE, 0, 1, (0.0,), extent=Extent(declared=False, labels=tuple("abcd")))]


class _Entries:
    """A store of hostile entries."""

    name, acknowledged = "state", None

    def __init__(self, entries: Iterable[StateEntry]) -> None:
        self._entries = list(entries)

    def read(self, kind: str | None = None) -> Iterator[StateEntry]:
        return (entry for entry in self._entries if kind in (None, entry.kind))

    def commit(self, put: Iterable[StateEntry], drop: Iterable[tuple[str, str]], number: int) -> None:
        """Nothing is kept."""

    def close(self) -> None:
        """Nothing is open."""


def _state(data: bytes) -> Any:
    """Open a state whose entries, one a line, are hostile under a digest that is right, and look at all of it."""
    entries: dict[tuple[str, str], StateEntry] = {}
    for line in data.decode("utf-8", "replace").split("\n"):
        kind, _, rest = line.partition("\t")
        key, tab, body = rest.partition("\t")
        if tab and kind != "head":
            entries[kind, key] = StateEntry(kind, key, _body(body))
    head = Head(0, 0, "").following(sum(map(entry_digest, entries.values())))
    book = State(_Entries([*entries.values(), head.to_entry()]))  # type: ignore[arg-type]
    settings = document_of(StreamSettings, book.body("settings"))
    waiting = open_vault(settings, _key() if settings.pending == "encrypted" else None)
    measuring = open_vault(settings, None if settings.measure_key is None else _key(), Purpose.MEASURING)
    persons = open_vault(settings, None if settings.person_key is None else _key(), Purpose.PERSONS)
    session = StreamSession(book, waiting, measuring, persons)
    session.measured_by()
    session.left()
    session.tables_delivered()
    rare_on_disk(book)
    return session.status()


@cache
def _key() -> Path:
    """The key that seeds were encrypted with."""
    path = folder_in_memory() / "zero.key"
    path.touch(mode=0o600)
    path.write_bytes(bytes(32))
    return path


def _body(text: str) -> bytes:
    if not text.startswith("hex:"):
        return text.encode()
    digits = re.sub("[^0-9a-f]", "", text[4:])
    return bytes.fromhex(digits[: len(digits) // 2 * 2])


def _file_of_state(path: Path) -> list[StateEntry]:
    """Read a file of entries that is hostile, under a seal that is right."""
    data = path.read_bytes()
    path.write_bytes(data + bytes(-len(data) % PAGE))
    seal(path)
    store = StateStore.open(path, write=False)
    try:
        return list(store.read())
    finally:
        store.close()


def _waiting_record(data: bytes) -> Any:
    vault = Vault(bytes(32), "state")
    values, level = vault.open(3, vault.lock("3", data), 2)
    return values.tolist(), level


@cache
def _published_table() -> bytes:
    sink = pa.BufferOutputStream()
    table = pa.table({"pay": [1.5, 2.5, 7193.25], "sex": ["f", "m", "quetzal"]})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def _publication(families: bytes, table: bytes) -> Any:
    found = Publication.from_entries(families, {"000000": table})
    return found.of_families(found.family).table.to_pylist()


def _codec(data: bytes) -> Codec:
    return codec_from_document(documents.parse_json(data))


def _codec_again(codec: Codec) -> bytes:
    return as_json(codec_to_document(codec))


def _settings(shape: Any) -> Callable[[bytes], Any]:
    return lambda data: document_of(shape, data)


def _entry(found: Any) -> bytes:
    return entry_of("x", found).body


def _lines(data: bytes) -> list[str]:
    return [identity for identity, _ in islice(read_lines(io.BytesIO(data), ReadOptions(rows=2)), 50)]


STATES = (
    Parser("stream-state", _state),
    Parser("stream-file", as_file("state", _file_of_state)),
    Parser("stream-head", lambda data: Head.from_body(data, "state"), lambda head: head.to_entry().body),
    Parser("stream-settings", _settings(StreamSettings), _entry),
    Parser("stream-progress", _settings(Progress), _entry),
    Parser("stream-epoch", _settings(EpochLine), _entry),
    Parser("stream-codec", _codec, _codec_again, refuses=(BadInput, documents.Unparsable)),
    Parser("stream-group", lambda data: rows_of_bytes(data, 2).ids.tolist()),
    Parser("stream-held", lambda data: counts_of_bytes(data, 2).tolist()),
    Parser("stream-tails", lambda data: counts_of_bins(data).tolist()),
    Parser("stream-tally", lambda data: [part.tolist() for part in tally_of_bytes(data, _CODED, 3)]),
    Parser("stream-waiting-record", _waiting_record),
    Parser("stream-kept-row", lambda data: KeptRow.from_bytes(data, 2).to_bytes(), bytes),
    Parser("stream-families", families_left, lambda left: entry_of_left({str(f): e for f, e in left.items()}).body),
    Parser("stream-publication", lambda data: _publication(data, _published_table())),
    Parser("stream-published-table", lambda data: _publication(_PUBLISHED, data)),
    Parser("stream-key", as_file("stream.key", lambda path: Vault.from_file(path, "state").digest("x"))),
    Parser("lines", _lines),
)
