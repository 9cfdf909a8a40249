"""The shape of a certificate's document: which entries it has, and of what kind each is."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from sfumato.documents import Misfit, typed
from sfumato.errors import BadInput
from sfumato.privacy.statements import Claim, Refused

__all__ = ["AlteredCertificate", "Written", "read_written"]

_VERSION = re.compile(r"\d+(\.\d+)*([a-z]+\d+)?(\.[a-z]+\d+)?(\+[a-z0-9.]+)?")
_METHOD = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_SHA256 = re.compile(r"[0-9a-f]{64}")


class AlteredCertificate(BadInput):
    """A certificate that is not as sfumato writes it: it was altered or made up."""


@dataclass(frozen=True)
class Written:
    """The entries of a certificate, in the order of the file; facts are looked at where they are read."""

    format: int
    sfumato: str
    created: str
    randomness: Literal["release", "rehearsal"]
    method: str
    parameters: dict[str, Any]
    rows_in: int
    rows_out: int
    table_sha256: str | None
    schema_sha256: str
    files: dict[str, str]
    facts: tuple[dict[str, Any], ...]
    claims: tuple[Claim, ...]
    refused: tuple[Refused, ...]
    levels: dict[str, int]


def read_written(document: Mapping[str, Any]) -> Written:
    """Refuse a certificate that lacks an entry, has one too many, or one of another kind."""
    try:
        written = typed(Written, document)
    except Misfit as wrong:
        if wrong.problem == "missing" and not wrong.path:
            raise AlteredCertificate(
                f"the certificate has no entry {wrong.entry!r}; it is damaged or was altered"
            ) from None
        if wrong.problem == "unknown" and not wrong.path:
            surplus = len(set(document) - set(Written.__dataclass_fields__))
            raise AlteredCertificate(
                f"the certificate has {surplus} entries that do not belong there; it was altered"
            ) from None
        raise _strange(str(wrong.path[0])) from None
    values = {
        "sfumato": _VERSION.fullmatch(written.sfumato),
        "created": _is_time(written.created),
        "method": _METHOD.fullmatch(written.method),
        "rows_in": written.rows_in >= 0,
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
    return AlteredCertificate(f"the entry {entry!r} of the certificate is not what belongs there; it was altered")


def _is_time(value: str) -> bool:
    """Tell a time as certificates have it: to the second, in UTC."""
    try:
        when = datetime.datetime.fromisoformat(value)
    except ValueError:
        return False
    return when.tzinfo is not None and bool(when.astimezone(datetime.UTC).isoformat(timespec="seconds") == value)
