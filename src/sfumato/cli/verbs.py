"""Verbs of one call each: demo, inspect, policy, verify and web."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import rich_click as click

import sfumato as sf
from sfumato.cli.console import Console, tell_error, verb
from sfumato.cli.options import (
    COUNT,
    FILE,
    INPUT,
    check_new,
    options,
    usual,
    write_private,
)
from sfumato.tables.reading import read_people, reading_words

__all__ = ["demo", "inspect", "policy", "verify", "web"]

_LEAF = 200


@click.command()
@click.option("-o", "--output", default="demo", show_default=True, type=click.Path(path_type=Path), help="Folder.")
@options("seed", overwrite="Replace an earlier demo.")
@verb
def demo(console: Console, output: Path, seed: int | None, overwrite: bool) -> None:
    """Inspect, sanitize, measure and judge an embedded table of made-up patients, and say where to look."""
    from sfumato.cli.population import population
    from sfumato.publish.folder import check_folder

    check_folder(output, overwrite=overwrite)
    table = population()
    console.say(f"A table of {table.num_rows:,} made-up patients, one stay in hospital each:\n")
    schema = sf.inspect(table, target="back_within_90_days")
    console.say(schema.describe())
    console.say(f"\nEach cell is drawn from {_LEAF} people or more who are alike. Half is held out for measuring.\n")
    with console.progress():
        release = sf.sanitize(
            table, sf.Chain(leaf=_LEAF), schema=schema, holdout=0.5, seed=seed, policy="research", despite_policy=True
        )
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


@click.command()
@click.argument("source", metavar="INPUT", type=INPUT)
@options("identifier", "target", "person", schema="Look again at a schema that was edited.")
@usual("--k", default=10, type=COUNT, words="Fewest persons who hold a category that leaves.")
@options(output="Write the schema to this TOML file.", overwrite="Replace an existing file.")
@options("encoding", "delimiter", "decimal", "sheet", "query")
@verb
def inspect(
    console: Console,
    source: str,
    output: Path | None,
    identifiers: tuple[str, ...],
    target: str | None,
    person: str | None,
    k: int,
    schema: Path | None,
    overwrite: bool,
    **reading: Any,
) -> None:
    """Say what each column is and what will happen to it, with the reason.

    INPUT is a .csv, .csv.gz, .xlsx, .ods, .sqlite, .parquet, .arrow or .feather file, - for CSV on standard input, or a
    database URL with --query.
    """
    from sfumato.tables.schema import field_to_document

    check_new(output, overwrite=overwrite)
    table, form = read_people(source, **reading)
    found = sf.inspect(table, identifiers=identifiers, target=target, person=person, k=k, schema=schema)
    console.say(f"{table.num_rows} rows, {table.num_columns} columns")
    console.say(f"{reading_words(source, form)}\n")
    console.say(found.describe(domains=True))
    if output is not None:
        write_private(output, found.to_toml(), "schema")
        console.say(f"\nWritten to {output}: edit it, then pass it with --schema. It holds observed bounds: keep it.")
    numerals = {name: list(getattr(form.numerals, name)) for name in ("commas", "thousands", "doubtful")}
    sheet = None if form.sheet is None else form.sheet.name
    read = {"format": form.format.value, "delimiter": form.delimiter, "sheet": sheet, **numerals}
    document: dict[str, Any] = {
        "rows": table.num_rows,
        "read": read,
        "columns": [_jsonable(field_to_document(f)) for f in found],
        "rules": list(found.rules),
    }
    console.result(document)


def _jsonable(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _jsonable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_jsonable(item) for item in value]
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)


_USUAL_POLICY = "research"


@click.command()
@click.argument("name", required=False, metavar="[NAME]")
@options(output="Write it to this TOML file.", overwrite="Replace an existing file.")
@verb
def policy(console: Console, name: str | None, output: Path | None, overwrite: bool) -> None:
    """Print a policy as TOML to edit: trusted, research or public, or one of your own that lies in a file.

    Without NAME the three are listed. A policy says how much attacks may gain on people of the table before it leaves;
    sanitize and evaluate take it with --policy.
    """
    from sfumato.publish.policy import BUILT_IN, PURPOSES, Policy

    if name is None and output is None:
        for each, purpose in PURPOSES.items():
            console.say(f"{each:<9} {purpose}")
        console.say("\n'sfumato policy NAME' prints one as TOML, and -o FILE writes it to a file to edit.")
        console.result({"policies": list(BUILT_IN.values())})
        return
    chosen = Policy.load(name or _USUAL_POLICY)
    if output is None:
        console.say(chosen.to_toml().rstrip("\n"))
    else:
        check_new(output, overwrite=overwrite)
        write_private(output, chosen.to_toml(), "policy", private=False)
        console.say(f"Written to {output}: edit it, then pass it with --policy {output}.")
    console.result({**vars(chosen), "file": None if output is None else str(output)})


@click.command()
@click.argument("folder", metavar="FOLDER/release", type=click.Path(path_type=Path))
@click.option("--signer", type=FILE, help="Public key of who must have signed it: PEM, or a line ssh-ed25519 ...")
@options(
    most_bytes="Bytes that the table may have and unpack to.  [default: what the certified rows need, at most 64 GiB]"
)
@verb
def verify(console: Console, folder: Path, signer: Path | None, most_bytes: int | None) -> None:
    """Check a release without the original: hashes, certificate against table, rehearsal mark.

    Exits with 3 if something does not hold. It proves that nothing was changed since; who made it only with --signer
    and a key that you have from them by another way than the release.
    """
    found = sf.verify(folder, signer=signer, most_bytes=most_bytes)
    console.say(found.describe())
    console.result({"holds": found.holds, "checks": found.checks})
    if not found:
        failing = ", ".join(check.name for check in found if not check.holds)
        tell_error(f"sfumato: the release does not hold ({failing}); do not use it")
        sys.exit(3)


@click.command()
@usual("--port", default=0, type=click.IntRange(0, 65_535), words="Port of this machine; 0 is any that is free.")
@usual("--limit", default=500, type=click.IntRange(1, 100_000), words="Megabytes of a file that may be dropped in.")
@click.option("--no-browser", is_flag=True, help="Do not open a browser; print the address only.")
@click.option("--save", type=FILE, metavar="FOLDER", help="Offer to save releases into this folder.")
@click.option("--stream", metavar="FILE|URL", help="Show how this stream stands, by its state.")
@click.option("--survey", metavar="FILE|URL", help="Show how this survey stands, by its database.")
@verb
def web(
    console: Console,
    port: int,
    limit: int,
    no_browser: bool,
    save: Path | None,
    stream: str | None,
    survey: str | None,
) -> None:
    """Open a page on this machine: drop a file in, see what will happen, choose, look at the report, take the release.

    Nothing leaves the machine, and nothing is kept once it ends (Ctrl-C) but what was taken or saved.
    """
    import webbrowser

    from sfumato.web.server import serve

    def ready(url: str) -> None:
        console.say(f"The page is at {url}\nIt is for this machine alone. Ctrl-C ends it and deletes what it holds.")
        console.result({"url": url})
        if not no_browser:
            webbrowser.open(url)

    serve(ready, port=port, most_bytes=limit * 1_000_000, save=save, stream=stream, survey=survey)
    console.say("Ended; what was not taken or saved is gone.")
