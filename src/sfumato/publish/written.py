"""A release folder around a table that an engine writes into it itself, whole or not at all."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TypeVar

from sfumato.core.errors import OptionError, SfumatoError
from sfumato.core.replacing import reason
from sfumato.engines.outcome import Outcome
from sfumato.publish.folder import replacing_folder
from sfumato.publish.known import known_columns
from sfumato.publish.policy import Policy
from sfumato.publish.release import Release, publish
from sfumato.publish.signature import Signer
from sfumato.tables.files import FileForm, FileFormat

__all__ = ["check_quotes", "form_on_cluster", "write_around"]

T = TypeVar("T")


def form_on_cluster(source: str | Path) -> FileForm:
    """How a file is written that a cluster reads: CSV by its name, and all else Parquet."""
    csv = str(source).lower().endswith((".csv", ".csv.gz"))
    return FileForm(FileFormat.CSV if csv else FileFormat.PARQUET)


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
