"""`Maintainer`: groups that records join as they arrive, the only mutable object in the house [AY05, sec. 3]."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal, cast

import numpy as np

from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.core.errors import OptionError, PrivacyRefusal, TableError
from sfumato.core.groups import Groups, check_partition, summarize
from sfumato.methods.condense.centroid_index import CentroidSearch
from sfumato.methods.condense.dynamic import Arrivals, StreamArrays, maintain, rows_of
from sfumato.methods.condense.partition import can_begin
from sfumato.methods.condense.slots import (
    ADMITTED,
    GROUPS,
    LEAST,
    NEXT_ID,
    NO_ROOM,
    NOTED,
    NUMBERS,
    PENDING,
    RIPE,
    SPLITS,
    STOPPED,
    CategoryTally,
    Pool,
    Slots,
    as_batch,
    as_strata,
    check_options,
    empty_journal,
    empty_slots,
    grown,
    places_of,
)

__all__ = [
    "AbsorptionResult",
    "GroupRows",
    "Maintainer",
    "MaintainerState",
    "PublishMarks",
    "first_rows",
    "refusal_of",
]


@dataclass(frozen=True, eq=False)
class AbsorptionResult:
    """What became of a batch: counts, and for the owner alone the group of each record.

    Parameters
    ----------
    absorbed, pending : int
        Records of the batch that joined a group on arrival, and pending records of it.
    admitted : int
        Records that had waited, of this batch or an earlier one, and were taken in.
    splits : int
    where : ndarray of shape (n,)
        Id of the group that each record joined on arrival, which may have split since; -1 if it is pending.
    """

    absorbed: int
    pending: int
    admitted: int
    splits: int
    where: Ints

    def __repr__(self) -> str:
        counts = ", ".join(f"{name}={getattr(self, name)}" for name in ("absorbed", "pending", "admitted", "splits"))
        return f"Absorbed({counts})"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class GroupRows:
    """All that is kept of some groups, in order of id; ``triangle`` is the upper triangle of the scatter."""

    ids: Ints
    count: Ints
    mean: Floats
    triangle: Floats
    level_sum: Floats
    level_max: Ints
    family: Ints
    fresh: Ints
    fresh_level_max: Ints
    pseudo: Bools
    stratum: Ints

    def __repr__(self) -> str:
        return f"{type(self).__name__}(g={len(self.ids)}, d={self.mean.shape[1]})"

    @classmethod
    def of(cls, arrays: Slots | GroupRows, places: Ints) -> GroupRows:
        """Rows at some places of arrays by the same names."""
        return GroupRows(**{field.name: getattr(arrays, field.name)[places] for field in fields(GroupRows)})

    @property
    def groups(self) -> Groups:
        """The statistics, as the rest of the house knows them."""
        scatter = rows_of(self.triangle, self.mean.shape[1])
        return Groups(self.count.copy(), self.mean.copy(), scatter, self.level_sum.copy(), self.level_max.copy())


def first_rows(groups: Groups, stratum: Ints, first_id: int = 0) -> GroupRows:
    """Rows of groups that a stream starts from: each a family of its own, all its records fresh."""
    ids, upper = first_id + np.arange(len(groups)), np.triu_indices(groups.mean.shape[1])
    return GroupRows(
        ids=ids,
        count=groups.count,
        mean=groups.mean,
        triangle=groups.scatter[:, upper[0], upper[1]],
        level_sum=groups.level_sum,
        level_max=groups.level_max,
        family=ids,
        fresh=groups.count,
        fresh_level_max=groups.level_max,
        pseudo=np.zeros(len(groups), dtype=np.bool_),
        stratum=stratum,
    )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class MaintainerState(GroupRows):
    """Everything that later results depend on; for the owner alone, since the pool holds records as they came."""

    d: int
    k: int
    split: str
    pending_limit: int
    track: bool
    next_id: int
    splits: int
    stratified: bool
    pending_values: Floats
    pending_levels: Ints
    pending_strata: Ints


@dataclass(frozen=True, eq=False)
class PublishMarks:
    """The units of publication, in order of family: what has come since each last left, and what must have come.

    A family is all groups that descend by splits from one group as it last left, or was started. It is ``due`` when its
    fresh records are at least the highest level inside it, and k (errata AY05.10).
    """

    family: Ints
    fresh: Ints
    needed: Ints

    @property
    def due(self) -> Bools:
        """Whether the present state of each family may leave."""
        return np.asarray(self.fresh >= self.needed)

    def __repr__(self) -> str:
        return f"PublishMarks(families={len(self.family)}, due={int(self.due.sum())})"


def refusal_of(limit: int, records: int) -> PrivacyRefusal:
    """Say that the pool cannot hold the records of a batch that would have to wait."""
    return PrivacyRefusal(
        f"more than {limit} records would wait for a group as large as their level, above the limit of the pool; "
        f"none of these {records} was taken in; lower the highest levels, or start anew from more "
        "records or with a higher limit of the pool"
    )


_FIRST_SLOTS = 64


class Maintainer:
    """Groups that arriving records join, each with its own privacy level [AY05, sec. 3].

    Parameters
    ----------
    d : int
        Coordinates of a record.
    k : int
        The floor of all levels.
    split : {"strict", "paper"}
        ``"strict"`` splits a group only when both pieces are still as large as the highest level inside; ``"paper"``
        when n >= 2 Ps / n, twice the average level [AY05, eq. 3.2], after which a piece may be too small for some.
    pending_limit : int
        Records at most that wait for a group large enough.
    track : bool
        Keep what `changed` needs.
    tally : CategoryTally, optional
        Counts the categories of columns that have very many in each group.
    stratified : bool
        Records come with strata, and no group holds records of two. The first group of a stratum that has none is
        formed of its waiting records as soon as none of them has a level above their number.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> first, later = rng.normal(size=(40, 3)), rng.normal(size=(500, 3))
    >>> maintainer = Maintainer(3, k=5)
    >>> maintainer.start(first, np.full(40, 5), np.arange(40) // 5)
    >>> maintainer.absorb(later, np.full(500, 5))
    Absorbed(absorbed=500, pending=0, admitted=0, splits=...)
    >>> maintainer.records, maintainer.pending, int(maintainer.groups.count.min()) >= 5
    (540, 0, True)
    """

    def __init__(
        self,
        d: int,
        *,
        k: int = 10,
        split: Literal["strict", "paper"] = "strict",
        pending_limit: int = 10_000,
        track: bool = True,
        tally: CategoryTally | None = None,
        stratified: bool = False,
    ) -> None:
        check_options(d, k, split, pending_limit)
        self.tally, self.stratified = tally, stratified
        self.d, self.k, self.split, self.pending_limit, self.track = d, k, split, pending_limit, track
        self._numbers = np.zeros(NUMBERS, dtype=np.int64)
        self._store = empty_slots(_FIRST_SLOTS, d)
        self._pool = Pool(np.empty((0, d)), *(np.empty(0, dtype=np.int64) for _ in range(2)))
        self._ripe = np.zeros(1, dtype=np.int64)
        self._search = CentroidSearch(self._store)
        self._known = np.empty(0, dtype=np.int64)

    def __repr__(self) -> str:
        return f"Maintainer(groups={self._g}, records={self.records}, pending={self.pending}, split={self.split!r})"

    @property
    def _g(self) -> int:
        return int(self._numbers[GROUPS])

    @property
    def _order(self) -> Ints:
        return np.argsort(self._store.ids[: self._g], kind="stable")

    @property
    def ids(self) -> Ints:
        """Ids of the groups, ascending; a split gives both pieces new ones, and none is used again."""
        return np.sort(self._store.ids[: self._g])

    @property
    def groups(self) -> Groups:
        """The statistics of all groups as they are now, in order of id."""
        return self.rows().groups

    @property
    def records(self) -> int:
        """Records in all groups."""
        return int(self._store.count[: self._g].sum())

    @property
    def pending(self) -> int:
        """Records that wait for a group large enough."""
        return int(self._numbers[PENDING])

    @property
    def splits(self) -> int:
        """Splits since the beginning."""
        return int(self._numbers[SPLITS])

    @property
    def violations(self) -> int:
        """Groups that are smaller than the highest level among the records that they stem from; none where strict."""
        return int((self._store.count[: self._g] < self._store.level_max[: self._g]).sum())

    @property
    def family(self) -> Ints:
        """The published unit that each group descends from, in order of id."""
        return np.asarray(self._store.family[self._order])

    @property
    def fresh(self) -> Ints:
        """Each group's part of the records that came since its family last left; they add up over a family."""
        return np.asarray(self._store.fresh[self._order])

    @property
    def fresh_level_max(self) -> Ints:
        """Highest level, or an upper bound, among each group's fresh records."""
        return np.asarray(self._store.fresh_level_max[self._order])

    @property
    def pseudo(self) -> Bools:
        """Whether each group came from a split, so that its count is the model's and not of people (errata AY05.11)."""
        return np.asarray(self._store.pseudo[self._order])

    def start(self, values: Floats, levels: Ints, labels: Ints, strata: Ints | None = None) -> None:
        """Begin with the groups of a static condensation of the first records; each is a family of its own.

        Parameters
        ----------
        values : ndarray of shape (n, d)
        levels : ndarray of shape (n,)
        labels : ndarray of shape (n,)
            Group of each record, 0 to g-1, from `sfumato.methods.condense.partition.partition`.
        strata : ndarray of shape (n,), optional
            Stratum of each record, of stratified groups.
        """
        if self._g:
            raise OptionError(f"there are {self._g} groups already; start once, then absorb")
        values, levels = as_batch(values, levels, self.d, self.k)
        labels = np.asarray(labels, dtype=np.int64)
        if labels.shape != levels.shape:
            raise TableError(f"there are {len(values)} records and {len(labels)} labels; give one label to each")
        check_partition(labels, levels)
        strata = as_strata(strata, len(values), stratified=self.stratified)
        pairs = np.unique(np.column_stack([labels, strata]), axis=0)
        if len(pairs) > len(np.unique(labels)):
            raise TableError("a group holds records of two strata; give each group records of one")
        rows = first_rows(summarize(values, labels, levels), pairs[:, 1])
        g = len(rows.ids)
        self._fill(rows)
        self._numbers[NEXT_ID] = g
        self._store.written[:g] = True
        self._ripen(rows)
        if self.tally is not None:
            self.tally.start(values, labels)
        self._run(values[:0], levels[:0], strata[:0])  # records that came before may wait

    def absorb(self, values: Floats, levels: Ints, strata: Ints | None = None) -> AbsorptionResult:
        """Let records join the closest group that is large enough for them, one after the other; split what has grown.

        Parameters
        ----------
        values : ndarray of shape (n, d)
        levels : ndarray of shape (n,)
            Effective levels, none below k.
        strata : ndarray of shape (n,), optional
            Stratum of each record, a whole number from 0, of stratified groups.

        Raises
        ------
        PrivacyRefusal
            If more records would have to wait than the pool may hold. Nothing of the batch is absorbed then.
        """
        values, levels = as_batch(values, levels, self.d, self.k)
        strata = as_strata(strata, len(values), stratified=self.stratified)
        before = self._numbers.copy()
        may_overflow = self.pending + len(values) > self.pending_limit
        kept = (self.state(), self._store.written[self._order]) if may_overflow else None
        where = self._run(values, levels, strata)
        if where is None:
            assert kept is not None  # a pool that has room for all cannot overflow
            self._load(kept[0])
            self._store.written[: self._g] = kept[1]
            raise refusal_of(self.pending_limit, len(values))
        gained = self._numbers - before
        waited = int((where < 0).sum())
        return AbsorptionResult(len(values) - waited, waited, int(gained[ADMITTED]), int(gained[SPLITS]), where)

    def changed(self) -> tuple[Ints, Ints]:
        """Ids written and ids retired since the last call, ascending; the count of both begins anew.

        A group that came and went in between is in neither.
        """
        if not self.track:
            raise OptionError("changes are not tracked; make the Maintainer with track=True")
        ids = self.ids
        written = np.sort(self._store.ids[: self._g][self._store.written[: self._g]])
        retired = np.setdiff1d(self._known, ids, assume_unique=True)
        self._store.written[: self._g] = False
        self._known = ids
        return written, retired

    def publish_marks(self) -> PublishMarks:
        """Tell of each family how many fresh records it has and how many it needs before its state may leave."""
        rows = self.rows()
        family, where = np.unique(rows.family, return_inverse=True)
        fresh, needed = np.zeros(len(family), dtype=np.int64), np.full(len(family), self.k, dtype=np.int64)
        np.add.at(fresh, where, rows.fresh)
        np.maximum.at(needed, where, np.maximum(rows.level_max, rows.fresh_level_max))
        return PublishMarks(family, fresh, needed)

    def mark_published(self, families: Ints) -> None:
        """Note that the present state of these families leaves: each of their groups becomes a family of its own.

        Families that are not due are refused, and nothing is marked then.
        """
        marks, asked = self.publish_marks(), np.unique(families)
        early = int((~np.isin(asked, marks.family[marks.due])).sum())
        if early:
            raise PrivacyRefusal(
                f"{early} of {len(asked)} families have too few new records to publish their new state; publish "
                "those that are due and repeat the earlier rows of the others"
            )
        g, store = self._g, self._store
        leaving = np.flatnonzero(np.isin(store.family[:g], families))
        store.family[leaving] = store.ids[leaving]
        store.fresh[leaving] = 0
        store.fresh_level_max[leaving] = 0
        store.written[leaving] = True

    def rows(self, ids: Ints | None = None) -> GroupRows:
        """Copy all that is kept of some groups, by default of all; for writing them down one by one."""
        slots = self._order
        if ids is not None:
            slots = slots[places_of(np.sort(ids), self._store.ids[slots])]
        return GroupRows.of(self._store, slots)

    def state(self) -> MaintainerState:
        """Copy everything that later results depend on; for the owner alone."""
        waiting = self.pending
        return MaintainerState(
            **vars(self.rows()),
            d=self.d, k=self.k, split=self.split, pending_limit=self.pending_limit, track=self.track,
            next_id=int(self._numbers[NEXT_ID]), splits=self.splits, stratified=self.stratified,
            pending_values=self._pool.values[:waiting].copy(), pending_levels=self._pool.levels[:waiting].copy(),
            pending_strata=self._pool.strata[:waiting].copy(),
        )  # fmt: skip

    @classmethod
    def from_state(cls, state: MaintainerState, tally: CategoryTally | None = None) -> Maintainer:
        """Continue from a state as if there had been no interruption; nothing counts as changed."""
        split = cast('Literal["strict", "paper"]', state.split)  # checked below
        limit, track = state.pending_limit, state.track
        entries = {"pending_limit": limit, "track": track, "tally": tally, "stratified": state.stratified}
        made = cls(state.d, k=state.k, split=split, **entries)  # type: ignore[arg-type]
        made._load(state)
        made._known = made.ids
        return made

    def _run(self, values: Floats, levels: Ints, strata: Ints) -> Ints | None:
        """Absorb records and give the group of each; None where the pool is full."""
        where = np.full(len(values), -1, dtype=np.int64)
        following, done, founded = 0, False, list[tuple[int, Floats]]()
        self._know_strata(strata)
        journal = empty_journal(() if self.tally is None else self.tally.followed, len(values) + self.pending)
        self._numbers[NOTED], arrivals = 0, Arrivals(values, levels, strata, where)
        while following < len(values) or not done:
            last, cache = self._search.next_block(self._store, self._g, values, following)
            found = self._store, self._search.index, cache, self._numbers, self._pool, self._ripe, journal
            following, done = maintain(
                StreamArrays(*found), arrivals, following, last, self.split == "strict", self.stratified
            )
            if done:
                continue
            stopped, self._numbers[STOPPED] = int(self._numbers[STOPPED]), 0
            if stopped > 0:
                founded.append(self._found(stopped - 1))
            elif self._g == len(self._store.ids):
                self._store = grown(self._store, 2 * self._g)
            elif stopped == NO_ROOM:
                if self.pending == self.pending_limit:
                    return None
                self._pool = grown(self._pool, min(self.pending_limit, max(64, 2 * self.pending)))
            self._search.renew(self._store, self._g)  # it was stale, or has to follow the longer arrays
        if self.tally is not None:
            for group, first in founded:
                self.tally.found(group, first)
            self.tally.replay(journal, int(self._numbers[NOTED]))
        return where

    def _know_strata(self, strata: Ints) -> None:
        """Make room for strata that have not occurred before."""
        lacking = int(strata.max(initial=0)) + 1 - len(self._ripe)
        if lacking > 0:
            self._ripe = np.concatenate([self._ripe, np.zeros(lacking, dtype=np.int64)])

    def _ripen(self, rows: GroupRows) -> None:
        """Look again at the waiting records that groups of these sizes may serve."""
        self._know_strata(rows.stratum)
        np.maximum.at(self._ripe, rows.stratum, rows.count)
        self._numbers[RIPE] = max(self._numbers[RIPE], self._ripe.max())

    def _found(self, stratum: int) -> tuple[int, Floats]:
        """Form the first group of a stratum of its waiting records; its id, and these records."""
        waiting, identity = self.pending, int(self._numbers[NEXT_ID])
        pool = Pool(self._pool.values[:waiting], self._pool.levels[:waiting], self._pool.strata[:waiting])
        own = np.flatnonzero(pool.strata == stratum)
        own = own[can_begin(pool.levels[own])]
        values, levels = pool.values[own], pool.levels[own]
        rows = first_rows(summarize(values, np.zeros(len(own), dtype=np.int64), levels), np.array([stratum]), identity)
        for name, array in vars(rows).items():
            getattr(self._store, name)[self._g] = array[0]
        self._store.written[self._g] = True
        left = np.delete(np.arange(waiting), own)
        for kept, held in zip(self._pool, [each[left] for each in pool], strict=True):
            kept[: len(left)] = held
        self._numbers[GROUPS], self._numbers[NEXT_ID] = self._g + 1, identity + 1
        self._numbers[PENDING] = len(left)
        self._numbers[LEAST] = self._pool.levels[: len(left)].min() if len(left) else 0
        self._numbers[ADMITTED] += len(own)
        self._ripen(rows)
        return identity, values

    def _fill(self, rows: GroupRows) -> None:
        """Put groups into the slots, in order of id."""
        g = len(rows.ids)
        self._store = empty_slots(max(_FIRST_SLOTS, g + g // 2), self.d)
        for name, array in vars(rows).items():
            getattr(self._store, name)[:g] = array
        self._numbers[GROUPS] = g
        self._search.renew(self._store, g)

    def _load(self, state: MaintainerState) -> None:
        """Forget everything and take over a state."""
        order = np.argsort(state.ids, kind="stable")
        self._fill(GroupRows.of(state, order))
        waiting = len(state.pending_levels)
        waiting_levels, waiting_strata = state.pending_levels.astype(np.int64), state.pending_strata.astype(np.int64)
        self._pool = Pool(state.pending_values.astype(np.float64), waiting_levels, waiting_strata)
        self._know_strata(np.concatenate([self._store.stratum[: len(order)], waiting_strata]))
        self._ripe[:] = 0
        self._numbers[:] = 0
        self._numbers[GROUPS], self._numbers[NEXT_ID] = len(order), state.next_id
        self._numbers[SPLITS], self._numbers[PENDING] = state.splits, waiting
        self._numbers[LEAST] = self._pool.levels.min() if waiting else 0
