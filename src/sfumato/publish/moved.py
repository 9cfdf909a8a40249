"""Releases of tables whose rows a key moves one by one: a file in batches, or a data frame of a cluster.

And the folder around any table that an engine writes into it itself, whole or not at all.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TypeVar

from sfumato.core.errors import OptionError, SfumatoError
from sfumato.core.randomness import Randomness
from sfumato.core.replacing import reason
from sfumato.engines.chunks import sample_file
from sfumato.engines.chunks.run import SAMPLE_ROWS, Geometric, Tried, in_chunks, run_in_chunks, try_on_sample
from sfumato.engines.chunks.source import Source
from sfumato.engines.chunks.transform import writing
from sfumato.engines.outcome import Outcome
from sfumato.engines.spark import ClusterFile, move_on_spark, number_rows, sample_on_spark
from sfumato.mechanisms.geometry.key import check_key_path, keeping_key
from sfumato.mechanisms.protocol import Mechanism
from sfumato.publish.folder import replacing_folder
from sfumato.publish.policy import Policy
from sfumato.publish.release import Release, publish
from sfumato.publish.signature import Signer
from sfumato.tables.files import FileForm, FileFormat
from sfumato.tables.recoding import known_columns

__all__ = [
    "check_moved",
    "check_quotes",
    "frame_moved_on_spark",
    "release_moved",
    "release_moved_on_spark",
    "write_around",
]

_COLUMNS = ("schema", "target", "identifiers", "public", "person", "rows_are_people")


def release_moved(
    source: Source,
    folder: str | Path,
    mechanism: Mechanism,
    told: Mapping[str, Any],
    *,
    new_key: str | Path | None,
    batch_rows: int | None,
    sample_rows: int,
    spreadsheet_safe: bool,
    **publishing: Any,
) -> Release:
    """Move a file of any length in batches and write a whole release folder; folder and key appear together."""
    mover, choices = check_moved(mechanism, told, new_key, folder)
    randomness = Randomness(told["seed"])
    sample = sample_file(source, sample_rows, randomness.generator("sample"))
    tried = try_on_sample(sample, mover, randomness, **choices)

    def run(place: Path) -> Outcome:
        return run_in_chunks(tried, source, place, batch_rows=batch_rows, spreadsheet_safe=spreadsheet_safe)

    return _written(run, tried, folder, source.form, new_key, **publishing)


def release_moved_on_spark(
    source: ClusterFile,
    folder: str | Path,
    mechanism: Mechanism,
    told: Mapping[str, Any],
    *,
    new_key: str | Path | None,
    batch_rows: int | None,
    sample_rows: int,
    spreadsheet_safe: bool,
    **publishing: Any,
) -> Release:
    """Move a file that a cluster reads and write a whole release folder here; the rows come batch by batch."""
    mover, choices = check_moved(mechanism, told, new_key, folder)
    frame, form = source.frame, source.form
    check_quotes(form, spreadsheet_safe=spreadsheet_safe)
    randomness, numbered = Randomness(told["seed"]).repeatable(), number_rows(frame)
    sample = sample_on_spark(frame, numbered, sample_rows, randomness)
    tried = try_on_sample(sample, mover, randomness, **choices)

    def run(place: Path) -> Outcome:
        return move_on_spark(
            frame,
            numbered,
            tried,
            sample.schema,
            batch_rows=batch_rows,
            csv=form.format is FileFormat.CSV,
            into=lambda kinds: writing(place, kinds, form, spreadsheet_safe=spreadsheet_safe),
            spreadsheet_safe=spreadsheet_safe,
        )[0]

    return _written(run, tried, folder, form, new_key, **publishing)


def frame_moved_on_spark(frame: Any, mechanism: Mechanism, told: Mapping[str, Any]) -> tuple[Outcome, Any]:
    """What comes of a data frame of Spark that is moved by a key, and the released rows as one."""
    mover, choices = _settled(mechanism, told)
    randomness, numbered = Randomness(told["seed"]).repeatable(), number_rows(frame)
    sample = sample_on_spark(frame, numbered, SAMPLE_ROWS, randomness)
    return move_on_spark(frame, numbered, try_on_sample(sample, mover, randomness, **choices), sample.schema)


def check_moved(
    mechanism: Mechanism, told: Mapping[str, Any], new_key: str | Path | None, folder: str | Path
) -> tuple[Geometric, dict[str, Any]]:
    """Mechanism that moves rows one by one and what is told of columns; refuses what needs all rows, or another key."""
    mover, choices = _settled(mechanism, told)
    if (mover.given_key is None) == (new_key is None):
        raise OptionError("a file is moved either by the mechanism's key or by a new one; give a key or new_key")
    if new_key is not None:
        check_key_path(new_key, apart_from=folder)
    return mover, choices


def _settled(mechanism: Mechanism, told: Mapping[str, Any]) -> tuple[Geometric, dict[str, Any]]:
    """Mechanism that moves rows one by one, and what may be told of columns; all else needs all rows at once."""
    mover = in_chunks(mechanism)
    whole = (name for name in told if name not in (*_COLUMNS, "seed"))
    needs = next((name for name in whole if told[name] not in (None, False)), None)
    if needs is not None:
        raise OptionError(f"{needs!r} needs all rows at once, and a file is moved in batches; leave it out")
    return mover, {name: told[name] for name in _COLUMNS}


def _written(
    run: Callable[[Path], Outcome],
    tried: Tried,
    folder: str | Path,
    form: FileForm,
    new_key: str | Path | None,
    **publishing: Any,
) -> Release:
    """Run what writes a table and write the folder around it; folder and key appear together."""
    known_columns(publishing["known"], tried.plan.schema)  # before the work is done
    key = keeping_key(tried.key, new_key, folder)
    return write_around(lambda place, _: run(place), key, folder, form, **publishing)


T = TypeVar("T")


def check_quotes(form: FileForm, *, spreadsheet_safe: bool) -> None:
    """Refuse apostrophes before formulas in a file that no spreadsheet takes for text."""
    if spreadsheet_safe and form.format is not FileFormat.CSV:
        raise OptionError("apostrophes before formulas are for CSV; leave out spreadsheet_safe, or write CSV")


def write_around(
    run: Callable[[Path, T], Outcome],
    beside: AbstractContextManager[T],
    folder: str | Path,
    form: FileForm,
    *,
    signer: Signer | None,
    overwrite: bool,
    report: bool,
    budget: float | None,
    known: Sequence[str],
    policy: Policy | None,
    despite_policy: bool,
    command: Sequence[str] = (),
) -> Release:
    """Release of what a run writes to a place, with certificate, report and all else in the folder around it.

    ``beside`` is what the run needs as long as it lasts, and what must stay or vanish together with the folder.
    """
    try:
        with beside as held, replacing_folder(folder, overwrite=overwrite) as work:
            (work / "release").mkdir()
            place = work / "release" / f"table.{form.format.value}"
            outcome = run(place, held)
            release = publish(
                dataclasses.replace(outcome, table=place),
                report=report,
                budget=budget,
                known=known_columns(known, outcome.recipe.schema),
                policy=policy,
                despite_policy=despite_policy,
                command=command,
            ).write_into(work, form, signer)
    except OSError as error:
        raise SfumatoError(f"the release could not be written ({reason(error)}); nothing was changed") from None
    return dataclasses.replace(release, table=Path(folder, "release", place.name), folder=Path(folder))
