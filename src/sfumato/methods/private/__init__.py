"""The private chain: synthetic rows from noisy counts, with a proof of (epsilon, delta)-differential privacy."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field

import numpy as np

from sfumato.core.distributions.accounting import rho_of
from sfumato.core.errors import OptionError
from sfumato.core.facts import PrivatelyMeasured, Shuffled
from sfumato.core.option import offered
from sfumato.core.records import CellsByColumn, Records, columns_of
from sfumato.methods.private.declared import DeclaredColumn
from sfumato.methods.private.draw import draw_rows
from sfumato.methods.private.ledger import Ledger
from sfumato.methods.private.measure import measure
from sfumato.methods.private.people import People
from sfumato.methods.private.settings import settings_for
from sfumato.methods.protocol import MethodResult, OwnerDetails, Traits, check_parameters, refuse_levels, refuse_strata

__all__ = ["PrivateChain"]

_LARGEST = 1e-2  # delta from which nothing is promised


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
        columns = [DeclaredColumn.of(block, missing) for block, missing in columns_of(records.layout)]
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
        return MethodResult(released, (fact, Shuffled(rows)), OwnerDetails(), model)
