"""Independent marginals: every column is synthesized on its own, so that no relationship between columns is kept.

The method is the baseline of every other synthesizer: what an analysis finds in its release, it finds without any
association. A number is the mean of k records with adjacent values, a category is drawn with its frequency.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import LevelError, OptionError
from sfumato.core.facts import (
    SECRET_RANDOMNESS,
    Claim,
    Context,
    Fact,
    Refused,
    Shuffled,
    Statements,
    are_unique,
    counted,
)
from sfumato.core.records import Block, BlockKind, Records, columns_of
from sfumato.methods.protocol import (
    MethodResult,
    OwnerDetails,
    Traits,
    check_parameters,
    refuse_levels,
    refuse_strata,
    rows_drawn,
)

__all__ = ["Marginals", "MarginalsDrawn"]


@dataclass(frozen=True)
class MarginalsDrawn(Fact):
    """Every column was drawn on its own; each number is a mean over ``k`` records with adjacent values."""

    methods = ("marginals",)
    synthetic = True

    columns: tuple[str, ...]
    records: int
    rows: int
    k: int

    def claims(self, context: Context) -> Statements:  # noqa: ARG002 (the other facts change nothing)
        """State what a number and a row are made of, and refuse what independent columns do not provide."""
        yield Claim(
            f"Every released number or date was computed from at least {self.k} records.",
            f"In each of {counted(len(self.columns), 'column', 'columns')}, the mean of {self.k} records with adjacent "
            "values, chosen at random, was drawn and rounded to the step of the column.",
            "one row is one person",
        )
        yield Claim(
            "A released row shows no combination of values of any person.",
            "The columns of a row were drawn independently of each other, but for the rules between columns that this "
            "certificate lists.",
            SECRET_RANDOMNESS,
        )
        yield Refused(
            "The method is part of sfumato.",
            "It is that of the package sfumato-marginals. sfumato verify does not check its facts and claims.",
        )
        yield Refused(
            "Relationships between columns are those of the original.",
            "Columns were drawn independently, so that all associations are lost.",
        )
        yield Refused(
            "The release is differentially private.",
            "Means of few records and frequencies of categories carry no calibrated noise.",
        )

    def check(self) -> bool:
        """Whether there are enough records, and every column occurs once."""
        return are_unique(self.columns) and 2 <= self.k <= self.records

    def named_columns(self) -> tuple[str, ...]:
        """Columns that it names, all of which are in the release."""
        return self.columns

    @property
    def rows_released(self) -> int:
        """Number of released rows."""
        return self.rows

    @property
    def records_used(self) -> int:
        """Number of original records."""
        return self.records


@dataclass(frozen=True)
class Marginals:
    """Synthetic rows whose columns are drawn independently of each other.

    Parameters
    ----------
    k : int
        Number of records behind every number, and minimum frequency of a category.
    """

    method: ClassVar[str] = "marginals"

    k: int = 10  # the option --k is declared by the package's own methods; a new one is = option(10, "...")

    def __post_init__(self) -> None:
        check_parameters(self)
        if self.k < 2:
            raise OptionError("k must be at least 2; the default is 10")

    @property
    def traits(self) -> Traits:
        """Properties that an engine needs to know: rare categories and tails are those of fewer than k persons."""
        return Traits(synthetic=True, floor=self.k, row_is_person=True, codes=True)

    def sanitize(self, records: Records, *, rng: np.random.Generator) -> MethodResult:
        """Draw every column from its own values."""
        refuse_levels(records, "this method")
        refuse_strata(records, "this method")
        rows = len(records) if records.wanted is None else records.wanted.rows
        values = np.zeros((rows, records.values.shape[1]))
        names = []
        for block, missing in columns_of(records.layout):
            names.append(block.column)
            absent = np.zeros(len(records), dtype=bool) if missing is None else records.values[:, missing.start] > 0.5
            values[:, block.where] = self._column(records.values[~absent, block.where], block, rows, rng)
            if missing is not None:
                gaps = absent[rng.integers(len(records), size=rows)]
                values[gaps, block.where] = block.fill
                values[gaps, missing.start] = 1.0
        nothing = np.zeros(rows, dtype=np.int64)
        fact = MarginalsDrawn(tuple(names), len(records), rows, self.k)
        made = Records(values, records.layout, nothing, nothing.copy(), records.target)
        return MethodResult(made, (fact, Shuffled(rows), *rows_drawn(records)), OwnerDetails())

    def _column(
        self, cells: NDArray[np.float64], block: Block, rows: int, rng: np.random.Generator
    ) -> NDArray[np.float64]:
        if len(cells) < self.k:
            raise LevelError(f"column {block.column!r} has fewer than {self.k} values; drop it, or lower k")
        if block.kind is not BlockKind.NUMBER:  # categories of fewer than k persons were pooled before
            return cells[rng.integers(len(cells), size=rows)]
        sums = np.concatenate([[0.0], np.cumsum(np.sort(cells[:, 0]))])
        first = rng.integers(len(cells) - self.k + 1, size=rows)
        means: NDArray[np.float64] = (sums[first + self.k] - sums[first]) / self.k
        return means[:, None]
