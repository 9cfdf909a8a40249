"""Free text, contact data and addresses of devices among texts: found by their form, named, never shown."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["private_text"]

_FORMS = {
    "e-mail addresses": r"^[^@\s]{1,64}@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,24}$",
    "telephone numbers": r"^\+[1-9]([ ()/.-]{0,2}\d){6,14}$",
    "web addresses": r"^(?i)(https?://|www\.)\S+$",
    "identifiers of devices or records": (
        r"^(?i)([0-9a-f]{2}[:-]){5}[0-9a-f]{2}$|^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"
    ),
    "network addresses": r"^((25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(25[0-5]|2[0-4]\d|1?\d?\d)$",
}
_IBAN = r"^[A-Z]{2}\d{2}( ?[A-Z0-9]){11,30}$"
_ENOUGH = 20  # different texts before they tell people apart
_SHARE = 0.1  # of the rows, that different contact data must come to
_SAMPLE = 1_000
_LONG, _WORDS, _TOLD_APART = 25, 4, 0.3  # characters and words of a free text on average, and how many differ


def private_text(distinct: pa.Array, rows: int) -> str:
    """Say what kind of private text a column holds, by its different texts and its rows; nothing where it holds none.

    Few different texts in many rows are categories, whatever their form.

    Examples
    --------
    >>> private_text(pa.array([f"{row}@example.org" for row in range(30)]), 60)
    'e-mail addresses'
    >>> private_text(pa.array([f"ward {row}" for row in range(30)]), 60)
    ''
    """
    if len(distinct) < _ENOUGH or len(distinct) <= _SHARE * rows:
        return ""
    texts = pc.utf8_trim_whitespace(distinct.slice(0, _SAMPLE))
    for words, form in _FORMS.items():
        if _most(pc.match_substring_regex(texts, form)):
            return words
    if _most(pa.array([_is_iban(text) for text in texts.filter(pc.match_substring_regex(texts, _IBAN)).to_pylist()])):
        return "bank accounts" if _most(pc.match_substring_regex(texts, _IBAN)) else ""
    long = pc.mean(pc.utf8_length(texts)).as_py() >= _LONG
    wordy = pc.mean(pc.add(pc.count_substring_regex(texts, r"\s+"), 1)).as_py() >= _WORDS
    return "free text" if long and wordy and len(distinct) > _TOLD_APART * rows else ""


def _most(found: pa.Array) -> bool:
    return len(found) > 0 and 2 * pc.sum(found).as_py() > len(found)


def _is_iban(text: str) -> bool:
    """Check the two digits of an account number [ISO 13616]."""
    bare = text.replace(" ", "")
    return int("".join(str(int(letter, 36)) for letter in bare[4:] + bare[:4])) % 97 == 1
