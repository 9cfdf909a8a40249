"""The methods by their names on the command line."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from numbers import Integral, Real
from typing import Any

from sfumato.condense.classwise import ClasswiseCondensation
from sfumato.condense.mechanism import Condensation
from sfumato.errors import OptionError
from sfumato.geometry.mechanism import Hybrid, Rotation, Scaling, Translation
from sfumato.mechanism import Mechanism
from sfumato.perturb import LaplacePCA, make_noise
from sfumato.randomize.mechanism import Randomization

__all__ = ["DEFAULT_METHOD", "METHODS", "make_mechanism"]

DEFAULT_METHOD = "condense"

_KINDS: dict[str, tuple[type, str]] = {
    "bool": (bool, "true or false"),
    "int": (Integral, "a whole number"),
    "float": (Real, "a number"),
    "str": (str, "a text"),
}

METHODS: dict[str, Callable[..., Mechanism]] = {
    "condense": partial(Condensation, grouping="compact"),
    "condense-paper": partial(Condensation, grouping="paper"),
    "classwise": ClasswiseCondensation,
    "translate": Translation,
    "scale": Scaling,
    "rotate": Rotation,
    "hybrid": Hybrid,
    "noise": make_noise,
    "laplace-pca": LaplacePCA,
    "randomize": Randomization,
}


def make_mechanism(method: str, parameters: dict[str, Any]) -> Mechanism:
    """Build a mechanism from its name and parameters.

    Examples
    --------
    >>> make_mechanism("condense-paper", {"k": 5}).k
    5
    """
    if method not in METHODS:
        raise OptionError(f"there is no method {method!r}; choose one of {', '.join(METHODS)}")
    unknown = sorted(set(parameters) - set(inspect.signature(METHODS[method]).parameters))
    if unknown:
        raise OptionError(f"the method {method!r} has no parameter {unknown[0]!r}")
    for name, value in parameters.items():
        kind = str(inspect.signature(METHODS[method]).parameters[name].annotation).removesuffix(" | None")
        if value is not None and kind in _KINDS and not _is_of(value, *_KINDS[kind]):
            raise OptionError(f"the parameter {name!r} of the method {method!r} is not {_KINDS[kind][1]}; mend it")
    return METHODS[method](**parameters)


def _is_of(value: Any, kind: type, _words: str) -> bool:
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
