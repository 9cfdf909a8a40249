"""A stream at work: batches in, each counted exactly once and on disk before it is acknowledged; epochs out."""

from __future__ import annotations

import dataclasses
import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.core.documents import Unparsable, parse_json
from sfumato.core.errors import OptionError, PrivacyRefusal
from sfumato.core.randomness import Randomness
from sfumato.engines.columns import empty_columns
from sfumato.methods.condense import effective_levels
from sfumato.methods.condense.maintainer import AbsorptionResult, Maintainer, refusal_of
from sfumato.stream.entries import (
    GROUP,
    TALLY,
    Batch,
    KnownBatches,
    absorb_traced,
    entries_of_rows,
    entries_of_tally,
    state_on_disk,
    tally_on_disk,
)
from sfumato.stream.epochs import Publication, renew
from sfumato.stream.measuring import FORGOTTEN, KeptRows, KeptSample
from sfumato.stream.pending import PendingRecord, PendingRecords, Purpose, Vault, open_vault
from sfumato.stream.rare import HeldValues, StreamTails, entry_of_rare, rare_on_disk, strata_of
from sfumato.stream.screen import CountedPersons, ScreenedRows, screen
from sfumato.stream.settings import (
    BatchReceipt,
    ClusterHandover,
    EpochLine,
    IngestSummary,
    Progress,
    StateEntry,
    StateError,
    Status,
    StreamSettings,
    document_of,
    entry_of,
    whole_number,
)
from sfumato.stream.state import State
from sfumato.tables.codec import Codec, codec_from_document
from sfumato.tables.facts import RareValues
from sfumato.tables.schema import Role

__all__ = ["StreamSession"]

_QUARANTINE, _EPOCH, _DELIVERED, _CLUSTER = "quarantine", "epoch", "delivered", "cluster"


class StreamSession:
    """A state that is open, to be looked at or to go on with the stream.

    Parameters
    ----------
    vault : Vault or None
        The key of waiting records, where they are encrypted. `sfumato.stream.run.init_stream` makes a state.
    measuring : Vault or None
        The key of rows kept for measuring.
    """

    def __init__(
        self,
        state: State,
        vault: Vault | None = None,
        measuring: Vault | None = None,
        persons: Vault | None = None,
    ) -> None:
        self._state = state
        self.settings = document_of(StreamSettings, state.body("settings"))
        self.codec = _codec(state.body("codec"))
        self._progress = document_of(Progress, state.body("progress"))
        if not set(self._progress.empty) <= {
            field.name for field in self.codec.schema if field.role is Role.IDENTIFIER
        }:
            raise StateError("the state has another column without values than its schema; use a copy of it")
        self._known = KnownBatches(state)
        self._pending = PendingRecords(state, self.settings, vault)
        self.kept = KeptRows(state, self.settings, measuring)
        self.persons = CountedPersons(state, self.settings, persons)
        self.held = HeldValues.on_disk(state, self.codec)
        self.tails = StreamTails.on_disk(state, self.codec, self.settings)
        self.maintainer = self._maintainer_on_disk()
        self._ahead = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._state.name!r}, batches={len(self._known.rows)})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    @classmethod
    def open(
        cls,
        place: str | Path,
        *,
        write: bool = True,
        pending_key: str | Path | None = None,
        measure_key: str | Path | None = None,
        person_key: str | Path | None = None,
    ) -> Self:
        """Open a state, checked as a whole.

        Parameters
        ----------
        write : bool
            One process writes at a time; any number may look.
        pending_key : path, optional
            The key file, where waiting records are encrypted; without it they cannot be taken in.
        measure_key : path, optional
            The key file of rows kept for measuring; without it nothing can be taken in where such are kept.
        person_key : path, optional
            The key file that persons are known under; without it nothing can be taken in where they are counted.

        Raises
        ------
        StateError
            If there is no state, it is damaged, or another process writes to it.
        OptionError
            If the key does not go with the state.
        """
        state = State.open(place, write=write)
        try:
            settings = document_of(StreamSettings, state.body("settings"))
            if measure_key is not None and state.keys(FORGOTTEN):
                raise OptionError("the rows kept for measuring were forgotten in this state; drop --measure-key")
            return cls(
                state,
                open_vault(settings, pending_key),
                open_vault(settings, measure_key, Purpose.MEASURING),
                open_vault(settings, person_key, Purpose.PERSONS),
            )
        except BaseException:
            state.close()
            raise

    def close(self) -> None:
        """Let go of the state; a file is sealed."""
        self._state.close()

    @property
    def known(self) -> Mapping[str, int]:
        """Ids of the batches that were counted, with the rows of each; grows while `ingest` runs."""
        return self._known.rows

    @property
    def over(self) -> ClusterHandover | None:
        """How a cluster goes on with the stream; None if it goes on here."""
        return document_of(ClusterHandover, self._state.body(_CLUSTER)) if self._state.keys(_CLUSTER) else None

    @property
    def rare(self) -> RareValues:
        """What became of rare categories in the last epoch."""
        return rare_on_disk(self._state)

    def left(self) -> Publication | None:
        """What has left last, before a new epoch is begun; None if nothing has, or its folder is not written yet."""
        return self._published() if self._progress.epoch and self._progress.delivered else None

    def tables_delivered(self) -> dict[int, str]:
        """SHA-256 of the files of tables that were written out, by epoch."""
        return {
            whole_number(key): self._state.body(_DELIVERED, key).decode("ascii", "replace")
            for key in self._state.keys(_DELIVERED)
        }

    def measured_by(self) -> KeptSample | None:
        """Rows kept for measuring, decrypted; None if none are, or there is no key."""
        return self.kept.read(self.maintainer.family)

    @property
    def taken(self) -> int:
        """Records that were taken in, those that wait included."""
        return self.maintainer.records + self._pending.count

    @property
    def empty(self) -> tuple[str, ...]:
        """Columns that are dropped and have had no value in any row so far."""
        return self._progress.empty

    @property
    def ledger(self) -> tuple[EpochLine, ...]:
        """Line of each epoch so far."""
        lines = sorted(self._state.keys(_EPOCH))
        return tuple(document_of(EpochLine, self._state.body(_EPOCH, key)) for key in lines)

    def status(self) -> Status:
        """How the stream stands."""
        marks, progress, settings = self.maintainer.publish_marks(), self._progress, self.settings
        return Status(
            records=self.maintainer.records,
            groups=len(self.maintainer.ids),
            pseudo_groups=int(self.maintainer.pseudo.sum()),
            splits=self.maintainer.splits,
            pending=self._pending.count,
            awaiting_replay=self._pending.away if settings.pending == "memory" else 0,
            quarantined=progress.quarantined,
            quarantine=self._quarantine(),
            rows=progress.rows,
            batches=progress.batches,
            last_batch=progress.last_batch,
            epoch=progress.epoch,
            delivered=progress.delivered,
            families=len(marks.family),
            families_due=int(marks.due.sum()),
            ledger=self.ledger,
            k=settings.k // settings.person_rows,
            split=settings.split,
            randomness=Randomness(settings.seed).mode.value,
            pending_mode=settings.pending,
            batch_rows=settings.batch_rows,
            digest=self._state.digest,
            outside=self.kept.outside,
            rows_kept=self.kept.rows,
            rows_forgotten=self.kept.forgotten,
        )

    def _quarantine(self) -> dict[str, int]:
        return {key: whole_number(self._state.body(_QUARANTINE, key)) for key in sorted(self._state.keys(_QUARANTINE))}

    def _maintainer_on_disk(self) -> Maintainer:
        """Build the groups as they are on disk, with all waiting records in the pool that are at hand."""
        state = state_on_disk(self._state, self.settings, self.codec, self._progress, *self._pending.pool())
        return Maintainer.from_state(state, tally_on_disk(self._state, self.codec.layout, state.ids, state.count))

    def _published(self) -> Publication:
        return Publication.from_entries(self._state.body("families"), self._state.read_large("published"))

    def ingest(self, batches: Iterable[Batch], *, tell: Callable[[BatchReceipt], None] | None = None) -> IngestSummary:
        """Take in batches, one after the other; each is on disk before it is acknowledged and the next is read.

        Parameters
        ----------
        batches : iterable of (str, pyarrow.Table)
            Ids as `batch_id` gives them, or any that never stand for other rows. A batch that is known is not counted
            again; it only brings back its records that wait and were in memory.
        tell : callable, optional
            Called with each batch that is acknowledged.

        Raises
        ------
        PrivacyRefusal
            If too many records would wait; the batches before stay.
        """
        self._check_here()
        if self.settings.pending == "encrypted" and self._pending.vault is None:
            raise OptionError("records that wait are encrypted in this state; give the key with --pending-key")
        if self.kept.active and self.kept.vault is None:
            raise OptionError(
                "this state keeps rows for measuring; give their key with --measure-key, or delete them with 'sfumato "
                "stream forget'"
            )
        if self.persons.column is not None and self.persons.vault is None:
            raise OptionError("persons of this state are known under a key; give it with --person-key")
        total: Counter[str] = Counter()
        for identity, table in batches:
            known = identity in self._known
            done = self._recall(identity, table) if known else self._take(identity, table)
            total["known" if known else "batches"] += 1
            for name in ("rows", "repeated", "absorbed", "pending", "quarantined", "outside"):
                total[name] += getattr(done, name)
            if tell is not None:
                tell(done)
        self._bring_back()
        return IngestSummary(**{field.name: total[field.name] for field in dataclasses.fields(IngestSummary)})

    def _take(self, identity: str, table: pa.Table) -> BatchReceipt:
        """Count a new batch: screen, encode, absorb, and put all that changed on disk in one step."""
        self._check_whole()
        skip = self._known_part(identity, table)
        self._bring_back()
        fresh = table.slice(skip)
        screened = self._of_persons(self._screened(fresh), fresh)
        levels = self._levels(screened)
        values = self.codec.coordinates(screened.cells)
        admitted = self.kept.admit(identity, screened.rows + skip, values, levels, self._progress.epoch)
        coded, steps, tails = self.tails.admit(admitted.values)
        done, families = self._absorb(coded, admitted.levels)
        self._check_room(len(levels))
        out = fresh.num_rows - len(screened.rows)

        def who(place: int) -> PendingRecord:
            return dataclasses.replace(admitted.who(place), step=int(steps[place]))

        put, drop = self._pending.update(self.maintainer, who, coded, admitted.levels)
        more, less = self.kept.update(admitted, families, self._progress.epoch)
        progress = dataclasses.replace(
            self._progress,
            batches=self._progress.batches + 1,
            rows=self._progress.rows + fresh.num_rows,
            quarantined=self._progress.quarantined + out,
            last_batch=identity,
            late=self._pending.away > 0,
            empty=empty_columns(fresh, (self.codec.schema[name] for name in self._progress.empty)),
        )
        self.held.add(admitted.values)
        put += [*self.held.entries(), *tails.entries(self.tails)]
        put += [*more, KnownBatches.entry(identity, table.num_rows), *self._quarantined(screened.counts)]
        self._write(progress, [*put, *self.persons.entries()], [*drop, *less])
        self.tails = tails
        self.persons.committed()
        self._known.add(identity, table.num_rows)
        self.kept.committed()
        aside = len(admitted.aside) - len(admitted.returned)
        return BatchReceipt(identity, fresh.num_rows, skip, done.absorbed, done.pending, out, aside)

    def _screened(self, table: pa.Table) -> ScreenedRows:
        return screen(table, self.codec, self.settings.level, self.settings.strata)

    def _of_persons(self, screened: ScreenedRows, table: pa.Table) -> ScreenedRows:
        """Those of the rows that are not more of a person than are taken in; the others count as excluded."""
        if self.persons.column is None:
            return screened
        missing = self.codec.schema[self.persons.column].missing
        return screened.only(self.persons.admit(table.take(pa.array(screened.rows)), missing), self.persons.column)

    def _levels(self, screened: ScreenedRows) -> NDArray[np.int64]:
        """Level of each row, in rows: as many times what it asks for in persons as rows of a person are taken in."""
        return effective_levels(screened.levels * self.persons.most, self.settings.k, allow_level_1=False)

    def _write(self, progress: Progress, put: list[StateEntry], drop: list[tuple[str, str]]) -> None:
        """Put groups, progress and the rest on disk in one step."""
        written, retired = self.maintainer.changed()
        progress = dataclasses.replace(
            progress,
            next_id=int(self.maintainer.ids[-1])
            + 1,  # the group that was made last is there, or has split into later ones
            splits=self.maintainer.splits,
            next_place=self._pending.next_place,
        )
        groups = [*entries_of_rows(self.maintainer.rows(written)), *entries_of_tally(self.maintainer.tally, written)]
        put = [*put, *groups, entry_of("progress", progress)]
        gone = [GROUP] if self.maintainer.tally is None else [GROUP, TALLY]
        drop = [*drop, *((kind, str(identity)) for identity in retired.tolist() for kind in gone)]
        self._ahead = True
        self._state.commit(put, drop)
        self._ahead = False
        self._progress = progress

    def _absorb(
        self, values: NDArray[np.float64], levels: NDArray[np.int64]
    ) -> tuple[AbsorptionResult, NDArray[np.int64]]:
        """Let records join, and tell their families where rows are kept.

        From here until the commit has returned, memory is ahead of the disk.
        """
        self._ahead = True
        strata = strata_of(values, self.codec, self.settings.strata)
        try:
            if self.kept.active:
                return absorb_traced(self.maintainer, values, levels, strata)
            return self.maintainer.absorb(values, levels, strata), np.empty(0, dtype=np.int64)
        except PrivacyRefusal:
            if self.kept.active:  # some were taken in before it
                self.maintainer = self._maintainer_on_disk()
            self._ahead = False
            raise refusal_of(self.settings.pending_limit, len(levels)) from None

    def _check_room(self, records: int) -> None:
        """Refuse a batch where too many would wait, those counted in that wait for a replay; they must find room."""
        if self.maintainer.pending + self._pending.away > self.settings.pending_limit:
            self.maintainer = self._maintainer_on_disk()
            self._ahead = False
            raise refusal_of(self.settings.pending_limit, records)

    def _check_whole(self) -> None:
        if self._ahead:
            raise StateError("the last step could not be written, so the state must be opened again; do so")

    def hand_over(self, over: ClusterHandover) -> None:
        """Let a cluster go on with the stream; this state tells its beginning from now on.

        Raises
        ------
        OptionError
            If it has published or keeps what a cluster cannot use.
        """
        self._check_whole()
        if self._progress.epoch or self._pending.count:
            raise OptionError(
                "a stream can move to a cluster only before its first publication and while no record waits; start a "
                "new stream"
            )
        if self.kept.asked:
            raise OptionError("a cluster keeps no rows for measuring; begin the stream without --measure-rows")
        self._state.commit([entry_of(_CLUSTER, over)])

    def _check_here(self) -> None:
        if self.over is not None:
            raise OptionError("a cluster continues this stream, and publishes it batch by batch; give rows to that")

    def _quarantined(self, counts: dict[str, int]) -> list[StateEntry]:
        known = self._quarantine()
        return [
            StateEntry(_QUARANTINE, name, str(known.get(name, 0) + count).encode()) for name, count in counts.items()
        ]

    def _known_part(self, identity: str, table: pa.Table) -> int:
        """Count the rows at the beginning of a batch that were taken in as a shorter batch, before its source grew."""
        longest = 0
        for known, part in self._known.beginnings(identity, table):
            self._pending.recall(known, part, self._encode, self.tails)
            longest = part.num_rows
        return longest

    def _recall(self, identity: str, table: pa.Table) -> BatchReceipt:
        """Take a batch that is known: nothing is counted, and its waiting records are at hand again."""
        self._known.check(identity, table)
        self._pending.recall(identity, table, self._encode, self.tails)
        self._known_part(identity, table)
        return BatchReceipt(identity, 0, table.num_rows, 0, 0, 0)

    def _encode(self, table: pa.Table) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        screened = self._screened(table)
        if len(screened.rows) != table.num_rows:
            raise StateError(f"{table.num_rows - len(screened.rows)} waiting records cannot be read again; replay them")
        return self.codec.coordinates(screened.cells), self._levels(screened)

    def _bring_back(self) -> None:
        """Put records that were recalled back where they waited.

        If others have joined meanwhile a group may be large enough by now, so they come as new arrivals do.
        """
        if not self._pending.recalled:
            return
        if not self._progress.late:
            self.maintainer = self._maintainer_on_disk()
            return
        arrivals, values, levels = self._pending.arrivals()
        self._ahead = True  # those who came are nowhere else in memory
        self.maintainer.absorb(values, levels, strata_of(values, self.codec, self.settings.strata))
        places = [waiting.place for waiting in arrivals]
        put, drop = self._pending.update(self.maintainer, arrivals.__getitem__, values, levels, places)
        self._write(dataclasses.replace(self._progress, late=self._pending.away > 0), put, drop)

    def publish(self) -> tuple[Publication, tuple[EpochLine, ...]]:
        """Begin an epoch: rows of families that are due are redrawn, all others are repeated; give the whole ledger.

        The epoch is on disk before anything is handed out. If the last one was not `delivered`, it is given again.
        """
        self._check_whole()
        self._check_here()
        if not self._progress.delivered:
            return self._published(), self.ledger
        epoch = self._progress.epoch + 1
        rng = Randomness(self.settings.seed).generator(f"epoch {epoch}")
        earlier = self._published() if self._progress.epoch else None
        chance = Randomness(self.settings.seed).generator(f"rare values of epoch {epoch}")
        hiding = self.held.hiding(self.settings, chance)
        root = hashlib.blake2b(self.settings.state_id.encode(), digest_size=32).digest()
        cut_offs = Randomness(self.settings.seed, root).generator("tails")  # the same weights in every epoch
        codec = self.tails.release(self.codec, self.settings.decimals, cut_offs)
        self._ahead = True
        try:
            publication, line = renew(
                self.maintainer, earlier, codec, epoch, rng, hide=lambda table: hiding.of(table, chance)
            )
        except PrivacyRefusal:
            self._ahead = False  # nothing left
            raise
        entries = publication.to_entries()
        old = {("published", key) for key in self._state.keys("published")}
        drop = sorted(old - {(entry.kind, entry.key) for entry in entries})
        progress = dataclasses.replace(self._progress, epoch=epoch, delivered=False)
        left = self.kept.left(
            publication.family[line.repeated :].tolist(), publication.family[: line.repeated].tolist(), epoch
        )
        hidden = entry_of_rare(hiding.fact)
        self._write(progress, [*entries, *left, hidden, entry_of(_EPOCH, line, f"{epoch:08d}")], drop)
        return publication, self.ledger

    def delivered(self, table: str | None = None) -> None:
        """Note that what `publish` gave has been written out, and the SHA-256 of the file of its table."""
        delivered = [] if table is None else [StateEntry(_DELIVERED, f"{self._progress.epoch:08d}", table.encode())]
        self._write(dataclasses.replace(self._progress, delivered=True), delivered, [])

    def forget(self) -> None:
        """Delete the rows kept for measuring; those who were never taken in stay counted, and none is sampled again."""
        self._check_whole()
        if not self.kept.asked:
            raise OptionError("this state keeps no rows for measuring; there is nothing to forget")
        if self.kept.active:
            self._state.commit(*self.kept.forget())
            self.kept.committed()


def _codec(body: bytes) -> Codec:
    try:
        return codec_from_document(parse_json(body))
    except Unparsable:
        raise StateError("the codec of the state cannot be read; use the version that wrote it") from None
