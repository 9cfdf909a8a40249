"""From released values and the declared law to the distribution behind them [JS07, ch. 4]."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.core.errors import OptionError, SchemaError
from sfumato.core.laws.domains import Labels
from sfumato.core.laws.operators import Additive, Membership
from sfumato.core.laws.spec import NoiseSpec
from sfumato.core.randomness import Randomness
from sfumato.core.threads import one_thread
from sfumato.mine.reconstruct.bands import (
    LEAST,
    RESAMPLES,
    bootstrap_bands,
    effective_records,
    refuse_too_few,
    resolved_directions,
)
from sfumato.mine.reconstruct.cells import Cells, cut_domain, cut_outputs, refine
from sfumato.mine.reconstruct.chances import at_midpoints, summed
from sfumato.mine.reconstruct.channel import Channel, Ridge
from sfumato.mine.reconstruct.counts import METHODS
from sfumato.mine.reconstruct.iterate import LIMIT, STOPS, After, iterate, make_stop
from sfumato.mine.reconstruct.model import Reconstruction

__all__ = ["reconstruct"]

_Vector = NDArray[np.float64]

_FARTHER = 3  # times as far as the estimate is each sample of the bands carried on
_LESS_PENALTY = 10.0


@one_thread()
def reconstruct(
    released: ArrayLike,
    spec: NoiseSpec,
    *,
    intervals: int | Sequence[float] | None = None,
    stop: str | None = None,
    method: str = "em",
    bands: float = 0.95,
    resamples: int = RESAMPLES,
    least: float = LEAST,
    limit: int = LIMIT,
    rng: np.random.Generator | None = None,
) -> Reconstruction:
    """Estimate the distribution of the true values from randomized ones.

    Parameters
    ----------
    released : array
        What was sent, without missing cells.
    spec : NoiseSpec
        The domain and the law that clients used.
    intervals : int, sequence of float or None
        Number of equal intervals, or their edges. None: labels and up to 1,024 integers one by one, else 50.
    stop : str
        ``likelihood`` (the default) or ``chi-square`` [JS07]; ``direct`` has none.
    method : str
        ``em`` (the default): noise summed over small parts of the intervals, which are added up; ``bayes``: noise at
        the midpoints of intervals [JS07]. The two differ only for intervals of several places. ``direct``: a
        regularised solution, to compare with.
    bands : float
        Level of the bands of each value or interval.
    resamples : int
        Bootstrap samples that the bands are made from.
    least : float
        It is refused where the coarsest feature would be known worse than from so many plain records.
    limit : int
        Iterations after which it ends in any case.
    rng : Generator, optional
        For the bands; by default from the operating system.

    Raises
    ------
    SchemaError
        For values that the law cannot have sent, with their count.
    TooFew
        For too few records for the noise, with the number needed.

    Notes
    -----
    Cost O(m^2) an iteration and sample, O(m^3) once; memory O(m^2), whatever the number of records.

    Examples
    --------
    >>> from sfumato.core.laws.domains import Labels
    >>> spec = NoiseSpec(Labels(("no", "yes")), {"name": "keep-or-replace", "keep": 0.75})
    >>> found = reconstruct(["no"] * 400 + ["yes"] * 600, spec)
    >>> found.probability.round(2)
    array([0.3, 0.7])
    """
    _check(stop, method, bands, resamples, least, limit)
    codes = spec.encode_output(released).ravel()
    cells = cut_domain(spec.domain, spec.operator, intervals)
    channel, notes = _channel(spec, cells, cut_outputs(cells, spec.operator, codes), method)
    refuse_too_few(channel, len(codes), least)
    parts, begins = refine(cells, spec.operator) if method == "em" else (cells, np.arange(len(cells)))
    outputs = cut_outputs(parts, spec.operator, codes)
    fine = channel if parts is cells else Channel(summed(spec.operator, parts.cuts, outputs))
    counts = _count(codes, outputs, fine, tails=isinstance(spec.operator, Additive))
    ordered = not isinstance(spec.domain, Labels)
    solved = _solve(counts, fine, stop or STOPS[0], method, ordered=ordered, limit=limit)

    def add_up(rows: _Vector) -> _Vector:
        return np.asarray(np.add.reduceat(rows, begins, axis=-1))

    def again(rows: _Vector) -> tuple[_Vector, _Vector]:
        same, less = solved.again(rows)
        return add_up(same), add_up(less)

    probability = add_up(solved.probability)
    rng = Randomness().generator("bands") if rng is None else rng
    mixed = solved.probability @ fine.chances
    lower, upper = bootstrap_bands(counts, probability, mixed, again, level=bands, resamples=resamples, rng=rng)
    resolved = resolved_directions(channel, len(codes))
    return Reconstruction(
        probability=probability,
        lower=lower,
        upper=upper,
        level=bands,
        iterations=solved.iterations,
        stopped_by=solved.ended,
        records=len(codes),
        effective_records=effective_records(channel, probability, len(codes)),
        resolved=resolved,
        method=method,
        notes=(*notes, *_notes(channel, solved.ended, resolved, limit)),
        cells=cells,
    )


def _check(stop: str | None, method: str, bands: float, resamples: int, least: float, limit: int) -> None:
    if method not in METHODS:
        raise OptionError(f"there is no method {method!r}; choose one of {', '.join(METHODS)}")
    if stop is not None and stop not in STOPS:
        raise OptionError(f"there is no stop {stop!r}; choose one of {', '.join(STOPS)}")
    if stop is not None and method == "direct":
        raise OptionError("the direct method does not iterate, so it has no stop; leave the stop out")
    if isinstance(bands, bool) or not 0 < bands < 1:
        raise OptionError("the level of bands must lie between 0 and 1")
    if isinstance(resamples, bool) or not isinstance(resamples, int) or resamples < 1:
        raise OptionError("the number of resamples must be a whole number above 0")
    if isinstance(least, bool) or not 0 <= least < float("inf"):
        raise OptionError("the least number of plain records must be 0 or more")
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise OptionError("the limit of iterations must be a whole number above 0")


def _channel(
    spec: NoiseSpec, cells: Cells, outputs: NDArray[np.int64] | None, method: str
) -> tuple[Channel, tuple[str, ...]]:
    operator = spec.operator
    notes: tuple[str, ...] = ()
    exact = summed(operator, cells.cuts, outputs)
    wide = int(np.diff(cells.cuts).max()) > 1
    if method == "bayes" and wide and isinstance(operator, Additive):
        assert outputs is not None
        return Channel(at_midpoints(operator, cells.cuts, outputs, exact), exact), notes
    if method == "bayes" and wide and not isinstance(operator, Membership):
        notes = ("the law is not additive, so its chances are summed over intervals instead of taken at midpoints",)
    return Channel(exact), notes


def _count(codes: NDArray[np.int64], outputs: NDArray[np.int64] | None, channel: Channel, *, tails: bool) -> _Vector:
    """N(I_s)."""
    places = codes if outputs is None else np.searchsorted(outputs, codes, side="right") - (0 if tails else 1)
    counts = np.bincount(places, minlength=channel.outputs).astype(np.float64)
    lost = int(counts[~(channel.matrix > 0).any(axis=0)].sum())
    if lost:
        raise SchemaError(f"{lost} values lie so far out that the law never sends them; check that they belong to it")
    return counts


@dataclass(frozen=True)
class _Solved:
    """The estimate, and how other counts are solved with the same smoothing and with less."""

    probability: _Vector
    iterations: int
    ended: str
    again: Callable[[_Vector], tuple[_Vector, _Vector]]


def _solve(counts: _Vector, channel: Channel, stop: str, method: str, *, ordered: bool, limit: int) -> _Solved:
    if channel.inputs == 1:
        return _Solved(np.ones(1), 0, "start", lambda rows: (np.ones((len(rows), 1)),) * 2)
    if method == "direct":
        ridge = Ridge.fit(counts, channel, ordered=ordered)
        return _Solved(
            ridge.solve(counts), 0, "penalty", lambda rows: (ridge.solve(rows), ridge.solve(rows, less=_LESS_PENALTY))
        )
    path = iterate(counts[None, :], channel, make_stop(stop, channel), limit=limit)
    steps = int(path.iterations[0])

    def again(rows: _Vector) -> tuple[_Vector, _Vector]:
        same = iterate(rows, channel, After(channel, steps), limit=steps).probability
        more = (_FARTHER - 1) * steps
        return same, iterate(rows, channel, After(channel, more, begun=steps), limit=more, start=same).probability

    return _Solved(path.probability[0], steps, stop if path.stopped[0] else "limit", again)


def _notes(channel: Channel, ended: str, resolved: int, limit: int) -> tuple[str, ...]:
    found = []
    if ended == "limit":
        found.append(f"the iteration was ended after {limit} steps, before its stop")
    blind = int((channel.shares <= 1e-12).sum())
    if blind:
        found.append(
            f"the law tells nothing at all about {blind} of {channel.inputs - 1} directions; there the estimate is the "
            "even start, and the bands do not show it"
        )
    if resolved < channel.inputs - 1:
        found.append(
            f"the records settle about {resolved} of {channel.inputs - 1} directions; finer detail comes from the "
            "smooth start, not from the data"
        )
    return tuple(found)
