"""Read transactions: FIMI lines, lists of items, pairs of transaction and item, and columns of 0 and 1.

A released table of transactions has a row for each: ``items`` with semicolons between, where entries were blocked also
``unknown``, and ``size`` where mining needs the true one.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import zlib
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict, Unpack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from numpy.typing import NDArray

from sfumato.core.arrays import Ints
from sfumato.core.errors import OptionError, TableError, no_column, shown
from sfumato.core.itemsets import Transactions
from sfumato.tables.cells import is_text, plain
from sfumato.tables.field import Field, Kind
from sfumato.tables.files import bytes_within, read_file
from sfumato.tables.frames import to_arrow
from sfumato.tables.schema import Schema
from sfumato.transactions.facts import TransactionsReleased

__all__ = [
    "ITEMS",
    "SIZE",
    "UNKNOWN",
    "TransactionReading",
    "TransactionTable",
    "read_transactions",
    "transactions_of_table",
]

ITEMS, UNKNOWN, SIZE = "items", "unknown", "size"
"""Columns of a table of transactions."""

_HEADERS = ([ITEMS], [ITEMS, SIZE], [ITEMS, UNKNOWN], [ITEMS, UNKNOWN, SIZE])  # of tables that were released

MOST_BYTES = 1 << 32
"""Bytes that a file of transactions may have, and unpack to, unless more are granted."""

_FIMI = (".dat", ".dat.gz")
_AT_ONCE = 5_000  # transactions that are read at once
_BLOCK = 1 << 16  # bytes
_LONGEST_NUMBER = 18  # digits that fit
_SMALL = 1 << 20
_KINDS = np.zeros(256, dtype=np.uint8)  # of the marks of a .dat file: digits, what may stand between them, and others
_KINDS[48:58] = 1
_KINDS[list(b" \t\r\n")] = 2
_MARK = ";"
_YES = ("1", "true", "yes")
_NO = ("0", "false", "no", "")


@dataclass(frozen=True, eq=False, repr=False)
class TransactionTable:
    """Transactions with the names of their items, and the table's other columns.

    Parameters
    ----------
    transactions : Transactions
    labels : tuple of str
        Name of each item.
    persons : array, optional
        Whom each transaction is of, numbered from 0.
    unknown : Transactions, optional
        Items of which nobody says whether they are in a transaction.
    sizes : array, optional
        True size of each transaction, where it was randomized.
    dropped : tuple of str
        Columns that are read and not released: who a transaction is of, and its number.
    twice, empty : int
        Entries that stood twice, which are taken once, and transactions without any item, which are kept.
    declared : bool
        The names are those that the owner said there are, and not those that the transactions hold.
    """

    transactions: Transactions
    labels: tuple[str, ...]
    persons: Ints | None = None
    unknown: Transactions | None = None
    sizes: Ints | None = None
    dropped: tuple[str, ...] = ()
    twice: int = 0
    declared: bool = False

    def __repr__(self) -> str:
        return f"TransactionTable({self.transactions!r})"

    @property
    def empty(self) -> int:
        """Transactions without any item."""
        return int((self.transactions.sizes == 0).sum())

    def counted(self) -> TransactionsReleased:
        """Number of transactions, items and entries, in words."""
        used = [self.transactions.items] + ([] if self.unknown is None else [self.unknown.items])
        unknown = 0 if self.unknown is None else len(self.unknown.items)
        items = int((np.bincount(np.concatenate(used)) > 0).sum())
        return TransactionsReleased(len(self.transactions), items, len(self.transactions.items), unknown)

    def over(self, names: Sequence[str]) -> TransactionTable:
        """The same transactions over another list of items."""
        labels = _check_labels([name.strip() for name in names])
        if len(set(labels)) < len(labels) or not all(labels):
            raise OptionError("the list of items repeats an item or has an empty name; list each once")
        places = {label: place for place, label in enumerate(labels)}
        codes = np.array([places.get(label, -1) for label in self.labels], dtype=np.int64)
        strange = int((codes[np.flatnonzero(self.transactions.counts)] < 0).sum())
        if strange:
            raise TableError(
                f"transactions hold {strange} items that are not among those that there are; list them too"
            )
        rows, items = self.transactions.rows, codes[self.transactions.items]
        transactions = Transactions.from_pairs(rows, items, len(self.transactions), len(labels), distinct=True)
        return dataclasses.replace(self, transactions=transactions, labels=labels, declared=True)

    def take(self, places: Ints) -> TransactionTable:
        """A subset of the transactions, in the given order."""
        return dataclasses.replace(
            self,
            transactions=self.transactions.take(places),
            persons=None if self.persons is None else self.persons[places],
            unknown=None if self.unknown is None else self.unknown.take(places),
            sizes=None if self.sizes is None else self.sizes[places],
        )

    def codes(self, names: Sequence[str]) -> list[int]:
        """Item numbers by name; -1 for items that no transaction holds."""
        places = {label: place for place, label in enumerate(self.labels)}
        return [places.get(name, -1) for name in names]

    def to_table(self) -> pa.Table:
        """The table that is released, with one row for each transaction."""
        columns = {ITEMS: _texts(self.transactions, self.labels)}
        if self.unknown is not None:
            columns[UNKNOWN] = _texts(self.unknown, self.labels)
        if self.sizes is not None:
            columns[SIZE] = pa.array(self.sizes)
        return pa.table(columns)

    def schema(self) -> Schema:
        """Schema of that table."""
        kinds = {ITEMS: Kind.NOMINAL, UNKNOWN: Kind.NOMINAL, SIZE: Kind.INTEGER}
        shows = [name for name, there in ((UNKNOWN, self.unknown), (SIZE, self.sizes)) if there is not None]
        return Schema(tuple(Field(name, kinds[name]) for name in (ITEMS, *shows)))


def _texts(transactions: Transactions, labels: Sequence[str]) -> pa.Array:
    names = pa.array(labels, pa.string()).take(pa.array(transactions.items))
    lists = pa.ListArray.from_arrays(pa.array(transactions.starts).cast(pa.int32()), names)
    return pc.binary_join(lists, _MARK)


class TransactionReading(TypedDict, total=False):
    """How transactions are read: person and transaction columns, and the size limit."""

    person: str | None
    transaction: str | None
    item: str | None
    lines: bool
    most_bytes: int | None


def read_transactions(source: Any, **reading: Unpack[TransactionReading]) -> TransactionTable:
    """Read transactions from a file or a frame.

    Parameters
    ----------
    source : path, or pandas, polars or pyarrow table
        A .dat file has a line for each transaction, of whole numbers with blanks between. A table has a column
        ``items``, of lists or of texts with semicolons between; or a row for each item of a transaction, with
        ``transaction`` and ``item``; or a column of 0 and 1 for each item.
    person : str, optional
        Column that says whom a transaction is of.
    transaction, item : str, optional
        Columns of a table that has a row for each item of a transaction.
    lines : bool
        CSV without header: one transaction per line, items separated by commas.
    most_bytes : int, optional
        Bytes that a file may unpack to, by default 4 GiB.

    Raises
    ------
    TableError
        For what cannot be read so; it names the line or the column, never a cell.
    """
    person, transaction, item = reading.get("person"), reading.get("transaction"), reading.get("item")
    most = reading.get("most_bytes") or MOST_BYTES
    if reading.get("lines"):
        return _read_lines(source, (person, transaction, item), most)
    if not isinstance(source, str | Path):
        return transactions_of_table(to_arrow(source)[0], person=person, transaction=transaction, item=item)
    if str(source).lower().endswith(_FIMI):
        if (person, transaction, item) != (None, None, None):
            raise OptionError("a .dat file has no columns; provide CSV or Parquet to name some")
        return _read_fimi(_bytes(Path(source), most), shown(source))
    if str(source).lower().endswith(".csv") and (person, transaction, item) == (None, None, None):
        released = _released_csv(Path(source), most)
        if released is not None:
            return released
    table = read_file(source, most_bytes=most)[0]
    return transactions_of_table(table, person=person, transaction=transaction, item=item)


def _read_lines(source: Any, columns: tuple[str | None, ...], most: int) -> TransactionTable:
    """Read a file with one transaction per line; blank lines before the end are empty transactions."""
    if not isinstance(source, str | Path) or columns != (None, None, None):
        raise OptionError("lines of items are those of a file without columns; leave out the columns, or lines")
    try:
        text = _bytes(Path(source), most).decode("utf-8-sig").rstrip()
        cells = [[cell.strip() for cell in row] for row in csv.reader(io.StringIO(text, newline=""))]
    except UnicodeDecodeError:
        raise TableError(f"{shown(source)} is not UTF-8; convert it") from None
    except csv.Error:
        raise TableError(f"{shown(source)} cannot be read as CSV; check its quotes") from None
    places: dict[str, int] = {}
    pairs = [(row, places.setdefault(name, len(places))) for row, names in enumerate(cells) for name in names if name]
    rows, codes = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return _table(rows, codes, len(cells), _check_labels(list(places)))


def _bytes(path: Path, most: int) -> bytes:
    try:
        return bytes_within(path, most)
    except FileNotFoundError:
        raise TableError(f"there is no file {shown(path)}; check its name") from None
    except (OSError, EOFError, zlib.error):
        raise TableError(f"{shown(path)} cannot be read; it may be damaged or misnamed") from None


def _read_fimi(data: bytes, name: str) -> TransactionTable:
    """Read lines of integers; blank lines before the end are empty transactions."""
    data = data.rstrip()
    if not data:
        raise TableError(f"{name} is empty; provide a line of item numbers for each transaction")
    marks = np.frombuffer(data, dtype=np.uint8)
    kinds = _KINDS[marks]
    digit, line, strange = kinds == 1, marks == 10, kinds == 0
    if strange.any():
        first = 1 + int(line[: int(np.argmax(strange))].sum())
        raise TableError(f"{name} holds items that are not whole numbers, the first in line {first}; a .dat file has "
                         "numbers with blanks between, provide CSV for names")  # fmt: skip
    begins = digit & ~np.concatenate([[False], digit[:-1]])
    ends = digit & ~np.concatenate([digit[1:], [False]])
    places = np.flatnonzero(begins)
    if (np.flatnonzero(ends) - places >= _LONGEST_NUMBER).any():
        raise TableError(f"{name} holds an item number of more than {_LONGEST_NUMBER} digits; number items shorter")
    numbers = np.fromstring(data, dtype=np.int64, sep=" ") if len(places) else np.empty(0, dtype=np.int64)
    ids, codes = _number_items(numbers)
    lines = np.flatnonzero(line)
    return _table(np.searchsorted(lines, places), codes, 1 + len(lines), tuple(map(str, ids.tolist())))


def _number_items(numbers: Ints) -> tuple[Ints, Ints]:
    """Distinct integers in rising order, and the code of each entry; by table lookup if they are small."""
    if numbers.max(initial=0) > max(_SMALL, len(numbers)):
        return np.unique(numbers, return_inverse=True)
    ids = np.flatnonzero(np.bincount(numbers))
    places = np.zeros(int(numbers.max(initial=0)) + 1, dtype=np.int64)
    places[ids] = np.arange(len(ids))
    return ids, places[numbers]


def _table(rows: Ints, codes: NDArray[Any], count: int, labels: tuple[str, ...], **options: Any) -> TransactionTable:
    transactions = Transactions.from_pairs(rows, codes.astype(np.int64), count, len(labels))
    if not len(transactions.items):
        raise TableError(f"none of the {count} transactions holds an item; check the file")
    return TransactionTable(transactions, labels, twice=len(rows) - len(transactions.items), **options)


def transactions_of_table(
    table: pa.Table, *, person: str | None = None, transaction: str | None = None, item: str | None = None
) -> TransactionTable:
    """Transactions of a table, with columns as in `read_transactions`."""
    for name in (person, transaction, item):
        if name is not None and name not in table.column_names:
            raise OptionError(no_column(name, table.column_names))
    if table.num_rows == 0:
        raise TableError("the table has no rows; provide a row for each transaction")
    if (transaction is None) != (item is None):
        raise OptionError("a row for each item of a transaction needs both columns; name --transaction and --item")
    if transaction is not None and item is not None:
        return _from_pairs(table, transaction, item, person)
    whose, dropped = (None, ()) if person is None else (_encode_values(table, person)[0], (person,))
    if ITEMS in table.column_names:
        return _from_lists(table, whose, dropped)
    return _from_columns(table.drop_columns(list(dropped)), whose, dropped)


def _encode_values(table: pa.Table, name: str) -> tuple[Ints, list[str]]:
    """Codes of a column's values, and the values as texts; missing values are refused."""
    cells = plain(table.column(name))
    if pa.types.is_floating(cells.type) or pa.types.is_nested(cells.type):
        raise TableError(f"column {name!r} holds no names and no whole numbers; provide it as text")
    try:
        texts = cells.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise TableError(f"column {name!r} cannot be read as names; provide it as text") from None
    texts = pc.utf8_trim_whitespace(texts)
    lacking = pc.sum(pc.fill_null(pc.equal(texts, ""), True)).as_py() or 0
    if lacking:
        raise TableError(f"column {name!r} lacks {lacking} values; every row needs one")
    kinds = texts.dictionary_encode()
    return kinds.indices.to_numpy(zero_copy_only=False).astype(np.int64), kinds.dictionary.to_pylist()


def _check_labels(labels: list[str]) -> tuple[str, ...]:
    wrong = sum(_MARK in label or not label.isprintable() for label in labels)
    if wrong:
        raise TableError(f"{wrong} names of items hold a semicolon or no readable text; rename them")
    return tuple(labels)


def _from_pairs(table: pa.Table, transaction: str, item: str, person: str | None) -> TransactionTable:
    (rows, kinds), (codes, labels) = _encode_values(table, transaction), _encode_values(table, item)
    dropped = (transaction,) if person is None else (transaction, person)
    if person is None:
        return _table(rows, codes, len(kinds), _check_labels(labels), dropped=dropped)
    whose = _encode_values(table, person)[0]
    persons = np.empty(len(kinds), dtype=np.int64)
    persons[rows] = whose
    torn = len(np.unique(rows[persons[rows] != whose]))
    if torn:
        raise TableError(f"{torn} transactions are of several persons by column {person!r}; each needs one")
    persons = np.unique(persons, return_inverse=True)[1].astype(np.int64)
    return _table(rows, codes, len(kinds), _check_labels(labels), dropped=dropped, persons=persons)


def _from_lists(table: pa.Table, whose: Ints | None, dropped: tuple[str, ...]) -> TransactionTable:
    """Read the columns of a table with one list of items per transaction."""
    extra = set(table.column_names) - {ITEMS, UNKNOWN, SIZE, *dropped}
    if extra:
        raise TableError(f"{len(extra)} columns beside 'items' are of no use, the first is {min(extra)!r}; leave "
                         "them out, or name --person")  # fmt: skip
    return _from_batches(table.schema, table.to_batches(), whose, dropped)


def _released_csv(path: Path, most: int) -> TransactionTable | None:
    """Read a released CSV table block by block; None if it has another form."""
    try:
        with path.open("rb") as file:
            header = file.readline(64).decode("ascii").strip().split(",")
        if header not in _HEADERS or path.stat().st_size > most:
            return None
        types = {ITEMS: pa.string(), UNKNOWN: pa.string(), SIZE: pa.string()}
        with pa.csv.open_csv(
            str(path),
            read_options=pa.csv.ReadOptions(use_threads=False, block_size=_BLOCK),
            parse_options=pa.csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=len(header) > 1),
            convert_options=pa.csv.ConvertOptions(column_types=types, strings_can_be_null=False),
        ) as reader:
            return _from_batches(reader.schema, reader, None, ())
    except (OSError, UnicodeDecodeError, pa.ArrowException):
        return None


def _from_batches(
    schema: pa.Schema, batches: Iterable[pa.RecordBatch], whose: Ints | None, dropped: tuple[str, ...]
) -> TransactionTable:
    names: dict[str, int] = {}
    held, unsure = _ItemLists(ITEMS, names), _ItemLists(UNKNOWN, names)
    sizes: list[pa.Array] = []
    for batch in batches:
        for first in range(0, batch.num_rows, _AT_ONCE):
            part = batch.slice(first, _AT_ONCE)
            for lists in (held, unsure):
                if lists.column in schema.names:
                    lists.add(part.column(lists.column))
            if SIZE in schema.names:
                sizes.append(part.column(SIZE))
    labels = sorted(names)
    checked = _check_labels(labels)
    entries = len(held.codes)
    if not entries:
        raise TableError(f"none of the {len(held.sizes)} transactions holds an item; check the file")
    ranks = np.empty(len(labels), dtype=np.int64)
    ranks[[names[label] for label in labels]] = np.arange(len(labels))
    transactions = held.transactions(ranks)
    return TransactionTable(
        transactions,
        checked,
        persons=whose,
        unknown=unsure.transactions(ranks) if UNKNOWN in schema.names else None,
        sizes=_sizes(pa.chunked_array(sizes)) if SIZE in schema.names else None,
        dropped=dropped,
        twice=entries - len(transactions.items),
    )


def _sizes(column: pa.ChunkedArray) -> Ints:
    try:
        sizes = plain(column).cast(pa.int64())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise TableError("column 'size' holds values that are no whole numbers; fix it") from None
    if sizes.null_count or (pc.min(sizes).as_py() or 0) < 0 or (pc.max(sizes).as_py() or 0) > 1 << 20:
        raise TableError("column 'size' lacks values, or has some that no transaction has; fix it")
    return np.asarray(sizes.to_numpy(zero_copy_only=False), dtype=np.int64)


class _ItemLists:
    """Items of a column of lists, or of texts separated by semicolons, as codes.

    New names get the next numbers. Only the numbers are held, in an array that grows in place.
    """

    def __init__(self, column: str, names: dict[str, int]) -> None:
        self.column, self.names = column, names
        self.codes = array("i")
        self.sizes = array("q")

    def add(self, cells: pa.Array) -> None:
        """Add a part of the column."""
        cells = plain(cells)
        if is_text(cells.type):
            cells = pc.split_pattern(pc.fill_null(cells.cast(pa.string()), ""), _MARK)
        elif not pa.types.is_list(cells.type) and not pa.types.is_large_list(cells.type):
            raise TableError(
                f"column {self.column!r} holds no lists of items; provide lists, or texts with semicolons between"
            )
        found = _number_names(pc.list_flatten(cells), self.column, self.names)
        there = found >= 0
        rows = pc.list_parent_indices(cells).to_numpy(zero_copy_only=False)
        self.codes.frombytes(found[there].tobytes())
        self.sizes.frombytes(np.bincount(rows[there], minlength=len(cells)).astype(np.int64).tobytes())

    def transactions(self, ranks: Ints) -> Transactions:
        """The transactions, with items renumbered by rank."""
        sizes = np.frombuffer(self.sizes, dtype=np.int64)
        return Transactions.from_ranks(np.frombuffer(self.codes, dtype=np.int32), np.r_[0, np.cumsum(sizes)], ranks)


def _number_names(flat: pa.Array, column: str, names: dict[str, int]) -> NDArray[np.int32]:
    """Codes of names, surrounding blanks ignored; -1 for missing or empty names."""
    if pa.types.is_floating(flat.type) or pa.types.is_nested(flat.type):
        raise TableError(f"the items of column {column!r} are no names and no whole numbers; provide them as texts")
    coded = flat.cast(pa.string()).dictionary_encode()
    texts = pc.utf8_trim_whitespace(coded.dictionary).to_pylist()
    numbers = np.array([names.setdefault(text, len(names)) if text else -1 for text in (*texts, "")], dtype=np.int32)
    return np.asarray(numbers[pc.fill_null(coded.indices, len(texts)).to_numpy(zero_copy_only=False)])


def _from_columns(table: pa.Table, whose: Ints | None, dropped: tuple[str, ...]) -> TransactionTable:
    """Read one column of 0 and 1, or true and false, per item."""
    rows, codes, strange = [], [], []
    for place, name in enumerate(table.column_names):
        cells = plain(table.column(name))
        try:
            texts = pc.utf8_lower(pc.utf8_trim_whitespace(pc.fill_null(cells.cast(pa.string()), "")))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            strange.append(name)
            continue
        held = pc.is_in(texts, pa.array(_YES)).to_numpy(zero_copy_only=False)
        if not (held | pc.is_in(texts, pa.array(_NO)).to_numpy(zero_copy_only=False)).all():
            strange.append(name)
            continue
        rows.append(np.flatnonzero(held))
        codes.append(np.full(len(rows[-1]), place, dtype=np.int64))
    if strange or not table.num_columns:
        first = f", as {strange[0]!r}" if strange else ""
        raise TableError(f"{len(strange)} columns are not of 0 and 1{first}; provide a column 'items', or a row for "
                         "each item with --transaction and --item, or drop them")  # fmt: skip
    labels = _check_labels(table.column_names)
    return _table(np.concatenate(rows), np.concatenate(codes), table.num_rows, labels, persons=whose, dropped=dropped)
