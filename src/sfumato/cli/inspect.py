"""inspect: infer and print the schema, and write it for editing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import rich_click as click

from sfumato.cli.console import Console, verb
from sfumato.cli.options import read_input, reading_options
from sfumato.errors import OptionError, SfumatoError
from sfumato.replacing import reason, replacing_file

__all__ = ["inspect"]


@click.command()
@click.argument("source", metavar="INPUT")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write the schema to this TOML file.")
@click.option("--identifier", multiple=True, metavar="COL", help="A column to drop; repeatable.")
@click.option("--target", metavar="COL", help="The class or response that will be mined.")
@click.option("--overwrite", is_flag=True, help="Replace an existing file.")
@reading_options
@verb
def inspect(
    console: Console,
    source: str,
    output: Path | None,
    identifier: tuple[str, ...],
    target: str | None,
    overwrite: bool,
    encoding: str,
    query: str | None,
) -> None:
    """Say what each column is and what will happen to it, with the reason.

    INPUT is a .csv, .csv.gz, .parquet, .arrow or .feather file, - for CSV on standard input, or a database URL with
    --query.
    """
    from sfumato.tables.schema import Schema
    from sfumato.tables.toml import field_to_document

    if output is not None and output.exists() and not overwrite:
        raise OptionError(f"the file {str(output)!r} exists; choose another, or replace it with --overwrite")
    table, _ = read_input(source, encoding=encoding, query=query)
    schema = Schema.infer(table, identifiers=identifier, target=target)
    console.say(f"{table.num_rows} rows, {table.num_columns} columns\n")
    console.say(schema.describe(domains=True))
    if output is not None:
        _write_schema(output, schema.to_toml())
        console.say(f"\nWritten to {output}: edit it, then pass it with --schema. It holds observed bounds: keep it.")
    document: dict[str, Any] = {"rows": table.num_rows, "columns": [_jsonable(field_to_document(f)) for f in schema]}
    console.result(document)


def _write_schema(path: Path, text: str) -> None:
    try:
        with replacing_file(path, private=True) as work:
            work.write_text(text, encoding="utf-8")
    except OSError as error:
        raise SfumatoError(
            f"the schema could not be written ({reason(error)}); make room or choose another place"
        ) from None


def _jsonable(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _jsonable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_jsonable(item) for item in value]
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)
