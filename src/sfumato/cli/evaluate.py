"""Verbs on a release: evaluate, tune, sample and signing-key."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

import sfumato as sf
from sfumato.cli.console import Console, Verb, VerbGroup, verb
from sfumato.cli.options import (
    COUNT,
    FILE,
    INPUT,
    check_new,
    check_output,
    command_words,
    files_named,
    holdout_of,
    options,
    options_of_verb,
    passphrase_prompt,
    take_reading,
    time_limit_words,
)
from sfumato.core.arguments import Panel
from sfumato.core.errors import OptionError, PrivacyRefusal, SfumatoError
from sfumato.core.replacing import reason, replacing_file
from sfumato.options import PublishOptions, RunOptions, options_from
from sfumato.tables.reading import FileReading, describe_reading, read_people

if TYPE_CHECKING:
    from sfumato.publish.evaluate import Evaluation
    from sfumato.tables.files import FileForm
    from sfumato.tables.source import TableSink

__all__ = ["evaluate", "sample", "signing_key", "tune"]

_OF_MAKING = ("level", "strata", "allow_level_1", "recipe", "format", "method", "k")
"""Options of sanitize that say how a table is made."""


def _refused_options(function: Callable[..., None]) -> Callable[..., None]:
    """Accept the options of making, hidden, so that they are refused in words."""
    for name in _OF_MAKING:
        spelt = f"--{name.replace('_', '-')}"
        function = click.option(spelt, is_flag=name == "allow_level_1", hidden=True)(function)
    return function


@click.command(cls=Verb)
@click.argument("original", metavar="ORIGINAL", type=INPUT)
@click.argument("released", metavar="RELEASED", type=INPUT)
@options(first=True, output="Folder for the owner's and the public report.")
@options_of_verb("evaluate")
@_refused_options
@options(most_bytes="Largest RELEASED or hold-out file, in bytes, unpacked.  [default: 1 GiB, or 20 times ORIGINAL]")
@options("query")
@verb
def evaluate(
    console: Console,
    original: str,
    released: str,
    output: Path | None,
    *,
    most_bytes: int | None,
    query: str | None,
    **arguments: Any,
) -> None:
    """Measure utility and disclosure risk of a table made by any tool, against its original.

    Runs at the data owner's. Both are .csv, .csv.gz, .xlsx, .ods, .sqlite, .parquet, .arrow or .feather files; one may
    be - for CSV on standard input, and ORIGINAL may be a database URL with --query. RELEASED may be the folder
    'release' that sanitize wrote. Without -o the summary is printed and no file is written.
    """
    from sfumato.publish.attainable import PlannedRun, refuse_unattainable
    from sfumato.publish.evaluate import check_evaluation_folder, compare_tables, most_unpacked
    from sfumato.publish.judge import asked_policy
    from sfumato.tables.schema import missing_marks

    options, publishing = options_from(RunOptions, arguments), options_from(PublishOptions, arguments)
    _refuse(original, released, options.holdout, next((name for name in _OF_MAKING if arguments[name]), None))
    if output is not None:
        check_evaluation_folder(output, overwrite=publishing.overwrite, inputs=files_named())
    planned = PlannedRun(control=options.holdout is not None, how_to_control="add --holdout FILE")
    asked = asked_policy(publishing.policy, despite=publishing.despite_policy)
    refuse_unattainable(asked, planned, despite=publishing.despite_policy)
    own, missing = options_from(FileReading, arguments), missing_marks(options.schema, options.missing)
    before, form = read_people(original, own, query=query, missing=missing)
    most = most_unpacked(before, most_bytes)
    _say_found(console, original, form)
    read_other = partial(read_people, reading=own.of_other_file(form), missing=missing, most_bytes=most)
    after = read_other("-")[0] if released == "-" else released
    outside = None if options.holdout is None else read_other(options.holdout)[0]
    options, publishing = replace(options, holdout=outside), replace(publishing, command=command_words())
    with console.progress():
        written = FileReading(encoding=own.encoding)  # ORIGINAL is read already, with a sheet and a header of its own
        evaluation = compare_tables(before, after, options, publishing, written, most_bytes=most)
        if output is not None:
            evaluation.save(output, overwrite=publishing.overwrite)
    _tell(console, evaluation, output)
    verdict = evaluation.report.verdict
    if verdict is not None and verdict.refuses and not publishing.despite_policy:
        raise PrivacyRefusal(f"{verdict.clause}; the report gives the reasons and what to change")


def _say_found(console: Console, source: str, form: FileForm) -> None:
    """Say how a file was read, if something was detected that could be otherwise."""
    if form.is_detected:
        console.say(describe_reading(source, form))


def _refuse(original: str, released: str, holdout: str | None, made: str | None) -> None:
    if made is not None:
        name = made.replace("_", "-")
        raise OptionError(f"--{name} sets how a release is made, and this release exists already; drop it")
    if original == released == "-":
        raise OptionError("only one table can be read from standard input; give the other as a file")
    if "://" in released:
        raise OptionError("the released table is read from a file, not from a database; save it first")
    try:
        float(holdout or "file")
    except ValueError:
        return
    raise OptionError("the release exists already, so no share can be held out; give a file of hold-out rows")


def _tell(console: Console, evaluation: Evaluation, folder: Path | None) -> None:
    report = evaluation.report
    for note in evaluation.notes:
        console.note(f"Note: {note}.")
    parts = report.lines()
    if (words := time_limit_words(report)) is not None:
        parts.append((5, words))
    if evaluation.certificate is None:
        none = "The released table has no certificate: these are measurements without guarantees."
        parts.append((1, none))
    if folder is not None:
        stays = f"Keep private: {folder / 'report.html'} (read it first) and {folder / 'report.json'}"
        parts += [(0, stays), (0, f"To send:        {folder / 'report-public.html'}")]
    console.tell(parts)
    console.result(
        {
            **evaluation.to_json(),
            "certified": evaluation.certificate is not None,
            "folder": None if folder is None else str(folder),
        }
    )


_OF_TUNING = ("methods", "metric", "search", "time_limit", "holdout", "seed", "output", "overwrite", "k")


@click.command(cls=Verb)
@click.argument("source", metavar="INPUT", type=INPUT)
@options(first=True, output="Folder for report.html, report.json and, if a setting meets the policy, recipe.toml.")
@click.option(
    "--methods",
    metavar="A,B",
    panel=Panel.FIRST,
    help="Methods to try: chain, private, condense, classwise, condense-paper.  [default: the first four]",
)
@click.option(
    "--k",
    type=int,
    panel=Panel.FIRST,
    help="Smallest group size to try, if above the policy's.",
)
@click.option(
    "--metric",
    metavar="NAME",
    panel=Panel.METHOD,
    help="Utility: auc-boosting, balanced-accuracy-logistic, r2-ridge, response-accuracy-1nn, likeness and others.",
)
@click.option(
    "--search",
    panel=Panel.METHOD,
    type=click.Choice(["halving", "rule-based", "brute-force"]),
    default="halving",
    show_default=True,
    help="Search algorithm; the last two are the paper's, for group sizes.",
)
@options_of_verb("tune")
@options("query")
@verb
def tune(
    console: Console,
    source: str,
    output: Path | None,
    *,
    holdout: str | None,
    policy: str | None,
    overwrite: bool,
    **arguments: Any,
) -> None:
    """Search methods and group sizes for the most useful release of INPUT that meets a policy.

    Ends at the time limit or at Ctrl-C with the results so far, and prints the command line of the best release. If no
    setting meets the policy, it prints the nearest one and the reason.
    """
    from sfumato.publish.policy import USUAL
    from sfumato.tuning.model import save_tuning
    from sfumato.tuning.run import check_tuning

    if output is not None:
        check_output(output, overwrite=overwrite, contents="tuning")
    given = {name: arguments[name] for name in ("time_limit", "search", "metric", "methods", "rare")}
    check_tuning(policy or USUAL, **given)
    reading, query, missing = take_reading(arguments)
    table, form = read_people(source, reading, query=query, missing=missing)
    _say_found(console, source, form)
    outside: Any = holdout_of(holdout, reading.of_other_file(form), missing)
    without = tuple(name for name in _OF_TUNING if name != "holdout" or outside is None or isinstance(outside, float))
    with console.progress(lines=True):
        tuning = sf.tune(
            table,
            policy=policy or USUAL,
            holdout=outside,
            command=command_words(without=without),
            read=reading.repeated(form),
            **arguments,
        )
        if output is not None:
            save_tuning(tuning, output, overwrite=overwrite)
    lines = tuning.lines()
    if output is not None:
        lines.append((0, f"Look at: {output / 'report.html'}"))
    console.tell(lines)
    console.result({**tuning.to_json(), "folder": None if output is None else str(output)})


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
