"""A release: the table, its certificate and its report."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.assess.report import Report
from sfumato.errors import SfumatoError
from sfumato.privacy.certificate import Certificate
from sfumato.recipe import Recipe
from sfumato.release.folder import replacing_folder
from sfumato.tables.files import FileForm, FileFormat, write_file
from sfumato.tables.frames import to_arrow
from sfumato.tables.schema import Schema

__all__ = ["Release"]


@dataclass(frozen=True, eq=False, repr=False)
class Release:
    """What came of sanitizing a table.

    Parameters
    ----------
    table : frame
        The released table, of the same frame type as the original.
    schema : Schema
        The full schema; the owner's.
    certificate : Certificate
    report : Report or None
        None where no report was asked for.
    recipe : Recipe
        What the run was told; the owner's.
    """

    table: Any
    schema: Schema
    certificate: Certificate
    report: Report | None
    recipe: Recipe

    def __repr__(self) -> str:
        return f"Release({self.certificate!r})"

    def save(self, folder: str | Path, *, form: FileForm | str = FileFormat.CSV.value, overwrite: bool = False) -> Path:
        """Write ``release/``, which leaves, and ``owner/``, which stays, whole or not at all.

        Parameters
        ----------
        folder : path
        form : FileForm or {"csv", "parquet", "arrow"}
        overwrite : bool
            Replace an earlier release of that name.
        """
        form = form if isinstance(form, FileForm) else FileForm(FileFormat(form))
        try:
            with replacing_folder(folder, overwrite=overwrite) as work:
                self._write_release(work / "release", form)
                self._write_owner(work / "owner")
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else type(error).__name__
            raise SfumatoError(f"the release could not be written ({reason}); nothing was changed") from None
        return Path(folder)

    def _write_release(self, folder: Path, form: FileForm) -> None:
        folder.mkdir()
        name = f"table.{form.format.value}"
        write_file(to_arrow(self.table)[0], folder / name, form)
        _write(folder / "schema.toml", self.schema.public_part().to_toml())
        files = {name: _sha256(folder / name), "schema.toml": _sha256(folder / "schema.toml")}
        certificate = dataclasses.replace(
            self.certificate, table_sha256=files[name], schema_sha256=files["schema.toml"], files=files
        )
        if self.report is not None:
            page = self.report.to_html(edition="public", certificate=certificate.to_document())
            _write(folder / "report-public.html", page)
            files["report-public.html"] = _sha256(folder / "report-public.html")
        _write(folder / "certificate.json", certificate.to_json())

    def _write_owner(self, folder: Path) -> None:
        folder.mkdir(mode=0o700)
        _write(folder / "schema.toml", self.schema.to_toml(), mode=0o600)
        _write(folder / "recipe.toml", self.recipe.to_toml(), mode=0o600)
        if self.report is not None:
            document = json.dumps(self.report.to_json(), indent=2, ensure_ascii=False, allow_nan=False)
            _write(folder / "report.json", document + "\n", mode=0o600)
            page = self.report.to_html(edition="owner", certificate=self.certificate.to_document())
            _write(folder / "report.html", page, mode=0o600)


def _write(path: Path, text: str, *, mode: int | None = None) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        if mode is not None:
            path.chmod(mode)
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
