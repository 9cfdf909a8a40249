"""verify: a reviewer's check without the original."""

from __future__ import annotations

import sys
from pathlib import Path

import rich_click as click

from sfumato.cli.console import Console, verb

__all__ = ["verify"]


@click.command()
@click.argument("folder", metavar="FOLDER/release", type=click.Path(path_type=Path))
@verb
def verify(console: Console, folder: Path) -> None:
    """Check a release without the original: hashes, certificate against table, rehearsal mark.

    Exits with 3 if something does not hold. It proves that nothing was changed since, not who made it.
    """
    from sfumato.release import verify_release

    checks = verify_release(folder)
    holds = all(check.holds for check in checks)
    for check in checks:
        console.say(f"{'holds' if check.holds else 'FAILS':<6} {check.name}: {check.detail}")
    console.say("The release holds." if holds else "The release does not hold.")
    console.result(
        {
            "holds": holds,
            "checks": [{"name": check.name, "holds": check.holds, "detail": check.detail} for check in checks],
        }
    )
    if not holds:
        failing = ", ".join(check.name for check in checks if not check.holds)
        click.echo(f"sfumato: the release does not hold ({failing}); do not use it", err=True)
        sys.exit(3)
