"""The folder of a joint release: the same files and the signatures of all owners at every party, or nothing at any."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from sfumato.certificate.signature import Signature, Signer
from sfumato.core.documents import MOST_BYTES, Unparsable, from_json, write_json
from sfumato.core.errors import BadInput
from sfumato.parties.channel import PartyChannel, PartyError
from sfumato.publish.folder import sha256_of, write_text
from sfumato.publish.release import Release
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
    """Write the folder under another name, with the signatures of all, and rename it once all have written the same.

    Raises
    ------
    SfumatoError
        If any party could not write, has written something else, or does not sign with the key of the certificate;
        then nothing stays here.
    """

    def agree_on_files(work: Path) -> None:
        files = [*sorted((work / "release").iterdir()), *(work / "owner" / name for name in release.texts)]
        _wait_for_all(files, channel)
        _write_signatures(work / "release", release.certificate.owner_signatures, channel, sign)
        _agreed(channel)

    written = release.written(folder, form=form, overwrite=overwrite, sign=False, agree=agree_on_files)
    signed = sign is not None and bool(release.certificate.owner_signatures)
    return dataclasses.replace(written, signed_by=sign.fingerprint if signed and sign is not None else None)


def _write_signatures(folder: Path, keys: Mapping[str, str], channel: PartyChannel, sign: Signer | None) -> None:
    """Sign the certificate, and write the signatures of all owners who announced a key beside it."""
    data = (folder / "certificate.json").read_bytes()
    own = b"" if sign is None else sign.sign(data).to_text().encode()
    for rank in range(channel.parties):
        if rank != channel.rank:
            channel.send(rank, "signature", own)
    for rank, name in enumerate(channel.names):
        text = own if rank == channel.rank else channel.receive(rank, "signature")
        file = f"certificate.{name}.sig"
        if file not in keys:
            continue
        try:
            signature = Signature.from_bytes(text)
        except BadInput:
            signature = None
        if signature is None or signature.fingerprint != keys[file] or not signature.holds(data):
            raise PartyError(f"party {name!r} did not sign the certificate with the key that it announced")
        write_text(folder / file, text.decode())


def _agreed(channel: PartyChannel) -> None:
    """Go on when all have found that all have written the same."""
    others = [rank for rank in range(channel.parties) if rank != channel.rank]
    for rank in others:
        channel.send(rank, "agreed", b"")
    for rank in others:
        channel.receive(rank, "agreed")


def _wait_for_all(files: list[Path], channel: PartyChannel) -> None:
    """Tell the others what was written, and refuse anything else that another has written."""
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


def _differing(payload: bytes, written: Mapping[str, str]) -> str | None:
    """Name the first file that another party has written otherwise; only names of ours are repeated."""
    try:
        document = from_json(dict[str, str], payload, most=MOST_BYTES)
    except Unparsable:
        return "release"
    differing = (name for name, digest in written.items() if document.get(name) != digest)
    return next(differing, None if len(document) == len(written) else "release")
