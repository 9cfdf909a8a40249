"""Numbers of each released record that average to what is asked of the truth, whatever its distribution is.

For a function f of the true value, g(released) is such that the mean of g given the truth is f. Then means of g are
unbiased for means of f, and as randomized columns are independent given the truth, a product of two is unbiased for the
product.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import OptionError
from sfumato.core.laws.domains import Labels
from sfumato.core.laws.operators import Additive
from sfumato.core.laws.spec import NoiseSpec
from sfumato.mine.reconstruct.cells import Cells, cut_outputs
from sfumato.mine.reconstruct.chances import summed

__all__ = ["Moments", "moments_of"]

_CELLS = 400  # that a domain is cut into
_EXACT = 1e-4  # of the range: how far the mean of g may be from f

_Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Moments:
    """For each record a number whose mean given the truth is the true value, and one for its square."""

    first: _Vector
    second: _Vector


def moments_of(codes: NDArray[np.int64], spec: NoiseSpec) -> Moments | None:
    """Unbiased numbers for the value and its square; None where the law does not tell them.

    Labels count as 0 and 1, where there are two. Additive noise has mean 0 and a known variance. For other laws g has
    the least variance of all that are unbiased: it solves A g = f by least squares, weighted by the counts.

    Parameters
    ----------
    codes : ndarray of int
        Output of each record.
    spec : NoiseSpec
    """
    operator, domain = spec.operator, spec.domain
    if isinstance(domain, Labels) and domain.size != 2:
        raise OptionError(f"a label with {domain.size} values is no number; take a column of numbers or of two labels")
    if isinstance(operator, Additive):
        assert not isinstance(domain, Labels)
        values = np.asarray(domain.low + codes * float(domain.step), dtype=np.float64)
        return Moments(values, np.asarray(values**2 - operator.law.variance * float(domain.step) ** 2))
    count = min(domain.size, _CELLS)
    cuts = np.array([domain.size * each // count for each in range(count + 1)], dtype=np.int64)
    cells = Cells(domain, cuts, False)
    outputs = cut_outputs(cells, operator, codes)
    chances = summed(operator, cuts, outputs)
    places = codes if outputs is None else np.searchsorted(outputs, codes, side="right") - 1
    centres = np.arange(2.0) if isinstance(domain, Labels) else cells.centres
    found = [_unbiased(chances, places, each) for each in (centres, centres**2)]
    if found[0] is None or found[1] is None:
        return None
    return Moments(*(np.asarray(each[places]) for each in (found[0], found[1])))


def _unbiased(chances: NDArray[np.float64], places: NDArray[np.int64], wanted: _Vector) -> _Vector | None:
    outputs = chances.shape[1]
    weight = len(places) / (np.bincount(places, minlength=outputs) + 1.0)
    solution = np.linalg.lstsq((chances * weight) @ chances.T, wanted, rcond=1e-12)[0]
    found = weight * (solution @ chances)
    off = float(np.abs(chances @ found - wanted).max())
    return None if off > _EXACT * float(np.ptp(wanted)) else np.asarray(found)
