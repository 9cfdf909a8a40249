"""Several owners, one release: what a party runs, and all parties in one process for a trial [BCG10, sec. 4]."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sfumato.engines.joint_run import Meter, reason_of, run_joint
from sfumato.engines.owned import OwnPart, own_part
from sfumato.errors import OptionError
from sfumato.parties.plain import computing_parties, plain_sessions, play_together
from sfumato.parties.plan import JointPlan, leaks_of
from sfumato.parties.ports import Engine, PartyChannel
from sfumato.parties.session import Session
from sfumato.publish.folder import check_folder
from sfumato.publish.joint_folder import written_together
from sfumato.publish.judge import PolicyNotMet, asked_policy
from sfumato.publish.policy import Policy
from sfumato.publish.publish import publish
from sfumato.publish.release import Release, form_named, signer_of
from sfumato.publish.signature import Signer
from sfumato.tables.files import FileForm, FileFormat
from sfumato.tables.schema import Schema

__all__ = ["OwnPart", "joint_in_one_process", "own_part", "run_party"]


def run_party(
    part: OwnPart,
    channel: PartyChannel,
    engine: Engine | None,
    folder: str | Path,
    *,
    form: FileForm | str = FileFormat.CSV.value,
    report: bool = True,
    overwrite: bool = False,
    sign: str | Path | Signer | None = None,
    policy: Policy | str | Path | None = None,
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
    form : FileForm or {"csv", "parquet", "arrow"}
        Of the released table; the same at all parties.
    report : bool
        Whether to measure, on this owner's own part; the report stays with the owner.
    overwrite : bool
        Replace an earlier release of that name.
    sign : path or Signer, optional
        This owner's private key to sign the certificate with. A rehearsal is not signed.
    policy : Policy, str or path, optional
        What the report on this owner's part must meet; where it does not, nothing is released anywhere.

    Raises
    ------
    SfumatoError
        All other parties are told, and nothing is written anywhere.
    """
    form, plan = form_named(form), part.plan
    try:
        check_folder(folder, overwrite=overwrite)
    except BaseException:
        channel.abort("its output folder cannot be used")  # where it lies is nobody's business
        raise
    try:
        computing = computing_parties(plan.engine, len(plan.parties))
        session = Session(channel, engine, computing, leaks_of(plan), seed=plan.seed)
        signer, asked = signer_of(sign, rehearsal=plan.seed is not None), asked_policy(policy, report=report)
        made = run_joint(part, session, Meter(channel, engine), plan.engine, form)
        release = publish(made, report=report, policy=asked)
        return written_together(release, channel, folder, form, overwrite=overwrite, sign=signer)
    except PolicyNotMet:
        channel.abort("its policy is not met")  # what was measured on its part is nobody else's business
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
        Where each party writes its release; without, nothing is written.
    form : FileForm or {"csv", "parquet", "arrow"}
    report : bool
        Whether each party measures its own part.

    Returns
    -------
    list of Release
        What each party has.
    """
    form = form_named(form)
    ranks = range(len(plan.parties))
    if len(tables) != len(ranks) or (schemas is not None and len(schemas) != len(ranks)):
        raise OptionError(f"the plan has {len(ranks)} parties; bring a table and a schema for each")
    parts = [own_part(plan, rank, tables[rank], schemas[rank] if schemas else None, key=key) for rank in ranks]
    sessions = plain_sessions(plan.parties, leaks_of(plan), engine=plan.engine, seed=plan.seed, keep=False)

    def play(rank: int) -> Release:
        session, channel, engine = sessions[rank]
        release = publish(run_joint(parts[rank], session, Meter(channel, engine), "plain", form), report=report)
        return release if folders is None else written_together(release, channel, folders[rank], form)

    return play_together(play, sessions)
