"""Messages name options as their reader writes them: the command line, Python, or the labels of the page."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
import rich_click as click

import sfumato as sf
from sfumato.cli import app
from sfumato.core.errors import _ARGUMENTS, Notice, OptionError, PrivacyLeakWarning, SfumatoError, spelled, with_options
from sfumato.methods.catalogue import all_parameters
from sfumato.stream.options import StreamOptions
from sfumato.web.visit import LABELS

SOURCES = Path(sf.__file__).parent
OF_OTHERS = {
    "headless",
    "disable-gpu",
    "no-pdf-header-footer",
    "no-first-run",
    "user-data-dir",
    "print-to-pdf",
    "no-sandbox",
}
OF_OTHERS |= {"force-reinstall", "main", "sans"}  # of pip, and colours of a style sheet


@pytest.mark.parametrize(
    ("text", "argument"),
    [
        ("drop --sheet", "drop sheet="),
        ("give --header-row 3, or", "give header_row=3, or"),
        ("say --decimal , for", "say decimal=',' for"),
        ("add --rare pool to count", "add rare='pool' to count"),
        ("or --encoding cp1252; name", "or encoding='cp1252'; name"),
        ("drop --no-report, or", "drop report=False, or"),
        ("add --overwrite", "add overwrite=True"),
        ("name them with --identifier", "name them with identifiers="),
        ("add --person 'who', or", "add person='who', or"),
        ("give --sign FILE or --no-sign", "give sign=FILE or sign=False"),
        ("write --widths COLUMN=10", "write widths=[(COLUMN, 10)]"),
        ("run 'sfumato inspect a.csv --k 5'", "run 'sfumato inspect a.csv --k 5'"),
        ("the column '--k' and a--b", "the column '--k' and a--b"),
    ],
)
def test_an_option_is_an_argument_of_python(text: str, argument: str) -> None:
    assert spelled(text) == argument
    with with_options():
        assert spelled(text) == text
    assert str(OptionError(text)) == argument
    assert str(PrivacyLeakWarning(text)) == str(Notice(text)) == argument


def test_an_option_is_a_label_of_the_page_and_elsewhere_stays_one() -> None:
    with with_options(LABELS):
        assert spelled("give --header-row 3 or --k 5") == "give 'Header row' 3 or --k 5"
    assert spelled("--k") == "k="


def every_option(command: click.Command) -> Iterator[str]:
    context = click.Context(command)
    for parameter in command.get_params(context):
        yield from (name.removeprefix("--") for name in parameter.opts if name.startswith("--"))
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            verb = command.get_command(context, name)
            assert verb is not None
            yield from every_option(verb)


def test_every_option_in_a_message_is_one() -> None:
    known = {*every_option(app), *(name.replace("_", "-") for name in all_parameters()), *OF_OTHERS}
    unknown = {}
    for path in SOURCES.rglob("*.py"):
        for name in re.findall(r"(?<=[ (\"])--([a-z][a-z-]+[a-z])(?=[ ,;.)\"])", path.read_text("utf-8")):
            if name not in known:
                unknown[name] = path.name
    assert unknown == {}


def test_arguments_that_are_called_otherwise_than_their_options_are_there() -> None:
    calls = (sf.sanitize, sf.evaluate, sf.tune, sf.inspect, sf.Release.save, StreamOptions)
    arguments = {name for call in calls for name in inspect.signature(call).parameters} | set(all_parameters())
    assert {name.partition("=")[0] for name in _ARGUMENTS.values()} <= arguments
    assert {"sheet", "encoding", "header_row", "missing"} <= set(inspect.signature(sf.sanitize).parameters)


def test_python_is_told_its_own_arguments() -> None:
    table = pa.table({"age": list(range(20, 60)), "town": ["a", "b"] * 20})
    for call, words in (
        (lambda: sf.inspect(table, sheet="x"), "sheet= is for files"),
        (lambda: sf.sanitize(table, k=1, report=False), "use k=2 or more, or add allow_level_1=True"),
        (lambda: sf.sanitize(table, "no"), "mechanism"),  # type: ignore[arg-type]
    ):
        with pytest.raises(SfumatoError, match=words) as told:
            call()
        assert "--" not in str(told.value)
