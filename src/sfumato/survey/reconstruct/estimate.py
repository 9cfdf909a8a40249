"""From released values and the declared law to the distribution behind them [JS07, ch. 4].

Of the iteration and the smooth solution the one is taken that makes records likelier which it has not seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from sfumato.core.arrays import Floats, Ints
from sfumato.core.distributions.domains import Labels
from sfumato.core.distributions.operators import Additive, Membership
from sfumato.core.distributions.spec import NoiseSpec
from sfumato.core.errors import DoesNotFit, OptionError, SchemaError
from sfumato.core.threads import one_thread
from sfumato.survey.reconstruct.answers import Reconstruction, mean_and_quantiles, moments_of
from sfumato.survey.reconstruct.bands import (
    LEAST,
    Bands,
    Plain,
    cell_bands,
    check_precision,
    effective_records,
    refuse_too_few,
    refuse_worthless,
    resolved_directions,
)
from sfumato.survey.reconstruct.channel import (
    Channel,
    DomainCells,
    Ridge,
    at_midpoints,
    coarsening,
    cut_domain,
    cut_outputs,
    output_cells,
    refine,
    summed,
)
from sfumato.survey.reconstruct.iterate import LIMIT, METHODS, STOPS, Folds, bayes_step, iterate, make_stop

__all__ = ["DOUBTFUL", "HELD_OUT", "ReleasedCounts", "doubt", "reconstruct", "solve"]

HELD_OUT = "held-out"
"""Stop that goes on from the likelihood stop while records held out become likelier."""

DOUBTFUL = 0.01
"""P-value of the fit below which the law is called into doubt."""


@one_thread()
def reconstruct(
    released: ArrayLike,
    spec: NoiseSpec,
    *,
    intervals: int | Sequence[float] | None = None,
    stop: str | None = None,
    method: str = "auto",
    bands: float = 0.95,
    least: float = LEAST,
    limit: int = LIMIT,
    strict: bool = False,
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
        ``held-out`` (the default): where ``likelihood`` stops, or later if that makes records likelier which the
        estimate has not seen; ``likelihood``; or ``chi-square`` [JS07]. ``direct`` has none.
    method : str
        ``em``: noise summed over small parts of the intervals, which are added up; ``bayes``: noise at the midpoints of
        intervals [JS07]. The two differ only for intervals of several places. ``direct``: a smooth solution at once.
        ``auto`` (the default): ``em`` or ``direct``, whichever predicts a fifth of the records from the others better;
        ``em`` where a stop is named.
    bands : float
        Level of the bands of each value or interval. They do not depend on the method.
    least : float
        Refuse if the coarsest feature would be estimated less precisely than from this number of unperturbed records.
    limit : int
        Iterations after which it ends in any case.
    strict : bool
        Refuse values that do not fit the law, instead of a note that says so.

    Raises
    ------
    SchemaError
        For values that the law cannot have sent, with their count.
    TooFew
        For too few records for the noise, with the number needed.
    DoesNotFit
        If strict, where the p-value of the fit is below 0.01.

    Notes
    -----
    Cost O(m^2) an iteration and O(m^3) once; memory O(m^2), whatever the number of records. Nothing is drawn: the same
    records give the same answer.

    Examples
    --------
    >>> from sfumato.core.distributions.domains import Labels
    >>> spec = NoiseSpec(Labels(("no", "yes")), {"name": "keep-or-replace", "keep": 0.75})
    >>> found = reconstruct(["no"] * 400 + ["yes"] * 600, spec)
    >>> found.probability.round(2)
    array([0.3, 0.7])
    """
    check_precision(bands, least)
    _check_method(stop, method, limit)
    codes = spec.encode_output(released).ravel()
    cells = cut_domain(spec.domain, spec.operator, intervals)
    channel, notes = _channel(spec, cells, cut_outputs(cells, spec.operator, codes), method)
    refuse_too_few(channel, len(codes), least)
    seen = _count_released(codes, spec, cells, channel, split=method in ("auto", "em"))
    solved = solve(seen, stop, method, ordered=not isinstance(spec.domain, Labels), limit=limit)
    probability = np.asarray(np.add.reduceat(solved.probability, seen.begins))
    worth = effective_records(channel, probability, len(codes))
    refuse_worthless(worth, len(codes), len(cells), least)
    fine = seen if method in ("auto", "em") else _count_released(codes, spec, cells, channel, split=True)
    known = cell_bands(fine.counts, Channel(fine.channel.chances), fine.begins, bands)
    if strict and known.fit < DOUBTFUL:
        raise DoesNotFit(doubt(known.fit))
    resolved = resolved_directions(channel, len(codes))
    found = Reconstruction(
        probability=probability,
        lower=np.minimum(known.lower, probability),
        upper=np.maximum(known.upper, probability),
        level=bands,
        fit=known.fit,
        iterations=solved.iterations,
        stopped_by=solved.ended,
        records=len(codes),
        effective_records=worth,
        resolved=resolved,
        method=solved.method,
        notes=(*notes, *_notes(channel, solved.ended, resolved, limit, known, coarsening(fine.parts, spec.operator))),
        cells=cells,
    )
    if isinstance(spec.domain, Labels):
        return found
    unbiased = isinstance(spec.operator, Additive) or isinstance(known.known, Plain)
    numbers = moments_of(codes, spec) if unbiased else None
    first, classes = None if numbers is None else numbers.first, isinstance(spec.operator, Membership)
    return replace(found, answers=mean_and_quantiles(known, fine.parts, found.quantile, first, classes=classes))


def _check_method(stop: str | None, method: str, limit: int) -> None:
    if method not in ("auto", *METHODS):
        raise OptionError(f"there is no method {method!r}; choose one of auto, {', '.join(METHODS)}")
    if stop is not None and stop not in (HELD_OUT, *STOPS):
        raise OptionError(f"there is no stop {stop!r}; choose one of {', '.join((HELD_OUT, *STOPS))}")
    if stop is not None and method == "direct":
        raise OptionError("the direct method does not iterate, so it has no stop; leave the stop out")
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise OptionError("the limit of iterations must be a whole number above 0")


def _channel(spec: NoiseSpec, cells: DomainCells, outputs: Ints | None, method: str) -> tuple[Channel, tuple[str, ...]]:
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


def _count(places: Ints, channel: Channel) -> Floats:
    """N(I_s)."""
    counts = np.bincount(places, minlength=channel.outputs).astype(np.float64)
    lost = int(counts[~(channel.matrix > 0).any(axis=0)].sum())
    if lost:
        raise SchemaError(f"{lost} values lie so far out that the law never sends them; check that they belong to it")
    return counts


@dataclass(frozen=True, eq=False, repr=False)
class ReleasedCounts:
    """Released values as counts, and the chances that lead to them.

    Parameters
    ----------
    counts : ndarray of shape (outputs,)
    channel : Channel
        From the parts to the outputs.
    parts : Cells
        The cells, or small parts of them.
    begins : ndarray of int
        First part of each cell.
    """

    counts: Floats
    channel: Channel
    parts: DomainCells
    begins: Ints


def _count_released(
    codes: Ints, spec: NoiseSpec, cells: DomainCells, channel: Channel, *, split: bool
) -> ReleasedCounts:
    """Count released values, with the cells split into small parts where asked for."""
    parts, begins = refine(cells, spec.operator) if split else (cells, np.arange(len(cells)))
    outputs = cut_outputs(parts, spec.operator, codes)
    fine = channel if parts is cells else Channel(summed(spec.operator, parts.cuts, outputs))
    return ReleasedCounts(_count(output_cells(codes, outputs, spec.operator), fine), fine, parts, begins)


@dataclass(frozen=True, eq=False, repr=False)
class SolvedEstimate:
    """The estimate of each part, and how it was reached."""

    probability: Floats
    iterations: int
    ended: str
    method: str


def solve(seen: ReleasedCounts, stop: str | None, method: str, *, ordered: bool, limit: int) -> SolvedEstimate:
    """Estimate the probability of each part."""
    counts, channel = seen.counts, seen.channel
    named = "em" if method == "auto" else method
    if channel.inputs == 1:
        return SolvedEstimate(np.ones(1), 0, "start", named)
    if method == "direct":
        return SolvedEstimate(Ridge.of(channel, ordered=ordered).solve(counts), 0, "penalty", "direct")
    first = STOPS[0] if stop in (None, HELD_OUT) else str(stop)
    path = iterate(counts[None, :], channel, make_stop(first, channel), limit=limit)
    done, probability = int(path.iterations[0]), path.probability
    ended = first if path.stopped[0] else "limit"
    folds = Folds.of(counts, channel) if stop in (None, HELD_OUT) else None
    if folds is not None:
        last, predicted = folds.iterate(done, limit)
        if method == "auto" and stop is None:
            ridge = Ridge.of(channel, ordered=ordered)
            if folds.prefer_direct(ridge, predicted, ordered=ordered):
                return SolvedEstimate(ridge.solve(counts), 0, "penalty", "direct")
        for _ in range(last - done):
            probability = bayes_step(counts[None, :], channel, probability, channel.mix(probability))
        done, ended = last, HELD_OUT if last > done else ended
    return SolvedEstimate(probability[0], done, ended, named)


def _notes(channel: Channel, ended: str, resolved: int, limit: int, known: Bands, coarse: float) -> tuple[str, ...]:
    found = []
    if known.fit < DOUBTFUL:
        found.append(doubt(known.fit))
    if ended == "limit":
        found.append(f"the iteration was ended after {limit} steps, before its stop")
    blind = int((channel.shares <= 1e-12).sum())
    if blind:
        found.append(
            f"the noise distribution gives no information on {blind} of {channel.inputs - 1} directions; there the "
            "estimate is the even start, and only the bands show what is known"
        )
    if resolved < channel.inputs - 1:
        found.append(
            f"the records settle about {resolved} of {channel.inputs - 1} directions; finer detail comes from the "
            f"smooth start, not from the data, and {max(resolved + 1, 2)} intervals would have narrower bands"
        )
    unknown = int(np.isnan(known.upper).sum())
    if unknown:
        found.append(f"no band could be found for {unknown} of {len(known.upper)} cells")
    if coarse > 0.0:
        found.append(f"places were taken together to estimate with, which moves no chance by more than {coarse:.1g}")
    return tuple(found)


def doubt(fit: float) -> str:
    """Say that values do not fit their law."""
    return (
        f"the values do not fit the law (p = {fit:.1g}): no distribution on this domain gives such values; check "
        "that the specification is the one they were made with"
    )
