"""Rows and cells that a secure sum would show: an owner takes its own part off and has the others' bare."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import PrivacyRefusal
from sfumato.parties.session import Session
from sfumato.parties.transcript import Leak
from sfumato.parties.words import possible

__all__ = ["LEAK", "refuse_bare_rows"]

LEAK = Leak(
    "bare rows",
    "sum",
    "all",
    "how often an owner has all rows but one or two, or all cells of a column that are not missing but one or two, of "
    "a group or of the whole table, without who or where",
)
"""What `refuse_bare_rows` shows."""

_BARE = 2  # so few rows follow from their sum and products exactly, and so few cells from their sum and squares


def refuse_bare_rows(session: Session, own: NDArray[np.int64], total: NDArray[np.int64], few: str) -> int:
    """Count how often an owner would see all rows or cells of the others bare, and refuse unless that is allowed.

    An owner that takes its own rows off a group's sums and products is left with those of the others: of one row that
    is the row, of two it is both, for they lie on either side of their mean along the one axis that is left. Missing
    cells add nothing to the sums of their column, so a cell is as bare as a row where all others are missing.

    Parameters
    ----------
    own, total : ndarray of one shape
        Rows or cells that go into each sum, here and over all owners.
    few : {"refuse", "allow"}

    Raises
    ------
    PrivacyRefusal
        At every party, to be called before the sums are opened.
    """
    others = total - own
    here = int(((others > 0) & (others <= _BARE)).sum())
    shown = session.sum(np.array([here]), LEAK.label)
    bare = int(possible(shown, 0, own.size * session.parties, LEAK.label)[0])
    if bare and few == "refuse":
        raise PrivacyRefusal(
            f"{bare} times all owners but one have no more than {_BARE} rows in a group, or cells of a column that are "
            "not missing, and exact sums would show them to that one; ask for larger groups, leave such columns out, "
            'or allow it with few = "allow"'
        )
    return bare
