"""How well estimates predict records that they have not seen, and how long to iterate by that [errata JS07.3]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.survey.reconstruct.channel import Channel, Ridge
from sfumato.survey.reconstruct.iterate import bayes_step

__all__ = ["Folds"]

_FOLDS = 5
_EVEN = 1e-3  # share of the uniform distribution in a prediction, so that none is impossible
_LEAD = 2.0  # in log-likelihood, that the smooth solution must have: it can be far off where records are few
_SIGNIFICANT = 1.5  # standard errors that further iterations must gain
_PATIENCE = 100  # iterations without a gain after which the search ends, or as many as were done before it


@dataclass(frozen=True, eq=False, repr=False)
class Folds:
    """Records dealt into five parts by chance, each of which is predicted from the other four.

    Parameters
    ----------
    parts, others : ndarray of shape (5, outputs)
        Counts of each part, and of the other four together.
    channel : Channel
    """

    parts: Floats
    others: Floats
    channel: Channel

    @classmethod
    def of(cls, counts: Floats, channel: Channel) -> Self | None:
        """Deal the records, the same way whenever the counts are the same; None if a part would be empty."""
        rng = np.random.default_rng(20070501)  # nothing private: it decides which counts are predicted from which
        left: Ints = counts.astype(np.int64)
        dealt = []
        for still in range(_FOLDS, 0, -1):
            part = rng.binomial(left, 1.0 / still)
            dealt.append(part.astype(np.float64))
            left = left - part
        parts = np.array(dealt)
        others = counts - parts
        if min(parts.sum(axis=1).min(), others.sum(axis=1).min()) < 1.0:
            return None
        return cls(parts, others, channel)

    def iterate(self, done: int, limit: int) -> tuple[int, Floats]:
        """How many iterations to make, ``done`` or more, and the estimates from the other parts after as many.

        More than ``done`` are worth it if the records held out become likelier by 1.5 standard errors of that gain.
        """
        channel = self.channel
        pr = np.full((_FOLDS, channel.inputs), 1.0 / channel.inputs)
        mixed = channel.mix(pr)
        for _ in range(done):
            pr = bayes_step(self.others, channel, pr, mixed)
            mixed = channel.mix(pr)
        first, base = pr, mixed
        best, highest, error, chosen = done, 0.0, 0.0, pr
        last = done
        while last < limit and last < best + max(done, _PATIENCE):
            pr = bayes_step(self.others, channel, pr, mixed)
            mixed = channel.mix(pr)
            last += 1
            gain, deviation = self._gain(base, mixed)
            if gain > highest:
                best, highest, error, chosen = last, gain, deviation, pr
        return (best, chosen) if highest > _SIGNIFICANT * error else (done, first)

    def prefer_direct(self, ridge: Ridge, iterated: Floats, *, ordered: bool) -> bool:
        """Whether the direct solution predicts the parts better than the iterated estimates do.

        It must be ahead by 2 in log-likelihood, all parts together; of labels, which have no neighbours to be drawn
        to, it must only be ahead.
        """
        direct = np.stack([ridge.solve(each) for each in self.others])
        return self._height(direct) > self._height(iterated) + (_LEAD if ordered else 0.0)

    def _gain(self, before: Floats, after: Floats) -> tuple[float, float]:
        """By how much the parts became likelier, and the standard error of that."""
        seen = self.parts > 0.0
        ratios = np.divide(after, before, out=np.ones_like(after), where=seen & (before > 0.0))
        logs = np.log(ratios, out=np.full_like(ratios, -np.inf), where=ratios > 0.0)
        logs[~seen] = 0.0
        gain, records = float((self.parts * logs).sum()), self.parts.sum()
        if not np.isfinite(gain):
            return -np.inf, 0.0
        return gain, float(np.sqrt(max((self.parts * logs**2).sum() - gain**2 / records, 0.0)))

    def _height(self, probability: Floats) -> float:
        even = (1.0 - _EVEN) * probability + _EVEN / self.channel.inputs
        logs = np.log(even @ self.channel.chances, out=np.zeros_like(self.parts), where=self.parts > 0.0)
        return float((self.parts * logs).sum())
