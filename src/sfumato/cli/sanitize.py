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
    keeping_owner_part,
    leaving,
    offered_methods,
    options,
    signer_at,
)
from sfumato.core.errors import OptionError
from sfumato.tables.reading import read_people, reading_words

if TYPE_CHECKING:
    from sfumato.engines.recipe import Recipe
    from sfumato.mechanisms.methods import Parameter
    from sfumato.publish.release import Release
    from sfumato.publish.signature import Signer
    from sfumato.tables.files import FileForm

__all__ = ["sanitize"]

WORDS: dict[str, str] = {
    "k": "Floor of every record's privacy level.  [default: 10 to 50, 2 with --level; classwise chooses; block 5]",
    "grouping": "How records are grouped.  [default: compact]",
    "effort": "How long the compact grouping searches.",
    "allow_level_1": "Let records ask for no protection at all.",
    "tolerance": "classwise: smallest group, as a share of the smallest class.  [default: 0.1]",
    "scores": "condense: groups and statistics of numbers as they are, or of their normal scores.",
    "response_weight": "Weight of the target in the distance between records.",
    "leaf": "chain: fewest people alike that a cell is drawn from; swap, downgrade: of a leaf.  [default: 50]",
    "order": "chain: a column to draw first, before the target; repeatable.",
    "kind": "noise: its kind.  [default: additive]",
    "law": "noise: its law.  [default: gaussian]",
    "size": "noise: its size, in standard deviations of each column.",
    "correlated": "noise: with the correlations of the data.",
    "enhance": "noise and geometry: share of the rows that get extra noise.",
    "enhance_size": "noise and geometry: size of that extra noise.",
    "enhance_laws": "noise and geometry: law of a column's extra noise, as in age=uniform; repeatable.",
    "groups": "laplace-pca: number of groups, instead of --k.",
    "b": "laplace-pca: noise in ranges; odds change by up to e^(1/b).  [default: 0.2]",
    "guarantee": "laplace-pca: what that factor is to bound.",
    "rho1": "laplace-pca: probability before the release.  [default: 0.001]",
    "rho2": "laplace-pca: highest probability after it, which chooses b.",
    "epsilon": "randomize: local privacy of each column that has no --spec.",
    "specs": "randomize: noise specification of a column, as in age=age.toml; repeatable.",
    "pass_missing": "randomize: release which cells are missing.",
    "allow_observed": "randomize: use domains that were read off the data.",
    "shifts": "translate, hybrid: range of a column's shift in its own units, as in age=-5,5; repeatable.",
    "deviations": "translate, hybrid: range of all other shifts, in standard deviations.  [default: -3 3]",
    "factors": "scale, hybrid: range of a column's factor, as in pay=0.5,0.9; repeatable.",
    "factor": "scale, hybrid: range of all other factors.  [default: 0.5 2]",
    "degrees": "rotate, hybrid: range of the angles.  [default: 0 360]",
    "units": "rotate, hybrid: how much of a column counts as one, as in pay=1000; repeatable.",
    "pairs": "rotate, hybrid: which columns are turned together.  [default: chain]",
    "pass_categories": "noise, geometry, swap: release categories as they are.",
    "within": "swap: between rows near in rank, or in a leaf of a tree that tells the target.  [default: window]",
    "window": "swap: how far apart in rank, in percent of a column's cells.  [default: 5]",
    "columns": "swap: a column to exchange; block: one that outsiders know; repeatable.  [default: see the docs]",
    "share": "sample: share of the people who are drawn.  [default: 0.1]",
    "coarsened": "aggregate: level of a column's hierarchy, as in born=3; repeatable.",
    "widths": "aggregate: width of the intervals of a column of numbers, as in age=10; repeatable.",
    "private": "downgrade: column of the label to hide.",
    "limit": "downgrade: bits that a rule may tell of it.  [default: 0.3]",
    "hidden": "downgrade: share of the people whose label is hidden.  [default: 1]",
}
"""What each parameter of a method is, in the order of the help."""

CHOICES = {
    "grouping": ("compact", "mdav", "paper", "modified", "holistic"),
    "effort": ("fast", "default", "thorough"),
    "scores": ("plain", "normal"),
    "kind": ("additive", "multiplicative"),
    "law": ("gaussian", "uniform", "laplace"),
    "guarantee": ("component", "record"),
    "pairs": ("chain", "disjoint"),
    "within": ("window", "leaves"),
}
"""Words that some parameters take."""

_ALSO = {"kind": ("--noise",), "specs": ("--spec",)}


class _WithMethods(click.RichCommand):
    """Has an option for each parameter of each method, read off the mechanisms when the verb is run."""

    def get_params(self, ctx: Any) -> list[Any]:
        from sfumato.mechanisms.methods import all_parameters

        if not any(param.name == "k" for param in self.params):
            derived = [_option(all_parameters()[name]) for name in WORDS]
            first = next(place for place, param in enumerate(self.params) if param.name == "key")
            self.params[first:first] = derived
        return super().get_params(ctx)


def _option(parameter: Parameter) -> click.Option:
    name = parameter.name
    spelt = (f"--{name.replace('_', '-')}", *_ALSO.get(name, ()), name)
    if parameter.kind is bool:
        return click.Option(spelt, is_flag=True, help=WORDS[name])
    if parameter.by_column:
        value = (
            "FILE" if name == "specs" else "LAW" if parameter.kind is str else ("N", "LOW,HIGH")[parameter.values - 1]
        )
        return click.Option(spelt, multiple=True, metavar=f"COLUMN={value}", help=WORDS[name])
    if parameter.several:
        return click.Option(spelt, multiple=True, metavar="COL", help=WORDS[name])
    choices = click.Choice(CHOICES[name]) if name in CHOICES else parameter.kind
    metavar = "LOW HIGH" if parameter.width > 1 else None
    return click.Option(spelt, type=choices, nargs=parameter.width, metavar=metavar, help=WORDS[name])


def parameters_told(told: dict[str, Any]) -> dict[str, Any]:
    """Parameters of a method that were told; those of columns read, and 0 is a number that was told."""
    from sfumato.mechanisms.methods import all_parameters

    chosen = {name: told[name] for name in WORDS if told[name] not in (None, ()) and told[name] is not False}
    for name, given in chosen.items():
        if all_parameters()[name].by_column:
            chosen[name] = tuple(_of_column(all_parameters()[name], text) for text in given)
    return chosen


def _of_column(parameter: Parameter, text: str) -> tuple[Any, ...]:
    """Read COLUMN=VALUE; the file of a specification as text, so that a recipe can repeat it."""
    from sfumato.core.laws.spec import NoiseSpec

    name, (column, _, value) = parameter.name, text.partition("=")
    if name == "specs":
        if not column or not value:
            raise OptionError("--spec takes a column and a file, as in --spec age=age.toml; write both")
        return column, NoiseSpec.read(value).canonical
    try:
        values = tuple(parameter.kind(each) for each in value.split(","))
    except ValueError:
        values = ()
    if not column or len(values) != parameter.values or "" in values:
        shown = WORDS[name].rpartition("as in ")[2].partition(";")[0]
        raise OptionError(f"--{name.replace('_', '-')} takes a column and its value, as in {shown}; write both")
    return column, *values


@click.command(cls=_WithMethods)
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
    from sfumato.mechanisms.geometry.keyfile import keeping_key
    from sfumato.publish.folder import check_folder
    from sfumato.publish.sanitize import sanitize
    from sfumato.publish.sanitize_file import open_file, sanitize_file
    from sfumato.publish.told import load_recipe
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
        file = open_file(source, place.carried_by, master, **reading)
        read = file.form
        if read.numerals.sentences():
            console.say(reading_words(source, read))
        outside = _holdout(holdout, reading | {"decimal": decimal or read.decimal})
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
    outside = _holdout(holdout, reading | {"decimal": decimal or read.decimal})
    with keeping_owner_part(console, output, overwrite=overwrite), console.progress():
        release = sanitize(table, holdout=outside, native=native, command=command, **run)
    with keeping_key(release.key, new_key, output), console.progress():
        release.save(output, form=wanted, overwrite=overwrite, sign=signer)
    _tell(console, release, output, wanted, signer, pdf=pdf)


def _check_pdf(*, report: bool) -> None:
    """Find out before the work is done whether a PDF could be made."""
    from sfumato.publish.pdf import find_browser

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
    from sfumato.mechanisms.geometry.keyfile import check_key_path
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


def _holdout(text: str | None, reading: dict[str, Any]) -> Any:
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        return read_people(text, **reading)[0]


def _tell(
    console: Console, release: Release, folder: Path, form: FileForm, signer: Signer | None, *, pdf: bool = False
) -> None:
    from sfumato.cli.modified import modified_words, rare_words
    from sfumato.core.facts import Chained, FormulaTexts, Randomized, RareValues, Synthesized, TargetMoved, Transformed
    from sfumato.publish.pdf import print_summary

    if pdf:
        print_summary(folder)
    certificate = release.certificate
    verdict = None if release.report is None else release.report.verdict
    rehearsal = certificate.randomness != "release"
    levels = certificate.levels
    parts = [] if release.report is None else release.report.lines()
    if levels:
        kind = "synthetic " if any(isinstance(fact, Chained | Synthesized) for fact in certificate.facts) else ""
        one, many = (
            ("leaf", "leaves") if any(isinstance(fact, Chained) for fact in certificate.facts) else ("group", "groups")
        )
        groups = f"{levels['groups']} {one if levels['groups'] == 1 else many}"
        low, high = levels["asked_min"], levels["asked_max"]
        asked = f"everybody's level, {low}, is met" if low == high else f"levels {low} to {high}, all met"
        told = (
            f"{certificate.rows_in} records in, {certificate.rows_out} {kind}rows out; {groups}, "
            f"the smallest of {levels['smallest_group']}; {asked}."
        )
    else:
        told = f"{certificate.rows_in} records in, {certificate.rows_out} rows out; no groups, no privacy level."
    parts.append((4, told))
    for fact in certificate.facts:
        if isinstance(fact, Transformed):
            known = "1 row" if fact.known_rows == 1 else f"{fact.known_rows} rows"
            parts.append((0, f"Outsourcing obfuscation: reversible by anyone who knows {known}."))
        elif isinstance(fact, TargetMoved):
            moved = f"The target {fact.column!r} was moved like every other number; --public leaves it as it is."
            parts.append((3, moved))
        elif isinstance(fact, RareValues):
            parts.append((3, rare_words(fact)))
        elif (words := modified_words(fact)) is not None:
            parts.append((0, words))
        if isinstance(fact, FormulaTexts) and not fact.quoted and form.format.value == "csv":
            formulas = (
                f"{fact.cells} cells and {fact.names} column names begin as formulas of a spreadsheet do; "
                "--spreadsheet-safe writes them as text."
            )
            parts.append((1, formulas))
    spent = [fact.epsilon for fact in certificate.facts if isinstance(fact, Randomized)]
    if spent:
        bounded = [epsilon for epsilon in spent if epsilon is not None]
        total = f"local epsilon {sum(bounded):.3g} for a whole row" if len(bounded) == len(spent) else "no bound"
        many = f"{len(spent)} columns randomized cell by cell: {total}. The certificate holds their laws."
        parts.append((3, many))
    if release.report is not None:
        parts += [(1, note) for note in release.report.notes]
        if (words := budget_words(release.report)) is not None:
            parts.append((5, words))
    if signer is not None:
        parts.append((3, f"Signed with the key {signer.fingerprint} (certificate.sig)."))
    if rehearsal:
        parts.append((0, "REHEARSAL: made with a seed, not for release."))
    page = "" if release.report is None else ", report-public.html"
    verdict = None if release.report is None else release.report.verdict
    parts.append((0, f"{leaving(verdict)} {folder / 'release'} (table.{form.format.value}, certificate.json{page})"))
    stays = "recipe.toml runs it again" if release.report is None else "report.html is the one to read first"
    parts.append((0, f"What stays:   {folder / 'owner'} ({stays})"))
    console.tell(parts)
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
