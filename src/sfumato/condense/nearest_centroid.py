"""The choice of how to find the closest centroid: by the index, or by a sheet where the index is of no help."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.condense.centroid_index import ASKED, LOOKED, WIDTH, Index
from sfumato.condense.index_build import build_index
from sfumato.condense.sheet import BLOCK, Sheet, blank_sheet, numbers_on, write_sheet
from sfumato.condense.slots import Store

__all__ = ["Search"]

_FEWEST = 512  # groups below which a sheet does not pay
_SHARE = 0.2  # places looked at for each group, above which a sheet costs less than the index; measured
_WORTH = 200_000  # numbers that the index must look at in place of a sheet, or the sheet costs more; measured
_STRETCH = 1024  # records between two looks at what the index costs
_TRIAL, _TRIAL_EVERY = 32, 4096  # records by which the index is tried again, and how often


class Search:
    """The index over a store's centroids, and what it has cost of late. Only speed depends on it."""

    def __init__(self, store: Store) -> None:
        self.index: Index = build_index(store, 0)
        self._sheets = False  # whether sheets are used at present
        self._on_sheets = 0  # records since the index was tried last
        self._looked = 0.0  # centroids that the index looked at for a record
        self._sheet, self._paper = blank_sheet(), np.empty(0)

    def renew(self, store: Store, groups: int) -> None:
        """Build the index anew, where groups have moved and split or the store has grown."""
        kept = self.index.numbers[[LOOKED, ASKED]]
        self.index = build_index(store, groups)
        self.index.numbers[[LOOKED, ASKED]] = kept
        self._sheet = blank_sheet()

    def next_block(self, store: Store, groups: int, values: NDArray[np.float64], first: int) -> tuple[int, Sheet]:
        """Tell how far to go by the same means, and give the sheet, which is blank where the index is to be used."""
        self._sheets = groups >= _FEWEST and self._index_is_slow(groups)
        left = values[first:]
        if not self._sheets or left.size * self._looked < _WORTH:  # few records do not fill a sheet
            return self._by_index(min(len(values), first + _STRETCH))
        if self._on_sheets >= _TRIAL_EVERY:
            self._on_sheets = 0
            self.index.numbers[[LOOKED, ASKED]] = 0
            return self._by_index(min(len(values), first + _TRIAL))
        last = min(len(values), first + BLOCK)
        self._on_sheets += last - first
        if len(self._paper) < numbers_on(groups, last - first):
            self._paper = np.empty(2 * numbers_on(groups, BLOCK))
        self._sheet = write_sheet(self._sheet, store, groups, values, first, last, self._paper)
        return last, self._sheet

    def _by_index(self, last: int) -> tuple[int, Sheet]:
        if len(self._sheet.near):
            self._sheet = blank_sheet()  # what it says of the centroids will no longer be true
        return last, self._sheet

    def _index_is_slow(self, groups: int) -> bool:
        """Judge by the questions since the last judgement; with too few of them the last one stands."""
        looked, asked = (int(number) for number in self.index.numbers[[LOOKED, ASKED]])
        if asked < _TRIAL:
            return self._sheets
        self.index.numbers[[LOOKED, ASKED]] = 0
        self._looked = looked * WIDTH / asked
        return self._looked > _SHARE * groups
