"""The recipe: everything that a run was told, so that it can be run again."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.documents import Unparsable, parse_toml, read_text
from sfumato.errors import OptionError, shown
from sfumato.tables.schema import Schema
from sfumato.tables.toml import field_to_document, fields_from_document

__all__ = ["Recipe"]

_FORMAT = 1
_RUNS = {
    "stream": "sfumato stream init FILE --state STATE --recipe THIS",
    "joint-laplace-pca": "sfumato party --config PARTY --recipe THIS, at every owner",
}
"""What runs a recipe again, where it is not sanitize."""

_KEYS = {"format", "sfumato", "method", "parameters", "level", "strata", "holdout", "seed", "policy", "column"}


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

    def __repr__(self) -> str:
        return f"Recipe({self.method}, {len(self.schema)} columns)"

    def to_toml(self) -> str:
        """Write the recipe as TOML."""
        import tomlkit

        document = tomlkit.document()
        run = _RUNS.get(self.method, "sfumato sanitize INPUT -o FOLDER --recipe THIS")
        document.add(tomlkit.comment(f"Recipe of a sanitized table: {run}"))
        document.add(tomlkit.comment("It holds observed bounds and categories: keep it with the owner."))
        document.add("format", tomlkit.item(_FORMAT))
        document.add("sfumato", tomlkit.item(self.sfumato))
        document.add("method", tomlkit.item(self.method))
        for key in ("level", "strata", "holdout", "seed", "policy"):
            value = getattr(self, key)
            if value is not None:
                document.add(key, tomlkit.item(value))
        told = {key: value for key, value in self.parameters.items() if value is not None}  # TOML has no null
        document.add("parameters", tomlkit.item(told))
        columns = tomlkit.aot()
        for column in self.schema:
            columns.append(tomlkit.item(field_to_document(column)))
        document.add("column", columns)
        return tomlkit.dumps(document)

    @classmethod
    def from_toml(cls, text: str) -> Recipe:
        """Read a recipe from TOML."""
        try:
            document = parse_toml(text)
        except Unparsable as error:
            raise OptionError(f"the recipe is not valid TOML ({error}); use the one that sanitize wrote") from None
        if document.get("format") != _FORMAT:
            raise OptionError(f"the recipe has no 'format = {_FORMAT}'; this version reads no other")
        unknown = sorted(set(document) - _KEYS)
        if unknown:
            raise OptionError(f"the recipe has an unknown entry {unknown[0]!r}; remove it")
        wanted: tuple[tuple[str, tuple[type, ...]], ...] = (
            ("method", (str,)),
            ("parameters", (dict,)),
            ("level", (str, int)),
            ("strata", (str,)),
            ("holdout", (int, float)),
            ("seed", (int,)),
            ("policy", (str,)),
        )
        for key, kinds in wanted:
            value = document.get(key)
            if (value is None and key in ("method", "parameters")) or not isinstance(value, (*kinds, type(None))):
                raise OptionError(f"the recipe's entry {key!r} is missing or of the wrong type; mend it")
        for key, value in document["parameters"].items():
            if isinstance(value, float) and not math.isfinite(value):
                raise OptionError(f"the recipe's parameter {shown(key)} is not a finite number; mend it")
        return cls(
            method=document["method"],
            parameters=document["parameters"],
            schema=Schema(fields_from_document(document.get("column", []))),
            level=document.get("level"),
            strata=document.get("strata"),
            holdout=document.get("holdout"),
            seed=document.get("seed"),
            sfumato=str(document.get("sfumato", "")),
            policy=document.get("policy"),
        )

    @classmethod
    def load(cls, path: str | Path) -> Recipe:
        """Read a recipe from a file."""
        return cls.from_toml(read_text(path, "recipe file", "sanitize writes one as owner/recipe.toml"))
