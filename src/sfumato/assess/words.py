"""Numbers and names as a person reads them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sfumato.assess.findings import Finding

__all__ = ["forbidden_sentence", "measured_sentence", "promised_sentence", "show", "spoken_name"]

_PERCENT = "\u00a0%"


def show(value: float | None, unit: str = "") -> str:
    """Write a number with about three digits.

    Examples
    --------
    >>> show(0.01234), show(12.0, "count"), show(0.99999), show(None)
    ('0.0123', '12', 'above 0.9999', '–')
    >>> print(show(0.5, "share"), show(0.99999, "share"))
    50\u00a0% just under 100\u00a0%
    """
    if value is None:
        return "\u2013"
    if unit == "share":
        text = f"{100 * value:.3g}"
        return f"just under 100{_PERCENT}" if text == "100" and value < 1 else f"{text}{_PERCENT}"
    if unit == "percent":
        return f"{value:.3g}{_PERCENT}"
    if unit == "count":
        return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"
    if 0.9 <= abs(value) < 1:
        return f"{value:.4f}" if abs(value) < 0.99995 else ("above 0.9999" if value > 0 else "below -0.9999")
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def spoken_name(name: str) -> str:
    """Write the name of a finding as words; what stands after the slash is a column and stays as it is.

    Examples
    --------
    >>> spoken_name("marginal-distance/net-pay"), spoken_name("ssq")
    ('Marginal distance: net-pay', 'Sum of squares inside groups')
    """
    first, slash, column = name.partition("/")
    words = _SPOKEN.get(first) or first.replace("-", " ").capitalize()
    return f"{words}: {column}" if slash else words


_SPOKEN = {
    "ssq": "Sum of squares inside groups",
    "group-size-smallest": "Smallest group",
    "group-size-median": "Median group",
    "group-size-largest": "Largest group",
    "groups-tiny": "Tiny groups",
    "level-met": "Records that got their level",
    "verbatim-rows": "Rows released word for word",
    "closest-record-distance": "Distance to the closest original row",
    "closer-than-real-neighbours": "Released rows nearer than real neighbours",
    "closer-to-originals-than-to-held-out": "Released rows nearer to the original than to people held out",
    "marginal-distance-largest": "Marginal distance, largest",
    "association-difference": "Difference of links",
    "association-difference-largest": "Difference of links, largest",
    "covariance-compatibility": "Covariance compatibility \u03bc",
    "covariance-compatibility-standardized": "Covariance compatibility \u03bc, standardized",
}


def measured_sentence(findings: Iterable[Finding]) -> str:
    """Say in one sentence what was measured."""
    known = {finding.name: finding for finding in findings if finding.value is not None}
    parts = []
    for name, words in (
        ("marginal-distance", "the columns, each taken alone, moved by {value} on average{beside}"),
        ("association-difference", "the links between columns by {value}{beside}"),
        ("verbatim-rows", "{value} of the released rows equal an original row{twins}"),
    ):
        if name in known:
            finding = known[name]
            base = show(finding.baseline, finding.unit)
            parts.append(
                words.format(
                    value=show(finding.value, finding.unit),
                    beside=f" (fresh rows drawn from the original: {base})",
                    twins=f" (original rows that have a twin: {base})",
                )
            )
    if not parts:
        return "Measured: nothing could be compared; the findings say why."
    return "Measured: " + (", ".join(parts[:-1]) + ", and " if parts[:-1] else "") + parts[-1] + "."


def promised_sentence(certificate: dict[str, Any] | None) -> str:
    """Say in one sentence what was promised."""
    if certificate is None:
        return "Promised: nothing is on record, because no certificate came with this table."
    claims = certificate.get("claims") or []
    if not claims:
        return "Promised: nothing, for no claim follows from what was done."
    proved = sum(claim.get("kind") == "proved" for claim in claims)
    first = str(claims[0].get("claim", "")).strip().rstrip(".")
    if len(claims) == 1:
        return f"Promised, {'proved' if proved else 'on an assumption'}: \u201c{first}\u201d."
    assumed = len(claims) - proved
    return f"Promised: \u201c{first}\u201d and more below: {proved} proved, {assumed} resting on assumptions."


def forbidden_sentence(certificate: dict[str, Any] | None) -> str:
    """Say in one sentence what must not be said."""
    refused = (certificate or {}).get("refused") or []
    if not refused:
        return "Not to be said: that these numbers prove protection; they are measurements, not promises."
    first = str(refused[0].get("claim", "")).strip().rstrip(".")
    more = f", nor what stands beside it below, {len(refused)} claims in all" if len(refused) > 1 else ""
    return f"Not to be said: \u201c{first}\u201d{more}."
