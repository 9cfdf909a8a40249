"""web: the local page."""

from __future__ import annotations

from pathlib import Path

import rich_click as click

from sfumato.cli.console import Console, verb
from sfumato.cli.options import FILE, usual

__all__ = ["web"]


@click.command()
@usual("--port", default=0, type=click.IntRange(0, 65_535), words="Port of this machine; 0 is any that is free.")
@usual("--limit", default=500, type=click.IntRange(1, 100_000), words="Megabytes of a file that may be dropped in.")
@click.option("--no-browser", is_flag=True, help="Do not open a browser; print the address only.")
@click.option("--save", type=FILE, metavar="FOLDER", help="Offer to save releases into this folder.")
@click.option("--stream", metavar="FILE|URL", help="Show how this stream stands, by its state.")
@click.option("--survey", metavar="FILE|URL", help="Show how this survey stands, by its database.")
@verb
def web(
    console: Console,
    port: int,
    limit: int,
    no_browser: bool,
    save: Path | None,
    stream: str | None,
    survey: str | None,
) -> None:
    """Open a page on this machine: drop a file in, see what will happen, choose, look at the report, take the release.

    Nothing leaves the machine, and nothing is kept once it ends (Ctrl-C) but what was taken or saved.
    """
    import webbrowser

    from sfumato.web.server import serve

    def ready(url: str) -> None:
        console.say(f"The page is at {url}\nIt is for this machine alone. Ctrl-C ends it and deletes what it holds.")
        console.result({"url": url})
        if not no_browser:
            webbrowser.open(url)

    serve(ready, port=port, most_bytes=limit * 1_000_000, save=save, stream=stream, survey=survey)
    console.say("Ended; what was not taken or saved is gone.")
