"""What a recount looks at: the original table, the released one, and the written documents, read anew from their files.

Nothing of the package is used here: pandas, numpy, json and tomllib read what is on disk.
"""

from __future__ import annotations

import json
import re
import tomllib
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

__all__ = ["LABELS", "NUMBERS", "Evidence", "names_in"]

Floats = NDArray[np.float64]
NUMBERS = ("integer", "continuous", "date")
"""Kinds of columns whose cells are numbers, dates as days."""

LABELS = ("nominal", "boolean", "ordinal")
"""Kinds of columns whose cells are categories."""

_PUBLIC_LEVELS = (2, 3, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000)
_ASKING = 10
"""Levels that may be stated, given how many persons have one or a higher one, as ``docs/levels.md`` says."""


def names_in(text: str) -> list[str]:
    """The names of a list in quotes, as sentences have it."""
    return re.findall(r"'([^']*)'", text)


def _read(path: Path) -> pd.DataFrame:
    return pd.read_csv(path, dtype=str, keep_default_na=False)


class Evidence:
    """One release with the original and with what was asked for, all as text until a count needs numbers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.request: dict[str, Any] = json.loads((folder / "request.json").read_text())
        self.options: dict[str, Any] = self.request["options"]
        self.tables = [_read(path) for path in sorted(folder.glob("original_*.csv"))]
        self.certificate: dict[str, Any] = json.loads((folder / "out/release/certificate.json").read_text())
        self.written = _read(folder / "out/release/table.csv")

    @cached_property
    def schema(self) -> dict[str, dict[str, Any]]:
        """The columns of the released schema by name."""
        path = self.folder / "out/release/schema.toml"
        return {each["name"]: each for each in tomllib.loads(path.read_text()).get("column", [])}

    @cached_property
    def released(self) -> pd.DataFrame:
        """The released rows, without the apostrophes that only spreadsheets need."""
        if not self.options.get("spreadsheet_safe"):
            return self.written
        quoted = r"^'(?=[=+\-@\t\r])"
        return pd.DataFrame({name: self.written[name].str.replace(quoted, "", regex=True) for name in self.written})

    @cached_property
    def original(self) -> pd.DataFrame:
        """All original records: batches and owners' rows one below the other, owners' columns joined by their key."""
        if self.options.get("partition") != "vertical":
            whole = pd.concat(self.tables, ignore_index=True)
            column = self.fact("unlabelled-rows").get("column")
            if column is None:
                return whole
            return whole[~self.missing(whole, column)].reset_index(drop=True)
        joined: pd.DataFrame = self.tables[0]
        for part in self.tables[1:]:
            joined = joined.merge(part, on="person", validate="one_to_one")
        return joined

    @cached_property
    def persons(self) -> NDArray[np.int64]:
        """Whom each original record is about: a number for each person."""
        column = self.options.get("person")
        if column is None:
            return np.arange(len(self.original), dtype=np.int64)
        return np.asarray(pd.factorize(self.original[column])[0], dtype=np.int64)

    @cached_property
    def person_count(self) -> int:
        return len(np.unique(self.persons))

    @property
    def condensed(self) -> int:
        """Records that were condensed: all, but that persons may have some that no group takes, for which no row is."""
        if not self.fact("persons-in-distinct-groups"):
            return len(self.original)
        return int(self.certificate["rows_in"]) if "rows" in self.options else len(self.released)

    @cached_property
    def levels(self) -> NDArray[np.int64]:
        """The privacy level that each original record asked for; 1 where none did."""
        column = self.options.get("level")
        if column is None:
            return np.ones(len(self.original), dtype=np.int64)
        return np.asarray(self.original[column].astype(int), dtype=np.int64)

    @property
    def shared(self) -> list[str]:
        """Released columns that the original has, too."""
        return [str(name) for name in self.written if name in self.original]

    def columns(self, kinds: tuple[str, ...]) -> list[str]:
        """Released columns of some kinds that the original has, too."""
        return [
            name
            for name, field in self.schema.items()
            if field["kind"] in kinds and name in self.written and name in self.original
        ]

    def fact(self, name: str) -> dict[str, Any]:
        """The one fact of a kind; empty where there is none."""
        return next((fact for fact in self.certificate["facts"] if fact["fact"] == name), {})

    def missing(self, frame: pd.DataFrame, name: str) -> NDArray[np.bool_]:
        """Which cells of a column are missing."""
        return np.asarray(frame[name] == "", dtype=np.bool_)

    def numbers(self, frame: pd.DataFrame, name: str) -> Floats:
        """The cells of a column as numbers, dates as days; NaN where one is missing."""
        if self.schema.get(name, {}).get("kind") == "date" or re.fullmatch(r"\d{4}-\d\d-\d\d", str(frame[name].max())):
            days = pd.to_datetime(frame[name].replace("", None), format="ISO8601")
            found = (days - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=1)
            return np.asarray(found, dtype=np.float64)
        return np.asarray(pd.to_numeric(frame[name].replace("", None)), dtype=np.float64)

    def cells(self, frame: pd.DataFrame, name: str) -> pd.Series[Any]:
        """The cells of a column so that equal values are equal: numbers as numbers, others as text; None if missing."""
        if self.schema.get(name, {}).get("kind") in NUMBERS:
            return pd.Series(self.numbers(frame, name)).round(9)
        return frame[name].replace("", None).reset_index(drop=True)

    def frequencies(self, name: str) -> pd.Series[Any]:
        """Frequency of each original value of a column in persons, without missing cells."""
        held = pd.DataFrame({"value": self.cells(self.original, name), "person": self.persons}).dropna()
        return held.drop_duplicates().groupby("value")["person"].size()

    @property
    def highest_level(self) -> int:
        """The highest privacy level of a record; where none is given, it follows from a tolerance and is stated."""
        stated = max(self.fact("rare-values").get("k", 1), self.fact("tails-coded").get("k", 1))
        return int(np.maximum(self.levels, self.options.get("k", stated)).max())

    @property
    def public_level(self) -> int:
        """The level that may be stated: one of a declared list that ten persons ask for, or the level that all have."""
        floor = int(self.options.get("k", 1))
        wished = pd.Series(np.maximum(self.levels, floor)).groupby(self.persons).max()
        listed = [level for level in _PUBLIC_LEVELS if (wished >= level).sum() >= _ASKING]
        return max(floor, 2, *listed)

    def person_extremes(self, name: str) -> tuple[Floats, Floats]:
        """The least and the greatest original number of each person who has one in a column, each in rising order."""
        known = pd.DataFrame({"number": self.coarse_numbers(self.original, name), "person": self.persons}).dropna()
        found = known.groupby("person")["number"]
        return np.sort(found.min().to_numpy()), np.sort(found.max().to_numpy())

    def coarse_numbers(self, frame: pd.DataFrame, name: str) -> Floats:
        """The cells of a column as numbers, dates of a column that is given by months as the first day of theirs."""
        numbers = self.numbers(frame, name)
        if name not in self.fact("dates-coarsened").get("columns", ()):
            return numbers
        days = pd.Series(pd.to_datetime(numbers, unit="D"))
        first = days.dt.to_period("M").dt.to_timestamp()
        return np.asarray((first - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=1), dtype=np.float64)

    def tuples(self, frame: pd.DataFrame, names: list[str]) -> pd.Series[Any]:
        """How often each combination of cells of some columns stands in a table, a missing cell like a value."""
        cells = pd.DataFrame({name: self.cells(frame, name) for name in names})
        return cells.astype(object).where(cells.notna(), "").value_counts()
