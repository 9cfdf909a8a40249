"""Options that several verbs share, and what they mean for the calls below."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import rich_click as click
from click.core import ParameterSource

from sfumato.errors import OptionError

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.assess.report import Report
    from sfumato.cli.console import Console
    from sfumato.publish import Signer
    from sfumato.tables.files import FileForm

__all__ = [
    "budget_option",
    "budget_words",
    "command_words",
    "keeping_owner_part",
    "most_bytes_option",
    "policy_options",
    "read_input",
    "reading_options",
    "signer_at",
]

F = TypeVar("F", bound=Callable[..., Any])

_OF_OUTPUT = ("quiet", "as_json", "debug")


def reading_options(function: F) -> F:
    """Add the options that say how the input is read."""
    function = click.option("--query", help="SQL to run, where INPUT is a database URL.")(function)
    return click.option("--encoding", default="utf-8", show_default=True, help="How a CSV file is written.")(function)


def budget_option(function: F) -> F:
    """Add the option that limits the measuring."""
    return click.option(
        "--budget", type=float, metavar="SECONDS", help="Choose how many rows are looked at, to measure in this time."
    )(function)


def policy_options(function: F) -> F:
    """Add the options that say what a release must meet."""
    function = click.option(
        "--despite-policy", is_flag=True, help="Go on although the policy is not met; the certificate says so."
    )(function)
    return click.option(
        "--policy", metavar="NAME|FILE", help="What the release must meet: trusted, research, public, or a file."
    )(function)


@contextmanager
def keeping_owner_part(console: Console, folder: Path, *, overwrite: bool) -> Iterator[None]:
    """Where a release does not meet its policy, write what stays with the owner alone, and say what to try."""
    from sfumato.publish import PolicyNotMet

    try:
        yield
    except PolicyNotMet as refused:
        refused.save_owner(folder, overwrite=overwrite)
        console.say(refused.verdict.sentence())
        for line in refused.verdict.to_try:
            console.say(f"To try next:  {line}")
        console.say(f"What stays:   {folder / 'owner'} (report.html is the one to read first)")
        console.result({"folder": str(folder), "table": None, "verdict": refused.verdict.to_json()})
        raise


def command_words() -> tuple[str, ...]:
    """Words of the command line that is being run, for what to try next; without what only shapes the output.

    A database URL may hold a password, so that it is not repeated.
    """
    context = click.get_current_context()
    assert context is not None
    words = ["sfumato", str(context.info_name)]
    for parameter in sorted(context.command.params, key=lambda each: each.param_type_name != "argument"):
        told = context.get_parameter_source(parameter.name or "")
        if told is not ParameterSource.COMMANDLINE or parameter.name in _OF_OUTPUT:
            continue
        value = context.params[parameter.name or ""]
        if parameter.param_type_name == "argument":
            words.append("INPUT" if "://" in str(value) else str(value))
        elif isinstance(value, bool):
            words.append(parameter.opts[0])
        else:
            for each in value if isinstance(value, tuple) else (value,):
                words += [parameter.opts[0], str(each)]
    return tuple(words)


def budget_words(report: Report) -> str | None:
    """Say what was chosen to fit a budget; nothing where none was given."""
    sizes, rows = report.sizes, report.rows_original
    if sizes.get("budget") is None:
        return None
    attempts, training = min(sizes["attempts"], rows), min(sizes["training"], rows)
    looked = f"Looked at up to {attempts} people an attack and {training} training rows"
    estimate, budget = f"{sizes['estimate']:g} s", f"{sizes['budget']:g} s"
    if sizes["estimate"] > sizes["budget"]:
        return f"{looked}, the fewest that still tell something (estimated {estimate}, more than the {budget} granted)."
    return f"{looked} (estimated {estimate} of {budget})."


def most_bytes_option(words: str) -> Callable[[F], F]:
    """Add the option that bounds what a packed table from outside may unpack to."""
    return click.option("--most-bytes", type=click.IntRange(min=1), metavar="N", help=words)


def signer_at(key: Path | None, output: Path) -> Signer | None:
    """Who signs, by the file of a key that lies apart from the output; a passphrase is asked for at a terminal."""
    from sfumato.publish import Signer

    if key is None:
        return None
    if output.resolve() in key.resolve().parents:
        raise OptionError("the key lies in the output folder, part of which leaves; keep it elsewhere")
    at_terminal = sys.stdin.isatty() and sys.stderr.isatty()
    return Signer.load(key, ask=_ask_passphrase if at_terminal else None)


def _ask_passphrase() -> str:
    return str(click.prompt("Passphrase of the key", hide_input=True, err=True, default="", show_default=False))


def read_input(
    source: str, *, encoding: str, query: str | None, most_bytes: int | None = None
) -> tuple[pa.Table, FileForm]:
    """Read a file, standard input (``-``) or a database URL."""
    from sfumato.tables.files import read_file, read_sql

    if "://" in source:
        if query is None:
            raise OptionError("a database URL needs --query, for example --query 'select * from people'")
        return read_sql(source, query)
    if query is not None:
        raise OptionError("--query is for a database URL; a file is read whole")
    return read_file(source, encoding=encoding, most_bytes=most_bytes)
