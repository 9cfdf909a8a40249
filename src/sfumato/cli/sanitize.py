"""sanitize: the main job, the choice of its engine, and the lines about a release on the terminal.

All rows are processed in memory; a file that does not fit is processed in partitions.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

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
    other_file,
    parameters_told,
    say_dropped,
    signer_at,
    tell_signer,
    time_limit_words,
    whereabouts,
)
from sfumato.core.errors import OptionError
from sfumato.core.facts import (
    Alike,
    Blocked,
    Chained,
    ClassPure,
    Downgraded,
    Fact,
    FormulaTexts,
    Randomized,
    RareValues,
    Sampled,
    Swapped,
    Synthesized,
    TailsCoded,
    TargetMoved,
    Transformed,
)
from sfumato.core.option import Panel, options_of
from sfumato.options import RunOptions
from sfumato.tables.reading import READING_OPTIONS, FileReading, describe_reading, read_people

if TYPE_CHECKING:
    from sfumato.certificate.certificate import Certificate
    from sfumato.engines.outcome import Recipe
    from sfumato.publish.release import Release
    from sfumato.tables.files import FileForm

__all__ = ["Place", "rare_words", "sanitize"]

_WHOLE = ("weight", "where", "keep_persons")  # that no engine but memory knows
_IN_CELLS = ("chain", "condense", "condense-paper", "classwise", "noise", "randomize")
_MOVED = ("holdout", "level", "strata", "rare", "tails", "rows", "no_rules", *_WHOLE)  # nor a file moved in batches


@dataclass(frozen=True)
class Place:
    """Input file and engine of a run, as chosen by the user."""

    source: str
    engine: str | None
    master: str | None
    memory: str | None
    resume_key: Path | None
    chunked: bool
    batch_rows: int | None

    def __post_init__(self) -> None:
        if self.memory is not None:
            from sfumato.engines.partitions.memory_limit import parse_size

            parse_size(self.memory)
        told = "chunks" if self.chunked or self.resume_key is not None else self.engine
        if self.engine not in (None, told):
            raise OptionError(f"--engine {self.engine} cannot process a file in partitions; drop --engine")
        if self.master is not None and self.engine != "spark":
            raise OptionError("--master has no effect without --engine spark; add it, or drop --master")
        if self.batch_rows is not None and told not in ("chunks", "spark"):
            raise OptionError("--batch-rows has no effect on a run in memory; add --engine chunks, or drop it")

    @property
    def carried_by(self) -> Literal["chunks", "spark"]:
        """Engine of a file that does not go into memory at once."""
        return "spark" if self.engine == "spark" else "chunks"

    @property
    def form(self) -> FileForm:
        """How the table is written that is read; a folder that a cluster reads is one of Parquet."""
        from sfumato.tables.files import FileForm, FileFormat
        from sfumato.tables.source import form_of

        known = self.engine != "spark" or self.source.lower().endswith((".csv", ".csv.gz"))
        return form_of(Path(self.source)) if known else FileForm(FileFormat.PARQUET)

    @property
    def is_file(self) -> bool:
        """Whether it is a file that can be read in parts, more than once."""
        from sfumato.tables.files import ENDINGS

        name = self.source.lower()
        parts = [ending for ending, kind in ENDINGS.items() if kind.value in ("csv", "parquet", "arrow")]
        return self.source != "-" and "://" not in name and name.endswith(tuple(parts)) and Path(self.source).is_file()

    def is_chunked(
        self, console: Console, elsewhere: Sequence[str | None], needs: Mapping[str, Any], given: Mapping[str, Any]
    ) -> bool:
        """Whether the file goes through in chunks: told so, or too large for the memory that there is.

        ``elsewhere`` are a sheet and a query, which are of no file that chunks know, ``needs`` what a run is told,
        ``given`` encoding, delimiter and header row of the file.
        Says so where nobody told.
        """
        if self.engine in ("chunks", "spark") or self.chunked or self.resume_key is not None:
            return True
        if self.engine is not None or not self.is_file or any(each is not None for each in elsewhere):
            return False
        if self.memory is not None:
            return self._is_chunked_in(self.memory, console, _method_of(needs), given, report=needs["report"])
        from sfumato.engines.partitions.memory_limit import least_bytes, needed_bytes, size_words, usual_memory
        from sfumato.tables.source import open_source

        granted, method, whole = usual_memory(), _method_of(needs), _first_told(needs, _WHOLE)
        source = open_source(self.source, **given)
        needed, least = needed_bytes(source, method), least_bytes(source, report=needs["report"])
        if needed <= granted:
            return False
        why = f"the table needs about {size_words(needed)} of memory; the limit is {size_words(granted)}"
        if whole is not None or method not in (None, *_IN_CELLS):
            instead = "use --method chain" if whole is None else f"drop {whole}"
            console.note(f"sfumato: {why}. To process it in partitions, {instead}.")
            return False
        console.note(f"sfumato: {why}. It is processed in partitions, with encrypted temporary files.")
        if least > granted:
            console.note(f"sfumato: the run still needs about {size_words(least)}, mostly for the report.")
        return True

    def _is_chunked_in(
        self, memory: str, console: Console, method: str | None, given: Mapping[str, Any], *, report: bool
    ) -> bool:
        """Whether the file goes through in chunks to keep to so much memory, its report counted.

        Refuses what is too little for either way.
        """
        from sfumato.assess.warm import compile_apart
        from sfumato.engines.partitions.memory_limit import (
            check_memory,
            least_bytes,
            needed_bytes,
            parse_size,
            size_words,
        )
        from sfumato.tables.source import open_source

        source, granted = open_source(self.source, **given), parse_size(memory)
        needed = needed_bytes(source, method, report=report)
        if needed <= granted:
            if report:
                compile_apart()
            return False
        least, less = (
            min(least_bytes(source, report=each), needed_bytes(source, method, report=each)) for each in (report, False)
        )
        check_memory(granted, least, less)
        why = f"the run needs about {size_words(needed)} of memory; the limit is {size_words(granted)}"
        console.note(f"sfumato: {why}. It is processed in partitions, with encrypted temporary files.")
        return True


def refuse_in_chunks(place: Place, form: str | None, elsewhere: Sequence[str | None], needs: Mapping[str, Any]) -> None:
    """Refuse what needs all rows at once, before anything is read."""
    from sfumato.methods.catalogue import is_keyed

    sheet, query = elsewhere
    if place.source == "-" or ("://" in place.source and place.engine != "spark") or query is not None:
        raise OptionError(
            "--engine chunks reads its input twice, so it needs a file; save standard input or the query to one first"
        )
    if sheet is not None:
        raise OptionError("--engine chunks does not read workbooks; save the sheet as CSV first")
    method = _method_of(needs)
    moved = method is not None and is_keyed(method)
    whole = _first_told(needs, _MOVED if moved else _WHOLE)
    if whole is not None:
        raise OptionError(f"{whole} needs all rows in memory; drop it, or use --engine memory")
    read = place.form
    wanted = read.format.value if form is None else form
    if needs["spreadsheet_safe"] and wanted != "csv":
        raise OptionError("--spreadsheet-safe applies to CSV only; convert the file to CSV first, or drop the option")
    if moved and wanted != read.format.value:
        raise OptionError("a geometric method with --engine chunks keeps the format of the file; drop --format")
    if wanted not in ("csv", "parquet", "arrow"):
        raise OptionError("--engine chunks writes csv, parquet or arrow; choose one with --format")
    if moved and place.resume_key is not None:
        raise OptionError("--resume-key has no effect with a geometric method; drop it")


def _method_of(needs: Mapping[str, Any]) -> str | None:
    recipe = needs["recipe"]
    method: str | None = needs["method"] if recipe is None else recipe.method
    return method


def _first_told(needs: Mapping[str, Any], names: Sequence[str]) -> str | None:
    """The first of some options that was told, or that a recipe tells, as it is spelt."""
    told = (name for name in names if needs[name] or getattr(getattr(needs["recipe"], "options", None), name, None))
    return next((f"--{name.replace('_', '-')}" for name in told), None)


@click.command(cls=WithMethods)
@click.argument("source", metavar="INPUT", type=INPUT)
@click.option("-o", "--output", required=True, type=FILE, panel=Panel.FIRST, help="Folder for release/ and owner/.")
@click.option(
    "--method",
    metavar="NAME",
    panel=Panel.FIRST,
    help="chain (default; condense below 200 rows), condense, condense-paper, classwise; noise, laplace-pca, "
    "randomize; translate, scale, rotate, hybrid; swap, subsample, aggregate, block, downgrade.",
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
@click.option("--chunked", is_flag=True, panel=Panel.ENGINE, help="The same as --engine chunks.")
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
    report: bool,
    sign: Path | None,
    no_sign: bool,
    overwrite: bool,
    pdf: bool,
    chunked: bool,
    engine: str | None,
    master: str | None,
    memory: str | None,
    resume_key: Path | None,
    batch_rows: int | None,
    query: str | None,
    **told: Any,
) -> None:
    """Make a release of INPUT for analysis, with a certificate and a report.

    Send FOLDER/release/; keep FOLDER/owner/ private. INPUT is a .csv, .csv.gz, .xlsx, .ods, .sqlite, .parquet, .arrow
    or .feather file, - for CSV on standard input, or a database URL with --query.
    """
    from sfumato.engines.outcome import Recipe
    from sfumato.methods.catalogue import all_parameters
    from sfumato.methods.geometry.key import keeping_key
    from sfumato.publish.sanitize import check_beside_recipe, check_run, file_of, sanitize, sanitize_file
    from sfumato.tables.files import FileForm, FileFormat
    from sfumato.tables.schema import missing_marks

    check_output(output, overwrite=overwrite)
    if pdf:
        _check_pdf(report=report)
    given = FileReading(**{name: told.pop(name) for name in READING_OPTIONS})
    run: dict[str, Any] = {name: value for name, value in told.items() if name not in all_parameters()}
    run |= {**parameters_told(told), "method": method, "report": report}
    settled = RunOptions(**{name: run[name] for name, _ in options_of(RunOptions) if name in run})
    settled = dataclasses.replace(settled, holdout=holdout)
    if recipe is not None:
        check_beside_recipe(None, method, parameters_told(told), settled)
    replayed = run["recipe"] = None if recipe is None else Recipe.load(recipe)
    _check_key(output, method if replayed is None else replayed.method, key, new_key)
    if key is not None:
        run["key"] = key
    _check_measured(replayed, run)
    parameters = {name: run[name] for name in (*all_parameters(), "key") if name in run}
    despite = run["despite_policy"]
    with keeping_owner_part(console, output, overwrite=overwrite):
        check_run(None, method, parameters, settled, replayed, run["policy"], report=report, despite=despite)
    seed = run["seed"] if run["seed"] is not None or replayed is None else replayed.options.seed
    signer = signer_at(sign, output, no_sign=no_sign, dry_run=seed is not None)
    place = Place(source, engine, master, memory, resume_key, chunked=chunked, batch_rows=batch_rows)
    marks = missing_marks(run["schema"] if replayed is None else replayed.schema, run["missing"])
    given = given if replayed is None else given.or_else(replayed.reading)
    reading: dict[str, Any] = {**vars(given), "query": query, "missing": marks}
    look = {name: reading[name] for name in ("encoding", "delimiter", "header_row")}
    if place.is_chunked(console, (given.sheet, query), run, look):
        refuse_in_chunks(place, form, (given.sheet, query), {**run, "holdout": holdout})
        for name in ("weight", "where", "keep_persons"):
            del run[name]
        file = file_of(source, place.carried_by, master, **look, decimal=given.decimal, missing=marks)
        read = file.form
        if read.is_detected:
            console.say(describe_reading(source, read))
        outside = holdout_of(holdout, other_file(reading, read))
        written = read if form is None else FileForm(FileFormat(form), read.delimiter)
        with keeping_owner_part(console, output, overwrite=overwrite), console.progress():
            release = sanitize_file(
                file, output, new_key=new_key, batch_rows=batch_rows, sign=signer or False,
                overwrite=overwrite, engine=place.carried_by, master=master, memory=memory, resume_key=resume_key,
                holdout=outside,
                form=None if form is None else written, command=command_words() if replayed is None else (),
                **look, decimal=given.decimal, **run,
            )  # fmt: skip
        _tell(console, release, output, written, pdf=pdf)
        return
    run["memory"] = memory if engine == "memory" else None
    table, read = read_people(source, **reading)
    if read.is_detected:
        console.say(describe_reading(source, read))
    wanted = read if form is None else FileForm(FileFormat(form), read.delimiter)
    if run["spreadsheet_safe"] and wanted.format is not FileFormat.CSV:
        raise OptionError("--spreadsheet-safe applies to CSV only; add --format csv, or drop it")
    native = read.format is FileFormat.CSV and wanted.format is not FileFormat.CSV
    command = command_words() if replayed is None else ()
    outside = holdout_of(holdout, other_file(reading, read))
    with keeping_owner_part(console, output, overwrite=overwrite), console.progress():
        release = sanitize(table, holdout=outside, native=native, command=command, read=given.repeated(read), **run)
    with keeping_key(release.key, new_key, output), console.progress():
        release = release.written(output, form=wanted, overwrite=overwrite, sign=signer or False)
    _tell(console, release, output, wanted, pdf=pdf)


def _check_pdf(*, report: bool) -> None:
    """Check before the run that a PDF can be made."""
    from sfumato.publish.folder import find_browser

    if not report:
        raise OptionError("--pdf has no effect with --no-report; drop one of them")
    find_browser()


def _check_measured(recipe: Recipe | None, run: dict[str, Any]) -> None:
    """Refuse options of the measurement if nothing is to be measured."""
    if run["report"]:
        return
    measured = ("time_limit", "quasi_identifiers", "accurate_within", "clusters")
    option = next((name.removesuffix("s").replace("_", "-") for name in measured if run[name] not in (None, ())), None)
    if run["policy"] or (recipe is not None and recipe.policy):
        option = "policy"
    if option is not None:
        raise OptionError(f"--{option} has no effect with --no-report; drop one of them")


def _check_key(output: Path, method: str | None, key: Path | None, new_key: Path | None) -> None:
    """Refuse a missing, doubled, misplaced or unused key before the run."""
    from sfumato.methods.catalogue import METHODS, is_keyed
    from sfumato.methods.geometry.key import check_key_path

    keyed = [each for each in METHODS if is_keyed(each)]
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
    parts = [] if report is None else report.lines()
    parts += fact_lines(certificate, form)
    if report is not None:
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
    parts = [(4, _group_words(certificate))]
    for fact in certificate.facts:
        match fact:
            case Transformed():
                known = "1 row" if fact.known_rows == 1 else f"{fact.known_rows} rows"
                parts.append((0, f"Outsourcing obfuscation: anyone who knows {known} can reverse it."))
            case TargetMoved():
                moved = f"The target {fact.column!r} was transformed like every other number; --public keeps it as is."
                parts.append((3, moved))
            case RareValues():
                parts.append((3, rare_words(fact)))
            case TailsCoded():
                parts.append((3 if fact.method == "keep" else 6, tail_words(fact)))
            case FormulaTexts() if not fact.quoted and form.format.value == "csv":
                begin = f"{fact.cells} cells and {fact.names} column names begin like a spreadsheet formula"
                parts.append((1, f"{begin}; --spreadsheet-safe writes them as text."))
            case _ if (words := _modified_words(fact)) is not None:
                parts.append((0, words))
    spent = [fact.epsilon for fact in certificate.facts if isinstance(fact, Randomized)]
    if spent:
        bounded = [epsilon for epsilon in spent if epsilon is not None]
        total = f"local epsilon {sum(bounded):.3g} per row" if len(bounded) == len(spent) else "no bound"
        parts.append((3, f"{len(spent)} columns randomized: {total}. The certificate has their noise distributions."))
    return parts


def _group_words(certificate: Certificate) -> str:
    levels, counts = certificate.levels, f"{certificate.rows_in} records in, {certificate.rows_out}"
    if not levels:
        return f"{counts} rows out; the method forms no groups, so there is no minimum group size."
    kind = "synthetic " if any(isinstance(fact, Chained | Synthesized) for fact in certificate.facts) else ""
    chained = any(isinstance(fact, Chained) for fact in certificate.facts)
    groups = _counted(levels["groups"], "leaf", "leaves") if chained else _counted(levels["groups"], "group")
    smallest, size = levels["smallest_group"], _size_words(certificate)
    return f"{counts} {kind}rows out; {groups}, smallest {smallest}; every minimum group size is met.{size}"


def _size_words(certificate: Certificate) -> str:
    """Group size that class-wise condensation chose; empty if it was given."""
    fact = next((fact for fact in certificate.facts if isinstance(fact, ClassPure) and fact.size), None)
    if fact is None:
        return ""
    return f" Group size {fact.size}: approximate GCD of the class sizes, in units of {_counted(fact.unit, 'record')}."


def _modified_words(fact: Fact) -> str | None:
    """How rows that are not synthetic were modified, in one line; None for other facts."""
    match fact:
        case Swapped():
            more = f" and {len(fact.columns) - 3} more" if len(fact.columns) > 3 else ""
            changed = f"{sum(fact.changed)} of {fact.rows * len(fact.columns)} values"
            return f"Swapped values of {', '.join(map(repr, fact.columns[:3]))}{more}: {changed} changed."
        case Sampled():
            return (
                f"A sample of {fact.drawn} of {fact.persons} people with their original rows, which are not protected."
            )
        case Blocked():
            values = f"{sum(fact.cells)} values of the quasi-identifiers"
            return f"Blocked {values}: each combination that remains belongs to at least {fact.least} people."
        case Downgraded():
            rules = f"no remaining rule gives more than {fact.most:.2g} bits; see owner/rules.txt"
            return f"Hid the label of {fact.hidden} rows and {sum(fact.cells)} other values: {rules}."
        case Alike() if fact.alone:
            return f"{fact.alone} of {fact.rows} rows are unique."
        case _:
            return None


def rare_words(fact: RareValues) -> str:
    """How rare categories were treated."""
    fewer = f"(fewer than {fact.k} persons)"
    if fact.shown:
        return f"Rare categories {fewer} are released as they are."
    dropped = ""
    if fact.dropped:
        dropped = f"; {_counted(len(fact.dropped), 'column')} with rare categories only dropped"
    return f"Rare categories {fewer}: none is released{dropped}."


def tail_words(fact: TailsCoded) -> str:
    """How extreme values of numeric and date columns were treated."""
    treated = {"code": "coded to random cut-offs", "smooth": "drawn from a smooth tail", "keep": "released as they are"}
    return f"Extreme values (fewer than {fact.k} persons): {treated[fact.method]}."


def _counted(count: int, one: str, many: str | None = None) -> str:
    return f"{count} {one if count == 1 else many or f'{one}s'}"
