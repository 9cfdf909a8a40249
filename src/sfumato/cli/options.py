"""Options that several verbs share, what they mean for the functions that the verbs call, and those of the methods.

The parameters of all methods are options, too, read off the methods.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import rich_click as click
from click.core import ParameterSource

from sfumato.cli.panels import Panel, Verb
from sfumato.core.errors import OptionError, SfumatoError, shown
from sfumato.core.replacing import check_target, reason, replacing_file
from sfumato.tables.reading import READING_OPTIONS, FileReading, read_people

if TYPE_CHECKING:
    from sfumato.assess.report import Report
    from sfumato.cli.console import Console
    from sfumato.methods.catalogue import Parameter
    from sfumato.publish.release import Release
    from sfumato.publish.signature import Signer
    from sfumato.tables.files import FileForm

__all__ = [
    "CHOICES",
    "COUNT",
    "FILE",
    "INPUT",
    "SEED",
    "WORDS",
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
    "other_file",
    "parameters_told",
    "passphrase_prompt",
    "read_as",
    "reading_told",
    "say_dropped",
    "signer_at",
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
_FLAG: dict[str, Any] = {"is_flag": True}
_OPTIONS: dict[str, tuple[Panel, str, dict[str, Any]]] = {
    "accurate_within": (
        Panel.MEASURING,
        "Largest error at which a predicted response counts as correct, in its units.  [default: its step, or a tenth "
        "of its standard deviation]",
        {"type": click.FloatRange(min=0.0), "metavar": "X"},
    ),
    "time_limit": (
        Panel.MEASURING,
        "Time limit of the measurement; fewer rows are measured if necessary.",
        {"type": click.FloatRange(min=0, min_open=True), "metavar": "SECONDS"},
    ),
    "clusters": (
        Panel.MEASURING,
        "Number of clusters when clusterings are compared.  [default: the classes of the target, else 5]",
        {"type": click.IntRange(min=2), "metavar": "K"},
    ),
    "decimal": (
        Panel.INPUT,
        "Decimal separator of CSV.  [default: detected from the numbers]",
        {"type": click.Choice([".", ","])},
    ),
    "delimiter": (Panel.INPUT, "Delimiter of CSV.  [default: detected from the header]", {"metavar": "MARK"}),
    "despite_policy": (Panel.PRIVACY, "Release even if the policy is not met; the certificate records it.", _FLAG),
    "engine": (
        Panel.ENGINE,
        "All rows in memory; a file in partitions, with encrypted temporary files; or a cluster.  [default: memory, "
        "unless the file needs more than --memory]",
        {"type": click.Choice(["memory", "chunks", "spark"])},
    ),
    "encoding": (
        Panel.INPUT,
        "Encoding of CSV, such as utf-8, cp1252 or latin-1.  [default: utf-8, or detected]",
        {"metavar": "NAME"},
    ),
    "form": (
        Panel.OUTPUT,
        "File format of the release.  [default: that of INPUT]",
        {"type": click.Choice(["csv", "parquet", "arrow", "xlsx", "ods", "sqlite"])},
    ),
    "header_row": (
        Panel.INPUT,
        "Row of a workbook, or line of CSV, with the column names, counted from 1.  [default: the first, or the one "
        "below a title]",
        {"type": COUNT, "metavar": "N"},
    ),
    "holdout": (
        Panel.MEASURING,
        "Control group for the attacks: a file, or the share to hold out.",
        {"metavar": "FILE|FRACTION"},
    ),
    "identifier": (Panel.COLUMNS, "Direct identifier to drop; repeatable.", {"multiple": True, "metavar": "COL"}),
    "keep_persons": (Panel.METHOD, "condense: several rows per person, under new person numbers.", _FLAG),
    "master": (Panel.ENGINE, "Spark master, such as spark://host:7077 or local[2].", {"metavar": "URL"}),
    "memory": (
        Panel.ENGINE,
        "Memory limit of the run, such as 512M or 2G.  [default: 1.5G, or half of the memory]",
        {"metavar": "SIZE"},
    ),
    "resume_key": (
        Panel.ENGINE,
        "In partitions: key to resume an interrupted run, created here (mode 600) and removed at the end.",
        {"type": FILE, "metavar": "FILE"},
    ),
    "quasi_identifier": (
        Panel.MEASURING,
        "Quasi-identifier: a column an attacker may know, or COL@N, its labels at level N; repeatable.  "
        "[default: a few columns, and half of them]",
        {"multiple": True, "metavar": "COL"},
    ),
    "level": (
        Panel.PRIVACY,
        "Minimum group size of each record: a column, a number, or 'age > 60: 12, else: 5'.",
        {"metavar": "COL|N|RULE"},
    ),
    "missing": (
        Panel.INPUT,
        "Text or number that stands for a missing value, in every column; repeatable.  [default: the usual ones, and "
        "those detected]",
        {"multiple": True, "metavar": "MARK"},
    ),
    "most_bytes": (Panel.INPUT, "", {"type": COUNT, "metavar": "N"}),
    "no_sign": (Panel.OUTPUT, "Do not sign the release; recipients cannot check who made it.", _FLAG),
    "no_report": (Panel.MEASURING, "Do not measure risk and utility.", _FLAG),
    "no_rules": (Panel.COLUMNS, "Allow rows that break rules between columns which hold in the original.", _FLAG),
    "output": (Panel.OUTPUT, "Folder for release/ and owner/.", {"type": FILE}),
    "overwrite": (Panel.OUTPUT, "Replace an earlier release in that folder.", _FLAG),
    "person": (Panel.COLUMNS, "Person identifier: dropped, and group sizes count persons.", {"metavar": "COL"}),
    "plot": (Panel.OUTPUT, "Save a plot (.svg).", {"type": FILE}),
    "policy": (
        Panel.PRIVACY,
        "Policy that the release must meet: trusted, research, public, or a file.",
        {"metavar": "NAME|FILE"},
    ),
    "public": (Panel.COLUMNS, "Column to release unchanged; repeatable.", {"multiple": True, "metavar": "COL"}),
    "query": (Panel.INPUT, "SQL query, if INPUT is a database URL.", {}),
    "rare": (
        Panel.PRIVACY,
        "Rare categories (fewer than k persons): pool, lift in their hierarchy, or keep.  [default: lift or pool]",
        {"type": click.Choice(["pool", "lift", "keep"])},
    ),
    "recipe": (Panel.METHOD, "Repeat a run from its owner/recipe.toml.", {"type": FILE}),
    "rows": (
        Panel.METHOD,
        "Number of synthetic rows.  [default: as many as records]",
        {"type": COUNT, "metavar": "N"},
    ),
    "rows_are_people": (
        Panel.COLUMNS,
        "Each row is one person, even if a column looks like a person identifier.",
        _FLAG,
    ),
    "schema": (Panel.COLUMNS, "Schema file, from inspect.", {"type": FILE}),
    "seed": (Panel.METHOD, "Dry run: reproducible, marked as not for release.", {"type": SEED, "metavar": "N"}),
    "sheet": (
        Panel.INPUT,
        "Sheet of a workbook, or table of an SQLite file.  [default: the first that contains a table]",
        {"metavar": "NAME"},
    ),
    "sign": (
        Panel.OUTPUT,
        "Private key (Ed25519) to sign with, instead of your own (see signing-key).",
        {"type": FILE},
    ),
    "strata": (
        Panel.PRIVACY,
        "Form groups within each value of this column, which becomes certain.",
        {"metavar": "COL"},
    ),
    "tails": (
        Panel.PRIVACY,
        "Extreme values (fewer than k persons): code to a cut-off, smooth, or keep.  [default: code]",
        {"type": click.Choice(["code", "smooth", "keep"])},
    ),
    "target": (Panel.COLUMNS, "Column to predict: a class or a response.", {"metavar": "COL"}),
    "weight": (
        Panel.COLUMNS,
        "Survey weight: how many people a row represents; the total is kept.",
        {"metavar": "COL"},
    ),
    "where": (Panel.METHOD, "chain: synthetic rows only where 'age > 60 and sex == F'.", {"metavar": "RULE"}),
}
"""Options that mean the same whatever verb has them: help, and how they are read."""

_SPELT = {
    "form": ("--format", "form"),
    "identifier": ("--identifier", "identifiers"),
    "quasi_identifier": ("--quasi-identifier", "quasi_identifiers"),
    "output": ("-o", "--output"),
}


def options(*names: str, first: bool = False, **words: str) -> Callable[[F], F]:
    """Add options by their names; with other words of help where a verb means something narrower.

    ``first`` puts them into the panel of those that most people need.
    """

    def add(function: F) -> F:
        for name in reversed((*names, *words)):
            panel, usual, settings = _OPTIONS[name]
            spelt = _SPELT.get(name, (f"--{name.replace('_', '-')}", name))
            settings = {"panel": Panel.FIRST if first else panel, "help": words.get(name, usual), **settings}
            function = click.option(*spelt, **settings)(function)
        return function

    return add


@contextmanager
def keeping_owner_part(console: Console, folder: Path, *, overwrite: bool) -> Iterator[None]:
    """Where a release does not meet its policy, write what stays with the owner alone, and say what to try."""
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
    page = "" if report is None else ", report-public.html"
    stays = "recipe.toml repeats the run" if report is None else "read report.html first"
    return [
        (0, f"{send} {folder / 'release'} (table.{form}, certificate.json{page})"),
        (0, f"Keep private: {folder / 'owner'} ({stays})"),
    ]


def holdout_of(text: str | None, reading: Mapping[str, Any], usual: float | None = None) -> Any:
    """Share of people to hold out, or the table of people who were."""
    try:
        return usual if text is None else float(text)
    except ValueError:
        return read_people(str(text), **reading)[0]


def reading_told(told: dict[str, Any]) -> dict[str, Any]:
    """How a table is read, taken out of all that was told; what means a missing cell stays, the schema needs it too."""
    from sfumato.tables.schema import missing_marks

    reading = {name: told.pop(name) for name in (*READING_OPTIONS, "query")}
    return reading | {"missing": missing_marks(told["schema"], told["missing"])}


def other_file(reading: Mapping[str, Any], form: FileForm) -> dict[str, Any]:
    """How another file than INPUT is read: written alike, but with a sheet and a header of its own."""
    own = {"query": None, "sheet": None, "header_row": None}
    return {**reading, **own, "decimal": reading["decimal"] or form.decimal}


def read_as(reading: Mapping[str, Any], form: FileForm) -> FileReading:
    """How INPUT was read, for the recipe that reads it again."""
    return FileReading(**{name: reading[name] for name in READING_OPTIONS}).repeated(form)


def command_words(without: Collection[str] = ()) -> tuple[str, ...]:
    """Words of the command line that is being run, for what to try next; without what only shapes the output.

    ``without`` names options to leave out besides.

    A database URL may hold a password, so that it is not repeated.
    """
    context = click.get_current_context()
    assert context is not None
    words = ["sfumato", str(context.info_name)]
    for parameter in sorted(context.command.get_params(context), key=lambda each: each.param_type_name != "argument"):
        told = context.get_parameter_source(parameter.name or "")
        if told is not ParameterSource.COMMANDLINE or parameter.name in (*_OF_OUTPUT, *without):
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
    from sfumato.methods.catalogue import METHODS

    return [name for name in METHODS if name.startswith(begun)]


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
    """Say who signed a release, and what recipients must be told of it; nothing of a dry run."""
    if release.signed_by is not None:
        console.say(f"Signed by {release.signed_by}.\nSend the recipient this fingerprint by a different channel.")
    elif release.certificate.randomness == "release":
        console.say("Not signed: the recipient cannot check who made this release.")


def _ask_passphrase() -> str:
    return str(click.prompt("Passphrase of the key", hide_input=True, err=True, default="", show_default=False))


WORDS: dict[str, str] = {
    "k": "Minimum group size of all records.  [default: 10 to 50, 2 with --level; classwise chooses; block 5]",
    "grouping": "How records are grouped.  [default: compact]",
    "effort": "How long the compact grouping searches.",
    "allow_level_1": "Allow records with a minimum group size of 1, which are not protected.",
    "tolerance": "classwise: unit of the GCD, as a share of the smallest class.  [default: the best of 0.05 to 0.2]",
    "scores": "condense: form groups on the numbers themselves, or on their normal scores.",
    "response_weight": "Weight of the target in the distance between records.",
    "leaf": "chain, swap, downgrade: minimum number of people in a leaf of a tree.  [default: 50]",
    "order": "chain: column to synthesize first, before the target; repeatable.",
    "kind": "noise: kind of noise.  [default: additive]",
    "law": "noise: distribution of the noise.  [default: gaussian]",
    "size": "noise: standard deviation of the noise, in standard deviations of each column.",
    "correlated": "noise: give the noise the correlations of the data.",
    "enhance": "noise and geometry: share of the rows that get extra noise.",
    "enhance_size": "noise and geometry: standard deviation of the extra noise.",
    "enhance_laws": "noise and geometry: distribution of a column's extra noise, as in age=uniform; repeatable.",
    "enhance_means": "noise and geometry: mean of that noise in standard deviations, as in age=0.5; repeatable.",
    "exact_digits": "geometry: write all digits of the transformed numbers, which reveal the key.",
    "groups": "laplace-pca: number of groups, instead of --k.",
    "b": "laplace-pca: noise scale in ranges; odds change by at most e^(1/b).  [default: 0.2]",
    "guarantee": "laplace-pca: bound the odds of each component, or of the whole record.",
    "rho1": "laplace-pca: prior probability.  [default: 0.001]",
    "rho2": "laplace-pca: largest posterior probability, which determines b.",
    "epsilon": "randomize: local epsilon of each column without --spec.",
    "specs": "randomize: noise specification of a column, as in age=age.toml; repeatable.",
    "pass_missing": "randomize: release which values are missing.",
    "allow_observed": "randomize: use domains observed in the data.",
    "shifts": "translate, hybrid: range of a column's shift in its own units, as in age=-5,5; repeatable.",
    "deviations": "translate, hybrid: range of all other shifts, in standard deviations.  [default: -3 3]",
    "factors": "scale, hybrid: range of a column's factor, as in pay=0.5,0.9; repeatable.",
    "factor": "scale, hybrid: range of all other factors.  [default: 0.5 2]",
    "degrees": "rotate, hybrid: range of the angles.  [default: 0 360]",
    "units": "rotate, hybrid: unit of a column, as in pay=1000; repeatable.",
    "pairs": "rotate, hybrid: which columns are rotated together.  [default: chain]",
    "pass_categories": "noise, geometry, swap: release categories as they are.",
    "within": "swap: between rows of similar rank, or in a leaf of a tree that predicts the target.  [default: window]",
    "window": "swap: largest difference in rank, in percent of the rows.  [default: 5]",
    "columns": "swap: column to swap; block: a quasi-identifier; repeatable.  [default: see the docs]",
    "share": "subsample: share of the people in the sample.  [default: 0.1]",
    "coarsened": "aggregate: level of a column's hierarchy, as in born=3; repeatable.",
    "widths": "aggregate: width of the intervals of a column of numbers, as in age=10; repeatable.",
    "private": "downgrade: column of the label to hide.",
    "limit": "downgrade: largest information gain of a rule about it, in bits.  [default: 0.3]",
    "hidden": "downgrade: share of the people whose label is hidden.  [default: 1]",
}
"""Help of each parameter of a method, in the order of the help page."""

CHOICES = {
    "grouping": ("compact", "mdav", "paper", "modified", "holistic"),
    "effort": ("fast", "default", "thorough"),
    "scores": ("plain", "normal"),
    "kind": ("additive", "multiplicative"),
    "law": ("gaussian", "uniform", "laplace"),
    "guarantee": ("component", "record"),
    "pairs": ("chain", "disjoint"),
    "within": ("window", "leaves"),
}
"""Allowed values of some parameters."""

_ALSO = {"kind": ("--noise",), "specs": ("--spec",)}
_PANELS = {"k": Panel.FIRST, "allow_level_1": Panel.PRIVACY}  # of parameters that are not about one method


class WithMethods(Verb):
    """Has an option for each parameter of each method, read off the methods when the verb is run."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Options of the verb, those of the methods among them."""
        from sfumato.methods.catalogue import all_parameters

        if not any(param.name == "k" for param in self.params):
            derived = [_option(all_parameters()[name]) for name in WORDS]
            first = next(place for place, param in enumerate(self.params) if param.name == "key")
            self.params[first:first] = derived
        return super().get_params(ctx)


def _option(parameter: Parameter) -> click.Option:
    name = parameter.name
    spelt = (f"--{name.replace('_', '-')}", *_ALSO.get(name, ()), name)
    settings: dict[str, Any] = {"help": WORDS[name], "panel": _PANELS.get(name, Panel.METHOD)}
    if parameter.kind is bool:
        return click.RichOption(spelt, is_flag=True, **settings)
    if parameter.by_column:
        value = (
            "FILE" if name == "specs" else "LAW" if parameter.kind is str else ("N", "LOW,HIGH")[parameter.values - 1]
        )
        return click.RichOption(spelt, multiple=True, metavar=f"COLUMN={value}", **settings)
    if parameter.several:
        return click.RichOption(spelt, multiple=True, metavar="COL", **settings)
    choices = click.Choice(CHOICES[name]) if name in CHOICES else parameter.kind
    metavar = "LOW HIGH" if parameter.width > 1 else None
    return click.RichOption(spelt, type=choices, nargs=parameter.width, metavar=metavar, **settings)


def parameters_told(told: dict[str, Any]) -> dict[str, Any]:
    """Parameters of a method that were told; those of columns read, and 0 is a number that was told."""
    from sfumato.methods.catalogue import all_parameters

    chosen = {name: told[name] for name in WORDS if told[name] not in (None, ()) and told[name] is not False}
    for name, given in chosen.items():
        if all_parameters()[name].by_column:
            chosen[name] = tuple(_of_column(all_parameters()[name], text) for text in given)
    return chosen


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
        example = WORDS[name].rpartition("as in ")[2].partition(";")[0]
        raise OptionError(f"--{name.replace('_', '-')} takes a column and its value, as in {example}; write both")
    return column, *values
