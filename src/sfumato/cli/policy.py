"""policy: print a policy as TOML to edit."""

from __future__ import annotations

from pathlib import Path

import rich_click as click

from sfumato.cli.console import Console, verb
from sfumato.cli.options import check_new, options, write_private

__all__ = ["policy"]

_USUAL = "research"


@click.command()
@click.argument("name", required=False, metavar="[NAME]")
@options(output="Write it to this TOML file.", overwrite="Replace an existing file.")
@verb
def policy(console: Console, name: str | None, output: Path | None, overwrite: bool) -> None:
    """Print a policy as TOML to edit: trusted, research or public, or one of your own that lies in a file.

    Without NAME the three are listed. A policy says how much attacks may gain on people of the table before it leaves;
    sanitize and evaluate take it with --policy.
    """
    from sfumato.publish import BUILT_IN, PURPOSES, Policy

    if name is None and output is None:
        for each, purpose in PURPOSES.items():
            console.say(f"{each:<9} {purpose}")
        console.say("\n'sfumato policy NAME' prints one as TOML, and -o FILE writes it to a file to edit.")
        console.result({"policies": list(BUILT_IN.values())})
        return
    chosen = Policy.load(name or _USUAL)
    if output is None:
        console.say(chosen.to_toml().rstrip("\n"))
    else:
        check_new(output, overwrite=overwrite)
        write_private(output, chosen.to_toml(), "policy", private=False)
        console.say(f"Written to {output}: edit it, then pass it with --policy {output}.")
    console.result({**vars(chosen), "file": None if output is None else str(output)})
