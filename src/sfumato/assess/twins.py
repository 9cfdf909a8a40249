"""Whether the people held out are other people than those of the original."""

from __future__ import annotations

import numpy as np

from sfumato.assess.keys import bits_of, row_keys
from sfumato.assess.study import Study
from sfumato.errors import OptionError

__all__ = ["held_out_notes"]

_FEW, _MANY = 0.02, 0.5  # shares of held-out rows, above what twins among the original's own rows explain


def held_out_notes(study: Study) -> tuple[str, ...]:
    """Say how many held-out rows stand in the original as they are; refuse rows that mostly do.

    Rows of people that the release was made from are no control: attacks would be compared with themselves. Tables of
    few values have true twins, so the share of original rows that have one is taken off first.
    """
    if study.holdout is None or not study.holdout.size or not len(study.original):
        return ()
    original = row_keys(bits_of(column) for column in study.original.T)
    held = row_keys(bits_of(column) for column in study.holdout.T)
    found = int(np.isin(held, original).sum())
    counts = np.unique(original, return_counts=True)[1]
    twins = float(counts[counts > 1].sum() / len(original))
    excess = found / len(held) - twins
    if excess > _MANY:
        raise OptionError(
            f"{found} of {len(held)} held-out rows stand in the original as they are; hold out rows that the release "
            "was not made from"
        )
    if excess > _FEW:
        return (
            f"{found} of {len(held)} held-out rows stand in the original as they are, more than its own twins explain; "
            "where these are the same people, controls are too high and gains too low.",
        )
    return ()
