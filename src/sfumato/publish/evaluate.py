"""From two tables to a report, whatever tool made the second, and the folder it is written to."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from sfumato.assess.report import Report
from sfumato.certificate import Certificate
from sfumato.core.errors import Notice, OptionError, PrivacyLeakWarning, TableError
from sfumato.core.facts import ColumnsDropped, UnlabelledRows
from sfumato.core.randomness import Randomness
from sfumato.engines.columns import RELEASED_PERSON, released_persons, schema_of
from sfumato.engines.measured import measured_part
from sfumato.engines.outcome import Comparison, Outcome, Recipe
from sfumato.methods.protocol import OwnerDetails
from sfumato.options import PublishOptions, RunOptions, options_from
from sfumato.publish.assessment import assess_outcome, check_measuring
from sfumato.publish.folder import Contents, check_folder, plain_errors, replacing_folder, write_report, write_text
from sfumato.publish.judge import asked_policy
from sfumato.publish.policy import Policy
from sfumato.publish.suggest import suggesting_another
from sfumato.publish.verify import certificate_beside
from sfumato.tables.align import AlignedTable, align
from sfumato.tables.codec import Codec
from sfumato.tables.facts import DatesCoarsened, RareValues, is_quoted
from sfumato.tables.files import FileFormat, read_file, read_numerals
from sfumato.tables.frames import to_arrow
from sfumato.tables.grid import repair_table
from sfumato.tables.persons import check_weight_cells
from sfumato.tables.reading import FileReading
from sfumato.tables.recoding import coarsen, known_columns, like_released, recode
from sfumato.tables.schema import Role, Schema, missing_marks
from sfumato.tables.spreadsheet import unquote_formulas

__all__ = ["Evaluation", "check_evaluation_folder", "compare_tables", "evaluate", "most_unpacked"]

_LEAST_MOST, _TIMES = 1 << 30, 20  # what a table that someone else packed may unpack to, in bytes and originals


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
        with (
            plain_errors("the report"),
            replacing_folder(folder, overwrite=overwrite, contents=Contents.EVALUATION) as work,
        ):
            write_report(work, self.report, self.certificate)
            write_text(work / "report-public.html", self.report.to_html(edition="public", certificate=document))
        return Path(folder)


def check_evaluation_folder(folder: str | Path, *, overwrite: bool = False, inputs: Iterable[object] = ()) -> None:
    """Refuse a folder that may not be replaced, and one inside a release: the owner's report is private."""
    path = check_folder(folder, overwrite=overwrite, contents=Contents.EVALUATION, inputs=inputs).absolute()
    leaving = next((parent for parent in path.parents if (parent / "certificate.json").is_file()), None)
    if leaving is not None:
        raise OptionError(
            f"the folder {str(leaving)!r} is a release, which must not contain the owner's report; choose another"
        )


def dropped_columns(certificate: Certificate | None, names: list[str]) -> list[str]:
    """Those of the names that were left out on purpose, as a certificate says."""
    facts = () if certificate is None else certificate.facts
    dropped_names = {name for fact in facts if isinstance(fact, ColumnsDropped) for name in fact.names}
    dropped_names |= {name for fact in facts if isinstance(fact, RareValues) for name in fact.dropped}
    return [name for name in names if name in dropped_names]


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
    sampling_fraction: float | None = None,
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
    sampling_fraction : float, optional
        Share of the population that the table holds, above 0 and at most 1: with ``quasi_identifiers`` the report has
        the risk in the population.
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
    arguments = dict(locals())
    evaluation = compare_tables(
        original,
        released,
        options_from(RunOptions, arguments),
        options_from(PublishOptions, arguments),
        options_from(FileReading, arguments),
    )
    for note in evaluation.notes:
        warnings.warn(note, stacklevel=2)
    return evaluation.report


def compare_tables(
    original: Any,
    released: Any,
    options: RunOptions | None = None,
    publishing: PublishOptions | None = None,
    reading: FileReading | None = None,
    *,
    certificate: Certificate | None = None,
    most_bytes: int | None = None,
) -> Evaluation:
    """Measure as `evaluate` does, and give the notes too; the ``certificate`` is that of the released table."""
    options, publishing = options or RunOptions(), publishing or PublishOptions()
    reading = reading or FileReading()
    check_measuring(publishing)
    policy = asked_policy(publishing.policy)
    if isinstance(options.holdout, int | float):
        raise OptionError("the release exists already, so no share can be held out; give the hold-out rows")
    marks = missing_marks(options.schema, options.missing)
    own = reading if isinstance(original, str | Path) else dataclasses.replace(reading, encoding=None)
    before, origin = to_arrow(original, marks, own)
    notes: list[UserWarning] = []
    if isinstance(released, str | Path):
        most = most_unpacked(before, most_bytes)
        released, certificate, why_not = _read_released(
            released, encoding=reading.encoding, most_bytes=most, missing=marks
        )
        notes = [] if why_not is None else [UserWarning(why_not)]
    after = [to_arrow(released)[0]]
    del released  # whoever measures it holds a large table no longer than needed
    facts = () if certificate is None else certificate.facts
    dropped = [name for name in dropped_columns(certificate, before.column_names) if name != options.person]
    options = dataclasses.replace(options, identifiers=(*options.identifiers, *dropped))
    ours = schema_of(before, options, coarsens=True)
    before = repair_table(before, ours)
    check_weight_cells(before, ours)
    ours = ours.without_rules() if options.no_rules else ours
    months = [name for fact in facts if isinstance(fact, DatesCoarsened) for name in fact.columns]
    schema = ours.by_days(*months) if options.schema is None else ours  # another tool may have released days
    known = known_columns(publishing.quasi_identifiers, schema)  # refused before the tables are compared
    outside = None if options.holdout is None else to_arrow(options.holdout)[0]
    compared, found = _compared(before, after.pop(), schema, outside, certificate)
    compared = measured_part(compared, OwnerDetails(), Randomness(options.seed).generator("measured"))
    rows = compared.original.num_rows, compared.released.num_rows
    outcome = Outcome(
        Recipe("", {}, schema, RunOptions(seed=options.seed)), None, *rows, schema, facts, compared, seconds=None
    )
    asked = () if policy is None else ("--policy", "POLICY")
    words = publishing.command or ("sfumato", "evaluate", "ORIGINAL", "RELEASED", *asked)
    publishing = dataclasses.replace(publishing, policy=policy, command=words, quasi_identifiers=known)
    suggest = None if policy is None else suggesting_another(before, ours, options, publishing)
    report = assess_outcome(outcome, publishing, suggest=suggest)
    assert report is not None
    notes += [*found, *map(UserWarning, report.notes)]
    document = None if certificate is None else certificate.to_document()
    every = (*map(str, found), *report.notes)
    report = dataclasses.replace(report, notes=every, certificate=document, frame=origin.kind)
    return Evaluation(report, tuple(notes), certificate)


def most_unpacked(original: pa.Table, most_bytes: int | None) -> int:
    """Bytes that a table which someone else packed may unpack to: those granted, or in proportion to the original."""
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
    encoding, header_row = (encoding, None) if certificate is None else ("utf-8", 1)  # as releases are written
    table, form = read_file(str(path), encoding=encoding, header_row=header_row, most_bytes=most_bytes)
    if certificate is None and form.format is FileFormat.CSV:
        table, _ = read_numerals(table, form, missing=missing)
    if certificate is not None and is_quoted(certificate.facts):
        table = unquote_formulas(table)
    return table, certificate, why_not


_RELEASED, _HELD_OUT = "the released table", "the held-out table"
_MOST_NAMED = 5


def _compared(
    original: pa.Table,
    released: pa.Table,
    schema: Schema,
    holdout: pa.Table | None,
    certificate: Certificate | None,
) -> tuple[Comparison, list[UserWarning]]:
    """A released table read in the original's columns, beside it, and what a reader of the report must know."""
    notes = list(_notes_of_columns(original, released, schema))
    holdout = None if holdout is None else coarsen(holdout, schema)[0]
    original, schema = coarsen(original, schema)
    recodings = like_released(original, released, schema)
    after = {each.before.name: each.after for each in recodings if each.after is not None}
    schema = dataclasses.replace(schema, fields=tuple(after.get(field.name, field) for field in schema))
    original, released = recode(original, recodings), recode(released, recodings)
    codec = Codec.fit(original, schema)
    aligned = align(released, codec, _RELEASED)
    notes += _notes_of_reading(aligned, _RELEASED)
    if holdout is not None:
        held = _aligned_holdout(recode(holdout, recodings), codec)
        notes += _notes_of_reading(held, _HELD_OUT)
        holdout = _with_person(held.table, holdout, schema)
    notes += _notes_of_certificate(certificate, original.num_rows)
    linked = released_persons(released, original)
    before = original.select([column.field.name for column in codec.columns])
    return Comparison(_with_person(before, original, schema), aligned.table, codec, None, holdout, linked=linked), notes


def _with_person(table: pa.Table, whole: pa.Table, schema: Schema) -> pa.Table:
    """A table with the column that says who each row is about, if there is one."""
    person = next((field.name for field in schema if field.role is Role.PERSON), None)
    return table if person not in whole.column_names else table.append_column(person, whole.column(person))


def _aligned_holdout(table: pa.Table, codec: Codec) -> AlignedTable:
    lacking = [column.field.name for column in codec.columns if column.field.name not in table.column_names]
    if lacking:
        raise TableError(
            f"{_HELD_OUT} lacks {len(lacking)} columns of the original, the first is {lacking[0]!r}; provide rows like "
            "the original's"
        )
    return align(table, codec, _HELD_OUT)


def _notes_of_columns(original: pa.Table, released: pa.Table, schema: Schema) -> Iterator[UserWarning]:
    """Compare the columns of two tables and say which are not measured.

    Raises
    ------
    TableError
        If the released table lacks a column that would be measured.
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
            f"{len(left)} columns that look like identifiers are in the released table ({named}); they were not "
            "measured and should not be released"
        )
    if roles[Role.PUBLIC]:
        yield UserWarning(f"{len(roles[Role.PUBLIC])} public columns were not measured, nor what they give away")


def _notes_of_certificate(certificate: Certificate | None, rows: int) -> Iterator[UserWarning]:
    """Say if a certificate speaks of other rows than the original has."""
    if certificate is None or any(isinstance(fact, UnlabelledRows) for fact in certificate.facts):
        return  # how many rows had no class may be unknown
    if certificate.privacy is None and certificate.rows_in != rows:
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
