"""The verb `sfumato.stream`: a stream by the path or URL of its state, from its first records on.

The groups to begin with, the rows to measure by, and how these are forgotten.
"""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.core.arguments import checked
from sfumato.core.errors import OptionError, PrivacyRefusal
from sfumato.core.randomness import Randomness
from sfumato.engines.columns import empty_columns, schema_of
from sfumato.engines.plan import Plan, prepare
from sfumato.methods.condense import Condensation, effective_levels
from sfumato.methods.condense.maintainer import Maintainer
from sfumato.methods.condense.partition import partition
from sfumato.options import RunOptions
from sfumato.publish.release import Release
from sfumato.stream.entries import Batch, create_state, cut_batches, empty_tally
from sfumato.stream.measuring import entries_of_first, first_outside
from sfumato.stream.options import StreamOptions
from sfumato.stream.pending import Purpose, Vault
from sfumato.stream.publish import (
    ClusterOptions,
    EpochAttack,
    EpochOptions,
    attack_epochs,
    publish_stream,
    stream_on_spark,
)
from sfumato.stream.rare import USUAL, HeldValues, StreamTails, check_strata, strata_of
from sfumato.stream.screen import entries_of_persons, first_of_each, screen
from sfumato.stream.session import StreamSession
from sfumato.stream.settings import IngestSummary, StateEntry, Status, StreamSettings
from sfumato.tables.cells import decimals_of_step
from sfumato.tables.codec import Codec, with_indicators
from sfumato.tables.field import DURATION_FORMATS, Domain, Field, Kind
from sfumato.tables.files import FileForm, FileFormat
from sfumato.tables.frames import Origin, to_arrow
from sfumato.tables.grid import repair_table
from sfumato.tables.persons import refuse_weight
from sfumato.tables.reading import FileReading
from sfumato.tables.schema import Role, Schema, missing_marks
from sfumato.version import __version__

__all__ = ["Stream", "init_stream", "status_page", "stream"]

_SEEN_BOUNDS = (Kind.CONTINUOUS, Kind.INTEGER, Kind.DATE)


def init_stream(state: str | Path, table: Any, options: StreamOptions | None = None) -> None:
    """Begin a stream: condense the first records statically and write a state [AY05, sec. 3].

    Parameters
    ----------
    state : path or URL
        A new file, or ``postgresql://USER@HOST/NAME``.
    table : pandas, polars or pyarrow table, or path
        Holds the first *InitNumber* records. They count as ingested: the same rows given again are known.
    options : StreamOptions, optional
    """
    options = StreamOptions() if options is None else options.replayed
    first = _FirstRows.of(table, options)
    counted = _count_persons(first.inside, first.schema, options, first.state_id)
    arrow = first.inside if counted is None else counted.table
    times = 1 if counted is None else options.person_rows
    k, given = options.floor * times, options.schema is not None
    opened = Schema(tuple(_opened(field, given=given) for field in first.schema))
    kept = RunOptions(level=options.level, strata=options.strata, rare="keep")
    plan = Plan(Condensation(k=max(2, k // times)), opened, kept, first.randomness)
    codec, values, levels = _first_records(arrow, plan, k, times)
    check_strata(codec.schema, options.strata)
    settings = _settings(options, first, counted, _decimals_of(options, first.schema, arrow), values.shape[1], k)
    tails = StreamTails.begun(codec, settings, values)
    coded = tails.code(values)
    codes = strata_of(coded, codec, options.strata)
    separate = np.zeros(len(levels), dtype=np.int64) if codes is None else codes
    rng = first.randomness.generator("sanitize")
    labels = partition(coded, levels, separate, rng, grouping=options.grouping)
    maintainer = Maintainer(
        values.shape[1],
        k=k,
        split=options.split,  # type: ignore[arg-type]
        pending_limit=options.pending_limit,
        tally=empty_tally(codec.layout),
        stratified=options.strata is not None,
    )
    maintainer.start(coded, levels, labels, codes)
    held = HeldValues(codec)
    held.add(values)
    entries, kept_out, out = [*held.entries(), *tails.entries()], dict[str, int](), 0
    if counted is not None:
        out = first.whole.num_rows - arrow.num_rows
        entries, kept_out = [*counted.entries, *entries], {counted.column: out} if out else {}
    elif first.vault is not None:
        screened = screen(first.aside, codec, options.level, options.strata)
        others = effective_levels(screened.levels, k, allow_level_1=False)
        taken = (np.flatnonzero(~first.outside), values, levels, labels)
        left = (np.flatnonzero(first.outside)[screened.rows], codec.coordinates(screened.cells), others)
        measured = entries_of_first(first.vault, first.batches, options.measure_rows, taken, left)
        entries = [*measured, *entries]
        kept_out, out = screened.counts, first.aside.num_rows - len(screened.rows)
    entries += [StateEntry("quarantine", name, str(count).encode()) for name, count in kept_out.items()]
    create_state(state, settings, codec, maintainer, first.batches, entries, quarantined=out, empty=first.empty)


@dataclass(frozen=True, eq=False, repr=False)
class _FirstRows:
    """The first rows of a stream: those that are taken in, those that are kept to measure by, and their schema."""

    whole: pa.Table
    inside: pa.Table
    outside: NDArray[np.bool_]
    schema: Schema
    empty: tuple[str, ...]
    batches: list[Batch]
    origin: Origin
    randomness: Randomness
    state_id: str
    vault: Vault | None

    @property
    def aside(self) -> pa.Table:
        """Rows that are never taken in."""
        return self.whole.filter(pa.array(self.outside))

    @classmethod
    def of(cls, table: Any, options: StreamOptions) -> _FirstRows:
        """Read the first rows, and draw those that are never taken in."""
        reading = FileReading(encoding=options.encoding, sheet=options.sheet, header_row=options.header_row)
        whole, origin = to_arrow(table, missing_marks(options.schema, options.missing), reading)
        most = options.init_number
        if most is not None and not 0 < most <= whole.num_rows:
            raise OptionError(f"there are {whole.num_rows} rows to begin with; use --init-number from 1 to that")
        whole = whole.slice(0, most)
        randomness = Randomness(options.seed)
        state_id = randomness.generator("state").bytes(16).hex() if options.seed is not None else secrets.token_hex(16)
        batches = list(cut_batches([whole], options.batch_rows, source=options.source))
        vault = None
        outside = np.zeros(whole.num_rows, dtype=np.bool_)
        if options.measure_key is not None:
            vault = Vault.from_file(options.measure_key, state_id, Purpose.MEASURING)
            outside = first_outside(vault, batches, options.measure_rows, options.measure_share)
        inside = whole.filter(pa.array(~outside)) if outside.any() else whole
        columns = RunOptions(
            schema=options.schema,
            target=options.target,
            identifiers=tuple(options.identifiers),
            person=options.person,
            missing=tuple(options.missing),
        )
        schema = _without_persons(schema_of(inside, columns))
        inside = repair_table(inside, schema, level=options.level)
        empty = empty_columns(whole, (field for field in schema if field.role is Role.IDENTIFIER))
        _refuse_public(schema)
        refuse_weight(schema, "a stream")
        return cls(whole, inside, outside, schema, empty, batches, origin, randomness, state_id, vault)


def _decimals_of(options: StreamOptions, schema: Schema, arrow: pa.Table) -> dict[str, int]:
    """Decimals that numbers of a schema that was not given are released with."""
    if options.recipe is not None:
        return _decimals(Schema.infer(arrow.select([field.name for field in schema.encoded])))
    return {} if options.schema is not None else _decimals(schema)


def _settings(
    options: StreamOptions, first: _FirstRows, counted: _FirstPersons | None, decimals: dict[str, int], d: int, k: int
) -> StreamSettings:
    """Settings that hold as long as the stream lives."""
    lock = None
    if options.pending_key is not None:
        lock = Vault.from_file(options.pending_key, first.state_id).close_over(-1, np.empty(0), 0).hex()
    form = FileForm(FileFormat.CSV) if options.form is None else options.form
    same = ("split", "grouping", "level", "seed", "pending", "pending_limit", "batch_rows", "measure_rows", "strata")
    return StreamSettings(
        **{name: getattr(options, name) for name in same},
        state_id=first.state_id,
        sfumato=__version__,
        d=d,
        k=k,
        pending_key=lock,
        format=form.format.value,
        delimiter=form.delimiter,
        decimals=decimals,
        measure_share=0.0 if first.vault is None else options.measure_share,
        measure_key=None if first.vault is None else first.vault.lock("", b"").hex(),
        person_rows=1 if counted is None else options.person_rows,
        person=None if counted is None else counted.column,
        person_key=None if counted is None else counted.lock,
        rare=options.rare or USUAL,
        tails="keep" if options.tails == "keep" else "code",
        marks=dict(form.numerals.marks),
        frame=first.origin.kind,
    )


@dataclass(frozen=True, eq=False, repr=False)
class _FirstPersons:
    """The first records, limited per person, and what the state keeps of these."""

    table: pa.Table
    column: str
    lock: str
    entries: list[StateEntry]


def _count_persons(arrow: pa.Table, schema: Schema, options: StreamOptions, state_id: str) -> _FirstPersons | None:
    """Limit the rows of each person, if a column identifies persons; None if each row is a person."""
    field = next((field for field in schema if field.role is Role.PERSON), None)
    if field is None:
        if options.person_key is not None or options.person_rows != 1:
            raise OptionError(
                "--person-rows and --person-key are for a column that identifies the person of a row; add --person"
            )
        return None
    if options.person_key is None:
        raise PrivacyRefusal(
            f"column {field.name!r} identifies persons, and persons of a stream are counted under a key; give one "
            "with --person-key and how many rows of each are taken in with --person-rows, or drop the column with "
            "--identifier where each row is a person"
        )
    vault = Vault.from_file(options.person_key, state_id, Purpose.PERSONS)
    taken, rows = first_of_each(arrow.column(field.name), field.missing, options.person_rows, vault, {})
    locked, entries = vault.lock("", b"").hex(), entries_of_persons(rows)
    return _FirstPersons(arrow.filter(pa.array(taken)), field.name, locked, entries)


def _first_records(
    arrow: pa.Table, plan: Plan, k: int, times: int
) -> tuple[Codec, NDArray[np.float64], NDArray[np.int64]]:
    """Encode the first records, with their levels multiplied by the rows per person.

    The codec takes means and scales from the records with coded tails, and ends nowhere.
    """
    job = prepare(arrow, plan)
    assert job.shared is not None
    coded = job.tails.code(job.shared.table, np.full(job.original.num_rows, 0.5))
    codec = with_indicators(Codec.fit(coded, job.codec.schema, codes=True))
    levels = effective_levels(job.records.levels * times, k, allow_level_1=False)
    return codec, codec.encode(job.original, levels=levels).values, levels


def _without_persons(schema: Schema) -> Schema:
    """Schema that holds no value of the column which says who rows are about; a state keeps it."""
    fields = (dataclasses.replace(field, domain=Domain()) if field.role is Role.PERSON else field for field in schema)
    return dataclasses.replace(schema, fields=tuple(fields))


def _refuse_public(schema: Schema) -> None:
    passed = [field.name for field in schema if field.role is Role.PUBLIC]
    if passed:
        raise PrivacyRefusal(
            f"column {passed[0]!r} is public, but a stream makes synthetic rows: values of real people beside them "
            "would be wrong or identify someone; drop it or sanitize it"
        )


def _decimals(schema: Schema) -> dict[str, int]:
    """Count the decimals that numbers of the first records have; rows with more decimals are not excluded."""
    return {
        field.name: decimals_of_step(float(field.domain.step))
        for field in schema
        if field.kind is Kind.CONTINUOUS
        and field.role in (Role.CONFIDENTIAL, Role.TARGET)
        and isinstance(field.domain.step, int | float)
    }


def _opened(field: Field, *, given: bool) -> Field:
    """Free a number or date from bounds that would only be those of the first records."""
    domain = field.domain
    bounded = given and (domain.low is not None or domain.high is not None)
    if field.kind not in _SEEN_BOUNDS or field.role is Role.LEVEL or domain.declared or bounded:
        return field
    step = domain.step if given else None
    opened = Domain(declared=True, step=step, units=domain.units)
    written = given or field.kind is Kind.DATE or field.format in DURATION_FORMATS
    return dataclasses.replace(field, domain=opened, format=field.format if written else None)


@dataclass(frozen=True)
class Stream:
    """A stream by its state, which each call opens and closes again."""

    state: str | Path

    def ingest(
        self,
        table: Any,
        *,
        source: str = "",
        encoding: str | None = None,
        sheet: str | None = None,
        header_row: int | None = None,
        pending_key: str | Path | None = None,
        measure_key: str | Path | None = None,
        person_key: str | Path | None = None,
    ) -> IngestSummary:
        """How many rows of a frame were taken in, wait, or were excluded; known rows are not counted again.

        Parameters
        ----------
        table : pandas, polars or pyarrow table, or path
        source : str
            Name of the source, if two sources may contain the same rows.
        encoding, sheet, header_row : optional
            How a file is read, as in `sfumato.inspect`.
        pending_key, measure_key, person_key : path, optional
            Key files that the state was begun with.
        """
        with StreamSession.open(
            self.state, pending_key=pending_key, measure_key=measure_key, person_key=person_key
        ) as session:
            rows = session.settings.batch_rows
            reading = FileReading(encoding=encoding, sheet=sheet, header_row=header_row)
            return session.ingest(cut_batches([to_arrow(table, reading=reading)[0]], rows, source=source))

    def publish(self, folder: str | Path, **options: Any) -> Release:
        """Release of a new epoch, written into a folder; options are those of `sfumato.stream.publish.EpochOptions`."""
        return publish_stream(self.state, folder, checked(EpochOptions)(**options))

    def on_spark(self, frame: Any, folder: str | Path, **options: Any) -> Any:
        """Query of Spark that goes on with the stream on a cluster, and publishes each batch in a folder of its own.

        Parameters
        ----------
        frame : streaming data frame of Spark
        folder : path
            For the folders of batches.
        **options
            Those of `sfumato.stream.publish.ClusterOptions`: ``checkpoint``, and such as ``once``, ``every`` and
            ``cells``.
        """
        return stream_on_spark(self.state, frame, folder, checked(ClusterOptions)(**options))

    def status(self) -> Status:
        """How the stream stands; the whole state is checked."""
        with StreamSession.open(self.state, write=False) as session:
            return session.status()

    def attack(self, releases: Sequence[str | Path], *, measure_key: str | Path | None = None) -> EpochAttack:
        """What published epochs give away to an attacker who compares them."""
        return attack_epochs(self.state, releases, measure_key=measure_key)

    def forget(self) -> Status:
        """How the stream stands once the rows kept for measuring are deleted, for good; needs no key.

        Those who were never taken in stay out, and are counted. What an earlier copy, a backup, a snapshot of the disk
        or the log of a database server holds is not reached.
        """
        with StreamSession.open(self.state) as session:
            session.forget()
            return session.status()


def stream(state: str | Path, first: Any = None, **options: Any) -> Stream:
    """A stream of records that are condensed as they arrive, and published by epochs [AY05, sec. 3].

    Parameters
    ----------
    state : path or URL
        A file, or ``postgresql://USER@HOST/NAME``; it stays with the owner.
    first : pandas, polars or pyarrow table, or path, optional
        Begins a new stream with these records; without it the state is that of an earlier one.
    **options
        With ``first``: those of `sfumato.stream.run.StreamOptions`, such as ``k``, ``level`` and ``schema``.
    """
    if first is not None:
        init_stream(state, first, checked(StreamOptions)(**options))
    elif options:
        raise OptionError(f"{next(iter(options))!r} is for the beginning of a stream; give its first records too")
    return Stream(state)


def status_page(state: str) -> Mapping[str, object]:
    """How a stream stands, in sentences and by epoch."""
    status = Stream(state).status()
    return {"lines": status.lines(), "epoch": status.epoch, "k": status.k, "families_due": status.families_due}
