"""The private chain: synthetic rows from noisy counts, with a proof of (epsilon, delta)-differential privacy."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.core.arguments import option
from sfumato.core.arrays import Floats
from sfumato.core.distributions.amplification import rho_of
from sfumato.core.errors import OptionError, PrivacyRefusal
from sfumato.core.facts import Shuffled
from sfumato.core.records import CellsByColumn, Records, columns_of
from sfumato.methods.private.declared import DeclaredColumn
from sfumato.methods.private.draw import draw_rows
from sfumato.methods.private.facts import PrivatelyMeasured
from sfumato.methods.private.ledger import MOST_EPSILON, Ledger
from sfumato.methods.private.measure import measure
from sfumato.methods.private.model import Model
from sfumato.methods.private.people import AllPeople, People
from sfumato.methods.private.settings import settings_for
from sfumato.methods.protocol import MethodResult, OwnerDetails, Traits, check_parameters, refuse_levels, refuse_strata

__all__ = ["PrivateChain"]

_OF_DELTA = 0.1  # for the thresholds of categories that are bought
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
    epsilon_of : str, optional
        Smaller epsilons of some people: a declared column of numbers, or rules on declared columns such as
        ``"age < 18: 0.5, else: 1"``. What sets them must be public.
    private_bounds : bool
        Buy bounds and categories that are not declared, for a tenth of the budget.
    people : int, optional
        Number of people, if it is public.
    """

    epsilon: float
    delta: float = option(1e-5, "private: probability that the bound fails.  [default: 1e-05]")
    epsilon_of: str | None = option(
        None,
        "private: smaller epsilons of some people, a declared column or 'age < 18: 0.5, else: 1'.",
        metavar="COL|RULE",
    )
    private_bounds: bool = option(
        False, "private: buy bounds and categories that are not declared, for a tenth of the budget."
    )
    people: int | None = option(None, "private: number of people, if it is public.", metavar="N")

    def __post_init__(self) -> None:
        check_parameters(self)
        object.__setattr__(self, "epsilon", float(self.epsilon))
        if not 0 < self.epsilon <= MOST_EPSILON:
            raise OptionError(f"epsilon must be a number above 0 and at most {MOST_EPSILON:g}; try 1")
        if not 0 < self.delta <= _LARGEST:
            raise OptionError(f"delta must lie above 0 and be at most {_LARGEST:g}; try 1e-5")
        if self.people is not None and self.people < 1:
            raise OptionError("the number of people must be at least 1; leave it out if it is not public")
        if self.people is not None and self.delta > 1 / (10 * self.people):
            raise PrivacyRefusal(
                f"delta {self.delta:g} is too large for {self.people:,} people, each of whom it may fail; take "
                f"{10.0 ** -math.ceil(math.log10(10 * self.people)):g} or less"
            )

    @property
    def traits(self) -> Traits:
        """Synthetic rows, from declared domains alone."""
        return Traits(synthetic=True, declared=True, gaps=True, codes=True)

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
        people = People.of((), records.persons)
        return self.synthesize(records, people, self.ledger(rng))

    @property
    def thresholds(self) -> float:
        """Part of delta for the thresholds of categories, if they may be bought."""
        return _OF_DELTA * self.delta if self.private_bounds else 0.0

    def ledger(self, rng: np.random.Generator) -> Ledger:
        """The budget of a release."""
        return Ledger(rho_of(self.epsilon, self.delta - self.thresholds), rng, thresholds=self.thresholds)

    def synthesize(
        self, records: Records, people: People, ledger: Ledger, sizes: Floats | None = None, **stated: Any
    ) -> MethodResult:
        """Rows drawn from noisy counts, at a cost of at most what the ledger has left.

        Parameters
        ----------
        records : Records
        people : People
            Whom each record is about.
        ledger : Ledger
        sizes : ndarray, optional
            Noisy numbers of people of each level, if there are levels.
        **stated
            What else the fact states.
        """
        refuse_levels(records, "the private chain")
        refuse_strata(records, "the private chain")
        columns = [DeclaredColumn.of(block, missing) for block, missing in columns_of(records.layout)]
        people = people.with_places(*(column.places(records) for column in columns))
        model = self.measure(people, columns, records.target, ledger, sizes)
        rows = self.rows_of(model) if records.wanted is None else records.wanted.rows
        drawn = draw_rows(model, rows, ledger.rng)
        cells = {
            column.domain.name: column.cells(places, ledger.rng) for column, places in zip(columns, drawn, strict=True)
        }
        none = np.zeros(rows, dtype=np.int64)
        released = dataclasses.replace(
            records,
            coordinates=CellsByColumn(records.layout, cells),
            levels=none,
            strata=none,
            persons=None,
            wanted=None,
        )
        fact = self.fact(ledger, len(columns), **stated)
        return MethodResult(released, (fact, Shuffled(rows)), OwnerDetails(), model)

    def measure(
        self,
        people: AllPeople,
        columns: Sequence[DeclaredColumn],
        target: str | None,
        ledger: Ledger,
        sizes: Floats | None = None,
    ) -> Model:
        """A model of people, whose places are those of these columns."""
        domains = tuple(column.domain for column in columns)
        place = next((i for i, each in enumerate(domains) if each.name == target), None)
        return measure(people, domains, place, settings_for(domains, place, self.epsilon), ledger, ledger.rng, sizes)

    def rows_of(self, model: Model) -> int:
        """Rows that are drawn of a model if no other number is wanted."""
        return self.people or max(1, round(model.people))

    def fact(self, ledger: Ledger, columns: int, **stated: Any) -> PrivatelyMeasured:
        """What was spent, for the certificate."""
        steps, spent = zip(*ledger.lines, strict=True)
        return PrivatelyMeasured(
            self.epsilon, self.delta, ledger.rho, steps, spent, columns, thresholds=ledger.thresholds, **stated
        )
