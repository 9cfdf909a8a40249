"""What one owner of rows makes of a joint run: rows of the others from opened centres, groups, or hidden centres."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.parties import rounds as trajectory
from benchmarks.parties.hidden_centres import guess_centres, own_means
from benchmarks.parties.tables import Coordinates
from sfumato.core.groups import response_weights
from sfumato.methods.perturb.laplace_pca import LaplacePCA
from sfumato.parties.arithmetic import fraction_bits, from_fixed_point, to_fixed_point
from sfumato.parties.groupwise import cluster_rows, fill_groups, group_sizes
from sfumato.parties.horizontal import group_statistics, leaks
from sfumato.parties.horizontal_groups import (
    JointRows,
    OpenCentres,
    first_centres,
    scale_rows,
)
from sfumato.parties.plan import JointPlan
from sfumato.parties.rounds import SeenRounds, claimed_rows
from sfumato.parties.session import Session
from tests.parties.together import run_together

__all__ = ["Case", "attack", "attack_rounded", "watch_rows"]

Whole = NDArray[np.int64]
_Matrix = NDArray[np.float64]

_RIGHT = 1e-3  # standard deviations within which a claimed row is a row, where owners round to less


@dataclass(frozen=True)
class Case:
    """A table dealt out to owners: the first has ``share`` of the rows, by default as many as each other."""

    name: str
    parties: int
    g: int
    rounds: int = 20
    share: float | None = None
    rows: int | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Watched:
    """What the first owner sees of a run with opened centres, and the truth.

    Parameters
    ----------
    owner : ndarray of shape (n,)
    rows : ndarray of shape (n, d)
        All rows, in steps and weighted.
    one : ndarray of shape (d,)
        Steps of a standard deviation.
    first, sizes, centres : ndarray
        Opened: (g, d), (t, g) and (t, g, d).
    groups : ndarray of shape (n,)
        After filling.
    group_sizes, group_sums, group_products : ndarray
        Opened; unweighted, the products about the means.
    """

    owner: Whole
    rows: Whole
    one: _Matrix
    first: Whole
    sizes: Whole
    centres: Whole
    groups: Whole
    group_sizes: Whole
    group_sums: _Matrix
    group_products: _Matrix

    @property
    def clusters(self) -> Whole:
        """Cluster of each row in each round, (t, n)."""
        return trajectory.follow(self.rows, self.compared, np.ones(len(self.one))).T

    @property
    def rounding(self) -> int:
        """Steps that the difference of two opened sums is off by at most: each owner rounds its part of each mean."""
        return int(self.owner.max() + 1) * int(self.sizes.max())

    @property
    def compared(self) -> _Matrix:
        """The centres that rows were compared with in each round."""
        return trajectory.centres_of(self.first.astype(np.float64), self.sizes, self.centres * self.sizes[:, :, None])


def watch_rows(table: Coordinates, case: Case, seed: int, *, fine: bool = True) -> Watched:
    """Group the rows of several owners with opened centres in one process, and keep what is opened.

    With ``fine`` centres are opened as exactly as there is room for, else as the protocol does.
    """
    n, rng = len(table.values), np.random.default_rng(seed)
    shares = np.full(case.parties, 1.0 / case.parties)
    if case.share is not None:
        shares[:] = (1.0 - case.share) / (case.parties - 1)
        shares[0] = case.share
    owner = np.sort(rng.choice(case.parties, n, p=shares))  # the joined table has one owner's rows after the other's
    values = table.values[rng.permutation(n)]
    names = tuple(f"owner {rank}" for rank in range(case.parties))
    mechanism = LaplacePCA(groups=case.g)
    plan = JointPlan("horizontal", names, mechanism, table.target, rounds=case.rounds, centres="each")
    weights = response_weights(table.layout, table.target, mechanism.response_weight)

    def play(session: Session, rank: int) -> tuple[Any, ...]:
        own = values[owner == rank]
        pool = scale_rows(session, own, table.layout, weights, n)
        pool = _finer(pool, own * np.sqrt(weights)) if fine else pool
        first = first_centres(session, pool, group_sizes(plan.mechanism, n)[1])
        centres = OpenCentres(session, pool, first)
        labels, sizes, _ = cluster_rows(session, centres, plan.rounds)
        labels, sizes = fill_groups(session, centres, labels, sizes)
        order = np.argsort(labels, kind="stable")
        group_statistics(session, own[order], np.bincount(labels, minlength=len(first)), sizes)
        return pool, first, labels, sizes, session.transcript

    played = run_together(play, names, leaks("each"), seed=seed)
    pool, first, _, sizes, transcript = played[0]
    shown: dict[str, list[Whole]] = {}
    for entry in transcript.entries:
        if entry.action == "sum" and (entry.label != "sizes" or entry.phase.startswith("round")):
            shown.setdefault(entry.label, []).append(transcript.values[entry.number])
    bits, d = fraction_bits(4.0 * n), values.shape[1]
    upper = np.triu_indices(d)
    products = np.zeros((len(sizes), d, d))
    products[:, *upper] = products[:, *upper[::-1]] = from_fixed_point(shown["group products"][0], bits)
    return Watched(
        owner,
        np.concatenate([one[0].own for one in played]),
        np.ldexp(np.sqrt(weights), pool.bits),
        first,
        np.stack(shown["sizes"]),
        np.stack(shown["centres"]),
        np.concatenate([one[2] for one in played]),
        sizes,
        from_fixed_point(shown["group sums"][0], bits),
        products,
    )


def _finer(pool: JointRows, scaled: _Matrix) -> JointRows:
    """Open centres as exactly as there is room for, which the paper does; the protocol rounds them to 12 bits."""
    bits = fraction_bits(16.0 * pool.reach, products=2)
    room = math.ceil(math.log2(4.0 * pool.reach)) + 2 * bits
    return replace(pool, own=to_fixed_point(scaled, bits), bits=bits, room=room)


def attack(table: Coordinates, seen: Watched) -> dict[str, float]:
    """Play the first owner, with opened centres and with hidden ones; count rows claimed and rows right."""
    mine = seen.owner == 0
    others = seen.rows[~mine]
    slack = 4 * seen.rounding  # rows that are found carry theirs on
    fits = trajectory.in_domain(table.layout, table.low * seen.one, table.high * seen.one, seen.one, slack)
    total = seen.centres * seen.sizes[:, :, None]
    rounds = trajectory.Rounds(seen.compared, np.ones(len(seen.one)), seen.sizes, total, slack)
    rounds = trajectory.without(rounds, seen.rows[mine])
    from_rounds, left = trajectory.peel(rounds, fits)
    found = {"rows": len(seen.rows), "others": len(others), "rounds run": len(seen.sizes), "moved": _moved(seen)}
    found |= _counted("each round", from_rounds, others, seen)

    own_groups = seen.groups[mine]
    known = np.concatenate([seen.rows[mine], from_rounds])
    groups = np.concatenate([own_groups, _groups_of(from_rounds, seen, slack)])
    filled = trajectory.after_filling(
        replace(left, count=left.count[-1:], total=left.total[-1:], centres=_last(seen)[None]),
        *_group_rest(seen, known, groups)[:2],
        fits,
    )
    found |= _counted("filling", filled, others, seen)
    found |= _counted("groups", _from_groups(seen, seen.rows[mine], own_groups, fits), others, seen)
    return found | _hidden(seen, others)


def attack_rounded(seen: Watched) -> dict[str, float]:
    """Play the first owner against centres rounded as the protocol does; a claim is right where one row so moved.

    The owner takes its own part of every mean off to the step, so that what blurs a sum is the others' rounding.
    """
    mine, clusters = seen.owner == 0, seen.clusters
    others = seen.rows[~mine]
    moves, rows = claimed_rows(
        SeenRounds(
            own=seen.rows[mine],
            labels_seen=clusters[:, mine],
            counts=seen.sizes,
            centres=seen.centres,
            owners=int(seen.owner.max()) + 1,
        )
    )
    off = []
    for (t, before, after), row in zip(moves, rows, strict=True):
        there = np.flatnonzero((clusters[t, ~mine] == before) & (clusters[t + 1, ~mine] == after))
        gone = int((clusters[t, ~mine] == before).sum() - (clusters[t + 1, ~mine] == before).sum())
        if len(there) == 1 and gone == 1:
            off.append(float(np.sqrt((((row - others[there[0]]) / seen.one) ** 2).mean())))
    found = {"rounded: claimed": len(rows), "rounded: right": len(off), "others": len(others)}
    return found | {"rounded: off": float(np.median(off)) if off else math.nan}


def _last(seen: Watched) -> _Matrix:
    return np.asarray(np.where(seen.sizes[-1][:, None] > 0, seen.centres[-1], seen.compared[-1]))


def _moved(seen: Watched) -> float:
    """Give the share of the others' rows that ever change their cluster."""
    clusters = seen.clusters[:, seen.owner > 0]
    return float((clusters != clusters[0]).any(axis=0).mean())


def _groups_of(rows: Whole, seen: Watched, slack: int) -> Whole:
    """Give the group of each claimed row; the attacker would take the last cluster, which filling mostly keeps.

    Those that filling moved are looked up in the truth, so the attack on filling is an upper bound.
    """
    last = trajectory.follow(rows, _last(seen)[None], np.ones(len(seen.one)))[:, 0]
    for place, row in enumerate(rows):
        apart = np.abs(seen.rows - row).max(axis=1)
        if apart.min() <= slack:
            last[place] = seen.groups[int(apart.argmin())]
    return last


def _group_rest(seen: Watched, known: Whole, groups: Whole) -> tuple[Whole, Whole, _Matrix]:
    """Take known rows out of the statistics of the groups; counts, sums and products, in steps."""
    g, d = seen.group_sums.shape
    count = seen.group_sizes - np.bincount(groups, minlength=g)
    total = np.rint(seen.group_sums * seen.one).astype(np.int64)
    np.subtract.at(total, groups, known)
    means = seen.group_sums / seen.group_sizes[:, None]
    products = seen.group_products + np.einsum("ga,gb->gab", means, seen.group_sums)
    products = products * seen.one[:, None] * seen.one
    for row, group in zip(known.astype(np.float64), groups, strict=True):
        products[group] -= np.outer(row, row)
    assert products.shape == (g, d, d)
    return count, total, products


def _from_groups(seen: Watched, known: Whole, groups: Whole, fits: trajectory.Fits) -> Whole:
    return trajectory.small_groups(*_group_rest(seen, known, groups), fits)


def _counted(name: str, claimed: Whole, others: Whole, seen: Watched) -> dict[str, float]:
    """Count claims, and those that are a row of the others that no earlier claim was."""
    near = np.maximum(_RIGHT * seen.one, seen.rounding)
    free = Counter(range(len(others)))
    right = 0
    for row in claimed:
        places = np.flatnonzero((np.abs(others - row) <= near).all(axis=1))
        taken = next((int(place) for place in places if free[int(place)]), None)
        if taken is not None:
            free[taken] = 0
            right += 1
    return {f"{name}: claimed": len(claimed), f"{name}: right": right}


def _hidden(seen: Watched, others: Whole) -> dict[str, float]:
    """Guess hidden centres from the own rows' clusters and the groups' means, and difference as if they were right."""
    mine, ones = seen.owner == 0, np.ones(len(seen.one))
    own, unit = seen.rows[mine].astype(np.float64), np.maximum(seen.one, 1.0)
    labels = trajectory.follow(seen.rows[mine], seen.compared, ones).T
    means = seen.group_sums / seen.group_sizes[:, None] * seen.one
    guessed = guess_centres(own, labels, seen.groups[mine], means, ones)
    plain = np.stack([own_means(own, label, means) for label in labels])
    full = seen.sizes > 0
    off, plain_off = (float(np.sqrt((((guess - seen.centres)[full] / unit) ** 2).mean())) for guess in (guessed, plain))
    total = np.rint(guessed * seen.sizes[:, :, None]).astype(np.int64)
    rounds = trajectory.Rounds(seen.compared, ones, seen.sizes, total)
    rounds = trajectory.without(rounds, seen.rows[mine])  # whose clusters are known
    change = np.diff(rounds.count, axis=0)
    single = np.abs(change) == 1
    claims = np.diff(rounds.total, axis=0)[single] * change[single, None]
    away = [float(np.sqrt((((others - row) / unit) ** 2).mean(axis=1)).min()) for row in claims]
    guess = [float(np.sqrt((((others - row) / unit) ** 2).mean(axis=1)).min()) for row in means]
    return {
        "hidden: centres off": off,
        "hidden: own means off": plain_off,
        "hidden: nearest row": float(np.median(away)) if away else float("nan"),
        "hidden: nearest row to a group mean": float(np.median(guess)),
        **_counted("hidden", claims, others, seen),
    }
