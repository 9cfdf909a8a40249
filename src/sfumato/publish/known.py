"""What an outsider is taken to know: columns, or wider labels of their values."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from sfumato.core.errors import OptionError, closest_name, shown
from sfumato.tables.coarsened import column_and_level, label_values
from sfumato.tables.schema import Kind, Schema

__all__ = ["known_columns", "known_of"]


def known_columns(known: Iterable[str], schema: Schema) -> tuple[str, ...]:
    """Columns that an outsider is taken to know, also where several stand in one text with commas between.

    ``postcode@2`` is a column known by its labels at the second level of its hierarchy.

    Raises
    ------
    OptionError
        Where one of them is no column that is measured, or has no such level, or is named twice.
    """
    measured = [field.name for field in schema.encoded]
    texts = [text for told in known for text in ([told] if told in measured else told.split(","))]
    found = {text: column_and_level(text, measured) for text in texts}
    for text, (name, level) in found.items():
        if name not in measured:
            meant = closest_name(text.partition("@")[0], measured)
            told = "name another" if meant is None else f"did you mean {shown(meant)}?"
            raise OptionError(f"there is no column {shown(text)} that is measured and could be known; {told}")
        if level and schema[name].coarsened:
            raise OptionError(
                f"column {name!r} is compared at level {schema[name].coarsened} of its hierarchy already, so that is "
                "what outsiders know; name it without @"
            )
        if level:
            label_values(schema[name], level, np.empty(0))
    names = [name for name, _ in found.values()]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise OptionError(f"column {twice!r} is named twice as known; name it once")
    return tuple(found)


def known_of(known: Iterable[str], schema: Schema) -> list[str]:
    """What outsiders know of a table as it is compared: no column that is gone, and no level where labels stand."""
    found = [column_and_level(text, schema.names) for text in known]
    left = [(name, level) for name, level in found if name in schema.names]
    wide = [bool(level) and (schema[name].hierarchy or schema[name].kind is Kind.DATE) for name, level in left]
    return [f"{name}@{level}" if wider else name for (name, level), wider in zip(left, wide, strict=True)]
