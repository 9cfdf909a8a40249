"""The command line, ``sfumato VERB ...``: verbs that parse, call a function and print; no logic."""

from __future__ import annotations

import sys
from typing import Any

import rich_click as click
from click.exceptions import NoSuchOption

from sfumato import __version__
from sfumato.cli.console import INTERRUPTED, tell_error
from sfumato.core.errors import SfumatoError, closest_name, shown
from sfumato.registry import COMMANDS, load_command

__all__ = ["app", "main"]


class _Verbs(click.RichGroup):
    """Loads a verb when it is named, so that help stays quick."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the verb; of a misspelt one say which was probably meant."""
        meant = None if not args or args[0] in COMMANDS else closest_name(args[0], COMMANDS)
        if meant is not None:
            ctx.fail(f"No such command {shown(args[0])}; did you mean {meant!r}?")
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        return load_command(cmd_name) if cmd_name in COMMANDS else None


@click.group(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="sfumato")
def app() -> None:
    """Privacy-preserving releases of tables about people: synthetic data and statistical disclosure control.

    Each release has a certificate of what was done, a report of utility and disclosure risk, and a verdict against your
    policy.
    """


def _meant(error: NoSuchOption) -> str:
    """Say that there is no such option, and the one that was probably meant."""
    context = error.ctx
    options = [] if context is None else [each.opts[0] for each in context.command.get_params(context)]
    meant = closest_name(error.option_name, [each for each in options if each.startswith("--")])
    words = f"No such option {shown(error.option_name)}"
    return words if meant is None else f"{words}; did you mean {meant!r}?"


def main() -> None:
    """Run the command; a usage error is one sentence and exit code 2."""
    try:
        code = app.main(standalone_mode=False)
    except click.UsageError as error:
        where = error.ctx.command_path if error.ctx else "sfumato"
        words = _meant(error) if isinstance(error, NoSuchOption) else error.format_message().rstrip(".")
        tell_error(f"sfumato: {words}; see '{where} --help'")
        code = 2
    except click.ClickException as error:
        tell_error(f"sfumato: {error.format_message()}")
        code = 2
    except SfumatoError as error:  # of an extension, before the verb begins
        tell_error(f"sfumato: {error}")
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("sfumato: interrupted; nothing was written", err=True)
        code = INTERRUPTED
    sys.exit(code if isinstance(code, int) else 0)
