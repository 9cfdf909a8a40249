"""Verbs that are the work of several rooms: inspect and stream."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from sfumato.core.errors import OptionError
from sfumato.core.randomness import Randomness
from sfumato.engines.columns import schema_of
from sfumato.engines.stream import Ingested, Status, StreamSession, cut_batches
from sfumato.engines.stream.run import forget_rows, init_stream
from sfumato.publish.release import Release
from sfumato.publish.stream import EpochAttack, attack_epochs, publish_stream, stream_on_spark
from sfumato.tables.frames import to_arrow
from sfumato.tables.persons import persons_of_table, propose_person
from sfumato.tables.rare import share_values
from sfumato.tables.rules import find_rules
from sfumato.tables.schema import Role, Schema

__all__ = ["Stream", "inspect", "stream"]


def inspect(
    table: Any,
    *,
    identifiers: Iterable[str] = (),
    target: str | None = None,
    person: str | None = None,
    k: int = 10,
    schema: Schema | str | Path | None = None,
) -> Schema:
    """What each column is taken for and what will happen to it, to be printed and edited.

    Parameters
    ----------
    table : pandas, polars or pyarrow table, or path
    identifiers : iterable of str
        Columns to drop.
    target : str, optional
        The class or response that will be mined.
    person : str, optional
        Column that says who a row is about; one that seems to is proposed.
    k : int
        Fewest persons who hold a category that leaves, as a run with that k has it.
    schema : Schema or path, optional
        One that was edited, to see what it will do: its columns and rules stay as they are written.

    Examples
    --------
    >>> people = pa.table({"age": [31, 45, 28, 52, 39] * 6, "name": ["Ann", "Bob", "Eve"] * 10})
    >>> print(inspect(people, identifiers=["name"]))
    column  role          kind     what happens  why
    age     confidential  integer  sanitized     whole numbers, 5 different
    name    identifier    nominal  dropped       text with 3 categories; identifier, as told
    """
    arrow = to_arrow(table)[0]
    identifiers = tuple(identifiers)
    if schema is not None:
        told = schema_of(arrow, schema, target, identifiers, person=person, coarsens=True)
        return _with_rare(arrow, told, k, found=False)
    dropped = identifiers if person is None else (*identifiers, person)
    schema = Schema.infer(arrow, identifiers=dropped, target=target)
    if person is not None:
        return _with_rare(arrow, schema.with_role(Role.PERSON, person), k)
    proposed = propose_person(arrow, schema)
    if proposed is None or proposed.column == target:
        return _with_rare(arrow, schema, k)
    whose = dataclasses.replace(schema[proposed.column], role=Role.PERSON, reason=f"{proposed}; proposed as the person")
    fields = tuple(whose if field.name == proposed.column else field for field in schema)
    return _with_rare(arrow, dataclasses.replace(schema, fields=fields), k)


def _with_rare(arrow: pa.Table, schema: Schema, k: int, *, found: bool = True) -> Schema:
    """Schema that says of each column what becomes of its rare values, with the found rules that hold after that."""
    persons = persons_of_table(arrow, schema)
    people = arrow.num_rows if persons is None else int(persons.max()) + 1
    if people < k or not schema.encoded:
        return schema
    rng = Randomness(0).generator("inspect")
    shared = share_values(arrow, schema.without_target(), k=k, way="lift", persons=persons, rng=rng, most=None)
    if shared.changed and found:
        target = () if schema.target is None else (schema.target.name,)
        after = shared.schema.with_role(Role.TARGET, *(name for name in target if name in _names(shared.schema)))
        schema = dataclasses.replace(schema, rules=find_rules(shared.table, after))
    fields = []
    for field in schema:
        words = shared.words(field.name)
        if words and field.role is Role.TARGET:
            words = f"a class that fewer than {k} persons hold: say with --rare what becomes of it"
        fields.append(dataclasses.replace(field, reason=f"{field.reason}; {words}") if words else field)
    return dataclasses.replace(schema, fields=tuple(fields))


def _names(schema: Schema) -> set[str]:
    return {field.name for field in schema.encoded}


@dataclass(frozen=True)
class Stream:
    """A stream by its state, which each call opens and closes again."""

    state: str | Path

    def ingest(
        self,
        table: Any,
        *,
        source: str = "",
        pending_key: str | Path | None = None,
        measure_key: str | Path | None = None,
        person_key: str | Path | None = None,
    ) -> Ingested:
        """How many rows of a frame were taken in, wait, or were kept out; known rows are not counted again.

        Parameters
        ----------
        table : pandas, polars or pyarrow table
        source : str
            Name of the source, where two may hold the very same rows.
        pending_key, measure_key, person_key : path, optional
            Key files that the state was begun with.
        """
        with StreamSession.open(
            self.state, pending_key=pending_key, measure_key=measure_key, person_key=person_key
        ) as session:
            rows = session.settings.batch_rows
            return session.ingest(cut_batches([to_arrow(table)[0]], rows, source=source))

    def publish(self, folder: str | Path, **options: Any) -> Release:
        """Release of a new epoch, written into a folder; options are those of `publish_stream`."""
        return publish_stream(self.state, folder, **options)

    def on_spark(self, frame: Any, folder: str | Path, *, checkpoint: str | Path, **options: Any) -> Any:
        """Query of Spark that goes on with the stream on a cluster, and publishes each batch in a folder of its own.

        Parameters
        ----------
        frame : streaming data frame of Spark
        folder : path
            For the folders of batches.
        checkpoint : path or URL
            Of Spark; on storage that all workers reach.
        **options
            Those of `sfumato.publish.stream.stream_on_spark`, such as ``once``, ``every`` and ``cells``.
        """
        return stream_on_spark(self.state, frame, folder, checkpoint=checkpoint, **options)

    def status(self) -> Status:
        """How the stream stands; the whole state is checked."""
        with StreamSession.open(self.state, write=False) as session:
            return session.status()

    def attack(self, releases: Sequence[str | Path], *, measure_key: str | Path | None = None) -> EpochAttack:
        """What published epochs give away to somebody who takes them from each other."""
        return attack_epochs(self.state, releases, measure_key=measure_key)

    def forget(self) -> Status:
        """How the stream stands once the rows kept for measuring are deleted, for good."""
        return forget_rows(self.state)


def stream(state: str | Path, first: Any = None, **options: Any) -> Stream:
    """A stream of records that are condensed as they arrive, and published by epochs [AY05, sec. 3].

    Parameters
    ----------
    state : path or URL
        A file, or ``postgresql://USER@HOST/NAME``; it stays with the owner.
    first : pandas, polars or pyarrow table, optional
        Begins a new stream with these records; without it the state is that of an earlier one.
    **options
        With ``first``: those of `sfumato.engines.stream.run.init_stream`, such as ``k``, ``level`` and ``schema``.
    """
    if first is not None:
        init_stream(state, first, **options)
    elif options:
        raise OptionError(f"{next(iter(options))!r} is for the beginning of a stream; give its first records too")
    return Stream(state)
