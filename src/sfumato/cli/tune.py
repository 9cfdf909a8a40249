"""tune: the group size that is right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import rich_click as click

from sfumato.cli.console import Console, verb
from sfumato.cli.options import options, read_input

__all__ = ["tune"]


@click.command()
@click.argument("source", metavar="INPUT")
@options("target", output="Folder for recipe.toml and the report.")
@click.option("--method", type=click.Choice(["classwise", "condense"]), help="[default: classwise for a class]")
@click.option("--metric", metavar="NAME", help="Utility: accuracy, correlation, covariance, propensity and others.")
@click.option("--repeats", type=int, default=5, show_default=True, help="Splits on which each size is tried.")
@options(budget="Time that it may take: fewer repeats, then fewer sizes.")
@click.option("--holdout", type=float, default=0.1, show_default=True, help="Share of the rows held out in a split.")
@click.option("--k", type=int, help="Smallest group size that is tried.  [default: 5]")
@options("level", "strata", "identifier", "schema", seed="Repeat the same splits and draws.")
@options("encoding", "query", overwrite="Replace an earlier tuning of that name.")
@verb
def tune(
    console: Console,
    source: str,
    output: Path | None,
    *,
    overwrite: bool,
    encoding: str,
    query: str | None,
    **told: Any,
) -> None:
    """Try group sizes on INPUT and recommend one: utility on real rows held out against measured attack success.

    FOLDER gets recipe.toml (run it with sanitize --recipe), report.html and report.json.
    """
    import sfumato as sf
    from sfumato.tuning.folder import check_tuning_folder, save_tuning

    if output is not None:
        check_tuning_folder(output, overwrite=overwrite)
    table, _ = read_input(source, encoding=encoding, query=query)
    with console.progress():
        tuning = sf.tune(table, **told)
        if output is not None:
            save_tuning(tuning, output, overwrite=overwrite)
    console.say(tuning.summary())
    if output is not None:
        console.say(f"\nRun it:  sfumato sanitize {source} -o FOLDER --recipe {output / 'recipe.toml'}")
        console.say(f"Look at: {output / 'report.html'}")
    console.result({**tuning.to_json(), "folder": None if output is None else str(output)})
