"""The release of an epoch of a stream, and the attack on published epochs: their differences."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.assess.attacks.differencing import DIFFERENCING, Shown, Watched, changed_units, difference_findings
from sfumato.assess.findings import Finding
from sfumato.core.documents import plain
from sfumato.core.errors import OptionError, shown
from sfumato.core.facts import EpochPublished, is_quoted
from sfumato.core.randomness import Randomness
from sfumato.engines.epoch import run_epoch
from sfumato.engines.stream.session import StreamSession
from sfumato.engines.stream.settings import EpochLine
from sfumato.publish.folder import check_folder
from sfumato.publish.judge import asked_policy
from sfumato.publish.policy import Policy
from sfumato.publish.release import Release, publish, signer_of
from sfumato.publish.signature import Signer
from sfumato.publish.verify import certificate_beside, verify_release
from sfumato.tables.files import FileForm, FileFormat, read_file
from sfumato.tables.spreadsheet import unquote_formulas

__all__ = ["EpochAttack", "EpochPair", "attack_epochs", "attack_tables", "publish_stream"]


def publish_stream(
    state: str | Path,
    folder: str | Path,
    *,
    form: FileForm | str | None = None,
    report: bool = True,
    overwrite: bool = False,
    sign: str | Path | Signer | None = None,
    measure_key: str | Path | None = None,
    policy: Policy | str | Path | None = None,
    despite_policy: bool = False,
) -> Release:
    """Begin an epoch and write its release folder; runs at the owner's.

    The epoch is on disk before the folder appears: if writing it fails, the next call writes the same epoch.

    Parameters
    ----------
    state : path or URL
    folder : path
        For ``release/`` and ``owner/``.
    form : FileForm or {"csv", "parquet", "arrow", "xlsx", "ods", "sqlite"}, optional
        By default that of the first records.
    report : bool
        Whether to measure; without the key of rows kept for it, what can be measured without raw rows.
    overwrite : bool
        Replace an earlier release of that name.
    sign : path or Signer, optional
        The private key to sign the certificate with. A rehearsal is not signed.
    measure_key : path, optional
        The key file of rows kept for measuring (`measure_rows` of `engines.stream.run.init_stream`): with it every
        measure and attack is run on them.
    policy : Policy, str or path, optional
        What the release must meet: one that is built in, by its name, or a file.
    despite_policy : bool
        Release it all the same where it does not; the certificate says so.

    Raises
    ------
    PolicyNotMet
        Where the policy is not met, or it cannot be told. The epoch is kept, and the next call is about the same rows.
    PrivacyRefusal
        Where nothing has left before and no family has enough fresh records.
    """
    check_folder(folder, overwrite=overwrite)
    asked = asked_policy(policy, report=report, despite=despite_policy)
    with StreamSession.open(state, measure_key=measure_key) as session:
        settings = session.settings
        signer = signer_of(sign, rehearsal=settings.seed is not None)
        usual = FileForm(FileFormat(settings.format), settings.delimiter)
        made = publish(run_epoch(session), report=report, policy=asked, despite_policy=despite_policy)
        release = made.written(
            folder,
            form=usual if form is None else form,
            overwrite=overwrite,
            sign=signer,
            lost="the epoch is kept, publish again to write it",
        )
        session.delivered(release.certificate.table_sha256)
    return release


@dataclass(frozen=True)
class EpochPair:
    """Two epochs: of the ``rows`` of the later one so many ``changed``, and so many of the sample ``arrived`` between.

    ``fresh`` is the fewest fresh records behind any group whose rows changed; None where none did.
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
        """Whether more is told of arrivals than guessing tells, beyond chance; None where nothing could be tried."""
        tried = [finding for finding in self.findings if finding.value is not None]
        if not tried:
            return None
        return any((each.interval or (0.0, 1.0))[0] > (each.baseline or 0.0) for each in tried)

    def words(self) -> str:
        """One sentence."""
        return {
            None: "Nobody was attacked; give the key of rows kept for measuring with --measure-key.",
            True: "The attack succeeds: the differences tell more of arrivals than guessing does.",
            False: "The attack gains nothing that guessing does not.",
        }[self.succeeds]

    def to_json(self) -> dict[str, Any]:
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
    seen = [Shown.of_rows(codec.encode(tables[epoch], unseen="mean").values) for epoch in epochs]
    sampled = session.measured_by()
    steps = list(pairwise(epochs))
    arrived = [np.empty((0, len(seen[0].total.T))) if sampled is None else sampled.between(*step) for step in steps]
    pairs = tuple(
        EpochPair(
            first,
            last,
            len(after.count),
            len(changed_units(after, before).count),
            _fewest(session.ledger, first, last),
            len(people),
        )
        for (first, last), before, after, people in zip(steps, seen[:-1], seen[1:], arrived, strict=True)
    )
    if sampled is None:
        return EpochAttack(pairs, DIFFERENCING.not_run(_why_not(session)))
    watched = Watched(layout=codec.layout, rows=tuple(seen), arrived=tuple(arrived))
    rng = Randomness(session.settings.seed).generator("attack")
    return EpochAttack(pairs, difference_findings(watched, rng))


def _fewest(ledger: Sequence[EpochLine], first: int, last: int) -> int | None:
    return min((line.fresh for line in ledger if first < line.epoch <= last and line.renewed), default=None)


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
        raise OptionError(f"the release {name} does not verify ({broken[0].name}); take it as it was published")
    place = next(path for path in sorted(release.iterdir()) if path.name.startswith("table."))
    certificate, _ = certificate_beside(place)
    told = [] if certificate is None else [fact for fact in certificate.facts if isinstance(fact, EpochPublished)]
    lines = [EpochLine(**dataclasses.asdict(fact)) for fact in told]
    own = bool(lines) and lines == list(ledger[: len(lines)])
    if (
        certificate is None
        or not own
        or delivered.get(len(lines), certificate.table_sha256) != certificate.table_sha256
    ):
        raise OptionError(f"the release {name} is not an epoch of this stream; name folders that it has published")
    table = read_file(place)[0]
    return len(lines), unquote_formulas(table) if is_quoted(certificate.facts) else table
