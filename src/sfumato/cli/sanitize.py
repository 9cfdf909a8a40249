"""sanitize: the main job, and the lines about a release on the terminal."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from sfumato.cli.console import Console, verb
from sfumato.cli.options import (
    FILE,
    INPUT,
    WithMethods,
    check_output,
    command_words,
    holdout_of,
    keeping_owner_part,
    offered_methods,
    options,
    options_of_verb,
    parameters_from,
    say_dropped,
    signer_at,
    tell_signer,
    time_limit_words,
    whereabouts,
)
from sfumato.core.arguments import Panel, options_of, spelled_option
from sfumato.core.errors import OptionError
from sfumato.core.facts import Context
from sfumato.options import PublishOptions, RunOptions, given, options_from
from sfumato.tables.reading import FileReading, describe_reading, read_people

if TYPE_CHECKING:
    from sfumato.certificate import Certificate
    from sfumato.engines.outcome import Recipe
    from sfumato.publish.release import Release
    from sfumato.tables.files import FileForm

__all__ = ["sanitize"]


@click.command(cls=WithMethods)
@click.argument("source", metavar="INPUT", type=INPUT)
@click.option("-o", "--output", required=True, type=FILE, panel=Panel.FIRST, help="Folder for release/ and owner/.")
@click.option(
    "--method",
    metavar="NAME",
    panel=Panel.FIRST,
    help="chain (default; condense below 200 rows), private (differential privacy), condense, condense-paper, "
    "classwise; noise, laplace-pca, randomize; translate, scale, rotate, hybrid; swap, subsample, aggregate, block, "
    "downgrade.",
    shell_complete=offered_methods,
)
@click.option("--key", type=FILE, panel=Panel.METHOD, help="Key of a geometric method.")
@click.option("--new-key", type=FILE, panel=Panel.METHOD, help="Draw a key and write it here (mode 600).")
@options_of_verb("sanitize")
@options("recipe", "no_sign", "query")
@click.option(
    "--pdf",
    is_flag=True,
    panel=Panel.OUTPUT,
    help="Also save owner/summary.html as PDF (needs a browser).",
)
@verb
def sanitize(
    console: Console,
    source: str,
    output: Path,
    *,
    recipe: Path | None,
    key: Path | None,
    new_key: Path | None,
    no_sign: bool,
    pdf: bool,
    query: str | None,
    **arguments: Any,
) -> None:
    """Make a release of INPUT for analysis, with a certificate and a report.

    Send FOLDER/release/; keep FOLDER/owner/ private. INPUT is a .csv, .csv.gz, .xlsx, .ods, .sqlite, .parquet, .arrow
    or .feather file, - for CSV on standard input, or a database URL with --query.
    """
    from sfumato.engines.outcome import Recipe
    from sfumato.publish.engine_choice import InputFile
    from sfumato.publish.sanitize import (
        MethodChoice,
        SanitizeRun,
        check_beside_recipe,
        check_run,
        form_asked,
        open_in_parts,
        reading_as_declared,
        sanitize_input,
    )
    from sfumato.tables.frames import to_arrow

    publishing = options_from(PublishOptions, arguments)
    check_output(output, overwrite=publishing.overwrite)
    if pdf:
        _check_pdf(report=publishing.report)
    options, parameters = options_from(RunOptions, arguments), parameters_from(arguments)
    choice = MethodChoice(method=arguments["method"], parameters=parameters)
    if recipe is not None:
        check_beside_recipe(choice, options)
        choice = replace(choice, recipe=Recipe.load(recipe))
    _check_key(output, choice.named_method, key, new_key)
    if key is not None:
        choice = replace(choice, parameters={**parameters, "key": key})
    _check_measured(choice.recipe, publishing)
    run = SanitizeRun(choice, options, publishing, options_from(FileReading, arguments), output, new_key)
    with keeping_owner_part(console, output, overwrite=publishing.overwrite):
        run = reading_as_declared(check_run(run), source)
    signer = signer_at(publishing.sign, output, no_sign=no_sign, dry_run=run.effective.seed is not None)
    command = command_words() if recipe is None else ()
    run = replace(run, publishing=replace(publishing, sign=signer or False, command=command))
    engine = InputFile(source, run.effective, run.publishing, run.reading, choice.named_method, query).engine()
    reading = run.reading
    table: Any = None
    if engine != "memory":
        table, origin = open_in_parts(source, engine, run), None
        form = table.form
    else:
        arrow, form = read_people(source, reading, query=query, missing=run.marks)
        table, origin = to_arrow(arrow)
        origin = replace(origin, form=form)
        limited = options if options.engine == "memory" else replace(options, memory=None)
        run = replace(run, options=limited, reading=run.reading.repeated(form))
    if form.is_detected:
        console.say(describe_reading(source, form))
    outside = holdout_of(options.holdout, reading.of_other_file(form), run.marks)
    run = replace(run, options=replace(run.options, holdout=outside))
    with keeping_owner_part(console, output, overwrite=publishing.overwrite), console.progress():
        release = sanitize_input(run, table, origin)
    _tell(console, release, output, form_asked(publishing, form), pdf=pdf)


def _check_pdf(*, report: bool) -> None:
    """Check before the run that a PDF can be made."""
    from sfumato.publish.folder import find_browser

    if not report:
        raise OptionError("--pdf has no effect with --no-report; drop one of them")
    find_browser()


def _check_measured(recipe: Recipe | None, publishing: PublishOptions) -> None:
    """Refuse options of the measurement if nothing is to be measured."""
    if publishing.report:
        return
    asked = given(publishing)
    measuring = [
        each for each in options_of(PublishOptions) if each[1].panel is Panel.MEASURING and each[0] != "report"
    ]
    option = next((spelled_option(name, option) for name, option in measuring if name in asked), None)
    if publishing.policy or (recipe is not None and recipe.policy):
        option = "--policy"
    if option is not None:
        raise OptionError(f"{option} has no effect with --no-report; drop one of them")


def _check_key(output: Path, method: str | None, key: Path | None, new_key: Path | None) -> None:
    """Refuse a missing, doubled, misplaced or unused key before the run."""
    from sfumato.methods.catalogue import is_keyed
    from sfumato.methods.geometry.key import check_key_path
    from sfumato.registry import method_names

    keyed = [each for each in method_names() if is_keyed(each)]
    if method not in keyed:
        if key is not None or new_key is not None:
            raise OptionError(f"only the methods {', '.join(keyed)} take a key; drop --key or --new-key")
        return
    if (key is None) == (new_key is None):
        raise OptionError(f"the method {method!r} needs either --key FILE or --new-key FILE; give one of them")
    if new_key is not None:
        check_key_path(new_key, apart_from=output)
    elif key is not None and output.resolve() in key.resolve().parents:
        raise OptionError("the key is in the output folder, part of which is sent; move it to another folder")


def _tell(console: Console, release: Release, folder: Path, form: FileForm, *, pdf: bool = False) -> None:
    from sfumato.publish.folder import print_summary

    if pdf:
        print_summary(folder)
    certificate, report = release.certificate, release.report
    proved = certificate.privacy is not None  # what is measured may not leave, and stays in owner/
    parts = [] if report is None or proved else report.lines()
    if report is not None and report.verdict is not None and proved:
        parts = [(0, report.verdict.short_sentence())]
    parts += fact_lines(certificate, form)
    if report is not None and not proved:
        parts += [(1, note) for note in report.notes]
        if (words := time_limit_words(report)) is not None:
            parts.append((5, words))
    if certificate.randomness != "release":
        parts.append((0, "DRY RUN: made with a seed, not for release."))
    verdict = None if report is None else report.verdict
    console.tell([*parts, *whereabouts(release, folder, form.format.value)])
    say_dropped(console, release.dropped)
    tell_signer(console, release)
    console.result(
        {
            "folder": str(folder),
            "table": str(folder / "release" / f"table.{form.format.value}"),
            **{key: getattr(certificate, key) for key in ("method", "randomness", "rows_in", "rows_out", "levels")},
            "dropped": release.dropped,
            "signed_by": release.signed_by,
            "verdict": None if verdict is None else verdict.to_json(),
        }
    )


def fact_lines(certificate: Certificate, form: FileForm) -> list[tuple[int, str]]:
    """Lines about a release written in a format, each with its rank; a higher rank is left out first."""
    context, found = Context(certificate.facts), []
    for fact in certificate.facts:
        summary = fact.summary(context, form.format.value)
        found += [] if summary is None else [summary]
    return [(4, _group_words(certificate)), *found]


def _group_words(certificate: Certificate) -> str:
    if certificate.privacy is not None:
        epsilon, delta = certificate.privacy["epsilon"], certificate.privacy["delta"]
        proved = f"({epsilon:g}, {delta:g})-differentially private for each {certificate.privacy['unit']}"
        return f"{certificate.rows_out} synthetic rows out, {proved}."
    levels, counts = certificate.levels, f"{certificate.rows_in} records in, {certificate.rows_out}"
    if not levels:
        return f"{counts} rows out; the method forms no groups, so there is no minimum group size."
    kind = "synthetic " if any(fact.synthetic for fact in certificate.facts) else ""
    chained = Context(certificate.facts).has("chain-synthesis")
    groups = _counted(levels["groups"], "leaf", "leaves") if chained else _counted(levels["groups"], "group")
    smallest, size = levels["smallest_group"], _size_words(certificate)
    return f"{counts} {kind}rows out; {groups}, smallest {smallest}; every minimum group size is met.{size}"


def _size_words(certificate: Certificate) -> str:
    """Group size that class-wise condensation chose; empty if it was given."""
    fact = Context(certificate.facts).one("class-pure")
    if fact is None or not fact.size:
        return ""
    return f" Group size {fact.size}: approximate GCD of the class sizes, in units of {_counted(fact.unit, 'record')}."


def _counted(count: int, one: str, many: str | None = None) -> str:
    return f"{count} {one if count == 1 else many or f'{one}s'}"
