"""Noise specification shared by server and client: domain and noise distribution [JS07, sec. 3]."""

from __future__ import annotations

import datetime
import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.core.arrays import Ints
from sfumato.core.distributions.amplification import upward_bound
from sfumato.core.distributions.domains import (
    Dates,
    Integers,
    Labels,
    Reals,
    Universe,
    domain_from_document,
    domain_to_document,
)
from sfumato.core.distributions.finite import (
    FiniteOperator,
    KeepOrReplace,
    Mixture,
    Response,
    ShiftModulo,
    subset_response,
)
from sfumato.core.distributions.noise import DiscreteGaussian, DiscreteLaplace, DiscreteUniform, exact, short
from sfumato.core.distributions.operators import (
    Additive,
    Membership,
    Operator,
    interval_classes,
    parent_classes,
    rounding_classes,
)
from sfumato.core.documents import Inline, Unparsable, parse_json, parse_toml, read_text, write_json, write_toml
from sfumato.core.errors import OptionError, SchemaError

__all__ = ["Form", "NoiseSpec", "form_of"]

_FORMAT = 1
_CLAIM = 1e-9  # how far a written gamma or epsilon may be from what follows from the law
_TABLES = ("of", "parents")

Frozen = tuple[Any, ...]


@dataclass(frozen=True)
class NoiseSpec:
    """A domain and a noise distribution: what a client needs to answer and a server needs to estimate.

    Parameters
    ----------
    domain : Integers, Reals or Labels
    law : mapping
        Name and numbers of the law, as in the TOML form; kept frozen. Numbers of additive laws are in the units
        of the domain.

    Examples
    --------
    >>> spec = NoiseSpec(Integers(0, 1000), {"name": "keep-or-replace", "keep": 0.2})
    >>> spec.gamma, round(spec.bound(0.01), 3)
    (250.0, 0.716)
    >>> NoiseSpec.from_toml(spec.to_toml()) == spec
    True
    """

    domain: Universe
    law: Frozen | Mapping[str, Any]

    def __post_init__(self) -> None:
        law = self.law if isinstance(self.law, Mapping) else _thaw(self.law)
        object.__setattr__(self, "law", _freeze(_canonical_law(law)))
        _ = self._form  # a law that does not fit the domain is refused now

    @cached_property
    def _form(self) -> Form:
        return form_of(self.domain, _thaw(self.law))

    @property
    def operator(self) -> Operator:
        """The randomization operator on the codes of the domain."""
        return self._form.operator

    @property
    def released(self) -> Universe:
        """The values that may be sent; additive noise can exceed its ends."""
        return self._form.released

    @property
    def recodes(self) -> bool:
        """Whether answers are not values of the domain: intervals, parents, or codes of sets."""
        return dict(self.law)["name"] in ("interval", "subset", "taxonomy")

    @property
    def gamma(self) -> float:
        """Amplification: no property's odds change by more than this factor. Infinite: no guarantee."""
        return self.operator.gamma

    @property
    def epsilon(self) -> float:
        """Local differential privacy: the logarithm of gamma."""
        return self.operator.epsilon

    def bound(self, rho1: float) -> float:
        """Highest posterior, after any answer, of a property with prior probability rho1; 1 is no bound."""
        return upward_bound(self.gamma, rho1)

    @property
    def canonical(self) -> str:
        """The document as one line of JSON with sorted keys, from which the digest is computed."""
        return write_json(self.to_document(), "canonical")

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical form."""
        return hashlib.sha256(self.canonical.encode()).hexdigest()

    def randomize(self, values: ArrayLike, rng: np.random.Generator) -> NDArray[Any]:
        """Draw the value that is sent in place of each value.

        Raises
        ------
        SchemaError
            For values outside the domain, with their count.
        """
        return self.decode_output(self.operator.randomize(self.domain.encode(values), rng))

    def decode_output(self, codes: ArrayLike) -> NDArray[Any]:
        """Released value of each output code."""
        values: NDArray[Any] = self.released.decode(codes)
        whole = isinstance(self.domain, Integers) and isinstance(self.released, Reals)
        return np.rint(values).astype(np.int64) if whole and self.released.step == int(self.released.step) else values

    def shown(self, codes: ArrayLike) -> list[Any]:
        """Released value of each output code as text; dates in ISO format."""
        if isinstance(self.domain, Dates) and not self.recodes:
            return self.domain.written(self.decode_output(codes) - self.domain.low)
        found: list[Any] = self.decode_output(codes).tolist()
        return found

    def encode_output(self, values: ArrayLike) -> Ints:
        """Output code of each released value.

        Raises
        ------
        SchemaError
            For values that this law cannot have sent, with their count.
        """
        codes, possible = self.released.places(values), self.operator.outputs
        if possible is not None:
            wrong = int(((codes < possible.start) | (codes >= possible.stop)).sum())
            if wrong:
                raise SchemaError(f"{wrong} values cannot have come from this law; check that they belong to this file")
        return codes

    def describe(self) -> str:
        """Describe the randomization and its guarantee.

        Examples
        --------
        >>> print(NoiseSpec(Integers(0, 9), {"name": "uniform", "reach": 5}).describe())
        The answer is a whole number from 0 to 9. Random noise is added to the value (uniform, at most 5), in steps
        of 1.
        There is no guarantee: some answers make facts about the true value certain.
        """
        return f"The answer is {self.domain.describe()}. {self._form.words}\n{self._promise()}"

    @property
    def unbounded_reason(self) -> str | None:
        """Why the amplification is unbounded, so that there is no guarantee; None if it is bounded."""
        return _unknown_law_message(str(dict(self.law)["name"])) if math.isinf(self.epsilon) else None

    def _promise(self) -> str:
        if self.unbounded_reason is not None:
            return f"There is no guarantee: {self.unbounded_reason}."
        factor = f"e^{self.epsilon:.0f}" if math.isinf(self.gamma) else f"{self.gamma:.4g}"
        return (
            f"Any answer changes the odds of a statement about the true value by at most a factor of {factor} "
            f"(epsilon {self.epsilon:.3g}): a prior probability of 1 % becomes at most "
            f"{_percent_up(self.bound(0.01))} %."
        )

    def to_document(self) -> dict[str, Any]:
        """Specification as plain JSON values."""
        return {"format": _FORMAT, "domain": domain_to_document(self.domain), "law": _thaw(self.law)}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> NoiseSpec:
        """Specification from plain values; stated ``gamma`` and ``epsilon`` are checked.

        Raises
        ------
        OptionError
            For a form of another version, unknown keys, a law that does not fit the domain, or a claim that is not so.
        """
        if not isinstance(document, Mapping) or document.get("format") != _FORMAT:
            raise OptionError(f"a noise specification needs format = {_FORMAT}")
        unknown = set(document) - {"format", "domain", "law", "gamma", "epsilon"}
        if unknown or not {"domain", "law"} <= set(document):
            raise OptionError("a noise specification has format, domain and law, may have gamma and epsilon, no more")
        spec = cls(domain_from_document(document["domain"]), document["law"])
        for name, true in (("gamma", spec.gamma), ("epsilon", spec.epsilon)):
            if name in document and not _agrees(document[name], true):
                raise OptionError(f"the specification claims another {name} than its law has; do not answer it")
        return spec

    def to_toml(self) -> str:
        """Specification as TOML, with gamma and epsilon for the reader, which are checked on reading."""
        entries = {
            key: Inline(value) if isinstance(value, dict) else value for key, value in self.to_document().items()
        }
        return write_toml({**entries, "gamma": float(self.gamma), "epsilon": float(self.epsilon)}, self.describe())

    @classmethod
    def from_toml(cls, text: str) -> NoiseSpec:
        """Read the TOML form."""
        return cls._parsed(text, "TOML", parse_toml)

    @classmethod
    def from_json(cls, text: str) -> NoiseSpec:
        """Read the JSON form, such as the canonical one."""
        return cls._parsed(text, "JSON", parse_json)

    @classmethod
    def _parsed(cls, text: str, form: str, parse: Callable[[str], Any]) -> NoiseSpec:
        try:
            document = parse(text)
        except Unparsable as error:
            raise OptionError(f"the noise specification is not valid {form} ({error}); correct it") from None
        return cls.from_document(document)

    @classmethod
    def read(cls, path: str | Path) -> NoiseSpec:
        """Read a TOML file, or a JSON file by its ending."""
        text = read_text(path, "noise specification", "check its path")
        return cls.from_json(text) if Path(path).suffix.lower() == ".json" else cls.from_toml(text)


def _unknown_law_message(name: str) -> str:
    if name in ("interval", "rounding", "taxonomy"):
        return "what is sent is true, so it rules everything else out"
    if name == "gaussian":
        return "far out, one true value is any number of times likelier than another"
    return "some answers make facts about the true value certain"


def _agrees(claimed: Any, true: float) -> bool:
    if claimed is None:  # JSON has no infinity
        return math.isinf(true)
    if isinstance(claimed, bool) or not isinstance(claimed, int | float):
        return False
    return math.isclose(claimed, true, rel_tol=_CLAIM)


def _freeze(value: Any) -> Any:
    if isinstance(value, Mapping):
        return tuple((key, _freeze(each)) for key, each in value.items())
    return tuple(_freeze(each) for each in value) if isinstance(value, list | tuple) else value


def _thaw(value: Any) -> dict[str, object]:
    """Undo ``_freeze``; tuples that were tables are known by their keys."""
    try:
        return {key: _thaw(each) if key in _TABLES else _as_list(each) for key, each in value}
    except (TypeError, ValueError):
        raise OptionError("the law of a noise specification must be a table of its name and numbers") from None


def _as_list(value: Any) -> Any:
    return [_as_list(each) for each in value] if isinstance(value, tuple) else value


def _percent_up(bound: float) -> str:
    """Write a bound in percent, rounded up."""
    return f"{math.ceil(bound * 1000.0 * (1.0 - 1e-12)) / 10.0:.1f}"


_DEEPEST = 8


@dataclass(frozen=True)
class Form:
    """What a noise distribution means on a domain: operator, possible outputs and description."""

    operator: Operator
    released: Universe
    words: str


def _canonical_law(law: Mapping[str, Any]) -> dict[str, object]:
    """Canonical form of a noise distribution: known keys only, integers without fraction."""
    if not isinstance(law, Mapping) or str(law.get("name")) not in _FORMS:
        raise OptionError(f"the law needs a name, one of {', '.join(_FORMS)}")
    depth, inner = 0, law
    while isinstance(inner, Mapping) and "of" in inner:
        depth, inner = depth + 1, inner["of"]
    if depth > _DEEPEST:
        raise OptionError(f"mixtures are nested deeper than {_DEEPEST}; write the law plainer")
    name = str(law["name"])
    options = _FORMS[name][0]
    keys = tuple(key for key in law if key != "name")
    if not any(set(keys) == set(wanted) for wanted in options):
        choices = " or ".join(" and ".join(wanted) for wanted in options)
        raise OptionError(f"the law {name!r} needs {choices}, and nothing else")
    return {"name": name, **{key: _canonical(key, law[key]) for key in sorted(keys)}}


def form_of(domain: Universe, law: Mapping[str, Any]) -> Form:
    """Meaning of a noise distribution on a domain.

    Examples
    --------
    >>> from sfumato.core.distributions.domains import Integers
    >>> form_of(Integers(0, 1000), {"name": "keep-or-replace", "keep": 0.2}).operator
    KeepOrReplace(size=1001, keep=0.2)
    """
    return _FORMS[law["name"]][1](domain, law)


def _canonical(key: str, value: Any) -> Any:
    if key == "of":
        return _canonical_law(value)
    if key == "parents":
        if not isinstance(value, Mapping) or not all(isinstance(each, str) for pair in value.items() for each in pair):
            raise OptionError("the parents of a taxonomy are a table from label to parent, both texts")
        return dict(sorted(value.items()))
    if key in ("matrix", "edges", "row"):
        if not isinstance(value, list | tuple):
            raise OptionError(f"the {key} of a law must be a list")
        if key == "edges" and any(isinstance(each, str | datetime.date) for each in value):
            return [each.isoformat() if isinstance(each, datetime.date) else each for each in value]
        return [_canonical("row" if key == "matrix" else "entry", each) for each in value]
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise OptionError(f"{key} of a law must be a number")
    return short(value)


def _keep_or_replace(domain: Universe, law: Mapping[str, Any]) -> Form:
    operator = KeepOrReplace(domain.size, law["keep"])
    words = (
        f"With probability {law['keep']:g} the true value is sent; otherwise one of the other {domain.size - 1:,} "
        "values is drawn, each equally likely."
    )
    return Form(operator, domain, words)


def _shift_modulo(domain: Universe, law: Mapping[str, Any]) -> Form:
    reach = _in_steps("reach", law["reach"], domain)
    if reach.denominator != 1:
        raise OptionError("the reach of a shift must be a whole number of grid steps; change reach or grid")
    operator = ShiftModulo(domain.size, int(reach))
    words = (
        f"The value is shifted by a random amount from -{law['reach']:g} to {law['reach']:g}; beyond one end of the "
        "domain it goes on at the other."
    )
    return Form(operator, domain, words)


def _mixture(domain: Universe, law: Mapping[str, Any]) -> Form:
    inner = form_of(domain, law["of"])
    operator = Mixture(law["weight"], cast(FiniteOperator, inner.operator), domain.size)
    words = (
        f"With probability {law['weight']:g} this is done: {inner.words} Otherwise any of the {domain.size:,} values "
        "is drawn, each equally likely."
    )
    return Form(operator, domain, words)


def _additive(domain: Universe, law: Mapping[str, Any]) -> Form:
    name = law["name"]
    if isinstance(domain, Labels):
        raise OptionError(f"the law {name!r} adds numbers, so it needs a domain of integers or reals")
    make, key = _ADDITIVE[name]
    places = float(_in_steps(key, law[key], domain))
    operator = Additive(domain.size, make(places))
    size_words = {"uniform": "at most", "gaussian": "standard deviation", "laplace": "scale"}[name]
    step = f"a {domain.unit}" if isinstance(domain, Dates) else f"{domain.step:g}"
    words = f"Random noise is added to the value ({name}, {size_words} {law[key]:g}), in steps of {step}."
    return Form(operator, domain, words)


def _response(domain: Universe, law: Mapping[str, Any]) -> Form:
    if "epsilon" in law:
        operator = Response.for_epsilon(domain.size, law["epsilon"])
        words = (
            f"The true answer is sent with probability {operator.matrix[0][0]:.4g}; otherwise one of the other "
            f"{domain.size - 1:,} answers is drawn, each equally likely."
        )
        return Form(operator, domain, words)
    operator = Response(law["matrix"])
    if (operator.size, len(operator.outputs)) != (domain.size, domain.size):
        raise OptionError(f"the response matrix must have {domain.size} rows and columns, one for each value")
    return Form(operator, domain, "The answer that is sent is drawn with probabilities that depend on the true one.")


def _subset(domain: Universe, law: Mapping[str, Any]) -> Form:
    operator = subset_response(domain.size, law["epsilon"])
    answers = len(operator.outputs)
    if answers == domain.size and operator.matrix[0].count(max(operator.matrix[0])) == 1:
        return Form(operator, Integers(0, answers - 1), "The number of an answer is sent: mostly that of the true one.")
    many = operator.matrix[0].count(max(operator.matrix[0]))
    words = (
        f"Each value stands for {many:,} of {answers:,} numbers, any two values sharing some. A number is sent: one of "
        f"the true value's is {math.exp(law['epsilon']):.4g} times likelier than any other."
    )
    return Form(operator, Integers(0, answers - 1), words)


def _classes(domain: Universe, law: Mapping[str, Any]) -> Form:
    name = law["name"]
    if isinstance(domain, Labels) != (name == "taxonomy"):
        needed = "labels" if name == "taxonomy" else "integers or reals"
        raise OptionError(f"the law {name!r} needs a domain of {needed}")
    released: Universe
    if isinstance(domain, Labels):
        cells, released = parent_classes(domain, law["parents"])
        words = f"Not the label is sent, but its parent, one of {released.size}; the parent is always true."
    elif name == "interval":
        cells, released = interval_classes(domain, law["edges"])
        words = f"Not the value is sent, but the interval that it lies in, one of {released.size}; it is always true."
    else:
        cells, released = rounding_classes(domain, law["to"])
        words = f"The value is rounded to a multiple of {law['to']:g}; what is sent is always true."
    return Form(Membership(domain.size, cells), released, words)


def _in_steps(name: str, number: float, domain: Universe) -> Any:
    """Convert a number from the domain's units to steps."""
    if number <= 0:
        raise OptionError(f"the {name} of a law must be a number above 0")
    return exact(number) / exact(domain.step)


_ADDITIVE: dict[str, tuple[Callable[[float], Any], str]] = {
    "uniform": (DiscreteUniform, "reach"),
    "gaussian": (DiscreteGaussian, "sd"),
    "laplace": (DiscreteLaplace, "scale"),
}

_FORMS: dict[str, tuple[tuple[tuple[str, ...], ...], Callable[[Universe, Mapping[str, Any]], Form]]] = {
    "keep-or-replace": ((("keep",),), _keep_or_replace),
    "shift-modulo": ((("reach",),), _shift_modulo),
    "mixture": ((("weight", "of"),), _mixture),
    "uniform": ((("reach",),), _additive),
    "gaussian": ((("sd",),), _additive),
    "laplace": ((("scale",),), _additive),
    "response": ((("matrix",), ("epsilon",)), _response),
    "subset": ((("epsilon",),), _subset),
    "interval": ((("edges",),), _classes),
    "rounding": ((("to",),), _classes),
    "taxonomy": ((("parents",),), _classes),
}
