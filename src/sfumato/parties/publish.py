"""A joint run at one party: the protocol, its facts, and the release, the same folder at every party or at none."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.assess.report import Report, Ruling
from sfumato.certificate.signature import Signer
from sfumato.core.documents import MOST_BYTES, Unparsable, from_json, write_json
from sfumato.core.errors import OptionError, PrivacyRefusal, SfumatoError
from sfumato.core.facts import ColumnsDropped, Fact, NoMeasurement, RandomnessSource, joined
from sfumato.core.randomness import Randomness
from sfumato.core.records import BlockKind, Layout, Records
from sfumato.engines.outcome import Comparison, Outcome, Recipe, bounds_kept
from sfumato.methods.condense import ALGORITHMS, Condensation
from sfumato.methods.condense.synthesize import group_facts
from sfumato.methods.perturb import number_blocks
from sfumato.methods.perturb.laplace_pca import LaplacePCA, most_components, state_facts
from sfumato.options import PublishOptions, RunOptions
from sfumato.parties.arithmetic import Engine
from sfumato.parties.channel import PartyChannel, PartyError
from sfumato.parties.codecs import count_cells, joint_codec
from sfumato.parties.facts import Joint, KeysMatched, Opened, PartJudged
from sfumato.parties.folder import written_together
from sfumato.parties.groupwise import group_sizes, tail_persons
from sfumato.parties.inference import SeenRelease
from sfumato.parties.intersection import KeyCounts, intersect_keys
from sfumato.parties.ledger import Leak, Ledger, check, draw_ledger
from sfumato.parties.part import Agreement, OwnPart, agree, encode_own, own_part
from sfumato.parties.plan import RELEASED_CELLS, VERDICTS, JointPlan, JointResult, leaks_of
from sfumato.parties.rounds import SeenRounds
from sfumato.parties.row_tails import joint_tails
from sfumato.parties.session import Session, computing_parties, plain_sessions, run_in_threads
from sfumato.parties.vertical import align_keys
from sfumato.publish.attainable import PlannedRun, refuse_unattainable
from sfumato.publish.folder import check_folder
from sfumato.publish.judge import PolicyNotMet, asked_policy
from sfumato.publish.release import Release, Signing, form_named, publish, signer_of
from sfumato.tables.codec import Codec
from sfumato.tables.facts import TailsCoded
from sfumato.tables.files import FileForm, FileFormat
from sfumato.tables.schema import Schema
from sfumato.tables.tails import NUMERIC
from sfumato.version import __version__

__all__ = [
    "JointDetails",
    "OwnPart",
    "joint_in_one_process",
    "noised_columns",
    "own_part",
    "planned",
    "reason_of",
    "release_together",
    "run_party",
]


def joint_facts(
    plan: JointPlan, agreed: Agreement, result: JointResult, *, engine: str, computing: tuple[str, ...]
) -> tuple[Fact, ...]:
    """Facts of a joint run; the parties ``computing`` held shares, or saw everything if the engine is "plain".

    Its ledger and how the owners judged the table are stated once all have measured their parts.
    """
    randomness = Randomness(plan.seed)
    components = most_components(result.layout)
    if result.noised > components:
        raise PrivacyRefusal(
            f"a group varies in {result.noised} components where {components} are possible; nothing is released. "
            "Please report this as a defect"
        )
    levels = np.full(len(result.labels), result.level, dtype=np.int64)
    nothing = np.zeros(len(result.labels), dtype=np.int64)
    released = Records(result.values, result.layout, nothing, nothing.copy())
    vertical = plan.partition == "vertical"
    joint = Joint(
        partition=plan.partition,
        parties=plan.parties,
        computing=computing,
        engine=engine,
        centres="" if vertical else plan.centres,
        noise=plan.noise if vertical else "",
        rounds=result.rounds,
        bare=result.bare,
        signers=agreed.signers if any(agreed.signers) else (),
    )
    return (
        RandomnessSource(randomness.mode.value, randomness.algorithm),
        ColumnsDropped(agreed.dropped, (), agreed.empty),
        *_method_facts(plan.mechanism, released, levels, result, components),
        *bounds_kept(agreed.public, noised_columns(plan, result.layout)),
        *_tails_of(agreed, result),
        joint,
        *_matched_keys(result),
    )


def _matched_keys(result: JointResult) -> tuple[KeysMatched, ...]:
    """State with which keys owners of columns went on, where these are not all."""
    if not result.key_counts:
        return ()
    counts = result.key_counts
    keys, missing = tuple(each.keys for each in counts), tuple(each.missing for each in counts)
    return (KeysMatched(result.common, keys, missing, tuple(each.repeated for each in counts)),)


def _tails_of(agreed: Agreement, result: JointResult) -> tuple[TailsCoded, ...]:
    """State that the tails of all numbers and dates are coded, by each owner of columns or by all owners of rows."""
    numbers = sum(field.kind in NUMERIC for field in agreed.public.encoded)
    return (TailsCoded("code", tail_persons(result.level), numbers),) if numbers else ()


def _method_facts(
    mechanism: LaplacePCA | Condensation,
    released: Records,
    levels: np.ndarray[Any, np.dtype[np.int64]],
    result: JointResult,
    components: int,
) -> tuple[Fact, ...]:
    if isinstance(mechanism, Condensation):
        return group_facts(ALGORITHMS[mechanism.grouping], released, result.sizes, levels, result.labels, len(levels))
    return state_facts(mechanism, released, levels, result.labels, components)


def noised_columns(plan: JointPlan, layout: Layout) -> frozenset[str]:
    """Columns that get noise, which bounds that were only observed do not cut."""
    if plan.condenses:
        return frozenset()
    return frozenset(block.column for block in number_blocks(layout))


def _openings(ledger: Ledger) -> list[Opened]:
    """Lines of the ledger that were seen in the clear, those of several owners as one."""
    lines: dict[tuple[str, tuple[str, ...]], Opened] = {}
    for row in ledger.openings:
        before = lines.get((row.label, row.to))
        numbers, times = (0, 0) if before is None else (before.numbers, before.times)
        lines[row.label, row.to] = Opened(
            row.label, row.what, row.action, row.to, numbers + row.numbers, times + row.times
        )
    return list(lines.values())


@dataclass(frozen=True, eq=False, repr=False)
class JointDetails(SeenRelease):
    """The ledger, the transcript as JSON lines, and what this owner has seen."""

    ledger: Ledger | None = None
    transcript: str = ""


def reason_of(error: BaseException) -> str:
    """Reason why a party gives up, without data."""
    if isinstance(error, SfumatoError):
        return str(error)
    return "it was stopped" if isinstance(error, KeyboardInterrupt) else f"it met a {type(error).__name__}"


# ------------------------------------------------------------------------------------------------------------ the run


@dataclass(frozen=True, eq=False, repr=False)
class _JointRun:
    """A run whose table all have, before its release: the ledger is still open for what the owners tell of it."""

    session: Session
    outcome: Outcome
    workings: JointDetails
    traffic: Mapping[str, Mapping[str, int]]
    leaks: Mapping[str, Leak]

    def closed(self, judgements: Sequence[_Judgement]) -> Outcome:
        """Outcome with the ledger and how all owners judged, once all are seen to have seen the same."""
        session = self.session
        session.compare_views()
        check(session.transcript, self.leaks)
        ledger = draw_ledger(session.transcript, self.leaks, traffic=self.traffic)
        lines = session.transcript.to_json_lines()
        return dataclasses.replace(
            self.outcome,
            facts=(*self.outcome.facts, *_openings(ledger), *_judged(session.names, judgements)),
            workings=dataclasses.replace(self.workings, ledger=ledger, transcript=lines),
            texts={"transcript.jsonl": lines, "ledger.json": ledger.to_json(), "ledger.txt": ledger.to_table() + "\n"},
        )


@dataclass(frozen=True)
class _Judgement:
    """What an owner tells the others of its verdict: nothing of a policy that it did not name."""

    measured: bool
    policy: str = ""
    outcome: str = ""
    refuses: bool = False

    @classmethod
    def of(cls, report: Report | None, options: PublishOptions) -> _Judgement:
        """Judgement of a report."""
        if report is None or report.verdict is None or options.policy is None:
            return cls(report is not None)
        verdict = report.verdict
        return cls(True, verdict.title, verdict.outcome.value, verdict.refuses and not options.despite_policy)


def _judged(names: Sequence[str], judgements: Sequence[_Judgement]) -> tuple[Fact, ...]:
    """What the certificate says of owners who measured nothing, or release despite their policy."""
    if not any(each.measured for each in judgements):
        return (NoMeasurement(),)
    facts = []
    for name, each in zip(names, judgements, strict=True):
        if not each.measured:
            facts.append(PartJudged(name, "not-measured"))
        elif each.outcome not in ("", Ruling.MEETS.value) and not each.refuses:
            facts.append(PartJudged(name, each.outcome, each.policy))
    return tuple(facts)


def release_together(
    part: OwnPart,
    session: Session,
    engine: str,
    form: FileForm,
    options: PublishOptions | None = None,
    *,
    signer: Signer | None = None,
) -> Release:
    """Run the protocol, measure this owner's part, and certify the table if no owner's policy is against it.

    Raises
    ------
    PolicyNotMet
        At every owner that measured its part, if the policy of any is not met; it holds this owner's report.
    """
    options = options or PublishOptions()
    run = _run_joint(part, session, engine, form, signer)
    judgements: list[_Judgement] = []

    def agree_on_release(report: Report | None) -> Outcome:
        session.phase("verdicts")
        judgements.extend(_swap_judgements(session, _Judgement.of(report, options)))
        return run.closed(judgements)

    try:
        release = publish(run.outcome, options, agree=agree_on_release)
        against = [name for name, each in zip(session.names, judgements, strict=True) if each.refuses]
        if against:
            _refuse_for_others(release, against)
    except PrivacyRefusal:
        if any(each.refuses for each in judgements):  # all have heard so, and keep their reports
            session.end()
        raise
    return release


def _swap_judgements(session: Session, own: _Judgement) -> list[_Judgement]:
    found = []
    for owner, name in enumerate(session.names):
        payload = write_json(own).encode() if owner == session.rank else None
        sent = session.broadcast(payload, owner, VERDICTS.label, 1)
        try:
            each = from_json(_Judgement, sent, most=MOST_BYTES)
        except Unparsable:
            raise PartyError(f"party {name!r} sent no verdict that can be read; start all parties again") from None
        if not each.measured and (each.policy or each.outcome):
            raise PartyError(f"party {name!r} judged a part that it did not measure; start all parties again")
        found.append(each)
    return found


def _refuse_for_others(release: Release, against: Sequence[str]) -> None:
    """Refuse a release that does not meet another owner's policy."""
    named = joined([repr(name) for name in against])
    words = f"the part of {named} does not meet the policy there, so nothing was released by any owner"
    verdict = None if release.report is None else release.report.verdict
    if verdict is None:
        raise PrivacyRefusal(words)
    raise PolicyNotMet(verdict, words, release)


def _run_joint(part: OwnPart, session: Session, engine: str, form: FileForm, signer: Signer | None) -> _JointRun:
    """Agreement, protocol and table, the same at every party but for its own schema."""
    if session.names != part.plan.parties or session.rank != part.rank:
        raise OptionError(f"the plan names {len(part.plan.parties)} other parties than the network; start all again")
    begin = perf_counter()
    session.phase("agreeing")
    agreed = agree(part, session, form, signer="" if signer is None else signer.fingerprint)
    if part.plan.partition == "vertical":
        result, table, comparison = _vertical(part, session, agreed)
    else:
        result, table, comparison = _horizontal(part, session)
    seconds = perf_counter() - begin
    session.phase("measuring")
    created, traffic = _time(session), _traffic(session)
    computing = tuple(session.names[rank] for rank in session.computing)
    parameters = {key: value for key, value in part.plan.document().items() if key != "seed"}
    workings = _workings(part, result)
    outcome = Outcome(
        recipe=Recipe(part.plan.method, parameters, part.schema, RunOptions(seed=part.plan.seed), __version__),
        table=table,
        rows_in=table.num_rows,
        rows_out=table.num_rows,
        schema=agreed.public,
        facts=joint_facts(part.plan, agreed, result, engine=engine, computing=computing),
        comparison=comparison,
        workings=workings,
        created=created,
        seconds=seconds,
        together=True,
        sent=sum(sent["bytes"] + sent["engine_bytes"] for sent in traffic.values()),
    )
    return _JointRun(session, outcome, workings, traffic, leaks_of(part.plan))


def _workings(part: OwnPart, result: JointResult) -> JointDetails:
    seen = result.seen or SeenRounds()
    return JointDetails(
        sizes=result.sizes,
        highest=np.full(len(result.sizes), result.level, dtype=np.int64),
        own=seen.own,
        labels_seen=seen.labels_seen,
        counts=seen.counts,
        centres=seen.centres,
        owners=seen.owners,
        rank=part.rank,
        parties=part.plan.parties,
        noise=part.plan.noise if part.plan.partition == "vertical" else "",
        target=part.plan.target,
        result=result,
    )


def _vertical(part: OwnPart, session: Session, agreed: Agreement) -> tuple[JointResult, pa.Table, Comparison]:
    """Owners of columns: align the rows, run the protocol, and exchange the released cells of each owner."""
    from sfumato.parties.vertical import sanitize_vertical

    codec, keys, tails, outside = part.codec, part.keys, part.tails, part.outside
    if codec is None or keys is None or part.coded is None:
        raise ValueError("an owner of columns has a codec and keys")
    counts: list[KeyCounts] = []
    if part.plan.common is None:
        order = align_keys(session, keys)
    else:
        order, counts = intersect_keys(session, keys, part.plan.common)
    common = len(order)
    if part.plan.holdout is not None:  # the order is that of keyed hashes: its first records are anybody
        held = max(1, round(part.plan.holdout * len(order)))
        order, outside = order[held:], part.table.take(pa.array(order[:held]))
    mine, coded = part.table.take(pa.array(order)), part.coded.take(pa.array(order))
    if part.plan.holdout is not None or counts:
        codec, tails, coded = encode_own(part.plan, part.rank, mine, part.schema)
    encoded = codec.encode(coded)  # the rows that the codec was made on: others are not standardized by it
    result = sanitize_vertical(session, part.plan, encoded.values, codec.layout)
    if counts:
        result = dataclasses.replace(result, common=common, key_counts=tuple(counts))
    session.phase("writing cells")
    free = noised_columns(part.plan, codec.layout) - tails.columns.keys()
    own = codec.decode(_own_coordinates(result, codec), unbounded=free)
    columns: dict[str, pa.ChunkedArray] = {}
    for owner, name in enumerate(session.names):
        cells = session.broadcast(
            _to_ipc(own) if owner == session.rank else None,
            owner,
            RELEASED_CELLS.label,
            len(own) * agreed.columns[owner],
        )
        owner_cells = _from_ipc(cells, name, len(result.values))
        columns |= dict(zip(owner_cells.column_names, owner_cells.columns, strict=True))
    if tuple(columns) != agreed.public.names:
        raise PartyError("the cells sent are not of the agreed columns; start all parties again")
    table = pa.table(columns)
    names = [column.field.name for column in codec.columns]
    note = f"Measured on {len(names)} columns, those of this owner; the other owners measure theirs."
    records = codec.encode(mine, unseen="mean")
    outside = None if outside is None else outside.select(names)
    return result, table, Comparison(mine.select(names), table.select(names), codec, records, outside, notes=(note,))


def _own_coordinates(result: JointResult, codec: Codec) -> np.ndarray[Any, np.dtype[np.float64]]:
    joint = {(block.column, block.kind): block for block in result.layout}
    parts = []
    for block in codec.layout:
        part = result.values[:, joint[block.column, block.kind].where]
        if block.kind is BlockKind.CODE:  # all parties have places, and this one knows whose
            part = block.coordinates(np.rint(part).astype(np.int64))
        parts.append(part)
    return np.concatenate(parts, axis=1)


def _horizontal(part: OwnPart, session: Session) -> tuple[JointResult, pa.Table, Comparison]:
    """Owners of rows: agree on one encoding, run the protocol, and write the cells."""
    from sfumato.parties.horizontal import sanitize_horizontal

    counts = count_cells(session, part.table, part.schema, few=part.plan.few)
    level, _ = group_sizes(part.plan.mechanism, counts.rows)
    tails = joint_tails(session, part.table, part.schema, counts, tail_persons(level))
    coded = tails.code(part.table, np.zeros(part.table.num_rows))
    codec = joint_codec(session, coded, part.schema, counts)
    result = sanitize_horizontal(session, part.plan, codec.encode(coded).values, codec.layout, counts.rows)
    session.phase("writing cells")
    table = codec.decode(result.values, unbounded=noised_columns(part.plan, codec.layout))
    names = [column.field.name for column in codec.columns]
    mine, outside = part.table.select(names), None if part.outside is None else part.outside.select(names)
    note = f"Measured with {len(mine)} of the {counts.rows} rows, those of this owner; the other owners measure theirs."
    return result, table, Comparison(mine, table, codec, codec.encode(mine), outside, notes=(note,))


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
        raise PartyError(f"party {name!r} sent cells that cannot be read; start all parties again") from None
    if table.num_rows != rows:
        raise PartyError(f"party {name!r} sent {table.num_rows} rows and {rows} were expected; start all parties again")
    return table


def _time(session: Session) -> str:
    """Time on the certificate, from the first party's clock."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    payload = session.broadcast(now.encode() if session.rank == 0 else None, 0, "time", 1)
    try:
        return datetime.datetime.fromisoformat(payload.decode("ascii")).isoformat(timespec="seconds")
    except ValueError:
        raise PartyError(f"party {session.names[0]!r} sent no time; start all parties again") from None


def _traffic(session: Session) -> dict[str, Mapping[str, int]]:
    """Traffic of all parties so far."""
    entries: dict[str, Mapping[str, int]] = {}
    for owner, name in enumerate(session.names):
        own = session.traffic
        payload = write_json(own).encode() if owner == session.rank else None
        try:
            entries[name] = from_json(
                dict[str, int], session.broadcast(payload, owner, "traffic", len(own)), most=MOST_BYTES
            )
        except Unparsable:
            entries[name] = {}
        if entries[name].keys() != own.keys():
            raise PartyError(f"party {name!r} sent no traffic that can be read; start all parties again")
    return entries


def planned(plan: JointPlan, *, control: bool) -> PlannedRun:
    """What a policy needs to know of a joint run before it starts."""
    return PlannedRun(
        control=control or plan.holdout is not None,
        how_to_control="add --holdout 0.3 at every owner",
        mechanism=plan.mechanism,
        k_option="k in [method] of every owner's settings",
    )


def run_party(
    part: OwnPart,
    channel: PartyChannel,
    engine: Engine | None,
    folder: str | Path,
    publishing: PublishOptions | None = None,
) -> Release:
    """Take part in a joint run, and write the release once every party has it.

    Parameters
    ----------
    part : OwnPart
        Of `own_part`, which needs no other party.
    channel : PartyChannel
        To all other parties.
    engine : Engine or None
        None at a party that does not compute.
    folder : path
        Gets ``release/`` and ``owner/``, whole or not at all.
    publishing : PublishOptions, optional
        The file format is the same at all parties. Report and signature are this owner's own; if the report does not
        meet the policy, nothing is released anywhere, unless this owner releases despite it.

    Raises
    ------
    SfumatoError
        All other parties are notified, and nothing is written anywhere.
    """
    publishing, plan = publishing or PublishOptions(), part.plan
    form = form_named(publishing.form or FileFormat.CSV.value)
    try:
        check_folder(folder, overwrite=publishing.overwrite)
        signer = signer_of(publishing.sign, dry_run=plan.seed is not None, folder=folder)
    except BaseException:
        channel.abort("its output folder or signing key cannot be used")  # where they lie is nobody's business
        raise
    try:
        computing = computing_parties(plan.engine, len(plan.parties))
        session = Session(channel, engine, computing, leaks_of(plan), seed=plan.seed)
        despite = publishing.despite_policy
        policy = asked_policy(publishing.policy, report=publishing.report, despite=despite)
        refuse_unattainable(policy, planned(plan, control=part.outside is not None), despite=despite)
        measuring = dataclasses.replace(publishing, policy=policy, form=None, sign=None, overwrite=False)
        release = release_together(part, session, plan.engine, form, measuring, signer=signer)
        return written_together(release, channel, folder, form, overwrite=publishing.overwrite, sign=signer)
    except BaseException as error:
        channel.abort(reason_of(error))
        raise


def joint_in_one_process(
    tables: Sequence[Any],
    plan: JointPlan,
    *,
    schemas: Sequence[Schema | None] | None = None,
    key: str | None = None,
    folders: Sequence[str | Path] | None = None,
    form: FileForm | str = FileFormat.CSV.value,
    report: bool = True,
    sign: Signing = None,
) -> list[Release]:
    """Play all parties of a joint run in one process, a thread a party; it protects from readers alone.

    For trying a plan out, and for measuring it. The certificate says that the owners hid nothing from this process.

    Parameters
    ----------
    tables : sequence of tables
        One for each party, in the order of the plan.
    plan : JointPlan
    schemas : sequence of Schema, optional
        One for each party; of a horizontal partition all alike.
    key : str, optional
        Of a vertical partition: the column that says which rows belong together.
    folders : sequence of paths, optional
        Folder of each party's release; without it nothing is written.
    form : FileForm or {"csv", "parquet", "arrow", "xlsx", "ods", "sqlite"}
    report : bool
        Whether each party measures its own part.
    sign : path, Signer, Ed25519PrivateKey or bool, optional
        The private key to sign all certificates with, as in `sfumato.Release.save`.

    Returns
    -------
    list of Release
        What each party has.
    """
    form = form_named(form)
    ranks = range(len(plan.parties))
    if len(tables) != len(ranks) or (schemas is not None and len(schemas) != len(ranks)):
        raise OptionError(f"the plan has {len(ranks)} parties; provide a table and a schema for each")
    parts = [own_part(plan, rank, tables[rank], schemas[rank] if schemas else None, key=key) for rank in ranks]
    sessions = plain_sessions(plan.parties, leaks_of(plan), engine=plan.engine, seed=plan.seed, keep=False)

    def play(rank: int) -> Release:
        session, channel, _ = sessions[rank]
        folder = None if folders is None else folders[rank]
        signer = None if folder is None else signer_of(sign, dry_run=plan.seed is not None, folder=folder)
        options = PublishOptions(report=report)
        release = release_together(parts[rank], session, "plain", form, options, signer=signer)
        if folder is None:
            return release
        return written_together(release, channel, folder, form, sign=signer)

    return run_in_threads(play, sessions)
