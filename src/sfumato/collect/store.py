"""The answers of a survey in a database: SQLite by default, PostgreSQL by its URL, one layer for both.

What is stored is not a list of people's answers: one table says how often each randomized value came, another holds the
marks of used tokens and the seals of their answers, in the order of hashes and not of arrival.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.collect.opening import identity, make_engine, prepare_file, prepare_tables, url_of
from sfumato.collect.tokens import KEY_BYTES
from sfumato.documents import MOST_BYTES, Unparsable, from_json, write_json
from sfumato.errors import BadInput, SfumatoError

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

__all__ = ["Store", "StoreError", "Submission", "Verdict", "read_survey_document"]


class StoreError(SfumatoError):
    """The database did not do what it was asked; nothing of the transaction stays."""


class Verdict(Enum):
    """What became of a submission."""

    NEW = "new"
    SAME = "same"
    OTHER = "other"


@dataclass(frozen=True)
class Submission:
    """One person's randomized answers: a code for each question, under the mark and the seal of the token."""

    mark: bytes
    seal: bytes
    codes: tuple[int, ...]


class Store:
    """The database of one survey. Several processes may work on it.

    Parameters
    ----------
    engine : sqlalchemy.Engine
        Of a database that has the tables; `open` gives one.
    file : Path, optional
        Where SQLite keeps it. Answers that go to a file that was deleted meanwhile are lost, so it is looked at.
    """

    def __init__(self, engine: Engine, file: Path | None = None) -> None:
        from sfumato.collect.tables import add_counts, claim, put_new

        self._engine = engine
        self._file = file
        self._identity = identity(file)
        self._claim, self._add, self._put = (make(engine.dialect.name) for make in (claim, add_counts, put_new))

    def __repr__(self) -> str:
        return f"Store({self.name!r})"

    @property
    def name(self) -> str:
        """Where it lies, without a password."""
        return self._engine.url.render_as_string(hide_password=True)

    @classmethod
    def open(cls, place: str, *, create: bool = True) -> Store:
        """Open a database by its URL, or an SQLite file by its path; a new file is for its owner only.

        Parameters
        ----------
        place : str
            ``sqlite:///FILE``, ``postgresql://USER@HOST/NAME``, or the path of a file.
        create : bool
            Whether to make the file and the tables where there are none.
        """
        url = url_of(place)
        file = prepare_file(url, create=create) if url.get_backend_name() == "sqlite" else None
        engine = make_engine(url, create=create)
        with _errors("opened", BadInput):
            prepare_tables(engine, create=create)
        return cls(engine, file)

    def close(self) -> None:
        """Let go of all connections."""
        self._engine.dispose()

    @property
    def key(self) -> bytes:
        """The key that signs tokens; made at the first call."""
        return self._once("key", secrets.token_bytes(KEY_BYTES))

    def survey_document(self) -> dict[str, Any] | None:
        """Give the document of the survey, None before one was set."""
        from sfumato.collect.tables import META

        with self._reading() as connection:
            found = connection.scalar(META.select().with_only_columns(META.c.value).where(META.c.name == "survey"))
        return None if found is None else read_survey_document(bytes(found))

    def set_survey(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Store the document of the survey and give the one that stands: one with another digest is left as it is."""
        from sfumato.collect.tables import META

        text = write_json(document).encode()
        with (
            self._writing() as connection
        ):  # in one transaction: two that begin at once do not both believe it is theirs
            connection.execute(self._put, {"name": "survey", "value": text})
            found = connection.scalar(META.select().with_only_columns(META.c.value).where(META.c.name == "survey"))
            standing = read_survey_document(bytes(found)) if found is not None else dict(document)
            if standing.get("digest") == document.get("digest"):
                connection.execute(META.update().where(META.c.name == "survey").values(value=text))
        return standing

    def add(self, batch: Sequence[Submission]) -> list[Verdict]:
        """Store submissions in one transaction and say what became of each; at the return they are on disk.

        A token counts once. Of several answers under one token the first stands; the same answer again is a retry.
        """
        first: dict[bytes, Submission] = {}
        for each in batch:
            first.setdefault(each.mark, each)
        with self._writing() as connection:
            new = self._claim_marks(connection, first)
            tally = Counter(place for mark in new for place in enumerate(first[mark].codes))
            if tally:
                rows = [{"question": q, "output": y, "answers": n} for (q, y), n in sorted(tally.items())]
                connection.execute(self._add, rows)
            seals = self._seals(connection, [mark for mark in first if mark not in new])
        verdicts = []
        for each in batch:
            if each.mark in new:
                new.remove(each.mark)  # the first of its token; all after it are retries or others
                seals[each.mark] = each.seal
                verdicts.append(Verdict.NEW)
            else:
                verdicts.append(Verdict.SAME if seals[each.mark] == each.seal else Verdict.OTHER)
        return verdicts

    def counts(self) -> tuple[int, dict[int, dict[int, int]]]:
        """Give the number of used tokens, and for each question how often each output came, of one moment."""
        import sqlalchemy as sa

        from sfumato.collect.tables import COUNTS, USED

        tallies: dict[int, dict[int, int]] = {}
        with self._reading() as connection:
            used = connection.scalar(sa.select(sa.func.count()).select_from(USED)) or 0
            for question, output, answers in connection.execute(sa.select(COUNTS)):
                tallies.setdefault(question, {})[output] = answers
        return used, tallies

    def ping(self) -> None:
        """Ask the database whether it answers."""
        from sfumato.collect.tables import META

        with self._reading() as connection:
            connection.execute(META.select().with_only_columns(META.c.name))

    def _claim_marks(self, connection: Connection, first: Mapping[bytes, Submission]) -> set[bytes]:
        # in the order of marks: two processes with the same tokens wait for each other and never in a circle
        rows = [{"mark": mark, "seal": first[mark].seal} for mark in sorted(first)]
        return {bytes(mark) for mark in connection.scalars(self._claim, rows)} if rows else set()

    def _seals(self, connection: Connection, marks: list[bytes]) -> dict[bytes, bytes]:
        import sqlalchemy as sa

        from sfumato.collect.tables import USED

        if not marks:
            return {}
        found = connection.execute(sa.select(USED.c.mark, USED.c.seal).where(USED.c.mark.in_(marks)))
        return {bytes(mark): bytes(seal) for mark, seal in found}

    def _once(self, name: str, value: bytes) -> bytes:
        """Store a value unless there is one, and give what is there."""
        from sfumato.collect.tables import META

        with self._writing() as connection:
            connection.execute(self._put, {"name": name, "value": value})
            found = connection.scalar(META.select().with_only_columns(META.c.value).where(META.c.name == name))
        return bytes(found) if found is not None else value

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        self._check_file()
        with (
            _errors("written"),
            self._engine.connect().execution_options(writes=True) as connection,
            connection.begin(),
        ):
            yield connection
        self._check_file()  # what was written to a file without a name is not stored

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        self._check_file()
        with _errors("read"), self._engine.connect() as connection, connection.begin():
            if self._engine.dialect.name == "postgresql":
                connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield connection

    def _check_file(self) -> None:
        if self._file is not None and identity(self._file) != self._identity:
            raise StoreError("the file of the survey's database was deleted or replaced; put it back and start again")


@contextmanager
def _errors(done: str, kind: type[SfumatoError] = StoreError) -> Iterator[None]:
    """Turn errors of the database, whose words quote statements and values, into a sentence."""
    import sqlalchemy as sa

    try:
        yield
    except (sa.exc.SQLAlchemyError, OverflowError) as error:
        name = type(getattr(error, "orig", None) or error).__name__
        raise kind(f"the survey's database could not be {done} ({name}); check that it is there and not full") from None


def read_survey_document(body: bytes) -> dict[str, Any]:
    """Document of a survey as the database holds it.

    Raises
    ------
    BadInput
        Where it is no document.
    """
    try:
        return from_json(dict[str, Any], body, most=MOST_BYTES)
    except Unparsable:
        raise BadInput("the survey in the database cannot be read; bring back a whole copy of it") from None
