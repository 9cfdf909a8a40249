"""A release: certified and measured here for every engine, and the only code that writes and signs one."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sfumato.assess.report import Report
from sfumato.certificate import Certificate, CertifiedRun, certify
from sfumato.certificate.signature import SIGNATURE_FILE, Signer, own_signer, signing_key_path
from sfumato.core.errors import OptionError, PrivacyRefusal
from sfumato.core.facts import Fact, NoMeasurement
from sfumato.core.pages import html_table
from sfumato.core.randomness import Mode, Randomness
from sfumato.engines.outcome import Outcome, Recipe
from sfumato.engines.spark import is_spark_frame
from sfumato.methods.geometry.key import Key
from sfumato.methods.geometry.transformations import KeyedOwnerDetails
from sfumato.methods.protocol import OwnerDetails
from sfumato.options import PublishOptions
from sfumato.publish.assessment import Suggest, assess_outcome
from sfumato.publish.folder import OWNER_SCHEMA, plain_errors, replacing_folder, sha256_of, write_report, write_text
from sfumato.publish.judge import despite_facts, refuse_unmet
from sfumato.tables.facts import RareValues, is_quoted
from sfumato.tables.field import NO_COMMON_VALUE
from sfumato.tables.files import FileForm, FileFormat, write_file
from sfumato.tables.frames import to_arrow
from sfumato.tables.schema import Schema
from sfumato.tables.spreadsheet import FormulaCount

__all__ = ["Release", "Signing", "form_named", "publish", "signer_of"]

_KEEP_PRIVATE = "# Keep private: exact extremes and rare categories of the original; release/schema.toml leaves.\n"

Signing = str | Path | Signer | Ed25519PrivateKey | bool | None
"""Who signs: a key or the file of one; None is the owner's own key, but for dry runs, and False nobody."""


@dataclass(frozen=True, eq=False, repr=False)
class Release:
    """What came of a run, whatever engine carried it.

    Parameters
    ----------
    table : frame or Path
        The released table, of the same frame type as the original; the file that holds it where it went through in
        chunks.
    schema : Schema
        The full schema; the owner's.
    certificate : Certificate
    report : Report or None
        None if no report was asked for.
    recipe : Recipe
        Options of the run; the owner's.
    released : Schema
        Of the released table; only what it declares leaves.
    workings : OwnerDetails
        How it was made, for the owner alone.
    texts : mapping of str to str
        Further files that stay with the owner, by name.
    public_texts : mapping of str to str
        Further files that leave, by name.
    together : bool
        Several owners write the same release, so that a page about the part of one stays with that one.
    folder : Path or None
        The written folder, with the public ``release/`` and the private ``owner/``.
    signed_by : str or None
        Fingerprint of the key that signed what was written.
    """

    table: Any
    schema: Schema
    certificate: Certificate
    report: Report | None
    recipe: Recipe
    released: Schema
    workings: OwnerDetails = field(default_factory=OwnerDetails)
    texts: Mapping[str, str] = field(default_factory=dict)
    public_texts: Mapping[str, str] = field(default_factory=dict)
    together: bool = False
    folder: Path | None = None
    signed_by: str | None = None

    def __repr__(self) -> str:
        return f"Release({self.certificate!r})"

    def _repr_html_(self) -> str:
        certificate, levels = self.certificate, self.certificate.levels
        records = "" if certificate.rows_in is None else f"{certificate.rows_in} in, "
        fields = [("made by", certificate.method), ("rows", f"{records}{certificate.rows_out} out")]
        if levels:
            smallest = f"{levels['groups']}, the smallest of {levels['smallest_group']}"
            fields += [("groups", smallest)]
        if certificate.randomness != Mode.RELEASE.value:
            fields.append(("DRY RUN", "made with a seed, not for release"))
        claims = f"{len(certificate.claims)} claims, {len(certificate.refused)} refused"
        fields.append(("certificate", f"{claims}: release.certificate"))
        if self.report is None:
            fields.append(("report", "nothing was measured"))
        else:
            verdict = "" if self.report.verdict is None else f"{self.report.verdict.sentence()} "
            fields.append(("report", f"{verdict}{len(self.report.findings)} findings: release.report"))
        where = 'release.save("folder") writes it' if self.folder is None else str(self.folder)
        return html_table("Release", [*fields, ("folder", where)])

    @property
    def dropped(self) -> dict[str, str]:
        """Why each column of the original that is not in the release was dropped, by name; for the owner."""
        rare = [fact for fact in self.certificate.facts if isinstance(fact, RareValues)]
        without = {name: NO_COMMON_VALUE.format(fact.k) for fact in rare for name in fact.dropped}
        return {**self.schema.dropped, **without}

    @property
    def key(self) -> Key | None:
        """The secret key that rows were moved by, where they were."""
        return self.workings.key if isinstance(self.workings, KeyedOwnerDetails) else None

    def save(
        self,
        folder: str | Path,
        *,
        form: FileForm | str = FileFormat.CSV.value,
        overwrite: bool = False,
        sign: Signing = None,
    ) -> Path:
        """Write ``release/``, which leaves, and ``owner/``, which stays, whole or not at all.

        Parameters
        ----------
        folder : path
        form : FileForm or {"csv", "parquet", "arrow", "xlsx", "ods", "sqlite"}
        overwrite : bool
            Replace an earlier release of that name.
        sign : path, Signer, Ed25519PrivateKey or bool, optional
            The private key to sign the certificate with. By default the owner's own, which is made at its first use
            (see `sfumato.signing_key`); False leaves it unsigned. A dry run is not signed.
        """
        self.written(folder, form=form, overwrite=overwrite, sign=sign)
        return Path(folder)

    def save_owner(self, folder: str | Path, *, overwrite: bool = False) -> Path:
        """Write ``owner/`` alone, of a release that must not leave."""
        with plain_errors("the owner's part"), replacing_folder(folder, overwrite=overwrite) as work:
            self._write_owner(work / "owner")
        return Path(folder)

    def written(
        self,
        folder: str | Path,
        *,
        form: FileForm | str = FileFormat.CSV.value,
        overwrite: bool = False,
        sign: Signing = None,
        agree: Callable[[Path], None] | None = None,
        lost: str = "nothing was changed",
    ) -> Release:
        """The same release with the hashes of its files, once it is written.

        Parameters
        ----------
        folder, form, overwrite, sign
            As in `save`.
        agree : callable, optional
            Is called with the finished folder before it takes its name; an error there leaves nothing.
        lost : str
            What is left where the folder cannot be written.
        """
        dry_run = self.certificate.randomness != Mode.RELEASE.value
        signer = signer_of(sign, dry_run=dry_run, folder=folder)
        form = form_named(form)
        with plain_errors("the release", lost), replacing_folder(folder, overwrite=overwrite) as work:
            done = self.write_into(work, form, signer)
            if agree is not None:
                agree(work)
        return dataclasses.replace(done, folder=Path(folder))

    def write_into(self, work: Path, form: FileForm, signer: Signer | None) -> Release:
        """The same release with the hashes of its files, once they are written into a folder that is still hidden."""
        if is_quoted(self.certificate.facts) and form.format is not FileFormat.CSV:
            raise OptionError("apostrophes before formulas are for CSV; write it so, or drop --spreadsheet-safe")
        certificate = self._write_release(work / "release", form, signer)
        signed_by = None if signer is None else signer.fingerprint
        done = dataclasses.replace(self, certificate=certificate, signed_by=signed_by)
        done._write_owner(work / "owner")
        return done

    def _write_release(self, folder: Path, form: FileForm, signer: Signer | None) -> Certificate:
        folder.mkdir(exist_ok=True)
        name = f"table.{form.format.value}"
        self._write_table(folder / name, form)
        write_text(folder / "schema.toml", self.released.public_part().to_toml())
        files = {name: sha256_of(folder / name), "schema.toml": sha256_of(folder / "schema.toml")}
        for each, text in self.public_texts.items():
            write_text(folder / each, text)
            files[each] = sha256_of(folder / each)
        certificate = dataclasses.replace(
            self.certificate, table_sha256=files[name], schema_sha256=files["schema.toml"], files=files
        )
        if self.report is not None and not self.together and self.certificate.privacy is None:  # it is measured
            page = self.report.to_html(edition="public", certificate=certificate.to_document())
            write_text(folder / "report-public.html", page)
            files["report-public.html"] = sha256_of(folder / "report-public.html")
        text = certificate.to_json()
        write_text(folder / "certificate.json", text)
        if signer is not None:
            write_text(folder / SIGNATURE_FILE, signer.sign(text.encode("utf-8")).to_text())
        return certificate

    def _write_table(self, place: Path, form: FileForm) -> None:
        if not isinstance(self.table, Path):
            table = self.table.toArrow() if is_spark_frame(self.table) else to_arrow(self.table)[0]
            write_file(table, place, form, spreadsheet_safe=is_quoted(self.certificate.facts))
        elif self.table != place:
            shutil.copyfile(self.table, place)

    def _write_owner(self, folder: Path) -> None:
        folder.mkdir(mode=0o700)
        write_text(folder / OWNER_SCHEMA, _KEEP_PRIVATE + self.schema.to_toml(), mode=0o600)
        write_text(folder / "recipe.toml", self.recipe.to_toml(), mode=0o600)
        for name, text in self.texts.items():
            write_text(folder / name, text, mode=0o600)
        if self.report is not None:
            write_report(folder, self.report, self.certificate)


def form_named(form: FileForm | str) -> FileForm:
    """How a table is written, by its name."""
    return form if isinstance(form, FileForm) else FileForm(FileFormat(form))


def signer_of(
    sign: Signing, *, dry_run: bool, folder: str | Path, ask: Callable[[], str] | None = None
) -> Signer | None:
    """Who signs a release that is to be written into a folder; nobody signs a dry run.

    Parameters
    ----------
    sign : path, Signer, Ed25519PrivateKey or bool, optional
    dry_run : bool
    folder : path
    ask : callable, optional
        Asks a person for the passphrase of an encrypted key.

    Raises
    ------
    BadInput
        If the key cannot be read, or lies in the folder.
    PrivacyRefusal
        If a dry run is to be signed.
    """
    if sign is False or (sign is None and dry_run):
        return None
    if dry_run:
        raise PrivacyRefusal("a dry run is not for release, so it is not signed; leave out the seed or --sign")
    if isinstance(sign, Signer):
        return sign
    if isinstance(sign, Ed25519PrivateKey):
        return Signer(sign)
    key = Path(sign) if isinstance(sign, str | Path) else signing_key_path()
    if Path(folder).resolve() in key.resolve().parents:
        raise OptionError("the key is in the output folder, part of which is sent; move it to another folder")
    return Signer.load(key, ask=ask) if isinstance(sign, str | Path) else own_signer(ask=ask)


def publish(
    outcome: Outcome,
    options: PublishOptions | None = None,
    *,
    suggest: Suggest | None = None,
    agree: Callable[[Report | None], Outcome] | None = None,
) -> Release:
    """Certify, measure and judge what an engine made; runs at the owner's, and writes nothing.

    The policy of the options is read already; ``suggest`` finds what to try next where it is not met. Where several
    owners release together, ``agree`` tells the others how this one judged its part, and gives the outcome with the
    facts of how all did.

    Raises
    ------
    PolicyNotMet
        If the policy is not met or the verdict is inconclusive; it holds the report.
    """
    options = PublishOptions() if options is None else options
    recipe, policy = outcome.recipe, options.policy
    measured = assess_outcome(outcome, options, suggest=suggest)
    if policy is not None:
        recipe = dataclasses.replace(recipe, policy=policy.title)
    judged: tuple[Fact, ...] = () if options.report else (NoMeasurement(),)
    judged += despite_facts(measured, despite=options.despite_policy)
    if agree is not None:
        outcome, judged = agree(measured), ()
    certificate = certify(
        (*outcome.facts, *_formulas(outcome, quoted=options.spreadsheet_safe), *judged),
        CertifiedRun(
            recipe.sfumato,
            Randomness(recipe.options.seed).mode.value,
            recipe.method,
            dict(recipe.parameters),
            outcome.rows_in,
            outcome.rows_out,
            outcome.schema.public_part().digest,
            outcome.created or "",
        ),
    )
    if measured is not None:
        measured = dataclasses.replace(measured, certificate=certificate.to_document())
    release = Release(
        outcome.table,
        recipe.schema,
        certificate,
        measured,
        recipe,
        outcome.schema,
        outcome.workings,
        outcome.texts,
        outcome.public_texts,
        outcome.together,
    )
    return refuse_unmet(release, despite=options.despite_policy)


def _formulas(outcome: Outcome, *, quoted: bool) -> tuple[Fact, ...]:
    """What a spreadsheet would run; who wrote a file has counted it there."""
    if not isinstance(outcome.table, pa.Table):
        return ()
    formulas = FormulaCount(outcome.table.column_names)
    formulas.add(outcome.table)
    return formulas.facts(quoted=quoted)
