"""What a private chain releases: noisy statistics and no record. Rows are drawn from it at no further cost."""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.core.arrays import Floats, Ints
from sfumato.methods.private.columns import Histogram

__all__ = ["ColumnModel", "Model", "PairTable"]


@dataclass(frozen=True, eq=False, repr=False)
class ColumnModel:
    """How one column is drawn.

    Parameters
    ----------
    column : int
    parents : tuple of int
        Columns drawn before it that its table tells apart.
    parent_bins : tuple of ndarray
        Bin of each leaf of each parent.
    bins : ndarray of shape (leaves,)
        Bin of each leaf of the column in its table.
    given : ndarray of shape (classes, leaves)
        Shares of its leaves by class.
    table : ndarray of shape (cells, bins), optional
        Noisy counts by class and parents; None if it has no table.
    sd : float
        Of the noise of the table.
    """

    column: int
    parents: tuple[int, ...]
    parent_bins: tuple[Ints, ...]
    bins: Ints
    given: Floats
    table: Floats | None
    sd: float

    def __repr__(self) -> str:
        return f"ColumnModel({self.column}, parents={self.parents})"


@dataclass(frozen=True, eq=False, repr=False)
class PairTable:
    """Noisy counts of two columns by class.

    Parameters
    ----------
    columns : tuple of int
    bins : tuple of ndarray
        Bin of each leaf of both columns.
    table : ndarray
        Counts by class, by bin of the first column, and by bin of the second.
    sd : float
        Of the noise of each count.
    """

    columns: tuple[int, int]
    bins: tuple[Ints, Ints]
    table: Floats
    sd: float

    @property
    def sizes(self) -> tuple[int, int]:
        """Bins of both columns."""
        return int(self.bins[0].max()) + 1, int(self.bins[1].max()) + 1

    def __repr__(self) -> str:
        return f"PairTable{self.columns}"


@dataclass(frozen=True, eq=False, repr=False)
class Model:
    """Noisy statistics of a table.

    Parameters
    ----------
    histograms : tuple of Histogram
        One for each column.
    target : int, optional
        Column of classes that all other columns are modelled given.
    classes : ndarray
        Its leaves that have people.
    class_shares : ndarray
    people : float
        Noisy number of people.
    sd_given : float
        Of the noise of the counts given the target.
    columns : tuple of ColumnModel
        In their order of drawing, the target aside.
    correlations : ndarray of shape (classes, numbers, numbers), optional
        Of the normal scores of the ordered columns, in the order of ``histograms`` without the target.
    pairs : tuple of PairTable
        What the rows that the columns draw are weighted by.
    """

    histograms: tuple[Histogram, ...]
    target: int | None
    classes: Ints
    class_shares: Floats
    people: float
    sd_given: float
    columns: tuple[ColumnModel, ...]
    correlations: Floats | None
    pairs: tuple[PairTable, ...] = ()

    @property
    def numbers(self) -> list[int]:
        """Ordered columns, the target aside."""
        return [i for i, each in enumerate(self.histograms) if each.ordered and i != self.target]

    def __repr__(self) -> str:
        return f"Model({len(self.histograms)} columns)"
