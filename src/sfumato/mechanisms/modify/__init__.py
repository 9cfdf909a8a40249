"""The classic modifications: swapping, sampling, aggregation, blocking, and downgrading of a label [JS07, sec. 2.1]."""

from __future__ import annotations

from sfumato.mechanisms.modify.block import Aggregation, Blocking
from sfumato.mechanisms.modify.downgrade import Downgrading
from sfumato.mechanisms.modify.swap import Sampling, Swapping

__all__ = ["Aggregation", "Blocking", "Downgrading", "Sampling", "Swapping"]
