"""Alters sentences and released tables one thing at a time: what the recount must notice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from tests.recount.evidence import LABELS, NUMBERS, Evidence
from tests.recount.patterns import Entry, Parts

__all__ = ["ALTERATIONS", "altered_names", "altered_numbers", "complains", "with_table"]


def complains(entry: Entry, evidence: Evidence, parts: Parts) -> bool:
    """Whether a recount finds a sentence false; one that cannot be counted in such a table is false, too."""
    assert entry.recount is not None
    try:
        return any(True for _ in entry.recount(evidence, parts))
    except (ArithmeticError, KeyError, LookupError, ValueError):
        return True


def altered_numbers(parts: Parts) -> Iterator[tuple[str, Parts]]:
    """Each number of a sentence far larger, and 0."""
    for name, text in parts.items():
        try:
            number = float(text)
        except ValueError:
            continue
        for other in (f"{(int(abs(number)) + 1) * 1000 + 7}", "0"):
            if other != text:
                yield name, parts | {name: other}


def altered_names(parts: Parts) -> Iterator[tuple[str, Parts]]:
    """Each name of a sentence another, and each list with a name that no column has."""
    for name, text in parts.items():
        if text.startswith("'"):
            yield name, parts | {name: f"{text}, 'nowhere'"}
        elif (
            name in ("column", "label", "strata", "target", "policy", "first", "last", "same", "which")
            and not text.isdigit()
        ):
            yield name, parts | {name: "nowhere"}


def with_table(folder: Path, table: pd.DataFrame) -> Evidence:
    """The evidence of a release with another table in it."""
    evidence = Evidence(folder)
    evidence.written = table.reset_index(drop=True)
    return evidence


# --------------------------------------------------------------------------------------------- alterations of a table

_Alteration = Callable[[Evidence], pd.DataFrame]


def _without_rows(evidence: Evidence) -> pd.DataFrame:
    return evidence.written[: max(1, len(evidence.written) // 3)]


def _original_rows(evidence: Evidence) -> pd.DataFrame:
    """The original's cells in place of those released, as far as there are such columns."""
    rows = np.resize(np.arange(len(evidence.original)), len(evidence.written))
    cells = {name: evidence.original[name].to_numpy()[rows] for name in evidence.shared}
    return evidence.written.assign(**cells)


def _rare_labels(evidence: Evidence) -> pd.DataFrame:
    """Each category a new one in some rows."""
    table = evidence.written.copy()
    for name in map(str, table):
        if evidence.schema.get(name, {}).get("kind", "nominal") in LABELS:
            table.loc[table.index[::7], name] = "unheard"
    return table


def _original_labels(evidence: Evidence) -> pd.DataFrame:
    """Each category of the original that the fewest hold, in one row."""
    table = evidence.written.copy()
    for name in evidence.columns(LABELS):
        table.loc[table.index[0], name] = str(evidence.frequencies(name).idxmin())
    return table


def _other_numbers(evidence: Evidence) -> pd.DataFrame:
    """Numbers ten times as large, dates years later."""
    table = evidence.written.copy()
    for name, field in evidence.schema.items():
        there = table[name] != ""
        if field["kind"] == "date":
            table.loc[there, name] = "1999" + table.loc[there, name].str[4:]
        elif field["kind"] in NUMBERS:
            table.loc[there, name] = (pd.to_numeric(table.loc[there, name]) * 10 + 3).map("{:g}".format)
    return table


def _one_cell(evidence: Evidence) -> pd.DataFrame:
    """One cell of each column another one's."""
    table = evidence.written.copy()
    for name in table:
        other = table[name][table[name] != table[name].iloc[0]]
        table.loc[table.index[0], name] = other.iloc[0] if len(other) else "1"
    return table


def _gaps(evidence: Evidence) -> pd.DataFrame:
    table = evidence.written.copy()
    table.loc[table.index[::3]] = ""
    return table


def _sorted(evidence: Evidence) -> pd.DataFrame:
    return evidence.written.sort_values(list(evidence.written.columns))


def _shuffled_columns(evidence: Evidence) -> pd.DataFrame:
    """The cells of each column in another order."""
    rng = np.random.default_rng(5)
    return evidence.written.apply(lambda cells: pd.Series(rng.permutation(cells.to_numpy()), index=cells.index))


def _dropped_columns(evidence: Evidence) -> pd.DataFrame:
    """The columns of the original instead, with those that were dropped."""
    return evidence.original.reindex(index=range(len(evidence.written))).fillna("")


def _formulas(evidence: Evidence) -> pd.DataFrame:
    return evidence.written.assign(**{name: "=2+2" for name in evidence.written if name == "note"})


def _more_rows(evidence: Evidence) -> pd.DataFrame:
    return pd.concat([evidence.written] * 4)


ALTERATIONS: dict[str, _Alteration] = {
    "fewer rows": _without_rows,
    "more rows": _more_rows,
    "rows of the original": _original_rows,
    "new categories": _rare_labels,
    "rare categories of the original": _original_labels,
    "other numbers": _other_numbers,
    "one cell of each column": _one_cell,
    "missing cells": _gaps,
    "rows in order": _sorted,
    "columns in other orders": _shuffled_columns,
    "columns that were dropped": _dropped_columns,
    "formulas": _formulas,
}
