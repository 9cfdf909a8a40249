"""Verbs about randomized answers: breach, reconstruct and relate."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

import sfumato as sf
from sfumato.cli.console import Console, tell_error, verb
from sfumato.cli.options import COUNT, FILE, INPUT, check_new, check_plot, options
from sfumato.cli.panels import Verb
from sfumato.core.errors import OptionError
from sfumato.core.option import Panel
from sfumato.core.replacing import check_target, replacing_target
from sfumato.tables.reading import read_input

if TYPE_CHECKING:
    from sfumato.survey.reconstruct import Reconstruction

__all__ = ["breach", "reconstruct", "relate"]

_CHANCE = click.FloatRange(min=0, max=1)


@click.command(cls=Verb)
@click.option("--spec", required=True, type=FILE, panel=Panel.FIRST, help="Noise specification (TOML).")
@click.option(
    "--prior",
    metavar="FILE|uniform",
    default="uniform",
    show_default=True,
    help="What is believed before: CSV of value and probability, or of observed values.",
)
@click.option("--property", metavar="TEXT", help="For example 'x == 0' or 'x not in 200..800'.")
@click.option("--output", metavar="VALUE", help="The answer that is seen.  [default: the worst one]")
@click.option("--rho1", type=_CHANCE, help="Prior probability for the bound.  [default: that of the property]")
@click.option("--rho2", type=_CHANCE, help="Find the parameter that keeps rho1 from becoming this likely.")
@options(plot="Draw prior against worst posterior, .svg.", overwrite="Replace a picture of that name.")
@verb
def breach(console: Console, spec: Path, plot: Path | None, overwrite: bool, **told: Any) -> None:
    """Compute what an answer tells about a property, and what no answer can tell under this noise.

    Gives amplification gamma, epsilon, the bound from rho1 to rho2, and the privacy that is left for one who knows the
    distribution. Exits with 3 where --rho2 is asked for and no parameter of the law meets it.
    """
    from sfumato.survey.figures import guarantee_figure

    check_plot(plot, spec, overwrite=overwrite)
    found = sf.breach(spec, **told)
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
@click.argument("source", metavar="INPUT", type=INPUT)
@click.option("--column", required=True, metavar="COL", panel=Panel.FIRST, help="The column of randomized values.")
@click.option(
    "--spec",
    required=True,
    type=FILE,
    panel=Panel.FIRST,
    help="Noise specification (TOML), or a release's certificate.json.",
)
@click.option("--intervals", type=COUNT, panel=Panel.FIRST, help="Tell the distribution in so many equal intervals.")
@click.option(
    "--stop",
    type=click.Choice(["held-out", "likelihood", "chi-square"]),
    panel=Panel.METHOD,
    help="When the iteration ends; chi-square is the thesis's.  [default: held-out]",
)
@click.option(
    "--method",
    type=click.Choice(["auto", "em", "bayes", "direct"]),
    default="auto",
    show_default=True,
    panel=Panel.METHOD,
    help="The iteration, that of the thesis, or a smooth solution; auto takes the one that predicts better.",
)
@click.option("--bands", type=float, default=0.95, show_default=True, panel=Panel.METHOD, help="Level of the bands.")
@click.option(
    "--strict", is_flag=True, panel=Panel.PRIVACY, help="Refuse values that do not fit the law (exit code 3)."
)
@click.option(
    "--least",
    type=click.FloatRange(min=0),
    default=30.0,
    show_default=True,
    panel=Panel.PRIVACY,
    help="Refuse below this worth.",
)
@click.option("--limit", type=COUNT, default=5000, show_default=True, panel=Panel.METHOD, help="Most iterations.")
@options("plot", first=True, output="Write it to this CSV file.")
@options("encoding", "query", overwrite="Replace files of these names.")
@verb
def reconstruct(
    console: Console,
    source: str,
    column: str,
    spec: Path,
    plot: Path | None,
    output: Path | None,
    overwrite: bool,
    encoding: str | None,
    query: str | None,
    **told: Any,
) -> None:
    """Estimate the distribution behind a column of randomized values; single values stay unknown.

    INPUT is a .csv, .csv.gz, .parquet, .arrow or .feather file, - for CSV on standard input, or a database URL with
    --query. Missing cells are skipped. Refused, with exit code 3, where the records are too few for the noise, and with
    --strict where the values do not look like anything that the law can have made.
    """
    from sfumato.certificate.randomized import read_spec

    check_plot(plot, source, overwrite=overwrite)
    _check_csv(output, source, overwrite=overwrite)
    known = read_spec(spec, column)
    table, _ = read_input(source, encoding=encoding, query=query)
    with console.progress():
        found = sf.reconstruct(table, column, known, **told)
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
@click.argument("source", metavar="INPUT", type=INPUT)
@click.option(
    "--column",
    required=True,
    metavar="COL",
    panel=Panel.FIRST,
    help="A column of randomized values; the response of the line.",
)
@click.option("--to", required=True, metavar="COL", panel=Panel.FIRST, help="Another one; the predictor of the line.")
@click.option(
    "--spec",
    required=True,
    type=FILE,
    panel=Panel.FIRST,
    help="Noise specification (TOML), or a release's certificate.json.",
)
@click.option("--to-spec", type=FILE, panel=Panel.INPUT, help="That of the other column.  [default: that of --spec]")
@click.option("--intervals", type=COUNT, panel=Panel.FIRST, help="Equal intervals of the column.  [default: 5]")
@click.option("--to-intervals", type=COUNT, panel=Panel.METHOD, help="Equal intervals of the other.  [default: 5]")
@click.option("--bands", type=float, default=0.95, show_default=True, panel=Panel.METHOD, help="Level of the bands.")
@click.option(
    "--least",
    type=click.FloatRange(min=0),
    default=30.0,
    show_default=True,
    panel=Panel.PRIVACY,
    help="Refuse below this worth.",
)
@click.option(
    "--strict", is_flag=True, panel=Panel.PRIVACY, help="Refuse values that do not fit the laws (exit code 3)."
)
@options(first=True, output="Write the table to this CSV file.")
@options("encoding", "query", overwrite="Replace a file of that name.")
@verb
def relate(
    console: Console,
    source: str,
    output: Path | None,
    overwrite: bool,
    encoding: str | None,
    query: str | None,
    **told: Any,
) -> None:
    """Estimate how two columns of randomized values go together: their cross table, and a line through the true values.

    The columns must have been randomized independently of each other, as randomize and survey do. INPUT is as for
    reconstruct. Records without one of the two values are skipped. Refused, with exit code 3, where the records are too
    few for the noise.
    """
    _check_csv(output, source, overwrite=overwrite)
    table, _ = read_input(source, encoding=encoding, query=query)
    with console.progress():
        found = sf.relate(table, **told)
    document = found.table.to_document()
    names = [(row, column) for row in found.table.rows.names() for column in found.table.columns.names()]
    shares = ([each for row in document[key] for each in row] for key in _SHARES)
    _write_csv(output, (told["column"], told["to"]), names, shares)
    console.say(found.describe())
    if found.table.missing:
        console.say(f"{found.table.missing} records without one of the values were skipped.")
    if output is not None:
        console.say(f"Look at: {output}")
    console.result({"column": told["column"], "to": told["to"], **found.to_document()})


_SHARES = ("probability", "lower", "upper")


def _check_csv(output: Path | None, source: str, *, overwrite: bool) -> None:
    if output is not None:
        if output.suffix.lower() != ".csv":
            raise OptionError("--output must end in .csv")
        check_new(output, overwrite=overwrite)
        check_target(output, Path(source), overwrite=overwrite)


def _write_csv(output: Path | None, names: tuple[str, ...], places: Iterable[Any], shares: Iterable[Any]) -> None:
    """Write probabilities with their bands beside the places that they are of, where a file is asked for."""
    if output is not None:
        with replacing_target(output) as work, Path(work).open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow((*names, *_SHARES))
            writer.writerows((*where, *numbers) for where, *numbers in zip(places, *shares, strict=True))


def _write(found: Reconstruction, column: str, plot: Path | None, output: Path | None) -> None:
    from sfumato.survey.figures import reconstruction_figure

    if plot is not None:
        with replacing_target(plot) as work:
            Path(work).write_text(reconstruction_figure(found, column).to_svg(), encoding="utf-8")
    told, edges = found.to_document(), found.cells.told_edges
    bounds = [(value,) for value in found.values or ()] if edges is None else pairwise(edges)
    shares = (told[key] for key in _SHARES)  # no band is an empty cell
    _write_csv(output, ("value",) if edges is None else ("from", "to"), bounds, shares)
