"""The state of a stream: all its entries, checked as a whole when it is opened and changed in whole commits."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from sfumato.engines.stream.settings import HEAD, Head, StateEntry, StateError, damaged, entry_digest
from sfumato.engines.stream.store import StateStore

__all__ = ["State"]

_LARGE = ("group", "tally", "published")  # kinds that are read again when they are needed


class State:
    """Entries under one digest."""

    def __init__(self, store: StateStore) -> None:
        self._store = store
        self._digests: dict[str, dict[str, int]] = {}
        self._bodies: dict[tuple[str, str], bytes] = {}
        self._head = self._read_all()

    @classmethod
    def create(cls, place: str | Path, entries: Iterable[StateEntry]) -> None:
        """Write a new state that holds these entries."""
        entries = list(entries)
        head = Head(0, 0, "").following(sum(map(entry_digest, entries)))
        StateStore.create(place, [*entries, head.to_entry()])

    @classmethod
    def open(cls, place: str | Path, *, write: bool) -> State:
        """Open a state and check it.

        Raises
        ------
        StateError
            Where there is none, where it is damaged, or where another process writes to it.
        """
        store = StateStore.open(place, write=write)
        try:
            return cls(store)
        except BaseException:
            store.close()
            raise

    @property
    def name(self) -> str:
        """What errors call the state."""
        return self._store.name

    @property
    def number(self) -> int:
        """The number of the last commit."""
        return self._head.number

    @property
    def digest(self) -> str:
        """The digest of all entries: equal states have equal ones."""
        return f"{self._head.digest:064x}"

    def body(self, kind: str, key: str = "") -> bytes:
        """Bytes of one entry."""
        try:
            return self._bodies[kind, key]
        except KeyError:
            raise damaged(self.name, f"it has no {kind}") from None

    def keys(self, kind: str) -> list[str]:
        """Keys of a kind."""
        return list(self._digests.get(kind, ()))

    def read_large(self, kind: str) -> dict[str, bytes]:
        """Read the entries of a kind that is not kept in memory, and check them again."""
        found: dict[str, bytes] = {}
        for entry in self._store.read(kind):
            if self._digest(entry.kind, entry.key) != entry_digest(entry):
                raise damaged(self.name, "an entry was altered")
            found[entry.key] = entry.body
        if len(found) != len(self.keys(kind)):
            raise damaged(self.name, "an entry is lost")
        return found

    def commit(self, put: Iterable[StateEntry] = (), drop: Iterable[tuple[str, str]] = ()) -> None:
        """Change entries in one step; at the return it is on disk.

        Entries that are the same as before are not written again, nor are any dropped that are not there.
        """
        last = {(entry.kind, entry.key): entry for entry in put}
        changed: list[tuple[StateEntry, int]] = []
        change = 0
        for place, entry in last.items():
            digest, before = entry_digest(entry), self._digest(*place)
            if digest != before:
                changed.append((entry, digest))
                change += digest - before
        gone = [place for place in dict.fromkeys(drop) if self._digest(*place) and place not in last]
        head = self._head.following(change - sum(self._digest(*place) for place in gone))
        self._store.commit([*(entry for entry, _ in changed), head.to_entry()], gone, head.number)
        for kind, key in gone:
            del self._digests[kind][key]
            self._bodies.pop((kind, key), None)
        for entry, digest in changed:
            self._keep(entry, digest)
        self._head = head

    def close(self) -> None:
        """Let go of the state."""
        self._store.close()

    def _digest(self, kind: str, key: str) -> int:
        return self._digests.get(kind, {}).get(key, 0)

    def _keep(self, entry: StateEntry, digest: int) -> None:
        self._digests.setdefault(entry.kind, {})[entry.key] = digest
        if entry.kind not in _LARGE:
            self._bodies[entry.kind, entry.key] = entry.body

    def _read_all(self) -> Head:
        """Read every entry and compare the whole with its head."""
        head: Head | None = None
        name = self._store.name
        for entry in self._store.read():
            if (entry.kind, entry.key) == HEAD:
                head = Head.from_body(entry.body, name)
            else:
                self._keep(entry, entry_digest(entry))
        if head is None:
            raise damaged(name, "it has no head")
        if sum(sum(digests.values()) for digests in self._digests.values()) % (1 << 256) != head.digest:
            raise damaged(name, "its entries are not those that were written")
        acknowledged = self._store.acknowledged
        if acknowledged is not None and acknowledged > head.number:
            raise StateError(
                f"the state {name!r} lacks the last {acknowledged - head.number} commits that were acknowledged, so it "
                "is an older or half copied one; bring back the newer copy, or remove the lock file to go on from the "
                "older one, which has forgotten what was published since"
            )
        return head
