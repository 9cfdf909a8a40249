"""tune: the most useful release that meets a policy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import rich_click as click

import sfumato as sf
from sfumato.cli.console import Console, verb
from sfumato.cli.options import INPUT, command_words, holdout_of, options
from sfumato.tables.reading import read_people

__all__ = ["tune"]

_OF_TUNING = ("methods", "metric", "search", "budget", "holdout", "seed", "output", "overwrite", "k")


@click.command()
@click.argument("source", metavar="INPUT", type=INPUT)
@options("target", policy="What the release must meet: trusted, research, public, or a file.  [default: research]")
@options(
    budget="Ends by then with what was measured.  [default: what eight trials on the whole table take, 45 or more]",
    output="Folder for report.html, report.json and, where something qualifies, recipe.toml.",
)
@click.option(
    "--methods",
    metavar="A,B",
    help="Of chain, condense, classwise and condense-paper.  [default: the first three, as far as they apply]",
)
@options(holdout="People kept out of the release, for measuring.  [default: 0.3]")
@click.option("--k", type=int, help="Smallest size that is tried, where it is more than the policy asks.")
@click.option("--metric", metavar="NAME", help="Use: accuracy-boosting, r2-ridge, likeness and others.")
@click.option(
    "--search",
    type=click.Choice(["halving", "rule-based", "brute-force"]),
    default="halving",
    show_default=True,
    help="The last two are the paper's, for group sizes.",
)
@options(
    "level",
    "strata",
    "identifier",
    "person",
    "rows_are_people",
    "weight",
    "schema",
    "no_rules",
    "rare",
    "known",
    seed="Repeat the same samples and draws.",
)
@options("encoding", "delimiter", "decimal", "sheet", "query", overwrite="Replace an earlier tuning of that name.")
@verb
def tune(
    console: Console,
    source: str,
    output: Path | None,
    *,
    holdout: str | None,
    policy: str | None,
    overwrite: bool,
    encoding: str,
    query: str | None,
    delimiter: str | None,
    decimal: str | None,
    sheet: str | None,
    **told: Any,
) -> None:
    """Find the most useful release of INPUT that meets a policy: methods and sizes, tried, attacked and judged.

    It ends by the deadline, or at Ctrl-C, with what was measured by then, and prints the command line that makes the
    release. Where nothing qualifies it says what comes nearest and why.
    """
    from sfumato.publish.policy import USUAL
    from sfumato.tuning.page import check_tuning_folder, save_tuning

    if output is not None:
        check_tuning_folder(output, overwrite=overwrite)
    reading: dict[str, Any] = {"encoding": encoding, "delimiter": delimiter, "decimal": decimal, "query": None}
    table, form = read_people(source, **(reading | {"query": query, "sheet": sheet}))
    outside: Any = holdout_of(holdout, reading | {"decimal": decimal or form.decimal}, 0.3)
    without = _OF_TUNING if isinstance(outside, float) else tuple(name for name in _OF_TUNING if name != "holdout")
    with console.progress(lines=True):
        tuning = sf.tune(table, policy=policy or USUAL, holdout=outside, command=command_words(without=without), **told)
        if output is not None:
            save_tuning(tuning, output, overwrite=overwrite)
    lines = tuning.lines()
    if output is not None:
        lines.append((0, f"Look at: {output / 'report.html'}"))
    console.tell(lines)
    console.result({**tuning.to_json(), "folder": None if output is None else str(output)})
