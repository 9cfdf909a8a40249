"""Reconstruction from counts and a bare matrix of chances, for one count vector or thousands."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.core.errors import BadInput, OptionError
from sfumato.mine.reconstruct.channel import Channel, Ridge
from sfumato.mine.reconstruct.iterate import LIMIT, iterate, make_stop

__all__ = ["METHODS", "Estimate", "check_counts", "reconstruct_counts"]

METHODS = ("em", "bayes", "direct")
"""The ways by name; from a bare matrix bayes and em are the same."""


@dataclass(frozen=True, eq=False)
class Estimate:
    """Probabilities of the cells of the truth, with how they were reached.

    Parameters
    ----------
    probability : ndarray of shape (inputs,) or (rows, inputs)
        Each row is non-negative and adds up to 1. A row without records is uniform: nothing is known.
    iterations : ndarray of shape () or (rows,)
        0 where there was nothing to iterate.
    stopped_by : tuple of str
        For each row ``likelihood``, ``chi-square``, ``limit``, ``penalty`` (direct) or ``start`` (nothing to do).
    """

    probability: NDArray[np.float64]
    iterations: NDArray[np.int64]
    stopped_by: tuple[str, ...]


def reconstruct_counts(
    counts: ArrayLike,
    matrix: ArrayLike | Channel,
    *,
    stop: str = "likelihood",
    method: str = "em",
    ordered: bool = True,
    limit: int = LIMIT,
) -> Estimate:
    """Estimate the distribution of the truth from counts of what was released.

    Parameters
    ----------
    counts : array of shape (outputs,) or (rows, outputs)
        Several rows are estimated together, each with its own stop; they share the matrix.
    matrix : array of shape (inputs, outputs) or Channel
        Row x holds the chances of the outputs given x. A `Channel` keeps what depends on the matrix alone: make one
        where the matrix is used again.
    stop : str
        ``likelihood`` or ``chi-square``.
    method : str
        ``em`` or ``bayes`` (the iteration; from a matrix they are the same), or ``direct`` (a regularised solution, as
        a comparison; the stop is not used).
    ordered : bool
        Whether neighbouring inputs are alike; for ``direct`` alone.
    limit : int
        Iterations after which it ends in any case.

    Raises
    ------
    BadInput
        For counts that are negative, of another length, or at outputs that the matrix never gives.

    Examples
    --------
    >>> reconstruct_counts([400, 600], [[0.75, 0.25], [0.25, 0.75]]).probability.round(2)
    array([0.3, 0.7])
    """
    channel = matrix if isinstance(matrix, Channel) else Channel.of(matrix)
    table = check_counts(counts, channel)
    rows = np.atleast_2d(table)
    if method not in METHODS:
        raise OptionError(f"there is no method {method!r}; choose one of {', '.join(METHODS)}")
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise OptionError("the limit of iterations must be a whole number above 0")
    probability = np.full((len(rows), channel.inputs), 1.0 / channel.inputs)
    iterations = np.zeros(len(rows), dtype=np.int64)
    ended = np.full(len(rows), "start", dtype=object)
    known = np.flatnonzero(rows.sum(axis=1) > 0) if channel.inputs > 1 else np.zeros(0, dtype=np.int64)
    if len(known) and method == "direct":
        ridge = Ridge.of(channel, ordered=ordered)
        probability[known] = np.stack([ridge.solve(each) for each in rows[known]])
        ended[known] = "penalty"
    elif len(known):
        path = iterate(rows[known], channel, make_stop(stop, channel), limit=limit)
        probability[known], iterations[known] = path.probability, path.iterations
        ended[known] = np.where(path.stopped, stop, "limit")
    if table.ndim == 1:
        return Estimate(probability[0], iterations[0], tuple(ended.tolist()))
    return Estimate(probability, iterations, tuple(ended.tolist()))


def check_counts(counts: ArrayLike, channel: Channel) -> NDArray[np.float64]:
    """Counts as doubles, if the matrix can have given them."""
    try:
        table = np.asarray(counts, dtype=np.float64)
    except (TypeError, ValueError):
        raise BadInput("counts must be numbers, one for each output; check them") from None
    if table.ndim not in (1, 2) or table.shape[-1] != channel.outputs:
        raise BadInput(f"counts need one number for each of the {channel.outputs} outputs of the matrix; check them")
    if not (np.isfinite(table) & (table >= 0)).all():
        raise BadInput("some counts are negative or no numbers; correct them")
    never = ~(channel.matrix > 0).any(axis=0)
    lost = float(table[..., never].sum())
    if lost:
        raise BadInput(f"{lost:g} records lie at outputs that the noise never gives; check that data and noise fit")
    return table
