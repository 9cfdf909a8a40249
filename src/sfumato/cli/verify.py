"""verify: a reviewer's check without the original."""

from __future__ import annotations

import sys
from pathlib import Path

import rich_click as click

from sfumato.cli.console import Console, tell_error, verb
from sfumato.cli.options import FILE, options

__all__ = ["verify"]


@click.command()
@click.argument("folder", metavar="FOLDER/release", type=click.Path(path_type=Path))
@click.option("--signer", type=FILE, help="Public key of who must have signed it: PEM, or a line ssh-ed25519 ...")
@options(
    most_bytes="Bytes that the table may have and unpack to.  [default: what the certified rows need, at most 64 GiB]"
)
@verb
def verify(console: Console, folder: Path, signer: Path | None, most_bytes: int | None) -> None:
    """Check a release without the original: hashes, certificate against table, rehearsal mark.

    Exits with 3 if something does not hold. It proves that nothing was changed since; who made it only with --signer
    and a key that you have from them by another way than the release.
    """
    import sfumato as sf

    found = sf.verify(folder, signer=signer, most_bytes=most_bytes)
    console.say(found.describe())
    console.result({"holds": found.holds, "checks": found.checks})
    if not found:
        failing = ", ".join(check.name for check in found if not check.holds)
        tell_error(f"sfumato: the release does not hold ({failing}); do not use it")
        sys.exit(3)
