"""Digits alone: the factor of a column is read off the released numbers, without one known row.

Numbers that were counted in a decimal step lie on a lattice. A factor stretches the lattice, and whoever sees its
spacing knows the factor, since steps are powers of ten.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import lcm

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.attacks.known_input import CLOSE, NOTHING, not_moved
from sfumato.assess.columns import ColumnPair
from sfumato.assess.findings import Direction, Family, Finding
from sfumato.assess.frame import Measure, Need
from sfumato.assess.intervals import wilson
from sfumato.assess.study import Study, sample
from sfumato.facts import Fact, Transformed
from sfumato.tables.grid import decimals_of_numbers

__all__ = ["DIGITS", "find_factor", "find_spacing"]

_MOST_STEPS = 1_000_000  # of the original's step in a released number, beyond which no lattice is looked for
_ROUNDING = 1e-12  # relative, of a released number that was written in full
_CHANCE = 1e-3  # that a lattice is seen where there is none
_PROBES = 12  # smallest numbers, by which most spacings are refused
_FARTHEST = 20_000  # last digits from 0 within which the smallest rounded numbers must lie
_MANY = 100_000  # spacings that may be left: where there are more nothing stands out
_APART = 0.02  # last digits by which multiples of neighbouring spacings differ at the numbers looked at
_SIMPLE = 12  # largest denominator of a simple ratio
_SPREAD = 499  # places by which it is told how many a spacing leaves free
_WIDEST = 32.0  # last digits that a spacing is looked for up to

_Values = NDArray[np.float64]

_MEANING = (
    "The share of numbers that someone recovers to a tenth of a standard deviation who knows no row, only that the "
    "original counts in steps that are a power of ten: the spacing of the released numbers then tells each factor, "
    "beside what guessing the mean recovers (baseline)"
)


def find_factor(released: _Values) -> float | None:
    """Find by which factor numbers in steps of a power of ten were multiplied; None where no spacing stands out.

    Of all powers of ten the one is taken that leaves the factor nearest to 1.

    Examples
    --------
    >>> heights = np.array([1.62, 1.75, 1.81, 1.58, 1.93, 1.7])
    >>> round(find_factor(1.3718 * heights), 9)
    1.3718
    """
    spacing = find_spacing(released)
    return None if spacing is None else float(spacing / 10.0 ** np.rint(np.log10(spacing)))


def find_spacing(released: _Values) -> float | None:
    """Find the largest number of which all released numbers are multiples, up to how they were rounded."""
    values = np.unique(np.abs(released[released != 0]))
    if len(values) < 3:
        return None
    decimals = decimals_of_numbers(values)
    if decimals is None:
        return _common_measure(values)
    common = int(np.gcd.reduce(np.rint(values * 10.0**decimals).astype(np.int64)))
    whole = str(common).rstrip("0") in ("1", "2", "5")  # the step of a rounded number, not of a stretched one
    return _comb(values, common * 10.0**-decimals) if whole else float(common * 10.0**-decimals)


def _common_measure(values: _Values) -> float | None:
    """Find the common measure of numbers that were written in full, from their ratios to the smallest."""
    whole = 1
    for value in values[sample(len(values), 10 * _PROBES, np.random.default_rng(0))]:
        ratio = Fraction(float(value / values[0])).limit_denominator(_MOST_STEPS)
        if abs(float(ratio) * values[0] - value) > _ROUNDING * value:
            return None
        whole = lcm(whole, ratio.denominator)
        if whole > _MOST_STEPS:
            return None
    return float(values[0] / whole)


def _comb(values: _Values, last: float) -> float | None:
    """Find the largest spacing from which all numbers can have been rounded to their last digit.

    A spacing of g last digits has a multiple near about one place in g only, so that a wrong one passes by chance
    alone, and the largest is taken that does not. Small numbers tell roughly, larger ones finer.
    """
    places = np.rint(values / last)
    reach = float(places[min(_PROBES, len(places)) - 1])
    if reach > _FARTHEST:
        return None
    spacings = np.geomspace(_WIDEST, 1.0 + 2 * _APART, int(np.log(_WIDEST) * reach / _APART) + 2)
    spacings = _fitting(places[places <= reach], spacings)
    while reach < places[-1] and 0 < len(spacings) <= _MANY:
        reach *= 2.0
        finer = _APART / reach
        spacings = np.concatenate([spacings * (1.0 + shift) for shift in (-finer, 0.0, finer)])
        spacings = _fitting(places[(reach / 2.0 < places) & (places <= reach)], spacings)
    if not 0 < len(spacings) <= _MANY:
        return None
    tried = np.log(_WIDEST) * reach / _APART
    free = np.max([_share_fitting(some, spacings) for some in (_beside(places), _among(places))], axis=0)
    telling = [
        place
        for place in np.flatnonzero(tried * free ** len(places) <= _CHANCE)
        if not _fits_anything(float(spacings[place]), reach)
    ]
    if not telling:
        return None
    best = max(telling, key=lambda place: float(spacings[place]))
    alike = np.abs(spacings / spacings[best] - 1.0) <= 4 * _APART / reach  # neighbours that fit as well
    return float(spacings[alike].mean() * last)


def _fitting(places: _Values, spacings: _Values) -> _Values:
    for place in places:
        spacings = spacings[_misfit(place[None], spacings) <= 0.5 + _APART]
    return spacings


def _fits_anything(spacing: float, reach: float) -> bool:
    """Tell whether a spacing is so near to a simple ratio, like 3/2, that every whole number is near a multiple."""
    ratio = float(Fraction(spacing).limit_denominator(_SIMPLE))
    drift = abs(spacing / ratio - 1.0) * reach
    return drift < 1.0 and bool((_misfit(np.arange(1.0, 2 * _SIMPLE**2), np.array([ratio])) <= 0.5 + _APART).all())


def _share_fitting(places: _Values, spacings: _Values) -> _Values:
    return np.asarray(np.mean([_misfit(place[None], spacings) <= 0.5 + _APART for place in places], axis=0))


def _beside(places: _Values) -> _Values:
    """Take places next to the released ones: how many of them fit a spacing is how many fit by chance."""
    near = np.unique(np.concatenate([places + shift for shift in (-2.0, -1.0, 1.0, 2.0)]))
    return near[:: -(-len(near) // _SPREAD)]


def _among(places: _Values) -> _Values:
    """Take places spread evenly over where the released ones lie, for the same."""
    return np.unique(np.rint(np.linspace(places[0], places[-1], _SPREAD)))


def _misfit(places: _Values, spacings: _Values) -> _Values:
    """Tell how far, in last digits, the worst number is from a multiple of each spacing."""
    worst = np.zeros(len(spacings))
    for place in places:
        worst = np.maximum(worst, np.abs(place - spacings * np.rint(place / spacings)))
    return worst


def _applies(facts: Sequence[Fact]) -> str | None:
    if any(isinstance(fact, Transformed) and "mult" not in fact.operations for fact in facts):
        return "no column was multiplied, and digits tell neither a shift nor a turn"
    return not_moved(facts)


def _run(study: Study) -> Iterable[Finding]:
    fact, workings = study.fact(Transformed), study.workings
    assert fact is not None
    assert workings is not None
    assert workings.origin is not None
    pairs = [pair for pair in study.pairs if pair.name in fact.columns and pair.is_number]
    hits = guesses = tries = found = 0
    for pair in pairs:
        rows = _rows(study, pair, workings.origin)
        before, after = pair.original.values[workings.origin[rows]], pair.released.values[rows]
        spread = float(before.std()) if len(rows) else 0.0
        if not spread:
            continue
        factor = find_factor(after)
        mean = np.abs(before - before.mean()) <= CLOSE * spread
        right = mean if factor is None else np.abs(after / factor - before) <= CLOSE * spread
        hits, guesses, tries = hits + int(right.sum()), guesses + int(mean.sum()), tries + len(rows)
        found += factor is not None
    if not tries:
        return DIGITS.not_run(NOTHING)
    note = f"; a spacing stands out in {found} of {len(pairs)} columns."
    value = hits / tries
    return (
        Finding(
            "recovered-cells-digits",
            Family.ATTACK,
            value,
            Direction.LOWER,
            (0.0, 1.0),
            _MEANING + note,
            interval=wilson(value * tries / len(pairs), max(1, tries // len(pairs))),
            baseline=guesses / tries,
            attempts=tries // len(pairs),
            unit="share",
        ),
    )


def _rows(study: Study, pair: ColumnPair, origin: NDArray[np.int64]) -> NDArray[np.int64]:
    """Draw released rows that have a number in a column, before and after."""
    known = np.flatnonzero((origin >= 0) & (origin < len(study.original)))
    known = known[~pair.released.absent[known] & ~pair.original.absent[origin[known]]]
    return known[sample(len(known), study.sizes.attempts, study.generator(DIGITS.name))]


DIGITS = Measure(
    name="digits",
    family=Family.ATTACK,
    source="Oliveira & Zaiane 2003 undone by the steps of the original",
    findings={"recovered-cells-digits": _MEANING + "."},
    run=_run,
    needs=(Need.ORIGIN,),
    applies=_applies,
)
