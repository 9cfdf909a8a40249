"""Numbers and names as a person reads them."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

__all__ = ["MODELS", "fitting", "show", "spoken_name"]

MODELS = {
    "1nn": "nearest neighbour",
    "boosting": "gradient boosting",
    "logistic": "logistic regression",
    "linear": "linear regression",
    "ridge": "ridge regression",
}
"""Models by the last word of a finding's name."""

_PERCENT = "\u00a0%"
_TO_TRY = "To try next:"


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


def fitting(parts: Sequence[tuple[int, str]], width: int | None, most: int) -> list[str]:
    """Lines of a text of at most so many, broken at a width; what has the highest number is left out first.

    Examples
    --------
    >>> fitting([(0, "one two"), (2, "three"), (1, "four")], 5, 3)
    ['one', '  two', 'four']
    """
    kept = list(parts)
    while True:
        lines = [line for _, text in kept for line in _broken(text, width)]
        taken = sum(-(-len(line) // width) if width else 1 for line in lines)  # the terminal breaks a command itself
        last = max((rank for rank, _ in kept), default=0)
        if taken <= most or not last:
            return lines
        kept.pop(max(place for place, (rank, _) in enumerate(kept) if rank == last))


def _broken(text: str, width: int | None) -> list[str]:
    """Lines that a text takes; a command stays whole, to be copied, and so does a word longer than a line."""
    if width is None or len(text) <= width or text.startswith(_TO_TRY):
        return [text]
    room = textwrap.TextWrapper(width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    return room.wrap(text)
