"""Attacks by somebody who knows some items of a basket: finding it, singling it out, and naming a further item."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.algebra import NotRun, Stated, Values, success
from sfumato.assess.attacks.membership import area, area_tries
from sfumato.assess.findings import Tries
from sfumato.core.itemsets.baskets import Baskets, are_within

__all__ = ["KNOWN", "attack_baskets", "origins_told"]

KNOWN = 3
"""Items of a basket that an attacker knows who wants to find it."""

_ATTEMPTS, _JUDGED = 400, 1_500
_WORK = 100_000_000  # baskets times attempts that are looked at
_VOTES = 2_000
_FALSE_ALARMS = 0.01
_FEWEST = 40
Places = NDArray[np.int64]


class _Others(Protocol):
    """What else is known of baskets before and after."""

    @property
    def origin(self) -> Places: ...
    @property
    def persons(self) -> Places | None: ...
    @property
    def outside(self) -> Baskets | None: ...
    @property
    def outside_persons(self) -> Places | None: ...


@dataclass(frozen=True, eq=False, repr=False)
class _Index:
    """The released baskets, and which of them hold each item."""

    released: Baskets
    holders: NDArray[np.int32]
    first: Places

    @classmethod
    def of(cls, released: Baskets) -> _Index:
        order = np.argsort(released.items, kind="stable")
        first = np.searchsorted(released.items[order], np.arange(released.width + 1))
        return cls(released, released.rows[order].astype(np.int32), first)

    def shared(self, items: NDArray[np.int32]) -> Places:
        """How many of the items each released basket holds."""
        lists = [self.holders[self.first[item] : self.first[item + 1]] for item in items.tolist()]
        return np.bincount(np.concatenate([*lists, np.empty(0, dtype=np.int32)]), minlength=len(self.released))


def _targets(baskets: Baskets, persons: Places | None, least: int, most: int, rng: np.random.Generator) -> Places:
    """Baskets of at least so many items to attack, at most one of a person."""
    order = rng.permutation(np.flatnonzero(baskets.sizes >= least))
    if persons is not None:
        order = order[np.sort(np.unique(persons[order], return_index=True)[1])]
    return order[:most]


def attack_baskets(
    original: Baskets, released: Baskets, others: _Others, *, judged: bool, rng: np.random.Generator
) -> Iterator[Stated]:
    """Findings of all attacks; each on baskets of the original and, as a control, on those held out."""
    most = int(min(_JUDGED if judged else _ATTEMPTS, max(_FEWEST, _WORK // max(len(released), 1))))
    index = _Index.of(released)
    home = np.empty(len(original), dtype=np.int64)
    home[others.origin] = np.arange(len(released))
    inside = _targets(original, others.persons, KNOWN + 1, most, rng)
    lists = [original.basket(place) for place in inside.tolist()]
    held: list[NDArray[np.int32]] | None = None
    if others.outside is not None:
        chosen = _targets(others.outside, others.outside_persons, KNOWN + 1, most, rng)
        held = [others.outside.basket(place) for place in chosen.tolist()]
    if not lists:
        raise NotRun(f"no basket has more than {KNOWN} items")
    found, single = _find(index, lists, home[inside], rng)
    note = f"; tried on {len(lists)} baskets" + ("" if others.persons is None else ", one of each person")
    yield "own-row-linkage-baskets", success(found, guess=1 / len(released), control=None, note=note)
    control = _find(index, held, None, rng)[1] if held else None
    yield "singling-out-baskets", success(single, guess=0.0, control=control, note=note)
    for known in range(1, KNOWN + 1):
        right, usual = _name_further(index, lists, known, rng)
        aside = _name_further(index, held, known, rng)[0] if held else None
        words = f"{known} item{'s' if known > 1 else ''}"
        yield f"attribute-inference-items/{words}", success(right, guess=usual, control=aside, note=note)
    yield from _membership(index, lists, held, rng)


def _find(
    index: _Index, lists: list[NDArray[np.int32]], home: Places | None, rng: np.random.Generator
) -> tuple[Tries, Tries]:
    """How often one's own basket is the best match, ties shared; and how often one match shows half of the rest."""
    own = single = 0.0
    for place, basket in enumerate(lists):
        known = rng.choice(basket, KNOWN, replace=False)
        shared = index.shared(known)
        best = np.flatnonzero(shared == shared.max())
        if home is not None and shared[home[place]] == shared.max():
            own += 1 / len(best)
        if shared.max() == KNOWN and len(best) == 1:
            rest = np.setdiff1d(basket, known)
            single += np.isin(rest, index.released.basket(int(best[0]))).mean() >= 0.5
    return Tries(own, len(lists)), Tries(float(single), len(lists))


def _name_further(
    index: _Index, lists: list[NDArray[np.int32]], known: int, rng: np.random.Generator
) -> tuple[Tries, Tries]:
    """How often a further item is named by the best matching baskets, and by the most frequent item."""
    right = usual = 0
    popular = np.argsort(-index.released.counts, kind="stable")[: KNOWN + 1]
    for basket in lists:
        mine = rng.choice(basket, known, replace=False)
        shared = index.shared(mine)
        best = np.flatnonzero(shared == shared.max())
        best = best if len(best) <= _VOTES else rng.choice(best, _VOTES, replace=False)
        votes = index.released.take(best).counts
        votes[mine] = -1
        right += int(votes.argmax()) in basket
        usual += int(next(item for item in popular if item not in mine)) in basket
    return Tries(right, len(lists)), Tries(usual, len(lists))


def _membership(
    index: _Index, lists: list[NDArray[np.int32]], held: list[NDArray[np.int32]] | None, rng: np.random.Generator
) -> Iterator[Stated]:
    """Areas of members against others, by the similarity of the most similar released basket."""
    names = ("membership-baskets", "membership-at-1-percent-baskets")
    if not held or len(held) < _FEWEST:
        lacking = NotRun("no baskets were held out (name some with --holdout)" if not held else "too few were held out")
        yield from ((name, lacking) for name in names)
        return
    count = min(len(lists), len(held))
    members, others = (np.array([_nearest(index, each) for each in side[:count]]) for side in (lists, held))
    others = rng.permutation(others)
    half, rest = others[: count // 2], others[count // 2 :]
    tries, aside = area_tries(members, others), area_tries(half, rest)
    yield (
        names[0],
        Values(
            area(members, others), tries.interval, 0.5, area(half, rest), count,
            f"; counted on {count} baskets of each kind", control_interval=aside.interval, inside=tries,
        ),
    )  # fmt: skip
    line = np.sort(half)[::-1][max(1, int(_FALSE_ALARMS * (len(half) + 1))) - 1]
    caught, wrong = Tries(int((members > line).sum()), count), Tries(int((rest > line).sum()), len(rest))
    yield names[1], success(caught, guess=_FALSE_ALARMS, control=wrong)


def _nearest(index: _Index, basket: NDArray[np.int32]) -> float:
    """Jaccard similarity of the most similar released basket."""
    shared = index.shared(basket)
    return float((shared / np.maximum(len(basket) + index.released.sizes - shared, 1)).max())


def origins_told(original: Baskets, released: Baskets, unknown: Baskets, rng: np.random.Generator) -> Values | NotRun:
    """Area of unknown entries that were items against those that were none, by a naive Bayes model of what is known."""
    keys = unknown.keys()
    if len(keys) > _VOTES:
        keys = np.sort(rng.choice(keys, _VOTES, replace=False))
    width = np.int64(original.width)
    was = are_within(keys, original.keys())
    if was.all() or not was.any():
        return NotRun("all question marks stand for the same")
    rows, items = np.divmod(keys, width)
    scores, totals = np.empty(len(keys)), released.counts
    blocked = unknown.keys()
    for item in np.unique(items).tolist():
        hold = np.bincount(released.rows[released.items == item], minlength=len(released)) > 0
        doubt = np.zeros(len(released), dtype=np.bool_)
        doubt[blocked[blocked % width == item] // width] = True
        sides = [released.having((each & ~doubt)[released.rows]).counts + 1.0 for each in (hold, ~hold)]
        odds = np.log(sides[0] / (hold & ~doubt).sum().clip(1)) - np.log(sides[1] / (~hold & ~doubt).sum().clip(1))
        odds[totals == 0] = 0.0
        odds[item] = 0.0
        mine = np.flatnonzero(items == item)
        scores[mine] = [odds[released.basket(row)].sum() for row in rows[mine].tolist()]
    if area(scores[was], scores[~was]) < 0.5:  # who knows how entries were chosen reads it the right way
        scores = -scores
    told, tries = area(scores[was], scores[~was]), area_tries(scores[was], scores[~was])
    return Values(told, tries.interval, 0.5, attempts=len(keys), inside=tries)
