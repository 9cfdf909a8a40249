"""What a person sees while a verb runs: sentences on stderr, progress bars on a terminal, one JSON document."""

from __future__ import annotations

import logging
import os
import re
import shutil
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from time import monotonic
from types import FrameType
from typing import Any, ParamSpec

import rich_click as click
from click.exceptions import Abort, ClickException, Exit

from sfumato.core.arguments import Panel
from sfumato.core.errors import SfumatoError, printable, with_options
from sfumato.core.pages import wrap_lines
from sfumato.core.progress import listening

__all__ = ["INTERRUPTED", "Console", "Verb", "VerbGroup", "tell_error", "verb"]

INTERRUPTED = 130
"""Exit code of an interrupted run, that of Ctrl-C in a shell."""

_LONGEST = 4_000
_MOST_LINES = 10
_SECONDS_APART = 5.0
_BEYOND_ASCII = re.compile(r"[^\n\x20-\x7e]")

P = ParamSpec("P")


class Console:
    """Where a verb speaks."""

    def __init__(self, *, quiet: bool, as_json: bool) -> None:
        self.quiet = quiet
        self.as_json = as_json

    def say(self, text: str) -> None:
        """Tell the reader something, unless it was asked to be quiet or to speak JSON."""
        if not self.quiet and not self.as_json:
            click.echo(printable(text, lines=True))

    @property
    def width(self) -> int | None:
        """Characters of a line of the terminal, or those that COLUMNS names; None off a terminal: lines stay whole."""
        return shutil.get_terminal_size().columns if sys.stdout.isatty() else None

    def say_broken(self, text: str) -> None:
        """Tell the reader a text whose lines are broken at the width of the terminal."""
        self.say(wrap_lines(printable(text, lines=True), self.width))

    def tell(self, parts: Sequence[tuple[int, str]]) -> None:
        """Tell the reader lines with their ranks: ten at most, as wide as the terminal; off one they stay unbroken."""
        from sfumato.assess.plain import fitting

        self.say("\n".join(fitting(parts, self.width, _MOST_LINES)))

    def note(self, text: str) -> None:
        """Tell the person at the terminal something that is not a result."""
        if not self.quiet:
            tell_error(text)

    def result(self, document: Mapping[str, object]) -> None:
        """Print the one JSON document."""
        if self.as_json:
            from sfumato.core.documents import write_json

            click.echo(_BEYOND_ASCII.sub(_escaped, write_json(document, "pretty")), nl=False)

    @contextmanager
    def progress(self, *, lines: bool = False) -> Iterator[None]:
        """Show how far the work has come, if there is a terminal; elsewhere, if asked, in a line now and then."""
        if self.quiet or not sys.stderr.isatty():
            with listening(_lines() if lines and not self.quiet else None):
                yield
            return
        from rich.console import Console as RichConsole
        from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        layout = (TextColumn("{task.description:<18}"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"))
        times = (TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())
        with Progress(*layout, *times, console=RichConsole(stderr=True), transient=True) as bars:
            tasks: dict[str, TaskID] = {}

            def show(stage: str, fraction: float) -> None:
                if stage not in tasks:
                    tasks[stage] = bars.add_task(stage, total=1.0)
                bars.update(tasks[stage], completed=fraction)

            with listening(show):
                yield


def _lines() -> Callable[[str, float], None]:
    """Tell how far it is on stderr, in plain lines that are seconds apart."""
    begin = last = monotonic()

    def show(stage: str, fraction: float) -> None:
        nonlocal last
        if (now := monotonic()) - last >= _SECONDS_APART:
            last = now
            click.echo(f"sfumato: {stage}, {100 * fraction:.0f} % after {now - begin:.0f} s", err=True)

    return show


def _escaped(mark: re.Match[str]) -> str:
    """Write a character as JSON escapes it, unless it can be printed."""
    from sfumato.core.documents import write_json

    return mark[0] if printable(mark[0]) == mark[0] else write_json(mark[0], escaped=True)[1:-1]


def tell_error(text: str) -> None:
    """Say a sentence on stderr; nothing in it can steer the terminal, and an endless name does not fill it."""
    cut = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
    click.echo(printable(cut, lines=True), err=True)


class _Log(logging.Handler):
    """Passes what the package logs on to the person at the terminal."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        self._console = console

    def emit(self, record: logging.LogRecord) -> None:
        """Say one record."""
        self._console.note(f"sfumato: {record.getMessage()}")


def verb(function: Callable[P, None]) -> Callable[P, None]:
    """A verb with the options and the error form that all verbs share."""

    @click.option("--quiet", is_flag=True, panel=Panel.OUTPUT, help="Print errors only.")
    @click.option(
        "--json",
        "as_json",
        is_flag=True,
        panel=Panel.OUTPUT,
        help="Print one JSON document on stdout.",
    )
    @click.option("--debug", is_flag=True, panel=Panel.OUTPUT, help="Show a traceback with an error.")
    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        debug = bool(kwargs.pop("debug"))
        console = Console(quiet=bool(kwargs.pop("quiet")), as_json=bool(kwargs.pop("as_json")))
        kwargs["console"] = console
        signal.signal(signal.SIGTERM, _interrupt)
        log = _Log(console)
        logging.getLogger("sfumato").addHandler(log)
        try:
            with with_options(), warnings.catch_warnings():
                warnings.showwarning = lambda message, *_rest, **_more: console.note(f"Warning: {message}.")
                function(*args, **kwargs)
        except SfumatoError as error:
            if debug:
                raise
            with with_options():
                tell_error(f"sfumato: {error}")
            sys.exit(error.exit_code)
        except KeyboardInterrupt:
            click.echo("sfumato: interrupted; nothing was written", err=True)
            sys.exit(INTERRUPTED)
        except BrokenPipeError:  # whoever reads the output has read enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(1)
        except (Abort, ClickException, Exit):
            raise
        except MemoryError:
            click.echo("sfumato: not enough memory for this table; nothing was written", err=True)
            sys.exit(1)
        except Exception as error:
            if debug:
                raise
            click.echo(
                f"sfumato: internal error ({type(error).__name__}); nothing was written. Please "
                "report it with the output of --debug, without data",
                err=True,
            )
            sys.exit(1)
        finally:
            logging.getLogger("sfumato").removeHandler(log)

    return run


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


_FEW = 15  # options that need no panels


class Verb(click.RichCommand):
    """A verb whose help shows its options in panels, unless they are few."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Parameters of the verb, with the panels of its options."""
        return _with_panels(self, super().get_params(ctx))

    def get_help_option(self, ctx: Any) -> Any:
        """The option --help, which stands beside those of what is printed."""
        return _of_output(super().get_help_option(ctx))


class VerbGroup(click.RichGroup):
    """A group of verbs, which may have options of its own."""

    command_class: type[click.RichCommand] | None = Verb

    def get_params(self, ctx: Any) -> list[Any]:
        """Parameters of the group, with the panels of its options."""
        return _with_panels(self, super().get_params(ctx))

    def get_help_option(self, ctx: Any) -> Any:
        """The option --help, which stands beside those of what is printed."""
        return _of_output(super().get_help_option(ctx))


def _with_panels(command: click.RichCommand, params: list[Any]) -> list[Any]:
    shown = [each for each in params if isinstance(each, click.RichOption) and not each.hidden]
    if len(shown) <= _FEW:
        for each in shown:
            each.panel = None
    elif not command.panels:
        command.panels = [click.RichOptionPanel(panel.value) for panel in Panel]
    return params


def _of_output(option: Any) -> Any:
    if option is not None:
        option.panel = Panel.OUTPUT
    return option
