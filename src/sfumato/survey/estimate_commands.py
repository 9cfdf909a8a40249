"""Verbs about randomized answers: breach, reconstruct and relate."""

from __future__ import annotations

import csv
import math
import sys
from collections.abc import Iterable, MutableMapping
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

import sfumato as sf
from sfumato.cli.console import Console, Verb, tell_error, verb
from sfumato.cli.options import COUNT, FILE, INPUT, check_new, check_plot, options, usual
from sfumato.core.arguments import Panel
from sfumato.core.errors import OptionError
from sfumato.core.replacing import check_target, replacing_target
from sfumato.tables.reading import FileReading, read_input

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.survey.reconstruct import CrossTable, Reconstruction

__all__ = ["breach", "reconstruct", "relate"]

_CHANCE = click.FloatRange(min=0, max=1)
_source = click.argument("source", metavar="INPUT", type=INPUT)
_spec = click.option(
    "--spec",
    required=True,
    type=FILE,
    panel=Panel.FIRST,
    help="Noise specification (TOML), or a release's certificate.json.",
)
_bands = usual("--bands", type=float, default=0.95, panel=Panel.METHOD, words="Confidence level of the bands.")
_least = usual(
    "--least",
    type=click.FloatRange(min=0),
    default=30.0,
    panel=Panel.PRIVACY,
    words="Refuse below this effective number of records.",
)


@click.command(cls=Verb)
@click.option("--spec", required=True, type=FILE, panel=Panel.FIRST, help="Noise specification (TOML).")
@click.option(
    "--prior",
    metavar="FILE|uniform",
    default="uniform",
    show_default=True,
    help="Prior distribution: CSV of value and probability, or of observed values.",
)
@click.option("--property", metavar="TEXT", help="For example 'x == 0' or 'x not in 200..800'.")
@click.option("--output", metavar="VALUE", help="Observed answer.  [default: the most revealing one]")
@click.option("--rho1", type=_CHANCE, help="Prior probability for the bound.  [default: that of the property]")
@click.option("--rho2", type=_CHANCE, help="Largest posterior probability: find the noise parameter that keeps it.")
@options(plot="Save a plot of prior and largest posterior (.svg).", overwrite="Replace an existing file.")
@verb
def breach(console: Console, spec: Path, plot: Path | None, overwrite: bool, **arguments: Any) -> None:
    """Compute posterior probabilities and privacy bounds of a noise specification.

    Prints amplification gamma, epsilon, the rho1-to-rho2 bound, and the remaining privacy against an attacker who knows
    the distribution. Exits with 3 if no parameter of the noise meets --rho2.
    """
    from sfumato.survey.verbs import guarantee_figure

    check_plot(plot, spec, overwrite=overwrite)
    found = sf.breach(spec, **arguments)
    if plot is not None:
        with replacing_target(plot) as work:
            Path(work).write_text(guarantee_figure(found.spec.gamma, found.found).to_svg(), encoding="utf-8")
    console.say(found.describe())
    if plot is not None:
        console.say(f"Look at: {plot}")
    console.result(found.to_json())
    if found.solution is not None and found.solution.parameter is None:
        tell_error("sfumato: no parameter of this law keeps rho1 from becoming rho2; use another law, or other bounds")
        sys.exit(3)


@click.command(cls=Verb)
@_source
@click.option("--column", required=True, metavar="COL", panel=Panel.FIRST, help="Column of randomized values.")
@_spec
@click.option("--intervals", type=COUNT, panel=Panel.FIRST, help="Number of equal intervals of the estimate.")
@click.option(
    "--stop",
    type=click.Choice(["held-out", "likelihood", "chi-square"]),
    panel=Panel.METHOD,
    help="Stopping rule of the iteration; chi-square is the thesis's.  [default: held-out]",
)
@usual(
    "--method",
    type=click.Choice(["auto", "em", "bayes", "direct"]),
    default="auto",
    panel=Panel.METHOD,
    words="EM iteration, the thesis's iteration, or a smooth solution; auto takes the one that predicts better.",
)
@_bands
@click.option(
    "--strict",
    is_flag=True,
    panel=Panel.PRIVACY,
    help="Refuse values that do not fit the noise distribution (exit code 3).",
)
@_least
@usual("--limit", type=COUNT, default=5000, panel=Panel.METHOD, words="Largest number of iterations.")
@options("plot", first=True, output="Write the estimate to this CSV file.")
@options("encoding", "query", overwrite="Replace existing files.")
@verb
def reconstruct(
    console: Console,
    source: str,
    column: str,
    spec: Path,
    plot: Path | None,
    output: Path | None,
    overwrite: bool,
    **arguments: Any,
) -> None:
    """Reconstruct the distribution of the original values from a column of randomized values.

    INPUT is a .csv, .csv.gz, .parquet, .arrow or .feather file, - for CSV on standard input, or a database URL with
    --query. Missing values are skipped. Exits with 3 if the records are too few for the noise and, with --strict, if
    the values do not fit the noise distribution.
    """
    from sfumato.survey.verbs import read_spec

    check_plot(plot, source, overwrite=overwrite)
    _check_csv(output, source, overwrite=overwrite)
    known = read_spec(spec, column)
    table = _read(source, arguments)
    with console.progress():
        found = sf.reconstruct(table, column, known, **arguments)
    _write(found, column, plot, output)
    if output is None:
        console.say(found.chart())
    console.say(found.describe())
    if found.missing:
        console.say(f"{found.missing} missing cells were skipped.")
    for path in (plot, output):
        if path is not None:
            console.say(f"Look at: {path}")
    console.result({"column": column, "spec": known.digest, **found.to_document(), "missing": found.missing})


@click.command(cls=Verb)
@_source
@click.option(
    "--column",
    required=True,
    metavar="COL",
    panel=Panel.FIRST,
    help="Column of randomized values; the response of the regression.",
)
@click.option(
    "--to", required=True, metavar="COL", panel=Panel.FIRST, help="Second column of randomized values; the predictor."
)
@_spec
@click.option(
    "--to-spec",
    type=FILE,
    panel=Panel.INPUT,
    help="Noise specification of the second column.  [default: that of --spec]",
)
@click.option("--intervals", type=COUNT, panel=Panel.FIRST, help="Equal intervals of the first column.  [default: 5]")
@click.option(
    "--to-intervals", type=COUNT, panel=Panel.METHOD, help="Equal intervals of the second column.  [default: 5]"
)
@_bands
@_least
@click.option(
    "--strict",
    is_flag=True,
    panel=Panel.PRIVACY,
    help="Refuse values that do not fit the noise distributions (exit code 3).",
)
@options(first=True, output="Write the table to this CSV file.")
@options("encoding", "query", overwrite="Replace an existing file.")
@verb
def relate(console: Console, source: str, output: Path | None, overwrite: bool, **arguments: Any) -> None:
    """Estimate the association of two randomized columns: cross table and regression line of the original values.

    The columns must have been randomized independently, as randomize and survey do. INPUT is as for reconstruct.
    Records without one of the two values are skipped. Exits with 3 if the records are too few for the noise.
    """
    _check_csv(output, source, overwrite=overwrite)
    table = _read(source, arguments)
    with console.progress():
        found = sf.relate(table, **arguments)
    names = [(row, column) for row in found.table.rows.names() for column in found.table.columns.names()]
    _write_csv(output, (arguments["column"], arguments["to"]), names, found.table)
    console.say(found.describe())
    if found.table.missing:
        console.say(f"{found.table.missing} records without one of the values were skipped.")
    if output is not None:
        console.say(f"Look at: {output}")
    console.result({"column": arguments["column"], "to": arguments["to"], **found.to_document()})


_SHARES = ("probability", "lower", "upper")


def _read(source: str, arguments: MutableMapping[str, Any]) -> pa.Table:
    """The table, with the options of reading taken out of all arguments."""
    return read_input(source, FileReading(encoding=arguments.pop("encoding")), query=arguments.pop("query"))[0]


def _check_csv(output: Path | None, source: str, *, overwrite: bool) -> None:
    if output is not None:
        if output.suffix.lower() != ".csv":
            raise OptionError("--output must end in .csv")
        check_new(output, overwrite=overwrite)
        check_target(output, Path(source), overwrite=overwrite)


def _write_csv(
    output: Path | None, names: tuple[str, ...], places: Iterable[tuple[Any, ...]], found: Reconstruction | CrossTable
) -> None:
    """Write probabilities with their bands beside the places that they are of, where a file is asked for."""
    if output is not None:
        columns = (getattr(found, name).ravel().tolist() for name in _SHARES)
        shares = [[None if math.isnan(each) else each for each in column] for column in columns]  # no band is empty
        with replacing_target(output) as work, Path(work).open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow((*names, *_SHARES))
            writer.writerows((*where, *numbers) for where, *numbers in zip(places, *shares, strict=True))


def _write(found: Reconstruction, column: str, plot: Path | None, output: Path | None) -> None:
    from sfumato.survey.verbs import reconstruction_figure

    if plot is not None:
        with replacing_target(plot) as work:
            Path(work).write_text(reconstruction_figure(found, column).to_svg(), encoding="utf-8")
    edges = found.cells.written_edges
    bounds = [(value,) for value in found.values or ()] if edges is None else pairwise(edges)
    _write_csv(output, ("value",) if edges is None else ("from", "to"), bounds, found)
