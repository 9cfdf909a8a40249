"""A reviewer's check of a release without the original: integrity, not authorship."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from sfumato.errors import BadInput, OptionError, SfumatoError
from sfumato.facts import Drawn, Grouped, Synthesized
from sfumato.privacy.certificate import Certificate
from sfumato.privacy.claims import draw_claims
from sfumato.randomness import Mode
from sfumato.tables.files import read_file
from sfumato.tables.schema import Kind, Schema

__all__ = ["Check", "verify_release"]


@dataclass(frozen=True)
class Check:
    """One question that was asked of a release."""

    name: str
    holds: bool
    detail: str


def verify_release(folder: str | Path) -> list[Check]:
    """Check hashes, certificate against table, claims against facts, and the rehearsal mark.

    Raises
    ------
    BadInput
        Where there is no release to check.
    """
    path = Path(folder)
    try:
        text = (path / "certificate.json").read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        raise OptionError(f"there is no certificate.json in {str(path)!r}; name the folder 'release' itself") from None
    except UnicodeDecodeError:
        raise BadInput("the certificate cannot be read; it is damaged or was altered") from None
    certificate = Certificate.from_json(text)
    checks = [_files(path, certificate)]
    checks.extend(_table(path, certificate))
    checks.append(_claims(certificate))
    checks.append(_levels(certificate))
    rehearsal = certificate.randomness != Mode.RELEASE.value
    checks.append(
        Check(
            "made for release",
            not rehearsal,
            "a rehearsal: made with a seed, not for release" if rehearsal else "randomness from the operating system",
        )
    )
    return checks


def _files(path: Path, certificate: Certificate) -> Check:
    """Compare the hash of every file, and refuse files that the certificate does not name."""
    wrong = []
    for name, digest in certificate.files.items():
        file = path / name
        if Path(name).name != name or not file.is_file() or hashlib.sha256(file.read_bytes()).hexdigest() != digest:
            wrong.append(name)
    tables = [name for name in certificate.files if name.startswith("table.")]
    if len(tables) != 1 or certificate.files[tables[0]] != certificate.table_sha256:
        wrong.append("table")
    if certificate.files.get("schema.toml") != certificate.schema_sha256:
        wrong.append("schema.toml")
    extra = sorted({file.name for file in path.iterdir()} - set(certificate.files) - {"certificate.json"})
    detail = f"{len(certificate.files)} files are as certified"
    if wrong:
        detail = f"changed or missing: {', '.join(dict.fromkeys(wrong))}"
    elif extra:
        detail = f"{len(extra)} files are not in the certificate"
    return Check("files unchanged", not wrong and not extra, detail)


def _table(path: Path, certificate: Certificate) -> list[Check]:
    """Compare the table with the certificate's row count and the released schema."""
    name = next((name for name in certificate.files if name.startswith("table.")), "table.csv")
    try:
        table, _ = read_file(path / name)
        schema = Schema.load(path / "schema.toml")
    except SfumatoError:
        return [Check("table readable", False, "the table or its schema cannot be read")]
    rows = table.num_rows == certificate.rows_out
    columns = tuple(table.column_names) == schema.names
    return [
        Check("rows", rows, f"{table.num_rows} rows" + ("" if rows else f", certified {certificate.rows_out}")),
        Check("columns", columns, f"{table.num_columns} columns" + ("" if columns else ", not those of the schema")),
        _domains(table, schema),
    ]


def _domains(table: object, schema: Schema) -> Check:
    """Look whether declared domains hold; those that were not declared cannot be looked at from outside."""
    from sfumato.tables.cells import bound_to_number, codes_of_cells, numbers_of_cells

    declared = [field for field in schema if field.domain.declared]
    outside = []
    for field in declared:
        cells = table.column(field.name) if field.name in schema.names else None  # type: ignore[attr-defined]
        try:
            if field.kind in (Kind.NOMINAL, Kind.BOOLEAN, Kind.ORDINAL):
                codes_of_cells(cells, field)
                continue
            numbers, absent = numbers_of_cells(cells, field)
        except BadInput:
            outside.append(field.name)
            continue
        low, high = (
            None if edge is None else bound_to_number(edge, field) for edge in (field.domain.low, field.domain.high)
        )
        present = numbers[~absent]
        if (low is not None and (present < low).any()) or (high is not None and (present > high).any()):
            outside.append(field.name)
    detail = f"{len(declared)} declared domains hold" if not outside else f"{len(outside)} columns leave their domain"
    return Check("domains", not outside, detail)


def _claims(certificate: Certificate) -> Check:
    try:
        claims, refused = draw_claims(certificate.facts)
    except SfumatoError:
        return Check("claims follow from facts", False, "the facts do not bear a certificate")
    same = claims == certificate.claims and refused == certificate.refused
    modes = [fact.mode for fact in certificate.facts if isinstance(fact, Drawn)]
    honest = modes == [certificate.randomness]
    detail = f"{len(claims)} claims and {len(refused)} refused claims follow from {len(certificate.facts)} facts"
    if not same or not honest:
        detail = "the claims are not those that follow from the facts"
    return Check("claims follow from facts", same and honest, detail)


def _levels(certificate: Certificate) -> Check:
    grouped = [fact for fact in certificate.facts if isinstance(fact, Grouped)]
    rows = [fact.rows for fact in certificate.facts if isinstance(fact, Synthesized)]
    if not grouped:
        return Check("levels met", True, "this method makes no groups")
    fact = grouped[0]
    holds = (
        len(grouped) == 1
        and fact.violations == 0
        and fact.smallest >= fact.asked_min
        and fact.groups * fact.smallest <= fact.records
        and fact.records >= fact.asked_max
        and all(count == certificate.rows_out for count in rows)
    )
    detail = f"levels {fact.asked_min} to {fact.asked_max}, smallest of {fact.groups} groups {fact.smallest}"
    return Check(
        "levels met", holds, detail if holds else "the numbers of groups, levels and rows contradict each other"
    )
