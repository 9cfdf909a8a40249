"""The tables of a survey's database, and the two statements that SQLite and PostgreSQL spell alike.

Imported only where a database is opened: it needs SQLAlchemy.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert as postgresql_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert

__all__ = ["COUNTS", "META", "TABLES", "USED", "add_counts", "claim", "put_new"]

TABLES = sa.MetaData()

META = sa.Table(
    "sfumato_survey",
    TABLES,
    sa.Column("name", sa.String(32), primary_key=True),
    sa.Column("value", sa.LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)
"""The key of the tokens and the survey's document."""

USED = sa.Table(
    "sfumato_used",
    TABLES,
    sa.Column("mark", sa.LargeBinary(32), primary_key=True),
    sa.Column("seal", sa.LargeBinary(16), nullable=False),
    sqlite_with_rowid=False,  # ordered by hash: no row number tells the order of arrival
)
"""Used tokens."""

COUNTS = sa.Table(
    "sfumato_counts",
    TABLES,
    sa.Column("question", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("output", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("answers", sa.BigInteger, nullable=False),
    sqlite_with_rowid=False,
)
"""How often each randomized value came."""


def claim(dialect: str) -> Any:
    """Insert marks of tokens that are not there yet, and say which."""
    return _insert(dialect)(USED).on_conflict_do_nothing().returning(USED.c.mark)


def put_new(dialect: str) -> Any:
    """Insert a fact about the survey, unless there is one of its name."""
    return _insert(dialect)(META).on_conflict_do_nothing()


def add_counts(dialect: str) -> Any:
    """Add to counts, which begin at 0."""
    insert = _insert(dialect)(COUNTS)
    more = {"answers": COUNTS.c.answers + insert.excluded.answers}
    return insert.on_conflict_do_update(index_elements=[COUNTS.c.question, COUNTS.c.output], set_=more)


def _insert(dialect: str) -> Any:
    return sqlite_insert if dialect == "sqlite" else postgresql_insert
