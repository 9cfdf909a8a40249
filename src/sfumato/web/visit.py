"""One visit of the page: the file that was dropped in, what was chosen, and what came of it; gone at the end.

What is chosen (columns, rare values, rules, policy, method) is typed before it is used.
"""

from __future__ import annotations

import asyncio
import dataclasses
import os
import shlex
import shutil
import unicodedata
import zipfile
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

from sfumato.core.documents import DocumentMismatch, Unparsable, parse_json, plain, typed, write_json
from sfumato.core.errors import OptionError, SfumatoError, TableError, no_column, shown
from sfumato.core.replacing import reason
from sfumato.publish.folder import replacing_folder
from sfumato.publish.policy import BUILT_IN, PURPOSES, USUAL
from sfumato.tables.field import Domain, Field, Kind, Role
from sfumato.tables.files import ENDINGS
from sfumato.tables.reading import FileReading
from sfumato.tables.schema import Schema
from sfumato.tables.workbook import SQLITE, WORKBOOKS
from sfumato.web.worker import COMPARED, OUTPUT, TUNING_PAGE, Job, Worker

__all__ = [
    "ENDINGS_READ",
    "LABELS",
    "Choices",
    "ColumnChoice",
    "Setting",
    "TooLarge",
    "WebSession",
    "command_line",
    "edited",
    "parse_choices",
    "python_lines",
    "safe_name",
]

_MOST_BYTES = 8 << 20
_MOST_LEVELS = 32
_MOST_MARKS = 50
_LONGEST_RULE = 1_000  # characters of a rule, a level or a hierarchy
_LONGEST_SEARCH = 86_400.0


LABELS = {
    "encoding": "Encoding",
    "delimiter": "Delimiter",
    "decimal": "Decimal separator",
    "sheet": "Sheet",
    "header-row": "Header row",
    "missing": "Missing values",
    "most-bytes": "--limit",
}
"""What the page calls options of the command line that its messages name."""


@dataclass(frozen=True)
class ColumnChoice:
    """What a column is chosen to be; ``known`` is whether an outsider knows it, by labels at ``known_level``."""

    name: str
    role: Role
    kind: Kind
    hierarchy: str = ""
    coarsened: int = 0
    known: bool = False
    known_level: int = 0


@dataclass(frozen=True)
class Choices:
    """Everything that is chosen before a run. ``rules`` are those that are kept; None: those that were found.

    ``missing`` are marks of a missing cell, besides the usual ones and those that are found.
    """

    columns: tuple[ColumnChoice, ...] = ()
    rules: tuple[str, ...] | None = None
    rare: Literal["pool", "lift", "keep"] | None = None
    policy: str = USUAL
    holdout: float = 0.3
    k: int | None = None
    level: str | None = None
    seed: int | None = None
    time_limit: float | None = None
    reading: FileReading = field(default_factory=FileReading)
    missing: tuple[str, ...] = ()

    @property
    def quasi_identifiers(self) -> tuple[str, ...]:
        """Columns that an outsider is taken to know, with the level of their labels where these are wider."""
        return tuple(
            f"{column.name}@{column.known_level}" if column.known_level else column.name
            for column in self.columns
            if column.known
        )


@dataclass(frozen=True)
class Setting:
    """A method and its size, or the usual ones; ``despite`` releases it also where the policy is not met."""

    method: str | None = None
    size: int | None = None
    despite: bool = False


def parse_choices(shape: type[Any], body: bytes) -> Any:
    """Choices or a setting out of the JSON that a browser sent; what is none is refused by its entry, and no value."""
    try:
        found = typed(shape, parse_json(body, most=_MOST_BYTES))
    except DocumentMismatch as wrong:
        raise OptionError(
            f"the entry {shown(wrong.entry)} of the request is invalid; reload the page and choose again"
        ) from None
    except Unparsable:
        raise OptionError("the request is invalid; reload the page and choose again") from None
    if isinstance(found, Choices):
        _check(found)
    return found


def _check(choices: Choices) -> None:
    """Refuse numbers and words outside what the page offers; a file of a policy or a hierarchy is never opened."""
    if choices.policy not in PURPOSES:
        raise OptionError(f"there is no policy {shown(choices.policy)}; choose one of {', '.join(PURPOSES)}")
    if not 0.0 < choices.holdout < 1.0:
        raise OptionError("the share of the hold-out set must lie between 0 and 1; the default is 0.3")
    if choices.k is not None and not 2 <= choices.k <= 1_000_000:
        raise OptionError("k is a whole number of at least 2; the default is 10")
    if choices.seed is not None and not 0 <= choices.seed < 1 << 63:
        raise OptionError("a seed is a whole number from 0 on; enter one or leave the field empty")
    if choices.time_limit is not None and not 0.0 < choices.time_limit <= _LONGEST_SEARCH:
        raise OptionError("the time for the search is a number of seconds above 0; try 60")
    texts = [choices.level or "", *(choices.rules or ()), *(column.hierarchy for column in choices.columns)]
    if any(len(text) > _LONGEST_RULE for text in texts):
        raise OptionError(f"a rule, a level or a hierarchy has at most {_LONGEST_RULE} characters; shorten it")
    if any(not 0 <= column.known_level <= _MOST_LEVELS for column in choices.columns):
        raise OptionError(f"the level of a quasi-identifier lies between 0 and {_MOST_LEVELS}; correct it")
    if len(choices.missing) > _MOST_MARKS:
        raise OptionError(f"{len(choices.missing)} missing values are more than {_MOST_MARKS}; remove some")
    listed = next((each.name for each in choices.columns if each.hierarchy.strip().startswith("file")), None)
    if listed is not None:
        raise OptionError(
            f"the hierarchy of column {shown(listed)} is a file, which the page does not open; use a schema on the "
            "command line"
        )


def edited(proposed: Schema, choices: Choices) -> Schema:
    """The proposed schema with what was chosen; what was left as it was keeps the reason why it is so."""
    schema = proposed
    for choice in choices.columns:
        if choice.name not in schema.names:
            raise OptionError(no_column(choice.name, schema.names))
        before = schema[choice.name]
        if choice.kind is not before.kind:
            # what was found of the old kind is forgotten, and found anew by the run
            reason = f"{choice.kind.value}, as specified"
            schema = _with(
                schema, Field(before.name, choice.kind, before.role, Domain(), before.missing, reason=reason)
            )
        hierarchy = choice.hierarchy.strip() or None
        if (hierarchy, choice.coarsened) != (schema[choice.name].hierarchy, schema[choice.name].coarsened):
            schema = _with(
                schema, dataclasses.replace(schema[choice.name], hierarchy=hierarchy, coarsened=choice.coarsened)
            )
    changed = [choice for choice in choices.columns if choice.role is not proposed[choice.name].role]
    for choice in sorted(changed, key=lambda each: each.role is not Role.CONFIDENTIAL):  # a single role is free first
        schema = schema.with_role(choice.role, choice.name)
    return schema if choices.rules is None else dataclasses.replace(schema, rules=choices.rules)


def _with(schema: Schema, changed: Field) -> Schema:
    fields = (changed if field.name == changed.name else field for field in schema)
    return dataclasses.replace(schema, fields=tuple(fields))


def command_line(name: str, choices: Choices, setting: Setting, *, recipe: str) -> str:
    """Command line that runs a recipe again on the file that was dropped in, quoted as a shell needs it."""
    words = ["sfumato", "sanitize", name, "-o", "FOLDER", "--recipe", recipe]
    words += [word for column in choices.quasi_identifiers for word in ("--quasi-identifier", column)]
    return shlex.join([*words, *(["--despite-policy"] if setting.despite else [])])


def python_lines(name: str, choices: Choices, setting: Setting, *, recipe: str) -> str:
    """Lines of Python that do what the command line does."""
    options = [f"recipe={recipe!r}"]
    if choices.quasi_identifiers:
        options.append(f"quasi_identifiers={list(choices.quasi_identifiers)!r}")
    if setting.despite:
        options.append("despite_policy=True")
    call = f"release = sf.sanitize({name!r}, {', '.join(options)})"
    return "\n".join(["import sfumato as sf", "", call, 'release.save("FOLDER")'])


ENDINGS_READ = (*ENDINGS, *WORKBOOKS, *SQLITE)
"""Endings of the names of files that are read."""

_LONGEST = 80  # characters of a file's name before its ending
_FORBIDDEN = frozenset('/\\:*?"<>|')
Part = Literal["release", "owner"]


class TooLarge(SfumatoError):
    """A file is longer than is taken."""


def safe_name(name: str) -> str:
    r"""Name of a file without any folder, and without letters that a file system or a shell may trip over.

    A name with no ending that is read is refused.

    Examples
    --------
    >>> safe_name("../../etc/pa\x00tients 2.CSV"), safe_name("C:\\data\\-x.parquet"), safe_name("....csv")
    ('patients 2.CSV', 'x.parquet', 'table.csv')
    """
    last = unicodedata.normalize("NFC", name).replace("\\", "/").rpartition("/")[2]
    plain = "".join(mark for mark in last if mark.isprintable() and mark not in _FORBIDDEN)
    ending = max((each for each in ENDINGS_READ if plain.lower().endswith(each)), key=len, default=None)
    if ending is None:
        raise TableError(f"{shown(plain)} is not a file of a known kind; known endings are {', '.join(ENDINGS_READ)}")
    stem = plain[: -len(ending)].strip(" .-")[:_LONGEST].strip(" .-")
    return f"{stem or 'table'}{plain[-len(ending) :]}"


@dataclass
class WebSession:
    """Everything that the page knows; ``folder`` is closed to others and goes when the server ends."""

    folder: Path
    most_bytes: int
    save_to: Path | None = None
    file: str | None = None
    size: int = 0
    choices: Choices = field(default_factory=Choices)
    look: dict[str, object] | None = None
    tuning: dict[str, object] | None = None
    points: list[dict[str, object]] = field(default_factory=list)
    setting: Setting = field(default_factory=Setting)
    result: dict[str, object] | None = None
    saved: Path | None = None

    def __post_init__(self) -> None:
        self.worker = Worker(self.folder, self.most_bytes)
        self._receiving = asyncio.Lock()

    async def receive(self, name: str, chunks: AsyncIterator[bytes], choices: Choices | None = None) -> Job:
        """Take a file in, in place of any before, and begin to look at it; nothing is left of one that is too large."""
        safe = safe_name(name)
        async with self._receiving:
            return await self._receive(safe, chunks, choices or Choices())

    async def _receive(self, safe: str, chunks: AsyncIterator[bytes], choices: Choices) -> Job:
        await self.forget()
        size, path = 0, self.folder / safe
        try:
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                async for chunk in chunks:
                    size += len(chunk)
                    if size > self.most_bytes:
                        raise TooLarge(self.too_large)
                    file.write(chunk)
        except OSError as error:
            path.unlink(missing_ok=True)
            raise SfumatoError(
                f"the file could not be stored ({reason(error)}); free disk space and try again"
            ) from None
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        self.file, self.size = safe, size
        return await self.inspect(choices)

    @property
    def too_large(self) -> str:
        """Message about a file that is too large."""
        return (
            f"the file is larger than {self.most_bytes / 1e6:,.0f} MB; start 'sfumato web' with a higher "
            "--limit, or use the command line"
        )

    async def inspect(self, choices: Choices) -> Job:
        """Begin to look at the columns as they were chosen; what came of earlier choices is forgotten."""

        def keep(result: dict[str, object]) -> None:
            self.look, self.choices = result, choices
            self.tuning, self.points, self.result, self.saved = None, [], None, None

        return await self.worker.begin("look", keep, file=self._name, choices=plain(choices))

    async def tune(self) -> Job:
        """Begin the search for the best setting."""
        self._check_looked()
        self.tuning, self.points = None, []

        def keep(result: dict[str, object]) -> None:
            self.tuning = {**result, "warnings": job.notes}

        job = await self.worker.begin("tune", keep, **self._order)
        self.points = job.points
        return job

    async def sanitize(self, setting: Setting) -> Job:
        """Begin to make a release."""
        self._check_looked()
        self.result, self.saved = None, None
        floor = None if self.tuning is None else self.tuning["floor"]

        def keep(result: dict[str, object]) -> None:
            self.result, self.setting = {**result, "warnings": job.notes}, setting

        job = await self.worker.begin("sanitize", keep, **self._order, setting=plain(setting), floor=floor)
        return job

    def choose(self, choices: Choices) -> None:
        """Keep what was chosen of policy and measuring; the columns stay as they were looked at."""
        self._check_looked()
        if self.worker.busy:
            raise OptionError("another step is running; wait for it or cancel it")
        entries = {name: getattr(choices, name) for name in ("policy", "holdout", "seed", "time_limit")}
        kept = dataclasses.replace(self.choices, **entries)
        if kept.rare == "keep" and BUILT_IN[kept.policy].require.get("rare") == "hidden":
            raise OptionError(
                f"the policy {kept.policy!r} requires rare categories to be hidden, but you keep them; choose "
                "another policy, or pool or generalize them"
            )
        if kept != self.choices:
            self.choices, self.tuning, self.points = kept, None, []

    @property
    def choices_json(self) -> str:
        """The choices as the page's script reads them."""
        return write_json(plain(self.choices))

    @property
    def points_json(self) -> str:
        """Settings that were measured, as the page's script reads them."""
        return write_json(self.points)

    @property
    def tuning_json(self) -> str:
        """What the search found, as the page's script reads it."""
        return write_json(self.tuning)

    async def status(self, kind: Literal["stream", "survey"], place: str) -> Job:
        """Look at a stream or a survey, read-only."""
        begin = partial(self.worker.begin, kind)
        job = await (begin(state=place) if kind == "stream" else begin(db=place))
        await job.ended.wait()
        return job

    async def forget(self) -> None:
        """Forget the file and all that came of it; work on it is cancelled."""
        await self.worker.stop()
        if self.file is not None:  # it holds the table
            await self.worker.kill()
        self.worker.job = None
        self.file, self.size, self.choices, self.setting = None, 0, Choices(), Setting()
        self.look, self.tuning, self.points, self.result, self.saved = None, None, [], None, None
        await asyncio.to_thread(_empty, self.folder)
        await self.worker.start()

    async def end(self) -> None:
        """End the process that works."""
        await self.worker.kill()

    def page(self, name: Literal["report", "tuning"]) -> Path | None:
        """File of a page that was made, where it is there."""
        path = self.folder / (TUNING_PAGE if name == "tuning" else f"{OUTPUT}/owner/report.html")
        ready = self.tuning if name == "tuning" else self.result
        return path if ready is not None and path.is_file() else None

    def compared(self) -> list[dict[str, str]]:
        """Drawings of each column, original and released."""
        path = self.folder / COMPARED
        if self.result is None or not path.is_file():
            return []
        figures: list[dict[str, str]] = parse_json(path.read_bytes())["figures"]
        return figures

    def packed(self, part: Part) -> Path | None:
        """A zip file of a part of the release; None if there is none."""
        source = self.folder / OUTPUT / part
        if self.result is None or not source.is_dir():
            return None
        target = self.folder / f"{part}.zip"
        target.unlink(missing_ok=True)
        handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
            for path in sorted(source.iterdir()):
                packed.write(path, f"{part}/{path.name}")
        return target

    def save(self) -> Path:
        """Folder, under the one that the command line named, that the release was written into; it is a new one."""
        source = self.folder / OUTPUT
        if self.save_to is None or self.result is None or not source.is_dir():
            raise OptionError("there is no release to save, or --save FOLDER is missing")
        if self.saved is not None:
            return self.saved
        stem = self._name
        for ending in sorted(ENDINGS_READ, key=len, reverse=True):
            if stem.lower().endswith(ending):
                stem = stem[: -len(ending)]
                break
        names = (stem if number == 1 else f"{stem}-{number}" for number in range(1, 10_000))
        target = next(self.save_to / name for name in names if not (self.save_to / name).exists())
        try:
            with replacing_folder(target) as work:
                for part in source.iterdir():
                    (work / part.name).mkdir(mode=0o700)  # as part of the owner's from the first file
                    shutil.copytree(part, work / part.name, copy_function=_copy_closed, dirs_exist_ok=True)
        except OSError as error:
            raise SfumatoError(f"the release could not be saved ({reason(error)}); nothing was changed") from None
        self.saved = target
        return target

    @property
    def _name(self) -> str:
        if self.file is None:
            raise OptionError("no file was chosen; choose one first")
        return self.file

    @property
    def _order(self) -> dict[str, Any]:
        assert self.look is not None
        return {"file": self._name, "schema": self.look["schema"], "choices": plain(self.choices)}

    def _check_looked(self) -> None:
        if self.file is None or self.look is None:
            raise OptionError("no file was chosen; choose one first")


def _copy_closed(source: str, target: str) -> None:
    """Copy a file that is closed to others until it has the mode of the source."""
    os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    shutil.copy2(source, target)


def _empty(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with suppress(OSError):
                path.unlink()
