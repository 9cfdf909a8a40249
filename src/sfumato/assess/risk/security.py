"""Sec: how much of a column's variance the difference to the released column has [OZ03]."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.findings import Direction, Family, Finding
from sfumato.assess.frame import Measure, Need
from sfumato.assess.intervals import holding
from sfumato.assess.risk.estimates import number_columns
from sfumato.assess.study import Study, sample

__all__ = ["SECURITY", "security"]

_REDRAWS = 200
_ROWS = 20_000  # rows that are looked at

_Values = NDArray[np.float64]

_WARNING = (
    "it is 0 for a plain shift and hides that two known values undo a shift or a change of scale, so it says nothing "
    "without an attack by someone who knows a few rows"
)
_MEANING = (
    "The variance of the difference between original and released numbers, as a part of the variance of the original "
    f"ones, averaged over columns; more is better, but {_WARNING}"
)
_COLUMN = (
    "The variance of the difference between original and released {column}, as a part of the variance of the original; "
    f"more is better, but {_WARNING}"
)


def security(original: _Values, released: _Values) -> float:
    """Measure Sec = Var(X - Y) / Var(X) of a column whose rows correspond [OZ03]; the paper prints it in percent.

    0 for a translation by definition (errata OZ03.4).

    Examples
    --------
    >>> ages = np.array([20.0, 30.0, 40.0])
    >>> security(ages, ages + 5.0), security(ages, 0.5 * ages)
    (0.0, 0.25)
    """
    return float(np.var(original - released) / np.var(original))


def _run(study: Study) -> Iterable[Finding]:
    assert study.workings is not None
    assert study.workings.origin is not None
    rng, origin = study.generator("security"), study.workings.origin
    known = np.flatnonzero((origin >= 0) & (origin < len(study.original)))
    rows = known[sample(len(known), _ROWS, rng)]
    note = f"; counted on {len(rows)} rows drawn at random" if len(rows) < len(study.released) else ""
    single, columns = [], []
    for pair in number_columns(study):
        here = rows[~pair.released.absent[rows] & ~pair.original.absent[origin[rows]]]
        x, y = pair.original.values[origin[here]], pair.released.values[here]
        if len(here) < 2 or not np.var(x) > 0:
            continue
        draws, apart = _draws(x, y, rng), 1.0 + float(np.var(y) / np.var(x))
        columns.append((draws, apart, len(here)))
        single.append(_finding(f"security/{pair.name}", _COLUMN.format(column=pair.name) + note, *columns[-1]))
    if not columns:
        return SECURITY.not_run("no column is a number that differs between people and is released")
    mean = np.mean([draws for draws, _, _ in columns], axis=0)
    apart = float(np.mean([each for _, each, _ in columns]))
    return (_finding("security", _MEANING + note, mean, apart, len(rows)), *single)


def _draws(x: _Values, y: _Values, rng: np.random.Generator) -> _Values:
    """Measure Sec and, behind it, that of redraws of the rows, from sums that each redraw weighs anew."""
    n, apart, own = len(x), x - y, x - x.mean()
    apart = apart - apart.mean()
    terms = np.column_stack([apart, apart * apart, own, own * own])
    sums = np.empty((_REDRAWS, 4))
    for place in range(_REDRAWS):
        sums[place] = np.bincount(rng.integers(0, n, size=n), minlength=n) @ terms / n
    upper, lower = sums[:, 1] - sums[:, 0] ** 2, sums[:, 3] - sums[:, 2] ** 2
    value = security(x, y)
    redraws = np.divide(upper, lower, out=np.full(_REDRAWS, value), where=lower > 0)
    return np.append(value, np.maximum(redraws, 0.0))


def _finding(name: str, meaning: str, draws: _Values, baseline: float, rows: int) -> Finding:
    return Finding(
        name,
        Family.PRIVACY,
        float(draws[0]),
        Direction.HIGHER,
        (0.0, None),
        meaning + ".",
        interval=holding(float(draws[0]), draws[1:]),
        baseline=baseline,
        attempts=rows,
        unit="share",
    )


SECURITY = Measure(
    name="security",
    family=Family.PRIVACY,
    source="Oliveira & Zaiane 2003",
    findings={"security": _MEANING + "."},
    run=_run,
    higher=frozenset({"security"}),
    needs=(Need.ORIGIN,),
)
