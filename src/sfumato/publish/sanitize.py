"""sanitize: a table or a file in, a release out."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from sfumato.assess.warm import compile_ahead
from sfumato.engines.chunks.run import Geometric
from sfumato.engines.memory import run_in_memory
from sfumato.engines.outcome import Apart, Comparison, Outcome
from sfumato.engines.plan import settle
from sfumato.engines.recipe import Recipe
from sfumato.engines.spark import is_spark_frame
from sfumato.mechanisms.methods import FEWEST_FOR_CHAIN
from sfumato.mechanisms.protocol import Mechanism
from sfumato.publish.judge import asked_policy
from sfumato.publish.large import frame_by_cells, frame_on_spark
from sfumato.publish.moved import frame_moved_on_spark
from sfumato.publish.policy import Policy, words_of
from sfumato.publish.release import Release, check_budget, publish
from sfumato.publish.suggest import suggesting
from sfumato.publish.told import as_told, for_few_people, method_of
from sfumato.tables.cells import is_text
from sfumato.tables.frames import Origin, restore, to_arrow
from sfumato.tables.recoding import known_columns
from sfumato.tables.schema import Schema

__all__ = ["sanitize"]


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
    holdout: float | Any | None = None,
    seed: int | None = None,
    no_rules: bool = False,
    rare: str | None = None,
    rows: int | None = None,
    where: str | None = None,
    keep_persons: bool = False,
    report: bool = True,
    budget: float | None = None,
    known: Iterable[str] = (),
    native: bool = False,
    spreadsheet_safe: bool = False,
    policy: Policy | str | Path | None = None,
    despite_policy: bool = False,
    command: Sequence[str] = (),
    memory: str | int | None = None,
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
    holdout : float or table, optional
        Share of rows to keep out of the release, or rows that were kept out, for measuring.
    seed : int, optional
        Makes a rehearsal: reproducible and marked as not for release.
    no_rules : bool
        Let rows that are made anew break the rules between columns that the schema lists or that every row obeys.
    rare : {"pool", "lift", "keep"}, optional
        What becomes of categories that fewer persons hold than the highest privacy level: one named other, a wider one
        of the column's hierarchy, or nothing. By default they are lifted where there is a hierarchy and pooled
        elsewhere, and a rare class of the target is refused.
    rows : int, optional
        How many rows to make anew, more or fewer than there are records.
    where : str, optional
        Make only rows that fulfil a rule such as ``"age > 60 and sex == F"``; for the chain.
    keep_persons : bool
        Let released persons keep several rows each, which share a new number in the column ``released_person``; for
        condensation.
    report : bool
        Whether to measure.
    budget : float, optional
        Seconds that the measuring may take; chooses how many rows are looked at.
    known : iterable of str
        Columns that an outsider is taken to know, who attacks with these; ``"postcode@2"`` is known by its labels at
        level 2 of its hierarchy alone. By default outsiders with few columns and with half of them are tried.
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
    told: dict[str, Any] = {"schema": schema, "target": target, "level": level, "strata": strata, "public": public}
    told |= {"identifiers": identifiers, "person": person, "weight": weight, "holdout": holdout, "seed": seed}
    told |= {"no_rules": no_rules or None, "rare": rare, "rows": rows, "where": where}
    told |= {"keep_persons": keep_persons or None, "rows_are_people": rows_are_people}
    frame = None if is_spark_frame(table) else to_arrow(table)
    if method is None and mechanism is None and recipe is None:
        method = method_of(parameters, table.limit(FEWEST_FOR_CHAIN).count() if frame is None else frame[0].num_rows)
        if frame is not None and keep_persons and method == "chain" and "leaf" not in parameters:
            method = "condense"
    chosen, told, policy = as_told(mechanism, method, parameters, told, recipe, policy)
    told |= {name: bool(told[name]) for name in ("no_rules", "keep_persons")}
    check_budget(budget)
    asked = asked_policy(policy, report=report, despite=despite_policy)
    said: dict[str, Any] = {"report": report, "budget": budget, "policy": asked, "command": command}
    said["despite_policy"] = despite_policy
    if frame is None:
        return _on_spark(table, chosen, told, memory, known, said)
    arrow, origin = frame
    if report:
        compile_ahead()
    if memory is not None:
        outcome = frame_by_cells(arrow, chosen, told, memory, report=report, native=native)
        outside, suggest = known_columns(known, outcome.recipe.schema), None
    else:
        plan = settle(arrow, chosen, **told)
        if method == "chain" and parameters.get("k") is None and told["level"] is None:
            plan = for_few_people(plan, arrow)
        outside = known_columns(known, plan.schema)
        outcome = run_in_memory(arrow, plan, native=native, report=report)
        suggest = suggesting(arrow, plan, command or words_of(outcome.recipe, asked), budget, outside)
    release = publish(outcome, known=outside, spreadsheet_safe=spreadsheet_safe, suggest=suggest, **said)
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
    told: Mapping[str, Any],
    memory: str | int | None,
    known: Iterable[str],
    said: Mapping[str, Any],
) -> Release:
    """Release of a data frame of Spark, whose table is one too."""
    if isinstance(mechanism, Geometric):
        outcome, rows = frame_moved_on_spark(frame, mechanism, told)
    else:
        outcome, rows = frame_on_spark(frame, mechanism, told, memory, report=said["report"])
    outside = known_columns(known, outcome.recipe.schema)
    release = publish(dataclasses.replace(outcome, table=Path("spark")), known=outside, **said)
    return dataclasses.replace(release, table=rows)


def _relabelled(outcome: Outcome, arrow: pa.Table) -> frozenset[str]:
    """Columns with a category or a gap that their old type may not know, as that of what was pooled or blocked.

    Those that leave as another kind of value, as numbers that stand for sets of labels, are among them.
    """
    before = outcome.recipe.schema
    return (
        _with_new_gaps(outcome, arrow)
        | _added(outcome, arrow)
        | frozenset(field.name for field in outcome.schema.encoded if field.kind is not before[field.name].kind)
        | frozenset(
            field.name
            for field in outcome.schema.encoded
            if not is_text(arrow.schema.field(field.name).type)
            and not set(field.domain.categories or ()) <= set(before[field.name].domain.categories or ())
        )
    )


def _added(outcome: Outcome, arrow: pa.Table) -> frozenset[str]:
    """Columns that the table did not have."""
    return frozenset(outcome.schema.names) - frozenset(arrow.column_names)


def _with_new_gaps(outcome: Outcome, arrow: pa.Table) -> frozenset[str]:
    """Columns without missing cells that got some, which a type of whole numbers may not know."""
    made = outcome.table
    if not isinstance(made, pa.Table):
        return frozenset()
    before = set(arrow.column_names)
    gaps = {name for name in made.column_names if name in before and made.column(name).null_count}
    return frozenset(name for name in gaps if not arrow.column(name).null_count)
