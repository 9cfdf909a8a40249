"""The help of verbs with many options: panels, those that most people need first."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import rich_click as click

from sfumato.cli import app
from sfumato.core.arguments import Panel

FEW = 15


def commands() -> Iterator[click.RichContext]:
    """A context of each command that there is."""
    waiting = [click.RichContext(app, info_name="sfumato")]
    while waiting:
        context = waiting.pop()
        yield context
        if isinstance(context.command, click.Group):
            for name in context.command.list_commands(context):
                command = context.command.get_command(context, name)
                assert command is not None
                waiting.append(click.RichContext(command, info_name=name, parent=context))


def shown_options(context: click.RichContext) -> list[click.RichOption]:
    """Options that the help shows."""
    params = context.command.get_params(context)
    return [each for each in params if isinstance(each, click.RichOption) and not each.hidden]


LARGE = [context for context in commands() if len(shown_options(context)) > FEW]
PATHS = [context.command_path for context in LARGE]


def lines_of_help(context: click.RichContext, width: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("COLUMNS", str(width))
    fresh = click.RichContext(context.command, info_name=context.info_name, parent=context.parent)
    return [line.rstrip() for line in fresh.command.get_help(fresh).splitlines()]


def test_there_are_verbs_with_many_options() -> None:
    assert {"sfumato sanitize", "sfumato tune", "sfumato evaluate", "sfumato stream init"} <= set(PATHS)


@pytest.mark.parametrize("context", LARGE, ids=PATHS)
def test_every_option_of_a_large_verb_is_in_a_panel(context: click.RichContext) -> None:
    without = [each.name for each in shown_options(context) if each.panel not in list(Panel)]
    assert without == []


@pytest.mark.parametrize("context", list(commands()), ids=lambda each: each.command_path)
def test_a_verb_with_few_options_has_one_panel(context: click.RichContext) -> None:
    options = shown_options(context)
    assert all(each.panel is None for each in options if each.name != "help") or len(options) > FEW


@pytest.mark.parametrize("context", LARGE, ids=PATHS)
@pytest.mark.parametrize("width", [80, 120])
def test_the_help_shows_each_option_once_in_its_panel(
    context: click.RichContext, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = lines_of_help(context, width, monkeypatch)
    assert max(map(len, lines)) <= width
    panel, found = "", dict[str, str]()
    for line in lines:
        if line.startswith("╭─"):
            panel = line.strip("╭╮─ ")
        words = line.lstrip("│ *").split()
        names = words[0].split(",") if words and words[0].startswith("--") and line.startswith("│") else []
        for name in names:
            assert name not in found or not line[2:6].strip(), name
            found.setdefault(name, panel)
    for option in shown_options(context):
        long = next(name for name in option.opts if name.startswith("--"))
        assert found[long] == option.panel
    order = [line.strip("╭╮─ ") for line in lines if line.startswith("╭─")]
    known = [panel for panel in order if panel in list(Panel)]
    assert known == [panel for panel in Panel if panel in known]
    assert known == order[: len(known)]  # verbs of a group follow


@pytest.mark.parametrize("verb", ["sanitize", "tune"])
def test_the_ten_that_most_people_need_come_first(verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    context = next(each for each in LARGE if each.info_name == verb)
    first = [each.name for each in shown_options(context) if each.panel == Panel.FIRST]
    assert len(first) == 10
    assert {"target", "identifiers", "person", "schema", "holdout", "policy", "k", "output"} <= set(first)
    lines = lines_of_help(context, 80, monkeypatch)
    assert next(line for line in lines if line.startswith("╭─")).startswith("╭─ Most used ─")
