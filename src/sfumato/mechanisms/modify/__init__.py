"""The classic modifications: swapping, sampling, aggregation, blocking, and downgrading of a label [JS07, sec. 2.1]."""

from __future__ import annotations

from sfumato.mechanisms.modify.aggregate import Aggregation
from sfumato.mechanisms.modify.block import Blocking
from sfumato.mechanisms.modify.downgrade import Downgrading
from sfumato.mechanisms.modify.sample import Sampling
from sfumato.mechanisms.modify.swap import Swapping

__all__ = ["Aggregation", "Blocking", "Downgrading", "Sampling", "Swapping"]
