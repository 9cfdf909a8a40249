"""evaluate: the report alone, for a table made by any tool."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from sfumato.cli.console import Console, verb
from sfumato.cli.options import (
    budget_option,
    budget_words,
    command_words,
    most_bytes_option,
    policy_options,
    read_input,
    reading_options,
)
from sfumato.errors import OptionError, PrivacyRefusal

if TYPE_CHECKING:
    from sfumato.privacy.certificate import Certificate
    from sfumato.publish import Evaluation

__all__ = ["evaluate"]

_OF_MAKING = ("level", "strata", "allow_level_1", "recipe", "format", "method", "k")
"""Options of sanitize that say how a table is made."""

_LEAST_MOST, _TIMES = 1 << 30, 20  # what a table that somebody else packed may unpack to, in bytes and originals


@click.command()
@click.argument("original", metavar="ORIGINAL")
@click.argument("released", metavar="RELEASED")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Folder for the report in two editions.")
@click.option("--schema", "schema_file", type=click.Path(path_type=Path), help="Schema of ORIGINAL, from inspect.")
@click.option("--target", metavar="COL", help="The class or response that will be mined.")
@click.option("--identifier", multiple=True, metavar="COL", help="A column to leave out, it was dropped; repeatable.")
@click.option("--public", multiple=True, metavar="COL", help="A column that was passed through; repeatable.")
@click.option("--holdout", metavar="FILE", help="Rows like ORIGINAL's that RELEASED was not made from.")
@click.option("--seed", type=click.IntRange(min=0), help="Measure reproducibly.")
@click.option("--overwrite", is_flag=True, help="Replace an earlier evaluation of that name.")
@click.option("--level", hidden=True)
@click.option("--strata", hidden=True)
@click.option("--allow-level-1", is_flag=True, hidden=True)
@click.option("--recipe", hidden=True)
@click.option("--format", hidden=True)
@click.option("--method", hidden=True)
@click.option("--k", hidden=True)
@most_bytes_option("Bytes that RELEASED and the rows held out may unpack to.  [default: 1 GiB, or 20 times ORIGINAL]")
@policy_options
@budget_option
@reading_options
@verb
def evaluate(console: Console, original: str, released: str, output: Path | None, **options: Any) -> None:
    """Measure RELEASED against ORIGINAL, whatever tool made it; runs at the owner's.

    Both are files of .csv, .csv.gz, .parquet, .arrow or .feather, not necessarily of the same kind; one may be - for
    CSV on standard input, and ORIGINAL may be a database URL with --query. RELEASED may be a folder that sanitize
    wrote for leaving. Without -o the summary is printed and nothing written.
    """
    from sfumato.publish import check_evaluation_folder

    _refuse(original, released, options)
    if output is not None:
        check_evaluation_folder(output, overwrite=options["overwrite"])
    evaluation = _run(console, original, released, options)
    if output is not None:
        with console.progress():
            evaluation.save(output, overwrite=options["overwrite"])
    _tell(console, evaluation, output)
    verdict = evaluation.report.verdict
    if verdict is not None and verdict.outcome.value != "meets" and not options["despite_policy"]:
        raise PrivacyRefusal(f"{verdict.clause}; the report says why, and what to try")


def _refuse(original: str, released: str, options: dict[str, Any]) -> None:
    told = next((name for name in _OF_MAKING if options[name]), None)
    if told is not None:
        name = told.replace("_", "-")
        raise OptionError(f"--{name} says how a table is made, and this one is made already; leave it out")
    if options["despite_policy"] and options["policy"] is None:
        raise OptionError("--despite-policy goes on where a policy is not met; name the policy with --policy")
    if original == released == "-":
        raise OptionError("only one table can come from standard input; give the other as a file")
    if "://" in released:
        raise OptionError("the released table is read from a file, not from a database; save it first")
    try:
        float(options["holdout"] or "file")
    except ValueError:
        return
    raise OptionError("the table is released already, so no share can be held out now; give a file of rows held out")


def _run(console: Console, original: str, released: str, options: dict[str, Any]) -> Evaluation:
    from sfumato.facts import is_quoted
    from sfumato.publish.compare import compare_tables
    from sfumato.tables.schema import Schema
    from sfumato.tables.spreadsheet import unquote_formulas

    encoding = options["encoding"]
    schema = None if options["schema_file"] is None else Schema.load(options["schema_file"])
    before, _ = read_input(original, encoding=encoding, query=options["query"])
    path, certificate = _certified(console, released)
    most = options["most_bytes"] or max(_LEAST_MOST, _TIMES * before.nbytes)
    after, _ = read_input(path, encoding=encoding if certificate is None else "utf-8", query=None, most_bytes=most)
    if certificate is not None and is_quoted(certificate.facts):
        after = unquote_formulas(after)
    holdout = None
    if options["holdout"] is not None:
        holdout, _ = read_input(options["holdout"], encoding=encoding, query=None, most_bytes=most)
    with console.progress():
        return compare_tables(
            before,
            after,
            schema=schema,
            target=options["target"],
            identifiers=options["identifier"],
            public=options["public"],
            holdout=holdout,
            budget=options["budget"],
            seed=options["seed"],
            certificate=certificate,
            policy=options["policy"],
            command=command_words(),
        )


def _certified(console: Console, released: str) -> tuple[str, Certificate | None]:
    """Find the table, where a folder was named, and the certificate that lies beside it."""
    from sfumato.publish import certificate_beside

    if released == "-":
        return released, None
    path = Path(released)
    if path.is_dir():
        path = path / "release" if (path / "release").is_dir() else path
        tables = sorted(path.glob("table.*")) if (path / "certificate.json").is_file() else []
        if len(tables) != 1:
            raise OptionError(f"the folder {released!r} is not a release of one table; name the table's file")
        path = tables[0]
    certificate, why_not = certificate_beside(path) if path.is_file() else (None, None)
    if why_not is not None:
        console.note(f"Note: {why_not}.")
    return str(path), certificate


def _tell(console: Console, evaluation: Evaluation, folder: Path | None) -> None:
    report = evaluation.report
    for note in evaluation.notes:
        console.note(f"Note: {note}.")
    console.say(dataclasses.replace(report, notes=()).summary())  # the notes were warnings already
    if (words := budget_words(report)) is not None:
        console.say(words)
    if evaluation.certificate is None:
        console.say("No certificate came with the released table: these are measurements, and nothing is promised.")
    if folder is not None:
        console.say(f"What stays:   {folder / 'report.html'} (the one to read first) and {folder / 'report.json'}")
        console.say(f"What may leave:  {folder / 'report-public.html'}")
    console.result(
        {
            **evaluation.to_json(),
            "certified": evaluation.certificate is not None,
            "folder": None if folder is None else str(folder),
        }
    )
