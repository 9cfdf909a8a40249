"""A joint run at one party: the protocol, the table, the certificate and the ledger, the same at every party."""

from __future__ import annotations

import dataclasses
import datetime
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato import __version__
from sfumato.documents import parse_json
from sfumato.errors import OptionError, SfumatoError
from sfumato.parties.channel import Channel, PartyError
from sfumato.parties.declared import RELEASED_CELLS, leaks_of
from sfumato.parties.ledger import Ledger, check, draw_ledger
from sfumato.parties.operations import Engine
from sfumato.parties.plan import JointResult
from sfumato.parties.session import Session
from sfumato.pipeline.agreed import Agreed, agree
from sfumato.pipeline.joint_certificate import METHOD, certify_joint, joint_facts
from sfumato.pipeline.joint_folder import write_together
from sfumato.pipeline.owned import OwnPart
from sfumato.privacy.certificate import Certificate
from sfumato.publish.release import Release
from sfumato.recipe import Recipe
from sfumato.tables.codec import Codec
from sfumato.tables.files import FileForm
from sfumato.tables.schema import Schema
from sfumato.tables.spreadsheet import FormulaCount

__all__ = ["JointRelease", "Meter", "reason_of", "run_joint", "write_release"]


@dataclass(frozen=True, eq=False, repr=False)
class JointRelease:
    """What one party has in the end; all but ``schema`` and ``folder`` is the same at all parties.

    Parameters
    ----------
    table : pyarrow.Table
    certificate : Certificate
    ledger : Ledger
        Who saw what.
    transcript : str
        The steps of the run, as JSON, one a line.
    result : JointResult
        Groups and coordinates behind the rows; stays with the owners.
    public : Schema
        Of the released table, with declared domains alone.
    schema : Schema
        Of the owner's own columns.
    folder : path or None
    """

    table: pa.Table
    certificate: Certificate
    ledger: Ledger
    transcript: str
    result: JointResult
    public: Schema
    schema: Schema
    folder: Path | None = None

    def __repr__(self) -> str:
        return f"JointRelease({self.certificate!r})"


def reason_of(error: BaseException) -> str:
    """Say why a party gives up, in words without data."""
    if isinstance(error, SfumatoError):
        return str(error)
    return "it was stopped" if isinstance(error, KeyboardInterrupt) else f"it met a {type(error).__name__}"


# ------------------------------------------------------------------------------------------------------------ the run


@dataclass(frozen=True)
class Meter:
    """Reads off what a party has sent so far."""

    channel: Channel
    engine: Engine | None

    def read(self) -> dict[str, int]:
        """Give bytes and messages, and the bytes of the engine."""
        engine = 0 if self.engine is None else self.engine.sent
        return {"bytes": self.channel.sent, "messages": self.channel.messages, "engine_bytes": engine}


def run_joint(part: OwnPart, session: Session, meter: Meter, engine: str, form: FileForm) -> JointRelease:
    """Agree, run the protocol, put the table together and certify it; the same at every party."""
    if session.names != part.plan.parties or session.rank != part.rank:
        raise OptionError(f"the plan names {len(part.plan.parties)} other parties than the network; start all again")
    leaks = leaks_of(part.plan)
    session.phase("agreeing")
    agreed = agree(part, session, form)
    if part.plan.partition == "vertical":
        result, table = _vertical(part, session, agreed)
    else:
        result, table = _horizontal(part, session)
    session.phase("certifying")
    created, traffic = _time(session), _traffic(session, meter)
    check(session.transcript, leaks)
    ledger = draw_ledger(session.transcript, leaks, traffic=traffic)
    computing = tuple(session.names[rank] for rank in session.computing)
    facts = joint_facts(part.plan, agreed, result, ledger, engine=engine, computing=computing)
    formulas = FormulaCount(table.column_names)
    formulas.add(table)
    certificate = certify_joint(
        part.plan, (*facts, *formulas.facts(quoted=False)), agreed, rows=table.num_rows, created=created
    )
    lines = session.transcript.to_json_lines()
    return JointRelease(table, certificate, ledger, lines, result, agreed.public, part.schema)


def _vertical(part: OwnPart, session: Session, agreed: Agreed) -> tuple[JointResult, pa.Table]:
    """Align the rows, run the protocol for owners of columns, and let each write its own cells."""
    from sfumato.parties.align import align_keys
    from sfumato.parties.vertical import sanitize_vertical

    codec, keys = part.codec, part.keys
    if codec is None or keys is None:
        raise ValueError("an owner of columns has a codec and keys")
    order = align_keys(session, keys)
    values = codec.encode(part.table).values[order]
    result = sanitize_vertical(session, part.plan, values, codec.layout)
    session.phase("writing cells")
    own = codec.decode(_own_coordinates(result, codec))
    columns: dict[str, pa.ChunkedArray] = {}
    for owner, name in enumerate(session.names):
        cells = session.tell(
            _to_ipc(own) if owner == session.rank else None,
            owner,
            RELEASED_CELLS.label,
            len(own) * agreed.columns[owner],
        )
        told = _from_ipc(cells, name, len(result.values))
        columns |= dict(zip(told.column_names, told.columns, strict=True))
    if tuple(columns) != agreed.public.names:
        raise PartyError("the told cells are not of the columns that were agreed on; start all parties again")
    return result, pa.table(columns)


def _own_coordinates(result: JointResult, codec: Codec) -> np.ndarray[Any, np.dtype[np.float64]]:
    joint = {(block.column, block.kind): block for block in result.layout}
    places = [joint[block.column, block.kind] for block in codec.layout]
    return np.concatenate([result.values[:, place.where] for place in places], axis=1)


def _horizontal(part: OwnPart, session: Session) -> tuple[JointResult, pa.Table]:
    """Agree on one encoding, run the protocol for owners of rows, and write the cells."""
    from sfumato.parties.codecs import joint_codec
    from sfumato.parties.horizontal import sanitize_horizontal

    session.phase("agreeing on scales")
    codec, n = joint_codec(session, part.table, part.schema, few=part.plan.few)
    result = sanitize_horizontal(session, part.plan, codec.encode(part.table).values, codec.layout, n)
    session.phase("writing cells")
    return result, codec.decode(result.values)


def _to_ipc(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return bytes(sink.getvalue())


def _from_ipc(payload: bytes, name: str, rows: int) -> pa.Table:
    try:
        table = pa.ipc.open_stream(payload).read_all()
        table.validate(full=True)
        table.column_names  # noqa: B018 (decodes the names)
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        raise PartyError(f"party {name!r} told cells that cannot be read; start all parties again") from None
    if table.num_rows != rows:
        raise PartyError(f"party {name!r} told {table.num_rows} rows and {rows} were due; start all parties again")
    return table


def _time(session: Session) -> str:
    """Give the time that stands on the certificate: the first party's."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    told = session.tell(now.encode() if session.rank == 0 else None, 0, "time", 1)
    try:
        return datetime.datetime.fromisoformat(told.decode("ascii")).isoformat(timespec="seconds")
    except ValueError:
        raise PartyError(f"party {session.names[0]!r} told no time; start all parties again") from None


def _traffic(session: Session, meter: Meter) -> dict[str, Mapping[str, int]]:
    """Tell each other what was sent up to here."""
    told: dict[str, Mapping[str, int]] = {}
    for owner, name in enumerate(session.names):
        own = meter.read()
        payload = json.dumps(own).encode() if owner == session.rank else None
        try:
            document = parse_json(session.tell(payload, owner, "traffic", len(own)))
            told[name] = {key: int(document[key]) for key in own}
        except (ValueError, KeyError, TypeError):
            raise PartyError(f"party {name!r} told no traffic that can be read; start all parties again") from None
    return told


def write_release(
    release: JointRelease, part: OwnPart, channel: Channel, folder: Path, form: FileForm, *, overwrite: bool
) -> JointRelease:
    """Write what this party has, together with all others."""
    recipe = Recipe(METHOD, release.certificate.parameters, part.schema, seed=part.plan.seed, sfumato=__version__)
    leaving = Release(release.table, release.public, release.certificate, None, recipe)
    certificate = write_together(
        leaving, release.transcript, release.ledger, part.schema, channel, folder, form, overwrite=overwrite
    )
    return dataclasses.replace(release, certificate=certificate, folder=folder)
