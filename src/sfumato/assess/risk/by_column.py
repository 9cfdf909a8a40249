"""Which columns carry the risk: whose cells are read, what makes people stand alone, whose rare values show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.findings import Finding, column_gains
from sfumato.assess.study import ColumnPair, Study, sample
from sfumato.tables.schema import Kind

__all__ = ["FEW", "ColumnRisk", "risk_by_column"]

FEW = 10
"""A value is rare that fewer people hold."""
_INSIDER = "attribute-inference-insider/"
_PARTS = 10  # numbers are known to the tenth of the table that they lie in
_MOST_ROWS = 200_000
_SPREAD, _MIX = np.uint64(0x9E37_79B9_7F4A_7C15), np.uint64(0xBF58_476D_1CE4_E5B9)
_CATEGORIES = (Kind.NOMINAL, Kind.BOOLEAN, Kind.ORDINAL)


@dataclass(frozen=True)
class ColumnRisk:
    """What one column adds to the risk of people of the table; for the owner."""

    column: str
    gain: float | None  # share of people whose cell is read, beyond people held out or chance; None where not tried
    certain: bool  # whether that is more than chance
    alone: float  # share of people who stand alone with coarse values, and would not without this column
    rare: int  # people who hold a category or an outermost number that fewer than `FEW` hold and that is released


def risk_by_column(study: Study, findings: Sequence[Finding]) -> tuple[ColumnRisk, ...]:
    """Columns from the one that carries most of the risk to the one that carries least."""
    if not len(study.released) or not study.pairs:
        return ()
    gains = {
        gain.finding.name.removeprefix(_INSIDER): gain
        for gain in column_gains(findings)
        if gain.finding.name.startswith(_INSIDER)
    }
    found = []
    for pair, alone in zip(study.pairs, _alone_by(study), strict=True):
        gain = gains.get(pair.name)
        excess, certain = (None, False) if gain is None else (gain.excess, gain.certain)
        found.append(ColumnRisk(pair.name, excess, certain, alone, _rare_shown(pair)))
    return tuple(sorted(found, key=_weight, reverse=True))


def _weight(risk: ColumnRisk) -> tuple[float, int]:
    return (risk.gain or 0.0 if risk.certain else 0.0) + risk.alone, risk.rare


def _alone_by(study: Study) -> list[float]:
    """For each column the share of people who are alone with all columns and not without it."""
    rows = sample(len(study.original), _MOST_ROWS, study.generator("risk-by-column"))
    marks = [
        _scattered(pair.original.take(rows).codes(pair.cuts(_PARTS)), place) for place, pair in enumerate(study.pairs)
    ]
    keys = np.asarray(np.sum(marks, axis=0, dtype=np.uint64))  # a sum, so that a column can be taken out again
    alone = _share_alone(keys)
    return [max(0.0, alone - _share_alone(np.asarray(keys - mark))) for mark in marks]


def _scattered(codes: NDArray[np.int64], place: int) -> NDArray[np.uint64]:
    """Codes of a column spread over all numbers, another way for every column."""
    offset = np.full(1, place + 1, dtype=np.uint64) * _MIX  # an array wraps around without a warning
    mixed = (codes.astype(np.uint64) + np.uint64(1)) * _SPREAD + offset
    mixed = (mixed ^ (mixed >> np.uint64(30))) * _MIX
    return np.asarray(mixed ^ (mixed >> np.uint64(27))) * _SPREAD


def _share_alone(keys: NDArray[np.uint64]) -> float:
    ordered = np.sort(keys)
    apart = np.concatenate([[True], ordered[1:] != ordered[:-1], [True]])
    return float((apart[1:] & apart[:-1]).mean())


def _rare_shown(pair: ColumnPair) -> int:
    values, holders = np.unique(pair.original.present, return_counts=True)
    if pair.field.kind not in _CATEGORIES:  # of numbers the outermost, as far as fewer people lie beyond
        below = np.cumsum(holders)
        outermost = (below < FEW) | (below[-1:] - below + holders < FEW)
        values, holders = values[outermost], holders[outermost]
    few = holders < FEW
    return int(holders[few][np.isin(values[few], pair.released.present)].sum())
