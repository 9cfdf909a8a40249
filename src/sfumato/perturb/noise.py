"""Both kinds of noise under the one name that the command line has for them."""

from __future__ import annotations

from typing import Any

from sfumato.errors import OptionError
from sfumato.laws.enhance import Pairs
from sfumato.perturb.additive import AdditiveNoise
from sfumato.perturb.multiplicative import MultiplicativeNoise

__all__ = ["make_noise"]


def make_noise(
    kind: str = "additive",
    law: str = "gaussian",
    size: float | None = None,
    correlated: bool = False,
    enhance: float = 0.0,
    enhance_size: float = 1.0,
    enhance_laws: Pairs = (),
    pass_categories: bool = False,
) -> AdditiveNoise | MultiplicativeNoise:
    """Build noise of a kind; without a size it takes that kind's own.

    Examples
    --------
    >>> make_noise("multiplicative", size=0.1).method
    'noise'
    """
    shared: dict[str, Any] = {
        "law": law,
        "enhance": enhance,
        "enhance_size": enhance_size,
        "enhance_laws": enhance_laws,
        "pass_categories": pass_categories,
    }
    if size is not None:
        shared["size"] = size
    if kind == "additive":
        return AdditiveNoise(correlated=correlated, **shared)
    if kind != "multiplicative":
        raise OptionError(f"there is no kind of noise {kind!r}; choose 'additive' or 'multiplicative'")
    if correlated:
        raise OptionError("multiplicative noise is drawn for each column alone; leave correlated out")
    return MultiplicativeNoise(**shared)
