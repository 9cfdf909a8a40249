"""The steps of the page, each one call of a verb; results are plain values for a template."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pyarrow as pa

import sfumato as sf
from sfumato.assess.page import visible_figures
from sfumato.assess.plain import risk_aside, risk_sentence, use_sentence
from sfumato.assess.report import Report
from sfumato.core.documents import typed, write_json
from sfumato.core.errors import OptionError, printable, with_options
from sfumato.options import PublishOptions, RunOptions
from sfumato.publish.folder import OWNER_SCHEMA, write_text
from sfumato.publish.release import signer_of
from sfumato.publish.sanitize import MethodChoice, SanitizeRun, check_run, sanitize_input
from sfumato.registry import load_status
from sfumato.tables.field import Field, Kind
from sfumato.tables.files import FileForm, FileFormat
from sfumato.tables.frames import to_arrow
from sfumato.tables.grid import repair_table
from sfumato.tables.reading import FileReading, describe_reading, read_people
from sfumato.tables.recoding import known_columns
from sfumato.tables.rules import with_found_rules
from sfumato.tables.schema import Schema, missing_marks
from sfumato.tuning.candidates import TUNED, Candidate
from sfumato.tuning.model import Tuning, write_tuning_page
from sfumato.tuning.trials import Reading
from sfumato.web.visit import LABELS, Choices, Setting, edited
from sfumato.web.worker import COMPARED, OUTPUT, TUNING_PAGE

__all__ = ["Steps"]

_HIERARCHIES = {
    Kind.NOMINAL: ("prefix", "icd10"),
    Kind.DATE: ("calendar",),
    Kind.INTEGER: ("intervals 5 10 20", "intervals 10 50", "intervals 100 1000"),
    Kind.CONTINUOUS: ("intervals 5 10 20", "intervals 10 50", "intervals 100 1000"),
}
"""Hierarchies that are offered for a kind of column; other widths and lengths may be entered."""

_PREVIEWED = 3  # values of each column
_LONGEST_VALUE = 24  # characters
_STYLE = re.compile(r"<style.*?</style>", re.DOTALL)  # the page has its own, and allows no other
Send = Callable[..., None]


class Steps:
    """Executes the steps of one session; the table is read once."""

    def __init__(
        self, send: Send, stoppable: Callable[[], AbstractContextManager[None]], *, most_bytes: int | None = None
    ) -> None:
        self._send, self._stoppable, self._most_bytes = send, stoppable, most_bytes
        self._read: tuple[tuple[str, FileReading, tuple[str, ...]], pa.Table, FileForm] | None = None
        self._schema: Schema | None = None

    def run(self, order: dict[str, Any]) -> dict[str, object]:
        """Result of one step."""
        name = order.pop("step")
        steps: dict[str, Callable[..., dict[str, object]]] = {
            "look": self._look,
            "tune": self._tune,
            "sanitize": self._sanitize,
        }
        if "choices" in order:
            order["choices"] = typed(Choices, order["choices"])
        with with_options(LABELS):
            return (steps.get(name) or load_status(name))(**order)

    def _table(self, file: str, choices: Choices) -> tuple[pa.Table, FileForm]:
        wanted = file, choices.reading, choices.missing
        if self._read is None or self._read[0] != wanted:
            marks = missing_marks(None, choices.missing)
            table, form = read_people(file, choices.reading, missing=marks, most_bytes=self._most_bytes)
            self._read, self._schema = (wanted, table, form), None
        return self._read[1:]

    def _proposed(self, table: pa.Table, missing: tuple[str, ...]) -> Schema:
        """The schema before rare values are treated, which depends on what is chosen."""
        if self._schema is None:
            self._schema = sf.inspect(table, k=table.num_rows + 1, missing=missing)
        return self._schema

    def _look(self, file: str, choices: Choices) -> dict[str, object]:
        """Each column with what will happen to it and why, as inspect says it, after what was chosen."""
        table, form = self._table(file, choices)
        k = choices.k or 10
        schema = sf.inspect(table, k=k, missing=choices.missing)
        found, proposed = schema.rules, self._proposed(table, choices.missing)
        changed = edited(proposed, choices)
        if changed.fields != proposed.fields or choices.rules is not None:
            if choices.rules is None:
                changed = with_found_rules(repair_table(table, changed), changed)
                found = changed.rules
            schema = sf.inspect(table, schema=changed, k=k, missing=choices.missing)
        wider = {each.name for each in schema.encoded}
        known_columns(
            [f"{each.name}@{each.known_level}" for each in choices.columns if each.known_level and each.name in wider],
            schema,
        )
        known = {column.name: column.known_level for column in choices.columns if column.known}
        return {
            "rows": table.num_rows,
            "read": describe_reading(file, form),
            "sheets": [] if form.sheet is None else [form.sheet.name, *form.sheet.others],
            "csv": form.sheet is None and form.format is FileFormat.CSV,
            "encoding": form.encoding,
            "header_row": form.header_row,
            "detected": bool(form.found) or (form.sheet is not None and form.sheet.detected),
            "columns": [_column(field, known.get(field.name), _first_values(table, field.name)) for field in schema],
            "rules": list(schema.rules),
            "found": list(dict.fromkeys((*found, *schema.rules))),
            "schema": schema.to_toml(),
        }

    def _tune(self, file: str, schema: str, choices: Choices) -> dict[str, object]:
        """What tuning found; every setting is reported as it is measured."""
        table, form = self._table(file, choices)
        tuning = None
        try:
            with self._stoppable():
                tuning = sf.tune(
                    table,
                    schema=Schema.from_toml(schema),
                    policy=choices.policy,
                    time_limit=choices.time_limit,
                    holdout=choices.holdout,
                    rare=choices.rare,
                    k=choices.k,
                    level=choices.level,
                    quasi_identifiers=choices.quasi_identifiers,
                    seed=choices.seed,
                    missing=choices.missing,
                    read=choices.reading.repeated(form),
                    command=_words("tune", file, choices),
                    watch=lambda reading: self._send("point", point=_point(reading)),
                )
        except KeyboardInterrupt:
            if tuning is None:  # else it came when all was done
                raise
        write_text(Path(TUNING_PAGE), write_tuning_page(tuning), mode=0o600)
        return _tuned(tuning)

    def _sanitize(
        self, file: str, schema: str, choices: Choices, setting: dict[str, object], floor: int | None
    ) -> dict[str, object]:
        """A release in the output folder, or the owner's part of one that its policy refuses."""
        table, form = self._table(file, choices)
        chosen = typed(Setting, setting)
        picked = _picked(chosen)
        signer = signer_of(None, dry_run=choices.seed is not None, folder=OUTPUT)
        if picked is not None:
            choice = MethodChoice(picked.mechanism(floor))
        else:
            choice = MethodChoice(parameters={} if choices.k is None else {"k": choices.k})
        run = SanitizeRun(
            choice,
            RunOptions(
                schema=Schema.from_toml(schema),
                level=choices.level,
                holdout=choices.holdout,
                rare=choices.rare,
                seed=choices.seed,
                missing=choices.missing,
            ),
            PublishOptions(
                quasi_identifiers=choices.quasi_identifiers,
                policy=choices.policy,
                despite_policy=chosen.despite,
                form=form,
                overwrite=True,
                sign=signer or False,
                command=_words("sanitize", file, choices, picked, floor),
            ),
            choices.reading.repeated(form),
            OUTPUT,
        )
        try:
            release = sanitize_input(check_run(run), *to_arrow(table))
        except sf.PolicyNotMet as refused:
            if refused.report is None:
                raise
            refused.save_owner(OUTPUT, overwrite=True)
            return _measured(refused.report, leaves=False)
        assert release.report is not None
        certificate = release.certificate
        return {
            **_measured(release.report, leaves=True),
            "method": certificate.method,
            "rows_in": certificate.rows_in,
            "rows_out": certificate.rows_out,
            "holds": sf.verify(OUTPUT).holds,
            "signed_by": release.signed_by,
            "dry_run": certificate.randomness != "release",
            "claims": [claim.claim for claim in certificate.claims],
        }


def _first_values(table: pa.Table, name: str) -> list[str]:
    """First values of a column for the owner's eyes, cut to a short length."""
    cells = table.column(name).slice(0, _PREVIEWED)
    texts = ["missing" if cell is None or cell == "" else printable(str(cell)) for cell in cells.to_pylist()]
    return [text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 1]}\u2026" for text in texts]


def _column(field: Field, known: int | None, values: list[str]) -> dict[str, object]:
    return {
        "name": field.name,
        "role": field.role.value,
        "kind": field.kind.value,
        "first_values": values,
        "domain": printable(field.domain.describe()),
        "fate": field.fate,
        "why": printable(field.reason),
        "hierarchy": field.hierarchy or "",
        "coarsened": field.coarsened,
        "offered": list(_HIERARCHIES.get(field.kind, ())),
        "known": known is not None,
        "known_level": known or 0,
        "leveled": bool(field.hierarchy or field.kind is Kind.DATE) and not field.coarsened,
    }


def _words(
    verb: str, file: str, choices: Choices, picked: Candidate | None = None, floor: int | None = None
) -> tuple[str, ...]:
    """Words of the command that does the same, for what to try next; the schema is a file of the owner's part."""
    k = floor if picked is not None and picked.method == "chain" else choices.k if picked is None else None
    entries: dict[str, object] = {
        "--schema": f"owner/{OWNER_SCHEMA}",
        **{f"--{name.replace('_', '-')}": value for name, value in choices.reading.given.items()},
        "--k": k,
        "--level": choices.level,
        "--rare": choices.rare,
        "--policy": choices.policy,
        "--holdout": f"{choices.holdout:g}" if verb == "sanitize" else None,
    }
    words = [word for name, value in entries.items() if value is not None for word in (name, str(value))]
    words += [word for mark in choices.missing for word in ("--missing", mark)]
    words += [word for column in choices.quasi_identifiers for word in ("--quasi-identifier", column)]
    output = ("-o", "FOLDER") if verb == "sanitize" else ()
    return ("sfumato", verb, file, *output, *(() if picked is None else picked.options), *words)


def _picked(setting: Setting) -> Candidate | None:
    """The candidate that was picked; None for the usual method."""
    if setting.method is None:
        return None
    if setting.method not in TUNED or setting.size is None or setting.size < 1:
        raise OptionError("the setting that was picked is none that is tuned; pick another")
    return Candidate(setting.method, setting.size)


def _point(reading: Reading) -> dict[str, object]:
    return {
        "method": reading.candidate.method,
        "size": reading.candidate.size,
        "words": reading.candidate.words,
        "people": reading.people,
        "part": reading.part,
        "utility": reading.use.value,
        "original": reading.original.value,
        "risk": reading.outlook.leak,
        "outcome": reading.verdict.outcome.value,
    }


def _tuned(tuning: Tuning) -> dict[str, object]:
    chosen = tuning.best or tuning.nearest
    return {
        "headline": tuning.headline.removeprefix("Best:   "),
        "meets": tuning.best is not None,
        "reason": tuning.reason,
        "chosen": None if chosen is None else _point(chosen.reading),
        "alternatives": [tuning.alternative_words(each).removeprefix("Or:     ") for each in tuning.alternatives],
        "changes": tuning.change_words(),
        "notes": list(tuning.notes),
        "metric": "utility" if tuning.bench.metric is None else tuning.bench.metric.words,
        "floor": tuning.table.k,
        "stopped": tuning.stopped.value,
        "seconds": round(tuning.seconds),
    }


def _measured(report: Report, *, leaves: bool) -> dict[str, object]:
    """Verdict, use and risk in plain words; the drawings of original and release go to a file beside it."""
    verdict = report.verdict
    assert verdict is not None
    figures = [each for each in visible_figures(report.figures, owner=True) if each.name.startswith("marginals/")]
    drawn = [
        {"title": each.title, "caption": each.caption, "svg": _STYLE.sub("", each.svg), "small": each.small}
        for each in figures
    ]
    write_text(Path(COMPARED), write_json({"figures": drawn}), mode=0o600)
    return {
        "leaves": leaves,
        "verdict": {
            **{name: getattr(verdict, name) for name in ("answer", "heading", "purpose", "hint", "left_out")},
            "outcome": verdict.outcome.value,
            "reasons": list(verdict.reasons),
            "try": list(verdict.to_try),
            "none_found": verdict.none_found,
        },
        "utility": use_sentence(report.findings, report.target),
        "risk": risk_sentence(report.findings, verdict),
        "aside": risk_aside(report.findings),
        "notes": list(report.notes),
        "rows_original": report.rows_original,
        "rows_held_out": report.rows_held_out,
    }
