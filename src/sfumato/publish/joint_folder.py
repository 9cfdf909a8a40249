"""The folder that every party of a joint run writes: the same at all of them, or at none."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sfumato.documents import MOST_BYTES, Unparsable, from_json, write_json
from sfumato.parties.ports import PartyChannel, PartyError
from sfumato.publish.files import sha256_of
from sfumato.publish.release import Release
from sfumato.publish.signature import SIGNATURE_FILE, Signer
from sfumato.tables.files import FileForm

__all__ = ["written_together"]


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

    Parameters
    ----------
    release : Release
    channel : PartyChannel
    folder : path
    form : FileForm
    overwrite : bool
        Replace an earlier release of that name.
    sign : Signer, optional

    Raises
    ------
    SfumatoError
        Where any party could not write, or has written something else; then nothing stays here.
    """

    def agree(work: Path) -> None:
        leaving = (file for file in (work / "release").iterdir() if file.name != SIGNATURE_FILE)  # each owner's own
        files = [*sorted(leaving), *(work / "owner" / name for name in release.texts)]
        _wait_for_all(files, channel)

    return release.written(folder, form=form, overwrite=overwrite, sign=sign, agree=agree)


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
