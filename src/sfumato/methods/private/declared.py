"""Columns of a declared schema as whole places, and back: the border between records and noisy counts."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.errors import OptionError, PrivacyRefusal
from sfumato.core.records import Block, BlockKind, CellsByColumn, Records, cells_of_block
from sfumato.methods.private.columns import Domain

__all__ = ["DeclaredColumn"]

_PLACES = 2**15  # of a column of numbers without a step
_NARROW = 2**31  # places that need no more than 4 bytes
_WIDEST = 2.0**40  # places whose widths are exact


@dataclass(frozen=True)
class DeclaredColumn:
    """Places of a column's coordinates on its declared domain, and back."""

    block: Block
    missing: Block | None
    domain: Domain
    low: float = 0.0
    step: float | None = None
    high: float = 0.0

    @classmethod
    def of(cls, block: Block, missing: Block | None) -> DeclaredColumn:
        """The column of a block, whose domain must be declared."""
        extent, nullable = block.extent, missing is not None
        if extent is None or not extent.declared:
            raise PrivacyRefusal(
                f"the domain of column {block.column!r} was read off the data, which must not be released; "
                "declare it in a schema ('sfumato inspect --declare' writes one to fill in)"
            )
        if extent.labels:
            ordered = block.kind is BlockKind.NUMBER
            return cls(block, missing, Domain(block.column, len(extent.labels), ordered, nullable), 0.0, 1.0)
        if extent.low is None or extent.high is None:
            raise PrivacyRefusal(
                f"column {block.column!r} has no declared bounds; declare low and high in a schema "
                "('sfumato inspect --declare' writes one to fill in)"
            )
        size = _PLACES if extent.step is None else math.floor((extent.high - extent.low) / extent.step + 1e-9) + 1
        if size > _WIDEST:
            raise OptionError(f"column {block.column!r} has more than 2^40 places; declare a coarser step")
        domain = Domain(block.column, size, True, nullable)
        return cls(block, missing, domain, float(extent.low), extent.step, float(extent.high))

    def places(self, records: Records) -> Ints:
        """Place of each record's cell; -1 if it is missing. What lies outside the domain stands at its end."""
        coordinates = records.coordinates
        if isinstance(coordinates, CellsByColumn):
            cells = coordinates.column(self.block, self.missing)
        else:
            cells = cells_of_block(coordinates, self.block, self.missing)
        absent = np.isnan(cells)
        numbers = np.where(absent, self.low, self._numbers(np.where(absent, 0.0, cells)))
        places = (numbers - self.low) / self._width
        places = np.floor(places) if self.step is None else np.rint(places)
        narrow = np.int32 if self.domain.size < _NARROW else np.int64
        return np.where(absent, -1, places.clip(0, self.domain.size - 1)).astype(narrow)

    def cells(self, places: Ints, rng: np.random.Generator) -> Floats | Ints:
        """Coordinate or category of each place, as records hold their cells."""
        absent = places < 0
        if self.block.kind in (BlockKind.CATEGORY, BlockKind.CODE):
            return places
        within = rng.random(len(places)) if self.step is None else 0.0
        numbers = self.low + (places + within) * self._width
        return np.asarray(np.where(absent, np.nan, (numbers - self._origin) / self._unit))

    @property
    def _width(self) -> float:
        return (self.high - self.low or 1.0) / self.domain.size if self.step is None else self.step

    def _numbers(self, cells: Floats) -> Floats:
        """Numbers in the column's own units, or places of categories."""
        return cells if self.block.kind is not BlockKind.NUMBER else np.asarray(cells * self._unit + self._origin)

    @property
    def _origin(self) -> float:
        assert self.block.extent is not None
        return self.block.extent.origin if self.block.centre is None else self.block.centre

    @property
    def _unit(self) -> float:
        assert self.block.extent is not None
        return self.block.extent.unit if self.block.scale is None else self.block.scale
