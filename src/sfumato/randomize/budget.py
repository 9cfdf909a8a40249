"""Specifications for columns that were given none: the law that spends a wanted epsilon on the column's own domain."""

from __future__ import annotations

import math

from sfumato.errors import OptionError, PrivacyRefusal
from sfumato.laws.decimals import exact
from sfumato.laws.domains import Integers, Labels, Reals
from sfumato.laws.spec import NoiseSpec
from sfumato.randomize.columns import MISSING, Places

__all__ = ["spec_for_epsilon"]

_FINENESS = (
    1000  # places that a range without a step of its own has at least; a power of ten gives at most ten times it
)


def spec_for_epsilon(places: Places, epsilon: float, *, allow_observed: bool, pass_missing: bool) -> NoiseSpec:
    """Give the specification that spends epsilon on one column.

    Labels get the k-ary response that keeps the most information, numbers Laplace noise with a scale of range / epsilon
    on the column's own step. A missing cell of a column of labels is one more label.

    Raises
    ------
    PrivacyRefusal
        Where the domain would be read off the data.
    OptionError
        Where the column has no bounds at all.
    """
    extent, name = places.extent, places.block.column
    labels_gap = bool(extent.labels) and places.gap is not None and not pass_missing and MISSING not in extent.labels
    if not allow_observed and (labels_gap or not extent.declared):
        raise _refusal(places, labels_gap=labels_gap and extent.declared)
    if extent.labels:
        labels = (*extent.labels, MISSING) if labels_gap else extent.labels
        if len(labels) < 2:
            raise OptionError(f"column {name!r} has a single label, so there is nothing to hide; drop the column")
        return NoiseSpec(Labels(labels), {"name": "response", "epsilon": epsilon})
    if extent.low is None or extent.high is None:
        raise OptionError(
            f"column {name!r} is declared without a lower and an upper bound, so no noise hides every number of it; "
            "declare both in the schema, or give a specification (--spec)"
        )
    if not extent.low < extent.high:
        raise OptionError(f"column {name!r} has a single value, so there is nothing to hide; drop the column")
    domain = _numbers(extent.low, extent.high, extent.step)
    scale = float((exact(domain.high) - exact(domain.low)) / exact(epsilon))
    return NoiseSpec(domain, {"name": "laplace", "scale": scale})


def _refusal(places: Places, *, labels_gap: bool) -> PrivacyRefusal:
    name = places.block.column
    if labels_gap:
        return PrivacyRefusal(
            f"column {name!r} has missing cells: that there are some is read off the data; list the empty text among "
            "the labels of a specification (--spec), publish which are missing (--pass-missing), or allow it "
            "(--allow-observed)"
        )
    what = "categories" if places.extent.labels else "bounds"
    return PrivacyRefusal(
        f"the {what} of column {name!r} were read off the data, so no guarantee would hold for whoever stands out; "
        "declare them in the schema, give a specification (--spec), or allow it (--allow-observed)"
    )


def _numbers(low: float, high: float, step: float | None) -> Integers | Reals:
    """Give the domain of numbers between two bounds; without a step on a decimal grid, a little wider if need be."""
    if step == 1.0 and low.is_integer() and high.is_integer():
        return Integers(int(low), int(high))
    grid = float(f"1e{math.floor(math.log10((high - low) / _FINENESS))}") if step is None else step
    steps = math.ceil((exact(high) - exact(low)) / exact(grid))
    return Reals(low, float(exact(low) + steps * exact(grid)), grid)
