"""signing-key: the owner's key that releases are signed with, and its fingerprint for recipients."""

from __future__ import annotations

from pathlib import Path

import rich_click as click

from sfumato.cli.console import Console, verb
from sfumato.cli.options import FILE, options, passphrase_prompt
from sfumato.cli.panels import VerbGroup

__all__ = ["signing_key"]


@click.group("signing-key", cls=VerbGroup)
def signing_key() -> None:
    """Your signing key: it signs releases, and recipients check its fingerprint.

    It is created at first use, in the folder sfumato of your configuration folder. All releases signed with one key are
    linkable to one owner; use other keys (--sign FILE) if they must not be.
    """


@signing_key.command()
@verb
def show(console: Console) -> None:
    """Print the fingerprint and the public key."""
    from sfumato.certificate.signing_key import signing_key as find

    key = find(ask=passphrase_prompt())
    console.say(key.fingerprint)
    console.say(key.public_key)
    console.result({"fingerprint": key.fingerprint, "public_key": key.public_key, "path": str(key.path)})


@signing_key.command()
@click.argument("file", type=FILE)
@options(overwrite="Replace an existing file.")
@verb
def export(console: Console, file: Path, overwrite: bool) -> None:
    """Write the public key to FILE for recipients; verify reads it with --signer."""
    from sfumato.certificate.signing_key import signing_key as find

    key = find(ask=passphrase_prompt())
    key.export(file, overwrite=overwrite)
    console.say(f"The public key of {key.fingerprint} is written to {file}: give it to recipients, not with a release.")
    console.result({"fingerprint": key.fingerprint, "file": str(file)})


@signing_key.command()
@verb
def path(console: Console) -> None:
    """Print the path of the private key."""
    from sfumato.certificate.signing_key import signing_key_path

    place = signing_key_path()
    console.say(str(place))
    console.result({"path": str(place), "exists": place.exists()})


@signing_key.command()
@click.option("--replace", is_flag=True, help="Replace the current key; the earlier one is kept next to it.")
@verb
def new(console: Console, replace: bool) -> None:
    """Create a new signing key. Earlier releases remain signed by the earlier key."""
    from sfumato.certificate.signing_key import new_signing_key

    key = new_signing_key(replace=replace)
    console.say(
        f"{key.fingerprint}\nYour signing key is {key.path}: keep a copy of it, and tell recipients this fingerprint."
    )
    if key.kept is not None:
        console.say(f"The earlier key is kept as {key.kept}.")
    kept = None if key.kept is None else str(key.kept)
    console.result({"fingerprint": key.fingerprint, "path": str(key.path), "kept": kept})
