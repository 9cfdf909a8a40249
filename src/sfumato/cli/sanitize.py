"""sanitize: the main job."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from sfumato.cli.console import Console, verb
from sfumato.cli.engines import Place, refuse_in_chunks
from sfumato.cli.options import (
    COUNT,
    FILE,
    INPUT,
    budget_words,
    command_words,
    holdout_of,
    keeping_owner_part,
    offered_methods,
    options,
    signer_at,
    whereabouts,
)
from sfumato.cli.parameters import WORDS, WithMethods, parameters_told
from sfumato.core.errors import OptionError
from sfumato.tables.reading import read_people, reading_words

if TYPE_CHECKING:
    from sfumato.engines.outcome import Recipe
    from sfumato.publish.release import Release
    from sfumato.publish.signature import Signer
    from sfumato.tables.files import FileForm

__all__ = ["sanitize"]


@click.command(cls=WithMethods)
@click.argument("source", metavar="INPUT", type=INPUT)
@click.option("-o", "--output", required=True, type=FILE, help="Folder for release/ and owner/.")
@click.option(
    "--method",
    metavar="NAME",
    help="chain (default; condense below 200 rows), condense, condense-paper, classwise; noise, laplace-pca, "
    "randomize; translate, scale, rotate, hybrid; swap, sample, aggregate, block, downgrade.",
    shell_complete=offered_methods,
)
@click.option("--key", type=FILE, help="Key of a geometric method.")
@click.option("--new-key", type=FILE, help="Draw a key and write it here (mode 600).")
@options("level", "strata", "target", "identifier", "person", "rows_are_people", "keep_persons")
@options("weight", "public", "schema")
@options("no_rules", "rare", "rows", "where", "holdout", "recipe", "seed", "form")
@click.option("--spreadsheet-safe", is_flag=True, help="CSV: an apostrophe before what would be run as a formula.")
@options("known", "no_report", "sign", "overwrite")
@click.option("--pdf", is_flag=True, help="Print owner/summary.html as PDF, where a browser is installed.")
@options("engine", "master", "memory", "resume_key")
@click.option("--chunked", is_flag=True, help="The same as --engine chunks.")
@click.option("--batch-rows", type=COUNT, help="Geometric methods in chunks: rows of a batch.  [default: about 32 MB]")
@options("policy", "despite_policy", "budget", "encoding", "delimiter", "decimal", "sheet", "query")
@verb
def sanitize(
    console: Console,
    source: str,
    output: Path,
    *,
    method: str | None,
    key: Path | None,
    new_key: Path | None,
    holdout: str | None,
    recipe: Path | None,
    form: str | None,
    no_report: bool,
    sign: Path | None,
    overwrite: bool,
    pdf: bool,
    chunked: bool,
    engine: str | None,
    master: str | None,
    memory: str | None,
    resume_key: Path | None,
    batch_rows: int | None,
    encoding: str,
    query: str | None,
    delimiter: str | None,
    decimal: str | None,
    sheet: str | None,
    **told: Any,
) -> None:
    """Make a table that can be mined in place of INPUT, with a certificate and a report.

    FOLDER/release/ is what leaves; FOLDER/owner/ stays with you. INPUT is a .csv, .csv.gz, .xlsx, .ods, .sqlite,
    .parquet, .arrow or .feather file, - for CSV on standard input, or a database URL with --query.
    """
    from sfumato.mechanisms.geometry.key import keeping_key
    from sfumato.publish.folder import check_folder
    from sfumato.publish.sanitize import file_of, load_recipe, sanitize, sanitize_file
    from sfumato.tables.files import FileForm, FileFormat

    check_folder(output, overwrite=overwrite)
    if pdf:
        _check_pdf(report=not no_report)
    run: dict[str, Any] = {name: value for name, value in told.items() if name not in WORDS}
    run |= {**parameters_told(told), "method": method, "report": not no_report}
    run |= {name: run[name] or None for name in ("no_rules", "keep_persons")}
    replayed = run["recipe"] = None if recipe is None else load_recipe(recipe, run)
    _check_key(output, method if replayed is None else replayed.method, key, new_key)
    if key is not None:
        run["key"] = key
    signer = _signer(output, sign, replayed, run)
    place = Place(source, engine, master, memory, resume_key, chunked=chunked, batch_rows=batch_rows)
    reading: dict[str, Any] = {"encoding": encoding, "delimiter": delimiter, "decimal": decimal}
    if place.is_chunked(console, (sheet, query), run):
        refuse_in_chunks(place, form, (sheet, query), {**run, "holdout": holdout})
        for name in ("weight", "where", "keep_persons"):
            del run[name]
        file = file_of(source, place.carried_by, master, **reading)
        read = file.form
        if read.numerals.sentences():
            console.say(reading_words(source, read))
        outside = holdout_of(holdout, reading | {"decimal": decimal or read.decimal})
        written = read if form is None else FileForm(FileFormat(form), read.delimiter)
        with keeping_owner_part(console, output, overwrite=overwrite), console.progress():
            release = sanitize_file(
                file, output, new_key=new_key, batch_rows=batch_rows, sign=signer,
                overwrite=overwrite, engine=place.carried_by, master=master, memory=memory, resume_key=resume_key,
                holdout=outside,
                form=None if form is None else written, command=command_words() if replayed is None else (), **run,
            )  # fmt: skip
        _tell(console, release, output, written, signer, pdf=pdf)
        return
    run["memory"] = memory if engine == "memory" else None
    table, read = read_people(source, **(reading | {"query": query, "sheet": sheet}))
    if read.sheet is not None or read.numerals.sentences():
        console.say(reading_words(source, read))
    wanted = read if form is None else FileForm(FileFormat(form), read.delimiter)
    if run["spreadsheet_safe"] and wanted.format is not FileFormat.CSV:
        raise OptionError("--spreadsheet-safe is for CSV; add --format csv, or leave it out")
    native = read.format is FileFormat.CSV and wanted.format is not FileFormat.CSV
    command = command_words() if replayed is None else ()
    outside = holdout_of(holdout, reading | {"decimal": decimal or read.decimal})
    with keeping_owner_part(console, output, overwrite=overwrite), console.progress():
        release = sanitize(table, holdout=outside, native=native, command=command, **run)
    with keeping_key(release.key, new_key, output), console.progress():
        release.save(output, form=wanted, overwrite=overwrite, sign=signer)
    _tell(console, release, output, wanted, signer, pdf=pdf)


def _check_pdf(*, report: bool) -> None:
    """Find out before the work is done whether a PDF could be made."""
    from sfumato.publish.folder import find_browser

    if not report:
        raise OptionError("--pdf prints what was measured and --no-report leaves it out; leave one of them out")
    find_browser()


def _signer(output: Path, sign: Path | None, recipe: Recipe | None, run: dict[str, Any]) -> Signer | None:
    """Read the key before the work is done, and refuse what could not be signed after it."""
    from sfumato.publish.release import refuse_to_sign_rehearsal

    if (run["policy"] or (recipe is not None and recipe.policy)) and not run["report"]:
        raise OptionError("--policy judges what is measured and --no-report leaves it out; leave one of them out")
    if run["budget"] is not None and not run["report"]:
        raise OptionError("--budget limits the measuring and --no-report leaves it out; leave one of them out")
    if run["known"] and not run["report"]:
        raise OptionError("--known is for attacks and --no-report leaves them out; leave one of them out")
    if sign is None:
        return None
    seed = run["seed"] if run["seed"] is not None or recipe is None else recipe.seed
    refuse_to_sign_rehearsal(rehearsal=seed is not None)
    return signer_at(sign, output)


def _check_key(output: Path, method: str | None, key: Path | None, new_key: Path | None) -> None:
    """Refuse a key that is lacking, doubled, in the wrong place or of no use before the work is done."""
    from sfumato.mechanisms.geometry.key import check_key_path
    from sfumato.mechanisms.methods import METHODS, is_keyed

    keyed = [each for each in METHODS if is_keyed(each)]
    if method not in keyed:
        if key is not None or new_key is not None:
            raise OptionError(f"only the methods {', '.join(keyed)} take a key; leave it out")
        return
    if (key is None) == (new_key is None):
        raise OptionError(f"the method {method!r} takes either --key FILE or --new-key FILE; give one of them")
    if new_key is not None:
        check_key_path(new_key, apart_from=output)
    elif key is not None and output.resolve() in key.resolve().parents:
        raise OptionError("the key lies in the output folder, part of which leaves; keep it elsewhere")


def _tell(
    console: Console, release: Release, folder: Path, form: FileForm, signer: Signer | None, *, pdf: bool = False
) -> None:
    from sfumato.cli.facts import fact_lines
    from sfumato.publish.folder import print_summary

    if pdf:
        print_summary(folder)
    certificate, report = release.certificate, release.report
    parts = [] if report is None else report.lines()
    parts += fact_lines(certificate, form)
    if report is not None:
        parts += [(1, note) for note in report.notes]
        if (words := budget_words(report)) is not None:
            parts.append((5, words))
    if signer is not None:
        parts.append((3, f"Signed with the key {signer.fingerprint} (certificate.sig)."))
    if certificate.randomness != "release":
        parts.append((0, "REHEARSAL: made with a seed, not for release."))
    verdict = None if report is None else report.verdict
    console.tell([*parts, *whereabouts(release, folder, form.format.value)])
    console.result(
        {
            "folder": str(folder),
            "table": str(folder / "release" / f"table.{form.format.value}"),
            **{key: getattr(certificate, key) for key in ("method", "randomness", "rows_in", "rows_out", "levels")},
            "signed_by": None if signer is None else signer.fingerprint,
            "verdict": None if verdict is None else verdict.to_json(),
        }
    )
