"""The page of commands, written from the commands themselves whenever the site is built."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from html import escape

import click

from sfumato.cli import app
from sfumato.core.arguments import Panel

COMMON = ("quiet", "as_json", "debug", "help")
HEAD = """# Commands and options

`sfumato COMMAND --help` prints the same. Every command also takes `--quiet` (errors only), `--json` (one JSON document
on stdout, nothing else there) and `--debug` (a traceback with an error). Exit codes: 0 done, 2 bad input
or usage, 3 refused for privacy reasons, 130 interrupted, 1 anything else.
"""


def write_page() -> str:
    """Text of the page: a section for each command, in the order of the help, with a table of its options."""
    with click.Context(app, info_name="sfumato") as top:
        sections = [_section(context) for name in app.list_commands(top) for context in _contexts(top, name)]
    return "\n".join([HEAD, *sections])


def _contexts(parent: click.Context, name: str) -> Iterator[click.Context]:
    """The command of that name and, after it, all that it holds."""
    assert isinstance(parent.command, click.Group)
    command = parent.command.get_command(parent, name)
    assert command is not None
    context = click.Context(command, info_name=name, parent=parent)
    yield context
    if isinstance(command, click.Group):
        for each in command.list_commands(context):
            yield from _contexts(context, each)


def _section(context: click.Context) -> str:
    command, path = context.command, context.command_path
    usage = " ".join([path, *command.collect_usage_pieces(context)])
    lines = [
        f"{'#' * (path.count(' ') + 1)} {path}",
        "",
        inspect.cleandoc(command.help or "").replace("[", "\\["),
        "",
        f"`{usage}`",
        "",
    ]
    told = [each for each in command.get_params(context) if isinstance(each, click.Option) and not _is_common(each)]
    for panel, shown in _by_panel(told):
        lines += [f"**{panel}**", ""] if panel else []
        lines += ["| Option | |", "|---|---|"]
        lines += [_row(each, context) for each in shown]
        lines.append("")
    return "\n".join(lines)


def _by_panel(shown: list[click.Option]) -> Iterator[tuple[str, list[click.Option]]]:
    """Options by the panels of the help, in its order; those of a command with few options are in none."""
    for panel in ("", *Panel):
        here = [each for each in shown if (getattr(each, "panel", None) or "") == panel]
        if here:
            yield panel, here


def _is_common(option: click.Option) -> bool:
    return option.hidden or option.name in COMMON


def _row(option: click.Option, context: click.Context) -> str:
    record = option.get_help_record(context)
    assert record is not None
    marks = {"|": "&#124;", "[": "&#91;"}  # else the end of a cell, or a link
    names, words = (escape(" ".join(text.split()), quote=False).translate(str.maketrans(marks)) for text in record)
    return f"| <code>{names}</code> | {words} |"
