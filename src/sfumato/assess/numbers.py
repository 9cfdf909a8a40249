"""Numbers and names of findings as a reader sees them: percentages, intervals, scores, spoken names."""

from __future__ import annotations

__all__ = ["CI", "MODELS", "percent", "percent_range", "score", "score_range", "show", "spoken_name"]

MODELS = {
    "1nn": "nearest neighbour",
    "boosting": "gradient boosting",
    "logistic": "logistic regression",
    "linear": "linear regression",
    "ridge": "ridge regression",
}
"""Models by the last word of a finding's name."""

_PERCENT, _DASH, _MINUS = "\u00a0%", "\u2013", "\u2212"
CI = f"95{_PERCENT} CI"
"""Confidence interval, as it stands before its limits."""


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
    ('Marginal distance: net-pay', 'Within-group sum of squares')
    >>> spoken_name("recall-boosting/red"), spoken_name("accuracy-smallest-class-1nn")
    ('Recall, gradient boosting: red', 'Accuracy on the smallest class, nearest neighbour')
    """
    from sfumato.assess.measure import number_of

    first, slash, column = name.partition("/")
    words = next((each.spoken for each in map(number_of, (first, f"{first}/")) if each and each.spoken), None)
    words = words or _as_it_stands(first)
    return f"{words}: {column}" if slash else words


def _as_it_stands(name: str) -> str:
    head, _, tail = name.rpartition("-")
    words = ", ".join(part for part in (head, MODELS[tail]) if part) if tail in MODELS else name
    words = words.replace("-", " ")
    return words[:1].upper() + words[1:]


def percent(share: float) -> str:
    """A share as a percentage, with one decimal below 10 and above 99.

    Examples
    --------
    >>> print(*map(percent, (0.724, 0.0123, 0.0004, 0.998, 0.0, 0.05, -0.03)), sep=", ")
    72\u00a0%, 1.2\u00a0%, 0.04\u00a0%, 99.8\u00a0%, 0\u00a0%, 5\u00a0%, \u22123\u00a0%
    """
    return f"{_hundredths(share)}{_PERCENT}"


def percent_range(low: float, high: float) -> str:
    """Two shares as a range of percentages; with "to" if one is below 0.

    Examples
    --------
    >>> print(percent_range(0.003, 0.11), percent_range(-0.02, 0.086))
    0.3\u201311\u00a0% \u22122 to 8.6\u00a0%
    """
    between = " to " if low < 0.0 else _DASH
    return f"{_hundredths(low)}{between}{percent(high)}"


def _hundredths(share: float) -> str:
    value = abs(100 * share)
    if 0 < value < 0.05:
        text = f"{value:.1g}" if value >= 0.0001 else "0"
    elif 9.95 <= value <= 99 or value >= 100:
        text = f"{value:.0f}"
    else:
        text = f"{value:.1f}".removesuffix(".0") if value < 99.95 else f"{value:.4g}"
    return f"{_MINUS if share < 0 and text != '0' else ''}{text}"


def score(value: float) -> str:
    """A score with three decimals.

    Examples
    --------
    >>> score(0.7184), score(-0.0001)
    ('0.718', '0.000')
    """
    return f"{round(value, 3) + 0.0:.3f}".replace("-", _MINUS)


def score_range(low: float, high: float) -> str:
    """Two scores as a range; with "to" if one is below 0.

    Examples
    --------
    >>> print(score_range(0.7, 0.735), score_range(-0.1, 0.2))
    0.700\u20130.735 \u22120.100 to 0.200
    """
    return f"{score(low)}{' to ' if low < 0.0 else _DASH}{score(high)}"
