"""From a file larger than memory and a geometric mechanism to a release folder, in bounded memory."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from sfumato import __version__
from sfumato.assess.measure import assess
from sfumato.assess.report import Report
from sfumato.errors import OptionError, SfumatoError
from sfumato.geometry.key import Key
from sfumato.geometry.keyfile import check_key_path, keeping_key
from sfumato.geometry.mechanism import Hybrid, Rotation, Scaling, Translation
from sfumato.mechanism import Sanitized
from sfumato.pipeline.prepare import Job, check_budget, prepare, schema_of
from sfumato.privacy.certificate import Certificate, certify
from sfumato.publish.files import sha256_of, write_text
from sfumato.publish.folder import check_folder, replacing_folder
from sfumato.publish.release import Release, refuse_to_sign_rehearsal
from sfumato.publish.signature import SIGNATURE_FILE, Signer
from sfumato.randomness import Randomness
from sfumato.recipe import Recipe
from sfumato.replacing import reason
from sfumato.scale import MovedFile, sample_file, transform_file
from sfumato.scale.source import form_of
from sfumato.tables.field import Kind
from sfumato.tables.moved import free_fields
from sfumato.tables.schema import Schema

__all__ = ["FileRelease", "release_file"]

SAMPLE_ROWS = 100_000
"""Rows that are looked at to propose a schema, to draw a key and to measure."""

Geometric = Translation | Scaling | Rotation | Hybrid
_NUMBERS = (Kind.CONTINUOUS, Kind.INTEGER)


@dataclass(frozen=True, eq=False, repr=False)
class FileRelease:
    """What was written to a folder; the table and the key are in their files only.

    Parameters
    ----------
    folder : Path
        With ``release/``, which leaves, and ``owner/``, which stays.
    table : Path
    certificate : Certificate
    report : Report or None
        None where no report was asked for.
    """

    folder: Path
    table: Path
    certificate: Certificate
    report: Report | None

    def __repr__(self) -> str:
        return f"FileRelease({self.certificate!r})"


@dataclass(frozen=True, eq=False, repr=False)
class _Run:
    """What is settled before a file is moved: all of it was tried on the sample."""

    mechanism: Geometric
    schema: Schema
    key: Key
    job: Job
    sanitized: Sanitized
    randomness: Randomness


def release_file(
    source: str | Path,
    folder: str | Path,
    mechanism: Geometric,
    *,
    schema: Schema | None = None,
    target: str | None = None,
    identifiers: Iterable[str] = (),
    public: Iterable[str] = (),
    new_key: str | Path | None = None,
    batch_rows: int | None = None,
    sample_rows: int = SAMPLE_ROWS,
    seed: int | None = None,
    report: bool = True,
    budget: float | None = None,
    encoding: str = "utf-8",
    sign: str | Path | Signer | None = None,
    overwrite: bool = False,
    spreadsheet_safe: bool = False,
) -> FileRelease:
    """Move a file of any length by a key and write a whole release folder, certified and measured.

    Memory is bounded by a batch and by the sample. Folder and key appear together or not at all.

    Parameters
    ----------
    source : path
        A .parquet, .csv, .csv.gz, .arrow or .feather file; the released table is of the same format.
    folder : path
        For ``release/`` and ``owner/``.
    mechanism : Translation, Scaling, Rotation or Hybrid
        With a key, or without one together with ``new_key``.
    schema : Schema, optional
        By default proposed from the sample; bounds and steps seen there do not bind the other rows.
    target, identifiers, public
        As in `sanitize`.
    new_key : path, optional
        Draw a key, with the spreads of the sample, and write it here before the table.
    batch_rows : int, optional
        Rows of a batch; see `sfumato.scale.transform_file`.
    sample_rows : int
        Rows that are drawn at random for the schema, the key and the report.
    seed : int, optional
        Makes a rehearsal: reproducible and marked as not for release.
    report : bool
        Whether to measure, on the sample.
    budget : float, optional
        Seconds that the measuring may take.
    encoding : str
        Of CSV.
    sign : path or Signer, optional
        The private key to sign the certificate with. A rehearsal is not signed.
    overwrite : bool
        Replace an earlier release of that name.
    spreadsheet_safe : bool
        Write CSV with an apostrophe before what a spreadsheet would take for a formula.
    """
    check_budget(budget)
    _check_mechanism(mechanism)
    check_folder(folder, overwrite=overwrite)
    _check_key(mechanism, new_key, folder)
    name = f"table.{form_of(Path(source)).format.value}"
    signer = _signer(sign, rehearsal=seed is not None)
    randomness = Randomness(seed)
    sample = sample_file(source, sample_rows, randomness.generator("sample"), encoding=encoding)
    settled = schema_of(sample, schema, target, identifiers, public)
    run = _try_on_sample(sample, mechanism, settled if schema is not None else _unbound(settled, sample), randomness)
    with _plain_errors(), keeping_key(run.key, new_key, folder), replacing_folder(folder, overwrite=overwrite) as work:
        (work / "release").mkdir()
        done = transform_file(
            source,
            work / "release" / name,
            run.key,
            schema=run.schema,
            pass_categories=mechanism.pass_categories,
            batch_rows=batch_rows,
            seed=seed,
            encoding=encoding,
            spreadsheet_safe=spreadsheet_safe,
        )
        measured = _measure(run, done, budget) if report else None
        certificate = _write_release(work / "release", run, done, measured, signer)
        recipe = Recipe(
            mechanism.method, dataclasses.asdict(mechanism), run.schema, None, None, None, seed, __version__
        )
        Release(None, run.schema, certificate, measured, recipe)._write_owner(work / "owner")
    return FileRelease(Path(folder), Path(folder) / "release" / name, certificate, measured)


def _check_mechanism(mechanism: Any) -> None:
    if not isinstance(mechanism, Geometric):
        raise OptionError(
            f"the method {getattr(mechanism, 'method', '')!r} needs all rows at once, so a file cannot go through in "
            "chunks; take translate, scale, rotate or hybrid"
        )
    if mechanism.enhance:
        raise OptionError("enhance measures noise by the spread of all moved rows at once; leave it out, or chunks")


def _check_key(mechanism: Geometric, new_key: str | Path | None, folder: str | Path) -> None:
    if (_key_of(mechanism) is None) == (new_key is None):
        raise OptionError("a file is moved either by the mechanism's key or by a new one; give a key or new_key")
    if new_key is not None:
        check_key_path(new_key, apart_from=folder)


def _key_of(mechanism: Geometric) -> Key | None:
    return mechanism.__dict__["key"]  # type: ignore[no-any-return]  # an attribute and no field


def _signer(sign: str | Path | Signer | None, *, rehearsal: bool) -> Signer | None:
    if sign is None:
        return None
    refuse_to_sign_rehearsal(rehearsal=rehearsal)
    return sign if isinstance(sign, Signer) else Signer.load(sign)


def _unbound(schema: Schema, sample: pa.Table) -> Schema:
    """Free numbers from the bounds, steps and formats of the sample: other rows may have others.

    Whole numbers stay whole, but for a column of a floating-point type, in which other rows may have fractions.
    """
    numbers = {field.name for field in schema.encoded if field.kind in _NUMBERS}
    fields = [
        dataclasses.replace(field, kind=Kind.CONTINUOUS)
        if field.name in numbers and pa.types.is_floating(sample.schema.field(field.name).type)
        else field
        for field in schema
    ]
    return free_fields(Schema(tuple(fields)), numbers)


def _try_on_sample(sample: Any, mechanism: Geometric, schema: Schema, randomness: Randomness) -> _Run:
    """Settle the key and move the sample by it, so that what is refused is refused before anything is written."""
    job = prepare(sample, mechanism, schema, None, None, None, randomness)
    key = _key_of(mechanism)
    if key is None:
        key = mechanism.new_key(job.records.layout, rng=randomness.generator("sanitize"))
    keyed = dataclasses.replace(mechanism, key=key)
    sanitized = keyed.sanitize(job.records, rng=randomness.generator("order of the sample"))
    return _Run(mechanism, schema, key, job, sanitized, randomness)


@contextmanager
def _plain_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SfumatoError(f"the release could not be written ({reason(error)}); nothing was changed") from None


def _measure(run: _Run, done: MovedFile, budget: float | None) -> Report:
    """Measure the moved sample with the facts of the whole file."""
    records = run.sanitized.records
    measured = assess(
        run.job.original,
        run.job.codec.decode(records.values, moved=records.moved),
        run.job.codec,
        facts=done.facts,
        workings=run.sanitized.workings,
        budget=budget,
        rng=run.randomness.generator("assess"),
    )
    note = f"Measured on all {done.rows} rows of the file."
    if measured.rows_original < done.rows:
        note = (
            f"Measured on a sample of {measured.rows_original} of the {done.rows} rows of the file, drawn at random "
            "and moved by the same key."
        )
    return dataclasses.replace(measured, notes=(note, *measured.notes))


def _write_release(
    folder: Path, run: _Run, done: MovedFile, report: Report | None, signer: Signer | None
) -> Certificate:
    """Write what leaves beside the table: schema, page, certificate and signature."""
    write_text(folder / "schema.toml", done.schema.to_toml())
    files = {name: sha256_of(folder / name) for name in (done.path.name, "schema.toml")}
    certificate = certify(
        done.facts,
        version=__version__,
        randomness=run.randomness.mode.value,
        method=run.mechanism.method,
        parameters=dataclasses.asdict(run.mechanism),
        rows_in=done.rows,
        rows_out=done.rows,
        schema_sha256=files["schema.toml"],
    )
    certificate = dataclasses.replace(certificate, table_sha256=files[done.path.name], files=files)
    if report is not None:
        page = report.to_html(edition="public", certificate=certificate.to_document())
        write_text(folder / "report-public.html", page)
        files["report-public.html"] = sha256_of(folder / "report-public.html")
    text = certificate.to_json()
    write_text(folder / "certificate.json", text)
    if signer is not None:
        write_text(folder / SIGNATURE_FILE, signer.sign(text.encode("utf-8")).to_text())
    return certificate
