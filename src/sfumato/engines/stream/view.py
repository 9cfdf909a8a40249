"""A stream as it stands on disk: its groups, what waits and what is kept, the ledger of its epochs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Self

from sfumato.core.documents import Unparsable, parse_json
from sfumato.core.facts import RareValues
from sfumato.core.randomness import Randomness
from sfumato.engines.stream.batches import KnownBatches
from sfumato.engines.stream.epochs import Publication
from sfumato.engines.stream.groups import (
    state_on_disk,
    tally_on_disk,
)
from sfumato.engines.stream.measuring import FORGOTTEN, KeptRows, Sampled, open_kept_rows
from sfumato.engines.stream.pending import PendingRecords, Vault, open_vault
from sfumato.engines.stream.rare import HeldValues, rare_on_disk
from sfumato.engines.stream.screen import CountedPersons, open_persons
from sfumato.engines.stream.settings import (
    EpochLine,
    HandedOver,
    Progress,
    StateError,
    Status,
    StreamSettings,
    document_of,
    whole_number,
)
from sfumato.engines.stream.state import State
from sfumato.mechanisms.condense.maintainer import Maintainer
from sfumato.tables.codec import Codec
from sfumato.tables.schema import Role
from sfumato.tables.stored_codec import codec_from_document

__all__ = ["CLUSTER", "DELIVERED", "EPOCH", "QUARANTINE", "StreamView"]

QUARANTINE = "quarantine"
EPOCH = "epoch"
DELIVERED = "delivered"
CLUSTER = "cluster"


class StreamView:
    """A state that is open to be looked at.

    Parameters
    ----------
    vault : Vault or None
        The key of waiting records, where they are encrypted. `sfumato.engines.stream.run.init_stream` makes a state.
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
            Where there is no state, it is damaged, or another process writes to it.
        OptionError
            Where the key does not go with the state.
        """
        state = State.open(place, write=write)
        try:
            settings = document_of(StreamSettings, state.body("settings"))
            measuring = open_kept_rows(settings, measure_key, forgotten=bool(state.keys(FORGOTTEN)))
            return cls(state, open_vault(settings, pending_key), measuring, open_persons(settings, person_key))
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
    def awaited(self) -> frozenset[str]:
        """Ids among them whose waiting records were in memory only, and come back when the batch is given again."""
        return self._pending.awaited

    @property
    def over(self) -> HandedOver | None:
        """How a cluster goes on with the stream; None where it goes on here."""
        return document_of(HandedOver, self._state.body(CLUSTER)) if self._state.keys(CLUSTER) else None

    @property
    def rare(self) -> RareValues | None:
        """What became of rare categories in the last epoch; None where nobody counted who holds them."""
        return rare_on_disk(self._state)

    def left(self) -> Publication | None:
        """What has left last, before a new epoch is begun; None where nothing has, or its folder is not written yet."""
        return self._published() if self._progress.epoch and self._progress.delivered else None

    def tables_delivered(self) -> dict[int, str]:
        """SHA-256 of the files of tables that were written out, by epoch."""
        return {
            whole_number(key): self._state.body(DELIVERED, key).decode("ascii", "replace")
            for key in self._state.keys(DELIVERED)
        }

    def measured_by(self) -> Sampled | None:
        """Rows kept for measuring, decrypted; None where none are, or there is no key."""
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
        lines = sorted(self._state.keys(EPOCH))
        return tuple(document_of(EpochLine, self._state.body(EPOCH, key)) for key in lines)

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
        return {key: whole_number(self._state.body(QUARANTINE, key)) for key in sorted(self._state.keys(QUARANTINE))}

    def _maintainer_on_disk(self) -> Maintainer:
        """Build the groups as they are on disk, with all waiting records in the pool that are at hand."""
        state = state_on_disk(self._state, self.settings, self._progress, *self._pending.pool())
        return Maintainer.from_state(state, tally_on_disk(self._state, self.codec.layout, state.ids, state.count))

    def _published(self) -> Publication:
        return Publication.from_entries(self._state.body("families"), self._state.read_large("published"))


def _codec(body: bytes) -> Codec:
    try:
        return codec_from_document(parse_json(body))
    except Unparsable:
        raise StateError("the codec of the state cannot be read; use the version that wrote it") from None
