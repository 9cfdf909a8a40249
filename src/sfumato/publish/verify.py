"""A reviewer's check of a release without the original: integrity, and authorship where it is signed."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from sfumato.core.documents import read_bytes, read_text
from sfumato.core.errors import BadInput, OptionError, SfumatoError, TableError, shown
from sfumato.core.facts import (
    BasketsReleased,
    ColumnRulesKept,
    DatesCoarsened,
    FormulaTexts,
    RowsDrawn,
    WeightsScaled,
    is_quoted,
)
from sfumato.core.randomness import Mode
from sfumato.engines.chunks.source import Source, open_source
from sfumato.privacy.certificate import AlteredCertificate, Certificate
from sfumato.publish.agreement import Check, agreement_checks, columns_check
from sfumato.publish.folder import sha256_of
from sfumato.publish.signature import SIGNATURE_FILE, Verifier, read_signature
from sfumato.publish.verify_modified import ModifiedRows
from sfumato.publish.verify_persons import PersonRows
from sfumato.tables.baskets import read_baskets
from sfumato.tables.cells import absent_cells, bound_to_number, codes_of_cells, is_text, numbers_of_cells, plain
from sfumato.tables.dates import microseconds_of_cells, moments_of_texts, month_starts, times_of_texts
from sfumato.tables.field import Domain, Field, Kind
from sfumato.tables.files import read_file
from sfumato.tables.infer import complete_field
from sfumato.tables.levels import Condition, meets_all, parse_conditions
from sfumato.tables.rules import Rule, broken_rows, cells_of_column, period_of, read_rules
from sfumato.tables.schema import Schema
from sfumato.tables.spreadsheet import FormulaCount, unquote_formulas, unquoted_names
from sfumato.tables.sqlite import SQLITE
from sfumato.tables.workbook import WORKBOOKS

__all__ = ["MOST_BYTES", "Check", "LookedAt", "Verification", "certificate_beside", "look_at_table", "verify_release"]

MOST_BYTES = 1 << 36
"""Bytes that a released table may have, and unpack to, unless its reader grants more."""

_FREE = 1 << 26  # bytes that any table may unpack to
_ENTRY = 1 << 5  # bytes of an item in a basket, on average
_CELL = 1 << 10  # bytes of a cell, on average, beyond which a table is not what was certified
_BATCH_CELLS = 1 << 20
_WHOLE = 1 << 29  # bytes that a table may unpack to whose format is read whole
_FEWEST_ROWS = 1 << 10
_MEASURED = (Kind.DATE, Kind.INTEGER, Kind.CONTINUOUS)


@dataclass(frozen=True)
class LookedAt:
    """What is in the file of a table; ``rows`` stops one batch after those that were certified.

    ``declared`` counts the columns of declared domain and ``outside`` names those of them that leave it; ``broken`` are
    the rules that a row does not obey, ``days`` the columns given to the month that hold another day than its first.
    ``astray`` counts the rows that do not fulfil what they were chosen by, ``weights`` is what those of the rows add up
    to.
    """

    names: tuple[str, ...]
    rows: int
    declared: int
    outside: tuple[str, ...]
    formulas: FormulaCount
    broken: tuple[str, ...] = ()
    days: tuple[str, ...] = ()
    astray: int = 0
    weights: float = 0.0


def look_at_table(
    file: Path,
    schema: Schema,
    rows: int,
    most_bytes: int | None = None,
    *,
    quoted: bool = False,
    rules: tuple[str, ...] = (),
    monthly: tuple[str, ...] = (),
    where: str = "",
    weight: str | None = None,
    modified: ModifiedRows | None = None,
    entries: int = 0,
    persons: PersonRows | None = None,
) -> LookedAt:
    """Read a released table once and compare it with the declared domains of its schema.

    Reading stops beyond the certified rows. Where ``quoted``, an apostrophe before a formula is not part of the value.
    What facts of a ``modified`` table say is counted in it. A row of baskets takes as much as it has ``entries``.

    Raises
    ------
    TableError
        Where it cannot be read, or unpacks to more than ``most_bytes``, by default to more than as many rows need.
    """
    source = _opened(file, most_bytes)
    written = source.schema.names
    names = unquoted_names(written) if quoted else tuple(written)
    usual = min(MOST_BYTES, _FREE + rows * len(names) * _CELL + entries * _ENTRY)
    allowed = usual if most_bytes is None else most_bytes
    declared = [field for field in schema if field.domain.declared and field.name in names]
    outside: dict[str, None] = {}
    formulas = FormulaCount(names)
    ruled = [_RuleCheck(rule, schema) for rule in read_rules(rules, names)]
    months, days = {name for name in monthly if name in names and name in schema.names}, set[str]()
    conditions = parse_conditions(where) if where else ()
    seen = size = astray = 0
    weights = 0.0
    for part in source.batches(written, max(_FEWEST_ROWS, _BATCH_CELLS // len(names)), threads=False):
        seen += len(part)
        size += part.nbytes
        if size > allowed:
            raise TableError(
                f"the table unpacks to more than {allowed >> 20} MiB, too much for {rows} rows of {len(names)} columns"
            )
        if seen > rows:
            break
        batch = pa.Table.from_batches([part])
        batch = unquote_formulas(batch) if quoted else batch
        formulas.add(batch)
        batch = _with_moments(batch, schema)
        for check in ruled:
            check.add(batch)
        if modified is not None:
            modified.add(batch, schema)
        if persons is not None:
            persons.add(batch)
        weights += _sum_of(batch, schema, weight)
        days.update(name for name in months - days if _has_days(batch.column(name), schema[name]))
        astray += _astray(conditions, batch, schema)
        for field in declared:
            if field.name not in outside and _leaves(batch.column(field.name), field):
                outside[field.name] = None
    broken = tuple(str(check.rule) for check in ruled if not check.holds)
    told = tuple(sorted(days)), astray, weights
    return LookedAt(names, seen, len(declared), tuple(outside), formulas, broken, *told)


def _opened(file: Path, most_bytes: int | None) -> Source:
    """A released table to be read in batches; a workbook and an SQLite file are read whole, within bounds."""
    if not file.name.lower().endswith((*WORKBOOKS, *SQLITE)):
        return open_source(file)
    table, form = read_file(file, most_bytes=most_bytes or _WHOLE)
    return Source(file, form, table.schema, table.num_rows, table=table)


def _astray(conditions: tuple[Condition, ...], batch: pa.Table, schema: Schema) -> int:
    """Count the rows that do not meet the conditions; all of them where the cells cannot be compared."""
    try:
        fields = {name: _with_gap(batch.column(name), schema[name]) for name, _, _ in conditions}
        parts = Schema(tuple(fields.values()))
        fulfilled = int(meets_all(conditions, batch, parts).sum()) if conditions else len(batch)
    except (SfumatoError, KeyError, pa.ArrowException):
        fulfilled = 0
    return len(batch) - fulfilled


class _RuleCheck:
    """Looks batch by batch whether rows obey a rule; of labels the pairs seen so far are kept."""

    def __init__(self, rule: Rule, schema: Schema) -> None:
        self.rule = rule
        self.fields = {name: schema[name] for name in rule.columns}
        self.holds = True
        self._pairs: pa.Table | None = None
        self._period: int | None = None

    def add(self, batch: pa.Table) -> None:
        """Look at some more rows."""
        if not self.holds:
            return
        part = batch.select(list(self.rule.columns))
        try:
            if self.rule.form == "->":
                both = part if self._pairs is None else pa.concat_tables([self._pairs, part])
                part = self._pairs = both.group_by(both.column_names).aggregate([])
            cells = {}
            for name, field in self.fields.items():
                field = _with_gap(part.column(name), field)
                missing = absent_cells(plain(part.column(name)), field.missing).all()
                if not missing and field.kind is Kind.DATE:
                    field = complete_field(field, part.column(name))
                cells[name] = cells_of_column(part.column(name), field)
        except (BadInput, pa.ArrowException):  # cells of a type that no rule speaks of
            self.holds = False
            return
        if self._period is None:
            self._period = period_of(self.rule, cells)
        self.holds = not broken_rows(self.rule, cells, self._period).any()


def _with_moments(batch: pa.Table, schema: Schema) -> pa.Table:
    """Rows whose moments and times of day, which CSV writes as texts, are read where all of a column can be."""
    for field in schema:
        if field.kind not in _MEASURED or field.name not in batch.column_names:
            continue
        cells = plain(batch.column(field.name))
        if not is_text(cells.type):
            continue
        moments = moments_of_texts(cells) if field.kind is Kind.DATE else times_of_texts(cells)
        absent = absent_cells(cells, _with_gap(batch.column(field.name), field).missing)
        if not absent.all() and not moments.filter(pa.array(~absent)).null_count:
            batch = batch.set_column(batch.column_names.index(field.name), field.name, moments)
    return batch


def _with_gap(cells: pa.ChunkedArray, field: Field) -> Field:
    """Field of a column that CSV wrote, with nothing for a missing cell."""
    if is_text(cells.type) and "" not in (*field.missing, *(field.domain.categories or ())):
        return dataclasses.replace(field, missing=(*field.missing, ""))
    return field


def _sum_of(batch: pa.Table, schema: Schema, name: str | None) -> float:
    """Sum of the weights of some rows; NaN where they cannot be read."""
    if name is None:
        return 0.0
    try:
        numbers, absent = numbers_of_cells(batch.column(name), _with_gap(batch.column(name), schema[name]))
    except (BadInput, KeyError):
        return float("nan")
    return float("nan") if absent.any() else float(numbers.sum())


def _has_days(cells: pa.ChunkedArray, field: Field) -> bool:
    """Tell whether a date is not the first moment of its month, or cannot be read."""
    array = plain(cells)
    absent = absent_cells(array, _with_gap(cells, field).missing)
    try:
        moments, strange = microseconds_of_cells(array, absent, dataclasses.replace(field, domain=Domain()))
    except BadInput:
        return not absent.all()
    return bool(strange.any() or (month_starts(moments) != moments)[~absent].any())


def _leaves(cells: pa.ChunkedArray, field: Field) -> bool:
    """Tell whether a cell lies outside the declared domain of its column; CSV writes a missing one as nothing."""
    field = _with_gap(cells, field)
    try:
        if field.kind in (Kind.NOMINAL, Kind.BOOLEAN, Kind.ORDINAL):
            codes_of_cells(cells, field)
            return False
        numbers, absent = numbers_of_cells(cells, field)
    except BadInput:
        return True
    low, high = (
        None if edge is None else bound_to_number(edge, field) for edge in (field.domain.low, field.domain.high)
    )
    present = numbers[~absent]
    return bool((low is not None and (present < low).any()) or (high is not None and (present > high).any()))


_MOST_NAMED = 5


@dataclass(frozen=True)
class Verification:
    """What a reviewer found: true where the release holds."""

    checks: tuple[Check, ...]

    @property
    def holds(self) -> bool:
        """Whether no check failed; one that could not be made is not a failure."""
        return all(check.holds for check in self.checks)

    def __bool__(self) -> bool:
        return self.holds

    def __iter__(self) -> Iterator[Check]:
        return iter(self.checks)

    def describe(self) -> str:
        """Each check on a line, and what they come to."""
        lines = [
            f"{'FAILS' if not check.holds else 'holds' if check.checked else 'open':<6} {check.name}: {check.detail}"
            for check in self.checks
        ]
        return "\n".join([*lines, "The release holds." if self.holds else "The release does not hold."])


def verify_release(
    folder: str | Path, *, signer: str | Path | None = None, most_bytes: int | None = None
) -> Verification:
    """Check hashes, certificate against table, all that it says against its facts, and the rehearsal mark.

    Parameters
    ----------
    folder : path
        The folder ``release`` itself.
    signer : path, optional
        The public key of who must have signed it. Without, integrity is checked and not authorship.
    most_bytes : int, optional
        Bytes that a file may have and the table may unpack to. By default 64 GiB, and for the table what the certified
        rows and columns need.

    Raises
    ------
    BadInput
        Where there is no release to check, or no key to check it with.
    """
    path = Path(folder)
    verifier = None if signer is None else Verifier.load(signer)
    data = _certificate_bytes(path)
    checks = _signed(path, data, verifier)
    try:
        certificate = _read_certificate(data)
    except AlteredCertificate as altered:
        return Verification((*checks, Check("certificate", False, str(altered))))
    checks.append(_files(path, certificate, most_bytes or MOST_BYTES))
    checks.extend(_table(path, certificate, most_bytes))
    checks.extend(agreement_checks(certificate))
    rehearsal = certificate.randomness != Mode.RELEASE.value
    checks.append(
        Check(
            "made for release",
            not rehearsal,
            "a rehearsal: made with a seed, not for release" if rehearsal else "randomness from the operating system",
        )
    )
    return Verification(tuple(checks))


def certificate_beside(table: Path) -> tuple[Certificate | None, str | None]:
    """Find the certificate that speaks of a table and lies beside it.

    It is given only where it speaks of exactly these bytes and its claims follow from its facts; else why it is not.
    """
    if not os.path.lexists(table.parent / "certificate.json"):
        return None, None
    try:
        certificate = _read_certificate(_certificate_bytes(table.parent))
    except BadInput:
        return None, "the certificate beside the released table cannot be read and was not used"
    digest = certificate.files.get(table.name)
    if digest is None:
        return None, None
    if digest != certificate.table_sha256 or sha256_of(table) != digest:
        return None, "the released table is not the one that the certificate beside it speaks of, which was not used"
    if not all(check.holds for check in agreement_checks(certificate)):
        return None, "the certificate beside the released table contradicts itself and was not used"
    return certificate, None


def _certificate_bytes(path: Path) -> bytes:
    """Read the certificate once: what is checked and what is signed are the same bytes."""
    return read_bytes(path / "certificate.json", "certificate", "name the folder 'release' itself", linked=False)


def _read_certificate(data: bytes) -> Certificate:
    try:
        return Certificate.from_json(data.decode("utf-8"))
    except UnicodeDecodeError:
        raise AlteredCertificate("the certificate is not UTF-8 text; it is damaged or was altered") from None


def _signed(path: Path, data: bytes, verifier: Verifier | None) -> list[Check]:
    """Ask who signed: nothing to say where there is no signature and nobody asked for one."""
    name = "signed" if verifier is None else f"signed by {verifier.fingerprint}"
    try:
        signature = read_signature(path)
    except BadInput:
        return [Check(name, False, f"{SIGNATURE_FILE} is not a signature that can be read")]
    if verifier is None:
        told = "not checked, so this proves integrity and not authorship; check it with --signer"
        return [] if signature is None else [Check(name, True, f"there is a signature, {told}", checked=False)]
    if signature is None:
        return [Check(name, False, "there is no signature")]
    if signature.key != verifier.fingerprint:
        return [Check(name, False, f"the signature names another key, {signature.key}")]
    if not verifier.holds(signature, data):
        return [Check(name, False, "the signature is not that of this certificate: one of them was changed")]
    return [Check(name, True, "the certificate is exactly what that key signed")]


def _files(path: Path, certificate: Certificate, most_bytes: int) -> Check:
    """Compare the hash of every file, and refuse files that the certificate does not name."""
    wrong = []
    for name, digest in certificate.files.items():
        if Path(name).name != name or _digest(path / name, most_bytes) != digest:
            wrong.append(name)
    tables = [name for name in certificate.files if name.startswith("table.")]
    if len(tables) != 1 or certificate.files[tables[0]] != certificate.table_sha256:
        wrong.append("table")
    if certificate.files.get("schema.toml") != certificate.schema_sha256:
        wrong.append("schema.toml")
    own = {"certificate.json", SIGNATURE_FILE}
    wrong.extend(sorted(own & set(certificate.files)))
    extra = sorted({file.name for file in path.iterdir()} - set(certificate.files) - own)
    detail = f"{len(certificate.files)} files are as certified"
    if wrong:
        detail = f"changed or missing: {_listed(list(dict.fromkeys(wrong)))}"
    elif extra:
        detail = f"{len(extra)} files are not in the certificate: {_listed(extra)}"
    return Check("files unchanged", not wrong and not extra, detail)


def _digest(file: Path, most_bytes: int) -> str | None:
    """SHA-256 of a file of the release; None for one that is not there, or no regular file.

    Raises
    ------
    OptionError
        For one that is larger than its reader grants.
    """
    try:
        size = file.lstat().st_size
        if size <= most_bytes:
            return sha256_of(file, linked=False)
    except (OSError, ValueError):
        return None
    raise OptionError(f"the file {shown(file.name)} has {size} bytes; grant it as many with --most-bytes")


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(map(shown, names[:_MOST_NAMED])) + more


def _table(path: Path, certificate: Certificate, most_bytes: int | None) -> list[Check]:
    """Compare the table with the certificate's row count and the released schema."""
    name = next((name for name in certificate.files if name.startswith("table.")), "table.csv")
    try:
        schema = Schema.from_toml(read_text(path / "schema.toml", "schema", "ask for the release again", linked=False))
        quoted = is_quoted(certificate.facts)
        rules = tuple(rule for fact in certificate.facts if isinstance(fact, ColumnRulesKept) for rule in fact.rules)
        months = tuple(name for fact in certificate.facts if isinstance(fact, DatesCoarsened) for name in fact.columns)
        where = "".join(fact.where for fact in certificate.facts if isinstance(fact, RowsDrawn))
        scaled = next((fact for fact in certificate.facts if isinstance(fact, WeightsScaled)), None)
        weight = None if scaled is None else scaled.column
        modified, persons = ModifiedRows(certificate.facts), PersonRows.of(certificate.facts)
        entries = sum(fact.entries for fact in certificate.facts if isinstance(fact, BasketsReleased))
        table = look_at_table(
            path / name, schema, certificate.rows_out, most_bytes,
            quoted=quoted, rules=rules, monthly=months, where=where, weight=weight, modified=modified, entries=entries,
            persons=persons,
        )  # fmt: skip
    except SfumatoError as error:
        return [Check("table readable", False, str(error))]
    more = table.rows > certificate.rows_out
    rows = table.rows == certificate.rows_out
    columns = table.names == schema.names
    told = f"more than the {certificate.rows_out} rows certified" if more else f"{table.rows} rows"
    width = f"{len(table.names)} columns"
    domains = f"{table.declared} declared domains hold"
    if table.outside:
        domains = f"{len(table.outside)} columns leave their domain"
    return [
        *_baskets(path / name, certificate, most_bytes),
        Check("rows", rows, told if rows or more else f"{told}, certified {certificate.rows_out}"),
        Check("columns", columns, width if columns else f"{width}, not those of the schema"),
        columns_check(certificate, table.names),
        Check("domains", not table.outside, domains),
        *_rules(rules, table.broken),
        *_months(months, table.days),
        *_where(where, table.astray),
        *_weights(scaled, table.weights),
        *modified.checks(),
        *(() if persons is None else (persons.check(),)),
        *_formulas(certificate, table.formulas.facts(quoted=quoted)),
    ]


def _baskets(file: Path, certificate: Certificate, most_bytes: int | None) -> list[Check]:
    """Count the baskets, items and entries of a table again; nothing where it is none of baskets."""
    told = [fact for fact in certificate.facts if isinstance(fact, BasketsReleased)]
    if not told:
        return []
    try:
        found = read_baskets(file, most_bytes=most_bytes).counted()
    except SfumatoError:
        return [Check("baskets", False, "the table cannot be read as baskets")]
    words = f"{found.entries} entries of {found.items} items, {found.unknown} unknown"
    return [Check("baskets", told == [found], words if told == [found] else f"{words}, not as certified")]


def _rules(rules: tuple[str, ...], broken: tuple[str, ...]) -> list[Check]:
    """Compare the rows with the rules that they are said to obey; nothing where there are none."""
    if not rules:
        return []
    kept = f"{len(rules)} rules between columns hold in every row"
    return [Check("rules", not broken, f"{len(broken)} rules do not hold in every row" if broken else kept)]


def _months(columns: tuple[str, ...], days: tuple[str, ...]) -> list[Check]:
    """Compare the dates with the months that they are said to be given to; nothing where there are none."""
    if not columns:
        return []
    kept = f"the dates of {len(columns)} columns are given to the month"
    return [Check("months", not days, f"the dates of {len(days)} columns tell days" if days else kept)]


def _where(where: str, astray: int) -> list[Check]:
    """Compare the rows with the rule that the owner chose them by; nothing where there is none."""
    if not where:
        return []
    told = f"{astray} rows do not fulfil the rule that they were chosen by"
    return [Check("where", not astray, told if astray else "every row fulfils the rule that rows were chosen by")]


def _weights(scaled: WeightsScaled | None, found: float) -> list[Check]:
    """Compare what the weights add up to with what is certified; nothing where there are none."""
    if scaled is None:
        return []
    holds = abs(found - scaled.total) <= scaled.step + 1e-6 * scaled.total
    return [Check("weights", holds, "they add up to what is certified" if holds else "they add up to something else")]


def _formulas(certificate: Certificate, found: tuple[FormulaTexts, ...]) -> list[Check]:
    """Compare what a spreadsheet would run with what the certificate says of it; nothing where there is nothing."""
    told = tuple(fact for fact in certificate.facts if isinstance(fact, FormulaTexts))
    if not told and not found:
        return []
    count = sum(fact.cells + fact.names for fact in found)
    words = f"{count} texts begin as formulas of a spreadsheet do"
    if is_quoted(found):
        words = f"{count} texts that begin as formulas of a spreadsheet do have an apostrophe before them"
    if told == found:
        return [Check("formulas", True, f"{words}, as certified")]
    said = "the certificate says otherwise" if told else "the certificate does not say so"
    return [Check("formulas", not told, f"{words}, and {said}", checked=bool(told))]
