"""What is chosen on the page, typed before it is used: columns, rare values, rules, policy, method."""

from __future__ import annotations

import dataclasses
import shlex
from dataclasses import dataclass, field
from typing import Any, Literal

from sfumato.core.documents import Misfit, Unparsable, parse_json, typed
from sfumato.core.errors import OptionError, no_column, shown
from sfumato.publish.policy import PURPOSES, USUAL
from sfumato.tables.field import Domain, Field, Kind, Role
from sfumato.tables.schema import Schema

__all__ = [
    "Choices",
    "ColumnChoice",
    "ReadingChoice",
    "Setting",
    "command_line",
    "edited",
    "parse_choices",
    "python_lines",
]

_MOST_BYTES = 8 << 20
_MOST_LEVELS = 32
_LONGEST = 1_000  # characters of a rule, a level or a hierarchy
_MOST_BUDGET = 86_400.0


@dataclass(frozen=True)
class ReadingChoice:
    """How a file is read, where it was told."""

    encoding: str = "utf-8"
    delimiter: str | None = None
    decimal: Literal[".", ","] | None = None
    sheet: str | None = None

    @property
    def told(self) -> dict[str, str]:
        """What was told, by the names of the options."""
        usual = ReadingChoice()
        return {name: value for name, value in vars(self).items() if value != getattr(usual, name)}


@dataclass(frozen=True)
class ColumnChoice:
    """What a column is said to be; ``known`` is whether an outsider knows it, by labels at ``known_level``."""

    name: str
    role: Role
    kind: Kind
    hierarchy: str = ""
    coarsened: int = 0
    known: bool = False
    known_level: int = 0


@dataclass(frozen=True)
class Choices:
    """Everything that is chosen before a run. ``rules`` are those that are kept; None: those that were found."""

    columns: tuple[ColumnChoice, ...] = ()
    rules: tuple[str, ...] | None = None
    rare: Literal["pool", "lift", "keep"] | None = None
    policy: str = USUAL
    holdout: float = 0.3
    k: int | None = None
    level: str | None = None
    seed: int | None = None
    budget: float | None = None
    reading: ReadingChoice = field(default_factory=ReadingChoice)

    @property
    def known(self) -> tuple[str, ...]:
        """Columns that an outsider is taken to know, with the level of their labels where these are wider."""
        return tuple(
            f"{column.name}@{column.known_level}" if column.known_level else column.name
            for column in self.columns
            if column.known
        )


@dataclass(frozen=True)
class Setting:
    """A method and its size, or the usual ones; ``despite`` releases it also where the policy is not met."""

    method: str | None = None
    size: int | None = None
    despite: bool = False


def parse_choices(shape: type[Any], body: bytes) -> Any:
    """Choices or a setting out of the JSON that a browser sent.

    Raises
    ------
    OptionError
        For anything that is none; the sentence names the entry, and no value.
    """
    try:
        found = typed(shape, parse_json(body, most=_MOST_BYTES))
    except Misfit as wrong:
        raise OptionError(f"the entry {shown(wrong.entry)} of what was chosen cannot be used; choose again") from None
    except Unparsable:
        raise OptionError("what was chosen cannot be read; reload the page and choose again") from None
    if isinstance(found, Choices):
        _check(found)
    return found


def _check(choices: Choices) -> None:
    """Refuse numbers and words outside what the page offers; a file of a policy or a hierarchy is never opened."""
    if choices.policy not in PURPOSES:
        raise OptionError(f"there is no policy {shown(choices.policy)} here; choose one of {', '.join(PURPOSES)}")
    if not 0.0 < choices.holdout < 1.0:
        raise OptionError("the share of people to hold out must lie between 0 and 1; the usual one is 0.3")
    if choices.k is not None and not 2 <= choices.k <= 1_000_000:
        raise OptionError("k is a whole number of at least 2; the usual one is 10")
    if choices.seed is not None and not 0 <= choices.seed < 1 << 63:
        raise OptionError("a seed is a whole number from 0 on; write one, or leave it out")
    if choices.budget is not None and not 0.0 < choices.budget <= _MOST_BUDGET:
        raise OptionError("the time for the search is a number of seconds above 0; try 60")
    texts = [choices.level or "", *(choices.rules or ()), *(column.hierarchy for column in choices.columns)]
    if any(len(text) > _LONGEST for text in texts):
        raise OptionError(f"a rule, a level or a hierarchy has at most {_LONGEST} characters; shorten it")
    if any(not 0 <= column.known_level <= _MOST_LEVELS for column in choices.columns):
        raise OptionError(f"the level that outsiders know a column at lies between 0 and {_MOST_LEVELS}; mend it")
    listed = next((each.name for each in choices.columns if each.hierarchy.strip().startswith("file")), None)
    if listed is not None:
        raise OptionError(
            f"the hierarchy of column {shown(listed)} is a file, which the page does not open; use a schema on the "
            "command line"
        )


def edited(proposed: Schema, choices: Choices) -> Schema:
    """The proposed schema with what was chosen; what was left as it was keeps the reason why it is so."""
    schema = proposed
    for choice in choices.columns:
        if choice.name not in schema.names:
            raise OptionError(no_column(choice.name, schema.names))
        before = schema[choice.name]
        if choice.kind is not before.kind:
            schema = _with(schema, _of_kind(before, choice.kind))
        hierarchy = choice.hierarchy.strip() or None
        if (hierarchy, choice.coarsened) != (schema[choice.name].hierarchy, schema[choice.name].coarsened):
            schema = _with(
                schema, dataclasses.replace(schema[choice.name], hierarchy=hierarchy, coarsened=choice.coarsened)
            )
    changed = [choice for choice in choices.columns if choice.role is not proposed[choice.name].role]
    for choice in sorted(changed, key=lambda each: each.role is not Role.CONFIDENTIAL):  # a single role is free first
        schema = schema.with_role(choice.role, choice.name)
    return schema if choices.rules is None else dataclasses.replace(schema, rules=choices.rules)


def _of_kind(field: Field, kind: Kind) -> Field:
    """A column of another kind: what was found of the old one is forgotten, and found anew by the run."""
    return Field(field.name, kind, field.role, Domain(), field.missing, reason=f"{kind.value}, as told")


def _with(schema: Schema, changed: Field) -> Schema:
    fields = (changed if field.name == changed.name else field for field in schema)
    return dataclasses.replace(schema, fields=tuple(fields))


def command_line(name: str, choices: Choices, setting: Setting, *, recipe: str) -> str:
    """Command line that runs a recipe again on the file that was dropped in, quoted as a shell needs it."""
    words = ["sfumato", "sanitize", name, "-o", "FOLDER", "--recipe", recipe]
    for option, value in choices.reading.told.items():
        words += [f"--{option}", value]
    words += [word for column in choices.known for word in ("--known", column)]
    return shlex.join([*words, *(["--despite-policy"] if setting.despite else [])])


def python_lines(name: str, choices: Choices, setting: Setting, *, recipe: str) -> str:
    """Lines of Python that do what the command line does."""
    told = choices.reading.told
    lines = ["import sfumato as sf"]
    source = repr(name)
    if told:
        lines.append("from sfumato.tables.reading import read_people")
        spelt = ", ".join(f"{key}={value!r}" for key, value in told.items())
        lines += ["", f"table, form = read_people({name!r}, {spelt})"]
        source = "table"
    options = [f"recipe={recipe!r}"]
    if choices.known:
        options.append(f"known={list(choices.known)!r}")
    if setting.despite:
        options.append("despite_policy=True")
    return "\n".join([*lines, "", f"release = sf.sanitize({source}, {', '.join(options)})", 'release.save("FOLDER")'])
