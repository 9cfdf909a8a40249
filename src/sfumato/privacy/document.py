"""The shape of a certificate's document: which entries it has, and of what kind each is."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping
from typing import Any

from sfumato.errors import BadInput

__all__ = ["AlteredCertificate", "check_shape"]

_VERSION = re.compile(r"\d+(\.\d+)*([a-z]+\d+)?(\.[a-z]+\d+)?(\+[a-z0-9.]+)?")
_METHOD = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_SHA256 = re.compile(r"[0-9a-f]{64}")


class AlteredCertificate(BadInput):
    """A certificate that is not as sfumato writes it: it was altered or made up."""


def check_shape(document: Mapping[str, Any]) -> None:
    """Refuse a certificate that lacks an entry, has one too many, or one of another type.

    Facts are looked at where they are read.
    """
    lacking = [key for key in _SHAPE if key not in document]
    if lacking:
        raise AlteredCertificate(f"the certificate has no entry {lacking[0]!r}; it is damaged or was altered")
    if len(document) > len(_SHAPE):
        raise AlteredCertificate(
            f"the certificate has {len(document) - len(_SHAPE)} entries that do not belong there; it was altered"
        )
    wrong = [key for key, fits in _SHAPE.items() if not fits(document[key])]
    if wrong:
        raise AlteredCertificate(f"the entry {wrong[0]!r} of the certificate is not what belongs there; it was altered")


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_hash(value: Any) -> bool:
    return isinstance(value, str) and _SHA256.fullmatch(value) is not None


def _is_time(value: Any) -> bool:
    """Tell a time as certificates have it: to the second, in UTC."""
    try:
        when = datetime.datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return False
    return when.tzinfo is not None and bool(when.astimezone(datetime.UTC).isoformat(timespec="seconds") == value)


def _is_matching(pattern: re.Pattern[str]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and pattern.fullmatch(value) is not None


def _is_list_of(*keys: str) -> Callable[[Any], bool]:
    """Tell a list of objects with exactly these texts."""

    def fits(value: Any) -> bool:
        return isinstance(value, list) and all(
            isinstance(item, dict)
            and set(item) == set(keys)
            and all(isinstance(text, str) for text in item.values())
            and item.get("kind", "proved") in ("proved", "assumed")
            for item in value
        )

    return fits


_SHAPE: dict[str, Callable[[Any], bool]] = {
    "format": _is_count,
    "sfumato": _is_matching(_VERSION),
    "created": _is_time,
    "randomness": lambda value: value in ("release", "rehearsal"),
    "method": _is_matching(_METHOD),
    "parameters": lambda value: isinstance(value, dict),
    "rows_in": _is_count,
    "rows_out": _is_count,
    "table_sha256": lambda value: value is None or _is_hash(value),
    "schema_sha256": _is_hash,
    "files": lambda value: isinstance(value, dict) and all(map(_is_hash, value.values())),
    "facts": lambda value: isinstance(value, list) and all(isinstance(fact, dict) for fact in value),
    "claims": _is_list_of("claim", "kind", "basis", "assumes"),
    "refused": _is_list_of("claim", "because"),
    "levels": lambda value: isinstance(value, dict) and all(map(_is_count, value.values())),
}
