"""Every reader of hostile input: a new one joins with a line in ``PARSERS`` and a folder of seeds."""

from __future__ import annotations

import dataclasses
import hashlib
import shutil
import zipfile
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from examples.messy_patients import WORKBOOK_PARTS
from sfumato.certificate import Certificate
from sfumato.certificate.signature import Signature, Signer, expected_signer
from sfumato.core.database import locate
from sfumato.core.distributions.domains import Integers, Labels
from sfumato.core.distributions.spec import NoiseSpec
from sfumato.core.errors import TableError
from sfumato.core.facts import Check
from sfumato.engines.outcome import Recipe
from sfumato.engines.partitions.memory_limit import parse_size, run_key
from sfumato.methods.catalogue import make_mechanism
from sfumato.methods.geometry.key import Key
from sfumato.methods.private.budget import charge
from sfumato.methods.private.stored import StoredModel
from sfumato.publish import verify
from sfumato.publish.folder import Contents, own_files
from sfumato.publish.policy import Policy
from sfumato.publish.verify import columns_check, verify_release
from sfumato.publish.verify_rows import read_released
from sfumato.sklearn.dynamic import read_snapshot
from sfumato.survey.breach import holds
from sfumato.survey.channel import read_prior
from sfumato.survey.verbs import read_spec
from sfumato.tables.facts import WeightsScaled
from sfumato.tables.files import read_file, read_numerals
from sfumato.tables.frames import restore, to_arrow
from sfumato.tables.hierarchies import read_hierarchy
from sfumato.tables.levels import levels_of_table, meets_all, parse_conditions
from sfumato.tables.row_checks import RuleCheck, WeightCheck
from sfumato.tables.schema import Schema
from sfumato.tables.source import open_people
from sfumato.transactions.table import read_transactions, transactions_of_table
from tests.fuzz.fuzzing import GOLDENS, Parser, golden_bytes
from tests.fuzz.inputs import as_bytes, as_file, as_text, folder_in_memory
from tests.fuzz.peers import PEERS
from tests.fuzz.states import STATES

try:
    from tests.fuzz.collectors import COLLECTORS
except ImportError:  # sfumato[survey] is not installed
    COLLECTORS = ()

__all__ = ["PARSERS"]


# ------------------------------------------------------------------------------------------------- tables and releases


@cache
def _table() -> pa.Table:
    return pa.table({"age": [30, 40, 50, None], "city": ["quetzal", "b", "quetzal", None], "born": ["2001-02-03"] * 4})


@cache
def _table_schema() -> Schema:
    return Schema.infer(_table())


def _levels(text: str) -> Any:
    levels, schema = levels_of_table(text, _table(), _table_schema())
    return levels.tolist(), schema


def _where(text: str) -> Any:
    return meets_all(parse_conditions(text), _table(), _table_schema()).tolist()


def _transactions(path: Path) -> Any:
    found = read_transactions(path, most_bytes=1 << 20)
    return found.counted(), found.to_table().to_pydict()


def _transaction_columns(text: str) -> Any:
    """Transactions of a table of texts; how CSV is read is tried by others."""
    head, *rows = [line.split(",") for line in text.splitlines()] or [[]]
    names = list(dict.fromkeys(head))
    columns = {name: [row[place] if place < len(row) else None for row in rows] for place, name in enumerate(names)}
    return transactions_of_table(
        pa.table({name: pa.array(cells, pa.string()) for name, cells in columns.items()})
    ).counted()


def _recipe(text: str) -> Recipe:
    recipe = Recipe.from_toml(text)
    make_mechanism(recipe.method, dict(recipe.parameters))
    return recipe


def _private_model(path: Path) -> str:
    stored = StoredModel.load(path)
    assert stored.draw(20, np.random.default_rng(0)).num_rows == 20
    return stored.to_json()


def _charge(path: Path) -> None:
    charge(path, 1e-9, 0.0, "settings", measured=False)
    charge(path, 1e-9, 0.0, "settings", measured=False)


def _schema(text: str) -> Schema:
    schema = Schema.from_toml(text).without_reasons()
    schema.describe(domains=True)
    return schema


def _spec(text: str) -> NoiseSpec:
    spec = NoiseSpec.from_toml(text)
    spec.describe()
    return spec


def _inferred(path: Path) -> Schema:
    return Schema.infer(read_file(path)[0])


def _cells(path: Path) -> Any:
    return read_file(path)[0].to_pylist()


def _numerals(path: Path) -> Any:
    return read_numerals(*read_file(path))[0].to_pylist()


def _hierarchy(path: Path) -> Any:
    found = read_hierarchy(path)
    return [found.label(value, level) for value in found.rows for level in range(1, (found.levels or 0) + 1)]


def _workbook(name: str, part: str) -> Callable[[bytes], Any]:
    """Read a workbook whose part of that name is hostile."""

    def through(data: bytes) -> Any:
        path = folder_in_memory() / name
        with zipfile.ZipFile(path, "w") as archive:
            for other, text in WORKBOOK_PARTS.items():
                if other != part and name.endswith(".xlsx"):
                    archive.writestr(other, text)
            archive.writestr(part, data)
            if name.endswith(".ods"):
                archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
                archive.writestr("META-INF/manifest.xml", "<manifest/>")
        return read_file(path, most_bytes=1 << 20)[0].to_pylist()

    return through


def _cells_within(path: Path) -> Any:
    return read_file(path, most_bytes=1 << 20)[0].to_pylist()


def _read_source(path: Path) -> pa.Table:
    source = open_people(path)
    return source.head(source.schema.names, 5)


@cache
def _release() -> tuple[Path, Certificate]:
    """Folder of a release of which a file is hostile, and its certificate."""
    folder = folder_in_memory() / "release"
    folder.mkdir()
    for golden in (GOLDENS / "condense").glob("release-*"):
        (folder / golden.name.removeprefix("release-")).write_bytes(golden_bytes(golden))
    return folder, Certificate.from_json((folder / "certificate.json").read_text(encoding="utf-8"))


def _reviewed(form: str) -> Callable[[bytes], Any]:
    """Review a release whose table, of such a file, is hostile and certified as it is: facts speak of many cells."""

    def through(data: bytes) -> None:
        folder, told = _widened()
        name, digest = f"table.{form}", hashlib.sha256(data).hexdigest()
        files = {name: digest, "schema.toml": told.files["schema.toml"]}
        certificate = dataclasses.replace(told, files=files, table_sha256=digest)
        (folder / name).write_bytes(data)
        try:
            found = [verify._files(folder, certificate, 1 << 30), *verify._table(folder, certificate, None)]
        finally:
            (folder / name).unlink()
        assert all(check.detail.isprintable() for check in found)
        if any(check.name == "table readable" for check in found):
            raise TableError("the table cannot be read")

    return through


@cache
def _widened() -> tuple[Path, Certificate]:
    """Folder of a release without its table, and its certificate, whose facts count rows that are alike and labels."""
    folder, golden = folder_in_memory() / "widened", GOLDENS / "aggregate"
    folder.mkdir()
    (folder / "schema.toml").write_bytes(golden_bytes(golden / "release-schema.toml"))
    certificate = Certificate.from_json(golden_bytes(golden / "release-certificate.json").decode())
    (folder / "certificate.json").write_text(certificate.to_json(), encoding="utf-8")
    return folder, certificate


def _in_release(name: str, data: bytes, look: Callable[[Path], Iterable[Check]]) -> None:
    """Look at a release whose file of that name is hostile; then it is again as it was."""
    file = _release()[0] / name
    before = file.read_bytes()
    file.write_bytes(data)
    try:
        for check in look(file.parent):
            assert check.detail.isprintable(), check.detail
    finally:
        file.write_bytes(before)


def _released_certificate(data: bytes) -> None:
    _in_release("certificate.json", data, verify_release)


def _released_schema(data: bytes) -> None:
    """Check a schema, certified as it is; the certificate, which is good, is read once."""
    digest, told = hashlib.sha256(data).hexdigest(), _release()[1]
    certificate = dataclasses.replace(told, files={**told.files, "schema.toml": digest}, schema_sha256=digest)
    _in_release("schema.toml", data, lambda folder: verify._table(folder, certificate, None))


def _released_table(path: Path) -> None:
    """Look at a table; certificate and schema, which are good, are read once."""
    table = read_released(path, _released_by(), _release()[1].rows_out, [RuleCheck(("age <= pay",), _released_by())])
    check = columns_check(_release()[1].facts, table.names)
    assert check.detail.isprintable(), check.detail


@cache
def _released_by() -> Schema:
    return Schema.from_toml((_release()[0] / "schema.toml").read_text(encoding="utf-8"))


def _earlier(name: str, contents: Contents) -> Callable[[bytes], Any]:
    """Files that are known for those of an earlier output, in a folder that holds one file."""

    def read(data: bytes) -> list[Path]:
        folder = folder_in_memory() / "earlier"
        shutil.rmtree(folder, ignore_errors=True)
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_bytes(data)
        return own_files(folder, contents)

    return read


def _rows(path: Path) -> Any:
    return read_prior(path, Labels(("a", "b", "c"))).tolist()


def _pandas_note(data: bytes) -> Any:
    """Types that pandas is said to have noted beside a table, taken over to another."""
    table = pa.table({"a": [1, 2]}).replace_schema_metadata({b"pandas": data})
    restored = restore(pa.table({"a": [3, 4]}), to_arrow(table)[1])
    note = (restored.schema.metadata or {}).get(b"pandas", b"")
    assert b"canary" not in note.replace(b'"canary', b"")
    return None


def _looked_at(path: Path) -> Any:
    """Look at a released table whose file is hostile, as a reviewer does."""
    schema = _schema_of_ages()
    weights = WeightCheck(WeightsScaled("age", 1.0, 1.0), schema)
    return read_released(path, schema, 10, [weights], most_bytes=100_000).rows


@cache
def _schema_of_ages() -> Schema:
    return Schema.from_toml('format = 1\n[[column]]\nname = "age"\nkind = "integer"\nrole = "confidential"\n')


def _snapshot(data: bytes) -> Any:
    return read_snapshot(b"sfumato condenser 2\n" + hashlib.sha256(data).digest() + data)


PARSERS = (
    Parser(
        "certificate",
        as_text(Certificate.from_json),
        as_bytes(Certificate.to_json),
        golden="*/release-certificate.json",
    ),
    Parser("released-certificate", _released_certificate, golden="condense/release-certificate.json"),
    Parser(
        "earlier-release",
        _earlier("release/certificate.json", Contents.RELEASE),
        golden="condense/release-certificate.json",
        examples=200,
    ),
    Parser("earlier-report", _earlier("report.json", Contents.EVALUATION), examples=200),
    Parser("released-schema", _released_schema, golden="condense/release-schema.toml"),
    Parser("released-table", as_file("table of a release.csv", _released_table), golden="condense/release-table.csv"),
    *(
        Parser(f"reviewed-{form}", _reviewed(form), examples=200)
        for form in ("csv", "parquet", "arrow", "xlsx", "ods", "sqlite")
    ),
    Parser("signer", as_text(lambda text: expected_signer(f"SHA256:{text}"))),
    Parser("signature", Signature.from_bytes, as_bytes(Signature.to_text)),
    Parser("public-key", as_file("key.pub", expected_signer)),
    Parser("schema", as_text(_schema), as_bytes(Schema.to_toml), golden="*/release-schema.toml"),
    Parser("recipe", as_text(_recipe), as_bytes(Recipe.to_toml), golden="*/owner-recipe.toml"),
    Parser("policy", as_text(Policy.from_toml), as_bytes(Policy.to_toml)),
    Parser("key", as_text(Key.from_toml), as_bytes(Key.to_toml)),
    Parser("noise-spec", as_text(_spec), as_bytes(NoiseSpec.to_toml)),
    Parser("noise-spec-json", as_file("spec.json", NoiseSpec.read), as_bytes(lambda spec: spec.canonical)),
    Parser("csv", as_file("table.csv", _cells)),
    Parser("transactions", as_file("transactions.dat", _transactions)),
    Parser("transactions-released", as_file("released.csv", _transactions)),
    Parser("transaction-columns", as_text(_transaction_columns)),
    Parser(
        "transactions-lines",
        as_file("lines.csv", lambda path: read_transactions(path, lines=True).to_table().to_pydict()),
    ),
    Parser("hierarchy", as_file("hierarchy.csv", _hierarchy)),
    Parser("csv-numerals", as_file("numerals.csv", _numerals)),
    Parser("xlsx", as_file("table.xlsx", _cells_within)),
    Parser("sqlite", as_file("table.sqlite", _cells_within)),
    Parser("pandas-note", _pandas_note),
    Parser("sqlite-looked-at", as_file("looked.sqlite", _looked_at)),
    Parser("xlsx-sheet", _workbook("sheet.xlsx", "xl/worksheets/sheet1.xml")),
    Parser("ods-content", _workbook("content.ods", "content.xml")),
    Parser("csv-inferred", as_file("inferred.csv", _inferred)),
    Parser(
        "column-spec",
        as_file("certificate.json", lambda path: read_spec(path, "smoker")),
        golden="randomize/release-certificate.json",
    ),
    Parser("private-key", as_file("key.pem", Signer.load)),
    Parser("csv-gz", as_file("table.csv.gz", _cells)),
    Parser("parquet", as_file("table.parquet", _cells)),
    Parser("parquet-within", as_file("within.parquet", _cells_within)),
    Parser("arrow", as_file("table.arrow", _cells)),
    Parser("csv-in-batches", as_file("batches.csv", _read_source)),
    Parser("csv-gz-in-batches", as_file("batches.csv.gz", _read_source)),
    Parser("arrow-in-batches", as_file("batches.arrow", _read_source)),
    Parser("parquet-in-batches", as_file("batches.parquet", _read_source)),
    Parser("prior", as_file("prior.csv", _rows)),
    Parser("dataset-budget", as_file("budget.toml", _charge)),
    Parser("private-model", as_file("model.json", _private_model), str.encode, examples=600),
    Parser("levels", as_text(_levels)),
    Parser("where", as_text(_where)),
    Parser("property", as_text(lambda text: holds(text, Integers(0, 1000)).tolist())),
    Parser("property-of-labels", as_text(lambda text: holds(text, Labels(("no", "yes"))).tolist())),
    Parser("database-url", as_text(locate)),
    Parser("memory-size", as_text(parse_size)),
    Parser("resume-key", as_file("resume.key", lambda path: run_key(path, path.parent / "out"))),
    Parser("snapshot", _snapshot),
    *STATES,
    *PEERS,
    *COLLECTORS,
)
