"""A stream from its first records on: the groups to begin with, the rows to measure by, and how these are forgotten."""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.core.errors import OptionError, PrivacyRefusal
from sfumato.core.randomness import Randomness
from sfumato.engines.columns import empty_columns, schema_of
from sfumato.engines.outcome import Recipe
from sfumato.engines.plan import Plan, prepare
from sfumato.methods.condense import Condensation, effective_levels
from sfumato.methods.condense.maintainer import Maintainer
from sfumato.methods.condense.partition import partition
from sfumato.options import RunOptions
from sfumato.stream.entries import create_state, cut_batches, empty_tally
from sfumato.stream.measuring import entries_of_first, first_outside
from sfumato.stream.pending import Purpose, Vault
from sfumato.stream.rare import USUAL, HeldValues
from sfumato.stream.screen import first_of_each, screen
from sfumato.stream.session import StreamSession
from sfumato.stream.settings import StateEntry, Status, StreamSettings
from sfumato.stream.strata import check_strata, strata_of
from sfumato.stream.tails import StreamTails
from sfumato.tables.cells import decimals_of_step
from sfumato.tables.codec import Codec
from sfumato.tables.field import DURATION_FORMATS, Domain, Field, Kind
from sfumato.tables.files import FileForm, FileFormat
from sfumato.tables.frames import to_arrow
from sfumato.tables.persons import refuse_weight
from sfumato.tables.rare import check_rare_treatment
from sfumato.tables.reading import FileReading
from sfumato.tables.repair import repair_table
from sfumato.tables.schema import Role, Schema, missing_marks
from sfumato.tables.stored_codec import with_indicators
from sfumato.tables.tails import check_tails
from sfumato.version import __version__

__all__ = ["forget_rows", "init_stream"]

BATCH_ROWS = 5_000
"""Rows of a batch, unless told otherwise: a group that several of them join is written once."""

OUTSIDE_SHARE = 0.1
"""Share of rows that is not taken in where rows are kept for measuring, unless told otherwise."""

_SEEN_BOUNDS = (Kind.CONTINUOUS, Kind.INTEGER, Kind.DATE)


def init_stream(
    state: str | Path,
    table: Any,
    *,
    schema: Schema | str | Path | None = None,
    target: str | None = None,
    level: str | int | None = None,
    strata: str | None = None,
    identifiers: Iterable[str] = (),
    missing: Iterable[str] = (),
    k: int | None = None,
    grouping: str = "compact",
    split: str = "strict",
    init_number: int | None = None,
    pending: str = "memory",
    pending_key: str | Path | None = None,
    pending_limit: int = 10_000,
    measure_rows: int = 0,
    measure_key: str | Path | None = None,
    measure_share: float = OUTSIDE_SHARE,
    person: str | None = None,
    person_rows: int = 1,
    person_key: str | Path | None = None,
    rare: str | None = None,
    tails: str | None = None,
    batch_rows: int = BATCH_ROWS,
    source: str = "",
    seed: int | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
    header_row: int | None = None,
    form: FileForm | None = None,
    recipe: Recipe | str | Path | None = None,
) -> None:
    """Begin a stream: condense the first records statically and write a state [AY05, sec. 3].

    Parameters
    ----------
    state : path or URL
        A new file, or ``postgresql://USER@HOST/NAME``.
    table : pandas, polars or pyarrow table, or path
        Holds the first *InitNumber* records. They count as ingested: the same rows given again are known.
    schema : Schema or path, optional
        What it says of domains binds every row of the stream; what it leaves open does not, except that a category must
        be listed or occur in the first records. By default proposed from the first records, whose bounds bind nothing.
    target, level, identifiers
        As in `sfumato.sanitize`.
    strata : str, optional
        A column of categories, the target for example: groups never hold records of two of them, which makes its value
        certain for each group. A category without a group gets its first as soon as enough of its records wait.
    k : int, optional
        The floor of all levels; by default 10, or 2 where ``level`` says what records ask for.
    grouping : str
        How the first records are grouped: ``"compact"`` searches for groups of low sum of squares, ``"paper"`` is
        ConstructGroups [AY05, fig. 2].
    split : {"strict", "paper"}
        When groups split; see `sfumato.methods.condense.maintainer.Maintainer`.
    init_number : int, optional
        Ingest only this number of rows, from the first on.
    pending : {"memory", "encrypted"}
        How records are kept that wait for a group large enough: nowhere but in memory, or in the state under a key.
    pending_key : path, optional
        The key file, of at least 32 bytes and mode 600.
    pending_limit : int
        Records at most that wait.
    measure_rows : int
        Keep an encrypted sample of at most this number of ingested rows, to measure releases, and at most as many
        that are never ingested, as the control group; 0 keeps none.
    measure_key : path, optional
        The key file of these, of at least 32 bytes and mode 600.
    measure_share : float
        Share of all rows that is not taken in, until there are as many.
    person : str, optional
        Column that identifies the person of a row: dropped, and levels count persons.
    person_rows : int
        Rows of a person that are taken in at most; a group needs as many times as many rows as persons.
    person_key : path, optional
        The key file that persons are known under, of at least 32 bytes and mode 600; the state holds keyed digests.
    rare : {"pool", "lift", "keep"}, optional
        What becomes of categories that fewer than k persons of the stream hold when rows leave; by default as "lift",
        but a rare class of the target stops the publication.
    tails : {"code", "keep"}, optional
        Whether numbers and dates beyond those of k persons are coded to a cut-off, before records join their groups and
        in what is released; "code" by default.
    batch_rows : int
        Rows of a batch; does not change while the stream lives.
    source : str
        Name of the source that the rows come from, if sources may hold the same rows.
    seed : int, optional
        Makes a dry run.
    encoding, sheet, header_row : optional
        How a file of the first records is read, as in `sfumato.inspect`.
    form : FileForm, optional
        How published tables are written, by default as CSV.
    recipe : Recipe or path, optional
        Of an earlier stream: its schema, levels, k, grouping, split and seed are taken; decimals are those of the new
        first records.
    """
    check_rare_treatment(rare)
    if check_tails(tails) == "smooth":
        raise OptionError("a stream codes tails or keeps them; choose --tails code or keep")
    if recipe is not None:
        given = {"schema": schema, "level": level, "k": k, "target": target, "identifier": identifiers, "seed": seed}
        given |= {"missing": tuple(missing), "strata": strata}
        given |= {"rare": rare, "tails": tails, "person-rows": None if person_rows == 1 else person_rows}
        if double := [name for name, value in given.items() if value not in (None, (), [])]:
            raise OptionError(f"--recipe already says what --{double[0]} says; edit the recipe or leave one out")
        replayed = recipe if isinstance(recipe, Recipe) else Recipe.load(recipe)
        again = replayed.options
        schema, level, seed, rare = replayed.schema, again.level, again.seed, check_rare_treatment(again.rare)
        strata, tails = again.strata, check_tails(again.tails)
        k, grouping, split, person_rows = _replayed(replayed)
    k = (10 if level is None else 2) if k is None else k
    if (pending == "encrypted") != (pending_key is not None):
        raise OptionError("a key goes with waiting records that are encrypted; give --pending encrypted with a key")
    if (measure_rows > 0) != (measure_key is not None):
        raise OptionError("rows are kept for measuring under a key; give --measure-rows with --measure-key, or none")
    missing = tuple(missing)
    reading = FileReading(encoding=encoding, sheet=sheet, header_row=header_row)
    arrow, origin = to_arrow(table, missing_marks(schema, missing), reading)
    if init_number is not None and not 0 < init_number <= arrow.num_rows:
        raise OptionError(f"there are {arrow.num_rows} rows to begin with; use --init-number from 1 to that")
    arrow = whole = arrow.slice(0, init_number)
    randomness = Randomness(seed)
    state_id = secrets.token_hex(16) if seed is None else randomness.generator("state").bytes(16).hex()
    first = list(cut_batches([arrow], batch_rows, source=source))
    measuring = None if measure_key is None else Vault.from_file(measure_key, state_id, Purpose.MEASURING)
    outside = np.zeros(arrow.num_rows, dtype=np.bool_)
    if measuring is not None:
        outside = first_outside(measuring, first, measure_rows, measure_share)
    aside, arrow = arrow.filter(pa.array(outside)), arrow.filter(pa.array(~outside)) if outside.any() else arrow
    columns = RunOptions(schema=schema, target=target, identifiers=tuple(identifiers), person=person, missing=missing)
    settled = _without_persons(schema_of(arrow, columns))
    arrow = repair_table(arrow, settled, level=level)
    empty = empty_columns(whole, (field for field in settled if field.role is Role.IDENTIFIER))
    _refuse_public(settled)
    refuse_weight(settled, "a stream")
    counted = _count_persons(arrow, settled, person_rows, person_key, state_id)
    if counted is not None:
        arrow, k = counted.table, k * person_rows
    opened = Schema(tuple(_opened(field, given=schema is not None) for field in settled))
    times = 1 if counted is None else person_rows
    plan = Plan(
        Condensation(k=max(2, k // times)), opened, RunOptions(level=level, strata=strata, rare="keep"), randomness
    )
    codec, values, levels = _first_records(arrow, plan, k, times)
    check_strata(codec.schema, strata)
    lock = None if pending_key is None else Vault.from_file(pending_key, state_id).close_over(-1, np.empty(0), 0).hex()
    form = FileForm(FileFormat.CSV) if form is None else form
    decimals = {} if schema is not None else _decimals(settled)
    if recipe is not None:
        decimals = _decimals(Schema.infer(arrow.select([field.name for field in settled.encoded])))
    settings = StreamSettings(
        state_id=state_id, sfumato=__version__, d=values.shape[1], k=k, split=split, grouping=grouping, level=level,
        seed=seed, pending=pending, pending_limit=pending_limit, pending_key=lock, batch_rows=batch_rows,
        format=form.format.value, delimiter=form.delimiter, decimals=decimals, measure_rows=measure_rows,
        measure_share=0.0 if measuring is None else measure_share,
        measure_key=None if measuring is None else measuring.lock("", b"").hex(), person_rows=times,
        person=None if counted is None else counted.column, person_key=None if counted is None else counted.lock,
        rare=rare or USUAL, tails="keep" if tails == "keep" else "code", marks=dict(form.numerals.marks),
        frame=origin.kind, strata=strata,
    )  # fmt: skip
    tails_held = StreamTails.begun(codec, settings, values)
    coded = tails_held.code(values)
    codes = strata_of(coded, codec, strata)
    apart = np.zeros(len(levels), dtype=np.int64) if codes is None else codes
    labels = partition(coded, levels, apart, randomness.generator("sanitize"), grouping=grouping)
    options: dict[str, Any] = {"tally": empty_tally(codec.layout), "stratified": strata is not None}
    maintainer = Maintainer(values.shape[1], k=k, split=split, pending_limit=pending_limit, **options)  # type: ignore[arg-type]
    maintainer.start(coded, levels, labels, codes)
    held = HeldValues(codec)
    held.add(values)
    told, kept_out, out = [*held.entries(), *tails_held.entries()], {}, 0
    if counted is not None:
        out = whole.num_rows - arrow.num_rows
        told, kept_out = [*counted.entries, *told], {counted.column: out} if out else {}
    elif measuring is not None:
        screened = screen(aside, codec, level, strata)
        others = effective_levels(screened.levels, k, allow_level_1=False)
        taken = (np.flatnonzero(~outside), values, levels, labels)
        left = (np.flatnonzero(outside)[screened.rows], codec.coordinates(screened.cells), others)
        told = [*entries_of_first(measuring, first, measure_rows, taken, left), *told]
        kept_out, out = screened.counts, aside.num_rows - len(screened.rows)
    create_state(state, settings, codec, maintainer, first, told, kept_out, out, empty)


@dataclass(frozen=True, eq=False, repr=False)
class _FirstPersons:
    """The first records, limited per person, and what the state keeps of these."""

    table: pa.Table
    column: str
    lock: str
    entries: list[StateEntry]


def _count_persons(
    arrow: pa.Table, schema: Schema, most: int, key: str | Path | None, state_id: str
) -> _FirstPersons | None:
    """Limit the rows of each person, if a column identifies persons; None if each row is a person."""
    field = next((field for field in schema if field.role is Role.PERSON), None)
    if field is None:
        if key is not None or most != 1:
            raise OptionError(
                "--person-rows and --person-key are for a column that identifies the person of a row; add --person"
            )
        return None
    if key is None:
        raise PrivacyRefusal(
            f"column {field.name!r} identifies persons, and persons of a stream are counted under a key; give one "
            "with --person-key and how many rows of each are taken in with --person-rows, or drop the column with "
            "--identifier where each row is a person"
        )
    vault = Vault.from_file(key, state_id, Purpose.PERSONS)
    taken, entries = first_of_each(arrow.column(field.name), field.missing, most, vault)
    return _FirstPersons(arrow.filter(pa.array(taken)), field.name, vault.lock("", b"").hex(), entries)


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


def forget_rows(state: str | Path) -> Status:
    """Delete the rows that a stream keeps to be measured by, and tell how it stands then; needs no key.

    Those who were never taken in stay out, and are counted. What an earlier copy, a backup, a snapshot of the disk or
    the log of a database server holds is not reached.
    """
    with StreamSession.open(state) as session:
        session.forget()
        return session.status()


def _replayed(recipe: Recipe) -> tuple[int, str, str, int]:
    """What the recipe of a stream says: k, grouping, split, and rows of a person that are taken in."""
    told = recipe.parameters
    if recipe.method != "stream":
        raise OptionError(f"the recipe is of the method {recipe.method!r} and not of a stream; run it with sanitize")
    rows = told.get("person_rows", 1)
    if not all(isinstance(each, int) and not isinstance(each, bool) for each in (told.get("k"), rows)) or not all(
        isinstance(told.get(name), str) for name in ("grouping", "split")
    ):
        raise OptionError(
            "the recipe lacks k, grouping or split of a stream, or has rows of persons that are no number; use the one "
            "that stream publish wrote"
        )
    return told["k"], told["grouping"], told["split"], rows


def _without_persons(schema: Schema) -> Schema:
    """Schema that holds no value of the column which says who rows are about; a state keeps it."""
    fields = (dataclasses.replace(field, domain=Domain()) if field.role is Role.PERSON else field for field in schema)
    return dataclasses.replace(schema, fields=tuple(fields))


def _refuse_public(schema: Schema) -> None:
    passed = [field.name for field in schema if field.role is Role.PUBLIC]
    if passed:
        raise PrivacyRefusal(
            f"column {passed[0]!r} is public, but a stream makes synthetic rows that belong to nobody: beside them it "
            "would be wrong or identify people; drop it or sanitize it"
        )


def _decimals(schema: Schema) -> dict[str, int]:
    """Count the decimals that numbers of the first records have; more may come and are not kept out."""
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
