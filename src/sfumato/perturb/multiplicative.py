"""Multiplicative data perturbation, MDP: Y = X e, where e has mean 1 [OZ03, sec. 3.1]."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from sfumato.errors import SchemaError
from sfumato.laws import choose_step, law_of_size, snap
from sfumato.laws.enhance import Pairs, pairs_of
from sfumato.mechanism import Sanitized, Traits
from sfumato.perturb.finish import check_records, finish, number_blocks
from sfumato.perturb.options import check_noise, common_step
from sfumato.records import Records

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from sfumato.laws import Law

__all__ = ["MultiplicativeNoise", "perturb_multiplicatively"]

_FINENESS = 42  # steps of the factor are far finer than those of the product, which so leaves no place out


@dataclass(frozen=True)
class MultiplicativeNoise:
    """Every number multiplied by noise of mean 1, drawn afresh for each cell. A zero stays zero.

    Parameters
    ----------
    law : {"gaussian", "uniform", "laplace"}
        Uniform factors are bounded: the product proves between which numbers the original lies.
    size : float
        Standard deviation of the factor: 0.1 changes a number by about a tenth of itself.
    enhance : float
        Share of the rows, drawn at random, that get additive noise on top: the privacy enhance rho [OZ03, sec. 5.4].
    enhance_size : float
        Standard deviation of what they get, in standard deviations of the column.
    enhance_laws : tuple of (str, str)
        Columns and the law of what they get on top; ``law`` for those that are not named.
    pass_categories : bool
        Publish categories as they are. Noise does not change them, so without it they are refused.

    Examples
    --------
    >>> MultiplicativeNoise(size=0.2)
    MultiplicativeNoise(kind='multiplicative', law='gaussian', size=0.2, enhance=0.0, enhance_size=1.0,
        enhance_laws=(), pass_categories=False)
    """

    traits: ClassVar[Traits] = Traits(synthetic=False)
    correlated: ClassVar[bool] = False

    kind: str = dataclasses.field(default="multiplicative", init=False)
    law: str = "gaussian"
    size: float = 0.2
    enhance: float = 0.0
    enhance_size: float = 1.0
    enhance_laws: Pairs = ()
    pass_categories: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "enhance_laws", pairs_of(self.enhance_laws))
        check_noise(self.law, self.size, self.enhance, self.enhance_size, self.enhance_laws)

    @property
    def method(self) -> str:
        """The method's name on the command line."""
        return "noise"

    @property
    def grid(self) -> float:
        """Step of the grid that the products are brought to, in standard deviations of the column."""
        return common_step(self.size, self.enhance, self.enhance_size)

    def sanitize(self, records: Records, *, rng: np.random.Generator) -> Sanitized:
        """Multiply the numbers of every row by noise and shuffle the rows."""
        check_records(records, self)
        zeros = _zeros(records)
        values = records.values.copy()
        law = law_of_size(self.law, self.size, choose_step(self.size, _FINENESS))
        for place, zero in zeros.items():
            values[:, place] = perturb_multiplicatively(records.values[:, place], zero, law, self.grid, rng)
        return finish(records, values, self, rng)


def perturb_multiplicatively(
    x: NDArray[np.float64], zero: float, law: Law, step: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Give Y = X e for one attribute, where e = 1 + noise of the law [OZ03, sec. 3.1].

    ``x`` counts in standard deviations from the mean and ``zero`` is where the number 0 lies in that count. The product
    is brought to a grid of the given step, so that Y says nothing by its last digits [Mironov 2012].

    Raises
    ------
    SchemaError
        For numbers so far from 0 that one step of the factor would leap over places of the grid.
    """
    import numpy as np

    if float(np.abs(x - zero).max(initial=0.0)) * law.step > step:
        raise SchemaError("a column differs too little to be multiplied, for its size; use additive noise")
    return np.asarray(snap(x + (x - zero) * law.values(x.shape, rng), step) * step)


def _zeros(records: Records) -> dict[int, float]:
    """Tell for each column of numbers where its 0 lies; dates and places in an order have none."""
    zeros, without = {}, []
    for block in number_blocks(records.layout):
        if block.centre is None or block.scale is None:
            without.append(block.column)
        else:
            zeros[block.start] = -block.centre / block.scale
    if without:
        raise SchemaError(
            f"{len(without)} columns are dates or orders, which cannot be multiplied, the first is {without[0]!r}; use "
            "additive noise or leave them out"
        )
    return zeros
