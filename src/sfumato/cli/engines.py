"""Which engine a run takes: all rows at once, or a file in chunks where it does not go into memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from sfumato.cli.console import Console
from sfumato.core.errors import OptionError

if TYPE_CHECKING:
    from sfumato.tables.files import FileForm

__all__ = ["Place", "refuse_in_chunks"]

_WHOLE = ("weight", "where", "keep_persons")  # that no engine but memory knows
_IN_CELLS = ("chain", "condense", "condense-paper", "classwise", "noise", "randomize")
_MOVED = ("holdout", "level", "strata", "rare", "rows", "no_rules", *_WHOLE)  # nor a file that is moved in batches


@dataclass(frozen=True)
class Place:
    """Where a run is to be made, as it was told."""

    source: str
    engine: str | None
    master: str | None
    memory: str | None
    resume_key: Path | None
    chunked: bool
    batch_rows: int | None

    def __post_init__(self) -> None:
        if self.memory is not None:
            from sfumato.engines.cells.cuts import parse_size

            parse_size(self.memory)
        told = "chunks" if self.chunked or self.resume_key is not None else self.engine
        if self.engine not in (None, told):
            raise OptionError(f"--engine {self.engine} is not for files in chunks; leave one of these options out")
        if self.master is not None and self.engine != "spark":
            raise OptionError("--master is of a cluster; add --engine spark, or leave it out")
        if self.batch_rows is not None and told not in ("chunks", "spark"):
            raise OptionError("--batch-rows is for files that go through in batches; add --engine chunks")

    @property
    def carried_by(self) -> Literal["chunks", "spark"]:
        """Engine of a file that does not go into memory at once."""
        return "spark" if self.engine == "spark" else "chunks"

    @property
    def form(self) -> FileForm:
        """How the table is written that is read; a folder that a cluster reads is one of Parquet."""
        from sfumato.engines.chunks.source import form_of
        from sfumato.tables.files import FileForm, FileFormat

        known = self.engine != "spark" or self.source.lower().endswith((".csv", ".csv.gz"))
        return form_of(Path(self.source)) if known else FileForm(FileFormat.PARQUET)

    @property
    def is_file(self) -> bool:
        """Whether it is a file that can be read in parts, more than once."""
        from sfumato.tables.files import ENDINGS

        name = self.source.lower()
        parts = [ending for ending, kind in ENDINGS.items() if kind.value in ("csv", "parquet", "arrow")]
        return self.source != "-" and "://" not in name and name.endswith(tuple(parts)) and Path(self.source).is_file()

    def is_chunked(self, console: Console, elsewhere: Sequence[str | None], needs: Mapping[str, Any]) -> bool:
        """Whether the file goes through in chunks: told so, or too large for the memory that there is.

        ``elsewhere`` are a sheet and a query, which are of no file that chunks know, ``needs`` what a run is told.
        Says so where nobody told.
        """
        if self.engine in ("chunks", "spark") or self.chunked or self.resume_key is not None:
            return True
        if self.engine is not None or not self.is_file or any(each is not None for each in elsewhere):
            return False
        from sfumato.engines.cells.cuts import needed_bytes, parse_size, size_words, usual_memory
        from sfumato.engines.chunks.source import open_source

        granted = usual_memory() if self.memory is None else parse_size(self.memory)
        method, whole = _method_of(needs), _first_told(needs, _WHOLE)
        needed = needed_bytes(open_source(self.source), method)
        if needed <= granted:
            return False
        why = f"the table would need about {size_words(needed)} of memory and {size_words(granted)} are granted"
        if self.memory is None and (whole is not None or method not in (None, *_IN_CELLS)):
            instead = "--method chain" if whole is None else f"without {whole} it"
            console.note(f"sfumato: {why}; {instead} would go through in cells.")
            return False
        console.note(f"sfumato: {why}, so that it goes through in cells, rows put aside on disk in between.")
        return True


def refuse_in_chunks(place: Place, form: str | None, elsewhere: Sequence[str | None], needs: Mapping[str, Any]) -> None:
    """Refuse what needs all rows at once, before anything is read."""
    from sfumato.mechanisms.methods import is_keyed

    sheet, query = elsewhere
    if place.source == "-" or ("://" in place.source and place.engine != "spark") or query is not None:
        raise OptionError(
            "--engine chunks reads a file, and reads it twice; write standard input or the query to a file first"
        )
    if sheet is not None:
        raise OptionError("--engine chunks reads no workbooks; write the sheet to a CSV file first")
    method = _method_of(needs)
    moved = method is not None and is_keyed(method)
    whole = _first_told(needs, _MOVED if moved else _WHOLE)
    if whole is not None:
        raise OptionError(f"{whole} needs all rows at once; leave it out, or take --engine memory")
    read = place.form
    wanted = read.format.value if form is None else form
    if needs["spreadsheet_safe"] and wanted != "csv":
        raise OptionError("--spreadsheet-safe is for CSV; convert the file first, or leave it out")
    if moved and wanted != read.format.value:
        raise OptionError("a file that is moved keeps its format; leave out --format, or convert the file first")
    if wanted not in ("csv", "parquet", "arrow"):
        raise OptionError("--engine chunks writes csv, parquet or arrow; choose one of them")
    if moved and place.resume_key is not None:
        raise OptionError("--resume-key is for files that go through in cells; leave it out")


def _method_of(needs: Mapping[str, Any]) -> str | None:
    recipe = needs["recipe"]
    method: str | None = needs["method"] if recipe is None else recipe.method
    return method


def _first_told(needs: Mapping[str, Any], names: Sequence[str]) -> str | None:
    """The first of some options that was told, or that a recipe tells, as it is spelt."""
    told = (name for name in names if needs[name] or getattr(needs["recipe"], name, None))
    return next((f"--{name.replace('_', '-')}" for name in told), None)
