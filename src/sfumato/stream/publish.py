"""The release of an epoch of a stream, the attack on published epochs, and streams that a cluster goes on with.

A cluster writes a folder for each batch, which is published once whatever is taken in again.
"""

from __future__ import annotations

import dataclasses
import hashlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.assess.attacks.differencing import (
    DIFFERENCING,
    PublicationSummary,
    StreamPublications,
    changed_units,
    difference_findings,
)
from sfumato.assess.findings import Finding
from sfumato.core.documents import plain
from sfumato.core.errors import OptionError, shown
from sfumato.core.randomness import Randomness
from sfumato.options import PublishOptions
from sfumato.publish.attainable import PlannedRun, refuse_unattainable, without_control
from sfumato.publish.folder import check_folder, replacing_folder, write_text
from sfumato.publish.judge import asked_policy
from sfumato.publish.policy import Policy
from sfumato.publish.release import Release, Signing, form_named, publish, signer_of
from sfumato.publish.verify import certificate_beside, verify_release
from sfumato.stream.cellwise import (
    CellChange,
    KeptOut,
    StreamUpdate,
    carried_in,
    cells_of_groups,
    first_totals,
    following,
)
from sfumato.stream.epochs import run_epoch
from sfumato.stream.facts import EpochPublished
from sfumato.stream.pending import open_vault
from sfumato.stream.rare import USUAL
from sfumato.stream.screen import source_of_levels
from sfumato.stream.session import StreamSession
from sfumato.stream.settings import ClusterHandover, EpochLine, StreamSettings
from sfumato.stream.spark import PersonsSoFar, changes_of, start_stream
from sfumato.tables.facts import is_quoted
from sfumato.tables.files import FileForm, FileFormat, read_file
from sfumato.tables.frames import frame_of
from sfumato.tables.spreadsheet import unquote_formulas

__all__ = [
    "ClusterOptions",
    "EpochAttack",
    "EpochOptions",
    "attack_epochs",
    "attack_tables",
    "publish_stream",
    "stream_on_spark",
]


USUAL_CELLS = 16
"""Partitions of a cluster that groups never cross, by default."""


@dataclass(frozen=True, kw_only=True, repr=False)
class _EpochRelease:
    """How the release of an epoch is measured, judged, written and signed."""

    form: FileForm | str | None = None
    report: bool = True
    sign: Signing = None
    policy: Policy | str | Path | None = None
    despite_policy: bool = False

    def judged(self) -> PublishOptions:
        """The options of publication, with the policy read."""
        policy = asked_policy(self.policy, report=self.report, despite=self.despite_policy)
        return PublishOptions(report=self.report, policy=policy, despite_policy=self.despite_policy)


@dataclass(frozen=True, kw_only=True, repr=False)
class EpochOptions(_EpochRelease):
    """How an epoch is published.

    Parameters
    ----------
    form : FileForm or {"csv", "parquet", "arrow", "xlsx", "ods", "sqlite"}, optional
        By default that of the first records.
    report : bool
        Whether to measure; without the key of rows kept for it, what can be measured without raw rows.
    sign : path, Signer, Ed25519PrivateKey or bool, optional
        The private key to sign the certificate with, as in `sfumato.Release.save`.
    policy : Policy, str or path, optional
        What the release must meet: one that is built in, by its name, or a file.
    despite_policy : bool
        Release it all the same where it does not; the certificate says so.
    overwrite : bool
        Replace an earlier release of that name.
    measure_key : path, optional
        The key file of rows kept for measuring (``measure_rows`` of `StreamOptions`): with it every measure and attack
        is run on them.
    """

    overwrite: bool = False
    measure_key: str | Path | None = None


def publish_stream(state: str | Path, folder: str | Path, options: EpochOptions) -> Release:
    """Begin an epoch and write its release folder, for ``release/`` and ``owner/``; runs at the owner's.

    The epoch is on disk before the folder appears: if writing it fails, the next call writes the same epoch.

    Returns
    -------
    Release
        Its table is of the kind of frame that the stream was begun with.

    Raises
    ------
    PolicyNotMet
        If the policy is not met or the verdict is inconclusive. The epoch is kept; the next call uses the same rows.
    PrivacyRefusal
        If nothing has left before and no family has enough fresh records.
    """
    overwrite, measure_key = options.overwrite, options.measure_key
    check_folder(folder, overwrite=overwrite, inputs=(state, options.sign, measure_key, options.policy))
    publishing = options.judged()
    with StreamSession.open(state, measure_key=measure_key) as session:
        settings = session.settings
        measured = session.kept.active and measure_key is not None
        planned = PlannedRun(control=measured, how_to_control=_how_to_control(session))
        refuse_unattainable(publishing.policy, planned, despite=options.despite_policy)
        signer = signer_of(options.sign, dry_run=settings.seed is not None, folder=folder)
        release = publish(run_epoch(session), publishing).written(
            folder,
            form=_form_of(settings) if options.form is None else options.form,
            overwrite=overwrite,
            sign=signer or False,
            lost="the epoch is kept, publish again to write it",
        )
        session.delivered(release.certificate.table_sha256)
    return _as_frame(release, settings.frame)


def _form_of(settings: StreamSettings) -> FileForm:
    """How the first records were written."""
    return FileForm(FileFormat(settings.format), settings.delimiter)


def _as_frame(release: Release, kind: str) -> Release:
    """The release with its table in the kind of frame that the stream was begun with."""
    report = None if release.report is None else dataclasses.replace(release.report, frame=kind)
    return dataclasses.replace(release, table=frame_of(release.table, kind), report=report)


@dataclass(frozen=True)
class EpochPair:
    """Two epochs: ``changed`` of the ``rows`` of the later one, and ``arrived`` records of the sample between them.

    ``fresh`` is the fewest fresh records behind any group whose rows changed; None if none did.
    """

    first: int
    last: int
    rows: int
    changed: int
    fresh: int | None
    arrived: int


@dataclass(frozen=True)
class EpochAttack:
    """What the differences of published epochs give away."""

    pairs: tuple[EpochPair, ...]
    findings: tuple[Finding, ...]

    @property
    def succeeds(self) -> bool | None:
        """Whether arrivals are inferred significantly better than by the baseline; None if nothing could be tried."""
        tried = [finding for finding in self.findings if finding.value is not None]
        if not tried:
            return None
        return any((each.interval or (0.0, 1.0))[0] > (each.baseline or 0.0) for each in tried)

    def words(self) -> str:
        """One sentence."""
        return {
            None: "No record was attacked; give the key of the stored rows with --measure-key.",
            True: "The attack succeeds significantly more often than its baseline.",
            False: "The attack does not succeed significantly more often than its baseline.",
        }[self.succeeds]

    def to_json(self) -> Mapping[str, object]:
        """All of it as a JSON object."""
        return {
            "epochs": plain(self.pairs),
            "findings": [finding.to_json() for finding in self.findings],
            "succeeds": self.succeeds,
        }


def attack_epochs(
    state: str | Path, releases: Sequence[str | Path], *, measure_key: str | Path | None = None
) -> EpochAttack:
    """Take published epochs of a stream from each other.

    Parameters
    ----------
    state : path or URL
        Whose epochs they are.
    releases : sequence of path
        Two or more folders ``release``, in the order of their epochs.
    measure_key : path, optional
        The key file of rows kept for measuring; those of the sample who came between two epochs are attacked.

    Raises
    ------
    OptionError
        For a folder that does not verify, is no release of this stream, or is out of order.
    """
    if len(releases) < 2:
        raise OptionError("a difference is taken of two epochs or more; name their folders 'release', in order")
    with StreamSession.open(state, write=False, measure_key=measure_key) as session:
        tables: dict[int, pa.Table] = {}
        for release in map(Path, releases):
            epoch, table = _read(release, session.ledger, session.tables_delivered())
            if tables and epoch <= max(tables):
                raise OptionError(f"epoch {epoch} comes after epoch {max(tables)}; name releases in order, each once")
            tables[epoch] = table
        return attack_tables(session, tables)


def attack_tables(session: StreamSession, tables: Mapping[int, pa.Table]) -> EpochAttack:
    """Take tables that a stream has published from each other, by epoch."""
    epochs, codec = sorted(tables), session.codec
    seen = [PublicationSummary.of_rows(codec.encode(tables[epoch], unseen="mean").values) for epoch in epochs]
    sampled = session.measured_by()
    steps = list(pairwise(epochs))
    arrived = [np.empty((0, len(seen[0].total.T))) if sampled is None else sampled.between(*step) for step in steps]
    pairs = []
    for (first, last), before, after, people in zip(steps, seen[:-1], seen[1:], arrived, strict=True):
        fresh = [line.fresh for line in session.ledger if first < line.epoch <= last and line.renewed]
        changed = len(changed_units(after, before).count)
        pairs.append(EpochPair(first, last, len(after.count), changed, min(fresh, default=None), len(people)))
    if sampled is None:
        return EpochAttack(tuple(pairs), DIFFERENCING.not_run(_why_not(session)))
    watched = StreamPublications(layout=codec.layout, rows=tuple(seen), arrived=tuple(arrived))
    rng = Randomness(session.settings.seed).generator("attack")
    return EpochAttack(tuple(pairs), difference_findings(watched, rng))


def _how_to_control(session: StreamSession) -> str:
    """How a stream gets a control group, as the end of a sentence."""
    return "add --measure-key FILE" if session.kept.active else "begin a stream with --measure-rows"


def _why_not(session: StreamSession) -> str:
    if session.kept.active:
        return "the rows kept for measuring are encrypted; give their key with --measure-key"
    if session.kept.forgotten:
        return "the rows that were kept for measuring were deleted"
    return "a stream keeps no raw rows, unless it is begun with --measure-rows"


def _read(release: Path, ledger: Sequence[EpochLine], delivered: Mapping[int, str]) -> tuple[int, pa.Table]:
    """The epoch and the table of a release of this stream.

    Raises
    ------
    OptionError
    """
    name = shown(str(release))
    broken = [check for check in verify_release(release) if not check.holds and check.name != "made for release"]
    if broken:
        raise OptionError(f"the release {name} does not verify ({broken[0].name}); use it as it was published")
    place = next(path for path in sorted(release.iterdir()) if path.name.startswith("table."))
    certificate, _ = certificate_beside(place)
    epochs = [] if certificate is None else [fact for fact in certificate.facts if isinstance(fact, EpochPublished)]
    lines = [EpochLine(**dataclasses.asdict(fact)) for fact in epochs]
    own = bool(lines) and lines == list(ledger[: len(lines)])
    digest = None if certificate is None else certificate.table_sha256
    if not own or certificate is None or delivered.get(len(lines), digest) != digest:
        raise OptionError(f"the release {name} is not an epoch of this stream; name folders that it has published")
    table = read_file(place, encoding="utf-8", header_row=1)[0]
    return len(lines), unquote_formulas(table) if is_quoted(certificate.facts) else table


_BATCH, _CARRIED, _MARK = "batch-", "carried", "stream.mark"


@dataclass(frozen=True, kw_only=True, repr=False)
class ClusterOptions(_EpochRelease):
    """How a cluster goes on with a stream.

    Parameters
    ----------
    form, report, sign, policy, despite_policy
        As in `EpochOptions`. Where a policy is not met the query ends, and the batch is tried again at the next call.
    checkpoint : path or URL
        Of Spark, on storage that all workers reach; it holds statistics of groups and is the owner's.
    cells : int
        Cells at most that groups are kept apart in; each is the work of one task. Settled at the first call.
    pending_key, person_key : path, optional
        Key files that the state was begun with; they go to the workers.
    every : str, optional
        Time between two batches, such as ``"1 minute"``; by default the next begins when one has ended.
    once : bool
        Take in what is there, and end.
    """

    checkpoint: str | Path
    cells: int = USUAL_CELLS
    pending_key: str | Path | None = None
    person_key: str | Path | None = None
    every: str | None = None
    once: bool = False


def stream_on_spark(state: str | Path, frame: Any, folder: str | Path, options: ClusterOptions) -> Any:
    """Let a cluster go on with a stream that was begun here: each batch is taken in and published once.

    Groups lie in Spark's state store, and what a batch publishes in a folder of its own, ``batch-00000000`` and so on,
    which appears whole or not at all. After a crash call it again with the same folder and checkpoint.

    Parameters
    ----------
    state : path or URL
        Begun by `sfumato.stream.run.init_stream`; from now on nothing can be taken in or published there.
    frame : streaming data frame of Spark
        Without the records that the stream was begun with.
    folder : path
        For the folders of batches, at the driver.
    options : ClusterOptions

    Returns
    -------
    pyspark.sql.streaming.StreamingQuery
    """
    publishing, place = options.judged(), Path(folder).absolute()
    refuse_unattainable(publishing.policy, without_control(), despite=options.despite_policy)
    pending_key, person_key = options.pending_key, options.person_key
    with StreamSession.open(state, write=False, pending_key=pending_key, person_key=person_key) as session:
        _check_for_cluster(session, pending_key, person_key)
        signer = signer_of(options.sign, dry_run=session.settings.seed is not None, folder=folder)
        over = session.over
    if over is None:
        with StreamSession.open(state) as session:
            over = _hand_over(session, place, options.cells)
    _check_same(place, over)
    with StreamSession.open(state, write=False, pending_key=pending_key, person_key=person_key) as session:
        settings = session.settings
        made = cells_of_groups(session, over.cells)
        first = _first_on_cluster(session, over)
        persons = None
        if settings.person is not None and session.persons.vault is not None:
            known = {bytes.fromhex(name): rows for name, rows in session.persons.rows.items()}
            persons = PersonsSoFar(settings.person, settings.person_rows, session.persons.vault, known)
        vault = open_vault(settings, pending_key)
    form = _form_of(settings) if options.form is None else form_named(options.form)
    publishing = dataclasses.replace(publishing, form=form, sign=signer)

    def each(report_rows: pa.Table, batch: int, query: str) -> None:
        changes, out = changes_of(report_rows, made)
        if changes or out:
            write_batch(place, first, changes, out, batch=batch, query=query, publishing=publishing)

    return start_stream(
        frame,
        made,
        each,
        checkpoint=str(options.checkpoint),
        vault=vault,
        persons=persons,
        every=options.every,
        once=options.once,
    )


def _check_for_cluster(session: StreamSession, pending_key: object, person_key: object) -> None:
    """Refuse what a cluster cannot go on with, before it is given away."""
    settings, schema = session.settings, session.codec.schema
    if settings.strata is not None:
        raise OptionError(
            "a cluster does not keep strata apart; begin the stream without --strata, or go on with it here"
        )
    same_for_all = isinstance(source_of_levels(settings.level, schema), int | None)
    if not same_for_all and settings.pending != "encrypted":
        raise OptionError(
            "levels differ, so that records may have to wait, and Spark keeps its state on disk; begin the stream with "
            "--pending encrypted and a key"
        )
    if settings.pending == "encrypted" and pending_key is None:
        raise OptionError("records that wait are encrypted in this stream; give the key with pending_key")
    if settings.person is not None and person_key is None:
        raise OptionError("persons of this stream are known under a key; give it with person_key")
    if settings.rare == USUAL and schema.target is not None:
        raise OptionError(
            "a rare class of the target would stop the stream; begin it with --rare pool, lift or keep to go on on a "
            "cluster"
        )


def _hand_over(session: StreamSession, folder: Path, cells: int) -> ClusterHandover:
    """Hand a stream over to a cluster, which publishes it in one folder and no other."""
    if folder.exists() and any(folder.glob(f"{_BATCH}*")):
        raise OptionError(f"the folder {str(folder)!r} holds batches of another stream; choose another")
    over = ClusterHandover(cells, secrets.token_hex(16))
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / _MARK, over.mark + "\n", mode=0o600)
    session.hand_over(over)
    return over


def _first_on_cluster(session: StreamSession, over: ClusterHandover) -> StreamUpdate:
    """How a stream stands before its first batch; its cut-offs stay those of the records before, until it ends."""
    root = hashlib.blake2b(over.mark.encode(), digest_size=32).digest()
    rng = Randomness(session.settings.seed, root).generator("tails on the cluster")
    codec = session.tails.release(session.codec, session.settings.decimals, rng)
    return StreamUpdate(session.settings, codec, session.tails, first_totals(session))


def _check_same(folder: Path, over: ClusterHandover) -> None:
    mark = folder / _MARK
    if not mark.is_file() or mark.read_text("utf-8").strip() != over.mark:
        raise OptionError(
            "a cluster continues this stream in another folder, and the same records must not leave from two; give "
            "that folder, or begin the stream anew"
        )


def write_batch(
    folder: Path,
    first: StreamUpdate,
    changes: Mapping[int, CellChange],
    out: Sequence[KeptOut],
    *,
    batch: int,
    query: str,
    publishing: PublishOptions,
) -> None:
    """Write the folder of a batch, unless it is there: a batch that is taken in again is not published again.

    Format and signing key of ``publishing`` are a `FileForm` and a `Signer` or None.

    Raises
    ------
    OptionError
        If the folder is of another query, so that the same numbers would stand for other rows.
    """
    place = folder / f"{_BATCH}{batch:08d}"
    last = last_batch(folder, first, before=batch)
    if last.totals.query not in ("", query) or (place.exists() and carried(place, first).totals.query != query):
        raise OptionError(
            "the folder holds batches of another checkpoint, which may be of the same records; give the checkpoint "
            "that it was written with, or begin the stream anew with another folder"
        )
    if place.exists():
        return
    after = following(last, changes, out, batch=batch, query=query)
    with replacing_folder(place) as work:
        if after.renewed:
            publish(run_epoch(after), publishing).write_into(work, publishing.form, publishing.sign)
        else:
            (work / "owner").mkdir(mode=0o700)
        after.write(work / "owner" / _CARRIED)


def last_batch(folder: Path, first: StreamUpdate, *, before: int | None = None) -> StreamUpdate:
    """How the stream stands after the last batch whose folder is there, or after the last before another."""
    names = sorted(each.name for each in folder.glob(f"{_BATCH}*") if each.is_dir())
    names = [name for name in names if before is None or name < f"{_BATCH}{before:08d}"]
    return carried(folder / names[-1], first) if names else first


def carried(place: Path, first: StreamUpdate) -> StreamUpdate:
    """How the stream stood after the batch of a folder."""
    return carried_in(place / "owner" / _CARRIED, first)
