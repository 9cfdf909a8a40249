"""stream: dynamic condensation with a durable state, published by epochs."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

import sfumato as sf
from sfumato.cli.console import INTERRUPTED, Console, VerbGroup, verb
from sfumato.cli.options import (
    COUNT,
    FILE,
    INPUT,
    check_output,
    keeping_owner_part,
    options,
    options_in,
    signer_at,
    tell_signer,
)
from sfumato.core.arguments import Panel
from sfumato.core.errors import OptionError
from sfumato.stream.options import StreamOptions
from sfumato.tables.reading import FileReading, describe_reading, read_people

if TYPE_CHECKING:
    from sfumato.stream.settings import BatchReceipt, Status

__all__ = ["stream"]

_EVERY = 1.0  # seconds between two words about progress

_state = click.option(
    "--state", required=True, metavar="FILE|URL", panel=Panel.FIRST, help="State: a file or a database URL."
)


@click.group(cls=VerbGroup)
def stream() -> None:
    """Dynamic condensation of arriving records, published by epochs that resist differencing attacks.

    init creates a state from the first records, ingest adds records, publish writes a release, status checks the state,
    attack runs the differencing attack on published epochs, forget deletes rows kept for measuring. The state is a file
    or a PostgreSQL database (by its URL). Keep it private.
    """


@stream.command("init")
@click.argument("file", metavar="FILE", type=INPUT)
@_state
@options("target", "identifiers", "person", first=True, schema="Schema file; its domains apply to all rows.")
@options("level", "strata", "missing", "rare", "tails")
@options_in(StreamOptions)
@options("seed", recipe="Start with the settings of another stream: its recipe.toml.")
@options("sheet", "header_row", "encoding")
@verb
def init(
    console: Console,
    file: str,
    state: str,
    *,
    schema: Path | None,
    measure_rows: int | None,
    encoding: str | None,
    sheet: str | None,
    header_row: int | None,
    **arguments: Any,
) -> None:
    """Create a state from the first records, in FILE; they count as ingested.

    FILE is a .csv, .csv.gz, .xlsx, .ods, .parquet, .arrow or .feather file, or - for CSV on standard input.
    """
    from sfumato.tables.schema import missing_marks

    known = None if schema is None else sf.Schema.load(schema)
    marks = missing_marks(known, arguments["missing"])
    reading = FileReading(encoding=encoding, sheet=sheet, header_row=header_row)
    table, form = read_people(file, reading, missing=marks)
    if form.is_detected:
        console.say(describe_reading(file, form))
    with console.progress():
        sf.stream(state, table, schema=known, measure_rows=measure_rows or 0, form=form, **arguments)
    if known is not None:
        _note_observed(console, known, {arguments["level"], *arguments["identifiers"]})
    _tell(console, state)


def _note_observed(console: Console, schema: Any, dropped: set[str | None]) -> None:
    bounded = [
        field.name
        for field in schema.encoded
        if field.name not in dropped
        and not field.domain.declared
        and (field.domain.low is not None or field.domain.high is not None)
    ]
    if bounded:
        console.note(
            f"Note: {len(bounded)} columns have bounds that were read off data ({', '.join(map(repr, bounded[:5]))}); "
            "rows outside them will be excluded. Declare the bounds, or remove them, to include such rows."
        )


@stream.command("ingest")
@click.argument("inputs", metavar="INPUT...", nargs=-1, required=True, type=INPUT)
@_state
@options_in(StreamOptions, "pending_key", "person_key", "measure_key", "source")
@click.option("--batch-rows", type=COUNT, panel=Panel.ENGINE, help="As at init.")
@click.option(
    "--stdin-format",
    "form",
    type=click.Choice(["csv", "jsonl"]),
    panel=Panel.INPUT,
    help="Format of standard input.  [default: detected]",
)
@click.option(
    "--acknowledge",
    is_flag=True,
    panel=Panel.OUTPUT,
    help="Print the identifier of each batch on stderr once it is on disk.",
)
@options("encoding", header_row="Line of CSV that names the columns, counted from 1, of every INPUT.")
@verb
def ingest(
    console: Console,
    inputs: tuple[str, ...],
    state: str,
    *,
    pending_key: Path | None,
    measure_key: Path | None,
    person_key: Path | None,
    batch_rows: int | None,
    acknowledge: bool,
    **arguments: Any,
) -> None:
    """Add rows to a state; each batch is on disk before the next is read.

    INPUT is a file of .csv, .csv.gz, .parquet, .arrow or .feather, a folder of such files, or - for CSV or JSON lines
    on standard input. If interrupted, run it again on the same input: no row is counted twice. Rows with a value
    outside the declared domain are excluded and counted.
    """
    from sfumato.stream.connectors import ReadOptions, read_batches
    from sfumato.stream.session import StreamSession

    with StreamSession.open(state, pending_key=pending_key, measure_key=measure_key, person_key=person_key) as session:
        rows = session.settings.batch_rows
        if batch_rows not in (None, rows):
            raise OptionError(
                f"this state cuts its sources into batches of {rows} rows; another size would make known rows look "
                "new, so drop --batch-rows"
            )
        words = _Words(console, acknowledge=acknowledge)
        reading = ReadOptions(
            rows=rows,
            columns=session.codec.schema.names,
            known=session.known,
            marks=session.settings.marks,
            **arguments,
        )
        try:
            done = session.ingest((batch for place in inputs for batch in read_batches(place, reading)), tell=words)
        except KeyboardInterrupt:
            click.echo(
                f"sfumato: interrupted; {words.batches} batches are on disk, run it again to continue",
                err=True,
            )
            sys.exit(INTERRUPTED)
        status = session.status()
    console.say(
        f"New rows: {done.rows}, in batches: {done.batches}. Added to groups: {done.absorbed}; "
        f"pending: {done.pending}; excluded: {done.quarantined}; already ingested: {done.repeated}."
        + (f" Held out for measuring: {done.outside}." if done.outside else "")
    )
    _say_status(console, status)
    console.result({"ingested": done, **vars(status)})


class _Words:
    """Says how far ingestion has come, on stderr."""

    def __init__(self, console: Console, *, acknowledge: bool) -> None:
        self._console, self._acknowledge = console, acknowledge
        self._rows, self._next = 0, time.monotonic() + _EVERY
        self.batches = 0

    def __call__(self, done: BatchReceipt) -> None:
        self.batches += 1
        self._rows += done.rows + done.repeated
        if self._acknowledge:
            click.echo(f"acknowledged {done.batch}", err=True)
        elif sys.stderr.isatty() and time.monotonic() > self._next:
            self._next = time.monotonic() + _EVERY
            self._console.note(f"{self._rows} rows in {self.batches} batches")


@stream.command("publish")
@_state
@click.option("-o", "--output", required=True, type=FILE, help="Folder for release/ and owner/.")
@options("report", form="[default: the first rows']")
@options_in(StreamOptions, "measure_key")
@options("policy", "despite_policy", "sign", "no_sign", "overwrite")
@verb
def publish(
    console: Console,
    state: str,
    output: Path,
    report: bool,
    sign: Path | None,
    no_sign: bool,
    overwrite: bool,
    **arguments: Any,
) -> None:
    """Start an epoch and write its release: new rows for groups with enough new records, the earlier rows for others.

    Send FOLDER/release/; keep FOLDER/owner/ private. Exits with 3 if no release is allowed yet.
    """
    from sfumato.stream.facts import EpochPublished
    from sfumato.tables.facts import RareValues

    check_output(output, overwrite=overwrite)
    try:
        with keeping_owner_part(console, output, overwrite=overwrite), console.progress():
            chosen: Any = None  # the owner's own key, unless the state is of a dry run
            if no_sign or sign is not None:
                chosen = signer_at(sign, output, no_sign=no_sign, dry_run=False) or False
            options = {"report": report, "overwrite": overwrite, "sign": chosen, **arguments}
            release = sf.stream(state).publish(output, **options)
    except KeyboardInterrupt:
        click.echo("sfumato: interrupted; if the epoch was started, publish again to write its folder", err=True)
        sys.exit(INTERRUPTED)
    line = [fact for fact in release.certificate.facts if isinstance(fact, EpochPublished)][-1]
    console.say(
        f"Epoch {line.epoch}: {line.rows} rows. Families of groups with new rows: {line.renewed}; with the rows of an "
        f"earlier epoch: {line.repeated}."
    )
    for fact in release.certificate.facts:
        if isinstance(fact, RareValues):
            console.say(fact.treatment)
    if release.certificate.randomness != "release":
        console.say("DRY RUN: made with a seed, not for release.")
    console.say(f"To send:      {output / 'release'}")
    console.say(f"Keep private: {output / 'owner'}")
    tell_signer(console, release)
    arguments = {"randomness": release.certificate.randomness, "signed_by": release.signed_by}
    console.result({"folder": str(output), **vars(line), **arguments})


@stream.command("attack")
@click.argument("releases", metavar="RELEASE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@_state
@options_in(StreamOptions, "measure_key")
@verb
def attack(console: Console, releases: tuple[Path, ...], state: str, measure_key: Path | None) -> None:
    """Run the differencing attack on published epochs: what they disclose of arrivals in between.

    RELEASE... are two or more folders 'release' of this stream, in the order of their epochs; each is verified first.
    With --measure-key the sampled arrivals in the state are attacked. Without it, the command prints how many rows
    changed and the smallest number of new records behind a change. Exits with 0 even if the attack succeeds.
    """
    with console.progress():
        found = sf.stream(state).attack(releases, measure_key=measure_key)
    for pair in found.pairs:
        fewest = "no group changed" if pair.fresh is None else f"at least {pair.fresh} new records behind each change"
        console.say(
            f"Epoch {pair.first} to {pair.last}: {pair.changed} of {pair.rows} rows are new; {fewest}; "
            f"{pair.arrived} sampled records arrived in between."
        )
    for finding in found.findings:
        if finding.value is None:
            console.say(f"{finding.name}: not run ({finding.reason})")
        else:
            low, high = finding.interval or (finding.value, finding.value)
            console.say(
                f"{finding.name}: {finding.value:.1%} (95 % CI {low:.1%} to {high:.1%}; {finding.attempts} attempts), "
                f"baseline {finding.baseline or 0.0:.1%}"
            )
    console.say(found.words())
    console.result(found.to_json())


@stream.command("forget")
@_state
@verb
def forget(console: Console, state: str) -> None:
    """Delete the rows kept for measuring from a state, permanently; needs no key.

    People who were held out stay held out and are counted; later certificates state the deletion. Backups, older
    copies, disk snapshots and database logs are not changed; delete them yourself.
    """
    found = sf.stream(state).forget()
    _say_status(console, found)
    console.result(vars(found))


@stream.command("status")
@_state
@verb
def status(console: Console, state: str) -> None:
    """Check a state and print its status."""
    _tell(console, state)


def _tell(console: Console, state: str) -> None:
    found = sf.stream(state).status()
    _say_status(console, found)
    console.result(vars(found))


def _say_status(console: Console, found: Status) -> None:
    for line in found.lines():
        console.say(line)
