"""The iterative Bayes rule on cells [JS07, ch. 4], for many count vectors at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.progress import tell
from sfumato.randomize.reconstruct.channel import Channel
from sfumato.randomize.reconstruct.stopping import Step, Stop

__all__ = ["LIMIT", "Path", "bayes_step", "iterate", "log_likelihood"]

LIMIT = 5000
"""Iterations after which it ends in any case."""

_Matrix = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Path:
    """Where the iteration ended, a row for each count vector."""

    probability: _Matrix
    iterations: NDArray[np.int64]
    stopped: NDArray[np.bool_]
    """Whether the stop ended it; else the limit did."""


def bayes_step(counts: _Matrix, channel: Channel, pr: _Matrix, mixed: _Matrix) -> _Matrix:
    """Apply Bayes' rule once, to every row.

    Implements [JS07, ch. 4], with a(p, s) = f_Y(m(I_s) - m(I_p)) or, for EM, the chance of I_s given I_p::

        Pr'(X in I_p) = 1/n sum_s N(I_s) a(p, s) Pr(X in I_p) / sum_t a(t, s) Pr(X in I_t)

    Parameters
    ----------
    counts : ndarray of shape (rows, k)
        N(I_s).
    channel : Channel
        Its matrix is a, of shape (m, k).
    pr : ndarray of shape (rows, m)
        Pr(X in I_p).
    mixed : ndarray of shape (rows, k)
        The denominators, pr times the matrix.

    Notes
    -----
    Cost O(m k) a row; memory that of the matrix. An empty cell says nothing, whatever its denominator.
    """
    n = counts.sum(axis=1, keepdims=True)
    weights = np.divide(counts, mixed, out=np.zeros_like(mixed), where=counts > 0.0)
    estimate: _Matrix = pr * channel.unmix(weights) / n
    return np.asarray(estimate / estimate.sum(axis=1, keepdims=True))  # the sum is 1 but for rounding


def log_likelihood(counts: _Matrix, mixed: _Matrix) -> NDArray[np.float64]:
    """Give sum_s N(I_s) ln q_s of each row; columns may be scaled, which adds a constant."""
    logs = np.log(mixed, out=np.zeros_like(mixed), where=counts > 0.0)
    return np.asarray((counts * logs).sum(axis=1))


def iterate(counts: _Matrix, channel: Channel, stop: Stop, *, limit: int = LIMIT, start: _Matrix | None = None) -> Path:
    """Begin uniform and apply Bayes' rule until the stop says that it is enough, row by row.

    Parameters
    ----------
    counts : ndarray of shape (rows, outputs)
        Each row has at least one record, none of them in a column that the matrix does not reach.
    channel : Channel
    stop : Stop
    limit : int
    start : ndarray of shape (rows, inputs), optional
        In place of the uniform distribution.
    """
    rows = len(counts)
    pr = np.full((rows, channel.inputs), 1.0 / channel.inputs) if start is None else start.copy()
    path = Path(pr.copy(), np.zeros(rows, dtype=np.int64), np.zeros(rows, dtype=np.bool_))
    left = np.arange(rows)
    mixed = channel.mix(pr)
    height = log_likelihood(counts, mixed)
    for done in range(limit):
        if not len(left):
            break
        after = bayes_step(counts, channel, pr, mixed)
        mixed = channel.mix(after)
        higher = log_likelihood(counts, mixed)
        ended = stop.ends(Step(done, counts.sum(axis=1), pr, after, higher - height))
        path.probability[left], path.iterations[left], path.stopped[left] = after, done + 1, ended
        stay = ~ended
        pr, height = after, higher
        if ended.any():
            left, counts, pr, mixed, height = left[stay], counts[stay], pr[stay], mixed[stay], height[stay]
        if done % 64 == 63:
            tell("reconstruct", 1.0 - len(left) / rows)
    return path
