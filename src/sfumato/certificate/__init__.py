"""The certificate: facts, claims, refused claims, and the form of its document."""

from __future__ import annotations

import dataclasses
import datetime
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from sfumato.core.documents import DocumentMismatch, Unparsable, parse_json, plain, typed, write_json
from sfumato.core.errors import BadInput, PrivacyRefusal
from sfumato.core.facts import Claim, Fact, Refused, UnknownFact, counted, draw_claims, fact_from_json, fact_to_json
from sfumato.core.pages import html_table

__all__ = ["FORMAT", "AlteredCertificate", "Certificate", "CertifiedRun", "certify"]


_VERSION = re.compile(r"\d+(\.\d+)*([a-z]+\d+)?(\.[a-z]+\d+)?(\+[a-z0-9.]+)?")
_METHOD = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_FORM = "the certificate is not in the form that sfumato writes; it was altered"
_SHA256 = re.compile(r"[0-9a-f]{64}")


class AlteredCertificate(BadInput):
    """A certificate that differs from what sfumato writes: it was altered or forged."""


@dataclass(frozen=True)
class CertificateEntries:
    """The entries of a certificate, in the order of the file; facts are checked when they are read."""

    format: int
    sfumato: str
    created: str
    randomness: Literal["release", "dry-run"]
    method: str
    parameters: dict[str, Any]
    rows_in: int | None
    rows_out: int
    table_sha256: str | None
    schema_sha256: str
    files: dict[str, str]
    facts: tuple[dict[str, object], ...]
    claims: tuple[Claim, ...]
    refused: tuple[Refused, ...]
    levels: dict[str, int]
    privacy: dict[str, object] | None = None


def read_written(document: Mapping[str, Any]) -> CertificateEntries:
    """Refuse a certificate with a missing, unknown or invalid entry."""
    try:
        written = typed(CertificateEntries, document)
    except DocumentMismatch as wrong:
        if wrong.problem == "missing" and not wrong.path:
            raise AlteredCertificate(
                f"the certificate has no entry {wrong.entry!r}; it is damaged or was altered"
            ) from None
        if wrong.problem == "unknown" and not wrong.path:
            surplus = counted(
                len(set(document) - set(CertificateEntries.__dataclass_fields__)), "unknown entry", "unknown entries"
            )
            raise AlteredCertificate(f"the certificate has {surplus}; it was altered") from None
        raise _strange(str(wrong.path[0])) from None
    values = {
        "sfumato": _VERSION.fullmatch(written.sfumato),
        "created": _is_time(written.created),
        "method": _METHOD.fullmatch(written.method),
        "rows_in": written.rows_in is None or written.rows_in >= 0,
        "rows_out": written.rows_out >= 0,
        "table_sha256": written.table_sha256 is None or _SHA256.fullmatch(written.table_sha256),
        "schema_sha256": _SHA256.fullmatch(written.schema_sha256),
        "files": all(map(_SHA256.fullmatch, written.files.values())),
        "levels": all(count >= 0 for count in written.levels.values()),
    }
    for entry, holds in values.items():
        if not holds:
            raise _strange(entry)
    return written


def _strange(entry: str) -> AlteredCertificate:
    return AlteredCertificate(f"the entry {entry!r} of the certificate is invalid; it was altered")


def _is_time(value: str) -> bool:
    """Tell whether a text is a time as in certificates, to the second and in UTC."""
    try:
        when = datetime.datetime.fromisoformat(value)
    except ValueError:
        return False
    return when.tzinfo is not None and bool(when.astimezone(datetime.UTC).isoformat(timespec="seconds") == value)


FORMAT = 2
"""Version of the format; a certificate of another format is refused."""


@dataclass(frozen=True)
class CertifiedRun:
    """What a certificate states of a run beside its facts; it was ``created`` now if that is empty."""

    sfumato: str
    randomness: str
    method: str
    parameters: dict[str, Any]
    rows_in: int | None
    rows_out: int
    schema_sha256: str
    created: str = ""


@dataclass(frozen=True, repr=False, kw_only=True)
class Certificate(CertifiedRun):
    """What is claimed of a release, and what is not. It contains no measurement, no group membership and no key.

    ``table_sha256`` is None and ``files`` is empty until the release is written.
    """

    facts: tuple[Fact, ...]
    claims: tuple[Claim, ...]
    refused: tuple[Refused, ...]
    table_sha256: str | None = None
    files: dict[str, str] = dataclasses.field(default_factory=dict)

    @property
    def owner_signatures(self) -> dict[str, str]:
        """Fingerprint that each of several owners signs with, by the name of the signature file; empty for one."""
        return {f"certificate.{owner}.sig": key for fact in self.facts for owner, key in fact.owner_keys().items()}

    format: int = FORMAT

    def __repr__(self) -> str:
        return (
            f"Certificate({self.method}, {self.randomness}, {self.rows_out} rows, {len(self.claims)} claims, "
            f"{len(self.refused)} refused)"
        )

    def _repr_html_(self) -> str:
        dry_run = "" if self.randomness == "release" else " (DRY RUN, not for release)"
        records = "" if self.rows_in is None else f"{self.rows_in} records in, "
        title = f"Certificate of {self.method}: {records}{self.rows_out} rows out{dry_run}"
        claims = [(claim.kind, claim.claim, f"Assumes: {claim.assumes}") for claim in self.claims]
        refused = [("refused", each.claim, each.reason) for each in self.refused]
        return html_table(title, [*claims, *refused], ("", "claim", "assumption, or reason for refusal"))

    @property
    def levels(self) -> dict[str, int]:
        """Size of the smallest group or leaf, number of groups, and records in groups below their privacy level."""
        sizes = next((fact.group_sizes for fact in self.facts if fact.group_sizes is not None), None)
        return {} if sizes is None else dict(zip(("smallest_group", "groups", "violations"), sizes, strict=True))

    @property
    def privacy(self) -> Mapping[str, Any] | None:
        """The proved guarantee and what each step spent, in zCDP; None if nothing of the kind is proved."""
        return next((fact.privacy for fact in self.facts if fact.privacy is not None), None)

    @property
    def unknown(self) -> tuple[str, ...]:
        """Names of the facts that this version does not know."""
        return tuple(dict.fromkeys(fact.name for fact in self.facts if isinstance(fact, UnknownFact)))

    def to_document(self) -> dict[str, Any]:
        """Write the certificate as plain values, in the order of the file."""
        entries = {name: plain(getattr(self, name)) for name in CertificateEntries.__dataclass_fields__}
        if entries["privacy"] is None:
            del entries["privacy"]
        in_order = {name: dict(sorted(entries[name].items())) for name in ("parameters", "files")}
        return entries | in_order | {"facts": [fact_to_json(fact) for fact in self.facts]}

    def to_json(self) -> str:
        """Write the certificate in its one encoding: equal certificates give equal texts."""
        return write_json(self.to_document(), "pretty")

    @classmethod
    def from_json(cls, text: str) -> Certificate:
        """Read a certificate; nothing in it is trusted until `verify` has compared it with the table.

        Raises
        ------
        BadInput
            If the text is no certificate, or one of another format.
        AlteredCertificate
            If the text is not exactly as sfumato writes it.
        """
        try:
            document = parse_json(text)
        except Unparsable as error:
            raise AlteredCertificate(f"the certificate is not JSON ({error}); it is damaged or was altered") from None
        known = document.get("format") if isinstance(document, dict) else None
        if isinstance(known, bool) or known != FORMAT:
            raise BadInput(f"the certificate is not of format {FORMAT}; use the version that wrote it")
        entries = dict(vars(read_written(document)))
        levels, facts = entries.pop("levels"), tuple(map(_fact, entries.pop("facts")))
        privacy = entries.pop("privacy")
        certificate = cls(**entries, facts=facts)
        if certificate.unknown:  # which may state sizes of groups, or a budget
            stated = {"levels": levels} if privacy is None else {"levels": levels, "privacy": privacy}
            if write_json(certificate.to_document() | stated, "pretty") != text:
                raise AlteredCertificate(_FORM)
            return certificate
        declared = {None, certificate.parameters.get("people")}  # a proof covers the number of records
        if (certificate.rows_in in declared) != (certificate.privacy is not None):
            raise _strange("rows_in")
        if certificate.levels != levels:
            raise AlteredCertificate("the levels on the certificate do not match its facts; it was altered")
        if certificate.privacy != privacy:
            raise AlteredCertificate("the privacy budget on the certificate does not match its facts; it was altered")
        if certificate.to_json() != text:
            raise AlteredCertificate(_FORM)
        return certificate


def _fact(document: Mapping[str, object]) -> Fact:
    try:
        return fact_from_json(document)
    except BadInput as error:
        raise AlteredCertificate(str(error)) from None


def certify(facts: tuple[Fact, ...], run: CertifiedRun) -> Certificate:
    """Draw the claims that the facts support and put them on a certificate.

    Raises
    ------
    PrivacyRefusal
        If the facts contradict each other, or one of them is unknown.
    """
    unknown = [fact.name for fact in facts if isinstance(fact, UnknownFact)]
    if unknown:
        raise PrivacyRefusal(f"the fact {unknown[0]!r} is not known, so nothing can be certified; use a newer version")
    claims, refused = draw_claims(facts)
    created = run.created or datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    parameters = parse_json(write_json(run.parameters, "canonical"))  # as they are read back
    stated = vars(run) | {"created": created, "parameters": parameters}
    return Certificate(**stated, facts=facts, claims=claims, refused=refused)
