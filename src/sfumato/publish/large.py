"""Releases of tables that go through in pieces: in cells, or moved by a key in batches; on this machine or a cluster.

And the folder around any table that an engine writes into it itself, whole or not at all.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from sfumato.certificate.signature import Signer
from sfumato.core.documents import read_bytes
from sfumato.core.errors import OptionError
from sfumato.core.randomness import Randomness
from sfumato.core.replacing import discard_kept, kept_folder, kept_path, reason, work_folder
from sfumato.engines.outcome import Outcome
from sfumato.engines.partitions.allocate import FileSpill, Spill, frame_of
from sfumato.engines.partitions.batches import Geometric, in_chunks, run_in_chunks, try_on_sample
from sfumato.engines.partitions.memory_limit import parse_size, partition_rows, usual_memory
from sfumato.engines.partitions.run import check_partitioned, run_partitioned
from sfumato.engines.partitions.sampling import SAMPLE_ROWS, sample_file
from sfumato.engines.spark import ClusterFile, move_on_spark, number_rows, run_on_spark, sample_on_spark
from sfumato.methods.geometry.key import check_key_path, keeping_key
from sfumato.methods.protocol import Mechanism
from sfumato.options import PublishOptions, RunOptions, first_needing_all_rows
from sfumato.publish.folder import plain_errors, replacing_folder
from sfumato.publish.release import Release, publish
from sfumato.tables.files import FileForm, FileFormat
from sfumato.tables.frames import to_arrow
from sfumato.tables.reading import FileReading
from sfumato.tables.recoding import known_columns
from sfumato.tables.schema import Schema
from sfumato.tables.sink import open_sink
from sfumato.tables.source import TableSource
from sfumato.version import __version__

__all__ = [
    "Publishing",
    "check_moved",
    "frame_in_partitions",
    "frame_moved_on_spark",
    "frame_on_spark",
    "release_in_partitions",
    "release_moved",
    "release_on_spark",
    "run_key",
]

_WORKER_MEMORY = 2 << 30  # of a cluster, unless --memory says otherwise
_OF_THIS_MACHINE = ("memory", "resume_key", "engine", "master", "batch_rows")  # which change no released row


@dataclass(frozen=True)
class Publishing:
    """What a release folder is written with, settled before the run.

    Parameters
    ----------
    options : PublishOptions
    form : FileForm
        How the table is written.
    signer : Signer or None
    reading : FileReading
        How the file was read, for the recipe.
    """

    options: PublishOptions
    form: FileForm
    signer: Signer | None
    reading: FileReading


def frame_in_partitions(
    arrow: pa.Table,
    mechanism: Mechanism,
    options: RunOptions,
    publishing: PublishOptions,
) -> Outcome:
    """What comes of a table in memory that is cut into the cells of a run out of core with so much memory."""
    assert options.memory is not None
    randomness = Randomness(options.seed).repeatable()
    source = TableSource(Path("table"), FileForm(FileFormat.ARROW), arrow.schema, arrow.num_rows, table=arrow)
    return run_partitioned(
        source,
        mechanism,
        randomness,
        options,
        Spill(),
        most_rows=partition_rows(parse_size(options.memory), arrow.num_columns),
        measured=SAMPLE_ROWS if publishing.report else 0,
        quasi_identifiers=publishing.quasi_identifiers,
        native=publishing.native,
    )


def frame_on_spark(
    frame: Any, mechanism: Mechanism, options: RunOptions, *, report: bool, **written: Any
) -> tuple[Outcome, Any]:
    """What comes of a data frame of Spark, and the released rows as one; a worker has so much memory, or 2 GB.

    ``written`` says how rows that come here are written.
    """
    granted = _WORKER_MEMORY if options.memory is None else parse_size(options.memory)
    return run_on_spark(
        frame,
        mechanism,
        Randomness(options.seed).repeatable(),
        options,
        most_rows=partition_rows(granted, len(frame.columns)),
        measured=SAMPLE_ROWS if report else 0,
        **written,
    )


def release_on_spark(
    source: ClusterFile,
    folder: str | Path,
    mechanism: Mechanism,
    options: RunOptions,
    publishing: Publishing,
) -> Release:
    """Sanitize a file that a cluster reads, and write a whole release folder here; the rows come bucket by bucket."""
    check_partitioned(mechanism, options)
    form, spreadsheet_safe = publishing.form, publishing.options.spreadsheet_safe
    check_quotes(form, spreadsheet_safe=spreadsheet_safe)

    def run(place: Path, _: None) -> Outcome:
        return frame_on_spark(
            source.frame,
            mechanism,
            options,
            report=publishing.options.report,
            into=lambda schema: open_sink(place, schema, form, spreadsheet_safe=spreadsheet_safe),
            native=source.form.format is FileFormat.CSV and form.format is not FileFormat.CSV,
            spreadsheet_safe=spreadsheet_safe,
        )[0]

    return write_around(run, nullcontext(), folder, form, publishing)


def release_in_partitions(
    source: TableSource,
    folder: str | Path,
    mechanism: Mechanism,
    options: RunOptions,
    publishing: Publishing,
) -> Release:
    """Sanitize a file of any length in bounded memory and write a whole release folder.

    Raw rows that wait on disk are encrypted with a key that this run alone has, or that stands in the file
    ``resume_key`` until the release is there.
    """
    check_partitioned(mechanism, options)
    resume_key = options.resume_key
    for_this_run = resume_key is not None and (not os.path.lexists(resume_key) or kept_path(Path(folder)).exists())
    key = run_key(resume_key, Path(folder))
    randomness = Randomness(options.seed).repeatable(hashlib.blake2b(b"chance", key=key, digest_size=32).digest())
    form, spreadsheet_safe = publishing.form, publishing.options.spreadsheet_safe
    check_quotes(form, spreadsheet_safe=spreadsheet_safe)
    granted = usual_memory() if options.memory is None else parse_size(options.memory)

    def run(place: Path, spill: Spill) -> Outcome:
        return run_partitioned(
            source,
            mechanism,
            randomness,
            options,
            spill,
            most_rows=partition_rows(granted, len(source.schema)),
            mark=None if resume_key is None else _mark(source, mechanism, options, granted, form),
            into=lambda schema: open_sink(place, schema, form, spreadsheet_safe=spreadsheet_safe),
            measured=SAMPLE_ROWS if publishing.options.report else 0,
            quasi_identifiers=publishing.options.quasi_identifiers,
            native=source.form.format is FileFormat.CSV and form.format is not FileFormat.CSV,
            spreadsheet_safe=spreadsheet_safe,
        )

    spilling = _spilling(Path(folder), key, kept=resume_key is not None)
    release = write_around(run, spilling, folder, form, publishing)
    if resume_key is not None and for_this_run:  # and not a key that was there for something else
        Path(resume_key).unlink(missing_ok=True)
    return release


def _mark(source: TableSource, mechanism: Mechanism, options: RunOptions, granted: int, form: FileForm) -> str:
    """The options of a run and what it reads, as a digest: rows put aside by another are of no use to it."""
    found = source.path.stat()
    parts = [__version__, str(mechanism), str(granted), str(form), str(found.st_size), str(found.st_mtime_ns)]
    parts += [source.form.delimiter, *map(":".join, sorted(source.form.numerals.marks.items()))]
    for name, value in sorted(vars(options).items()):
        if name in _OF_THIS_MACHINE:
            continue
        if isinstance(value, Schema):
            value = value.to_toml()
        elif isinstance(value, Path):
            value = value.read_bytes() if value.is_file() else value
        elif name == "holdout" and value is not None and not isinstance(value, float):
            value = hashlib.blake2b(frame_of(to_arrow(value)[0])).hexdigest()
        parts.append(f"{name}={value!r}")
    return hashlib.blake2b("\n".join(parts).encode(), digest_size=32).hexdigest()


def run_key(path: str | Path | None, folder: Path) -> bytes:
    """Key of a run: fresh, or that of the file of one that can be resumed, which is made where it is not there."""
    if path is None:
        return secrets.token_bytes(32)
    place = Path(path)
    if folder.absolute() in place.absolute().parents or folder.resolve() in place.resolve().parents:
        raise OptionError("the key to resume with lies in the output folder, part of which leaves; keep it elsewhere")
    if os.path.lexists(place):
        text = read_bytes(
            place, "key to resume with", "name the file that the stopped run wrote", most=200, linked=False
        )
        if place.stat().st_mode & 0o077:
            raise OptionError("the key to resume with may be read by others; close it to them (chmod 600)")
        try:
            key = bytes.fromhex(text.decode("ascii").strip())
        except ValueError:
            key = b""
        if len(key) != 32:
            raise OptionError("the key to resume with is none; name the file that the stopped run wrote, or a new one")
        return key
    key = secrets.token_bytes(32)
    try:
        handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise OptionError(f"the key to resume with cannot be written ({reason(error)}); choose another place") from None
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write(key.hex() + "\n")
        file.flush()
        os.fsync(handle)
    return key


@contextmanager
def _spilling(folder: Path, key: bytes, *, kept: bool) -> Iterator[Spill]:
    """Hidden place beside the output for rows that wait; gone at the end, unless a stopped run is to be resumed."""
    folder.absolute().parent.mkdir(parents=True, exist_ok=True)
    if not kept:
        discard_kept(folder)
    with kept_folder(folder) if kept else work_folder(folder.absolute()) as place:
        yield FileSpill(place, key)


def release_moved(
    source: TableSource | ClusterFile,
    folder: str | Path,
    mechanism: Mechanism,
    options: RunOptions,
    publishing: Publishing,
    *,
    new_key: str | Path | None,
) -> Release:
    """Move a file of any length in batches, here or on the cluster that reads it, and write a whole release folder.

    Folder and key appear together.
    """
    mover = check_moved(mechanism, options, new_key, folder)
    randomness, form, numbered = Randomness(options.seed), source.form, None
    spreadsheet_safe = publishing.options.spreadsheet_safe
    if isinstance(source, TableSource):
        sample = sample_file(source, SAMPLE_ROWS, randomness.generator("sample"))
    else:
        check_quotes(form, spreadsheet_safe=spreadsheet_safe)
        randomness, numbered = randomness.repeatable(), number_rows(source.frame)
        sample = sample_on_spark(source.frame, numbered, SAMPLE_ROWS, randomness)
    tried = try_on_sample(sample, mover, randomness, options)
    known_columns(publishing.options.quasi_identifiers, tried.plan.schema)  # before the work is done

    def run(place: Path, _: None) -> Outcome:
        if isinstance(source, TableSource):
            return run_in_chunks(tried, source, place, batch_rows=options.batch_rows, spreadsheet_safe=spreadsheet_safe)
        assert numbered is not None
        return move_on_spark(
            source.frame,
            numbered,
            tried,
            sample.schema,
            batch_rows=options.batch_rows,
            csv=form.format is FileFormat.CSV,
            into=lambda kinds: open_sink(place, kinds, form, spreadsheet_safe=spreadsheet_safe),
            spreadsheet_safe=spreadsheet_safe,
        )[0]

    return write_around(run, keeping_key(tried.key, new_key, folder), folder, form, publishing)


def frame_moved_on_spark(frame: Any, mechanism: Mechanism, options: RunOptions) -> tuple[Outcome, Any]:
    """What comes of a data frame of Spark that is moved by a key, and the released rows as one."""
    mover = _mover_of(mechanism, options)
    randomness, numbered = Randomness(options.seed).repeatable(), number_rows(frame)
    sample = sample_on_spark(frame, numbered, SAMPLE_ROWS, randomness)
    return move_on_spark(frame, numbered, try_on_sample(sample, mover, randomness, options), sample.schema)


def check_moved(mechanism: Mechanism, options: RunOptions, new_key: str | Path | None, folder: str | Path) -> Geometric:
    """Mechanism that transforms rows one by one; refuses options that need all rows, or another key."""
    mover = _mover_of(mechanism, options)
    if (mover.given_key is None) == (new_key is None):
        raise OptionError("a file is moved either by the mechanism's key or by a new one; give --key or --new-key")
    if new_key is not None:
        check_key_path(new_key, apart_from=folder)
    return mover


def _mover_of(mechanism: Mechanism, options: RunOptions) -> Geometric:
    """Mechanism that transforms rows one by one, if no option needs all rows at once."""
    mover, needs = in_chunks(mechanism), first_needing_all_rows(options, batches=True)
    if needs is not None:
        raise OptionError(f"{needs} needs all rows at once, and a file is moved in batches; leave it out")
    return mover


T = TypeVar("T")


def check_quotes(form: FileForm, *, spreadsheet_safe: bool) -> None:
    """Refuse apostrophes before formulas in a file that no spreadsheet takes for text."""
    if spreadsheet_safe and form.format is not FileFormat.CSV:
        raise OptionError("apostrophes before formulas are for CSV; drop --spreadsheet-safe, or write CSV")


def write_around(
    run: Callable[[Path, T], Outcome],
    beside: AbstractContextManager[T],
    folder: str | Path,
    form: FileForm,
    publishing: Publishing,
) -> Release:
    """Release of what a run writes to a place, with certificate, report and all else in the folder around it.

    ``beside`` is what the run needs as long as it lasts, and what must stay or vanish together with the folder.
    """
    overwrite = publishing.options.overwrite
    with plain_errors("the release"), beside as held, replacing_folder(folder, overwrite=overwrite) as work:
        (work / "release").mkdir()
        place = work / "release" / f"table.{form.format.value}"
        outcome = run(place, held).read_by(publishing.reading)
        release = publish(dataclasses.replace(outcome, table=place), publishing.options)
        release = release.write_into(work, form, publishing.signer)
    return dataclasses.replace(release, table=Path(folder, "release", place.name), folder=Path(folder))
