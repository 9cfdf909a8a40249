"""The private chain: synthetic rows from noisy counts, with a proof of (epsilon, delta)-differential privacy."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.distributions.accounting import rho_of
from sfumato.core.errors import OptionError, PrivacyRefusal
from sfumato.core.facts import PrivatelyMeasured, Shuffled
from sfumato.core.option import offered
from sfumato.core.records import Block, BlockKind, CellsByColumn, Records, cells_of_block, columns_of
from sfumato.methods.private.columns import Domain
from sfumato.methods.private.draw import draw_rows
from sfumato.methods.private.ledger import Ledger
from sfumato.methods.private.measure import measure
from sfumato.methods.private.people import People
from sfumato.methods.private.settings import settings_for
from sfumato.methods.protocol import MethodResult, OwnerDetails, Traits, check_parameters, refuse_levels, refuse_strata

__all__ = ["PrivateChain"]

_PLACES = 2**15  # of a column of numbers without a step
_LARGEST = 1e-2  # delta from which nothing is promised
_WIDEST = 2.0**40  # places whose widths are exact


@dataclass(frozen=True)
class PrivateChain:
    """Measure noisy counts of a table once, and draw rows from them.

    Adding or removing all rows of one person changes the probability of any release by at most a factor of e^epsilon,
    apart from a probability delta. What leaves depends on the records through these counts alone, so domains must be
    declared.

    Parameters
    ----------
    epsilon : float
    delta : float
        Should be well below one in the number of people.
    """

    epsilon: float
    delta: float = field(default=1e-5, metadata=offered("private: probability that the bound fails.  [default: 1e-05]"))

    def __post_init__(self) -> None:
        check_parameters(self)
        object.__setattr__(self, "epsilon", float(self.epsilon))
        if not (math.isfinite(self.epsilon) and self.epsilon > 0):
            raise OptionError("epsilon must be a number above 0; try 1")
        if not 0 < self.delta <= _LARGEST:
            raise OptionError(f"delta must lie above 0 and be at most {_LARGEST:g}; try 1e-5")

    @property
    def traits(self) -> Traits:
        """Synthetic rows, from declared domains alone."""
        return Traits(synthetic=True, declared=True, gaps=True, codes=True, row_is_person=True)

    @property
    def method(self) -> str:
        """The method's name on the command line."""
        return "private"

    def sanitize(self, records: Records, *, rng: np.random.Generator) -> MethodResult:
        """Rows drawn from noisy counts of these records.

        Raises
        ------
        PrivacyRefusal
            If a domain is not declared.
        """
        refuse_levels(records, "the private chain")
        refuse_strata(records, "the private chain")
        columns = [_Column.of(block, missing) for block, missing in columns_of(records.layout)]
        domains = tuple(column.domain for column in columns)
        target = next((i for i, each in enumerate(domains) if each.name == records.target), None)
        ledger = Ledger(rho_of(self.epsilon, self.delta), rng)
        people = People(tuple(column.places(records) for column in columns))
        model = measure(people, domains, target, settings_for(domains, target, self.epsilon), ledger, rng)
        rows = max(1, round(model.people)) if records.wanted is None else records.wanted.rows
        drawn = draw_rows(model, rows, rng)
        cells = {column.domain.name: column.cells(places, rng) for column, places in zip(columns, drawn, strict=True)}
        none = np.zeros(rows, dtype=np.int64)
        released = dataclasses.replace(
            records,
            coordinates=CellsByColumn(records.layout, cells),
            levels=none,
            strata=none,
            persons=None,
            wanted=None,
        )
        steps, spent = zip(*ledger.lines, strict=True)
        fact = PrivatelyMeasured(self.epsilon, self.delta, ledger.rho, steps, spent, len(columns))
        return MethodResult(released, (fact, Shuffled(rows)), OwnerDetails())


@dataclass(frozen=True)
class _Column:
    """Places of a column's coordinates on its declared domain, and back."""

    block: Block
    missing: Block | None
    domain: Domain
    low: float = 0.0
    step: float | None = None
    high: float = 0.0

    @classmethod
    def of(cls, block: Block, missing: Block | None) -> _Column:
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
        return np.where(absent, -1, places.clip(0, self.domain.size - 1)).astype(np.int64)

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
