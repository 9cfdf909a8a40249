"""A release: the table, its certificate and its report."""

from __future__ import annotations

import dataclasses
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.assess.report import Report
from sfumato.errors import OptionError, PrivacyRefusal, SfumatoError
from sfumato.facts import is_quoted
from sfumato.privacy.certificate import Certificate
from sfumato.publish.files import sha256_of, write_text
from sfumato.publish.folder import replacing_folder
from sfumato.publish.signature import SIGNATURE_FILE, Signer
from sfumato.randomness import Mode
from sfumato.recipe import Recipe
from sfumato.records import Grids
from sfumato.tables.files import FileForm, FileFormat, write_file
from sfumato.tables.frames import to_arrow
from sfumato.tables.moved import free_fields
from sfumato.tables.schema import Schema

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from sfumato.geometry.key import Key

__all__ = ["Release", "refuse_to_sign_rehearsal"]


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
    moved: frozenset[str] = frozenset()
    key: Key | None = None
    grids: Grids = ()

    def __repr__(self) -> str:
        return f"Release({self.certificate!r})"

    def save(
        self,
        folder: str | Path,
        *,
        form: FileForm | str = FileFormat.CSV.value,
        overwrite: bool = False,
        sign: str | Path | Signer | Ed25519PrivateKey | None = None,
    ) -> Path:
        """Write ``release/``, which leaves, and ``owner/``, which stays, whole or not at all.

        Parameters
        ----------
        folder : path
        form : FileForm or {"csv", "parquet", "arrow"}
        overwrite : bool
            Replace an earlier release of that name.
        sign : path, Signer or Ed25519PrivateKey, optional
            The private key to sign the certificate with. A rehearsal is not signed.
        """
        signer = self._signer(sign)
        form = form if isinstance(form, FileForm) else FileForm(FileFormat(form))
        if is_quoted(self.certificate.facts) and form.format is not FileFormat.CSV:
            raise OptionError(
                "apostrophes before formulas are for CSV; write it so, or make it without spreadsheet_safe"
            )
        try:
            with replacing_folder(folder, overwrite=overwrite) as work:
                self._write_release(work / "release", form, signer)
                self._write_owner(work / "owner")
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else type(error).__name__
            raise SfumatoError(f"the release could not be written ({reason}); nothing was changed") from None
        return Path(folder)

    def _signer(self, sign: str | Path | Signer | Ed25519PrivateKey | None) -> Signer | None:
        if sign is None:
            return None
        refuse_to_sign_rehearsal(rehearsal=self.certificate.randomness != Mode.RELEASE.value)
        if isinstance(sign, Signer):
            return sign
        return Signer.load(sign) if isinstance(sign, str | Path) else Signer(sign)

    def _write_release(self, folder: Path, form: FileForm, signer: Signer | None) -> None:
        folder.mkdir()
        name = f"table.{form.format.value}"
        quoted = is_quoted(self.certificate.facts)
        write_file(to_arrow(self.table)[0], folder / name, form, spreadsheet_safe=quoted)
        write_text(folder / "schema.toml", free_fields(self.schema, self.moved, self.grids).public_part().to_toml())
        files = {name: sha256_of(folder / name), "schema.toml": sha256_of(folder / "schema.toml")}
        certificate = dataclasses.replace(
            self.certificate, table_sha256=files[name], schema_sha256=files["schema.toml"], files=files
        )
        if self.report is not None:
            page = self.report.to_html(edition="public", certificate=certificate.to_document())
            write_text(folder / "report-public.html", page)
            files["report-public.html"] = sha256_of(folder / "report-public.html")
        text = certificate.to_json()
        write_text(folder / "certificate.json", text)
        if signer is not None:
            write_text(folder / SIGNATURE_FILE, signer.sign(text.encode("utf-8")).to_text())

    def _write_owner(self, folder: Path) -> None:
        folder.mkdir(mode=0o700)
        write_text(folder / "schema.toml", self.schema.to_toml(), mode=0o600)
        write_text(folder / "recipe.toml", self.recipe.to_toml(), mode=0o600)
        if self.report is not None:
            document = json.dumps(self.report.to_json(), indent=2, ensure_ascii=False, allow_nan=False)
            write_text(folder / "report.json", document + "\n", mode=0o600)
            page = self.report.to_html(edition="owner", certificate=self.certificate.to_document())
            write_text(folder / "report.html", page, mode=0o600)


def refuse_to_sign_rehearsal(*, rehearsal: bool) -> None:
    """Refuse: a signature is a person's word for a table, and a rehearsal is not for release."""
    if rehearsal:
        raise PrivacyRefusal("a rehearsal is not for release, so it is not signed; leave out the seed or --sign")
