"""The client's side: a person checks a noise specification and answers it [JS07, sec. 3]."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sfumato.core.errors import OptionError, PrivacyRefusal
from sfumato.core.randomness import Randomness

if TYPE_CHECKING:
    from sfumato.core.laws.spec import NoiseSpec

__all__ = ["answer", "check_spec"]

_EXPECTED = 64  # hexadecimal digits of a SHA-256


def answer(
    value: str | float,
    spec: NoiseSpec,
    *,
    digest: str | None = None,
    max_gamma: float | None = None,
    rho1: float | None = None,
    max_rho2: float | None = None,
    rng: np.random.Generator | None = None,
) -> str | int | float:
    """What is sent in place of a value; nothing of the value leaves before the specification has been checked.

    Send one answer once. Whoever needs to send again sends the *same* answer: fresh ones average to the truth.

    Parameters
    ----------
    value : str or number
        The truth.
    spec : NoiseSpec
    digest, max_gamma, rho1, max_rho2
        What `check_spec` checks first.
    rng : numpy.random.Generator, optional
        By default from the operating system's entropy.

    Raises
    ------
    PrivacyRefusal
        Where the specification promises less than was wanted.
    SchemaError
        Where the value is none of the domain; the message does not hold it.

    Examples
    --------
    >>> from sfumato.core.laws.domains import Labels
    >>> from sfumato.core.laws.spec import NoiseSpec
    >>> spec = NoiseSpec(Labels(("no", "yes")), {"name": "response", "epsilon": 1.0})
    >>> answer("yes", spec, max_gamma=3.0) in ("no", "yes")
    True
    >>> answer("yes", spec, rho1=0.01, max_rho2=0.02)
    Traceback (most recent call last):
        ...
    sfumato.core.errors.PrivacyRefusal: after an answer, what was 1 % likely may be 2.7 % likely; do not answer it
    """
    check_spec(spec, digest=digest, max_gamma=max_gamma, rho1=rho1, max_rho2=max_rho2)
    rng = Randomness().generator("answer") if rng is None else rng
    sent: str | int | float = spec.shown(spec.operator.randomize(spec.domain.encode([value]), rng))[0]
    return sent


def check_spec(
    spec: NoiseSpec,
    *,
    digest: str | None = None,
    max_gamma: float | None = None,
    rho1: float | None = None,
    max_rho2: float | None = None,
) -> None:
    """Refuse a specification that is not the one that was read, or promises less than is wanted.

    Parameters
    ----------
    spec : NoiseSpec
    digest : str, optional
        Of the specification that was read and trusted.
    max_gamma : float, optional
        Most that an answer may change the odds of anything about the truth.
    rho1, max_rho2 : float, optional
        Most that something about the truth, of probability rho1 before, may be believed after the answer.

    Raises
    ------
    PrivacyRefusal
        Where it is not so.
    """
    if digest is not None and _hex(digest) != spec.digest:
        raise PrivacyRefusal("the specification is not the one that was expected, its digest differs; do not answer it")
    if max_gamma is not None:
        if isinstance(max_gamma, bool) or not max_gamma >= 1.0:
            raise OptionError("the most that odds may change is a factor of 1 or more; try 10")
        if spec.gamma > max_gamma:
            raise PrivacyRefusal(
                f"the specification lets an answer change odds by a factor of {spec.gamma:.3g} and at most "
                f"{max_gamma:.3g} is wanted; do not answer it"
                if math.isfinite(spec.gamma)
                else "the specification gives no guarantee: some answers make facts about the truth certain or nearly "
                "so; do not answer it"
            )
    if (rho1 is None) != (max_rho2 is None):
        raise OptionError("a wanted bound needs both rho1 and max_rho2; give the other one too")
    if rho1 is not None and max_rho2 is not None:
        _check_bound(spec, rho1, max_rho2)


def _check_bound(spec: NoiseSpec, rho1: float, max_rho2: float) -> None:
    if isinstance(max_rho2, bool) or not 0.0 < rho1 <= max_rho2 < 1.0:
        raise OptionError("a wanted bound needs 0 < rho1 <= max_rho2 < 1; choose other probabilities")
    rho2 = spec.bound(rho1)
    if rho2 > max_rho2:
        raise PrivacyRefusal(
            f"after an answer, what was {100 * rho1:g} % likely may be {100 * rho2:.1f} % likely; do not answer it"
        )


def _hex(digest: str) -> str:
    text = str(digest).strip().lower()
    if len(text) != _EXPECTED or set(text) - set("0123456789abcdef"):
        raise OptionError(f"a digest has {_EXPECTED} hexadecimal digits; copy all of it")
    return text
