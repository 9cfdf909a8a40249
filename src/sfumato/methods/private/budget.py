"""The budget of a dataset over all its releases, in a file that its owner keeps.

A release is charged before any noise is drawn, so that a run which is killed has spent its part. Costs add up in
zero-concentrated differential privacy [Bun and Steinke 2016, lemma 2.3], and so do thresholds' parts of delta.
"""

from __future__ import annotations

import datetime
import math
import os
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

from sfumato.core.distributions.amplification import rho_of
from sfumato.core.documents import DocumentMismatch, toml_entries, typed, write_toml
from sfumato.core.errors import OptionError, PrivacyRefusal, SfumatoError, shown
from sfumato.core.replacing import reason
from sfumato.methods.private.ledger import MOST_EPSILON

__all__ = ["DatasetBudget", "charge"]

_FORMAT = 1
_MOST_BYTES = 1 << 20
_ENTRIES = ("dataset", "epsilon", "delta", "release")
_WRITE_ONE = 'write one with the lines: format = 1, dataset = "NAME", epsilon = 3.0, delta = 1e-5'


@dataclass(frozen=True)
class _Charge:
    charged: str
    rho: float
    delta: float
    settings: str
    measured: bool


@dataclass(frozen=True)
class _Document:
    dataset: str
    epsilon: float
    delta: float
    release: tuple[_Charge, ...] = ()


@dataclass(frozen=True)
class DatasetBudget:
    """What all releases of a dataset may spend together.

    ``measured`` tells whether a release with other settings was measured before: what it showed may have been a reason
    for these.
    """

    dataset: str
    epsilon: float
    delta: float
    measured: bool = False


def charge(path: str | Path, rho: float, thresholds: float, settings: str, *, measured: bool) -> DatasetBudget:
    """Charge a release to the budget file, which is locked meanwhile.

    Parameters
    ----------
    path : path
    rho : float
        Cost in zCDP.
    thresholds : float
        Part of delta that thresholds of categories cost.
    settings : str
        Digest of all that was chosen for the release.
    measured : bool
        Whether its owner will see measured figures.

    Raises
    ------
    PrivacyRefusal
        If the dataset's budget does not allow it; nothing is charged then.
    """
    import fcntl

    try:
        with Path(path).open("r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            budget, releases = _read(file.read(_MOST_BYTES + 1))
            when = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
            own = _Charge(when, rho, thresholds, settings, measured)
            _check(budget, [*releases, own])
            file.seek(0, os.SEEK_END)
            file.write(f"\n{write_toml({'release': [vars(own)]})}".encode())
            file.flush()
            os.fsync(file.fileno())
    except FileNotFoundError:
        raise OptionError(f"there is no budget file {shown(path)}; {_WRITE_ONE}") from None
    except OSError as error:
        raise SfumatoError(
            f"the budget file {shown(path)} could not be charged ({reason(error)}); make it readable and writable"
        ) from None
    return replace(budget, measured=any(each.measured and each.settings != settings for each in releases))


def _read(data: bytes) -> tuple[DatasetBudget, list[_Charge]]:
    """The budget, and the releases so far; what cannot be read in full is refused."""
    if len(data) > _MOST_BYTES:
        raise OptionError("the budget file has more than a mebibyte; start a new one for what is left of the budget")
    try:
        document = toml_entries(data.decode(), "budget file", _WRITE_ONE, _ENTRIES)
        whole = typed(_Document, document)
    except (UnicodeDecodeError, DocumentMismatch):
        raise OptionError(f"the budget file cannot be read in full, so nothing is charged; {_WRITE_ONE}") from None
    numbers = [whole.epsilon, whole.delta, *(each.rho for each in whole.release)]
    least = min((each.delta for each in whole.release), default=0.0)
    if not whole.dataset.strip() or not all(0 < each <= MOST_EPSILON for each in numbers) or not least >= 0:
        raise OptionError(f"the budget file holds no name, or a number that is not above 0 or too large; {_WRITE_ONE}")
    return DatasetBudget(whole.dataset, whole.epsilon, whole.delta), list(whole.release)


def _check(budget: DatasetBudget, releases: list[_Charge]) -> None:
    rho = sum((Fraction(each.rho) for each in releases), Fraction(0))
    thresholds = math.fsum(each.delta for each in releases) * (1 + 1e-12)
    left = budget.delta - thresholds
    if left <= 0 or rho > Fraction(rho_of(budget.epsilon, left)):
        raise PrivacyRefusal(
            f"the budget of dataset {budget.dataset!r}, epsilon {budget.epsilon:g} and delta {budget.delta:g}, does "
            f"not allow this release after {len(releases) - 1} others; nothing is charged or released"
        )
