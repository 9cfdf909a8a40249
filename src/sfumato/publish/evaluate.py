"""From two tables to a report, whatever tool made the second, and the folder it is written to."""

from __future__ import annotations

import dataclasses
import os
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from sfumato.assess.report import Report
from sfumato.core.documents import write_json
from sfumato.core.errors import OptionError, SfumatoError
from sfumato.core.facts import ColumnsDropped, DatesCoarsened, RareValues, is_quoted
from sfumato.core.randomness import Randomness
from sfumato.engines.columns import schema_of
from sfumato.privacy.certificate import Certificate
from sfumato.publish.folder import Contents, check_folder, replacing_folder, write_text
from sfumato.publish.judge import asked_policy, judge_report
from sfumato.publish.measure_released import measure_released
from sfumato.publish.policy import BUILT_IN, USUAL, Policy
from sfumato.publish.release import check_budget
from sfumato.publish.suggest import suggest_another
from sfumato.publish.verify import certificate_beside
from sfumato.tables.files import FileFormat, read_file, read_numerals
from sfumato.tables.frames import to_arrow
from sfumato.tables.recoding import known_columns
from sfumato.tables.schema import Schema
from sfumato.tables.spreadsheet import unquote_formulas

__all__ = [
    "Evaluation",
    "check_evaluation_folder",
    "compare_tables",
    "dropped_columns",
    "evaluate",
    "most_unpacked",
]

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


def check_evaluation_folder(folder: str | Path, *, overwrite: bool = False) -> None:
    """Refuse a folder that may not be replaced, and one inside what leaves: the owner's report must stay."""
    path = check_folder(folder, overwrite=overwrite, contents=Contents.EVALUATION).absolute()
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
    holdout: Any | None = None,
    known: Iterable[str] = (),
    budget: float | None = None,
    seed: int | None = None,
    policy: Policy | str | Path | None = None,
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
    holdout : table, optional
        Rows like the original's that the release was not made from.
    known : iterable of str
        Columns that an outsider is taken to know: outsiders attack with these, and k, l and t are counted over the
        rows alike in them. ``"postcode@2"`` is known by its labels at level 2 of its hierarchy alone. By default
        outsiders with few columns and with half of them are tried.
    budget : float, optional
        Seconds that the measuring may take; chooses how many rows are looked at.
    seed : int, optional
        Makes the samples and redraws of the measuring reproducible.
    policy : Policy, str or path, optional
        What the release is judged by: a policy, the name of one that is built in, or a file; by default
        ``"research"``. The report holds the verdict.

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
        holdout=holdout,
        known=known,
        budget=budget,
        seed=seed,
        policy=policy,
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
    holdout: Any | None = None,
    known: Iterable[str] = (),
    budget: float | None = None,
    seed: int | None = None,
    certificate: Certificate | None = None,
    policy: Policy | str | Path | None = None,
    encoding: str = "utf-8",
    most_bytes: int | None = None,
    command: Sequence[str] = (),
) -> Evaluation:
    """Measure as `evaluate` does, with what the certificate of the released table says; give the notes too."""
    check_budget(budget)
    asked, known = asked_policy(policy), tuple(known)
    if isinstance(holdout, int | float):
        raise OptionError("the table is released already, so no share can be held out now; give the rows held out")
    before, origin = to_arrow(original)
    why_not = None
    if isinstance(released, str | Path):
        most = most_unpacked(before, most_bytes)
        released, certificate, why_not = _read_released(released, encoding=encoding, most_bytes=most)
    after = [to_arrow(released)[0]]
    del released  # whoever measures it holds a large table no longer than needed
    dropped = dropped_columns(certificate, before.column_names)
    facts = () if certificate is None else certificate.facts
    months = [name for fact in facts if isinstance(fact, DatesCoarsened) for name in fact.columns]
    dropped = [name for name in dropped if name != person]
    told = schema_of(
        before, schema, target, [*identifiers, *dropped], public, person=person, weight=weight, coarsens=True
    )
    ours = told = told.without_rules() if no_rules else told
    told = told.by_days(*months) if schema is None else told  # another tool may have released days
    report, notes = measure_released(
        before,
        after.pop(),
        told,
        holdout=None if holdout is None else to_arrow(holdout)[0],
        budget=budget,
        certificate=certificate,
        judged=asked is not None,
        known=known,
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
        holdout=None if holdout is None else to_arrow(holdout)[0],
        found_rules=schema is None,
        seconds=budget,
        known=known_columns(known, ours),
        seed=seed,
    )
    notes = (*(() if why_not is None else (UserWarning(why_not),)), *notes)
    return Evaluation(report, notes, certificate)


def most_unpacked(original: pa.Table, most_bytes: int | None) -> int:
    """Bytes that a table which somebody else packed may unpack to: those granted, or in proportion to the original."""
    return most_bytes or max(_LEAST_MOST, _TIMES * original.nbytes)


def _read_released(
    released: str | Path, *, encoding: str, most_bytes: int
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
    table, form = read_file(str(path), encoding=encoding if certificate is None else "utf-8", most_bytes=most_bytes)
    if certificate is None and form.format is FileFormat.CSV:
        table, _ = read_numerals(table, form)
    if certificate is not None and is_quoted(certificate.facts):
        table = unquote_formulas(table)
    return table, certificate, why_not
