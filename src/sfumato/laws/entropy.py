"""The privacy that is left once the distribution itself is known, as entropy [JS07, sec. 2.2.2.1; AA01].

AA01: D. Agrawal, C. C. Aggarwal: On the Design and Quantification of Privacy Preserving Data Mining Algorithms. PODS
2001.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sfumato.laws.channel import MOST_PAIRS, blocks, is_large, telling_outputs
from sfumato.laws.large import answer_entropy, entropy, has_form, noise_entropy, spread
from sfumato.laws.operators import Operator
from sfumato.laws.priors import MOST

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Uncertainty", "can_be_counted", "uncertainty"]


@dataclass(frozen=True)
class Uncertainty:
    """How uncertain a value is, in bits, before and after its answer.

    Parameters
    ----------
    before : float
        H(X), entropy of the prior.
    after : float
        H(X|Y), mean entropy of the posterior.
    """

    before: float
    after: float

    @property
    def told(self) -> float:
        """I(X;Y), the bits that an answer tells on average."""
        return max(0.0, self.before - self.after)

    @property
    def privacy(self) -> float:
        """2^H(X|Y): the value is as uncertain as one among so many equally likely ones."""
        return math.exp2(self.after)

    @property
    def loss(self) -> float:
        """P(X|Y) = 1 - 2^-I, the part of the uncertainty that an answer takes away."""
        return -math.expm1(-self.told * math.log(2.0))


def uncertainty(operator: Operator, prior: NDArray[np.float64]) -> Uncertainty:
    """Give the uncertainty about a value for whoever knows the prior, before and after its answer [AA01].

    With the reconstructed distribution as the prior this is the privacy that is left once it is known; with the uniform
    one it is the nominal privacy of the law.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.laws.operators import Membership
    >>> known = uncertainty(Membership(4, (0, 0, 1, 1)), np.full(4, 0.25))
    >>> known.before, known.after, known.privacy, known.loss
    (2.0, 1.0, 2.0, 0.5)
    """
    import numpy as np

    before = entropy(prior)
    if is_large(operator) and has_form(operator):  # H(X|Y) = H(X) + H(Y|X) - H(Y)
        answers = answer_entropy(operator, spread(operator, prior))
        return Uncertainty(before, max(0.0, before + noise_entropy(operator) - answers))
    after = 0.0
    for _, likely, chances in blocks(operator):
        joint = likely * prior  # in proportion to P[x, y]
        total = joint.sum(axis=1, keepdims=True)
        posterior = np.divide(joint, total, out=np.zeros_like(joint), where=total > 0)
        after += float((chances[:, 0] * total[:, 0] * _entropies(posterior)).sum())
    return Uncertainty(before, after)


def can_be_counted(operator: Operator) -> bool:
    """Tell whether a law has few enough values and outputs to look at them all."""
    return operator.size <= MOST and (
        has_form(operator) or len(telling_outputs(operator)) * operator.size <= MOST_PAIRS
    )


def _entropies(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    import numpy as np

    logs = np.log2(rows, out=np.zeros_like(rows), where=rows > 0)
    return np.asarray(-(rows * logs).sum(axis=1)) + 0.0
