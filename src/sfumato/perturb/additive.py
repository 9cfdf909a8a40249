"""Additive data perturbation, ADP: Y = X + e [OZ03, sec. 3.1]."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from sfumato.errors import OptionError
from sfumato.laws import add_noise, law_of_size, snap
from sfumato.laws.enhance import Pairs, pairs_of
from sfumato.mechanism import Sanitized, Traits
from sfumato.perturb.finish import check_records, finish, number_places
from sfumato.perturb.options import check_noise, common_step
from sfumato.records import Records

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from sfumato.laws import Law

__all__ = ["AdditiveNoise", "perturb_additively", "perturb_with_shape"]


@dataclass(frozen=True)
class AdditiveNoise:
    """Noise added to every number, drawn afresh for each cell.

    Parameters
    ----------
    law : {"gaussian", "uniform", "laplace"}
        Uniform noise is bounded: a number near its end proves that the original was high, or low.
    size : float
        Standard deviation of the noise, in standard deviations of the column.
    correlated : bool
        Give the noise of a row the data's own correlations, so that no filter can tell it from the data; Gaussian only.
    enhance : float
        Share of the rows, drawn at random, that get more noise on top: the privacy enhance rho [OZ03, sec. 5.4].
    enhance_size : float
        Standard deviation of what they get, in standard deviations of the column.
    enhance_laws : tuple of (str, str)
        Columns and the law of what they get on top; ``law`` for those that are not named.
    pass_categories : bool
        Publish categories as they are. Noise does not change them, so without it they are refused.

    Examples
    --------
    >>> AdditiveNoise(size=0.5).method
    'noise'
    >>> AdditiveNoise(law="cauchy")
    Traceback (most recent call last):
        ...
    sfumato.errors.OptionError: there is no noise law 'cauchy'; choose one of gaussian, uniform, laplace
    """

    traits: ClassVar[Traits] = Traits(synthetic=False)

    kind: str = dataclasses.field(default="additive", init=False)
    law: str = "gaussian"
    size: float = 1.0
    correlated: bool = False
    enhance: float = 0.0
    enhance_size: float = 1.0
    enhance_laws: Pairs = ()
    pass_categories: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "enhance_laws", pairs_of(self.enhance_laws))
        check_noise(self.law, self.size, self.enhance, self.enhance_size, self.enhance_laws)
        if self.correlated and self.law != "gaussian":
            raise OptionError("noise with the data's correlations is Gaussian; choose the law 'gaussian'")

    @property
    def method(self) -> str:
        """The method's name on the command line."""
        return "noise"

    @property
    def grid(self) -> float:
        """Step of the grid that the noise is drawn on, in standard deviations of the column."""
        return common_step(self.size, self.enhance, self.enhance_size)

    def sanitize(self, records: Records, *, rng: np.random.Generator) -> Sanitized:
        """Add noise to the numbers of every row and shuffle the rows."""
        check_records(records, self)
        values = records.values.copy()
        places = number_places(records.layout)
        law = law_of_size(self.law, self.size, self.grid)
        if self.correlated:
            values[:, places] = perturb_with_shape(records.values[:, places], law, rng)
        else:
            for place in places:
                values[:, place] = perturb_additively(records.values[:, place], law, rng)
        return finish(records, values, self, rng)


def perturb_additively(x: NDArray[np.float64], law: Law, rng: np.random.Generator) -> NDArray[np.float64]:
    """Give Y = X + e for one attribute, independently of all others [OZ03, sec. 3.1].

    X is brought to the grid of the law first, so that Y says nothing by its last digits [Mironov 2012].
    """
    return add_noise(x, law, rng)


def perturb_with_shape(x: NDArray[np.float64], law: Law, rng: np.random.Generator) -> NDArray[np.float64]:
    """Give Y = X + L e, where L L' is the correlation matrix of X: noise of the data's own shape.

    L is the symmetric root, which a matrix without full rank has as well. The sum is brought to the law's grid.
    """
    import numpy as np

    if len(x) < 2 or not x.shape[1]:
        return np.column_stack([add_noise(column, law, rng) for column in x.T]) if x.size else x.copy()
    centred = x - x.mean(axis=0)
    deviation = np.sqrt(np.mean(centred**2, axis=0))
    centred = np.divide(centred, deviation, out=np.zeros_like(centred), where=deviation > 0)
    correlation = centred.T @ centred / len(x)
    np.fill_diagonal(correlation, 1.0)  # a constant column gets noise of its own
    eigenvalues, eigenvectors = np.linalg.eigh(correlation)
    root = eigenvectors * np.sqrt(np.maximum(eigenvalues, 0.0)) @ eigenvectors.T
    return np.asarray(snap(x + law.values(x.shape, rng) @ root, law.step) * law.step)
