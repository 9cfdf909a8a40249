"""Batches of a stream that a cluster maintains: what each adds to the one before, and the epoch that it is."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.core.documents import Unparsable, from_json, write_json
from sfumato.core.errors import OptionError
from sfumato.core.facts import RareValues
from sfumato.core.randomness import Randomness
from sfumato.core.replacing import reason
from sfumato.engines.stream.cellwise import CENSUS, CellChange
from sfumato.engines.stream.epochs import Leaving, Publication, published
from sfumato.engines.stream.measuring import Sampled
from sfumato.engines.stream.rare import HeldValues
from sfumato.engines.stream.session import StreamSession
from sfumato.engines.stream.settings import EpochLine, StateError, StreamSettings
from sfumato.mechanisms.condense.maintainer import GroupRows
from sfumato.tables.codec import Codec

__all__ = ["Carried", "KeptOut", "StreamTotals", "carried_in", "first_totals", "following"]

_CELL_BITS = 40  # of the number of a family, below that of its cell
_TOTALS, _FAMILIES, _PUBLISHED = "totals.json", "families.json", "published"


@dataclass(frozen=True)
class KeptOut:
    """Rows of a batch, and those of them that were kept out, by column; which dropped columns had no value."""

    rows: int
    out: int
    columns: dict[str, int]
    empty: tuple[str, ...] | None = None


@dataclass(frozen=True)
class StreamTotals:
    """How a stream stands after a batch: counts only, all columns of categories with those who hold each.

    ``query`` is Spark's own number of the run, which stays as long as its checkpoint does.
    """

    query: str
    batch: int
    rows: int
    quarantined: int
    quarantine: dict[str, int]
    records: int
    pending: int
    groups: int
    pseudo: int
    splits: int
    empty: tuple[str, ...]
    held: dict[str, list[int]]
    ledger: tuple[EpochLine, ...] = ()
    rare: RareValues | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Carried:
    """A stream after a batch, as `engines.epoch.run_epoch` publishes it; ``renewed`` says that something leaves."""

    settings: StreamSettings
    codec: Codec
    totals: StreamTotals
    publication: Publication | None = None
    before: Publication | None = None
    renewed: bool = False

    @property
    def kept(self) -> None:
        """No rows are kept for measuring."""

    @property
    def rare(self) -> RareValues | None:
        """What became of rare categories in the epoch."""
        return self.totals.rare

    @property
    def empty(self) -> tuple[str, ...]:
        """Columns that are dropped and have had no value in any row."""
        return self.totals.empty

    @property
    def taken(self) -> int:
        """Records that were taken in, those that wait included."""
        return self.totals.records + self.totals.pending

    def left(self) -> Publication | None:
        """What has left last."""
        return self.before

    def publish(self) -> tuple[Publication, tuple[EpochLine, ...]]:
        """What leaves now, and the line of each epoch."""
        assert self.publication is not None  # asked where something leaves
        return self.publication, self.totals.ledger

    def measured_by(self) -> Sampled | None:
        """Nothing: raw rows are nowhere kept."""
        return None

    def write(self, folder: Path) -> None:
        """Write what the next batch goes on from into a new folder."""
        folder.mkdir(mode=0o700)
        files = {_TOTALS: write_json(self.totals).encode()}
        if self.publication is not None:
            for entry in self.publication.to_entries():
                files[_FAMILIES if entry.kind == "families" else f"{_PUBLISHED}-{entry.key}.arrow"] = entry.body
        for name, body in files.items():
            (folder / name).write_bytes(body)
            (folder / name).chmod(0o600)


def first_totals(session: StreamSession) -> StreamTotals:
    """How a stream stands before its first batch on a cluster.

    Raises
    ------
    OptionError
        Where the state was begun before it was counted who holds each category.
    """
    if session.held is None:
        raise OptionError("the stream was begun by an earlier version; begin it anew to go on on a cluster")
    status = session.status()
    return StreamTotals(
        "", -1, status.rows, status.quarantined, status.quarantine, status.records, status.pending, status.groups,
        status.pseudo_groups, status.splits, session.empty,
        {name: counts.tolist() for name, counts in session.held.counts.items()},
    )  # fmt: skip


def carried_in(folder: Path, settings: StreamSettings, codec: Codec) -> Carried:
    """What a batch left for the next."""
    try:
        totals = from_json(StreamTotals, _read(folder / _TOTALS))
    except Unparsable:
        raise StateError(f"{str(folder)!r} was written by another version; use that one") from None
    if not (folder / _FAMILIES).exists():
        return Carried(settings, codec, totals)
    rows = {each.stem: _read(each) for each in folder.glob(f"{_PUBLISHED}-*.arrow")}
    return Carried(settings, codec, totals, Publication.from_entries(_read(folder / _FAMILIES), rows))


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise StateError(
            f"the file {str(path)!r} of a batch cannot be read ({reason(error)}); bring back a whole copy of its folder"
        ) from None


def following(
    last: Carried, changes: Mapping[int, CellChange], out: Iterable[KeptOut], *, batch: int, query: str
) -> Carried:
    """The stream after one more batch: counts added up, and rows drawn for the families that leave."""
    totals = dataclasses.replace(_added(last.totals, changes.values(), out), batch=batch, query=query)
    left = _joined([(cell, changes[cell].left) for cell in sorted(changes)])
    if not len(left.families):
        return Carried(last.settings, last.codec, totals, last.publication)
    epoch, seed = len(totals.ledger) + 1, last.settings.seed
    held = {name: np.array(counts, dtype=np.int64) for name, counts in totals.held.items()}
    hiding = HeldValues(last.codec, held).hiding(last.settings)
    chance = Randomness(seed).generator(f"rare values of epoch {epoch}")
    staying = None if last.publication is None else last.publication.of_families(_staying(last.publication, changes))
    publication, line = published(
        left,
        staying,
        last.codec,
        epoch,
        Randomness(seed).generator(f"epoch {epoch}"),
        lambda table: hiding.of(table, chance),
    )
    totals = dataclasses.replace(totals, ledger=(*totals.ledger, line), rare=hiding.fact)
    return Carried(last.settings, last.codec, totals, publication, last.publication, renewed=True)


def _added(totals: StreamTotals, changes: Iterable[CellChange], out: Iterable[KeptOut]) -> StreamTotals:
    told: dict[str, Any] = {name: getattr(totals, name) for name in CENSUS}
    held = {name: np.array(counts, dtype=np.int64) for name, counts in totals.held.items()}
    for change in changes:
        for name in told:
            told[name] += getattr(change, name)
        for name, counts in change.held.items():
            held[name] = held[name] + counts
    rows, quarantined, quarantine, empty = totals.rows, totals.quarantined, dict(totals.quarantine), totals.empty
    for each in out:
        rows, quarantined = rows + each.rows, quarantined + each.out
        for name, count in each.columns.items():
            quarantine[name] = quarantine.get(name, 0) + count
        if each.empty is not None:
            empty = tuple(name for name in empty if name in each.empty)
    told |= {"rows": rows, "quarantined": quarantined, "quarantine": quarantine, "empty": empty}
    return dataclasses.replace(totals, **told, held={name: each.tolist() for name, each in held.items()})


def _staying(earlier: Publication, changes: Mapping[int, CellChange]) -> NDArray[np.int64]:
    """Families whose earlier rows are repeated: all of cells that nothing came to, and those that are not due."""
    elsewhere = ~np.isin(earlier.family >> _CELL_BITS, list(changes))
    parts = [_whole(cell, change.staying) for cell, change in changes.items()]
    return np.concatenate([earlier.family[elsewhere], *parts])


def _whole(cell: int, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    return (np.int64(cell) << _CELL_BITS) + numbers


def _joined(parts: Sequence[tuple[int, Leaving]]) -> Leaving:
    """Groups of all cells that leave, under numbers that are of one cell each."""
    rows = {
        field.name: np.concatenate([getattr(left.rows, field.name) for _, left in parts])
        for field in dataclasses.fields(GroupRows)
    }
    rows["ids"] = np.concatenate([_whole(cell, left.rows.ids) for cell, left in parts])
    families = np.concatenate([_whole(cell, left.families) for cell, left in parts])
    coded = all(left.held is not None for _, left in parts)
    held = tuple(each for _, left in parts for each in left.held or ()) if coded else None
    fresh = min((left.fresh for _, left in parts if len(left.families)), default=0)
    return Leaving(GroupRows(**rows), held, families, fresh)
