"""The classes inside groups: known for each group, or read from the moments of the target's one-hot block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.errors import BadInput, SchemaError
from sfumato.mine.inputs import check_groups
from sfumato.records import CATEGORY_SCALE, Block, BlockKind, Layout, width

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sfumato.groups import Groups

__all__ = ["Pieces", "attributes", "class_counts", "pieces_of_labels", "pieces_of_target"]

_CAUTION = 1.0  # a class that one record of the group holds is placed half way: the record itself is not


@dataclass(frozen=True, eq=False, repr=False)
class Pieces:
    """Parts of groups that hold one class each.

    Parameters
    ----------
    classes : ndarray of shape (c,)
    code : ndarray of shape (p,)
        Class of each piece, an index into ``classes``.
    weight : ndarray of shape (p,)
        Records in the piece.
    mean : ndarray of shape (p, d)
    scatter : ndarray of shape (g, d, d)
        Scatter about the pieces' means, one for each group.
    group : ndarray of shape (p,)
        Group that each piece is part of.
    count : ndarray of shape (g,)
        Records of each group.
    """

    classes: NDArray[Any]
    code: NDArray[np.int64]
    weight: NDArray[np.float64]
    mean: NDArray[np.float64]
    scatter: NDArray[np.float64]
    group: NDArray[np.int64]
    count: NDArray[np.float64]


def pieces_of_labels(groups: Groups, labels: Any) -> Pieces:
    """Take whole groups as pieces: their classes are known because no group crosses one [AY05, sec. 3].

    Raises
    ------
    BadInput
        Where there is not one label for each group, or a single class.
    """
    check_groups(groups)
    names = np.asarray(labels)
    if names.shape != (len(groups),):
        raise BadInput(f"labels have shape {names.shape} for {len(groups)} groups; give one class for each group")
    classes, code = np.unique(names, return_inverse=True)
    if len(classes) < 2:
        raise BadInput(f"the {len(groups)} groups have one class; classification needs two or more")
    count = groups.count.astype(np.float64)
    whole = np.arange(len(groups))
    return Pieces(classes, code.astype(np.int64), count, groups.mean, groups.scatter, whole, count)


def pieces_of_target(groups: Groups, layout: Layout, column: str) -> Pieces:
    """Divide groups into their classes by the moments alone.

    With b the one-hot coordinate of class c (`CATEGORY_SCALE` or 0), the group's scatter between attributes and b is
    s = sum_i (x_i - m) b_i = scale * n_c * (m_c - m): the mean m_c of every class inside a group is in the moments.
    A piece is placed at m + s / (scale * (n_c + 1)), where the 1 keeps back half the deviation of a class that a single
    record holds. The scatter about pieces so placed, f = n_c / (n_c + 1) of the way d_c = m_c - m, is
    S - sum_c n_c (2f - f^2) d_c d_c^T, exactly.

    Notes
    -----
    Rows with a missing class hold the block's fill; their part of s, fill_c times the scatter with the indicator of
    missing cells, is taken out, and they belong to no piece.
    """
    block, indicator, keep = _find_target(groups, layout, column)
    held = class_counts(groups, layout, column)
    cross = groups.scatter[:, keep, block.where]
    if indicator is not None:
        cross = cross - groups.scatter[:, keep, indicator.start, None] * np.asarray(block.fill)
    away = cross / (CATEGORY_SCALE * np.maximum(held, 1))[:, None, :]  # m_c - m; 0 where the class is not there
    share = held / (held + _CAUTION)
    scatter = groups.scatter[:, keep[:, None], keep[None, :]]
    scatter -= (away * (held * (2.0 * share - share**2))[:, None, :]) @ away.transpose(0, 2, 1)
    group, code = np.nonzero(held)
    return Pieces(
        classes=np.arange(held.shape[1]),
        code=code,
        weight=held[group, code].astype(np.float64),
        mean=groups.mean[group[:, None], keep] + share[group, code, None] * away[group, :, code],
        scatter=_positive(scatter),
        group=group,
        count=groups.count.astype(np.float64),
    )


def class_counts(groups: Groups, layout: Layout, column: str) -> NDArray[np.int64]:
    """Count each class in each group: count * mean of the one-hot block / `CATEGORY_SCALE` (AY05, observation 2.1).

    Returns
    -------
    ndarray of shape (g, categories)
    """
    from sfumato.groups import category_counts, missing_counts

    block, indicator, _ = _find_target(groups, layout, column)
    gone = np.zeros(len(groups), dtype=np.int64) if indicator is None else missing_counts(groups, indicator)
    counts = category_counts(groups, block, gone)
    if (counts.sum(axis=0) > 0).sum() < 2:
        raise BadInput(f"column {column!r} has records in fewer than two classes; classification needs two or more")
    return counts


def attributes(layout: Layout, column: str) -> NDArray[np.int64]:
    """Give the coordinates that are not the target's: those a query has, in this order."""
    inside = [np.arange(block.start, block.stop) for block in layout if block.column != column]
    return np.concatenate([np.empty(0, dtype=np.int64), *inside])


def _find_target(groups: Groups, layout: Layout, column: str) -> tuple[Block, Block | None, NDArray[np.int64]]:
    check_groups(groups)
    if width(layout) != groups.mean.shape[1]:
        raise BadInput(
            f"the layout has {width(layout)} coordinates and the groups {groups.mean.shape[1]}; "
            "give the layout of the records that were grouped"
        )
    own = {block.kind: block for block in layout if block.column == column}
    if BlockKind.CATEGORY not in own:
        raise SchemaError(f"column {column!r} is not a block of categories in the layout; name a nominal column")
    keep = attributes(layout, column)
    if not len(keep):
        raise SchemaError(f"column {column!r} is the only one in the layout; classification needs attributes")
    return own[BlockKind.CATEGORY], own.get(BlockKind.MISSING), keep


def _positive(scatter: NDArray[np.float64]) -> NDArray[np.float64]:
    """Lift negative eigenvalues to 0: statistics that were split are those of no records, and counts get rounded."""
    eigenvalues, eigenvectors = np.linalg.eigh(scatter)
    if (eigenvalues >= 0.0).all():
        return scatter
    return np.asarray((eigenvectors * np.maximum(eigenvalues, 0.0)[:, None, :]) @ eigenvectors.transpose(0, 2, 1))
