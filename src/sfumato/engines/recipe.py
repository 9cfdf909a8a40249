"""The recipe: everything that a run was told, so that it can be run again."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.core.documents import fits, read_text, toml_entries, write_toml
from sfumato.core.errors import OptionError, shown
from sfumato.tables.schema import Schema, field_to_document, fields_from_document, rules_from_document

__all__ = ["Recipe"]

_FORMAT = 1
_RUNS = {
    "randomize-baskets": "sfumato baskets randomize INPUT -o FOLDER --recipe THIS, with --items and columns as before",
    "hide-rules": "sfumato baskets hide INPUT -o FOLDER --recipe THIS, with the rules, which it does not hold",
    "block-rules": "sfumato baskets block INPUT -o FOLDER --recipe THIS, with the rules, which it does not hold",
    "stream": "sfumato stream init FILE --state STATE --recipe THIS",
    "joint-laplace-pca": "sfumato party --config PARTY --recipe THIS, at every owner",
}
"""What runs a recipe again, where it is not sanitize."""

_TOLD = ("sfumato", "method", "level", "strata", "holdout", "seed", "policy")
_AT_TIMES = ("rare", "rows", "where")  # written where they are told
_FLAGS = ("no_rules", "keep_persons")  # written where they are set


@dataclass(frozen=True, repr=False)
class Recipe:
    """A method with its parameters, options and schema. Holds observed bounds, so it stays with the owner.

    ``holdout`` is the share of rows kept out, ``policy`` the name of what the release was judged by. A recipe with a
    seed repeats a rehearsal to the byte; one without draws afresh each time.
    """

    method: str
    parameters: dict[str, Any]
    schema: Schema
    level: str | int | None = None
    strata: str | None = None
    holdout: float | None = None
    seed: int | None = None
    sfumato: str = ""
    policy: str | None = None
    no_rules: bool = False
    rare: str | None = None
    rows: int | None = None
    where: str | None = None
    keep_persons: bool = False

    def __repr__(self) -> str:
        return f"Recipe({self.method}, {len(self.schema)} columns)"

    def to_toml(self) -> str:
        """Write the recipe as TOML."""
        run = _RUNS.get(self.method, "sfumato sanitize INPUT -o FOLDER --recipe THIS")
        note = f"Recipe of a sanitized table: {run}\nIt holds observed bounds and categories: keep it with the owner."
        told = {key: getattr(self, key) for key in _TOLD}
        told |= {name: True for name in _FLAGS if getattr(self, name)}
        told |= {key: value for key in _AT_TIMES if (value := getattr(self, key)) is not None}
        if self.schema.rules:
            told["rules"] = list(self.schema.rules)
        columns = [field_to_document(column) for column in self.schema]
        return write_toml({"format": _FORMAT, **told, "parameters": self.parameters, "column": columns}, note)

    @classmethod
    def from_toml(cls, text: str) -> Recipe:
        """Read a recipe from TOML."""
        known = (*_TOLD, *_AT_TIMES, *_FLAGS, "rules", "parameters", "column")
        document = toml_entries(text, "recipe", "use the one that sanitize wrote", known)
        rules = rules_from_document(document.pop("rules", []))
        schema = Schema(fields_from_document(document.pop("column", [])), rules)
        for key in ("method", "parameters", *document):
            if key not in document or not fits(cls, {key: document[key]}):
                raise OptionError(f"the recipe's entry {key!r} is missing or of the wrong type; mend it")
        for key, value in document["parameters"].items():
            if isinstance(value, float) and not math.isfinite(value):
                raise OptionError(f"the recipe's parameter {shown(key)} is not a finite number; mend it")
        return cls(**document, schema=schema)

    @classmethod
    def load(cls, path: str | Path) -> Recipe:
        """Read a recipe from a file."""
        return cls.from_toml(read_text(path, "recipe file", "sanitize writes one as owner/recipe.toml"))
