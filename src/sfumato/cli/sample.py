"""The verb sample: rows from the model of a private release."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

from sfumato.cli.console import Console, verb
from sfumato.cli.options import COUNT, FILE, check_new, options
from sfumato.cli.panels import Verb
from sfumato.core.errors import OptionError, SfumatoError
from sfumato.core.replacing import reason, replacing_file

if TYPE_CHECKING:
    from sfumato.tables.sink import TableSink

__all__ = ["sample"]


@click.command(cls=Verb)
@click.argument("model", metavar="MODEL", type=FILE)
@click.option("-o", "--output", required=True, type=FILE, help="File for the rows: .csv, .parquet, .arrow or .feather.")
@click.option("--rows", type=COUNT, metavar="N", help="How many.  [default: the model's number of people]")
@click.option("--where", metavar="RULE", help="Only rows that fulfil a rule such as 'age > 60 and sex == F'.")
@options(seed="Draw the same rows again.", overwrite="Replace an existing file.")
@verb
def sample(
    console: Console, model: Path, output: Path, rows: int | None, where: str | None, seed: int | None, overwrite: bool
) -> None:
    """Draw rows from the model of a private release, at no further cost of privacy.

    MODEL is the file model.json that left with the release. Whoever has it can draw any number of rows.
    """
    from sfumato.core.randomness import Mode
    from sfumato.methods.private.sample import sample_batches
    from sfumato.methods.private.stored import StoredModel
    from sfumato.tables.files import ENDINGS, FileForm, FileFormat, ending_of
    from sfumato.tables.sink import open_sink

    check_new(output, overwrite=overwrite)
    form = FileForm(ENDINGS.get(ending_of(output) or "", FileFormat.XLSX))
    if form.format not in (FileFormat.CSV, FileFormat.PARQUET, FileFormat.ARROW):
        raise OptionError("the file of -o must end in .csv, .csv.gz, .parquet, .arrow or .feather")
    stored = StoredModel.load(model)
    drawn = 0
    try:
        with console.progress(), replacing_file(output) as work, ExitStack() as opened:
            sink: TableSink | None = None
            for part in sample_batches(stored, rows, where, seed):
                if sink is None:
                    zipped = output.name.lower().endswith(".gz")
                    sink = opened.enter_context(open_sink(work, part.schema, form, zipped=zipped))
                for batch in part.to_batches():
                    sink.write(batch)
                drawn += part.num_rows
    except OSError as error:
        raise SfumatoError(f"the file could not be written ({reason(error)}); nothing was changed") from None
    dry_run = stored.randomness is Mode.DRY_RUN
    console.say(f"{drawn:,} rows: {output}")
    if dry_run:
        console.say("The model was made by a dry run, so its rows are not for release.")
    console.result({"file": str(output), "rows": drawn, "dry_run": dry_run})
