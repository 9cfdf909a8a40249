"""One epoch of a stream: the rows that leave, with the facts of all epochs so far."""

from __future__ import annotations

import dataclasses
import warnings
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.assess.attacks.differencing import Shown, Watched
from sfumato.core.documents import write_json
from sfumato.core.errors import PrivacyLeakWarning
from sfumato.core.facts import (
    ColumnsDropped,
    Drawn,
    EpochPublished,
    Fact,
    Maintained,
    PersonRowsBounded,
    RareValues,
    RowsKept,
    Shuffled,
)
from sfumato.core.groups import count_alike
from sfumato.core.randomness import Randomness
from sfumato.core.records import BlockKind
from sfumato.engines.outcome import Apart, Comparison, Outcome
from sfumato.engines.plan import coarsened_facts
from sfumato.engines.recipe import Recipe
from sfumato.engines.stream.epochs import Publication
from sfumato.engines.stream.measuring import KeptRows, Sampled
from sfumato.engines.stream.rare import USUAL, hidden_schema
from sfumato.engines.stream.settings import EpochLine, StreamSettings
from sfumato.mechanisms.condense import ALGORITHMS
from sfumato.tables.cells import is_text, plain
from sfumato.tables.codec import Codec
from sfumato.tables.recoding import like_released, recode
from sfumato.tables.schema import Role, Schema
from sfumato.version import __version__

__all__ = ["EpochWorkings", "Publishing", "run_epoch"]

_DROPPED = (Role.IDENTIFIER, Role.PERSON)

_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_FEWEST = 10  # rows of the sample, below which nothing is worth measuring
_TINY = 3  # mean and covariance of two records give both away, and three are not far from it


@dataclass(frozen=True, eq=False, repr=False)
class EpochWorkings(Watched):
    """The ledger of all epochs so far; families that left are known by their sizes.

    Where rows are kept for measuring, with the last epoch and this one, and those of the sample who came between.
    """

    ledger: tuple[EpochLine, ...] = ()


class Publishing(Protocol):
    """A stream that can begin an epoch, wherever its groups are kept."""

    @property
    def settings(self) -> StreamSettings:
        """What it was told."""

    @property
    def codec(self) -> Codec:
        """How records are encoded."""

    @property
    def kept(self) -> KeptRows | None:
        """Rows kept for measuring; None where there can be none."""

    @property
    def rare(self) -> RareValues | None:
        """What became of rare categories in the epoch."""

    @property
    def empty(self) -> tuple[str, ...]:
        """Columns that are dropped and have had no value in any row."""

    @property
    def taken(self) -> int:
        """Records that were taken in, those that wait included."""

    def left(self) -> Publication | None:
        """What has left last."""

    def publish(self) -> tuple[Publication, tuple[EpochLine, ...]]:
        """What leaves now, and the line of each epoch."""

    def measured_by(self) -> Sampled | None:
        """Rows kept for measuring, decrypted."""


def run_epoch(session: Publishing) -> Outcome:
    """Begin an epoch of a stream, or take up the one that was begun and not delivered."""
    before = session.left()
    publication, ledger = session.publish()
    settings, schema = session.settings, session.codec.schema
    randomness = Randomness(settings.seed)
    order = randomness.generator(f"order of epoch {ledger[-1].epoch}").permutation(publication.table.num_rows)
    drawn = _rounded(publication.table, settings.decimals)
    parameters = {
        "k": settings.k // settings.person_rows,
        "split": settings.split,
        "grouping": settings.grouping,
        "epoch": ledger[-1].epoch,
    }
    if settings.person is not None:
        parameters["person_rows"] = settings.person_rows
    earlier = None if before is None else _rounded(before.table, settings.decimals)
    published, dropped = hidden_schema(schema, drawn)
    told = None if settings.rare == USUAL else settings.rare
    sampled = session.measured_by()
    return Outcome(
        recipe=Recipe("stream", parameters, schema, settings.level, None, None, settings.seed, __version__, rare=told),
        table=drawn.drop_columns(list(dropped)).take(pa.array(order)),
        rows_in=drawn.num_rows,
        rows_out=drawn.num_rows,
        schema=published,
        facts=_facts(session, publication, drawn, ledger, randomness, dropped),
        comparison=_like_published(_comparison(session, sampled, drawn, earlier), schema, published),
        workings=EpochWorkings(
            sizes=publication.count,
            highest=publication.level_max,
            ledger=ledger,
            **_watched(session, sampled, drawn, earlier, ledger[-1].epoch),
        ),
        texts={"epochs.json": write_json(ledger, "pretty")},
    )


def _comparison(
    session: Publishing, sampled: Sampled | None, drawn: pa.Table, earlier: pa.Table | None
) -> Comparison | Apart:
    """The rows kept for measuring on which published rows rest, beside these; or why there are none."""
    codec, settings = session.codec, session.settings
    behind = 0 if sampled is None else int(sampled.behind.sum())
    if sampled is None or behind < _FEWEST:
        return Apart(_why_apart(session, behind), earlier, codec)
    original = _rounded(codec.decode(sampled.values[sampled.behind]), settings.decimals)
    notes = [f"Measured on a sample: {behind} of {session.taken} records that were taken in."]
    if behind < len(sampled.behind):
        notes.append(
            f"{len(sampled.behind) - behind} more rows of the sample were left aside, for it is not known that "
            "published rows rest on them yet."
        )
    if not len(sampled.outside):
        notes.append("No row was kept out of the stream yet, so there is nobody to hold against.")
    return Comparison(
        original=original,
        released=drawn,
        codec=codec,
        records=codec.encode(original, levels=sampled.levels[sampled.behind], unseen="mean"),
        outside=_rounded(codec.decode(sampled.outside), settings.decimals) if len(sampled.outside) else None,
        notes=tuple(notes),
        before=earlier,
    )


def _like_published(compared: Comparison | Apart, schema: Schema, published: Schema) -> Comparison | Apart:
    """What is compared, with categories counted as published rows have them, and without columns that were dropped."""
    if isinstance(compared, Apart) or published == schema:
        return compared
    alike = like_released(compared.original, compared.released, schema, most=None)
    original, released = recode(compared.original, alike), recode(compared.released, alike)
    codec = Codec.fit(original, published, gaps=True, codes=True)
    levels = compared.records.levels
    return dataclasses.replace(
        compared,
        original=original,
        released=released.select([column.field.name for column in codec.columns]),
        codec=codec,
        records=codec.encode(original, levels=levels, unseen="mean"),
        outside=None if compared.outside is None else recode(compared.outside, alike),
        before=None if compared.before is None else recode(compared.before, alike),
    )


def _why_apart(session: Publishing, behind: int) -> str:
    if session.kept is None or not session.kept.asked:
        return "a stream keeps no raw rows, unless it is begun with --measure-rows"
    if session.kept.forgotten:
        return "the rows that were kept for measuring were deleted"
    if not session.kept.is_open:
        return "the rows kept for measuring are encrypted; give their key with --measure-key"
    return f"published rows rest on {behind} rows of the sample, and it takes {_FEWEST}"


def _watched(
    session: Publishing, sampled: Sampled | None, drawn: pa.Table, earlier: pa.Table | None, epoch: int
) -> dict[str, Any]:
    """What the difference of the last two epochs is tried on, where there are two and rows are kept."""
    if sampled is None or earlier is None:
        return {}
    return {
        "layout": session.codec.layout,
        "rows": tuple(Shown.of_rows(session.codec.encode(table, unseen="mean").values) for table in (earlier, drawn)),
        "arrived": (sampled.between(epoch - 1, epoch),),
    }


def _rounded(table: pa.Table, decimals: dict[str, int]) -> pa.Table:
    """Write numbers with as many decimals as those of the first records had; texts that are none stay as they are."""
    for name, count in decimals.items():
        place = table.column_names.index(name)
        column = table.column(place)
        if is_text(column.type):
            known = pc.fill_null(pc.match_substring_regex(column, _NUMBER), False)
            numbers = pc.if_else(known, column, pa.scalar(None, column.type)).cast(pa.float64())
            column = pc.if_else(known, pc.round(numbers, ndigits=count).cast(column.type), column)
        else:
            column = pc.round(column, ndigits=count)
        table = table.set_column(place, name, column)
    return table


def _facts(
    session: Publishing,
    publication: Publication,
    table: pa.Table,
    ledger: tuple[EpochLine, ...],
    randomness: Randomness,
    dropped: tuple[str, ...],
) -> tuple[Fact, ...]:
    """State what was done; warn where groups are so small that their statistics are their members."""
    settings, schema, layout = session.settings, session.codec.schema, session.codec.layout
    tiny = int((publication.count <= _TINY).sum())
    if tiny:
        warnings.warn(
            f"{tiny} of {len(publication.count)} groups have {_TINY} records or fewer: their mean and covariance "
            "nearly or exactly give the members away; take a higher k, or --split strict",
            PrivacyLeakWarning,
            stacklevel=4,
        )
    return (
        Drawn(randomness.mode.value, randomness.algorithm),
        ColumnsDropped(
            tuple(field.name for field in schema if field.role in _DROPPED and field.name not in session.empty),
            tuple(field.name for field in schema if field.role is Role.LEVEL),
            session.empty,
        ),
        *coarsened_facts(schema),
        Maintained(
            algorithm=f"AY05 dynamic maintenance, started by {ALGORITHMS[settings.grouping]}",
            split=settings.split,
            k=settings.k,
            asked_max=int(publication.level_max.max()),
            groups=len(publication.count),
            pseudo=int(publication.pseudo.sum()),
            smallest=int(publication.count.min()),
            short=int((publication.count < publication.level_max).sum()),
            tiny=tiny,
            category_columns=sum(block.kind in (BlockKind.CATEGORY, BlockKind.CODE) for block in layout),
            missing_columns=sum(block.kind is BlockKind.MISSING for block in layout),
            alike=_alike(table, publication.count, session.codec),
        ),
        *(EpochPublished(**dataclasses.asdict(line)) for line in ledger),
        *_rare(session, dropped),
        *_kept(session),
        *(() if settings.person is None else (PersonRowsBounded(settings.person_rows),)),
        Shuffled(rows=publication.table.num_rows),
    )


def _rare(session: Publishing, dropped: tuple[str, ...]) -> tuple[Fact, ...]:
    fact = session.rare
    return () if fact is None or not fact.columns + fact.filled else (dataclasses.replace(fact, dropped=dropped),)


def _kept(session: Publishing) -> tuple[Fact, ...]:
    kept = session.kept
    return (RowsKept(kept.rows, kept.outside, kept.forgotten),) if kept is not None and kept.asked else ()


def _alike(table: pa.Table, count: NDArray[np.int64], codec: Codec) -> int:
    """Rows of families that vary in no number and at most in one other column, family after family in the table."""
    numbers = {block.column for block in codec.layout if block.kind is BlockKind.NUMBER}
    columns = [
        (pc.dictionary_encode(plain(table.column(name)), null_encoding="encode").indices.to_numpy(), name in numbers)
        for name in table.column_names
    ]
    return count_alike(columns, np.repeat(np.arange(len(count)), count))
