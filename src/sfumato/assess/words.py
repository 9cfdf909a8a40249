"""Numbers and names as a person reads them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sfumato.assess.findings import Family, Finding, Gain, gains

__all__ = ["MODELS", "forbidden_sentence", "measured_sentence", "promised_sentence", "show", "spoken_name"]

MODELS = {
    "1nn": "nearest neighbour",
    "boosting": "gradient boosting",
    "logistic": "logistic regression",
    "linear": "linear regression",
    "ridge": "ridge regression",
}
"""Models by the last word of a finding's name."""

_PERCENT = "\u00a0%"
_BY_NOBODY = "from a release that knows nobody"


def show(value: float | None, unit: str = "") -> str:
    """A number with about three digits.

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
    """Name of a finding as words; what stands after the slash is a column and stays as it is.

    Examples
    --------
    >>> spoken_name("marginal-distance/net-pay"), spoken_name("ssq")
    ('Marginal distance: net-pay', 'Sum of squares inside groups')
    >>> spoken_name("recall-boosting/red"), spoken_name("accuracy-smallest-class-1nn")
    ('Recall, gradient boosting: red', 'Accuracy on the smallest class, nearest neighbour')
    """
    from sfumato.assess.catalogue import declared

    first, slash, column = name.partition("/")
    number = declared().get(first)
    words = number.spoken if number is not None and number.spoken else _as_it_stands(first)
    return f"{words}: {column}" if slash else words


def _as_it_stands(name: str) -> str:
    head, _, tail = name.rpartition("-")
    words = ", ".join(part for part in (head, MODELS[tail]) if part) if tail in MODELS else name
    words = words.replace("-", " ")
    return words[:1].upper() + words[1:]


def measured_sentence(findings: Iterable[Finding]) -> str:
    """What was measured, and how far the attacks get, in one sentence."""
    all_findings = tuple(findings)
    known = {finding.name: finding for finding in all_findings if finding.value is not None}
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
    attacks = _attacks_told(all_findings)
    if not parts and not attacks:
        return "Measured: nothing could be compared; the findings say why."
    compared = (", ".join(parts[:-1]) + ", and " if parts[:-1] else "") + parts[-1] if parts else ""
    return "Measured: " + "; ".join(part for part in (compared, attacks) if part) + "."


def _attacks_told(findings: Sequence[Finding]) -> str:
    """How many attacks succeed on people of the table, and which gains most."""
    found = gains(findings)
    ranked = [gain for gain in found if not gain.conceded]
    idle = sum(f.family is Family.ATTACK and f.value is None and "/" not in f.name for f in findings)
    unknown = f"; {_times(idle, 'attack was', 'attacks were')} not run, which says nothing about safety" if idle else ""
    unknown = _conceded([gain for gain in found if gain.conceded and gain.certain]) + unknown
    if not ranked:
        return unknown.removeprefix("; ")
    certain = [gain for gain in ranked if gain.certain]
    tried = "the one attack tried" if len(ranked) == 1 else f"of {len(ranked)} attacks tried, "
    if certain:
        some = " succeeds" if len(ranked) == 1 else _times(len(certain), "succeeds", "succeed")
        which = f", most of all {_quoted(certain[0])}" if len(certain) > 1 else f": {_quoted(certain[0])}"
        return f"{tried}{some} on people in the table more often than chance explains{which}{unknown}"
    none = " does not succeed" if len(ranked) == 1 else "none succeeds"
    near = f" (the nearest to it is {_quoted(ranked[0])})"
    return f"{tried}{none} on people in the table more often than chance explains{near}{unknown}"


def _quoted(gain: Gain) -> str:
    finding = gain.finding
    words = spoken_name(finding.name)
    told = f"\u201c{words[0].lower()}{words[1:]}\u201d with {show(finding.value, finding.unit)}"
    against = f"{told} against {show(gain.against, finding.unit)}"
    if not gain.controlled:
        return f"{against} {_BY_NOBODY if finding.baseline_interval is not None else 'by guessing'}"
    guessed = finding.baseline is not None and finding.baseline_interval is None
    guess = f", {show(finding.baseline, finding.unit)} by guessing" if guessed else ""
    return f"{against} on people held out{guess}"


def _conceded(found: Sequence[Gain]) -> str:
    """That people's groups are found, which nothing promises to prevent."""
    if not found:
        return ""
    best = found[0].finding
    return f"; a person's group is found by up to {show(best.value, best.unit)}, which no claim rules out"


def _times(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


def promised_sentence(certificate: dict[str, Any] | None) -> str:
    """What was promised, in one sentence."""
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
    """What must not be said, in one sentence."""
    refused = (certificate or {}).get("refused") or []
    if not refused:
        return "Not to be said: that these numbers prove protection; they are measurements, not promises."
    first = str(refused[0].get("claim", "")).strip().rstrip(".")
    more = f", nor what stands beside it below, {len(refused)} claims in all" if len(refused) > 1 else ""
    return f"Not to be said: \u201c{first}\u201d{more}."
