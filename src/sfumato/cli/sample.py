"""The verb sample: rows from the model of a private release."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

from sfumato.cli.console import Console, Verb, VerbGroup, verb
from sfumato.cli.options import COUNT, FILE, check_new, options, passphrase_prompt
from sfumato.core.errors import OptionError, SfumatoError
from sfumato.core.replacing import reason, replacing_file

if TYPE_CHECKING:
    from sfumato.tables.source import TableSink

__all__ = ["sample", "signing_key"]


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
    from sfumato.tables.source import open_sink

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


@click.group("signing-key", cls=VerbGroup)
def signing_key() -> None:
    """Your signing key: it signs releases, and recipients check its fingerprint.

    It is created at first use, in the folder sfumato of your configuration folder. All releases signed with one key are
    linkable to one owner; use other keys (--sign FILE) if they must not be.
    """


@signing_key.command()
@verb
def show(console: Console) -> None:
    """Print the fingerprint and the public key."""
    from sfumato.certificate.signature import signing_key as find

    key = find(ask=passphrase_prompt())
    console.say(key.fingerprint)
    console.say(key.public_key)
    console.result({"fingerprint": key.fingerprint, "public_key": key.public_key, "path": str(key.path)})


@signing_key.command()
@click.argument("file", type=FILE)
@options(overwrite="Replace an existing file.")
@verb
def export(console: Console, file: Path, overwrite: bool) -> None:
    """Write the public key to FILE for recipients; verify reads it with --signer."""
    from sfumato.certificate.signature import signing_key as find

    key = find(ask=passphrase_prompt())
    key.export(file, overwrite=overwrite)
    console.say(f"The public key of {key.fingerprint} is written to {file}: give it to recipients, not with a release.")
    console.result({"fingerprint": key.fingerprint, "file": str(file)})


@signing_key.command()
@verb
def path(console: Console) -> None:
    """Print the path of the private key."""
    from sfumato.certificate.signature import signing_key_path

    place = signing_key_path()
    console.say(str(place))
    console.result({"path": str(place), "exists": place.exists()})


@signing_key.command()
@click.option("--replace", is_flag=True, help="Replace the current key; the earlier one is kept next to it.")
@verb
def new(console: Console, replace: bool) -> None:
    """Create a new signing key. Earlier releases remain signed by the earlier key."""
    from sfumato.certificate.signature import new_signing_key

    key = new_signing_key(replace=replace)
    console.say(
        f"{key.fingerprint}\nYour signing key is {key.path}: keep a copy of it, and tell recipients this fingerprint."
    )
    if key.kept is not None:
        console.say(f"The earlier key is kept as {key.kept}.")
    kept = None if key.kept is None else str(key.kept)
    console.result({"fingerprint": key.fingerprint, "path": str(key.path), "kept": kept})
