"""The rows or columns of one owner, and the agreement of all owners on settings and columns before a joint run."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.core.documents import MOST_BYTES, UNLESS_DEFAULT, Unparsable, from_json, write_json
from sfumato.core.errors import BadInput, OptionError, PrivacyLeakWarning, PrivacyRefusal, SchemaError
from sfumato.core.randomness import Randomness
from sfumato.engines.columns import empty_columns, schema_of
from sfumato.methods.perturb.laplace_pca import most_components
from sfumato.options import RunOptions
from sfumato.parties.channel import PartyError
from sfumato.parties.codecs import read_columns
from sfumato.parties.groupwise import group_sizes, tail_persons
from sfumato.parties.plan import AGREEMENT, JointPlan
from sfumato.parties.session import Session
from sfumato.parties.vertical import key_texts
from sfumato.tables.codec import Codec
from sfumato.tables.files import FileForm
from sfumato.tables.frames import to_arrow
from sfumato.tables.grid import repair_table
from sfumato.tables.persons import hold_out, propose_person, refuse_weight
from sfumato.tables.schema import Role, Schema
from sfumato.tables.tails import Tail, Tails, fit_tails
from sfumato.version import __version__

__all__ = ["Agreement", "OwnPart", "agree", "encode_own", "own_part"]


@dataclass(frozen=True, eq=False, repr=False)
class OwnPart:
    """An owner's rows or columns, ready for a run; it holds data and stays with the owner.

    Parameters
    ----------
    plan : JointPlan
    rank : int
        Which of the parties the owner is.
    table : pyarrow.Table
        Without the key.
    schema : Schema
        Of the table.
    keys : pyarrow.ChunkedArray or None
        Of a vertical partition: what says which rows of the owners belong together.
    key : str or None
        Name of that column.
    codec : Codec or None
        Of a vertical partition, where each owner encodes its own columns.
    coded : pyarrow.Table or None
        The table that the codec was made on, with coded tails.
    outside : pyarrow.Table or None
        People who are not in the release, as a control group for the attacks.
    """

    plan: JointPlan
    rank: int
    table: pa.Table
    schema: Schema
    keys: pa.ChunkedArray | None = None
    key: str | None = None
    codec: Codec | None = None
    tails: Tails = dataclasses.field(default_factory=Tails)
    coded: pa.Table | None = None
    outside: pa.Table | None = None

    def __repr__(self) -> str:
        return f"OwnPart({self.name}, {self.plan.partition})"

    @property
    def name(self) -> str:
        """Name of the owner."""
        return self.plan.parties[self.rank]

    @property
    def dropped(self) -> tuple[str, ...]:
        """Columns that are not released: the key and other identifiers."""
        own = tuple(field.name for field in self.schema if field.role is Role.IDENTIFIER)
        return own if self.key is None else (self.key, *own)

    @property
    def empty(self) -> tuple[str, ...]:
        """Dropped columns without a value in any row, which identify no person."""
        return empty_columns(self.table, (field for field in self.schema if field.role is Role.IDENTIFIER))


def own_part(
    plan: JointPlan,
    rank: int,
    table: Any,
    schema: Schema | None = None,
    *,
    key: str | None = None,
    columns: Iterable[str] | None = None,
    outside: Any = None,
) -> OwnPart:
    """Read an owner's table by its schema, and refuse what a joint run cannot do.

    Parameters
    ----------
    plan : JointPlan
        The same at all parties.
    rank : int
        Which of the parties this owner is.
    table : pandas, polars or pyarrow table
    schema : Schema, optional
        Of a vertical partition by default inferred. A horizontal one needs the same schema at all owners, with
        declared domains.
    key : str, optional
        Of a vertical partition: the column that says which rows of the owners belong together. It is not released.
    columns : iterable of str, optional
        The columns to contribute; by default all.
    outside : pandas, polars or pyarrow table, optional
        People of the same population who are not in the table, as a control group; else the share that the plan holds
        out, which owners of columns draw together once their rows are aligned.

    Raises
    ------
    BadInput
        Where table, schema and plan do not fit.
    PrivacyRefusal
        If the run would give another owner's rows away.
    """
    arrow = _chosen(to_arrow(table)[0], columns, key)
    keys = None
    if plan.partition == "vertical":
        keys, arrow, schema = _without_key(arrow, key, schema)
    elif key is not None:
        raise OptionError("a key is for a vertical partition, where owners have the same rows; leave it out")
    elif schema is None:
        raise OptionError("a horizontal partition needs a schema that all owners have alike; write one with inspect")
    target = plan.target if plan.target in arrow.column_names else None
    own = RunOptions(schema=schema, target=target)
    schema = schema_of(arrow, own, keep_empty=keys is None)  # another owner of rows may have values
    arrow = repair_table(arrow, schema)
    _check_roles(plan, schema)
    refuse_weight(schema, "a joint run")
    if keys is None and not plan.rows_are_people:
        _check_people(arrow, schema)
    arrow, control = _control_group(plan, rank, arrow, schema, outside)
    codec, tails, coded = None, Tails(), None
    if keys is None:
        read_columns(arrow, schema)  # every cell, by the declared domains
    else:
        if plan.common is None:
            key_texts(keys)  # refuses those that are missing, stand twice or cannot be compared
        codec, tails, coded = encode_own(plan, rank, arrow, schema)
    _warn_of_two(plan)
    return OwnPart(plan, rank, arrow, schema, keys, key, codec, tails, coded, control)


def _control_group(
    plan: JointPlan, rank: int, arrow: pa.Table, schema: Schema, outside: Any
) -> tuple[pa.Table, pa.Table | None]:
    """Rows that stay in the run, and those of a control group that is known before it."""
    if outside is not None:
        if plan.holdout is not None:
            raise OptionError("the plan holds people out and this owner names others; leave one of them out")
        table = to_arrow(outside)[0]
        lacking = [name for name in schema.names if name not in table.column_names]
        if lacking:
            raise SchemaError(
                f"the hold-out set lacks {len(lacking)} columns, the first is {lacking[0]!r}; give it all columns"
            )
        return arrow, repair_table(table.select(list(schema.names)), schema)
    if plan.holdout is None or plan.partition == "vertical":
        return arrow, None
    rng = Randomness(plan.seed).generator(f"holdout of party {rank}")
    out = hold_out(np.arange(arrow.num_rows), plan.holdout, rng)
    return arrow.filter(pa.array(~out)), arrow.filter(pa.array(out))


def _chosen(arrow: pa.Table, columns: Iterable[str] | None, key: str | None) -> pa.Table:
    if columns is None:
        return arrow
    names = list(dict.fromkeys([*([] if key is None else [key]), *columns]))
    lacking = [name for name in names if name not in arrow.column_names]
    if lacking:
        raise OptionError(f"the table lacks {len(lacking)} of the columns to contribute, the first is {lacking[0]!r}")
    return arrow.select(names)


def _without_key(
    arrow: pa.Table, key: str | None, schema: Schema | None
) -> tuple[pa.ChunkedArray, pa.Table, Schema | None]:
    """Take the key out of the table and of the schema, which need not name it."""
    if key is None:
        raise OptionError("a vertical partition needs a key, the column that says which rows belong together; name it")
    if key not in arrow.column_names:
        raise OptionError(f"there is no key column {key!r}; the columns are {', '.join(map(repr, arrow.column_names))}")
    if schema is not None:
        schema = Schema(tuple(field for field in schema if field.name != key))
    return arrow.column(key), arrow.drop_columns([key]), schema


def _check_roles(plan: JointPlan, schema: Schema) -> None:
    public = [field.name for field in schema if field.role is Role.PUBLIC]
    if public:
        raise PrivacyRefusal(
            f"column {public[0]!r} is public, and a joint run passes no column through; drop it or sanitize it"
        )
    persons = [field.name for field in schema if field.role is Role.PERSON]
    if persons:
        raise PrivacyRefusal(
            f"column {persons[0]!r} identifies persons, and a joint run takes each row for a person; provide one "
            "row of each and drop the column"
        )
    levels = [field.name for field in schema if field.role is Role.LEVEL]
    if levels:
        raise OptionError(
            f"column {levels[0]!r} holds privacy levels, and a joint run has one level for all records, k; leave the "
            "column out and take a k that suits all"
        )
    target = None if schema.target is None else schema.target.name
    if target is not None and target != plan.target:
        raise OptionError(
            f"column {target!r} is the target in the schema and not that of the run; give all parties the same target"
        )
    if plan.partition == "horizontal" and plan.target is not None and target is None:
        raise SchemaError(f"there is no column {plan.target!r}, the target of the run; every owner of rows has it")


def _check_people(arrow: pa.Table, schema: Schema) -> None:
    """Refuse rows that seem to be several of a person, unless all owners state that each row is one."""
    proposed = propose_person(arrow, schema)
    if proposed is not None:
        raise PrivacyRefusal(
            f"column {proposed.column!r} seems to identify persons ({proposed}), and a joint run takes each "
            "row for a person; use one row of each, or have all owners write rows_are_people = true in [method]"
        )


def encode_own(plan: JointPlan, rank: int, arrow: pa.Table, schema: Schema) -> tuple[Codec, Tails, pa.Table]:
    """Make the codec of own columns on rows with coded tails; refuse columns whose products reveal another owner's.

    A number or date that noise has moved is brought back to the declared bounds of its column; without such, to the
    cut-offs of its tails.

    Every other column of a group is met by one linear equation for each component of the own columns and one for the
    mean, and as many equations as records have one solution.
    """
    level, _ = group_sizes(plan.mechanism, arrow.num_rows)
    rng = Randomness(plan.seed).generator(f"tails of party {rank}")
    tails = fit_tails(arrow, schema, k=tail_persons(level), rng=rng)
    coded = tails.code(arrow, rng.random(arrow.num_rows))
    within = {name: _released_bounds(tail) for name, tail in tails.columns.items()}
    codec = Codec.fit(coded, schema, min_frequency=level, codes=True, within=within)
    equations = most_components(codec.layout) + 1
    if equations >= level:
        raise PrivacyRefusal(
            f"groups have {level} records and this owner contributes {equations - 1} coordinates: products would "
            f"give the other owners' cells away exactly; use groups larger than {equations}, or use fewer columns"
        )
    return codec, tails, coded


def _released_bounds(tail: Tail) -> tuple[float, float]:
    """Smallest and largest number that may be released: declared bounds of a column, or the cut-offs of its tails."""
    domain, (low, high) = tail.field.domain, tail.bounds
    declared = domain.declared
    return (
        tail.grid.low if declared and domain.low is not None else low,
        tail.grid.high if declared and domain.high is not None else high,
    )


def _warn_of_two(plan: JointPlan) -> None:
    if len(plan.parties) > 2:
        return
    first, last = plan.parties
    what = "the secure sums" if plan.partition == "horizontal" else "the sum that is opened"
    warnings.warn(
        f"there are two owners: {first!r} and {last!r} each take their own part off {what} and have the other's; with "
        "three or more none can do that alone",
        PrivacyLeakWarning,
        stacklevel=3,
    )


@dataclass(frozen=True)
class Agreement:
    """Columns of all parties, as agreed on.

    ``public`` is the schema of the released table, with declared domains alone; ``dropped`` are columns that are not
    released, ``empty`` more of them, without a value in any row of any owner; ``columns`` says how many each brings.
    ``signers`` are the fingerprints that they sign with, "" of one who does not.
    """

    public: Schema
    dropped: tuple[str, ...]
    empty: tuple[str, ...]
    columns: tuple[int, ...]
    signers: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Announcement:
    """First message of a party: settings to compare, its public schema, the columns that it drops, and who signs."""

    version: str
    plan: str
    format: str
    schema: str
    dropped: tuple[str, ...]
    empty: tuple[str, ...] = dataclasses.field(default=(), metadata=UNLESS_DEFAULT)
    signer: str = dataclasses.field(default="", metadata=UNLESS_DEFAULT)


def agree(part: OwnPart, session: Session, form: FileForm, *, signer: str = "") -> Agreement:
    """Compare the settings of all parties, and join the public parts of their schemas.

    Raises
    ------
    BadInput
        If parties differ, which is named.
    """
    schema, written = part.schema.public_part().to_toml(), f"{form.format.value} {form.delimiter}"
    own = _Announcement(__version__, part.plan.digest, written, schema, part.dropped, part.empty, signer)
    schemas: list[Schema] = []
    dropped: list[str] = []
    filled: set[str] = set()
    signers: list[str] = []
    for owner, name in enumerate(session.names):
        payload = write_json(own, escaped=True).encode() if owner == session.rank else None
        document = _document(session.broadcast(payload, owner, AGREEMENT.label, 1), name)
        differs = [key for key in ("version", "plan", "format") if getattr(document, key) != getattr(own, key)]
        if differs:
            raise OptionError(f"party {name!r} has another {differs[0]} than this party; agree on one and start again")
        schemas.append(_schema(document.schema, name))
        dropped += document.dropped
        signers.append(document.signer)
        filled.update(set(document.dropped) - set(document.empty))
    left = tuple(dict.fromkeys(dropped))
    return Agreement(
        _joined(schemas, part.plan),
        tuple(name for name in left if name in filled),
        tuple(name for name in left if name not in filled),
        tuple(len(each) for each in schemas),
        tuple(signers),
    )


def _document(payload: bytes, name: str) -> _Announcement:
    try:
        return from_json(_Announcement, payload, most=MOST_BYTES)
    except Unparsable:
        raise PartyError(f"party {name!r} sent something else than its columns; start all parties again") from None


def _schema(text: str, name: str) -> Schema:
    try:
        return Schema.from_toml(text)
    except BadInput:
        raise PartyError(f"party {name!r} sent a schema that cannot be read; start all parties again") from None


def _joined(schemas: Sequence[Schema], plan: JointPlan) -> Schema:
    """Schema of all columns: that of all owners of rows, or those of the owners of columns side by side."""
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
                    f"parties {owner[column]!r} and {name!r} both contribute {column!r}; rename or drop it "
                    "at one of them"
                )
            owner[column] = name
    if plan.target is not None and plan.target not in owner:
        raise OptionError(f"no party contributes a column {plan.target!r}, the target of the run; check its name")
    return Schema(tuple(field for schema in schemas for field in schema))


def _difference(left: Schema, right: Schema) -> str:
    for one, other in zip(left, right, strict=False):
        if one != other:
            return f"first in column {one.name!r}"
    return f"{len(right)} columns and not {len(left)}"
