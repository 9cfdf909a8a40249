"""Verify a release without the original: integrity, and authorship if it is signed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sfumato.certificate.certificate import AlteredCertificate, Certificate
from sfumato.certificate.signature import SIGNATURE_FILE, expected_signer, read_signature
from sfumato.certificate.statements import counted
from sfumato.core.documents import read_bytes, read_text
from sfumato.core.errors import BadInput, OptionError, SfumatoError, shown
from sfumato.core.facts import (
    ColumnRulesKept,
    DatesCoarsened,
    FormulaTexts,
    RowsDrawn,
    TransactionsReleased,
    WeightsScaled,
    is_quoted,
)
from sfumato.core.randomness import Mode
from sfumato.core.replacing import reason
from sfumato.publish.agreement import Check, agreement_checks, are_possible, columns_check
from sfumato.publish.folder import sha256_of
from sfumato.publish.verify_columns import ColumnCells
from sfumato.publish.verify_rows import MOST_BYTES, ModifiedRows, PersonRows, ScannedTable, look_at_table
from sfumato.registry import vertical_checks
from sfumato.tables.schema import Schema

__all__ = ["Check", "Verification", "certificate_beside", "verify_release"]

_MOST_NAMED = 5
_UNSIGNED = "Intact, but not signed: this proves integrity, not authorship. Anyone could have written it."
_SIGNER, _FOR_RELEASE = "signer", "made for release"


@dataclass(frozen=True)
class Verification:
    """Result of the checks; true if none of them failed.

    Parameters
    ----------
    checks : tuple of Check
    signed_by : str or None
        Fingerprint of the key that signed exactly this certificate.
    confirmed : bool
        Whether this is the key that the reviewer named.
    """

    checks: tuple[Check, ...]
    signed_by: str | None = None
    confirmed: bool = False

    @property
    def holds(self) -> bool:
        """Whether no check failed; a check that could not be made is not a failure."""
        return all(check.holds for check in self.checks)

    @property
    def intact(self) -> bool:
        """Whether nothing was changed since the certificate was written, whoever signed it and for whatever purpose."""
        return all(check.holds for check in self.checks if check.name not in (_SIGNER, _FOR_RELEASE))

    @property
    def unproved(self) -> str:
        """What a verified release does not prove; empty if its signer is confirmed."""
        return self.verdict if self.holds and not self.confirmed else ""

    @property
    def verdict(self) -> str:
        """The result of all checks, in one line."""
        if not self.holds:
            return "The release failed verification."
        if self.signed_by is None:
            return _UNSIGNED
        if not self.confirmed:
            return f"Intact. Signed by {self.signed_by}, which you have not confirmed."
        return f"Intact and signed by {self.signed_by}."

    def __bool__(self) -> bool:
        return self.holds

    def __iter__(self) -> Iterator[Check]:
        return iter(self.checks)

    def describe(self) -> str:
        """Write each check on a line, and their result."""
        lines = [
            f"{'FAILED' if not check.holds else 'passed' if check.checked else 'open':<6} {check.name}: {check.detail}"
            for check in self.checks
        ]
        return "\n".join([*lines, self.verdict])


def verify_release(
    folder: str | Path,
    *,
    signer: str | Path | None = None,
    require_signature: bool = False,
    most_bytes: int | None = None,
) -> Verification:
    """Check hashes, the certificate against the table and its own facts, the dry run mark and the signature.

    Parameters
    ----------
    folder : path
        The folder ``release``, or the one that holds it.
    signer : path or str, optional
        Who must have signed it: a fingerprint ``SHA256:...``, or the file of a public key. Without, integrity is
        checked and not authorship.
    require_signature : bool
        Whether an unsigned release fails verification.
    most_bytes : int, optional
        Bytes that a file may have and the table may unpack to. By default 64 GiB, and for the table what the certified
        rows and columns need.

    Raises
    ------
    BadInput
        If there is no release to check, or no key to check it with.
    """
    path = _release_in(Path(folder))
    expected = None if signer is None else expected_signer(signer)
    data = _certificate_bytes(path)
    checks, signed_by = _signed(path, data, expected, required=require_signature)
    try:
        certificate = _read_certificate(data)
    except AlteredCertificate as altered:
        return Verification((*checks, Check("certificate", False, str(altered))))
    checks.append(_files(path, certificate, most_bytes or MOST_BYTES))
    if are_possible(certificate.facts):  # rows are read by what facts say
        checks.extend(_table(path, certificate, most_bytes))
    checks.extend(agreement_checks(certificate))
    dry_run = certificate.randomness != Mode.RELEASE.value
    checks.append(
        Check(
            _FOR_RELEASE,
            not dry_run,
            "a dry run made with a seed, not for release" if dry_run else "randomness from the operating system",
        )
    )
    return Verification(tuple(checks), signed_by, signed_by is not None and signed_by == expected)


def _release_in(folder: Path) -> Path:
    """Find the folder of a certificate: the named one, or the folder ``release`` inside it."""
    inside = folder / "release"
    if os.path.lexists(folder / "certificate.json") or not os.path.lexists(inside / "certificate.json"):
        return folder
    return folder if inside.is_symlink() else inside


def certificate_beside(table: Path) -> tuple[Certificate | None, str | None]:
    """Find the certificate of a table in the same folder.

    It is returned only if it covers exactly these bytes and its claims follow from its facts; else the reason.
    """
    if not os.path.lexists(table.parent / "certificate.json"):
        return None, None
    try:
        certificate = _read_certificate(_certificate_bytes(table.parent))
    except BadInput:
        return None, "the certificate in the folder of the released table cannot be read and was not used"
    digest = certificate.files.get(table.name)
    if digest is None:
        return None, None
    if digest != certificate.table_sha256 or sha256_of(table) != digest:
        return None, "the certificate in the folder of the released table is for another table and was not used"
    if not all(check.holds for check in agreement_checks(certificate)):
        return None, "the certificate in the folder of the released table contradicts itself and was not used"
    return certificate, None


def _certificate_bytes(path: Path) -> bytes:
    """Read the certificate once: what is checked and what is signed are the same bytes."""
    return read_bytes(path / "certificate.json", "certificate", "name the folder of a release", linked=False)


def _read_certificate(data: bytes) -> Certificate:
    try:
        return Certificate.from_json(data.decode("utf-8"))
    except UnicodeDecodeError:
        raise AlteredCertificate("the certificate is not UTF-8 text; it is damaged or was altered") from None


def _signed(path: Path, data: bytes, expected: str | None, *, required: bool) -> tuple[list[Check], str | None]:
    """Check the signature and the signer; a wrong signature is never ignored."""
    name = "signature"
    try:
        signature = read_signature(path)
    except BadInput:
        return [Check(name, False, f"{SIGNATURE_FILE} cannot be read as a signature")], None
    if signature is None:
        if required or expected is not None:
            return [Check(_SIGNER, False, "there is no signature")], None
        return [Check(name, True, "there is no signature", checked=False)], None
    if not signature.holds(data):
        return [Check(name, False, "the signature does not match the certificate: one of them was changed")], None
    found = signature.fingerprint
    signed = Check(name, True, f"the key {found} signed exactly this certificate")
    if expected is None:
        advice = "not confirmed; ask the owner for the fingerprint by another channel and pass it with --signer"
        return [signed, Check(_SIGNER, True, advice, checked=False)], found
    detail = f"it is {found}, as expected" if found == expected else f"it is {found}, not {expected}"
    return [signed, Check(_SIGNER, found == expected, detail)], found


def _files(path: Path, certificate: Certificate, most_bytes: int) -> Check:
    """Compare the hash of every file, and reject files that the certificate does not name."""
    wrong = []
    for name, digest in certificate.files.items():
        if Path(name).name != name or _digest(path / name, most_bytes) != digest:
            wrong.append(name)
    tables = [name for name in certificate.files if name.startswith("table.")]
    if len(tables) != 1 or certificate.files[tables[0]] != certificate.table_sha256:
        wrong.append("table")
    if certificate.files.get("schema.toml") != certificate.schema_sha256:
        wrong.append("schema.toml")
    own = {"certificate.json", SIGNATURE_FILE}
    wrong.extend(sorted(own & set(certificate.files)))
    try:
        extra = sorted({file.name for file in path.iterdir()} - set(certificate.files) - own)
    except OSError as error:
        return Check("files unchanged", False, f"the files of the folder cannot be listed ({reason(error)})")
    detail = f"{counted(len(certificate.files), 'file matches', 'files match')} the certificate"
    if wrong:
        detail = f"changed or missing: {_listed(list(dict.fromkeys(wrong)))}"
    elif extra:
        detail = f"{counted(len(extra), 'file is', 'files are')} not in the certificate: {_listed(extra)}"
    return Check("files unchanged", not wrong and not extra, detail)


def _digest(file: Path, most_bytes: int) -> str | None:
    """SHA-256 of a file of the release; None if it is missing or no regular file.

    Raises
    ------
    OptionError
        If the file is larger than its reader allows.
    """
    try:
        size = file.lstat().st_size
        if size <= most_bytes:
            return sha256_of(file, linked=False)
    except (OSError, ValueError):
        return None
    raise OptionError(f"the file {shown(file.name)} has {size} bytes; allow as many with --most-bytes")


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(map(shown, names[:_MOST_NAMED])) + more


def _table(path: Path, certificate: Certificate, most_bytes: int | None) -> list[Check]:
    """Compare the table with the certificate's row count and the released schema."""
    tables = (name for name in certificate.files if name.startswith("table.") and Path(name).name == name)
    name = next(tables, "table.csv")
    try:
        schema = Schema.from_toml(read_text(path / "schema.toml", "schema", "ask for the release again", linked=False))
        quoted = is_quoted(certificate.facts)
        rules = tuple(rule for fact in certificate.facts if isinstance(fact, ColumnRulesKept) for rule in fact.rules)
        months = tuple(name for fact in certificate.facts if isinstance(fact, DatesCoarsened) for name in fact.columns)
        where = "".join(fact.where for fact in certificate.facts if isinstance(fact, RowsDrawn))
        scaled = next((fact for fact in certificate.facts if isinstance(fact, WeightsScaled)), None)
        weight = None if scaled is None else scaled.column
        modified, persons = ModifiedRows(certificate.facts), PersonRows.of(certificate.facts)
        cells = ColumnCells(certificate.facts)
        entries = sum(fact.entries for fact in certificate.facts if isinstance(fact, TransactionsReleased))
        table = look_at_table(
            path / name, schema, certificate.rows_out, most_bytes,
            quoted=quoted, rules=rules, monthly=months, where=where, weight=weight, modified=modified, entries=entries,
            persons=persons, columns=cells,
        )  # fmt: skip
    except SfumatoError as error:
        return [Check("table readable", False, str(error))]
    more = table.rows > certificate.rows_out
    rows = table.rows == certificate.rows_out
    columns = table.names == schema.names
    height = f"more than the certified {certificate.rows_out}" if more else counted(table.rows, "row", "rows")
    width = counted(len(table.names), "column", "columns")
    domains = f"{counted(table.declared, 'declared domain contains', 'declared domains contain')} all values"
    if table.outside:
        domains = f"{counted(len(table.outside), 'column has', 'columns have')} values outside the declared domain"
    return [
        *(Check(*found) for found in vertical_checks(path / name, certificate.facts, most_bytes)),
        Check("rows", rows, height if rows or more else f"{height}, certified are {certificate.rows_out}"),
        Check("columns", columns, width if columns else f"{width}, not those of the schema"),
        columns_check(certificate, table.names),
        Check("domains", not table.outside, domains),
        *cells.checks(schema),
        *_row_checks(table, rules, months, where, scaled),
        *modified.checks(),
        *(() if persons is None else (persons.check(),)),
        *_formulas(certificate, table.formulas.facts(quoted=quoted)),
    ]


def _row_checks(
    table: ScannedTable, rules: tuple[str, ...], months: tuple[str, ...], where: str, scaled: WeightsScaled | None
) -> Iterator[Check]:
    """Check rules, months, the condition on rows and the sum of weights against the facts."""
    if rules:
        broken, kept = len(table.broken), f"{counted(len(rules), 'rule holds', 'rules hold')} in every row"
        wrong = f"{counted(broken, 'rule does', 'rules do')} not hold in every row"
        yield Check("rules", not broken, wrong if broken else kept)
    if months:
        days, kept = len(table.days), f"{counted(len(months), 'column has', 'columns have')} dates by month only"
        yield Check(
            "dates by month", not days, f"{counted(days, 'column shows', 'columns show')} days" if days else kept
        )
    if where:
        violating, kept = table.violating, "every row satisfies the condition"
        wrong = f"{counted(violating, 'row does', 'rows do')} not satisfy the condition"
        yield Check("row condition", not violating, wrong if violating else kept)
    if scaled is not None:
        holds = abs(table.weights - scaled.total) <= scaled.step + 1e-6 * scaled.total
        yield Check("weights", holds, f"their sum is {'' if holds else 'not '}the certified one")


def _formulas(certificate: Certificate, found: tuple[FormulaTexts, ...]) -> list[Check]:
    """Compare the texts that a spreadsheet would run as formulas with those of the certificate; no check if none."""
    certified = tuple(fact for fact in certificate.facts if isinstance(fact, FormulaTexts))
    if not certified and not found:
        return []
    count = counted(sum(fact.cells + fact.names for fact in found), "text begins", "texts begin")
    detail = f"{count} like a spreadsheet formula{', after a leading apostrophe' if is_quoted(found) else ''}"
    if certified == found:
        return [Check("formulas", True, f"{detail}, as certified")]
    contrary = "the certificate states another number" if certified else "the certificate does not state this"
    return [Check("formulas", not certified, f"{detail}, and {contrary}", checked=bool(certified))]
