"""Columns of owners of rows, read by domains that all declare alike, and the codec that all owners make of them."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.core.documents import write_json
from sfumato.core.errors import PrivacyRefusal, SchemaError, TableError
from sfumato.core.records import CATEGORY_SCALE, Block, BlockKind
from sfumato.parties.arithmetic import check_range
from sfumato.parties.channel import PartyError
from sfumato.parties.ledger import Leak
from sfumato.parties.session import Session
from sfumato.tables.cells import absent_cells, codes_of_cells, is_text, numbers_of_cells, plain, written_type
from sfumato.tables.codec import MOST_CATEGORIES, Codec, EncodedColumn, codec_to_document
from sfumato.tables.field import Field, Kind
from sfumato.tables.grid import WIDEST, Grid, extent_of_labels, extent_of_numbers, fit_grid
from sfumato.tables.infer import complete_field
from sfumato.tables.moved_columns import own_units
from sfumato.tables.schema import Schema, check_columns, field_to_document

__all__ = ["LEAKS", "JointCounts", "ReadColumn", "count_cells", "joint_codec", "read_columns", "refuse_exposed_rows"]

_LARGEST = 1e300  # beyond it, differences overflow
_CATEGORICAL = (Kind.NOMINAL, Kind.BOOLEAN)
_LISTED = (*_CATEGORICAL, Kind.ORDINAL)

_EXPOSED_ROWS = Leak.sum(
    "bare rows",
    "how often an owner has all rows but one or two, or all cells of a column that are not missing but one or two, of "
    "a group or of the whole table, without who or where",
)

_BARE = 2  # so few rows follow from their sum and products exactly, and so few cells from their sum and squares

LEAKS = {
    leak.label: leak
    for leak in (
        Leak.message("columns", "digests of each owner's declared columns and their types, which hold no data"),
        Leak.sum("rows", "the number of rows, and of the missing cells of each column, over all owners"),
        _EXPOSED_ROWS,
        Leak.sum(
            "column sums",
            "of each column the sum or the counts of its categories, over all owners; the statistics of the groups "
            "tell the same",
            implied=True,
        ),
        Leak.sum(
            "column squares",
            "of each column of numbers the sum of squares about the mean, over all owners; the statistics of the "
            "groups tell the same",
            implied=True,
        ),
        Leak.message("codec", "a digest of what every owner has made of these sums", implied=True),
    )
}
"""What `joint_codec` shows, by label."""

_MOST_LISTED = 20_000  # categories of a column whose counts are added up group by group
_LIMB = 40  # bits of each of the whole numbers that carry a sum
_LIMBS = 3  # squares of a narrow column in wide bounds are tiny, down to the square of what a double tells apart
_SAME = 2.0**-50  # a deviation that rounding the mean alone could make, in means
_MOST_ROWS = 2**22  # a sum of n numbers from 0 to 1 is n at most, and 2^(22 + 40) still has a sign
_WIDE = 2.0**20  # a spread, in steps, beside which half a step is nothing
_DIGEST = 32


@dataclass(frozen=True, repr=False)
class ReadColumn:
    """One column as its owner has read it: shares of the declared range, or places in the categories."""

    field: Field
    kind: pa.DataType
    grid: Grid | None
    cells: NDArray[np.float64] | NDArray[np.int64]
    missing: int

    @property
    def width(self) -> int:
        """Number of sums besides that of its missing cells."""
        return len(self.field.domain.categories or ()) if self.grid is None else 1

    @property
    def low(self) -> float:
        """The lower bound, in places of the grid."""
        return 0.0 if self.grid is None else float(self.grid.to_places(np.array([self.grid.low]))[0])

    @property
    def size(self) -> float:
        """Width of the declared range, in steps of the grid; 1 if it is a single value."""
        if self.grid is None:
            return 1.0
        return float(self.grid.to_places(np.array([self.grid.high]))[0]) - self.low or 1.0


def read_columns(table: pa.Table, schema: Schema) -> list[ReadColumn]:
    """Read the columns that are sanitized; an owner may have no value in one that another has values in.

    Raises
    ------
    SchemaError
        If a domain is not declared or cells do not fit it.
    """
    _check_declared(schema)
    check_columns(table, schema)
    return [_read(table.column(field.name), field) for field in schema.encoded]


def _check_declared(schema: Schema) -> None:
    if not schema.encoded:
        raise SchemaError("no column is left to sanitize; give at least one the role confidential or target")
    for field in schema.encoded:
        domain = field.domain
        if field.kind in _LISTED:
            lacking = "" if domain.declared and domain.categories else "categories"
        else:
            lacking = "" if domain.declared and domain.low is not None and domain.high is not None else "bounds"
        if not lacking and field.kind is Kind.DATE and domain.step is None:
            lacking = "step"
        if lacking:
            raise SchemaError(
                f"the {lacking} of column {field.name!r} are not declared; declare them in the schema, which all "
                "owners share"
            )
        if len(domain.categories or ()) > _MOST_LISTED:
            raise SchemaError(
                f"column {field.name!r} lists {len(domain.categories or ())} categories and owners of rows can add up "
                f"{_MOST_LISTED} of a group; list wider ones, as a level of its hierarchy, or declare it an identifier "
                "(dropped)"
            )


def _read(cells: pa.ChunkedArray, field: Field) -> ReadColumn:
    """Read this owner's cells of a column; an owner may have none that is not missing."""
    if not absent_cells(plain(cells), field.missing).all():
        complete_field(field, cells)  # refuses types that do not go with the kind
    kind = written_type(cells.type)
    if field.kind in _CATEGORICAL:
        codes, absent = codes_of_cells(cells, field)
        return ReadColumn(field, kind, None, codes[~absent], int(absent.sum()))
    numbers, absent = numbers_of_cells(cells, field)
    grid = fit_grid(numbers[~absent], field, cells.type, 2)
    low, high = grid.to_places(np.array([grid.low, grid.high])).tolist()
    if max(abs(low), abs(high)) > _LARGEST:
        raise SchemaError(f"the bounds of column {field.name!r} lie beyond 1e300; rescale it")
    shares = (grid.to_places(numbers[~absent]) - low) / (high - low or 1.0)  # from 0 to 1
    return ReadColumn(field, kind, grid, shares, int(absent.sum()))


@dataclass(frozen=True)
class JointCounts:
    """What all owners know of the joined table: its rows, and the cells of each column that are not missing."""

    rows: int
    present: tuple[int, ...]


def count_cells(session: Session, table: pa.Table, schema: Schema, *, few: str = "refuse") -> JointCounts:
    """Compare the declared columns of all owners, and count their rows and cells.

    Parameters
    ----------
    table : pyarrow.Table
        The rows of this owner.
    schema : Schema
        The same at every owner, with declared bounds and categories.
    few : {"refuse", "allow"}
        What is done where all owners but one have one or two rows, or cells of a column, together.

    Raises
    ------
    SchemaError
        If a domain is not declared or cells lie outside it, here.
    PartyError
        If another owner's columns differ.
    PrivacyRefusal
        At every owner, before any sum of cells is opened.
    """
    session.phase("reading columns")
    columns = read_columns(table, schema)
    _compare_columns(session, columns, schema)
    return _count(session, columns, table.num_rows, few)


def joint_codec(session: Session, table: pa.Table, schema: Schema, counts: JointCounts) -> Codec:
    """Make the codec of the joined table, the same at every owner.

    Parameters
    ----------
    table : pyarrow.Table
        The rows of this owner, their tails coded.
    counts : JointCounts
        Of all owners, by `count_cells`.
    """
    session.phase("scales of the columns")
    columns, n = read_columns(table, schema), counts.rows
    totals = _column_sums(session, columns, n)
    means = [float(total[0]) / there for total, there in zip(totals, counts.present, strict=True)]
    squares = _column_squares(session, columns, means, n)
    made: list[EncodedColumn] = []
    for read, there, total, mean, square in zip(columns, counts.present, totals, means, squares, strict=True):
        start = made[-1].blocks[-1].stop if made else 0
        made.append(_column(read, n, n - there, total, mean, square, start))
    codec = Codec(schema, tuple(made))
    _compare_codecs(session, codec)
    return codec


def _compare_columns(session: Session, columns: list[ReadColumn], schema: Schema) -> None:
    """Compare what all owners have declared, before anything of the data is added up."""
    own = hashlib.sha256(repr([(field.name, field.role.value) for field in schema]).encode()).digest()
    for read in columns:
        declared = {"field": field_to_document(read.field), "kind": str(read.kind), "grid": read.grid}
        own += hashlib.sha256(write_json(declared, "canonical").encode()).digest()
    names = ["names and roles", *(repr(read.field.name) for read in columns)]
    for rank, digests in enumerate(_broadcast_all(session, own, "columns", len(names))):
        differing = [
            name
            for place, name in enumerate(names)
            if digests[place * _DIGEST : (place + 1) * _DIGEST] != own[place * _DIGEST : (place + 1) * _DIGEST]
        ]
        if differing or len(digests) != len(own):
            first = differing[0] if differing else "their number"
            raise PartyError(
                f"the columns of party {session.names[rank]!r} differ from those here, the first difference is in "
                f"{first}; give all owners the same schema and the same types of columns"
            )


def _compare_codecs(session: Session, codec: Codec) -> None:
    """Compare what all owners have made of the same sums: only machines that count differently can differ."""
    own = hashlib.sha256(write_json(codec_to_document(codec), "canonical").encode()).digest()
    for rank, digests in enumerate(_broadcast_all(session, own, "codec", 1)):
        if digests != own:
            raise PartyError(
                f"party {session.names[rank]!r} has made other means and deviations of the same sums; run the same "
                "versions at all owners"
            )


def _broadcast_all(session: Session, own: bytes, label: str, count: int) -> list[bytes]:
    return [
        session.broadcast(own if rank == session.rank else None, rank, label, count) for rank in range(session.parties)
    ]


def _count(session: Session, columns: list[ReadColumn], rows: int, few: str) -> JointCounts:
    """Count rows, and the missing cells of each column; refuse columns whose sums would show single cells."""
    own = rows - np.array([0, *(read.missing for read in columns)], dtype=np.int64)
    present = session.sum(own, "rows")
    n = int(check_range(present, 0, present[0], "rows")[0])
    if n == 0:
        raise TableError("the tables of all owners have no rows; provide at least as many as a group needs")
    if n > _MOST_ROWS:
        raise TableError(f"the tables of all owners have {n} rows and sums have room for {_MOST_ROWS}; use fewer")
    for read, left in zip(columns, present[1:].tolist(), strict=True):
        if left == 0:
            raise SchemaError(
                f"column {read.field.name!r} has no value in any of the {n} rows of all owners; leave it out"
            )
    refuse_exposed_rows(session, own, present, few)
    return JointCounts(n, tuple(present[1:].tolist()))


def refuse_exposed_rows(session: Session, own: NDArray[np.int64], total: NDArray[np.int64], few: str) -> int:
    """Count how often an owner would see all rows or cells of the others bare, and refuse unless that is allowed.

    An owner that takes its own rows off a group's sums and products is left with those of the others: of one row that
    is the row, of two it is both, for they lie on either side of their mean along the one axis that is left. Missing
    cells add nothing to the sums of their column, so a cell is as bare as a row where all others are missing.

    Parameters
    ----------
    own, total : ndarray of one shape
        Rows or cells that go into each sum, here and over all owners.
    few : {"refuse", "allow"}

    Raises
    ------
    PrivacyRefusal
        At every party, to be called before the sums are opened.
    """
    others = total - own
    here = int(((others > 0) & (others <= _BARE)).sum())
    shown = session.sum(np.array([here]), _EXPOSED_ROWS.label)
    bare = int(check_range(shown, 0, own.size * session.parties, _EXPOSED_ROWS.label)[0])
    if bare and few == "refuse":
        raise PrivacyRefusal(
            f"{bare} times all owners but one have no more than {_BARE} rows in a group, or cells of a column that are "
            "not missing, and exact sums would show them to that one; ask for larger groups, leave such columns out, "
            'or allow it with few = "allow"'
        )
    return bare


def _column_sums(session: Session, columns: list[ReadColumn], n: int) -> list[NDArray[np.float64]]:
    """Add up, of the cells that are present, shares of the range or the counts of categories: n at most."""
    own: list[float] = []
    for read in columns:
        if read.grid is None:
            own.extend(np.bincount(np.asarray(read.cells, dtype=np.int64), minlength=read.width).tolist())
        else:
            own.append(math.fsum(read.cells.tolist()))
    totals = check_range(_from_limbs(session.sum(_to_limbs(np.array(own)), "column sums")), 0, n + 1, "column sums")
    return np.split(totals, np.cumsum([read.width for read in columns])[:-1])


def _column_squares(session: Session, columns: list[ReadColumn], means: list[float], n: int) -> list[float]:
    """Add up squares about the mean, of columns of numbers: n at most; 0 of the others."""
    own = [
        0.0 if read.grid is None else math.fsum(((read.cells - mean) ** 2).tolist())
        for read, mean in zip(columns, means, strict=True)
    ]
    totals = _from_limbs(session.sum(_to_limbs(np.array(own)), "column squares"))
    squares: list[float] = check_range(totals, 0, n + 1, "column squares").tolist()
    return squares


def _to_limbs(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Numbers as several whole ones: of 2^-40, of 2^-80 and so on."""
    limbs, rest = [], values
    for _ in range(_LIMBS):
        rest = np.ldexp(rest, _LIMB)
        limbs.append(np.floor(rest))
        rest = rest - limbs[-1]
    return np.stack(limbs).astype(np.int64)


def _from_limbs(limbs: NDArray[np.int64]) -> NDArray[np.float64]:
    total = np.zeros(limbs.shape[1])
    for limb in limbs[::-1].astype(np.float64):  # the finest first
        total = np.ldexp(total + limb, -_LIMB)
    return total


def _column(
    read: ReadColumn, n: int, gone: int, total: NDArray[np.float64], share: float, square: float, start: int
) -> EncodedColumn:
    """Make the column that the codec of the joined table has."""
    field, grid = read.field, read.grid
    if grid is None and read.width > MOST_CATEGORIES:
        block, mean, scale = _code_block(read, total, n - gone, start), 0.0, 1.0
        stop = start + 1
    elif grid is None:
        fill = tuple((total / max(1, n - gone) * CATEGORY_SCALE).tolist())
        stop = start + read.width
        block = Block(field.name, BlockKind.CATEGORY, start, stop, fill, extent=extent_of_labels(field))
        mean, scale = 0.0, 1.0
    else:
        mean, scale = _mean_and_scale(read, grid, share, math.sqrt(square / (n - gone)))
        centre, unit = own_units(grid, mean, scale, field) or (None, None)
        within = extent_of_numbers(field, grid, mean, scale, read.kind)
        stop = start + 1
        block = Block(field.name, BlockKind.NUMBER, start, stop, (0.0,), centre, unit, within)
    marks = (Block(field.name, BlockKind.MISSING, stop, stop + 1),) if gone else ()
    gap = field.missing[0] if field.missing and is_text(read.kind) else None
    return EncodedColumn(field, read.kind, (block, *marks), grid, mean, scale, gap)


def _code_block(read: ReadColumn, total: NDArray[np.float64], present: int, start: int) -> Block:
    """One coordinate for the places of very many categories, standardized by the counts over all owners."""
    counts, places = total.tolist(), range(read.width)
    origin = math.fsum(place * count for place, count in zip(places, counts, strict=True)) / max(1, present)
    squares = math.fsum((place - origin) ** 2 * count for place, count in zip(places, counts, strict=True))
    unit = math.sqrt(squares / max(1, present)) or 1.0
    extent = dataclasses.replace(extent_of_labels(read.field), origin=origin, unit=unit)
    return Block(read.field.name, BlockKind.CODE, start, start + 1, (0.0,), extent=extent)


def _mean_and_scale(read: ReadColumn, grid: Grid, share: float, deviation: float) -> tuple[float, float]:
    """Mean and deviation in places of the grid, as `sfumato.tables.grid.mean_and_scale` does for one owner."""
    low, size = read.low, read.size
    if deviation <= _SAME * share:
        deviation = 0.0
    mean, scale = low + size * share, size * deviation
    if grid.step is not None and (scale == 0.0 or scale > _WIDE):
        mean = float(np.rint(mean))
    if grid.step is not None and max(low + size - mean, mean - low) >= WIDEST:
        raise SchemaError(
            f"the bounds of column {read.field.name!r} span more than 2^51 steps, which cannot be averaged exactly; "
            "give it a coarser step, or declare it an identifier or nominal"
        )
    return mean, scale if scale > 0.0 else 1.0
