"""Named attackers: which columns each knows of a person, chosen by rule so that nobody has to be asked.

Whether a table is open to attribute inference depends on what the attacker knows, and users of other tools are left
alone with that choice (statice/anonymeter#28). The profiles here are nested: who is named later knows all that the
earlier ones know, and one column more or many.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.assess.columns import ColumnPair
from sfumato.assess.study import Study
from sfumato.tables.schema import Kind

__all__ = ["INSIDER", "NEIGHBOUR", "PROFILES", "REGISTRY", "Profile", "knowing", "rank_columns"]

_SEEN = 3  # columns that a neighbour knows


@dataclass(frozen=True)
class Profile:
    """An attacker by what he knows.

    Parameters
    ----------
    name : str
        One word; part of a finding's name.
    sentence : str
        What he knows, as the words that follow "an attacker who".
    choose : callable
        From the columns as `rank_columns` puts them and the secret column, those that he knows.
    """

    name: str
    sentence: str
    choose: Callable[[Sequence[str], str], tuple[str, ...]]


def rank_columns(study: Study) -> tuple[str, ...]:
    """Put the columns in order from what anybody sees to what only the owner knows.

    Columns that take few values come first, for what takes few values is seen at a glance (a sex, a region, a number
    of children), and columns of steps before continuous ones and dates. Columns that are constant tell nothing and
    stand near the end; the target, which is to be predicted and hence not supposed known, is last.
    """
    keys = {pair.name: _rank(pair, study.target) for pair in study.pairs}
    return tuple(sorted(keys, key=keys.__getitem__))  # columns alike stay in the order of the table


def _rank(pair: ColumnPair, target: str | None) -> tuple[bool, bool, bool, int]:
    distinct = len(np.unique(pair.original.present))
    return pair.name == target, distinct < 2, pair.field.kind in (Kind.CONTINUOUS, Kind.DATE), distinct


def knowing(name: str, columns: Sequence[str]) -> Profile:
    """Make an attacker who knows the columns that are named, the secret excepted.

    Examples
    --------
    >>> knowing("doctor", ["age", "sex"]).choose(["sex", "age", "income"], "age")
    ('sex',)
    """
    known = tuple(columns)
    return Profile(
        name,
        "knows columns that were named",
        lambda order, secret: tuple(column for column in order if column in known and column != secret),
    )


def _first(order: Sequence[str], secret: str, count: int) -> tuple[str, ...]:
    return tuple(column for column in order if column != secret)[:count]


NEIGHBOUR = Profile(
    "neighbour",
    "knows the three columns that are seen most easily",
    lambda order, secret: _first(order, secret, _SEEN),
)
REGISTRY = Profile(
    "registry",
    "has a register with half of the columns, those that take the fewest values",
    lambda order, secret: _first(order, secret, max(_SEEN, len(order) // 2)),
)
INSIDER = Profile(
    "insider",
    "knows everything about a person but one column",
    lambda order, secret: _first(order, secret, len(order)),
)
PROFILES = (NEIGHBOUR, REGISTRY, INSIDER)
