"""demo: the whole job on the embedded example."""

from __future__ import annotations

from pathlib import Path

import rich_click as click

from sfumato.cli.console import Console, verb

__all__ = ["demo"]


@click.command()
@click.option("-o", "--output", default="demo", show_default=True, type=click.Path(path_type=Path), help="Folder.")
@click.option("--seed", type=click.IntRange(min=0), help="Rehearse: reproducible, and marked as not for release.")
@click.option("--overwrite", is_flag=True, help="Replace an earlier demo.")
@verb
def demo(console: Console, output: Path, seed: int | None, overwrite: bool) -> None:
    """Inspect, sanitize and measure an embedded table of 442 diabetes patients, and say where to look."""
    from sfumato.condense.mechanism import Condensation
    from sfumato.examples import EXAMPLE_LEVELS, patients
    from sfumato.publish import check_folder, verify_release
    from sfumato.publish.sanitize import sanitize
    from sfumato.tables.schema import Schema

    check_folder(output, overwrite=overwrite)
    table = patients()
    console.say(f"A table of {table.num_rows} diabetes patients (scikit-learn's, with a made-up patient code):\n")
    schema = Schema.infer(table, target="progression")
    console.say(schema.describe())
    console.say(f"\nEach patient asks for a privacy level: {EXAMPLE_LEVELS}. A tenth is held out for measuring.\n")
    with console.progress():
        release = sanitize(table, Condensation(k=5), schema=schema, level=EXAMPLE_LEVELS, holdout=0.1, seed=seed)
        release.save(output, overwrite=overwrite)
    if release.report is not None:
        console.say(release.report.summary())
    holds = all(check.holds for check in verify_release(output / "release"))
    console.say("The reviewer's check (sfumato verify) holds." if holds else "The reviewer's check does not hold.")
    console.say("\nWhere to look:")
    console.say(f"  {output / 'owner' / 'report.html'}            the report, open it in a browser")
    console.say(f"  {output / 'release' / 'table.csv'}            the table that may leave")
    console.say(f"  {output / 'release' / 'certificate.json'}     what is guaranteed, and what must not be said")
    console.result({"folder": str(output), "holds": holds, "levels": release.certificate.levels})
