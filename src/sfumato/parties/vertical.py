"""Owners of columns: one sanitized table from the columns of all, without a row shown [BCG10, alg. 2, vertical].

Each owner has some columns of the same records and standardizes them itself. Who belongs to which group is opened in
every round, and so are the groups' statistics; distances, components and noise are not.

Records come into the same order at all owners by keys that are compared as HMACs under a common secret. No key is sent.
Whoever has the secret of the run, that is every party, could test guesses of keys against HMACs that another told; they
are exchanged only if the sets of keys differ, to count by how much. Private set intersection would not even allow that.
"""

from __future__ import annotations

import datetime
import hmac
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.core.documents import MOST_BYTES, Unparsable, from_json, write_json
from sfumato.core.errors import BadInput, OptionError, SchemaError, TableError
from sfumato.core.groups import check_partition, check_values, response_weights
from sfumato.core.records import Block, BlockKind, Layout, width
from sfumato.methods.condense import Condensation
from sfumato.methods.perturb.laplace_pca import most_components
from sfumato.parties.arithmetic import check_range, fraction_bits, to_fixed_point
from sfumato.parties.channel import PartyError
from sfumato.parties.groupwise import (
    broadcast_axes,
    check_component_ranges,
    cluster_rows,
    component_scales,
    draw_rows,
    fill_groups,
    group_sizes,
    padded_choice,
    release_rows,
    row_blocks,
    shared_sum,
)
from sfumato.parties.ledger import Leak
from sfumato.parties.plan import JointPlan, JointResult, SeenGroups
from sfumato.parties.session import Session
from sfumato.parties.vertical_noise import (
    add_noise,
    broadcast_codes,
    component_ranges,
    count_lone_values,
    group_statistics,
    grouped,
    share_components,
    with_fills,
)

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "LEAKS",
    "ColumnCentres",
    "agree_on_columns",
    "align_keys",
    "first_rows",
    "key_text",
    "key_texts",
    "sanitize_vertical",
]

_HASH = 32  # bytes


def align_keys(session: Session, keys: Sequence[Any] | pa.ChunkedArray | pa.Array) -> NDArray[np.int64]:
    """Order in which the rows of all owners agree: ``rows[order]``.

    All parties call it together. The order is that of the keys' HMACs, so it contains no information on the keys.

    Parameters
    ----------
    keys : sequence or Arrow column
        One key a row: whole numbers, text or dates, none missing and none twice.

    Raises
    ------
    TableError
        At this party for keys that cannot be used; at every party where the keys differ.
    """
    texts = key_texts(keys)
    session.phase("aligning records")
    secret = session.secret("secret of the keys")
    marks = [hmac.digest(secret, b"key " + text.encode(), "sha256") for text in texts]
    order = sorted(range(len(marks)), key=marks.__getitem__)
    ordered = b"".join(marks[row] for row in order)
    own = len(marks).to_bytes(8, "little") + hmac.digest(secret, b"all keys" + ordered, "sha256")
    digests = [
        session.broadcast(own if owner == session.rank else None, owner, "digest of keys", 1)
        for owner in range(session.parties)
    ]
    if len(set(digests)) > 1:
        _refuse_different(session, ordered, [int.from_bytes(each[:8], "little") for each in digests])
    return np.array(order, dtype=np.int64)


def key_texts(keys: Sequence[Any] | pa.ChunkedArray | pa.Array) -> list[str]:
    """Write keys so that owners who store them differently write them alike.

    Whole numbers in decimal, text in the Unicode form NFC without blanks around it, dates as in ISO 8601 and midnight
    without its hours.

    Raises
    ------
    TableError
        With counts, for missing keys, keys that stand twice, and kinds that no two owners are certain to write alike.

    Examples
    --------
    >>> key_texts([7, "A-7", datetime.date(2024, 2, 29)])
    ['7', 'A-7', '2024-02-29']
    """
    cells = keys.to_pylist() if hasattr(keys, "to_pylist") else list(keys)
    missing = sum(cell is None or (isinstance(cell, str) and not cell.strip()) for cell in cells)
    if missing:
        raise TableError(f"the key column has {missing} missing cells; give every record a key, or leave it out")
    texts = [key_text(cell) for cell in cells]
    unusable = sum(text is None for text in texts)
    if unusable:
        raise TableError(
            f"{unusable} keys are neither whole numbers nor text nor dates without a time zone; write the key column "
            "as text, alike at all parties"
        )
    known = [text for text in texts if text is not None]
    twice = len(known) - len(set(known))
    if twice:
        raise TableError(f"{twice} cells of the key column repeat a key that stands above; list each record once")
    return known


def key_text(cell: Any) -> str | None:
    """Write a key as all owners write it; None of one that no two are certain to write alike."""
    if isinstance(cell, str):
        return unicodedata.normalize("NFC", cell.strip())
    if isinstance(cell, int | np.integer) and not isinstance(cell, bool):
        return str(int(cell))
    if isinstance(cell, datetime.datetime):
        if cell.tzinfo is not None:
            return None
        return cell.date().isoformat() if cell.time() == datetime.time() else cell.isoformat()
    return cell.isoformat() if isinstance(cell, datetime.date) else None


def _refuse_different(session: Session, ordered: bytes, counts: list[int]) -> None:
    """Refuse different keys, with the counts at every party."""
    sets = []
    for owner, count in enumerate(counts):
        hashes = session.broadcast(ordered if owner == session.rank else None, owner, "keyed hashes", count)
        if len(hashes) != _HASH * count:
            raise PartyError(
                f"party {session.names[owner]!r} sent {len(hashes)} bytes of keys, not {_HASH * count}; start "
                "all parties again"
            )
        sets.append({hashes[place : place + _HASH] for place in range(0, len(hashes), _HASH)})
    common, every = set.intersection(*sets), set.union(*sets)
    found = ", ".join(
        f"{name!r} has {len(own - common)} that another party lacks and lacks {len(every - own)} that another has"
        for name, own in zip(session.names, sets, strict=True)
    )
    raise TableError(
        f"the parties have {len(common)} keys in common and others that differ: {found}; use the same records at all "
        "parties, with keys written alike"
    )


_FINE = 16  # bits behind the point of a squared distance; selecting the nearest costs a comparison for each bit

_SPREAD = 1.001  # a column that is standardized has 1; a codec may round its mean a little
_MOST_WIDE = 8192  # coordinates of one owner: the square of them is kept for a group

LEAKS: dict[str, Leak] = {
    leak.label: leak
    for leak in (
        Leak.message(
            "digest of keys",
            "Each owner tells the number of its keys and one digest of all of them under a secret of the run: all see "
            "whether the owners have the same records.",
        ),
        Leak.message(
            "keyed hashes",
            "Only where the owners have different records, and then the run ends: each tells the hashes of its keys "
            "under a secret that all parties have, so that a party can test guesses of another's keys.",
        ),
        Leak.message(
            "columns",
            "Each owner tells the names of its columns, their kinds, the number of their categories, whether cells are "
            "missing in them, and the number of its rows.",
        ),
        Leak.opened(
            "clusters",
            "All parties see in every round which records K-means puts together, so that each can move the centres of "
            "its own columns: records in one cluster are alike in the columns of all owners. Distances stay hidden.",
        ),
        Leak.opened(
            "moved records",
            "All parties see which records fill a cluster that is too small: they are nearer to its centre than those "
            "that stay. Their order and distances stay hidden.",
        ),
        Leak.message(
            "statistics of own columns",
            "Each owner tells the means, variances and covariances of its own columns in each group, and with them how "
            "often each category and missing cells occur there; the cells of a record that alone has a category, or a "
            "missing cell, in its group follow from them.",
        ),
        Leak.message(
            "categories of own columns",
            "Of a column of more than 200 categories its owner tells how often each stands in each group, by its place "
            "among them.",
        ),
        Leak.opened(
            "covariances across owners",
            "All parties see the covariances of one owner's columns with another's in each group.",
        ),
        Leak.message(
            "axes",
            "The first party tells the principal axes of each group, so that all use the same to the last bit.",
            implied=True,
        ),
        Leak.opened(
            "ranges",
            "All parties see how far each principal component of a group reaches from its lowest to its highest "
            "record; where it lies and whose these records are stays hidden.",
        ),
        Leak.opened(
            "noised components",
            "All parties see the principal components of every record with noise: this is the released table before "
            "its rows are shuffled, so each party can tell which of its records a released row descends from.",
        ),
    )
}
"""What the protocol shows, and nothing else."""


class ColumnCentres:
    """Centres of clusters in this owner's columns; all owners see the clusters, and no party sees a distance.

    Each owner shares its part of the distances, in fixed point. Centres are means of records, so no record is farther
    from one than from some record. In a standardized number two records differ by 2 n at most, squared, in a column of
    categories by 1 and in a mark of missing cells by 1; the weights of the columns sum to 1. So a distance is at most
    2 n + 1, and 4 n leaves room for what each owner rounds.

    Parameters
    ----------
    scaled : ndarray of shape (n, d_l)
        This owner's coordinates times the root of their weights.
    g : int

    Attributes
    ----------
    centres : ndarray of shape (g, d_l)
    """

    def __init__(self, session: Session, scaled: NDArray[np.float64], g: int) -> None:
        self._session, self._scaled = session, scaled
        bound = 4.0 * max(len(scaled), session.parties)
        self._bits = min(_FINE, fraction_bits(bound))
        self._largest = 2 ** (self._bits + int(np.ceil(np.log2(bound)))) - 1
        self.centres = scaled[first_rows(session, len(scaled), g)]

    def nearest(self) -> NDArray[np.int64]:
        """Open the nearest centre of each record, of equal ones the first; rows go in blocks of one shape."""
        session, n, g = self._session, len(self._scaled), len(self.centres)
        if g == 1:
            return np.zeros(n, dtype=np.int64)
        blocks, size = row_blocks(n, g)
        found = []
        for block in range(blocks):
            parts = self._distances(self.centres, slice(block * size, (block + 1) * size))
            filled = np.zeros((size, g), dtype=np.int64)
            filled[: len(parts)] = parts
            found.append(session.argmin(shared_sum(session, filled, "partial distances")))
        labels = session.open_to_all(session.part(session.join(found), slice(n)), "clusters")
        return check_range(labels, 0, g - 1, "clusters")

    def any_changed(self, before: NDArray[np.int64], after: NDArray[np.int64]) -> bool:
        """Whether any record changed its cluster."""
        return bool((before != after).any())

    def sizes(self, labels: NDArray[np.int64]) -> NDArray[np.int64]:
        """Records in each cluster."""
        return np.bincount(labels, minlength=len(self.centres))

    def move(self, labels: NDArray[np.int64], sizes: NDArray[np.int64]) -> None:
        """Put each centre at the mean of its cluster; that of an empty one stays."""
        sums = [np.bincount(labels, weights=column, minlength=len(sizes)) for column in self._scaled.T]
        means = np.column_stack(sums) / np.maximum(sizes, 1)[:, None]
        self.centres = np.where(sizes[:, None] > 0, means, self.centres)

    def closest(self, cluster: int, candidates: NDArray[np.bool_], count: int) -> NDArray[np.bool_]:
        """Share the distances of the candidates alone, and open those that move."""
        session, left = self._session, np.flatnonzero(candidates)
        parts = np.zeros(padded_choice(len(left)), dtype=np.int64)
        parts[: len(left)] = self._distances(self.centres[cluster, None], left)[:, 0]
        if session.rank == 0:
            parts[len(left) :] = self._largest  # farther than any record can be
        total = shared_sum(session, parts, "partial distances")
        chosen = session.top(total, count, self._largest.bit_length())
        mask = session.open_to_all(session.part(chosen, slice(len(left))), "moved records")
        moved = np.zeros(len(candidates), dtype=np.bool_)
        moved[left[mask == 1]] = True
        return moved

    def _distances(self, centres: NDArray[np.float64], rows: slice | NDArray[np.int64]) -> NDArray[np.int64]:
        """Own part of the squared distances of some rows to each centre, (rows, g)."""
        some = self._scaled[rows]
        squares = np.zeros((len(some), len(centres)))
        for row, centre in zip(some.T, centres.T, strict=True):
            gap = row[:, None] - centre
            squares += gap * gap
        return to_fixed_point(squares, self._bits)


def first_rows(session: Session, n: int, g: int) -> NDArray[np.int64]:
    """Draw the records that K-means starts from; nothing of them is opened."""
    return session.public_rng("first centres").choice(n, g, replace=False)


@dataclass(frozen=True, eq=False, repr=False)
class _Columns:
    """Columns of all parties: layout, number of rows, and the coordinates of each owner."""

    layout: Layout
    rows: int
    spans: tuple[slice, ...]


def sanitize_vertical(session: Session, plan: JointPlan, values: NDArray[np.float64], layout: Layout) -> JointResult:
    """Sanitize the table whose columns several owners hold [BCG10, alg. 2, lines 4 to 14 and 20 to 28].

    All parties call it together, each with its own columns; all get the same result to the bit.

    Parameters
    ----------
    session : Session
        Made with `LEAKS`.
    values : ndarray of shape (n, d_l)
        This owner's coordinates, standardized, of the same records in the same order at all parties.
    layout : tuple of Block
        Of these coordinates.

    Raises
    ------
    BadInput
        At every party, where rows, names or levels do not fit; at one, where its own values do not, and then the
        others hear that it gave up.
    """
    if plan.partition != "vertical" or plan.parties != session.names:
        raise ValueError(f"the plan is for {plan.partition} owners {plan.parties}, the session has {session.names}")
    _check_own(values, layout)
    columns = agree_on_columns(session, len(values), layout)
    level, g = group_sizes(plan.mechanism, columns.rows)
    weights = response_weights(columns.layout, plan.target, plan.response_weight)
    centres = ColumnCentres(session, values * np.sqrt(weights[columns.spans[session.rank]]), g)
    labels, sizes, rounds = cluster_rows(session, centres, plan.rounds)  # line 4
    labels, _ = fill_groups(session, centres, labels, sizes)  # lines 5 to 11
    check_partition(labels, np.full(len(labels), level))
    own = grouped(session, values, labels)
    statistics = group_statistics(session, own, columns.spans)  # line 13
    whole = with_fills(columns.layout, statistics)
    bare = count_lone_values(whole, statistics)
    if isinstance(plan.mechanism, Condensation):
        held = broadcast_codes(session, layout, values, labels, whole, columns.spans, statistics)
        result = draw_rows(session, statistics, whole, held, columns.spans)
        return replace(result, level=level, rounds=rounds, bare=bare)
    axes = broadcast_axes(session, statistics, columns.layout, "axes")  # line 14
    step = plan.mechanism.grid
    components = share_components(session, own, axes[:, columns.spans[session.rank]], step)  # lines 21 and 22
    ranges = component_ranges(session, components, statistics.sizes)  # line 23
    varying = check_component_ranges(ranges, statistics, axes, step)
    scale = plan.mechanism.scale(most_components(columns.layout))
    noised = add_noise(session, components, varying, statistics.sizes, scale, plan.noise)  # lines 24 and 25
    held = broadcast_codes(session, layout, values, labels, whole, columns.spans, statistics)
    result = release_rows(session, noised.astype(np.float64) * step, axes, varying, statistics, whole, held)  # line 26
    groups = SeenGroups(statistics, axes, component_scales(varying, scale) * step, columns.spans)
    return replace(result, level=level, rounds=rounds, bare=bare, seen_groups=groups)


def agree_on_columns(session: Session, rows: int, layout: Layout) -> _Columns:
    """Put the columns of all owners side by side, in the order of the parties; no data is exchanged.

    Raises
    ------
    BadInput
        At every party, where the numbers of rows differ or two owners have a column of one name.
    """
    session.phase("agreeing on columns")
    own = _Contribution(rows, tuple((block.column, block.kind, block.stop - block.start) for block in layout))
    blocks: list[Block] = []
    spans, counts = [], []
    for owner in range(session.parties):
        document = write_json(own, escaped=True).encode() if owner == session.rank else None
        documents = session.broadcast(document, owner, "columns", 1)  # one number of rows; names are not counted
        contribution = _read(documents, session.names[owner])
        start = blocks[-1].stop if blocks else 0
        for column, kind, wide in contribution.columns:
            first = blocks[-1].stop if blocks else 0
            blocks.append(Block(column, kind, first, first + wide))
        spans.append(slice(start, blocks[-1].stop))
        counts.append(contribution.rows)
    if len(set(counts)) > 1:
        known = ", ".join(f"{name!r} {count}" for name, count in zip(session.names, counts, strict=True))
        raise BadInput(f"the parties have different numbers of rows ({known}); use the same records, aligned by key")
    _check_names(session, blocks, spans)
    return _Columns(tuple(blocks), rows, tuple(spans))


@dataclass(frozen=True)
class _Contribution:
    """Contribution of an owner: rows, and column, kind and width of each block of coordinates."""

    rows: int
    columns: tuple[tuple[str, BlockKind, int], ...]


def _read(received: bytes, name: str) -> _Contribution:
    try:
        contribution = from_json(_Contribution, received, most=MOST_BYTES)
    except Unparsable:
        raise PartyError(f"party {name!r} sent columns that cannot be read; start all parties again") from None
    if sum(wide for _, _, wide in contribution.columns) > _MOST_WIDE:
        raise PartyError(f"party {name!r} contributes more than {_MOST_WIDE} coordinates; leave columns out there")
    if not contribution.columns or min(wide for _, _, wide in contribution.columns) < 1:
        raise PartyError(f"party {name!r} contributes no columns; give it at least one, or leave it out")
    return contribution


def _check_names(session: Session, blocks: list[Block], spans: list[slice]) -> None:
    """Refuse a column name of two owners."""
    whose: dict[str, int] = {}
    for owner, span in enumerate(spans):
        for column in {block.column for block in blocks if span.start <= block.start < span.stop}:
            if column in whose:
                raise OptionError(
                    f"parties {session.names[whose[column]]!r} and {session.names[owner]!r} both contribute a column "
                    f"{column!r}; rename it at one of them, or leave it out there"
                )
            whose[column] = owner


def _check_own(values: NDArray[np.float64], layout: Layout) -> None:
    """Refuse coordinates that the bounds of fixed point do not hold for.

    With mean 0 and deviation 1 the squares of a column sum up to n, so none exceeds sqrt(n) in size and two of them
    differ by sqrt(2 n) at most; marks of categories and missing cells lie between 0 and 1.
    """
    check_values(values)
    if values.shape[1] != width(layout):
        raise ValueError(f"values of {values.shape[1]} coordinates do not fit a layout of {width(layout)}")
    for block in layout:
        part = values[:, block.where]
        if block.kind in (BlockKind.NUMBER, BlockKind.CODE):
            fits = float(np.square(part).sum()) <= _SPREAD * len(values)
        else:
            fits = bool(((part >= 0.0) & (part <= 1.0)).all())
        if not fits:
            raise SchemaError(f"column {block.column!r} is not standardized; encode the table with a codec made on it")
