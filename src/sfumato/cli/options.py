"""Options that several verbs share, what they mean for the functions that the verbs call, and those of the methods.

The parameters of all methods are options, too, read off the methods.
"""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import rich_click as click
from click.core import ParameterSource

from sfumato.cli.console import Verb
from sfumato.core.arguments import Option, Panel, spelled_option
from sfumato.core.errors import OptionError, SfumatoError, shown
from sfumato.core.replacing import check_target, reason, replacing_file
from sfumato.options import PublishOptions, RunOptions
from sfumato.tables.reading import READING_OPTIONS, FileReading, read_people

if TYPE_CHECKING:
    from sfumato.assess.report import Report
    from sfumato.certificate.signature import Signer
    from sfumato.cli.console import Console
    from sfumato.methods.catalogue import Parameter
    from sfumato.publish.release import Release

__all__ = [
    "COUNT",
    "FILE",
    "INPUT",
    "SEED",
    "WithMethods",
    "check_new",
    "check_output",
    "check_plot",
    "command_words",
    "files_named",
    "holdout_of",
    "keeping_owner_part",
    "offered_methods",
    "options",
    "options_in",
    "options_of_verb",
    "parameters_from",
    "passphrase_prompt",
    "say_dropped",
    "signer_at",
    "take_reading",
    "tell_signer",
    "time_limit_words",
    "usual",
    "whereabouts",
    "write_private",
]

F = TypeVar("F", bound=Callable[..., Any])

FILE = click.Path(path_type=Path)
INPUT = click.Path()  # or - or a URL: a text, of which shells complete names of files
SEED = click.IntRange(min=0)
COUNT = click.IntRange(min=1)

_OF_OUTPUT = ("quiet", "as_json", "debug")
_WRITTEN = ("output", "plot")  # files and folders that are not read
_OF_COMMANDS: dict[str, Option] = {
    "most_bytes": Option("", Panel.INPUT, least=1, metavar="N"),
    "no_sign": Option("Do not sign the release; recipients cannot check who made it.", Panel.OUTPUT),
    "output": Option("Folder for release/ and owner/.", Panel.OUTPUT, path=True),
    "plot": Option("Save a plot (.svg).", Panel.OUTPUT, path=True),
    "query": Option("SQL query, if INPUT is a database URL.", Panel.INPUT),
    "recipe": Option("Repeat a run from its owner/recipe.toml.", path=True),
}
"""Options of the command line alone."""


def _declared_in(*owners: type[Any]) -> dict[str, tuple[Option, Any]]:
    """Options that are fields of some classes, with their defaults."""
    fields = [each for owner in owners for each in dataclasses.fields(owner) if "option" in each.metadata]
    return {each.name: (each.metadata["option"], each.default) for each in fields}


_DECLARED = _declared_in(RunOptions, PublishOptions, FileReading) | {
    name: (option, False if name == "no_sign" else None) for name, option in _OF_COMMANDS.items()
}


def options_of_verb(verb: str) -> Callable[[F], F]:
    """Add every option that a verb accepts, in the order in which they are declared."""
    accepted = {name: option for name, (option, _) in _DECLARED.items() if verb in option.verbs}

    def add(function: F) -> F:
        for name, option in reversed(accepted.items()):
            panel = Panel.FIRST if verb in option.first else option.panel
            function = _declared(name, panel, option.helps.get(verb, option.help))(function)
        return function

    return add


def options_in(owner: type[Any], *names: str) -> Callable[[F], F]:
    """Add the options that a class declares, all or those of some names."""
    declared = _declared_in(owner)

    def add(function: F) -> F:
        for name in reversed(names or tuple(declared)):
            option, default = declared[name]
            function = _offered(name, option, default, option.panel, option.help)(function)
        return function

    return add


def options(*names: str, first: bool = False, **words: str) -> Callable[[F], F]:
    """Add options by their names; with other words of help where a verb means something narrower.

    ``first`` puts them into the panel of those that most people need.
    """

    def add(function: F) -> F:
        for name in reversed((*names, *words)):
            option, _ = _DECLARED[name]
            function = _declared(name, Panel.FIRST if first else option.panel, words.get(name, option.help))(function)
        return function

    return add


def _declared(name: str, panel: Panel, words: str) -> Callable[[F], F]:
    """An option as it was declared, for the command line."""
    return _offered(name, *_DECLARED[name], panel, words)


def _offered(name: str, option: Option, default: Any, panel: Panel, words: str) -> Callable[[F], F]:
    spelt = (("-o",) if name == "output" else ()) + (spelled_option(name, option), name)
    if isinstance(default, bool):
        return click.option(*spelt, is_flag=True, default=default, flag_value=not default, panel=panel, help=words)
    usual = {} if not default and default != "" else {"default": default, "show_default": default != ""}
    return click.option(
        *spelt, type=_type_of(option), multiple=default == (), metavar=option.metavar, panel=panel, help=words, **usual
    )


def _type_of(option: Option) -> Any:
    """How a value is read: one of the choices, a path, a number within bounds, or a text."""
    if option.choices:
        return click.Choice(option.choices)
    if option.path:
        return FILE
    if option.above is not None:
        return click.FloatRange(min=option.above, min_open=True)
    if option.least is None:
        return None
    if isinstance(option.least, int):
        return click.IntRange(min=option.least, max=None if option.most is None else int(option.most))
    return click.FloatRange(min=option.least, max=option.most)


@contextmanager
def keeping_owner_part(console: Console, folder: Path, *, overwrite: bool) -> Iterator[None]:
    """If a release does not meet its policy, write only the owner's part and say what to try."""
    from sfumato.publish.judge import PolicyNotMet

    try:
        yield
    except PolicyNotMet as refused:
        if refused.report is not None:
            refused.save_owner(folder, overwrite=overwrite)
            stays = f"Keep private: {folder / 'owner'} (read report.html first)"
            console.tell([*refused.report.lines(), (0, stays)])
            say_dropped(console, refused.dropped)
        saved = None if refused.report is None else str(folder)
        console.result(
            {"folder": saved, "table": None, "dropped": refused.dropped, "verdict": refused.verdict.to_json()}
        )
        raise


def say_dropped(console: Console, dropped: Mapping[str, str]) -> None:
    """Name every column that is not in the release, with the reason."""
    if dropped:
        console.say(f"Dropped columns ({len(dropped)}):")
        for name, reason in dropped.items():
            console.say_broken(f"  {shown(name)}: {reason}")


def whereabouts(release: Release, folder: Path, form: str) -> list[tuple[int, str]]:
    """Where the release and the owner's part are, and whether the release may be sent."""
    report = release.report
    verdict = None if report is None else report.verdict
    send = "To send:     " if verdict is None or verdict.outcome.value == "meets" else "Do not send: "
    page = ", report-public.html"
    if report is None or release.together or release.certificate.privacy is not None:
        page = ""
    stays = "recipe.toml repeats the run" if report is None else "read report.html first"
    return [
        (0, f"{send} {folder / 'release'} (table.{form}, certificate.json{page})"),
        (0, f"Keep private: {folder / 'owner'} ({stays})"),
    ]


def holdout_of(text: str | None, reading: FileReading, missing: tuple[str, ...]) -> Any:
    """Share of people to hold out, or the table of people who were."""
    try:
        return None if text is None else float(text)
    except ValueError:
        return read_people(str(text), reading, missing=missing)[0]


def take_reading(arguments: dict[str, Any]) -> tuple[FileReading, str | None, tuple[str, ...]]:
    """Options of reading and the query, taken out of all arguments, and missing-value marks, which the schema needs."""
    from sfumato.tables.schema import missing_marks

    reading = FileReading(**{name: arguments.pop(name) for name in READING_OPTIONS})
    return reading, arguments.pop("query"), missing_marks(arguments["schema"], arguments["missing"])


def command_words(without: Collection[str] = ()) -> tuple[str, ...]:
    """Words of the command line that is being run, for what to try next; without what only shapes the output.

    ``without`` names options to leave out besides.

    A database URL may hold a password, so that it is not repeated.
    """
    context = click.get_current_context()
    assert context is not None
    words = ["sfumato", str(context.info_name)]
    for parameter in sorted(context.command.get_params(context), key=lambda each: each.param_type_name != "argument"):
        parameter_source = context.get_parameter_source(parameter.name or "")
        if parameter_source is not ParameterSource.COMMANDLINE or parameter.name in (*_OF_OUTPUT, *without):
            continue
        value = context.params[parameter.name or ""]
        if parameter.param_type_name == "argument":
            words.append("INPUT" if "://" in str(value) else str(value))
        elif isinstance(value, bool):
            words.append(parameter.opts[0])
        else:
            several = value if parameter.multiple else (value,)
            words += [word for each in several for word in (parameter.opts[0], *_words(each))]
    return tuple(words)


def _words(value: Any) -> list[str]:
    return [str(each) for each in (value if isinstance(value, tuple) else (value,))]


def time_limit_words(report: Report) -> str | None:
    """Say what was chosen to fit a time limit; nothing where none was given."""
    sizes, rows = report.sizes, report.rows_original
    if sizes.get("time_limit") is None:
        return None
    attempts, training = min(sizes["attempts"], rows), min(sizes["training"], rows)
    measured = f"Measured on up to {attempts} people per attack and {training} training rows"
    estimate, time_limit = f"{sizes['estimate']:g} s", f"{sizes['time_limit']:g} s"
    if sizes["estimate"] > sizes["time_limit"]:
        return f"{measured}, the fewest possible (estimated time {estimate}; limit {time_limit})."
    return f"{measured} (estimated time {estimate}; limit {time_limit})."


def usual(*spelt: str, default: Any, words: str, **settings: Any) -> Callable[[F], F]:
    """Add an option that has a default, which the help shows."""
    return click.option(*spelt, default=default, show_default=True, help=words, **settings)


def write_private(path: Path, text: str, what: str, *, private: bool = True) -> None:
    """Write a text file whole or not at all; by default for its owner's eyes alone."""
    try:
        with replacing_file(path, private=private) as work:
            work.write_text(text, encoding="utf-8")
    except OSError as error:
        raise SfumatoError(
            f"the {what} could not be written ({reason(error)}); free disk space or choose another folder"
        ) from None


def offered_methods(_context: Any, _option: Any, begun: str) -> list[str]:
    """Methods whose names begin so, for a shell."""
    from sfumato.registry import method_names

    return [name for name in method_names() if name.startswith(begun)]


def files_named() -> list[Path]:
    """Files and folders that the command line names to be read: inputs, schemas, keys, states, policies."""
    context = click.get_current_context()
    assert context is not None
    named: list[Path] = []
    for parameter in context.command.get_params(context):
        if parameter.name in _WRITTEN or not (
            isinstance(parameter.type, click.Path) or "FILE" in str(getattr(parameter, "metavar", ""))
        ):
            continue
        value = context.params.get(parameter.name or "")
        for each in value if isinstance(value, tuple) else (value,):
            text = os.path.realpath("/dev/stdin") if each == "-" else str(each or "").removeprefix("sqlite:///")
            named += [Path(name) for name in {text, text.partition("=")[2]} if name and os.path.lexists(name)]
    return named


def check_output(folder: Path, *, overwrite: bool, contents: str = "release", inputs: Iterable[object] = ()) -> None:
    """Refuse an output folder that may not be replaced, or that holds what the command line names to be read."""
    from sfumato.publish.folder import check_folder

    check_folder(folder, overwrite=overwrite, contents=contents, inputs=(*files_named(), *inputs))


def check_new(path: Path | None, *, overwrite: bool) -> None:
    """Refuse a file that is there already, unless it may be replaced and is none that is read."""
    if path is None or not path.exists():
        return
    if not path.is_file():
        raise OptionError(f"the output {str(path)!r} exists and is not a file; choose another name")
    if not overwrite:
        raise OptionError(f"the file {str(path)!r} exists; choose another, or replace it with --overwrite")
    if any(each.exists() and each.samefile(path) for each in files_named()):
        raise OptionError(f"the output {str(path)!r} is also read by this command; choose another name")


def check_plot(path: Path | None, source: str | Path, *, overwrite: bool) -> None:
    """Refuse the name of a drawing that could not be written."""
    if path is None:
        return
    if path.suffix.lower() != ".svg":
        raise OptionError("--plot must end in .svg")
    check_target(path, Path(source), overwrite=overwrite)


def signer_at(sign: Path | None, output: Path, *, no_sign: bool, dry_run: bool) -> Signer | None:
    """Who signs, by the file of a key or the owner's own; a passphrase is asked for at a terminal."""
    from sfumato.publish.release import signer_of

    if no_sign and sign is not None:
        raise OptionError("--sign has no effect with --no-sign; drop one of them")
    return signer_of(False if no_sign else sign, dry_run=dry_run, folder=output, ask=passphrase_prompt())


def passphrase_prompt() -> Callable[[], str] | None:
    """What asks for the passphrase of a key; nothing where nobody sits at a terminal."""
    return _ask_passphrase if sys.stdin.isatty() and sys.stderr.isatty() else None


def tell_signer(console: Console, release: Release) -> None:
    """Say who signed a release, and what recipients need to know; nothing for a dry run."""
    if release.signed_by is not None:
        console.say(f"Signed by {release.signed_by}.\nSend the recipient this fingerprint by a different channel.")
    elif release.certificate.randomness == "release":
        console.say("Not signed: the recipient cannot check who made this release.")


def _ask_passphrase() -> str:
    return str(click.prompt("Passphrase of the key", hide_input=True, err=True, default="", show_default=False))


class WithMethods(Verb):
    """Has an option for each parameter of each method, read off the methods when the verb is run."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Options of the verb, those of the methods among them."""
        from sfumato.methods.catalogue import all_parameters

        if not any(param.name == "k" for param in self.params):
            derived = [_parameter_option(each) for each in all_parameters().values()]
            first = next(place for place, param in enumerate(self.params) if param.name == "key")
            self.params[first:first] = derived
        return super().get_params(ctx)


def _parameter_option(parameter: Parameter) -> click.Option:
    name, option = parameter.name, parameter.option
    assert option is not None
    plain = f"--{name.replace('_', '-')}"
    spelt = (plain, *(each for each in (spelled_option(name, option),) if each != plain), name)
    declared = partial(click.RichOption, spelt, help=option.help, panel=option.panel)
    if parameter.kind is bool:
        return declared(is_flag=True)
    if parameter.by_column:
        value = (
            "FILE" if name == "specs" else "LAW" if parameter.kind is str else ("N", "LOW,HIGH")[parameter.values - 1]
        )
        return declared(multiple=True, metavar=f"COLUMN={value}")
    if parameter.several:
        return declared(multiple=True, metavar="COL")
    choices = click.Choice(option.choices) if option.choices else parameter.kind
    metavar = "LOW HIGH" if parameter.width > 1 else None
    return declared(type=choices, nargs=parameter.width, metavar=metavar)


def parameters_from(entries: Mapping[str, Any]) -> dict[str, object]:
    """Given parameters of a method, with those of columns parsed; 0 counts as given."""
    from sfumato.methods.catalogue import all_parameters

    known = all_parameters()
    chosen = {name: entries[name] for name in known if entries[name] not in (None, ()) and entries[name] is not False}
    by_column = {name: texts for name, texts in chosen.items() if known[name].by_column}
    return chosen | {name: tuple(_of_column(known[name], text) for text in texts) for name, texts in by_column.items()}


def _of_column(parameter: Parameter, text: str) -> tuple[Any, ...]:
    """Read COLUMN=VALUE; the file of a specification as text, so that a recipe can repeat it."""
    from sfumato.core.distributions.spec import NoiseSpec

    name, (column, _, value) = parameter.name, text.partition("=")
    if name == "specs":
        if not column or not value:
            raise OptionError("--spec takes a column and a file, as in --spec age=age.toml; write both")
        return column, NoiseSpec.read(value).canonical
    try:
        values = tuple(parameter.kind(each) for each in value.split(","))
    except ValueError:
        values = ()
    if not column or len(values) != parameter.values or "" in values:
        assert parameter.option is not None
        example = parameter.option.help.rpartition("as in ")[2].partition(";")[0]
        raise OptionError(f"--{name.replace('_', '-')} takes a column and its value, as in {example}; write both")
    return column, *values
