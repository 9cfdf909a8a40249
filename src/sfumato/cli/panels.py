"""Panels of a verb's help: what its options are about, in the order in which they are shown."""

from __future__ import annotations

from typing import Any

import rich_click as click

from sfumato.core.option import Panel

__all__ = ["Verb", "VerbGroup"]

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
