"""The release of a joint run: the same folder at every party, or at none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sfumato.certificate.signature import SIGNATURE_FILE, Signer
from sfumato.core.documents import MOST_BYTES, Unparsable, from_json, write_json
from sfumato.core.errors import OptionError
from sfumato.options import PublishOptions
from sfumato.parties.arithmetic import Engine
from sfumato.parties.channel import PartyChannel, PartyError
from sfumato.parties.part import OwnPart, own_part
from sfumato.parties.plan import JointPlan, leaks_of
from sfumato.parties.run import reason_of, run_joint
from sfumato.parties.session import Session, computing_parties, plain_sessions, run_in_threads
from sfumato.publish.attainable import refuse_unattainable, without_control
from sfumato.publish.folder import check_folder, sha256_of
from sfumato.publish.judge import PolicyNotMet, asked_policy
from sfumato.publish.release import Release, Signing, form_named, publish, signer_of
from sfumato.tables.files import FileForm, FileFormat
from sfumato.tables.schema import Schema

__all__ = ["OwnPart", "joint_in_one_process", "own_part", "run_party", "written_together"]


def written_together(
    release: Release,
    channel: PartyChannel,
    folder: str | Path,
    form: FileForm,
    *,
    overwrite: bool = False,
    sign: Signer | None = None,
) -> Release:
    """Write the folder under another name, and rename it once all parties have written the same.

    Raises
    ------
    SfumatoError
        If any party could not write, or has written something else; then nothing stays here.
    """

    def agree(work: Path) -> None:
        leaving = (file for file in (work / "release").iterdir() if file.name != SIGNATURE_FILE)  # each owner's own
        files = [*sorted(leaving), *(work / "owner" / name for name in release.texts)]
        _wait_for_all(files, channel)

    return release.written(folder, form=form, overwrite=overwrite, sign=sign or False, agree=agree)


def _wait_for_all(files: list[Path], channel: PartyChannel) -> None:
    """Tell the others what was written, and go on when all have found that all have written the same."""
    written = {file.name: sha256_of(file) for file in files}
    others = [rank for rank in range(channel.parties) if rank != channel.rank]
    for rank in others:
        channel.send(rank, "written", write_json(written).encode())
    for rank in others:
        differing = _differing(channel.receive(rank, "written"), written)
        if differing is not None:
            raise PartyError(
                f"party {channel.names[rank]!r} has another {differing} than this party, so nothing is released; run "
                "the same versions of all libraries at all parties"
            )
    for rank in others:
        channel.send(rank, "agreed", b"")
    for rank in others:
        channel.receive(rank, "agreed")


def _differing(told: bytes, written: Mapping[str, str]) -> str | None:
    """Name the first file that another party has written otherwise; only names of ours are repeated."""
    try:
        document = from_json(dict[str, str], told, most=MOST_BYTES)
    except Unparsable:
        return "release"
    differing = (name for name, digest in written.items() if document.get(name) != digest)
    return next(differing, None if len(document) == len(written) else "release")


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
        meet the policy, nothing is released anywhere.

    Raises
    ------
    SfumatoError
        All other parties are notified, and nothing is written anywhere.
    """
    asked, plan = publishing or PublishOptions(), part.plan
    form = form_named(asked.form or FileFormat.CSV.value)
    try:
        check_folder(folder, overwrite=asked.overwrite)
        signer = signer_of(asked.sign, dry_run=plan.seed is not None, folder=folder)
    except BaseException:
        channel.abort("its output folder or signing key cannot be used")  # where they lie is nobody's business
        raise
    try:
        computing = computing_parties(plan.engine, len(plan.parties))
        session = Session(channel, engine, computing, leaks_of(plan), seed=plan.seed)
        policy = asked_policy(asked.policy, report=asked.report)
        refuse_unattainable(policy, without_control(), despite=None)
        made = run_joint(part, session, plan.engine, form)
        release = publish(made, PublishOptions(report=asked.report, policy=policy))
        return written_together(release, channel, folder, form, overwrite=asked.overwrite, sign=signer)
    except PolicyNotMet:
        channel.abort("its policy is not met")  # what was measured on its part stays private
        raise
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
        release = publish(run_joint(parts[rank], session, "plain", form), PublishOptions(report=report))
        if folders is None:
            return release
        signer = signer_of(sign, dry_run=plan.seed is not None, folder=folders[rank])
        return written_together(release, channel, folders[rank], form, sign=signer)

    return run_in_threads(play, sessions)
