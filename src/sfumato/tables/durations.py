"""Durations written as text: 27:15:00, or 1 day, 3:15:00; read as seconds and written as they were."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.tables.field import DURATION_FORMATS

__all__ = ["duration_format", "seconds_of_texts", "write_seconds"]

_REST = r":(?P<minutes>[0-5]\d):(?P<seconds>[0-5]\d)$"
_HOUR = r"(?P<hours>\d|1\d|2[0-3])"
_PATTERNS = dict(
    zip(
        DURATION_FORMATS,
        (
            rf"^(?P<sign>-?)(?P<days>)(?P<hours>0|[1-9]\d{{0,8}}){_REST}",
            rf"^(?P<sign>-?)(?P<days>)(?P<hours>\d\d|[1-9]\d{{2,8}}){_REST}",
            rf"^(?P<sign>)(?:(?P<days>-?[1-9]\d{{0,5}}) days?, )?{_HOUR}{_REST}",
            rf"^(?P<sign>)(?P<days>-?\d{{1,6}}) days \+?(?P<hours>[01]\d|2[0-3]){_REST}",
        ),
        strict=True,
    )
)
_DAY = 86_400


def duration_format(texts: pa.Array) -> str | None:
    """The way of writing durations that fits all texts; None where none does.

    Examples
    --------
    >>> duration_format(pa.array(["27:15:00", "3:00:00"])), duration_format(pa.array(["1 day, 3:15:00", "0:00:01"]))
    ('h:mm:ss', 'd days, h:mm:ss')
    """
    fits = (form for form, pattern in _PATTERNS.items() if pc.all(pc.match_substring_regex(texts, pattern)).as_py())
    return next(fits, None) if len(texts) else None


def seconds_of_texts(texts: pa.Array, form: str) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Seconds of durations, and which of the texts are some; others, and nulls, are 0.

    Examples
    --------
    >>> seconds_of_texts(pa.array(["-1 day, 23:59:59", "ill"]), "d days, h:mm:ss")[0].tolist()
    [-1.0, 0.0]
    """
    parts = pc.extract_regex(texts, _PATTERNS[form])
    found = np.asarray(parts.is_valid().to_numpy(zero_copy_only=False), dtype=np.bool_)
    days, hours, minutes, seconds = (_whole(parts, name) for name in ("days", "hours", "minutes", "seconds"))
    minus = pc.fill_null(pc.equal(pc.struct_field(parts, "sign"), "-"), False).to_numpy(zero_copy_only=False)
    return days * _DAY + np.where(minus, -1.0, 1.0) * (hours * 3_600 + minutes * 60 + seconds), found


def _whole(parts: pa.Array, name: str) -> NDArray[np.float64]:
    cells = pc.struct_field(parts, name)
    cells = pc.if_else(pc.equal(cells, ""), pa.scalar("0", cells.type), cells)
    return np.asarray(pc.fill_null(cells, "0").cast(pa.float64()).to_numpy(zero_copy_only=False))


def write_seconds(numbers: pa.Array, form: str) -> pa.Array:
    """Seconds written as durations.

    Examples
    --------
    >>> write_seconds(pa.array([98100.0, None]), "hh:mm:ss").to_pylist()
    ['27:15:00', None]
    """
    encoded = pc.dictionary_encode(numbers)
    words = pa.array([_written(round(value), form) for value in encoded.dictionary.to_pylist()], pa.string())
    return words.take(encoded.indices)


def _written(seconds: int, form: str) -> str:
    if form.startswith("h"):
        hours, rest = divmod(abs(seconds), 3_600)
        return f"{'-' if seconds < 0 else ''}{hours:0{len(form) - 6}d}:{rest // 60:02d}:{rest % 60:02d}"
    days, rest = divmod(seconds, _DAY)
    clock = f"{rest // 3_600}:{rest // 60 % 60:02d}:{rest % 60:02d}"
    if "," not in form:
        return f"{days} days {'+' if days < 0 else ''}{clock.zfill(8)}"
    return f"{days} day{'s' if abs(days) != 1 else ''}, {clock}" if days else clock
