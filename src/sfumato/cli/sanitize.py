"""sanitize: the main job."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from sfumato.cli.console import Console, verb
from sfumato.cli.mechanisms import METHOD_OPTIONS, check_key, mechanism_of, method_options
from sfumato.cli.options import (
    budget_option,
    budget_words,
    command_words,
    keeping_owner_part,
    policy_options,
    read_input,
    reading_options,
    signer_at,
)
from sfumato.errors import OptionError, shown

if TYPE_CHECKING:
    from sfumato.publish import Release, Signer
    from sfumato.recipe import Recipe
    from sfumato.tables.files import FileForm

__all__ = ["sanitize"]


@click.command()
@click.argument("source", metavar="INPUT")
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="Folder for release/ and owner/.")
@method_options
@click.option("--level", metavar="COL|N|RULE", help="Privacy level: a column, a number, or 'age > 60: 12, else: 5'.")
@click.option("--strata", metavar="COL", help="Groups never cross this column; makes its value certain.")
@click.option("--target", metavar="COL", help="The class or response that will be mined.")
@click.option("--identifier", multiple=True, metavar="COL", help="A column to drop; repeatable.")
@click.option("--public", multiple=True, metavar="COL", help="A column to pass through; repeatable.")
@click.option("--schema", "schema_file", type=click.Path(path_type=Path), help="Schema written by inspect.")
@click.option("--holdout", metavar="FILE|FRACTION", help="Rows kept out of the release, for measuring.")
@click.option("--recipe", "recipe_file", type=click.Path(path_type=Path), help="Replay owner/recipe.toml of a run.")
@click.option("--seed", type=click.IntRange(min=0), help="Rehearse: reproducible, and marked as not for release.")
@click.option("--format", "format_", type=click.Choice(["csv", "parquet", "arrow"]), help="[default: the input's]")
@click.option("--spreadsheet-safe", is_flag=True, help="CSV: an apostrophe before what would be run as a formula.")
@click.option("--no-report", is_flag=True, help="Do not measure.")
@click.option("--sign", type=click.Path(path_type=Path), help="Private key (Ed25519) to sign the certificate with.")
@click.option("--overwrite", is_flag=True, help="Replace an earlier release of that name.")
@click.option(
    "--chunked", is_flag=True, help="translate, scale, rotate, hybrid: a file larger than memory, in batches."
)
@click.option("--batch-rows", type=click.IntRange(min=1), help="Rows of a batch.  [default: about 32 MB of them]")
@policy_options
@budget_option
@reading_options
@verb
def sanitize(console: Console, source: str, output: Path, **options: Any) -> None:
    """Give back a table that can be mined in place of INPUT, with a certificate and a report.

    FOLDER/release/ is what leaves; FOLDER/owner/ stays with you. INPUT is a .csv, .csv.gz, .parquet, .arrow or .feather
    file, - for CSV on standard input, or a database URL with --query.
    """
    from sfumato.geometry.keyfile import keeping_key
    from sfumato.publish import check_folder
    from sfumato.tables.files import FileForm, FileFormat

    check_folder(output, overwrite=options["overwrite"])
    recipe = _recipe(options)
    check_key(output, recipe, options)
    signer = _signer(output, recipe, options)
    if options["chunked"] or options["batch_rows"] is not None:
        with keeping_owner_part(console, output, overwrite=options["overwrite"]):
            _in_chunks(console, source, output, recipe, signer, options)
        return
    table, form = read_input(source, encoding=options["encoding"], query=options["query"])
    wanted = form if options["format_"] is None else FileForm(FileFormat(options["format_"]), form.delimiter)
    if options["spreadsheet_safe"] and wanted.format is not FileFormat.CSV:
        raise OptionError("--spreadsheet-safe is for CSV; add --format csv, or leave it out")
    native = form.format is FileFormat.CSV and wanted.format is not FileFormat.CSV
    with keeping_owner_part(console, output, overwrite=options["overwrite"]):
        release = _run(console, table, recipe, options, native=native)
    with keeping_key(release.key, options["new_key_file"], output), console.progress():
        release.save(output, form=wanted, overwrite=options["overwrite"], sign=signer)
    _tell(console, release, output, wanted, signer)


def _signer(output: Path, recipe: Recipe | None, options: dict[str, Any]) -> Signer | None:
    """Read the key before the work is done, and refuse what could not be signed after it."""
    from sfumato.publish import refuse_to_sign_rehearsal

    policy = options["policy"] or (recipe.policy if recipe is not None else None)
    if policy is not None and options["no_report"]:
        raise OptionError("--policy judges what is measured and --no-report leaves it out; leave one of them out")
    if options["budget"] is not None and options["no_report"]:
        raise OptionError("--budget limits the measuring and --no-report leaves it out; leave one of them out")
    if options["sign"] is None:
        return None
    seed = options["seed"] if options["seed"] is not None or recipe is None else recipe.seed
    refuse_to_sign_rehearsal(rehearsal=seed is not None)
    return signer_at(options["sign"], output)


def _recipe(options: dict[str, Any]) -> Recipe | None:
    from sfumato.recipe import Recipe

    if options["recipe_file"] is None:
        return None
    told = (*METHOD_OPTIONS, "level", "strata", "target", "identifier", "public", "schema_file")
    double = [name for name in told if options[name]]
    if double:
        name = double[0].removesuffix("_file").replace("_", "-")
        raise OptionError(f"--recipe already says what --{name} says; edit the recipe or leave one out")
    return Recipe.load(options["recipe_file"])


def _run(console: Console, table: Any, recipe: Recipe | None, options: dict[str, Any], *, native: bool) -> Release:
    from sfumato.publish.sanitize import sanitize
    from sfumato.tables.schema import Schema

    schema = None if options["schema_file"] is None else Schema.load(options["schema_file"])
    level, strata, seed, holdout = options["level"], options["strata"], options["seed"], _holdout(options)
    if recipe is not None:
        schema, level, strata = recipe.schema, recipe.level, recipe.strata
        seed = recipe.seed if seed is None else seed
        holdout = recipe.holdout if holdout is None else holdout
    mechanism = mechanism_of(recipe, options)
    policy = _policy(recipe, options)
    with console.progress():
        return sanitize(
            table,
            mechanism,
            schema=schema,
            target=options["target"],
            level=level,
            strata=strata,
            identifiers=options["identifier"],
            public=options["public"],
            holdout=holdout,
            seed=seed,
            report=not options["no_report"],
            budget=options["budget"],
            native=native,
            spreadsheet_safe=options["spreadsheet_safe"],
            policy=policy,
            despite_policy=options["despite_policy"],
            command=command_words() if recipe is None else (),
        )


def _policy(recipe: Recipe | None, options: dict[str, Any]) -> str | None:
    """Name or file of the policy; a recipe's, where none is named, must be built in."""
    from sfumato.publish import BUILT_IN

    if options["policy"] is not None or recipe is None or recipe.policy is None:
        return None if options["policy"] is None else str(options["policy"])
    if recipe.policy not in BUILT_IN:
        raise OptionError(f"the recipe was judged by the policy {shown(recipe.policy)}; name its file with --policy")
    return recipe.policy


def _in_chunks(
    console: Console, source: str, output: Path, recipe: Recipe | None, signer: Signer | None, options: dict[str, Any]
) -> None:
    """Release a file that is never read whole."""
    from sfumato.publish.sanitize import sanitize_file
    from sfumato.scale.source import form_of
    from sfumato.tables.schema import Schema

    _refuse_in_chunks(source, recipe, options)
    schema = None if options["schema_file"] is None else Schema.load(options["schema_file"])
    seed = options["seed"]
    if recipe is not None:
        schema, seed = recipe.schema, recipe.seed if seed is None else seed
    with console.progress():
        release = sanitize_file(
            source,
            output,
            mechanism_of(recipe, options),
            schema=schema,
            target=options["target"],
            identifiers=options["identifier"],
            public=options["public"],
            new_key=options["new_key_file"],
            batch_rows=options["batch_rows"],
            seed=seed,
            report=not options["no_report"],
            budget=options["budget"],
            encoding=options["encoding"],
            sign=signer,
            overwrite=options["overwrite"],
            spreadsheet_safe=options["spreadsheet_safe"],
            policy=_policy(recipe, options),
            despite_policy=options["despite_policy"],
        )
    _tell(console, release, output, form_of(Path(source)), signer)


def _refuse_in_chunks(source: str, recipe: Recipe | None, options: dict[str, Any]) -> None:
    """Refuse what needs all rows at once, before anything is read."""
    from sfumato.scale.source import form_of

    if not options["chunked"]:
        raise OptionError("--batch-rows is for files that go through in batches; add --chunked or leave it out")
    if source == "-" or "://" in source or options["query"] is not None:
        raise OptionError("--chunked reads a file, some of it twice; write standard input or the query to a file first")
    for name in ("holdout", "level", "strata"):
        if options[name] is not None or getattr(recipe, name, None) is not None:
            raise OptionError(f"--{name} needs all rows at once; leave it out, or leave out --chunked")
    form = form_of(Path(source))
    if options["spreadsheet_safe"] and form.format.value != "csv":
        raise OptionError("--spreadsheet-safe is for CSV; convert the file first, or leave it out")
    if options["format_"] not in (None, form.format.value):
        raise OptionError("--chunked writes the format that it reads; leave out --format, or convert the file first")


def _holdout(options: dict[str, Any]) -> Any:
    text = options["holdout"]
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        return read_input(text, encoding=options["encoding"], query=None)[0]


def _tell(console: Console, release: Release, folder: Path, form: FileForm, signer: Signer | None) -> None:
    from sfumato.facts import FormulaTexts, Randomized, Synthesized, TargetMoved, Transformed

    certificate = release.certificate
    verdict = None if release.report is None else release.report.verdict
    rehearsal = certificate.randomness != "release"
    levels = certificate.levels
    if levels:
        kind = "synthetic " if any(isinstance(fact, Synthesized) for fact in certificate.facts) else ""
        console.say(
            f"{certificate.rows_in} records in, {certificate.rows_out} {kind}rows out; {levels['groups']} groups, "
            f"the smallest of {levels['smallest_group']}; levels {levels['asked_min']} to {levels['asked_max']}, all "
            "met."
        )
    else:
        console.say(f"{certificate.rows_in} records in, {certificate.rows_out} rows out; no groups, no privacy level.")
    for fact in certificate.facts:
        if isinstance(fact, Transformed):
            known = "1 row" if fact.known_rows == 1 else f"{fact.known_rows} rows"
            console.say(f"Outsourcing obfuscation: reversible by anyone who knows {known}.")
        elif isinstance(fact, TargetMoved):
            console.say(f"The target {fact.column!r} was moved like every other number; --public leaves it as it is.")
        if isinstance(fact, FormulaTexts) and not fact.quoted:
            console.say(
                f"{fact.cells} cells and {fact.names} column names begin as formulas of a spreadsheet do; "
                "--spreadsheet-safe writes them as text."
            )
    spent = [fact.epsilon for fact in certificate.facts if isinstance(fact, Randomized)]
    if spent:
        bounded = [epsilon for epsilon in spent if epsilon is not None]
        total = f"local epsilon {sum(bounded):.3g} for a whole row" if len(bounded) == len(spent) else "no bound"
        console.say(f"{len(spent)} columns randomized cell by cell: {total}. The certificate holds their laws.")
    if release.report is not None:
        console.say(release.report.summary())
        if (words := budget_words(release.report)) is not None:
            console.say(words)
    if signer is not None:
        console.say(f"Signed with the key {signer.fingerprint} (certificate.sig).")
    if rehearsal:
        console.say("REHEARSAL: made with a seed, not for release.")
    page = "" if release.report is None else ", report-public.html"
    console.say(f"What leaves:  {folder / 'release'} (table.{form.format.value}, certificate.json{page})")
    stays = "recipe.toml runs it again" if release.report is None else "report.html is the one to read first"
    console.say(f"What stays:   {folder / 'owner'} ({stays})")
    console.result(
        {
            "folder": str(folder),
            "table": str(folder / "release" / f"table.{form.format.value}"),
            **{key: getattr(certificate, key) for key in ("method", "randomness", "rows_in", "rows_out")},
            "levels": levels,
            "signed_by": None if signer is None else signer.fingerprint,
            "verdict": None if verdict is None else verdict.to_json(),
        }
    )
