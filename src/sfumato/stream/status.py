"""What a stream tells: of a batch, of a run, and how it stands; counts only, never a cell."""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.condense.maintainer import Maintainer
from sfumato.randomness import Randomness
from sfumato.stream.kept_rows import KeptRows
from sfumato.stream.settings import EpochLine, Progress, Settings

__all__ = ["Acknowledged", "Ingested", "Status", "status_of"]


@dataclass(frozen=True)
class Acknowledged:
    """One batch that is on disk: counts only.

    ``repeated`` rows were known already, from this batch or a shorter one that it goes on from. ``outside`` rows were
    set aside for measuring, less those who were taken in for them.
    """

    batch: str
    rows: int
    repeated: int
    absorbed: int
    pending: int
    quarantined: int
    outside: int = 0


@dataclass(frozen=True)
class Ingested:
    """What came of some batches: new ones, known ones, and the rows of the new ones."""

    batches: int
    known: int
    rows: int
    repeated: int
    absorbed: int
    pending: int
    quarantined: int
    outside: int = 0


@dataclass(frozen=True)
class Status:
    """How a stream stands: counts only.

    ``pending`` records wait for a group large enough; of ``awaiting_replay`` of them the state knows the batch and the
    row only, and they wait until that batch is given again. ``outside`` came and were never taken in, for measuring;
    ``rows_kept`` of those taken in are kept encrypted for it. With ``rows_forgotten`` both were deleted.
    """

    records: int
    groups: int
    pseudo_groups: int
    splits: int
    pending: int
    awaiting_replay: int
    quarantined: int
    quarantine: dict[str, int]
    rows: int
    batches: int
    last_batch: str | None
    epoch: int
    delivered: bool
    families: int
    families_due: int
    ledger: tuple[EpochLine, ...]
    k: int
    split: str
    randomness: str
    pending_mode: str
    batch_rows: int
    digest: str
    outside: int
    rows_kept: int
    rows_forgotten: bool


def status_of(
    maintainer: Maintainer,
    settings: Settings,
    progress: Progress,
    ledger: tuple[EpochLine, ...],
    *,
    pending: int,
    away: int,
    quarantine: dict[str, int],
    digest: str,
    kept: KeptRows,
) -> Status:
    """Gather how a stream stands; ``away`` of the ``pending`` records are not at hand."""
    marks = maintainer.publish_marks()
    return Status(
        records=maintainer.records,
        groups=len(maintainer.ids),
        pseudo_groups=int(maintainer.pseudo.sum()),
        splits=maintainer.splits,
        pending=pending,
        awaiting_replay=away if settings.pending == "memory" else 0,
        quarantined=progress.quarantined,
        quarantine=quarantine,
        rows=progress.rows,
        batches=progress.batches,
        last_batch=progress.last_batch,
        epoch=progress.epoch,
        delivered=progress.delivered,
        families=len(marks.family),
        families_due=int(marks.due.sum()),
        ledger=ledger,
        k=settings.k,
        split=settings.split,
        randomness=Randomness(settings.seed).mode.value,
        pending_mode=settings.pending,
        batch_rows=settings.batch_rows,
        digest=digest,
        outside=kept.outside,
        rows_kept=kept.rows,
        rows_forgotten=kept.forgotten,
    )
