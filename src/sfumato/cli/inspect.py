"""inspect: infer and print the schema, and write it for editing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import rich_click as click

from sfumato.cli.console import Console, verb
from sfumato.cli.options import check_new, options, read_input, write_private

__all__ = ["inspect"]


@click.command()
@click.argument("source", metavar="INPUT")
@options("identifier", "target", output="Write the schema to this TOML file.", overwrite="Replace an existing file.")
@options("encoding", "query")
@verb
def inspect(
    console: Console,
    source: str,
    output: Path | None,
    identifiers: tuple[str, ...],
    target: str | None,
    overwrite: bool,
    encoding: str,
    query: str | None,
) -> None:
    """Say what each column is and what will happen to it, with the reason.

    INPUT is a .csv, .csv.gz, .parquet, .arrow or .feather file, - for CSV on standard input, or a database URL with
    --query.
    """
    import sfumato as sf
    from sfumato.tables.schema import field_to_document

    check_new(output, overwrite=overwrite)
    table, _ = read_input(source, encoding=encoding, query=query)
    schema = sf.inspect(table, identifiers=identifiers, target=target)
    console.say(f"{table.num_rows} rows, {table.num_columns} columns\n")
    console.say(schema.describe(domains=True))
    if output is not None:
        write_private(output, schema.to_toml(), "schema")
        console.say(f"\nWritten to {output}: edit it, then pass it with --schema. It holds observed bounds: keep it.")
    document: dict[str, Any] = {"rows": table.num_rows, "columns": [_jsonable(field_to_document(f)) for f in schema]}
    console.result(document)


def _jsonable(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _jsonable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_jsonable(item) for item in value]
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)
