"""demo: the whole job on the embedded example."""

from __future__ import annotations

from pathlib import Path

import rich_click as click

from sfumato.cli.console import Console, verb
from sfumato.cli.options import options

__all__ = ["demo"]


@click.command()
@click.option("-o", "--output", default="demo", show_default=True, type=click.Path(path_type=Path), help="Folder.")
@options("seed", overwrite="Replace an earlier demo.")
@verb
def demo(console: Console, output: Path, seed: int | None, overwrite: bool) -> None:
    """Inspect, sanitize and measure an embedded table of 442 diabetes patients, and say where to look."""
    import sfumato as sf
    from sfumato.examples import EXAMPLE_LEVELS, patients
    from sfumato.publish import check_folder

    check_folder(output, overwrite=overwrite)
    table = patients()
    console.say(f"A table of {table.num_rows} diabetes patients (scikit-learn's, with a made-up patient code):\n")
    schema = sf.inspect(table, target="progression")
    console.say(schema.describe())
    console.say(f"\nEach patient asks for a privacy level: {EXAMPLE_LEVELS}. A tenth is held out for measuring.\n")
    with console.progress():
        release = sf.sanitize(table, k=5, schema=schema, level=EXAMPLE_LEVELS, holdout=0.1, seed=seed)
        release.save(output, overwrite=overwrite)
    if release.report is not None:
        console.say(release.report.summary())
    holds = sf.verify(output / "release").holds
    console.say("The reviewer's check (sfumato verify) holds." if holds else "The reviewer's check does not hold.")
    console.say("\nWhere to look:")
    console.say(f"  {output / 'owner' / 'report.html'}            the report, open it in a browser")
    console.say(f"  {output / 'release' / 'table.csv'}            the table that may leave")
    console.say(f"  {output / 'release' / 'certificate.json'}     what is guaranteed, and what must not be said")
    console.result({"folder": str(output), "holds": holds, "levels": release.certificate.levels})
