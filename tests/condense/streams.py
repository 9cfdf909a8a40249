"""Streams for the tests of dynamic condensation, and the plainest way to maintain groups."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from sfumato.core.compiled import compiled, inner
from sfumato.methods.condense.dynamic import (
    Work,
    absorb_record,
    padded,
    split_group,
    splits_by_paper,
    splits_strictly,
)
from sfumato.methods.condense.maintainer import Maintainer, MaintainerState
from sfumato.methods.condense.slots import Slots

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]


@dataclass(frozen=True)
class Arrivals:
    """Records that start a stream, with their groups, and records that arrive."""

    first: Floats
    first_levels: Whole
    labels: Whole
    values: Floats
    levels: Whole

    def started(self, **options: object) -> Maintainer:
        """Give a maintainer that has started."""
        made = Maintainer(self.first.shape[1], **options)  # type: ignore[arg-type]
        made.start(self.first, self.first_levels, self.labels)
        return made


def draw_arrivals(seed: int, n: int, *, low: int = 2, high: int = 6, d: int | None = None) -> Arrivals:
    """Draw a stream: clusters or none, sometimes on a coarse grid, where distances tie, sometimes all records equal."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 8)) if d is None else d
    groups = int(rng.integers(1, 8))
    total = n + groups * high
    centres = rng.normal(size=(int(rng.integers(1, 6)), d)) * rng.choice([0.0, 3.0, 1000.0])
    values = centres[rng.integers(len(centres), size=total)] + rng.normal(size=(total, d))
    shape = rng.random()
    if shape < 0.3:
        values = np.round(values)
    elif shape < 0.4:
        values[:] = values[0]
    levels = rng.integers(low, high + 1, total)
    first = groups * high
    labels = np.arange(first) // high
    return Arrivals(values[:first], levels[:first], labels, values[first:], levels[first:])


def assert_same_state(one: MaintainerState, other: MaintainerState) -> None:
    """Compare states bit for bit."""
    for entry in fields(MaintainerState):
        left, right = getattr(one, entry.name), getattr(other, entry.name)
        if isinstance(left, np.ndarray):
            assert left.shape == right.shape, entry.name
            assert left.dtype == right.dtype, entry.name
            assert left.tobytes() == right.tobytes(), entry.name
        else:
            assert left == right, entry.name


@inner
def closest_eligible(store: Slots, groups: int, x: Floats, level: int, stratum: int) -> int:
    """Slot of the closest centroid of the stratum whose group has at least p(i) - 1 records, or -1 [AY05, sec. 3].

    Of equally close ones the lowest id. This is the brute force that the index must agree with.
    """
    best, nearest = -1, np.inf
    for slot in range(groups):
        if store.count[slot] < level - 1 or store.stratum[slot] != stratum:
            continue
        apart = 0.0
        for t in range(x.shape[0]):
            gap = x[t] - store.mean[slot, t]
            apart += gap * gap
        if apart < nearest or (apart == nearest and (best < 0 or store.ids[slot] < store.ids[best])):
            best, nearest = slot, apart
    return best


@compiled
def brute_stream(store: Slots, groups: int, strict: bool, values: Floats, levels: Whole) -> int:
    """Maintain groups by looking at every centroid; records that no group can take are left out. Gives the groups."""
    d, following = values.shape[1], store.ids[:groups].max() + 1
    x, width = np.empty(d), padded(d)
    work = Work(np.empty(d), np.empty(d), np.empty((d, width)), np.empty((6, width)))
    for i in range(values.shape[0]):
        x[:] = values[i]
        slot = closest_eligible(store, groups, x, levels[i], 0)
        if slot < 0:
            continue
        absorb_record(store, slot, x, levels[i], work.gap)
        if splits_strictly(store, slot) if strict else splits_by_paper(store, slot):
            split_group(store, slot, groups, following, work)
            groups += 1
            following += 2
    return groups
