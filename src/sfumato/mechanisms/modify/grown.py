"""A tree grown on the original to tell one column from the others, for swapping in its leaves and for its rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sfumato.mechanisms.chain.columns import Column, count_persons, read_columns
from sfumato.mechanisms.chain.draw import LEAST_GAIN
from sfumato.mechanisms.chain.trees import Tree, grow_tree

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sfumato.core.records import Records

__all__ = ["Grown", "grow_on"]


@dataclass(frozen=True, eq=False, repr=False)
class Grown:
    """A tree for a column, the columns that it asks about, and the leaf of each record.

    ``asked`` are the other columns, ``codes`` their bins, by record; a missing cell has a bin to itself.
    """

    told: Column
    asked: tuple[Column, ...]
    codes: NDArray[np.uint8]
    tree: Tree
    labels: NDArray[np.int64]

    def smallest(self, persons: NDArray[np.int64] | None) -> int:
        """Persons of the smallest leaf."""
        places = np.unique(self.labels, return_inverse=True)[1]
        return int(count_persons(places, persons).min())


def grow_on(records: Records, column: str, leaf: int) -> Grown:
    """A tree that tells a column from all others, no leaf of fewer persons than told.

    It is grown on the records that have a value there; the others fall into its leaves.
    """
    columns = {each.name: each for each in read_columns(records, 0)}
    told, asked = columns[column], tuple(each for name, each in columns.items() if name != column)
    codes = np.column_stack([each.codes(each.cells) for each in asked])
    having = np.flatnonzero(~np.isnan(told.cells))
    score, classes = told.score()
    if classes and len(having):  # classes are counted from 0 among those that there are
        score = np.unique(score[having], return_inverse=True)[1].astype(np.int64)
        classes = int(score.max()) + 1
    nothing = np.zeros(len(having), dtype=np.int64)
    who = None if records.persons is None else np.unique(records.persons[having], return_inverse=True)[1]
    tree = grow_tree(
        codes[having],
        np.array([each.bins for each in asked], dtype=np.int64),
        np.array([not each.is_number for each in asked], dtype=np.bool_),
        score,
        classes,
        nothing,
        nothing,
        who,
        leaf=leaf,
        least_gain=LEAST_GAIN,
    )
    return Grown(told, asked, codes, tree, tree.leaves_of(codes, np.zeros(len(codes), dtype=np.int64)))
