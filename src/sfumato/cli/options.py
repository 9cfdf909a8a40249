"""Options that several verbs share, and what they mean for the calls below."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import rich_click as click

from sfumato.errors import OptionError

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.tables.files import FileForm

__all__ = ["read_input", "reading_options"]

F = TypeVar("F", bound=Callable[..., Any])


def reading_options(function: F) -> F:
    """Add the options that say how the input is read."""
    function = click.option("--query", help="SQL to run, where INPUT is a database URL.")(function)
    return click.option("--encoding", default="utf-8", show_default=True, help="How a CSV file is written.")(function)


def read_input(source: str, *, encoding: str, query: str | None) -> tuple[pa.Table, FileForm]:
    """Read a file, standard input (``-``) or a database URL."""
    from sfumato.tables.files import read_file, read_sql

    if "://" in source:
        if query is None:
            raise OptionError("a database URL needs --query, for example --query 'select * from people'")
        return read_sql(source, query)
    if query is not None:
        raise OptionError("--query is for a database URL; a file is read whole")
    return read_file(source, encoding=encoding)
