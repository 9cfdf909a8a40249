"""Which solution errs less: the iteration or the smooth one, by how likely each makes records that it has not seen."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.mine.reconstruct.channel import Channel, Ridge
from sfumato.mine.reconstruct.iterate import iterate, make_stop

__all__ = ["predicts_better"]

_PARTS = 3
_EVEN = 1e-3  # share of the uniform distribution in a prediction, so that none is impossible
_LEAD = 2.0  # in log-likelihood, that the smooth solution must have: it can be far off where records are few

_Vector = NDArray[np.float64]


def predicts_better(
    counts: _Vector, channel: Channel, ridge: Ridge, *, stop: str, limit: int, ordered: bool = True
) -> bool:
    """Whether the direct solution predicts a third of the records from the others better than the iteration does.

    The records are dealt into three parts by chance, the same whenever the counts are; each part is predicted from the
    other two. The direct solution must be ahead by 2 in log-likelihood, all parts together; of labels, which have no
    neighbours to be drawn to, it must only be ahead.
    """
    rng = np.random.default_rng(20070501)  # nothing private: it decides which counts are predicted from which
    left = counts.astype(np.int64)
    dealt = []
    for still in range(_PARTS, 0, -1):
        part = rng.binomial(left, 1.0 / still)
        dealt.append(part.astype(np.float64))
        left = left - part
    if min(part.sum() for part in dealt) < 1.0 or min((counts - part).sum() for part in dealt) < 1.0:
        return False
    others = counts - np.array(dealt)
    iterated = iterate(others, channel, make_stop(stop, channel), limit=limit).probability
    direct = np.stack([ridge.solve(each) for each in others])
    return _height(direct, channel, dealt) > _height(iterated, channel, dealt) + (_LEAD if ordered else 0.0)


def _height(probability: NDArray[np.float64], channel: Channel, dealt: list[_Vector]) -> float:
    even = (1.0 - _EVEN) * probability + _EVEN / channel.inputs
    seen = np.array(dealt)
    logs = np.log(even @ channel.chances, out=np.zeros_like(seen), where=seen > 0.0)
    return float((seen * logs).sum())
