"""The first words of a joint run: what all parties must have alike, and the columns that each brings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sfumato.documents import MOST_BYTES, Unparsable, from_json, write_json
from sfumato.engines.owned import OwnPart
from sfumato.errors import BadInput, OptionError, SchemaError
from sfumato.parties.plan import AGREEMENT, JointPlan
from sfumato.parties.ports import PartyError
from sfumato.parties.session import Session
from sfumato.tables.files import FileForm
from sfumato.tables.schema import Schema
from sfumato.version import __version__

__all__ = ["Agreed", "agree"]


@dataclass(frozen=True)
class Agreed:
    """What all parties know of the columns after the first words.

    Parameters
    ----------
    public : Schema
        Of the released table, with declared domains alone.
    dropped : tuple of str
        Columns of the owners that are not released.
    columns : tuple of int
        How many columns each owner brings to the release.
    """

    public: Schema
    dropped: tuple[str, ...]
    columns: tuple[int, ...]


@dataclass(frozen=True)
class _Told:
    """The first words of a party: what must be alike, the public part of its schema, and what it does not release."""

    version: str
    plan: str
    format: str
    schema: str
    dropped: tuple[str, ...]


def agree(part: OwnPart, session: Session, form: FileForm) -> Agreed:
    """Compare what must be alike, and join the public parts of the schemas.

    Raises
    ------
    BadInput
        Where parties differ, which is named.
    """
    schema, written = part.schema.public_part().to_toml(), f"{form.format.value} {form.delimiter}"
    own = _Told(__version__, part.plan.digest, written, schema, part.dropped)
    schemas: list[Schema] = []
    dropped: list[str] = []
    for owner, name in enumerate(session.names):
        payload = write_json(own, escaped=True).encode() if owner == session.rank else None
        told = _document(session.tell(payload, owner, AGREEMENT.label, 1), name)
        differs = [key for key in ("version", "plan", "format") if getattr(told, key) != getattr(own, key)]
        if differs:
            raise OptionError(f"party {name!r} has another {differs[0]} than this party; agree on one and start again")
        schemas.append(_schema(told.schema, name))
        dropped += told.dropped
    return Agreed(_joined(schemas, part.plan), tuple(dict.fromkeys(dropped)), tuple(len(each) for each in schemas))


def _document(payload: bytes, name: str) -> _Told:
    try:
        return from_json(_Told, payload, most=MOST_BYTES)
    except Unparsable:
        raise PartyError(f"party {name!r} told something else than its columns; start all parties again") from None


def _schema(text: str, name: str) -> Schema:
    try:
        return Schema.from_toml(text)
    except BadInput:
        raise PartyError(f"party {name!r} told a schema that cannot be read; start all parties again") from None


def _joined(schemas: Sequence[Schema], plan: JointPlan) -> Schema:
    """Give the schema of all columns: that of all owners of rows, or those of the owners of columns side by side."""
    if plan.partition == "horizontal":
        for name, schema in zip(plan.parties, schemas, strict=True):
            if schema.digest != schemas[0].digest:
                raise SchemaError(
                    f"party {name!r} has another schema than {plan.parties[0]!r}, {_difference(schemas[0], schema)}; "
                    "give all owners of rows the same one"
                )
        return schemas[0]
    owner: dict[str, str] = {}
    for name, schema in zip(plan.parties, schemas, strict=True):
        for column in schema.names:
            if column in owner:
                raise SchemaError(
                    f"parties {owner[column]!r} and {name!r} both bring a column {column!r}; rename it or leave it out "
                    "at one of them"
                )
            owner[column] = name
    if plan.target is not None and plan.target not in owner:
        raise OptionError(f"no party brings a column {plan.target!r}, the target of the run; check its name")
    return Schema(tuple(field for schema in schemas for field in schema))


def _difference(left: Schema, right: Schema) -> str:
    for one, other in zip(left, right, strict=False):
        if one != other:
            return f"first in column {one.name!r}"
    return f"{len(right)} columns and not {len(left)}"
