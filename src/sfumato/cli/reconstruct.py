"""reconstruct: the distribution behind a column of randomized values, with bands."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from sfumato.cli.console import Console, verb
from sfumato.cli.options import read_input, reading_options
from sfumato.errors import OptionError, SchemaError

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from sfumato.laws.spec import NoiseSpec
    from sfumato.randomize.reconstruct import Reconstruction

__all__ = ["reconstruct"]


@click.command()
@click.argument("source", metavar="INPUT")
@click.option("--column", required=True, metavar="COL", help="The column of randomized values.")
@click.option(
    "--spec",
    "spec_file",
    required=True,
    type=click.Path(path_type=Path),
    help="Noise specification (TOML), or a release's certificate.json.",
)
@click.option("--intervals", type=click.IntRange(min=1), help="Tell the distribution in so many equal intervals.")
@click.option(
    "--stop",
    type=click.Choice(["likelihood", "chi-square"]),
    help="When the iteration ends; chi-square is the thesis's.  [default: likelihood]",
)
@click.option("--method", type=click.Choice(["em", "bayes", "direct"]), default="em", show_default=True)
@click.option("--bands", type=float, default=0.95, show_default=True, help="Level of the bands.")
@click.option("--resamples", type=click.IntRange(min=1), default=200, show_default=True, help="Samples for the bands.")
@click.option("--least", type=click.FloatRange(min=0), default=30.0, show_default=True, help="Refuse below this worth.")
@click.option("--limit", type=click.IntRange(min=1), default=5000, show_default=True, help="Most iterations.")
@click.option("--plot", type=click.Path(path_type=Path), help="Draw it, .png or .svg.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write it to this CSV file.")
@click.option("--seed", type=click.IntRange(min=0), help="Draw the bands reproducibly.")
@click.option("--overwrite", is_flag=True, help="Replace files of these names.")
@reading_options
@verb
def reconstruct(
    console: Console, source: str, column: str, spec_file: Path, plot: Path | None, output: Path | None, **options: Any
) -> None:
    """Estimate the distribution behind a column of randomized values; single values stay unknown.

    INPUT is a .csv, .csv.gz, .parquet, .arrow or .feather file, - for CSV on standard input, or a database URL with
    --query. Missing cells are skipped. Refused, with exit code 3, where the records are too few for the noise.
    """
    from sfumato.privacy.randomized import read_spec
    from sfumato.randomize.reconstruct import reconstruct as estimate
    from sfumato.randomness import Randomness

    form = _check_targets(plot, output, source, overwrite=options["overwrite"])
    spec = read_spec(spec_file, column)
    table, _ = read_input(source, encoding=options["encoding"], query=options["query"])
    released, missing = _released(table, column, spec)
    with console.progress():
        found = estimate(
            released,
            spec,
            intervals=options["intervals"],
            stop=options["stop"],
            method=options["method"],
            bands=options["bands"],
            resamples=options["resamples"],
            least=options["least"],
            limit=options["limit"],
            rng=Randomness(options["seed"]).generator("bands"),
        )
    _write(found, column, plot, form, output)
    console.say(found.describe())
    if missing:
        console.say(f"{missing} missing cells were skipped.")
    for path in (plot, output):
        if path is not None:
            console.say(f"Look at: {path}")
    console.result({"column": column, "spec": spec.digest, **found.to_document(), "missing": missing})


def _released(table: pa.Table, column: str, spec: NoiseSpec) -> tuple[NDArray[Any], int]:
    """Give the cells of a column that are there, and how many are not."""
    import pyarrow as pa

    from sfumato.laws.domains import Labels
    from sfumato.tables.cells import absent_cells, plain
    from sfumato.tables.infer import MISSING_MARKS

    if table.column_names.count(column) != 1:
        raise OptionError(f"there is no single column {column!r}; the table has {table.num_columns} columns, name one")
    cells = plain(table.column(column))
    labels = spec.released.values if isinstance(spec.released, Labels) else None
    absent = absent_cells(cells, tuple(mark for mark in MISSING_MARKS if mark not in (labels or ())))
    present = cells.filter(pa.array(~absent))
    try:
        values = present.cast(pa.string() if labels is not None else pa.float64())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        wanted = "numbers" if labels is None else "labels"
        raise SchemaError(
            f"column {column!r} holds values that are no {wanted}; check column and specification"
        ) from None
    array = values.to_numpy(zero_copy_only=False)
    _check_values(array, column, spec)
    return array, int(absent.sum())


def _check_values(values: NDArray[np.generic], column: str, spec: NoiseSpec) -> None:
    try:
        spec.encode_output(values)
    except SchemaError as error:
        raise SchemaError(f"column {column!r}: {error}") from None


def _check_targets(plot: Path | None, output: Path | None, source: str, *, overwrite: bool) -> str:
    from sfumato.scale.sink import check_target

    form = "" if plot is None else plot.suffix.lower().lstrip(".")
    if plot is not None and form not in ("png", "svg"):
        raise OptionError("--plot must end in .png or .svg")
    if output is not None and output.suffix.lower() != ".csv":
        raise OptionError("--output must end in .csv")
    for path in (plot, output):
        if path is not None:
            check_target(path, Path(source), overwrite=overwrite)
    return form


def _write(found: Reconstruction, column: str, plot: Path | None, form: str, output: Path | None) -> None:
    from sfumato.randomize.reconstruct.picture import draw_reconstruction
    from sfumato.scale.sink import replacing_target

    if plot is not None:
        with replacing_target(plot) as work:
            draw_reconstruction(work, found, name=column, form=form)
    if output is not None:
        with replacing_target(output) as work, Path(work).open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            edges = found.edges
            writer.writerow((*(("value",) if edges is None else ("from", "to")), "probability", "lower", "upper"))
            bounds: list[tuple[Any, ...]] = [(value,) for value in found.values or ()]
            if edges is not None:
                bounds = list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))
            rows = zip(bounds, found.probability.tolist(), found.lower.tolist(), found.upper.tolist(), strict=True)
            writer.writerows((*where, *numbers) for where, *numbers in rows)
