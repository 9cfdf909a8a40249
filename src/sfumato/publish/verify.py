"""Verify a release without the original: integrity, and authorship if it is signed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sfumato.certificate import AlteredCertificate, Certificate
from sfumato.certificate.signature import SIGNATURE_FILE, expected_signer, read_signature
from sfumato.core.documents import read_bytes, read_text
from sfumato.core.errors import BadInput, OptionError, SfumatoError, shown
from sfumato.core.facts import Check, Context, Fact, check_facts, counted, draw_claims, has_parameters
from sfumato.core.randomness import Mode
from sfumato.core.replacing import reason
from sfumato.publish.folder import sha256_of
from sfumato.publish.verify_rows import MOST_BYTES, ColumnCells, read_released
from sfumato.registry import load_own_method
from sfumato.tables.facts import FormulaTexts, is_quoted
from sfumato.tables.schema import Schema

__all__ = [
    "Check",
    "Verification",
    "certificate_beside",
    "columns_check",
    "fact_checks",
    "method_check",
    "verify_release",
]

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
        Fingerprint of the key that signed exactly this certificate; of several owners the fingerprints of all.
    confirmed : bool
        Whether these are the keys that the reviewer named.
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
    signer: str | Path | Sequence[str | Path] | None = None,
    require_signature: bool = False,
    most_bytes: int | None = None,
    allow_unknown: bool = False,
) -> Verification:
    """Check hashes, the certificate against the table and its own facts, the dry run mark and the signature.

    Parameters
    ----------
    folder : path
        The folder ``release``, or the one that holds it.
    signer : path, str or sequence of them, optional
        Who must have signed it: a fingerprint ``SHA256:...``, or the file of a public key; of a release of several
        owners one for each. Without, integrity is checked and not authorship.
    require_signature : bool
        Whether an unsigned release fails verification.
    most_bytes : int, optional
        Bytes that a file may have and the table may unpack to. By default 64 GiB, and for the table what the certified
        rows and columns need.
    allow_unknown : bool
        Whether facts that this version does not know may remain unchecked, with the claims that rest on them. By
        default they fail verification. Extensions are never loaded.

    Raises
    ------
    BadInput
        If there is no release to check, or no key to check it with.
    """
    path = _release_in(Path(folder))
    named = () if signer is None else (signer,) if isinstance(signer, str | Path) else tuple(signer)
    expected = frozenset(map(expected_signer, named))
    data = _certificate_bytes(path)
    try:
        certificate = _read_certificate(data)
    except AlteredCertificate as altered:
        checks, _ = _signed(path, data, {}, expected, required=require_signature)
        return Verification((*checks, Check("certificate", False, str(altered))))
    checks, keys = _signed(path, data, certificate.owner_signatures, expected, required=require_signature)
    checks.append(_files(path, certificate, most_bytes or MOST_BYTES))
    if _are_possible(certificate.facts):  # rows are read by what facts say
        checks.extend(_table(path, certificate, most_bytes))
    checks.extend(fact_checks(certificate, allow_unknown=allow_unknown))
    dry_run = certificate.randomness != Mode.RELEASE.value
    checks.append(
        Check(
            _FOR_RELEASE,
            not dry_run,
            "a dry run made with a seed, not for release" if dry_run else "randomness from the operating system",
        )
    )
    return Verification(tuple(checks), ", ".join(keys) or None, bool(keys) and expected >= set(keys))


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
    if not all(check.holds for check in fact_checks(certificate)):
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


def _signed(
    path: Path, data: bytes, owners: Mapping[str, str], expected: frozenset[str], *, required: bool
) -> tuple[list[Check], list[str]]:
    """Check the signature, or those of all owners, and the signers; a wrong signature is never ignored."""
    name, keys = "signature", list[str]()
    for file in owners or (SIGNATURE_FILE,):
        try:
            signature = read_signature(path, file)
        except BadInput:
            return [Check(name, False, f"{file} cannot be read as a signature")], []
        if signature is None and owners:
            return [Check(name, False, f"the signature {file} of an owner is missing")], []
        if signature is None:
            if required or expected:
                return [Check(_SIGNER, False, "there is no signature")], []
            return [Check(name, True, "there is no signature", checked=False)], []
        if not signature.holds(data):
            return [Check(name, False, "the signature does not match the certificate: one of them was changed")], []
        if owners and signature.fingerprint != owners[file]:
            return [Check(name, False, f"{file} is by another key than the certificate states")], []
        keys.append(signature.fingerprint)
    found = ", ".join(keys)
    signed = Check(name, True, f"the key {found} signed exactly this certificate")
    if owners:
        signed = Check(name, True, f"{counted(len(keys), 'owner', 'owners')} signed exactly this certificate: {found}")
    if not expected:
        advice = "not confirmed; ask the owner for the fingerprint by another channel and pass it with --signer"
        return [signed, Check(_SIGNER, True, advice, checked=False)], keys
    others, left = sorted(expected - set(keys)), sorted(set(keys) - expected)
    if others:
        return [signed, Check(_SIGNER, False, f"it is {found}, not {', '.join(others)}")], keys
    if left:
        return [signed, Check(_SIGNER, True, f"not confirmed: {', '.join(left)}", checked=False)], keys
    return [signed, Check(_SIGNER, True, f"it is {found}, as expected")], keys


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
    own = {"certificate.json", *(certificate.owner_signatures or (SIGNATURE_FILE,))}
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


def fact_checks(certificate: Certificate, *, allow_unknown: bool = False) -> Iterator[Check]:
    """Compare claims, levels and the method of a certificate with its facts."""
    unknown = certificate.unknown
    if unknown:
        detail = f"{counted(len(unknown), 'fact is', 'facts are')} not known to this version: {_listed([*unknown])}"
        then = "; what rests on them was not checked" if allow_unknown else "; accept this with --allow-unknown"
        yield Check("facts known", allow_unknown, detail + then, checked=False)
    yield _claims(certificate)
    yield _levels(certificate)
    yield method_check(certificate, allow_unknown=allow_unknown)


def _claims(certificate: Certificate) -> Check:
    """Draw the claims again; beside an unknown fact, others than the known facts support are not checked."""
    name, stated = "claims follow from facts", (*certificate.claims, *certificate.refused)
    try:
        claims, refused = draw_claims(certificate.facts)
    except SfumatoError:
        return Check(name, False, "the facts contradict each other or the claims")
    drawn = (*claims, *refused)
    modes = [fact.mode for fact in Context(certificate.facts).all("randomness-source")]
    more = [each for each in stated if each not in drawn]
    if modes != [certificate.randomness] or (drawn != stated and not certificate.unknown):
        return Check(name, False, "the claims do not follow from the facts")
    if [each for each in stated if each in drawn] != [*drawn]:
        return Check(name, False, "the claims do not follow from the known facts")
    detail = f"{len(claims)} claims and {len(refused)} refused claims follow from {len(certificate.facts)} facts"
    not_checked = f"; {counted(len(more), 'other was', 'others were')} not checked" if more else ""
    return Check(name, True, detail + not_checked, checked=not more)


def _levels(certificate: Certificate) -> Check:
    """Compare the numbers of records and rows with those of all facts."""
    name, levels = "privacy levels met", certificate.levels
    if not Context(certificate.facts).counts_agree(certificate.rows_in, certificate.rows_out):
        return Check(name, False, "the numbers of records, groups and rows contradict each other")
    if not levels:
        return Check(name, True, "this method makes no groups")
    groups = counted(levels["groups"], "group or leaf", "groups or leaves")
    return Check(name, True, f"{groups}, the smallest with {levels['smallest_group']}")


def method_check(certificate: Certificate, *, allow_unknown: bool = False) -> Check:
    """Check whether the method, with these parameters, can have stated the facts."""
    name, method, parameters = "method follows from facts", certificate.method, certificate.parameters
    stating = [fact for fact in certificate.facts if fact.methods]
    if not stating and certificate.unknown:
        return Check(name, allow_unknown, f"{method} is not known to this version", checked=False)
    if not stating or any(method not in fact.methods for fact in stating):
        return Check(name, False, "the facts are not those of the method")
    try:
        fit = _fits(certificate)
    except (SfumatoError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        fit = False  # values that no such method takes
    detail = f"{method} with {counted(len(parameters), 'parameter', 'parameters')}"
    return Check(name, fit, detail if fit else "the facts do not match the parameters")


def _fits(certificate: Certificate) -> bool:
    method, parameters = certificate.method, certificate.parameters
    make = load_own_method(method)
    mechanism = None if make is None else make(**parameters)
    if mechanism is not None and (mechanism.method != method or not has_parameters(mechanism, parameters)):
        return False
    context = Context(certificate.facts, method, parameters, mechanism)
    return all(fact.fits(context) for fact in certificate.facts)


def _are_possible(facts: Sequence[Fact]) -> bool:
    """Whether no fact contradicts itself or another, so that a table can be compared with them."""
    try:
        check_facts(facts)
    except SfumatoError:
        return False
    return True


def _table(path: Path, certificate: Certificate, most_bytes: int | None) -> list[Check]:
    """Compare the table with the certificate's row count, the released schema and the facts."""
    tables = (name for name in certificate.files if name.startswith("table.") and Path(name).name == name)
    file, context = path / next(tables, "table.csv"), Context(certificate.facts)
    quoted = is_quoted(context)
    try:
        schema = Schema.from_toml(read_text(path / "schema.toml", "schema", "ask for the release again", linked=False))
        found = [fact.row_check(schema, context) for fact in context]
        table = read_released(
            file,
            schema,
            certificate.rows_out,
            [ColumnCells(context, schema), *(check for check in found if check is not None)],
            most_bytes=most_bytes,
            more_bytes=sum(fact.most_bytes for fact in context),
            quoted=quoted,
        )
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
        *(check for fact in context for check in fact.table_checks(file, most_bytes)),
        Check("rows", rows, height if rows or more else f"{height}, certified are {certificate.rows_out}"),
        Check("columns", columns, width if columns else f"{width}, not those of the schema"),
        columns_check(context, table.names),
        Check("domains", not table.outside, domains),
        *table.checks,
        *_formulas(context, table.formulas.facts(quoted=quoted)),
    ]


def columns_check(facts: Iterable[Fact], names: Sequence[str]) -> Check:
    """Compare the columns that facts name and drop with those of the table."""
    facts, released = tuple(facts), set(names)
    named = {name for fact in facts for name in fact.named_columns()}
    dropped = {name for fact in facts for name in fact.dropped_columns()}
    detail = (
        f"the table has {counted(len(named), 'named column', 'named columns')} and none of {len(dropped)} dropped ones"
    )
    if not named <= released:
        detail = f"{counted(len(named - released), 'column', 'columns')} in the facts but not in the table"
    elif dropped & released:
        detail = f"{counted(len(dropped & released), 'dropped column is', 'dropped columns are')} in the table"
    return Check("columns in facts", named <= released and not dropped & released, detail)


def _formulas(context: Context, found: tuple[FormulaTexts, ...]) -> list[Check]:
    """Compare the texts that a spreadsheet would run as formulas with those of the certificate; no check if none."""
    certified = tuple(context.all(FormulaTexts))
    if not certified and not found:
        return []
    count = counted(sum(fact.cells + fact.names for fact in found), "text begins", "texts begin")
    detail = f"{count} like a spreadsheet formula{', after a leading apostrophe' if is_quoted(found) else ''}"
    if certified == found:
        return [Check("formulas", True, f"{detail}, as certified")]
    contrary = "the certificate states another number" if certified else "the certificate does not state this"
    return [Check("formulas", not certified, f"{detail}, and {contrary}", checked=bool(certified))]
