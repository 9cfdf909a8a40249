"""sanitize and sanitize_file: a table in, a release out; a file of any length in, a release folder out."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from sfumato.assess.study import MeasureOptions
from sfumato.assess.warm import compile_ahead, compile_apart
from sfumato.core.errors import LevelError, OptionError, closest_name, shown
from sfumato.core.option import options_of, spelled_option
from sfumato.engines.memory import run_in_memory
from sfumato.engines.outcome import Apart, Comparison, Outcome, Recipe
from sfumato.engines.partitions.batches import Geometric
from sfumato.engines.partitions.memory_limit import check_memory, least_bytes, parse_size
from sfumato.engines.partitions.run import check_partitioned
from sfumato.engines.partitions.sampling import SAMPLE_ROWS
from sfumato.engines.plan import for_few_people, make_plan
from sfumato.engines.spark import ClusterFile, is_spark_frame, open_on_spark
from sfumato.methods.catalogue import (
    MIN_ROWS_FOR_CHAIN,
    all_parameters,
    default_method,
    make_mechanism,
    parameters_of_method,
)
from sfumato.methods.geometry.key import Key
from sfumato.methods.protocol import Mechanism
from sfumato.options import RunOptions, given
from sfumato.publish.attainable import PlannedRun, refuse_unattainable
from sfumato.publish.folder import check_folder
from sfumato.publish.judge import asked_policy, policy_of
from sfumato.publish.large import (
    check_moved,
    frame_in_partitions,
    frame_moved_on_spark,
    frame_on_spark,
    release_in_partitions,
    release_moved,
    release_on_spark,
)
from sfumato.publish.policy import Policy, words_of
from sfumato.publish.release import Release, Signing, check_time_limit, publish, signer_of
from sfumato.publish.suggest import suggesting
from sfumato.tables.cells import is_text
from sfumato.tables.files import FileForm
from sfumato.tables.frames import Origin, restore, to_arrow
from sfumato.tables.rare import check_rare_treatment
from sfumato.tables.reading import FileReading
from sfumato.tables.recoding import known_columns
from sfumato.tables.schema import Schema, missing_marks
from sfumato.tables.source import TableSource, open_people
from sfumato.tables.tails import check_tails

__all__ = ["check_run", "file_of", "sanitize", "sanitize_file"]


def sanitize(
    table: Any,
    mechanism: Mechanism | None = None,
    *,
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
    report: bool = True,
    time_limit: float | None = None,
    quasi_identifiers: Iterable[str] = (),
    accurate_within: float | None = None,
    clusters: int | None = None,
    native: bool = False,
    spreadsheet_safe: bool = False,
    policy: Policy | str | Path | None = None,
    despite_policy: bool = False,
    command: Sequence[str] = (),
    memory: str | int | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
    header_row: int | None = None,
    read: FileReading | None = None,
    **parameters: Any,
) -> Release:
    """A table that can be mined in place of this one, certified and measured.

    Parameters
    ----------
    table : pandas, polars or pyarrow table, data frame of Spark, or path
    mechanism : Mechanism, optional
        In place of a method and its parameters.
    method : str, optional
        Name of a method as on the command line; by default ``"chain"``, and ``"condense"`` with fewer than 200 rows
        or where a parameter is told that only condensation has.
    recipe : Recipe or path, optional
        Of an earlier run: says all that it says, so that only a key, rows to hold out, a seed and a policy may be told
        beside it.
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
        Column that says who a row is about: dropped; levels count persons, and rows are held out by person.
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
        Share of rows to keep out of the release, or rows that were kept out, for measuring.
    seed : int, optional
        Makes a dry run: reproducible and marked as not for release.
    no_rules : bool
        Let rows that are made anew break the rules between columns that the schema lists or that every row obeys.
    rare : {"pool", "lift", "keep"}, optional
        What becomes of categories that fewer persons hold than the highest privacy level: one named other, a wider one
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
    report : bool
        Whether to measure.
    time_limit : float, optional
        Seconds that the measuring may take; chooses how many rows are looked at.
    quasi_identifiers : iterable of str
        Columns that an outsider is taken to know, who attacks with these; ``"postcode@2"`` is known by its labels at
        level 2 of its hierarchy alone. By default outsiders with few columns and with half of them are tried.
    accurate_within : float, optional
        Largest error at which a predicted response counts as right, in the column's units; by default the column's step
        or a tenth of its standard deviation, whichever is larger.
    clusters : int, optional
        Number of clusters of the measures of clustering; by default the number of classes of the target, else 5.
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
    memory : str or int, optional
        Cut the table into cells as a file is that must do with so much memory, such as ``"2G"``: the same seed then
        gives the same table. Without it all rows are taken at once.
    encoding, sheet, header_row : optional
        How a file is read: the encoding of CSV, the sheet of a workbook, and the row or line that names the columns,
        counted from 1. By default they are detected; what was detected is told as a warning.
    read : FileReading, optional
        How the file was read that the table came from, for the recipe; by default as the three say.
    **parameters
        Of the method, by the names of its mechanism's fields. Where nothing is said of ``k``, chain and condensation
        take 10, or 2 where ``level`` says what records ask for; of fewer than 2,000 people a chain takes one in ten,
        up to 50, where each class of the target has as many. ``key`` may be the file of one.

    Returns
    -------
    Release
        Its table is of the frame type that came in.

    Raises
    ------
    PolicyNotMet
        Where the policy is not met, or it cannot be told; it holds the report.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = pa.table({"age": list(range(20, 60)), "sex": ["f", "m"] * 20})
    >>> release = sanitize(table, k=5, seed=1, report=False)
    >>> release.table.num_rows, release.certificate.levels["smallest_group"] >= 5
    (40, True)
    """
    options = RunOptions(
        schema=schema, target=target, identifiers=tuple(identifiers), person=person, rows_are_people=rows_are_people,
        keep_persons=keep_persons, weight=weight, public=tuple(public), missing=tuple(missing), level=plain(level),
        strata=strata, holdout=plain(holdout), seed=seed, no_rules=no_rules, rare=check_rare_treatment(rare),
        rows=plain(rows), tails=check_tails(tails), where=where, memory=memory,
    )  # fmt: skip
    if isinstance(recipe, str | Path):
        recipe = Recipe.load(recipe)
    check_run(mechanism, method, parameters, options, recipe, policy, report=report, despite=despite_policy)
    marks = missing_marks(schema if recipe is None else recipe.schema, options.missing)
    reading = FileReading(encoding=encoding, sheet=sheet, header_row=header_row)
    if recipe is not None and isinstance(table, str | Path):
        reading = reading.or_else(recipe.reading)
    frame = None if is_spark_frame(table) else to_arrow(table, marks, reading)
    if method is None and mechanism is None and recipe is None:
        method = method_of(parameters, table.limit(MIN_ROWS_FOR_CHAIN).count() if frame is None else frame[0].num_rows)
        if frame is not None and keep_persons and method == "chain" and "leaf" not in parameters:
            method = "condense"
    chosen, options, policy = resolve_run(mechanism, method, parameters, options, recipe, policy)
    check_time_limit(time_limit)
    asked = asked_policy(policy, report=report, despite=despite_policy)
    planned = _planned(chosen, options, None if frame is None else frame[0].num_rows)
    refuse_unattainable(asked, planned, despite=despite_policy)
    said: dict[str, Any] = {"report": report, "time_limit": time_limit, "policy": asked, "command": command}
    said |= {"despite_policy": despite_policy, "measuring": MeasureOptions(accurate_within, clusters)}
    if frame is None:
        return _on_spark(table, chosen, options, quasi_identifiers, said)
    arrow, origin = frame
    if report:
        compile_ahead()
    if memory is not None:
        quasi_identifiers = tuple(quasi_identifiers)
        outcome = frame_in_partitions(
            arrow, chosen, options, report=report, quasi_identifiers=quasi_identifiers, native=native
        )
        outside, suggest = known_columns(quasi_identifiers, outcome.recipe.schema), None
    else:
        plan = make_plan(arrow, chosen, options)
        if method == "chain" and parameters.get("k") is None and options.level is None:
            plan = for_few_people(plan, arrow)
        outside = known_columns(quasi_identifiers, plan.schema)
        outcome = run_in_memory(arrow, plan, native=native, report=report)
        suggest = suggesting(arrow, plan, command or words_of(outcome.recipe, asked), time_limit, outside)
    outcome = outcome.read_by(read or origin.reading)
    release = publish(outcome, quasi_identifiers=outside, spreadsheet_safe=spreadsheet_safe, suggest=suggest, **said)
    return _as_it_came(release, outcome, arrow, origin, native=native)


def _as_it_came(release: Release, outcome: Outcome, arrow: pa.Table, origin: Origin, *, native: bool) -> Release:
    """Release whose table is of the frame type that came in, and its columns of their types unless ``native``."""
    if release.report is not None:
        release = dataclasses.replace(release, report=dataclasses.replace(release.report, frame=origin.kind))
    codec = outcome.comparison.codec if isinstance(outcome.comparison, Comparison | Apart) else None
    if native or codec is None or not isinstance(outcome.table, pa.Table):
        return release
    compared = outcome.comparison.released if isinstance(outcome.comparison, Comparison) else outcome.table
    free = codec.retyped(compared) | _relabelled(outcome, arrow)
    return dataclasses.replace(release, table=restore(release.table, origin, free))


def _on_spark(
    frame: Any,
    mechanism: Mechanism,
    options: RunOptions,
    quasi_identifiers: Iterable[str],
    said: Mapping[str, Any],
) -> Release:
    """Release of a data frame of Spark, whose table is one too."""
    if isinstance(mechanism, Geometric):
        outcome, rows = frame_moved_on_spark(frame, mechanism, options)
    else:
        outcome, rows = frame_on_spark(frame, mechanism, options, report=said["report"])
    outside = known_columns(quasi_identifiers, outcome.recipe.schema)
    release = publish(dataclasses.replace(outcome, table=Path("spark")), quasi_identifiers=outside, **said)
    return dataclasses.replace(release, table=rows)


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


def file_of(
    source: str | Path | TableSource | ClusterFile,
    engine: Literal["chunks", "spark"] = "chunks",
    master: str | None = None,
    **reading: Any,
) -> TableSource | ClusterFile:
    """A file as people write it, for the engine that will read it; ``form`` says how it is written."""
    if isinstance(source, TableSource | ClusterFile):
        return source
    return open_people(source, **reading) if engine == "chunks" else open_on_spark(source, master, **reading)


def sanitize_file(
    source: str | Path | TableSource | ClusterFile,
    folder: str | Path,
    mechanism: Mechanism | None = None,
    *,
    method: str | None = None,
    recipe: Recipe | str | Path | None = None,
    schema: Schema | str | Path | None = None,
    target: str | None = None,
    level: str | int | None = None,
    strata: str | None = None,
    identifiers: Iterable[str] = (),
    person: str | None = None,
    rows_are_people: bool = False,
    public: Iterable[str] = (),
    missing: Iterable[str] = (),
    holdout: float | Any | None = None,
    no_rules: bool | None = None,
    rare: str | None = None,
    tails: str | None = None,
    rows: int | None = None,
    new_key: str | Path | None = None,
    batch_rows: int | None = None,
    sample_rows: int = SAMPLE_ROWS,
    seed: int | None = None,
    report: bool = True,
    time_limit: float | None = None,
    quasi_identifiers: Iterable[str] = (),
    accurate_within: float | None = None,
    clusters: int | None = None,
    encoding: str | None = None,
    delimiter: str | None = None,
    decimal: Literal[".", ","] | None = None,
    header_row: int | None = None,
    sign: Signing = None,
    overwrite: bool = False,
    spreadsheet_safe: bool = False,
    policy: Policy | str | Path | None = None,
    despite_policy: bool = False,
    memory: str | int | None = None,
    resume_key: str | Path | None = None,
    engine: Literal["chunks", "spark"] = "chunks",
    master: str | None = None,
    form: FileForm | None = None,
    command: Sequence[str] = (),
    **parameters: Any,
) -> Release:
    """Sanitize a file of any length and write a whole release folder, certified and measured.

    Geometric methods move it batch by batch; others cut it into cells, which are sanitized one after the other. Memory
    is bounded by a batch or a cell, and by a sample. Folder and key appear together or not at all.

    Parameters
    ----------
    source : path, or what `file_of` gave
        A .parquet, .csv, .csv.gz, .arrow or .feather file; the released table is of the same format, unless ``form``
        says another.
    folder : path
        For ``release/`` and ``owner/``.
    mechanism : Mechanism, optional
        Translation, Scaling, Rotation or Hybrid, with a key or together with ``new_key``; Chain, Condensation,
        ClasswiseCondensation or Randomization.
    method, recipe, **parameters
        In place of a mechanism, as in `sanitize`.
    schema : Schema or path, optional
        By default proposed from the sample; bounds and steps seen there do not bind the other rows.
    target, identifiers, person, rows_are_people, public, missing
        As in `sanitize`.
    level, strata, holdout, no_rules, rare, tails, rows
        As in `sanitize`; not for geometric methods.
    new_key : path, optional
        Draw a key, with the spreads of the sample, and write it here before the table.
    batch_rows : int, optional
        Rows of a batch; see `sfumato.engines.partitions.batches_file`.
    sample_rows : int
        Rows that are drawn at random for the schema, the key and the report.
    seed : int, optional
        Makes a dry run: reproducible and marked as not for release.
    report : bool
        Whether to measure, on the sample.
    time_limit : float, optional
        Seconds that the measuring may take.
    quasi_identifiers : iterable of str
        Columns that an outsider is taken to know.
    accurate_within, clusters
        As in `sanitize`.
    encoding : str, optional
        Of CSV; by default UTF-8, or what is detected.
    delimiter : str, optional
        Of CSV; without it, what its header says.
    decimal : {".", ","}, optional
        Mark before decimals of CSV; without it, what its numbers say.
    header_row : int, optional
        Line of CSV that names the columns, counted from 1; by default the first, or the one below a title.
    sign : path, Signer, Ed25519PrivateKey or bool, optional
        The private key to sign the certificate with, as in `sfumato.Release.save`.
    overwrite : bool
        Replace an earlier release of that name.
    spreadsheet_safe : bool
        Write CSV with an apostrophe before what a spreadsheet would take for a formula.
    policy : Policy, str or path, optional
        What the release must meet: one that is built in, by its name, or a file.
    despite_policy : bool
        Release it all the same where it does not; the certificate says so.
    memory : str or int, optional
        How much the run may take, such as ``"2G"``; less than it takes at least is refused. By default ``"1.5G"``, or
        half of what the machine has if that is less.
    resume_key : path, optional
        File of a key that makes a run in cells resumable where it is stopped: written with mode 600 at the first run,
        read at the next, and removed once the release is there. It must not lie in the folder.
    engine : {"chunks", "spark"}
        Who does the work: this machine, or a cluster that reads the source (Parquet or CSV) by itself.
    master : str, optional
        Of the cluster, such as ``"spark://host:7077"``; by default what Spark's own settings say.
    form : FileForm, optional
        How to write the table; by default as the source is written.
    command : sequence of str
        Words of the command line that asked for it, for what to try next.

    Raises
    ------
    PolicyNotMet
        Where the policy is not met, or it cannot be told; neither folder nor key is written.
    """
    options = RunOptions(
        schema=schema, target=target, identifiers=tuple(identifiers), person=person, rows_are_people=rows_are_people,
        public=tuple(public), missing=tuple(missing), level=level, strata=strata, holdout=holdout, seed=seed,
        no_rules=bool(no_rules), rare=check_rare_treatment(rare), rows=rows, tails=check_tails(tails), memory=memory,
        resume_key=resume_key, batch_rows=batch_rows,
    )  # fmt: skip
    inputs = (getattr(source, "path", source), schema, recipe, policy, sign, holdout, parameters.get("key"), resume_key)
    check_folder(folder, overwrite=overwrite, inputs=inputs)
    if isinstance(recipe, str | Path):
        recipe = Recipe.load(recipe)
    check_run(mechanism, method, parameters, options, recipe, policy, report=report, despite=despite_policy)
    marks = missing_marks(schema if recipe is None else recipe.schema, options.missing)
    reading = FileReading(encoding=encoding, delimiter=delimiter, decimal=decimal, header_row=header_row)
    if recipe is not None:
        reading = reading.or_else(recipe.reading)
    if reading.sheet is not None:
        raise OptionError("a file in partitions is no workbook; leave out --sheet, or write the sheet to a CSV file")
    given_reading: dict[str, Any] = {**reading.given, "missing": marks}
    file: TableSource | ClusterFile | None = None
    if method is None and mechanism is None and recipe is None:
        file = file_of(source, engine, master, **given_reading)
        method = method_of(parameters, file.first_rows(MIN_ROWS_FOR_CHAIN))
    chosen, options, policy = resolve_run(mechanism, method, parameters, options, recipe, policy)
    check_time_limit(time_limit)
    asked = asked_policy(policy, report=report, despite=despite_policy)
    refuse_unattainable(asked, _planned(chosen, options), despite=despite_policy)
    moved = isinstance(chosen, Geometric)
    if (new_key is not None or batch_rows is not None) and not moved:
        raise OptionError("--new-key and --batch-rows are for methods that move a file row by row; leave them out")
    said: dict[str, Any] = {
        "report": report,
        "time_limit": time_limit,
        "quasi_identifiers": tuple(quasi_identifiers),
        "measuring": MeasureOptions(accurate_within, clusters),
        "signer": signer_of(sign, dry_run=options.seed is not None, folder=folder),
        "overwrite": overwrite,
        "spreadsheet_safe": spreadsheet_safe,
        "policy": asked,
        "despite_policy": despite_policy,
    }
    if moved:  # what cannot be is refused before the file is read
        check_moved(chosen, options, new_key, folder)
    else:
        check_partitioned(chosen, options)
    file = file_of(source, engine, master, **given_reading) if file is None else file
    if memory is not None and isinstance(file, TableSource):
        least, less = (least_bytes(file, report=each) for each in (report, False))
        check_memory(parse_size(memory), least, less)
        if report:
            compile_apart()
    said["reading"] = reading.repeated(file.form)
    if moved:
        said |= {"new_key": new_key, "sample_rows": sample_rows}
        return release_moved(file, folder, chosen, options, **said)
    said |= {"form": form, "command": command}
    if isinstance(file, ClusterFile):
        return release_on_spark(file, folder, chosen, options, **said)
    return release_in_partitions(file, folder, chosen, options, **said)


_LEVELLED = ("chain", "condense", "condense-paper")
"""Methods whose floor of all levels is lower where something says what each record asks for."""


def plain(value: Any) -> Any:
    """A number of NumPy as one of Python; anything else as it is."""
    return value.item() if isinstance(value, np.number) else value


def resolve_run(
    mechanism: Mechanism | None,
    method: str | None,
    parameters: Mapping[str, Any],
    options: RunOptions,
    recipe: Recipe | None,
    policy: Policy | str | Path | None,
) -> tuple[Mechanism, RunOptions, Policy | str | Path | None]:
    """Mechanism, options and policy of a run: a recipe's, if there is one, and those that may be given beside it."""
    if recipe is None:
        return _chosen(mechanism, method, parameters, options), options, policy
    check_beside_recipe(mechanism, method, parameters, options)
    mechanism = make_mechanism(recipe.method, {**recipe.parameters, **_with_key(parameters)})
    repeated = {name: getattr(recipe.options, name) for name, each in options_of(RunOptions) if each.in_recipe}
    options = RunOptions(**{**repeated, **given(options), "schema": recipe.schema})
    return mechanism, options, policy_of(recipe) if policy is None else policy


def check_run(
    mechanism: Mechanism | None,
    method: str | None,
    parameters: Mapping[str, Any],
    options: RunOptions,
    recipe: Recipe | None,
    policy: Policy | str | Path | None,
    *,
    report: bool,
    despite: bool,
) -> None:
    """Refuse what is impossible whatever the table holds: names, parameters, and a policy that no release can meet."""
    _check_names(method, parameters)
    chosen = None
    if mechanism is not None or method is not None or recipe is not None:
        chosen, options, policy = resolve_run(mechanism, method, parameters, options, recipe, policy)
    refuse_unattainable(
        asked_policy(policy, report=report, despite=despite), _planned(chosen, options), despite=despite
    )


def _planned(mechanism: Mechanism | None, options: RunOptions, rows: int | None = None) -> PlannedRun:
    """What a policy needs to know of a run before it starts; ``rows`` is None if the table is not read yet."""
    return PlannedRun(
        control=options.holdout is not None,
        control_rows=None if options.share is None else rows,
        mechanism=mechanism,
        level=options.level,
        rare=options.rare,
    )


def _check_names(method: str | None, parameters: Mapping[str, Any]) -> None:
    """Refuse a parameter that no method has, and name the argument that was probably meant."""
    unknown = next((name for name in parameters if name not in all_parameters() and name != "key"), None)
    if unknown is None:
        return
    methods = ("chain", "condense") if method is None else (method,)
    quasi_identifiers = [name for each in methods for name in parameters_of_method(each)]
    arguments = [name for name in inspect.signature(sanitize).parameters if name != "parameters"]
    meant = closest_name(unknown, [*quasi_identifiers, *arguments])
    whose = "sanitize has no argument" if method is None else f"the method {method!r} has no parameter"
    then = "help(sfumato.sanitize) lists them" if meant is None else f"did you mean {meant!r}?"
    raise OptionError(f"{whose} {shown(unknown)}; {then}")


def method_of(parameters: Mapping[str, Any], rows: int) -> str:
    """Method where none is named, of a table of so many rows or more."""
    return default_method([name for name, value in parameters.items() if value is not None], rows)


def _chosen(
    mechanism: Mechanism | None, method: str | None, parameters: Mapping[str, Any], options: RunOptions
) -> Mechanism:
    """Mechanism that was given, or the one of the method's name and parameters."""
    if mechanism is not None:
        if method is not None or parameters:
            name = next(iter(parameters), "method")
            raise OptionError(f"a mechanism was given, which says what {name!r} says; leave one of them out")
        return mechanism
    assert method is not None
    settled = _with_key(parameters)
    if method in _LEVELLED and settled.get("k") is None:
        lone = settled.get("allow_level_1") is True
        levels = options.level is not None or (lone and options.schema is not None)
        settled["k"] = 10 if not levels else 1 if lone else 2
    one = settled.get("k") == 1 and settled["k"] is not True
    if one and settled.get("allow_level_1") is None and "allow_level_1" in all_parameters():
        raise LevelError("k is 1, which is no protection; take --k 2 or more, or say --allow-level-1 as well")
    return make_mechanism(method, settled)


def _with_key(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters that were told, a key read where its file was; a recipe holds none."""
    key = parameters.get("key")
    return {**parameters, "key": Key.load(key)} if isinstance(key, str | Path) else dict(parameters)


def check_beside_recipe(
    mechanism: Mechanism | None, method: str | None, parameters: Mapping[str, Any], options: RunOptions
) -> None:
    """Refuse what a recipe already says; a key, people to hold out, a seed and a policy may be given beside it."""
    making = {"mechanism": mechanism, "method": method, **parameters}
    double = next((name for name, value in making.items() if name != "key" and value not in (None, (), [])), None)
    option = None if double is None else f"--{double.replace('_', '-')}"
    for name, each in options_of(RunOptions):
        if option is None and not each.beside_recipe and name in given(options):
            option = spelled_option(name, each)
    if option is not None:
        raise OptionError(f"--recipe already says what {option} says; edit the recipe or leave one out")
