"""Which engine processes an input: all rows in memory, a file in partitions, or a cluster."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from sfumato.assess.warm import compile_apart
from sfumato.core.errors import OptionError
from sfumato.engines.partitions.memory_limit import (
    check_memory,
    least_bytes,
    needed_bytes,
    parse_size,
    size_words,
    usual_memory,
)
from sfumato.methods.catalogue import is_keyed
from sfumato.options import PublishOptions, RunOptions, first_needing_all_rows
from sfumato.tables.files import ENDINGS, FileForm, FileFormat
from sfumato.tables.reading import FileReading
from sfumato.tables.source import TableSource, form_of, open_source

__all__ = ["Engine", "InputFile"]

Engine: TypeAlias = Literal["memory", "partitions", "spark"]

_BY_PARTS = (FileFormat.CSV, FileFormat.PARQUET, FileFormat.ARROW)
_IN_CELLS = ("chain", "private", "condense", "condense-paper", "classwise", "noise", "randomize")


@dataclass(frozen=True)
class InputFile:
    """A file, standard input (``-``) or a database URL, and what decides which engine reads it.

    Parameters
    ----------
    source : str
    options : RunOptions
    publishing : PublishOptions
    reading : FileReading
    method : str or None
        None if it depends on the number of rows.
    query : str or None
        Of a database.
    """

    source: str
    options: RunOptions
    publishing: PublishOptions
    reading: FileReading
    method: str | None = None
    query: str | None = None

    def engine(self) -> Engine:
        """The engine that was asked for, or partitions if the file needs more memory than is granted.

        Logs why if it chose partitions.
        """
        options = self.options
        if options.memory is not None:
            parse_size(options.memory)
        asked: Engine | None = "partitions" if options.resume_key is not None else options.engine
        if options.engine not in (None, asked):
            raise OptionError(f"--engine {options.engine} cannot process a file in partitions; drop --engine")
        if options.master is not None and options.engine != "spark":
            raise OptionError("--master has no effect without --engine spark; add it, or drop --master")
        if options.batch_rows is not None and asked not in ("partitions", "spark"):
            raise OptionError("--batch-rows has no effect on a run in memory; add --engine partitions, or drop it")
        if asked is None and self._can_be_read_in_parts:
            asked = "partitions" if self._exceeds_memory() else "memory"
        if asked in ("partitions", "spark"):
            self._refuse_in_partitions()
        return asked or "memory"

    @property
    def _can_be_read_in_parts(self) -> bool:
        """Whether it is a file that can be read in parts, more than once."""
        name = self.source.lower()
        endings = tuple(ending for ending, form in ENDINGS.items() if form in _BY_PARTS)
        elsewhere = self.reading.sheet is not None or self.query is not None
        return not elsewhere and "://" not in name and name.endswith(endings) and Path(self.source).is_file()

    def _opened(self) -> TableSource:
        reading = self.reading
        return open_source(
            self.source, encoding=reading.encoding, delimiter=reading.delimiter, header_row=reading.header_row
        )

    def _exceeds_memory(self) -> bool:
        """Whether all rows need more memory than is granted, or than is usual; says why to the person who runs it."""
        source, report = self._opened(), self.publishing.report
        if self.options.memory is not None:
            return self._exceeds(source, parse_size(self.options.memory))
        granted, whole = usual_memory(), first_needing_all_rows(self.options)
        needed, least = needed_bytes(source, self.method), least_bytes(source, report=report)
        if needed <= granted:
            return False
        why = f"the table needs about {size_words(needed)} of memory; the limit is {size_words(granted)}"
        if whole is not None or self.method not in (None, *_IN_CELLS):
            instead = "use --method chain" if whole is None else f"drop {whole}"
            _say(f"{why}. To process it in partitions, {instead}.")
            return False
        _say(f"{why}. It is processed in partitions, with encrypted temporary files.")
        if least > granted:
            _say(f"the run still needs about {size_words(least)}, mostly for the report.")
        return True

    def _exceeds(self, source: TableSource, granted: int) -> bool:
        """Whether all rows and the report need more than was granted; refuses what is too little for either way."""
        report = self.publishing.report
        needed = needed_bytes(source, self.method, report=report)
        if needed <= granted:
            if report:
                compile_apart()
            return False
        least, less = (
            min(least_bytes(source, report=each), needed_bytes(source, self.method, report=each))
            for each in (report, False)
        )
        check_memory(granted, least, less)
        why = f"the run needs about {size_words(needed)} of memory; the limit is {size_words(granted)}"
        _say(f"{why}. It is processed in partitions, with encrypted temporary files.")
        return True

    def _refuse_in_partitions(self) -> None:
        """Refuse what needs all rows at once, before anything is read."""
        if self.source == "-" or ("://" in self.source and self.options.engine != "spark") or self.query is not None:
            raise OptionError(
                "--engine partitions reads its input twice, so it needs a file; save standard input or the query to a "
                "file first"
            )
        if self.reading.sheet is not None:
            raise OptionError("--engine partitions does not read workbooks; save the sheet as CSV first")
        moved = self.method is not None and is_keyed(self.method)
        whole = first_needing_all_rows(self.options, batches=moved)
        if whole is not None:
            raise OptionError(f"{whole} needs all rows in memory; drop it, or use --engine memory")
        form = self.publishing.form
        named = form.format if isinstance(form, FileForm) else FileFormat(form) if form is not None else None
        written = named or self._form.format
        if self.publishing.spreadsheet_safe and written is not FileFormat.CSV:
            raise OptionError(
                "--spreadsheet-safe applies to CSV only; convert the file to CSV first, or drop the option"
            )
        if moved and written is not self._form.format:
            raise OptionError("a geometric method with --engine partitions keeps the format of the file; drop --format")
        if written not in _BY_PARTS:
            raise OptionError("--engine partitions writes csv, parquet or arrow; choose one with --format")
        if moved and self.options.resume_key is not None:
            raise OptionError("--resume-key has no effect with a geometric method; drop it")

    @property
    def _form(self) -> FileForm:
        """How the file is written; a folder that a cluster reads is one of Parquet."""
        known = self.options.engine != "spark" or self.source.lower().endswith((".csv", ".csv.gz"))
        return form_of(Path(self.source)) if known else FileForm(FileFormat.PARQUET)


def _say(words: str) -> None:
    logging.getLogger("sfumato").warning("%s", words)
