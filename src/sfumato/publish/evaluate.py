"""From two tables to a report, whatever tool made the second, and the folder it is written to."""

from __future__ import annotations

import dataclasses
import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.assess.measure import assess, epoch_findings
from sfumato.assess.report import Report
from sfumato.assess.risk.uniqueness import PopulationUniqueness, population_uniqueness
from sfumato.assess.study import MeasureOptions, study_of
from sfumato.certificate.certificate import Certificate
from sfumato.core.documents import write_json
from sfumato.core.errors import Notice, OptionError, PrivacyLeakWarning, SfumatoError, TableError
from sfumato.core.facts import ColumnsDropped, DatesCoarsened, RareValues, UnlabelledRows, is_quoted
from sfumato.core.randomness import Randomness
from sfumato.engines.columns import RELEASED_PERSON, released_persons, schema_of
from sfumato.engines.memory import measured_note, measured_rows
from sfumato.publish.earlier import Contents
from sfumato.publish.folder import check_folder, replacing_folder, write_text
from sfumato.publish.judge import asked_policy, judge_report
from sfumato.publish.policy import BUILT_IN, USUAL, Policy
from sfumato.publish.release import check_time_limit
from sfumato.publish.suggest import suggest_another
from sfumato.publish.verify import certificate_beside
from sfumato.tables.align import AlignedTable, align
from sfumato.tables.codec import Codec
from sfumato.tables.files import FileFormat, read_file, read_numerals
from sfumato.tables.frames import to_arrow
from sfumato.tables.persons import check_weight_cells, persons_of_table
from sfumato.tables.reading import FileReading
from sfumato.tables.recoding import coarsen, known_columns, like_released, recode
from sfumato.tables.repair import repair_table
from sfumato.tables.schema import Role, Schema, missing_marks
from sfumato.tables.spreadsheet import unquote_formulas

__all__ = ["Evaluation", "check_evaluation_folder", "compare_tables", "evaluate", "most_unpacked"]

_LEAST_MOST, _TIMES = 1 << 30, 20  # what a table that somebody else packed may unpack to, in bytes and originals


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """What came of measuring a released table against its original.

    Parameters
    ----------
    report : Report
    notes : tuple of UserWarning
        What a reader of the report must know: columns left out, cells that could not be read.
    certificate : Certificate or None
        That of the released table, where it came with one that speaks of it.
    """

    report: Report
    notes: tuple[UserWarning, ...] = ()
    certificate: Certificate | None = None

    def __repr__(self) -> str:
        return f"Evaluation({self.report!r}, {len(self.notes)} notes)"

    def to_json(self) -> dict[str, Any]:
        """The report as a JSON document, with the notes."""
        return self.report.to_json()

    def save(self, folder: str | Path, *, overwrite: bool = False) -> Path:
        """Write ``report.html``, ``report-public.html``, ``report.json`` and ``summary.html``, whole or not at all.

        Parameters
        ----------
        folder : path
        overwrite : bool
            Replace an earlier evaluation of that name.
        """
        check_evaluation_folder(folder, overwrite=overwrite)
        document = None if self.certificate is None else self.certificate.to_document()
        text = write_json(self.report.to_json(), "pretty")
        try:
            with replacing_folder(folder, overwrite=overwrite, contents=Contents.EVALUATION) as work:
                write_text(work / "report.json", text, mode=0o600)
                write_text(work / "report.html", self.report.to_html(edition="owner", certificate=document), mode=0o600)
                write_text(work / "summary.html", self.report.to_summary(certificate=document), mode=0o600)
                write_text(work / "report-public.html", self.report.to_html(edition="public", certificate=document))
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else type(error).__name__
            raise SfumatoError(f"the report could not be written ({reason}); nothing was changed") from None
        return Path(folder)


def check_evaluation_folder(folder: str | Path, *, overwrite: bool = False, inputs: Iterable[object] = ()) -> None:
    """Refuse a folder that may not be replaced, and one inside what leaves: the owner's report must stay."""
    path = check_folder(folder, overwrite=overwrite, contents=Contents.EVALUATION, inputs=inputs).absolute()
    leaving = next((parent for parent in path.parents if (parent / "certificate.json").is_file()), None)
    if leaving is not None:
        raise OptionError(
            f"the folder {str(leaving)!r} is a release, and the owner's report must not leave with it; choose another"
        )


def dropped_columns(certificate: Certificate | None, names: list[str]) -> list[str]:
    """Those of the names that were left out on purpose, as a certificate says."""
    facts = () if certificate is None else certificate.facts
    told = {name for fact in facts if isinstance(fact, ColumnsDropped) for name in fact.names}
    told |= {name for fact in facts if isinstance(fact, RareValues) for name in fact.dropped}
    return [name for name in names if name in told]


def evaluate(
    original: Any,
    released: Any,
    *,
    schema: Schema | str | Path | None = None,
    target: str | None = None,
    identifiers: Iterable[str] = (),
    person: str | None = None,
    weight: str | None = None,
    no_rules: bool = False,
    public: Iterable[str] = (),
    missing: Iterable[str] = (),
    holdout: Any | None = None,
    quasi_identifiers: Iterable[str] = (),
    accurate_within: float | None = None,
    clusters: int | None = None,
    time_limit: float | None = None,
    seed: int | None = None,
    policy: Policy | str | Path | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
    header_row: int | None = None,
) -> Report:
    """Measure a released table against its original, whatever tool made it. Runs at the owner's.

    Parameters
    ----------
    original, released : pandas, polars or pyarrow tables
        They need not be of one kind, and types of columns may differ as long as they mean the same. ``released`` may be
        a file, or the folder of a release; a certificate beside it that speaks of it is taken in.
    schema : Schema or path, optional
        By default inferred from the original.
    target : str, optional
        The class or response that will be mined.
    identifiers, public : iterable of str
        Columns that were dropped, and columns that were passed through: neither is measured.
    person : str, optional
        Column that says who a row of the original is about: not measured, and people are attacked one row each.
    weight : str, optional
        Column that says how many people a row stands for, which the measures of utility count by.
    no_rules : bool
        Do not count the rules between columns that every row of the original obeys.
    missing : iterable of str
        Texts or numbers that mean a missing cell in every column of the original, besides the usual marks.
    holdout : table, optional
        Rows like the original's that the release was not made from.
    quasi_identifiers : iterable of str
        Columns that an outsider is taken to know: outsiders attack with these, and k, l and t are counted over the
        rows alike in them. ``"postcode@2"`` is known by its labels at level 2 of its hierarchy alone. By default
        outsiders with few columns and with half of them are tried.
    accurate_within : float, optional
        Largest error at which a predicted response counts as right, in the column's units; by default the column's step
        or a tenth of its standard deviation, whichever is larger.
    clusters : int, optional
        Number of clusters of the measures of clustering; by default the number of classes of the target, else 5.
    time_limit : float, optional
        Seconds that the measuring may take; chooses how many rows are looked at.
    seed : int, optional
        Makes the samples and redraws of the measuring reproducible.
    policy : Policy, str or path, optional
        What the release is judged by: a policy, the name of one that is built in, or a file; by default
        ``"research"``. The report holds the verdict.
    encoding, sheet, header_row : optional
        How a file of the original is read, as in `sfumato.inspect`; the encoding is of the released file too, unless a
        certificate comes with it.

    Warns
    -----
    UserWarning
        Of columns that were left out, and of cells that could not be read as the original's.
    """
    evaluation = compare_tables(
        original,
        released,
        schema=schema,
        target=target,
        identifiers=identifiers,
        person=person,
        weight=weight,
        no_rules=no_rules,
        public=public,
        missing=missing,
        holdout=holdout,
        quasi_identifiers=quasi_identifiers,
        accurate_within=accurate_within,
        clusters=clusters,
        time_limit=time_limit,
        seed=seed,
        policy=policy,
        encoding=encoding,
        sheet=sheet,
        header_row=header_row,
    )
    for note in evaluation.notes:
        warnings.warn(note, stacklevel=2)
    return evaluation.report


def compare_tables(
    original: Any,
    released: Any,
    *,
    schema: Schema | str | Path | None = None,
    target: str | None = None,
    identifiers: Iterable[str] = (),
    person: str | None = None,
    weight: str | None = None,
    no_rules: bool = False,
    public: Iterable[str] = (),
    missing: Iterable[str] = (),
    holdout: Any | None = None,
    quasi_identifiers: Iterable[str] = (),
    accurate_within: float | None = None,
    clusters: int | None = None,
    time_limit: float | None = None,
    seed: int | None = None,
    certificate: Certificate | None = None,
    policy: Policy | str | Path | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
    header_row: int | None = None,
    most_bytes: int | None = None,
    command: Sequence[str] = (),
) -> Evaluation:
    """Measure as `evaluate` does, with what the certificate of the released table says; give the notes too."""
    check_time_limit(time_limit)
    asked, quasi_identifiers = asked_policy(policy), tuple(quasi_identifiers)
    if isinstance(holdout, int | float):
        raise OptionError("the release exists already, so no share can be held out; give the hold-out rows")
    missing = tuple(missing)
    marks = missing_marks(schema, missing)
    is_file = isinstance(original, str | Path)
    reading = FileReading(encoding=encoding if is_file else None, sheet=sheet, header_row=header_row)
    before, origin = to_arrow(original, marks, reading)
    why_not = None
    if isinstance(released, str | Path):
        most = most_unpacked(before, most_bytes)
        released, certificate, why_not = _read_released(released, encoding=encoding, most_bytes=most, missing=marks)
    after = [to_arrow(released)[0]]
    del released  # whoever measures it holds a large table no longer than needed
    dropped = dropped_columns(certificate, before.column_names)
    facts = () if certificate is None else certificate.facts
    months = [name for fact in facts if isinstance(fact, DatesCoarsened) for name in fact.columns]
    dropped = [name for name in dropped if name != person]
    told = schema_of(
        before,
        schema,
        target,
        [*identifiers, *dropped],
        public,
        person=person,
        weight=weight,
        coarsens=True,
        missing=missing,
    )
    before = repair_table(before, told)
    check_weight_cells(before, told)
    ours = told = told.without_rules() if no_rules else told
    told = told.by_days(*months) if schema is None else told  # another tool may have released days
    outside = None if holdout is None else to_arrow(holdout)[0]
    report, notes = measure_released(
        before,
        after.pop(),
        told,
        holdout=outside,
        time_limit=time_limit,
        certificate=certificate,
        judged=asked is not None,
        quasi_identifiers=quasi_identifiers,
        measuring=MeasureOptions(accurate_within, clusters),
        rng=Randomness(seed).generator("assess"),
    )
    document = None if certificate is None else certificate.to_document()
    report = dataclasses.replace(report, certificate=document, frame=origin.kind)
    words = ("sfumato", "evaluate", "ORIGINAL", "RELEASED", *(() if asked is None else ("--policy", "POLICY")))
    report = judge_report(report, facts, asked, command=command or words)
    report = suggest_another(
        report,
        before,
        ours,
        asked or BUILT_IN[USUAL],
        command or words,
        holdout=outside,
        found_rules=schema is None,
        seconds=time_limit,
        quasi_identifiers=known_columns(quasi_identifiers, ours),
        seed=seed,
    )
    notes = (*(() if why_not is None else (UserWarning(why_not),)), *notes)
    return Evaluation(report, notes, certificate)


def most_unpacked(original: pa.Table, most_bytes: int | None) -> int:
    """Bytes that a table which somebody else packed may unpack to: those granted, or in proportion to the original."""
    return most_bytes or max(_LEAST_MOST, _TIMES * original.nbytes)


def _read_released(
    released: str | Path, *, encoding: str | None, most_bytes: int, missing: tuple[str, ...]
) -> tuple[pa.Table, Certificate | None, str | None]:
    """Table of a file or of a release's folder, the certificate that speaks of it, or why one beside it does not."""
    path = Path(released)
    if path.is_dir():
        path = path / "release" if (path / "release").is_dir() else path
        tables = sorted(path.glob("table.*")) if (path / "certificate.json").is_file() else []
        if len(tables) != 1:
            raise OptionError(f"the folder {str(released)!r} is not a release of one table; name the table's file")
        path = tables[0]
    certificate, why_not = certificate_beside(path) if path.is_file() else (None, None)
    ours: dict[str, Any] = {"encoding": encoding} if certificate is None else {"encoding": "utf-8", "header_row": 1}
    table, form = read_file(str(path), most_bytes=most_bytes, **ours)
    if certificate is None and form.format is FileFormat.CSV:
        table, _ = read_numerals(table, form, missing=missing)
    if certificate is not None and is_quoted(certificate.facts):
        table = unquote_formulas(table)
    return table, certificate, why_not


_RELEASED, _HELD_OUT = "the released table", "the held-out table"
_MOST_NAMED = 5


def measure_released(
    original: pa.Table,
    released: pa.Table,
    schema: Schema,
    *,
    holdout: pa.Table | None = None,
    time_limit: float | None = None,
    certificate: Certificate | None = None,
    judged: bool = False,
    quasi_identifiers: Sequence[str] = (),
    measuring: MeasureOptions | None = None,
    rng: np.random.Generator,
) -> tuple[Report, tuple[UserWarning, ...]]:
    """Read a released table as the original's columns, and measure it; also what a reader of the report must know.

    The facts of its certificate choose the attacks; where a policy is judged by it, more people are attacked.
    """
    quasi_identifiers = known_columns(quasi_identifiers, schema)
    notes = list(_notes_of_columns(original, released, schema))
    holdout = None if holdout is None else coarsen(holdout, schema)[0]
    original, schema = coarsen(original, schema)
    recodings = like_released(original, released, schema)
    after = {each.before.name: each.after for each in recodings if each.after is not None}
    schema = dataclasses.replace(schema, fields=tuple(after.get(field.name, field) for field in schema))
    original, released = recode(original, recodings), recode(released, recodings)
    holdout = None if holdout is None else recode(holdout, recodings)
    codec = Codec.fit(original, schema)
    aligned = align(released, codec, _RELEASED)
    notes += _notes_of_reading(aligned, _RELEASED)
    held = None if holdout is None else _aligned_holdout(holdout, codec)
    if held is not None:
        notes += _notes_of_reading(held, _HELD_OUT)
    notes += _notes_of_certificate(certificate, original.num_rows)
    linked = released_persons(released, original)
    held_persons = None if holdout is None else persons_of_table(holdout, schema)
    released, holdout = aligned.table, None if held is None else held.table
    del aligned, held  # of large tables only some rows are held from here on
    rows = None if linked is not None else measured_rows(original, released, holdout, codec, None, rng)
    standings: tuple[PopulationUniqueness, ...] = ()
    if rows is not None:
        whose = persons_of_table(original, schema), held_persons
        standings = population_uniqueness((original, released, holdout), codec, whose, rows.inside, rows.outside)
        notes.append(UserWarning(measured_note(len(rows.inside), original.num_rows)))
        original, released = original.take(pa.array(rows.inside)), released.take(pa.array(rows.made))
        holdout = None if holdout is None else holdout.take(pa.array(rows.outside))
        held_persons = None if held_persons is None else held_persons[rows.outside]
    study = study_of(
        original.select([column.field.name for column in codec.columns]),
        released,
        codec,
        facts=() if certificate is None else certificate.facts,
        holdout=holdout,
        persons=persons_of_table(original, schema),
        held_persons=held_persons,
        time_limit=time_limit,
        judged=judged,
        quasi_identifiers=quasi_identifiers,
        linked=linked,
        standings=standings,
        options=measuring,
        rng=rng,
    )
    report = assess(study, epoch_findings(study.facts, None, released, codec, rng))
    notes += [UserWarning(note) for note in report.notes]
    return dataclasses.replace(report, notes=tuple(map(str, notes))), tuple(notes)


def _aligned_holdout(table: pa.Table, codec: Codec) -> AlignedTable:
    lacking = [column.field.name for column in codec.columns if column.field.name not in table.column_names]
    if lacking:
        raise TableError(
            f"{_HELD_OUT} lacks {len(lacking)} columns of the original, the first is {lacking[0]!r}; bring rows like "
            "the original's"
        )
    return align(table, codec, _HELD_OUT)


def _notes_of_columns(original: pa.Table, released: pa.Table, schema: Schema) -> Iterator[UserWarning]:
    """Compare the columns of two tables and say which are not measured.

    Raises
    ------
    TableError
        Where the released table lacks a column that would be measured.
    """
    lacking = [field.name for field in schema.encoded if field.name not in released.column_names]
    if lacking:
        raise TableError(
            f"the released table lacks {len(lacking)} columns of the original, the first is {lacking[0]!r}; if they "
            "were dropped on purpose, name them with --identifier"
        )
    extra = [name for name in released.column_names if name not in (*original.column_names, RELEASED_PERSON)]
    roles = {role: [field.name for field in schema if field.role is role] for role in Role}
    left = [name for name in (*roles[Role.IDENTIFIER], *roles[Role.PERSON]) if name in released.column_names]
    if extra:
        yield UserWarning(f"{len(extra)} columns of the released table are not in the original and were left out")
    if left:
        named = _listed([repr(name) for name in left])
        yield PrivacyLeakWarning(
            f"{len(left)} columns taken for identifiers stand in the released table ({named}); they were not measured "
            "and should not be handed over"
        )
    if roles[Role.PUBLIC]:
        yield UserWarning(f"{len(roles[Role.PUBLIC])} public columns were not measured, nor what they give away")


def _notes_of_certificate(certificate: Certificate | None, rows: int) -> Iterator[UserWarning]:
    """Say if a certificate speaks of other rows than the original has."""
    if certificate is None or any(isinstance(fact, UnlabelledRows) for fact in certificate.facts):
        return  # how many rows had no class may be unknown
    if certificate.rows_in not in (None, rows):
        yield Notice(
            f"the certificate speaks of {certificate.rows_in} records and the original has {rows}; rows that were "
            "held out belong into --holdout, not into the original"
        )


def _notes_of_reading(aligned: AlignedTable, name: str) -> Iterator[UserWarning]:
    """Say how many cells of a table were read otherwise than they stand."""
    unknown = "are unknown to the original and were counted as missing"
    spelt = "name a category in another spelling and were taken for it"
    for counts, what in ((aligned.unread, unknown), (aligned.respelled, spelt)):
        if counts:
            most = _listed([f"{each!r} {counts[each]}" for each in sorted(counts, key=lambda each: -counts[each])])
            yield UserWarning(f"{sum(counts.values())} cells of {name} {what}, in {len(counts)} columns ({most})")


def _listed(words: Sequence[str]) -> str:
    shown = ", ".join(words[:_MOST_NAMED])
    return shown if len(words) <= _MOST_NAMED else f"{shown} and {len(words) - _MOST_NAMED} more"
