"""stream publish: an epoch of a stream becomes a release."""

from __future__ import annotations

from pathlib import Path

from sfumato.engines.epoch import run_epoch
from sfumato.publish.folder import check_folder
from sfumato.publish.judge import asked_policy
from sfumato.publish.policy import Policy
from sfumato.publish.publish import publish
from sfumato.publish.release import Release, signer_of
from sfumato.publish.signature import Signer
from sfumato.stream.session import StreamSession
from sfumato.tables.files import FileForm, FileFormat

__all__ = ["publish_stream"]


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
    form : FileForm or {"csv", "parquet", "arrow"}, optional
        By default that of the first records.
    report : bool
        Whether to measure; without the key of rows kept for it, what can be measured without raw rows.
    overwrite : bool
        Replace an earlier release of that name.
    sign : path or Signer, optional
        The private key to sign the certificate with. A rehearsal is not signed.
    measure_key : path, optional
        The key file of rows kept for measuring (`measure_rows` of `sfumato.engines.stream.init_stream`): with it every
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
