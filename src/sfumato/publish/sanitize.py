"""sanitize: a table, a file of any length or a Spark frame in, a release out, in a folder if one is named."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from sfumato.assess.warm import compile_ahead, compile_apart
from sfumato.certificate.signature import Signer
from sfumato.core.arguments import options_of, spelled_option
from sfumato.core.errors import LevelError, OptionError, closest_name, shown
from sfumato.core.randomness import Randomness
from sfumato.engines.memory import run_in_memory
from sfumato.engines.outcome import Comparison, NoComparison, Outcome, Recipe
from sfumato.engines.partitions.batches import Geometric, check_batched, try_on_sample
from sfumato.engines.partitions.first_pass import SAMPLE_ROWS
from sfumato.engines.partitions.gather import PartitionSettings
from sfumato.engines.partitions.memory_limit import (
    Spill,
    check_memory,
    least_bytes,
    parse_size,
    partition_rows,
    run_mark,
    spilling,
    usual_memory,
)
from sfumato.engines.partitions.run import FileRows, PartitionedRows, check_partitioned, run_partitioned
from sfumato.engines.plan import make_plan, with_default_k
from sfumato.engines.spark import ClusterFile, ClusterRows, is_spark_frame, open_on_spark
from sfumato.methods.catalogue import (
    MIN_ROWS_FOR_CHAIN,
    all_parameters,
    default_method,
    make_mechanism,
    parameters_of_method,
)
from sfumato.methods.geometry.key import Key, check_key_path, keeping_key
from sfumato.methods.protocol import Mechanism
from sfumato.options import PublishOptions, RunOptions, given, options_from
from sfumato.publish.assessment import check_measuring
from sfumato.publish.attainable import PlannedRun, refuse_unattainable
from sfumato.publish.engine_choice import Engine, InputFile
from sfumato.publish.folder import check_folder, plain_errors, replacing_folder
from sfumato.publish.judge import asked_policy, policy_of
from sfumato.publish.policy import Policy, words_of
from sfumato.publish.release import Release, Signing, publish, signer_of
from sfumato.publish.shadows import FEWEST_PEOPLE, MOST_ROWS, can_be_audited
from sfumato.publish.suggest import suggesting
from sfumato.registry import method_names
from sfumato.tables.cells import is_text
from sfumato.tables.files import FileForm, FileFormat
from sfumato.tables.frames import Origin, frame_of, restore, to_arrow
from sfumato.tables.reading import FileReading
from sfumato.tables.recoding import known_columns
from sfumato.tables.schema import Schema, missing_marks
from sfumato.tables.source import TableSource, open_people
from sfumato.tables.tails import check_rare_treatment, check_tails

__all__ = [
    "MethodChoice",
    "SanitizeRun",
    "check_beside_recipe",
    "check_run",
    "form_asked",
    "open_in_parts",
    "reading_as_declared",
    "sanitize",
    "sanitize_input",
]

_WORKER_MEMORY = 2 << 30  # of a cluster, unless --memory says otherwise


@dataclass(frozen=True)
class MethodChoice:
    """What makes the release, as it was named: a mechanism, a method with parameters, or the recipe of a run.

    Without any the method depends on the number of rows.
    """

    mechanism: Mechanism | None = None
    method: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    recipe: Recipe | None = None

    @property
    def is_named(self) -> bool:
        """Whether it says which method."""
        return not (self.mechanism is None and self.method is None and self.recipe is None)

    @property
    def named_method(self) -> str | None:
        """The method by its name, if it is known before the table is read."""
        if self.recipe is not None:
            return self.recipe.method
        return self.method if self.mechanism is None else self.mechanism.method


@dataclass(frozen=True)
class SanitizeRun:
    """All that a run is asked for, besides the table.

    Parameters
    ----------
    choice : MethodChoice
    options : RunOptions
    publishing : PublishOptions
    reading : FileReading
        How the file is or was read.
    folder : path, optional
        Folder of the release.
    new_key : path, optional
        File that a drawn key is written to.
    inputs : tuple
        Other files that the run reads, which the folder must not hold.
    """

    choice: MethodChoice
    options: RunOptions
    publishing: PublishOptions = field(default_factory=PublishOptions)
    reading: FileReading = field(default_factory=FileReading)
    folder: str | Path | None = None
    new_key: str | Path | None = None
    inputs: tuple[object, ...] = ()

    def __repr__(self) -> str:
        return f"SanitizeRun({self.choice.named_method or 'method by rows'})"

    @property
    def marks(self) -> tuple[str, ...]:
        """Texts that mean a missing cell."""
        recipe = self.choice.recipe
        return missing_marks(self.options.schema if recipe is None else recipe.schema, self.options.missing)

    @property
    def effective(self) -> RunOptions:
        """Options with those that a recipe repeats."""
        return _options_beside(self.choice.recipe, self.options)


def sanitize(
    table: Any,
    mechanism: Mechanism | None = None,
    *,
    folder: str | Path | None = None,
    new_key: str | Path | None = None,
    method: str | None = None,
    recipe: Recipe | str | Path | None = None,
    schema: Schema | str | Path | None = None,
    target: str | None = None,
    level: str | int | None = None,
    strata: str | None = None,
    identifiers: Iterable[str] = (),
    person: str | None = None,
    rows_are_people: bool = False,
    weight: str | None = None,
    public: Iterable[str] = (),
    missing: Iterable[str] = (),
    holdout: float | Any | None = None,
    seed: int | None = None,
    no_rules: bool = False,
    rare: str | None = None,
    tails: str | None = None,
    rows: int | None = None,
    where: str | None = None,
    keep_persons: bool = False,
    budget_file: str | Path | None = None,
    report: bool = True,
    time_limit: float | None = None,
    shadows: int | None = None,
    quasi_identifiers: Iterable[str] = (),
    accurate_within: float | None = None,
    clusters: int | None = None,
    sampling_fraction: float | None = None,
    native: bool = False,
    spreadsheet_safe: bool = False,
    policy: Policy | str | Path | None = None,
    despite_policy: bool = False,
    command: Sequence[str] = (),
    engine: Literal["memory", "partitions", "spark"] | None = None,
    memory: str | int | None = None,
    master: str | None = None,
    resume_key: str | Path | None = None,
    batch_rows: int | None = None,
    form: FileForm | str | None = None,
    sign: Signing = None,
    overwrite: bool = False,
    encoding: str | None = None,
    delimiter: str | None = None,
    decimal: Literal[".", ","] | None = None,
    sheet: str | None = None,
    header_row: int | None = None,
    **parameters: Any,
) -> Release:
    """A table that can be mined in place of this one, certified and measured.

    Parameters
    ----------
    table : pandas, polars or pyarrow table, data frame of Spark, or path
        A file of any length if a ``folder`` is named: .parquet, .csv, .csv.gz, .arrow or .feather that needs more
        memory than is granted is processed in partitions.
    mechanism : Mechanism, optional
        In place of a method and its parameters.
    method : str, optional
        Name of a method as on the command line; by default ``"chain"``, and ``"condense"`` with fewer than 200 rows
        or if a parameter is given that only condensation has.
    recipe : Recipe or path, optional
        Recipe of an earlier run: it sets all options, so that only key, hold-out set, seed and policy may be given
        with it.
    folder : path, optional
        Write the release there: ``release/``, which leaves, and ``owner/``, which stays, whole or not at all.
    new_key : path, optional
        For geometric methods with a folder: draw a key and write it here before the table.
    schema : Schema or path, optional
        By default inferred; print ``sf.inspect(table)`` to see every decision.
    target : str, optional
        The class or response that will be mined.
    level : str or int, optional
        Privacy levels: a column, a number for all, or rules such as ``"income > 100000: 12, else: 5"``.
    strata : str, optional
        Groups never cross the values of this column. Makes its value certain for each group.
    identifiers : iterable of str
        Columns to drop, besides those that the schema drops.
    person : str, optional
        Column that identifies the person of a row: dropped; levels count persons, and rows are held out by person.
    rows_are_people : bool
        Each row is a person, although a column looks like a key of persons.
    weight : str, optional
        Column that says how many people a row stands for: sanitized like a number, then scaled to its total, and used
        by the measures of utility.
    public : iterable of str
        Columns to pass through; refused by mechanisms that make synthetic rows.
    missing : iterable of str
        Texts or numbers that mean a missing cell in every column, besides the usual marks, those that the schema lists
        and those that are found.
    holdout : float or table, optional
        Share of rows to hold out, or rows that were held out, as a control group.
    seed : int, optional
        Makes a dry run: reproducible and marked as not for release.
    no_rules : bool
        Let synthetic rows break the rules between columns that the schema lists or that every row obeys.
    rare : {"pool", "lift", "keep"}, optional
        What becomes of categories held by fewer persons than the highest privacy level: one named other, a wider one
        of the column's hierarchy, or nothing. By default they are lifted where there is a hierarchy and pooled
        elsewhere, and a rare class of the target is refused.
    tails : {"code", "smooth", "keep"}, optional
        What becomes of values of numeric and date columns beyond those of k persons: they are coded to a random
        cut-off (the default), drawn from a smooth tail, or kept.
    rows : int, optional
        How many rows to make anew, more or fewer than there are records.
    where : str, optional
        Make only rows that fulfil a rule such as ``"age > 60 and sex == F"``; for the chain.
    keep_persons : bool
        Let released persons keep several rows each, which share a new number in the column ``released_person``; for
        condensation.
    budget_file : path, optional
        For the private chain: the budget of the dataset over all its releases, which this one is charged to.
    report : bool
        Whether to measure.
    time_limit : float, optional
        Seconds that the measuring may take; chooses how many rows are looked at.
    shadows : int, optional
        Number of shadow releases to attack; 0 for none. By default as many as the policy needs, for about a minute.
    quasi_identifiers : iterable of str
        Columns that an outsider is taken to know, who attacks with these; ``"postcode@2"`` is known by its labels at
        level 2 of its hierarchy alone. By default outsiders with few columns and with half of them are tried.
    accurate_within : float, optional
        Largest error at which a predicted response counts as right, in the column's units; by default the column's step
        or a tenth of its standard deviation, whichever is larger.
    clusters : int, optional
        Number of clusters of the measures of clustering; by default the number of classes of the target, else 5.
    sampling_fraction : float, optional
        Share of the population that the table holds, above 0 and at most 1: with ``quasi_identifiers`` the report has
        the risk in the population.
    native : bool
        Write numbers and dates that came as text in types of their own.
    spreadsheet_safe : bool
        Write CSV with an apostrophe before what a spreadsheet would take for a formula.
    policy : Policy, str or path, optional
        What the release must meet: a policy, the name of one that is built in, or a file.
    despite_policy : bool
        Release it all the same where it does not; the certificate says so.
    command : sequence of str
        Words of the command line that asked for it, for what to try next.
    engine : {"memory", "partitions", "spark"}, optional
        With a folder: all rows in memory, a file in partitions, or a cluster that reads the file (Parquet or CSV) by
        itself. By default memory, unless the file needs more than is granted.
    memory : str or int, optional
        Memory limit of the run, such as ``"2G"``; less than it takes at least is refused. By default ``"1.5G"``, or
        half of what the machine has if that is less. A table is processed in the partitions of a file of that limit:
        the same seed then gives the same table.
    master : str, optional
        Of the cluster, such as ``"spark://host:7077"``; by default what Spark's own settings say.
    resume_key : path, optional
        In partitions: file of a key that makes an interrupted run resumable. It is written with mode 600 at the first
        run, read at the next, and removed once the release is there. It must not lie in the folder.
    batch_rows : int, optional
        Geometric methods in partitions: rows of a batch.
    form : FileForm or str, optional
        File format of the release in the folder; by default that of the file, or ``"csv"``.
    sign : path, Signer, Ed25519PrivateKey or bool, optional
        The private key to sign the certificate in the folder with, as in `sfumato.Release.save`.
    overwrite : bool
        Replace an earlier release in the folder.
    encoding, delimiter, decimal, sheet, header_row : optional
        How a file is read: encoding, delimiter and decimal separator of CSV, the sheet of a workbook, and the row or
        line that names the columns, counted from 1. By default they are detected; what was detected is reported as a
        warning.
    **parameters
        Of the method, by the names of its mechanism's fields. Without ``k``, chain and condensation
        take 10, or 2 where ``level`` says what records ask for; of fewer than 2,000 people a chain takes one in ten,
        up to 50, where each class of the target has as many. ``key`` may be the file of one.

    Returns
    -------
    Release
        Its table is of the frame type that came in, or of a run in partitions the path of the
        released file.

    Raises
    ------
    PolicyNotMet
        If the policy is not met or the verdict is inconclusive; it holds the report. Neither folder nor key is written.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = pa.table({"age": list(range(20, 60)), "sex": ["f", "m"] * 20})
    >>> release = sanitize(table, k=5, seed=1, report=False)
    >>> release.table.num_rows, release.certificate.levels["smallest_group"] >= 5
    (40, True)
    """
    arguments = dict(locals())
    inputs = tuple(each for each in (table, recipe) if isinstance(each, str | Path))
    recipe = Recipe.load(recipe) if isinstance(recipe, str | Path) else recipe
    run = SanitizeRun(
        MethodChoice(mechanism, method, parameters, recipe),
        options_from(RunOptions, arguments),
        options_from(PublishOptions, arguments),
        options_from(FileReading, arguments),
        folder,
        new_key,
        inputs,
    )
    run = check_run(run)
    if folder is not None:
        run = replace(run, publishing=replace(run.publishing, sign=_signer(run) or False))
    return sanitize_input(*_opened(table, run))


def _opened(table: Any, run: SanitizeRun) -> tuple[SanitizeRun, Any, Origin | None]:
    """The run with how its file was read, and the table, file or Spark frame that comes from what was given."""
    if is_spark_frame(table):
        return run, table, None
    if isinstance(table, str | Path):
        run = reading_as_declared(run, str(table))
    if run.folder is not None and isinstance(table, str | Path):
        engine = InputFile(str(table), run.effective, run.publishing, run.reading, run.choice.named_method).engine()
        if engine != "memory":
            return run, open_in_parts(table, engine, run), None
        if run.options.engine is None:
            run = replace(run, options=replace(run.options, memory=None))
    arrow, origin = to_arrow(table, run.marks, run.reading)
    return replace(run, reading=origin.reading), arrow, origin


def reading_as_declared(run: SanitizeRun, source: str) -> SanitizeRun:
    """The run, which detects nothing in its file if its method depends on declarations alone."""
    if not run.choice.is_named or not resolve_run(run)[0].traits.declared:
        return run
    return replace(run, reading=run.reading.without_detection(source))


def open_in_parts(path: str | Path, engine: Engine, run: SanitizeRun) -> TableSource | ClusterFile:
    """A file as people write it, for the engine that reads it; refuses what cannot be before the file is read."""
    if run.choice.is_named:
        chosen, options, _ = resolve_run(run)
        _check_in_parts(chosen, replace(run, options=options))
    reading = run.reading.given | {"missing": run.marks}
    return (
        open_people(path, **reading) if engine == "partitions" else open_on_spark(path, run.options.master, **reading)
    )


def sanitize_input(run: SanitizeRun, source: Any, origin: Origin | None = None) -> Release:
    """Release of an Arrow table, a file that is read in parts or a data frame of Spark, written if a folder is named.

    ``origin`` says which kind of frame, or what kind of file, a table came from.
    """
    if not run.choice.is_named:
        run = replace(run, choice=_by_rows(run, source))
    named = run.choice.method
    chosen, options, policy = resolve_run(run)
    rows = source.num_rows if isinstance(source, pa.Table) else None
    asked = asked_policy(policy, report=run.publishing.report, despite=run.publishing.despite_policy)
    planned = _planned(chosen, options, rows, in_memory=rows is not None, shadows=run.publishing.shadows)
    _refuse_impossible(planned, asked, run.publishing)
    run = replace(run, options=options, publishing=replace(run.publishing, policy=asked))
    if isinstance(source, TableSource | ClusterFile):
        return _in_parts(run, chosen, source)
    if not isinstance(source, pa.Table):
        return _on_spark(run, chosen, source)
    return _in_memory(run, chosen, source, origin, usual_k=named == "chain" and run.choice.parameters.get("k") is None)


def _in_memory(
    run: SanitizeRun, chosen: Mechanism, arrow: pa.Table, origin: Origin | None, *, usual_k: bool
) -> Release:
    """Release of a table; ``usual_k`` lets k depend on the number of people."""
    options, form, publishing = run.options, _form_in_memory(run, origin), run.publishing
    if form is not None and origin is not None and origin.form is not None:
        native = origin.form.format is FileFormat.CSV and form.format is not FileFormat.CSV
        publishing = replace(publishing, native=publishing.native or native)
    signer = _signer(run)
    if publishing.report:
        compile_ahead()
    if options.memory is not None:
        source = TableSource(Path("table"), FileForm(FileFormat.ARROW), arrow.schema, arrow.num_rows, table=arrow)
        _check_memory(run, source)
        settings = _settings(run, Randomness(options.seed).repeatable(), arrow.num_columns)
        outcome, suggest = run_partitioned(FileRows(source, Spill()), chosen, options, settings), None
    else:
        plan = make_plan(arrow, chosen, options)
        if usual_k and options.level is None:
            plan = with_default_k(plan, arrow)
        publishing = replace(publishing, quasi_identifiers=known_columns(publishing.quasi_identifiers, plan.schema))
        outcome = run_in_memory(arrow, plan, native=publishing.native, report=publishing.report)
        publishing = replace(publishing, command=publishing.command or words_of(outcome.recipe, publishing.policy))
        proved = chosen.traits.declared  # nothing is then chosen by measuring
        suggest = None if proved else suggesting(arrow, plan, publishing)
    outcome = outcome.read_by(run.reading)
    release = publish(outcome, publishing, suggest=suggest)
    if origin is not None:
        release = _restore_frame_type(release, outcome, arrow, origin, native=publishing.native)
    if run.folder is None or form is None:
        return release
    with keeping_key(release.key, run.new_key, run.folder):
        return release.written(run.folder, form=form, overwrite=publishing.overwrite, sign=signer or False)


def _form_in_memory(run: SanitizeRun, origin: Origin | None) -> FileForm | None:
    """How the table is written into the folder, if there is one: as asked, as its file is, or as CSV."""
    if run.folder is None:
        return None
    read = FileForm(FileFormat.CSV) if origin is None or origin.form is None else origin.form
    form = form_asked(run.publishing, read)
    if run.publishing.spreadsheet_safe and form.format is not FileFormat.CSV:
        raise OptionError("--spreadsheet-safe applies to CSV only; add --format csv, or drop it")
    return form


def form_asked(publishing: PublishOptions, read: FileForm) -> FileForm:
    """How the table is written: as asked or as it was read; one that is named keeps the delimiter of what was read."""
    form = publishing.form
    if form is None:
        return read
    return form if isinstance(form, FileForm) else FileForm(FileFormat(form), read.delimiter)


def _signer(run: SanitizeRun) -> Signer | None:
    if run.folder is None:
        return None
    return signer_of(run.publishing.sign, dry_run=run.effective.seed is not None, folder=run.folder)


def _in_parts(run: SanitizeRun, chosen: Mechanism, file: TableSource | ClusterFile) -> Release:
    """Release of a file of any length, in a folder; memory is bounded by a batch or a partition, and by a sample."""
    options, publishing, folder = run.options, run.publishing, run.folder
    assert folder is not None
    _check_in_parts(chosen, run)
    form, signer = form_asked(publishing, file.form), _signer(run)
    if publishing.spreadsheet_safe and form.format is not FileFormat.CSV:
        raise OptionError("apostrophes before formulas are for CSV; drop --spreadsheet-safe, or write CSV")
    if options.memory is not None and isinstance(file, TableSource):
        _check_memory(run, file)
        if publishing.report:
            compile_apart()
    native = file.form.format is FileFormat.CSV and form.format is not FileFormat.CSV
    settled = replace(run, reading=run.reading.repeated(file.form), publishing=replace(publishing, native=native))
    if isinstance(file, ClusterFile):
        randomness = Randomness(options.seed).repeatable()
        settings = replace(_settings(settled, randomness, len(file.frame.columns)), form=form)
        return _written_in_parts(settled, chosen, ClusterRows(file.frame), settings, signer)
    with plain_errors("the release"), spilling(Path(folder), options.resume_key) as (spill, secret):
        randomness = Randomness(options.seed).repeatable(secret)
        settings = replace(_settings(settled, randomness, len(file.schema), usual_memory()), form=form)
        mark = None
        if options.resume_key is not None:
            mark = run_mark(file, chosen, options, settings.most_rows, form)
        return _written_in_parts(settled, chosen, FileRows(file, spill, mark), settings, signer)


def _check_memory(run: SanitizeRun, source: TableSource) -> None:
    """Refuse a memory limit below what a run in partitions takes at least."""
    assert run.options.memory is not None
    least, less = (least_bytes(source, report=each) for each in (run.publishing.report, False))
    check_memory(parse_size(run.options.memory), least, less)


def _written_in_parts(
    run: SanitizeRun, chosen: Mechanism, rows: PartitionedRows, settings: PartitionSettings, signer: Signer | None
) -> Release:
    """Release of rows wherever they lie; the folder, and a new key, appear whole or not at all."""
    folder, form, tried = run.folder, settings.form, None
    assert folder is not None
    assert form is not None
    if isinstance(chosen, Geometric):
        tried = try_on_sample(rows, chosen, run.options, settings)
    key = nullcontext() if tried is None else keeping_key(tried.key, run.new_key, folder)
    overwrite = run.publishing.overwrite
    with plain_errors("the release"), key, replacing_folder(folder, overwrite=overwrite) as work:
        (work / "release").mkdir()
        settings = replace(settings, place=work / "release" / f"table.{form.format.value}")
        if tried is not None:
            outcome = rows.transform(tried, settings)
        else:
            outcome = run_partitioned(rows, chosen, run.options, settings)
        release = publish(outcome.read_by(run.reading), run.publishing).write_into(work, form, signer)
    return replace(release, table=Path(folder, "release", f"table.{form.format.value}"), folder=Path(folder))


def _settings(run: SanitizeRun, randomness: Randomness, columns: int, usual: int = _WORKER_MEMORY) -> PartitionSettings:
    """How a table of a number of columns is processed in partitions, within the given or default memory."""
    publishing, granted = run.publishing, run.options.memory
    return PartitionSettings(
        randomness,
        most_rows=partition_rows(usual if granted is None else parse_size(granted), columns),
        measured=SAMPLE_ROWS if publishing.report else 0,
        quasi_identifiers=tuple(publishing.quasi_identifiers),
        native=publishing.native,
        spreadsheet_safe=publishing.spreadsheet_safe,
        batch_rows=run.options.batch_rows,
    )


def _check_in_parts(chosen: Mechanism, run: SanitizeRun) -> None:
    """Refuse a method or an option that needs all rows at once, and a geometric method without one key."""
    assert run.folder is not None
    if isinstance(chosen, Geometric):
        check_batched(chosen, run.options)
        if (chosen.given_key is None) == (run.new_key is None):
            raise OptionError("a file is moved either by the mechanism's key or by a new one; give --key or --new-key")
        if run.new_key is not None:
            check_key_path(run.new_key, apart_from=run.folder)
    elif run.new_key is not None or run.options.batch_rows is not None:
        raise OptionError("--new-key and --batch-rows are for methods that move a file row by row; leave them out")
    else:
        check_partitioned(chosen, run.options)


def _on_spark(run: SanitizeRun, chosen: Mechanism, frame: Any) -> Release:
    """Release of a data frame of Spark, whose table is one too."""
    if run.folder is not None:
        raise OptionError("a data frame of Spark is not written into a folder; leave out folder=, or name its file")
    rows = ClusterRows(frame)
    settings = _settings(run, Randomness(run.options.seed).repeatable(), len(frame.columns))
    if isinstance(chosen, Geometric):
        outcome = rows.transform(try_on_sample(rows, chosen, run.options, settings), settings)
    else:
        outcome = run_partitioned(rows, chosen, run.options, settings)
    return replace(publish(outcome, run.publishing), table=rows.released)


def _by_rows(run: SanitizeRun, source: Any) -> MethodChoice:
    """The default method: the chain, or condensation for few rows or if one of its options is given."""
    parameters = run.choice.parameters
    if isinstance(source, TableSource | ClusterFile):
        rows = source.first_rows(MIN_ROWS_FOR_CHAIN)
    else:
        rows = source.num_rows if isinstance(source, pa.Table) else source.limit(MIN_ROWS_FOR_CHAIN).count()
    method = default_method([name for name, value in parameters.items() if value is not None], rows)
    if isinstance(source, pa.Table) and run.options.keep_persons and method == "chain" and "leaf" not in parameters:
        method = "condense"
    return replace(run.choice, method=method)


def _restore_frame_type(
    release: Release, outcome: Outcome, arrow: pa.Table, origin: Origin, *, native: bool
) -> Release:
    """Release whose table is of the frame type that came in, and its columns of their types unless ``native``."""
    if release.report is not None:
        release = dataclasses.replace(release, report=dataclasses.replace(release.report, frame=origin.kind))
    if release.certificate.privacy is not None:  # the original's types and metadata may tell of its cells
        return dataclasses.replace(release, table=frame_of(release.table, origin.kind))
    codec = outcome.comparison.codec if isinstance(outcome.comparison, Comparison | NoComparison) else None
    if native or codec is None or not isinstance(outcome.table, pa.Table):
        return release
    compared = outcome.comparison.released if isinstance(outcome.comparison, Comparison) else outcome.table
    free = codec.retyped(compared) | _relabelled(outcome, arrow)
    return dataclasses.replace(release, table=restore(release.table, origin, free))


def _relabelled(outcome: Outcome, arrow: pa.Table) -> frozenset[str]:
    """Columns with a category or a gap that their old type may not know, as that of what was pooled or blocked.

    Those that leave as another kind of value, as numbers that stand for sets of labels, are among them.
    """
    before = outcome.recipe.schema
    return (
        _with_new_gaps(outcome, arrow)
        | (frozenset(outcome.schema.names) - frozenset(arrow.column_names))  # which the table did not have
        | frozenset(field.name for field in outcome.schema.encoded if field.kind is not before[field.name].kind)
        | frozenset(
            field.name
            for field in outcome.schema.encoded
            if not is_text(arrow.schema.field(field.name).type)
            and not set(field.domain.categories or ()) <= set(before[field.name].domain.categories or ())
        )
    )


def _with_new_gaps(outcome: Outcome, arrow: pa.Table) -> frozenset[str]:
    """Columns without missing cells that got some, which a type of whole numbers may not know."""
    made = outcome.table
    if not isinstance(made, pa.Table):
        return frozenset()
    before = set(arrow.column_names)
    gaps = {name for name in made.column_names if name in before and made.column(name).null_count}
    return frozenset(name for name in gaps if not arrow.column(name).null_count)


_LEVELLED = ("chain", "condense", "condense-paper")
"""Methods whose floor of all levels is lower where something says what each record asks for."""


def resolve_run(run: SanitizeRun) -> tuple[Mechanism, RunOptions, Policy | str | Path | None]:
    """Mechanism, options and policy of a run: a recipe's, if there is one, and those that may be given beside it."""
    choice, recipe = run.choice, run.choice.recipe
    if recipe is None:
        return _chosen(choice, run.options), run.options, run.publishing.policy
    check_beside_recipe(choice, run.options)
    mechanism = make_mechanism(recipe.method, {**recipe.parameters, **_with_key(choice.parameters)})
    policy = run.publishing.policy
    return mechanism, run.effective, policy_of(recipe) if policy is None else policy


def _options_beside(recipe: Recipe | None, options: RunOptions) -> RunOptions:
    """Options of a recipe, and those that were given beside it."""
    if recipe is None:
        return options
    repeated = {name: getattr(recipe.options, name) for name, each in options_of(RunOptions) if each.in_recipe}
    return RunOptions(**{**repeated, **given(options), "schema": recipe.schema})


def check_run(run: SanitizeRun) -> SanitizeRun:
    """Refuse what is impossible whatever the table holds: names, parameters, a folder, a policy that cannot be met.

    Gives the run with what its recipe says of how the file is read.
    """
    options, publishing, choice = run.options, run.publishing, run.choice
    check_rare_treatment(options.rare)
    check_tails(options.tails)
    check_measuring(publishing)
    _check_folder(run)
    _check_names(choice.method, choice.parameters)
    chosen, policy = None, publishing.policy
    if choice.is_named:
        chosen, options, policy = resolve_run(run)
    asked = asked_policy(policy, report=publishing.report, despite=publishing.despite_policy)
    _refuse_impossible(_planned(chosen, options, shadows=publishing.shadows), asked, publishing)
    return run if choice.recipe is None else replace(run, reading=run.reading.or_else(choice.recipe.reading))


_OF_FOLDERS = ("form", "sign", "overwrite", "engine", "master", "resume_key", "batch_rows")


def _check_folder(run: SanitizeRun) -> None:
    """Refuse a folder that cannot be written, or that holds what the run reads, and options of one if none is named."""
    options, publishing = run.options, run.publishing
    if run.folder is None:
        asked = {**given(options), **given(publishing), "new_key": run.new_key}
        name = next((name for name in (*_OF_FOLDERS, "new_key") if asked.get(name) is not None), None)
        if name is not None:
            raise OptionError(f"{name}= is for a release that is written; name where with folder=, or leave it out")
        return
    key = run.choice.parameters.get("key")
    inputs = (
        options.schema,
        publishing.policy,
        publishing.sign,
        options.holdout,
        key,
        options.resume_key,
        options.budget_file,
    )
    check_folder(run.folder, overwrite=publishing.overwrite, inputs=(*run.inputs, *inputs))


def _planned(
    mechanism: Mechanism | None,
    options: RunOptions,
    rows: int | None = None,
    *,
    in_memory: bool = True,
    shadows: int | None = None,
) -> PlannedRun:
    """What a policy needs to know of a run before it starts; ``rows`` is None if the table is not read yet."""
    whole = in_memory and options.memory is None and options.engine in (None, "memory")
    sized = rows is None or FEWEST_PEOPLE <= rows <= MOST_ROWS
    return PlannedRun(
        control=options.holdout is not None,
        control_rows=None if options.share is None else rows,
        mechanism=mechanism,
        level=options.level,
        rare=options.rare,
        tails=options.tails,
        audited=shadows != 0 and whole and sized and (mechanism is None or can_be_audited(mechanism)),
    )


def _refuse_impossible(planned: PlannedRun, policy: Policy | None, publishing: PublishOptions) -> None:
    """Refuse a policy that cannot be met, and shadow releases that cannot be made."""
    if publishing.shadows and (planned.control or not planned.audited):
        raise OptionError(
            "--shadows is for methods that can be run again in memory, tables of "
            f"{FEWEST_PEOPLE} to {MOST_ROWS:,} rows, and no control group; drop it"
        )
    refuse_unattainable(policy, planned, despite=publishing.despite_policy)


def _check_names(method: str | None, parameters: Mapping[str, Any]) -> None:
    """Refuse a parameter that no method has, naming the argument that was probably meant, or that no usual one has."""
    methods = ("chain", "condense") if method is None else (method,)
    usual = [name for each in methods for name in parameters_of_method(each)]
    unknown = next((name for name in parameters if name not in all_parameters() and name != "key"), None)
    if unknown is None:
        lacking = next((name for name in parameters if name not in (*usual, "key")), None)
        if method is None and lacking is not None:
            owners = ", ".join(each for each in method_names() if lacking in parameters_of_method(each))
            raise OptionError(f"{shown(lacking)} is a parameter of {owners}; name the method with --method")
        return
    arguments = [name for name in inspect.signature(sanitize).parameters if name != "parameters"]
    meant = closest_name(unknown, [*usual, *arguments])
    whose = "sanitize has no argument" if method is None else f"the method {method!r} has no parameter"
    then = "help(sfumato.sanitize) lists them" if meant is None else f"did you mean {meant!r}?"
    raise OptionError(f"{whose} {shown(unknown)}; {then}")


def _chosen(choice: MethodChoice, options: RunOptions) -> Mechanism:
    """Mechanism that was given, or the one of the method's name and parameters."""
    mechanism, method, parameters = choice.mechanism, choice.method, choice.parameters
    if mechanism is not None:
        if method is not None or parameters:
            name = next(iter(parameters), "method")
            raise OptionError(f"the mechanism already sets {name!r}; leave one of them out")
        return mechanism
    assert method is not None
    settled = _with_key(parameters)
    if method in _LEVELLED and settled.get("k") is None:
        lone = settled.get("allow_level_1") is True
        levels = options.level is not None or (lone and options.schema is not None)
        settled["k"] = 10 if not levels else 1 if lone else 2
    one = settled.get("k") == 1 and settled["k"] is not True
    if one and settled.get("allow_level_1") is None and "allow_level_1" in all_parameters():
        raise LevelError("k is 1, which is no protection; use --k 2 or more, or add --allow-level-1")
    return make_mechanism(method, settled)


def _with_key(parameters: Mapping[str, Any]) -> dict[str, object]:
    """Given parameters, with a key read if its file was given; a recipe holds none."""
    key = parameters.get("key")
    return {**parameters, "key": Key.load(key)} if isinstance(key, str | Path) else dict(parameters)


def check_beside_recipe(choice: MethodChoice, options: RunOptions) -> None:
    """Refuse what a recipe already says; a key, people to hold out, a seed and a policy may be given beside it."""
    making = {"mechanism": choice.mechanism, "method": choice.method, **choice.parameters}
    double = next((name for name, value in making.items() if name != "key" and value not in (None, (), [])), None)
    option = None if double is None else f"--{double.replace('_', '-')}"
    for name, each in options_of(RunOptions):
        if option is None and not each.beside_recipe and name in given(options):
            option = spelled_option(name, each)
    if option is not None:
        raise OptionError(f"--recipe already sets {option}; edit the recipe or leave one out")
