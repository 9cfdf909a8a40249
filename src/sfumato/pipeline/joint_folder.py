"""The folder that every party of a joint run writes: the same at all of them, or at none."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from sfumato.errors import SfumatoError
from sfumato.parties.channel import Channel, PartyError
from sfumato.parties.ledger import Ledger
from sfumato.privacy.certificate import Certificate
from sfumato.publish.files import sha256_of, write_text
from sfumato.publish.folder import replacing_folder
from sfumato.publish.release import Release
from sfumato.tables.files import FileForm
from sfumato.tables.schema import Schema

__all__ = ["write_together"]

_SHARED = ("transcript.jsonl", "ledger.json", "ledger.txt")  # beside what leaves, the same at all parties


def write_together(
    release: Release,
    transcript: str,
    ledger: Ledger,
    schema: Schema,
    channel: Channel,
    folder: Path,
    form: FileForm,
    *,
    overwrite: bool,
) -> Certificate:
    """Write the folder under another name, and rename it once all parties have written the same.

    Parameters
    ----------
    release : Release
        What leaves.
    transcript : str
        The steps of the run; stays with the owner, like the ledger and the schema.
    ledger : Ledger
    schema : Schema
        Of the owner's own columns.
    channel : Channel
    folder : path
    form : FileForm
    overwrite : bool

    Raises
    ------
    SfumatoError
        Where any party could not write, or has written something else; then nothing stays here.
    """
    try:
        with replacing_folder(folder, overwrite=overwrite) as work:
            release._write_release(work / "release", form, None)
            owner = work / "owner"
            owner.mkdir(mode=0o700)
            for name, text in zip(_SHARED, (transcript, ledger.to_json(), ledger.to_table() + "\n"), strict=True):
                write_text(owner / name, text, mode=0o600)
            write_text(owner / "schema.toml", schema.to_toml(), mode=0o600)
            certificate = Certificate.from_json((work / "release" / "certificate.json").read_text(encoding="utf-8"))
            _wait_for_all([*sorted((work / "release").iterdir()), *(owner / name for name in _SHARED)], channel)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else type(error).__name__
        raise SfumatoError(f"the release could not be written ({reason}); nothing was changed") from None
    return certificate


def _wait_for_all(files: list[Path], channel: Channel) -> None:
    """Tell the others what was written, and go on when all have found that all have written the same."""
    written = {file.name: sha256_of(file) for file in files}
    others = [rank for rank in range(channel.parties) if rank != channel.rank]
    for rank in others:
        channel.send(rank, "written", json.dumps(written).encode())
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
    try:
        document = json.loads(told)
        names = [name for name in (*written, *document) if document.get(name) != written.get(name)]
    except (ValueError, AttributeError, TypeError, RecursionError):
        return "release"
    return names[0] if names else None
