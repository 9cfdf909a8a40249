"""tune: the group size that is right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import rich_click as click

from sfumato.cli.console import Console, verb
from sfumato.cli.options import read_input, reading_options

__all__ = ["tune"]


@click.command()
@click.argument("source", metavar="INPUT")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Folder for recipe.toml and the report.")
@click.option("--target", metavar="COL", help="The class or response that will be mined.")
@click.option("--method", type=click.Choice(["classwise", "condense"]), help="[default: classwise for a class]")
@click.option("--metric", metavar="NAME", help="Utility: accuracy, correlation, covariance, propensity and others.")
@click.option("--repeats", type=int, default=5, show_default=True, help="Splits on which each size is tried.")
@click.option("--budget", type=float, metavar="SECONDS", help="Time that it may take: fewer repeats, then fewer sizes.")
@click.option("--holdout", type=float, default=0.1, show_default=True, help="Share of the rows held out in a split.")
@click.option("--k", type=int, help="Smallest group size that is tried.  [default: 5]")
@click.option("--level", metavar="COL|N|RULE", help="Privacy level: a column, a number, or 'age > 60: 12, else: 5'.")
@click.option("--strata", metavar="COL", help="Groups never cross this column; makes its value certain.")
@click.option("--identifier", multiple=True, metavar="COL", help="A column to drop; repeatable.")
@click.option("--schema", "schema_file", type=click.Path(path_type=Path), help="Schema written by inspect.")
@click.option("--seed", type=click.IntRange(min=0), help="Repeat the same splits and draws.")
@click.option("--overwrite", is_flag=True, help="Replace an earlier tuning of that name.")
@reading_options
@verb
def tune(console: Console, source: str, output: Path | None, **options: Any) -> None:
    """Try group sizes on INPUT and recommend one: utility on real rows held out against measured attack success.

    FOLDER gets recipe.toml (run it with sanitize --recipe), report.html and report.json.
    """
    from sfumato.tables.schema import Schema
    from sfumato.tuning.folder import check_tuning_folder, save_tuning
    from sfumato.tuning.run import tune as run

    if output is not None:
        check_tuning_folder(output, overwrite=options["overwrite"])
    table, _ = read_input(source, encoding=options["encoding"], query=options["query"])
    with console.progress():
        tuning = run(
            table,
            target=options["target"],
            method=options["method"],
            schema=None if options["schema_file"] is None else Schema.load(options["schema_file"]),
            level=options["level"],
            strata=options["strata"],
            identifiers=options["identifier"],
            k=options["k"],
            holdout=options["holdout"],
            repeats=options["repeats"],
            metric=options["metric"],
            budget=options["budget"],
            seed=options["seed"],
        )
        if output is not None:
            save_tuning(tuning, output, overwrite=options["overwrite"])
    console.say(tuning.summary())
    if output is not None:
        console.say(f"\nRun it:  sfumato sanitize {source} -o FOLDER --recipe {output / 'recipe.toml'}")
        console.say(f"Look at: {output / 'report.html'}")
    console.result({**tuning.to_json(), "folder": None if output is None else str(output)})
