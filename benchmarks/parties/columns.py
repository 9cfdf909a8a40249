"""How much better an owner of columns tells another's when clusters are opened in every round, not only the last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.parties.tables import Coordinates
from sfumato.core.records import Block, Layout
from sfumato.methods.perturb.laplace_pca import LaplacePCA
from sfumato.parties.plan import JointPlan, JointResult
from sfumato.parties.session import Session
from sfumato.parties.vertical import LEAKS, sanitize_vertical
from tests.parties.together import run_together

__all__ = ["owned_columns", "predicted", "watch_columns"]

_FOLDS = 5


@dataclass(frozen=True, eq=False, repr=False)
class Watched:
    """What all owners of columns see of the rows: their clusters in each round, (t, n), and their groups, (n,)."""

    clusters: NDArray[np.int64]
    groups: NDArray[np.int64]


def owned_columns(table: Coordinates, parties: int) -> list[tuple[NDArray[np.float64], Layout]]:
    """Deal the columns out, the first owners getting one more where they do not divide; the last has the response."""
    names = list(dict.fromkeys(block.column for block in table.layout))
    owned = []
    for some in np.array_split(np.array(names), parties):
        blocks = [block for block in table.layout if block.column in set(some.tolist())]
        places = np.concatenate([np.arange(block.start, block.stop) for block in blocks])
        owned.append((np.ascontiguousarray(table.values[:, places]), _from_zero(blocks)))
    return owned


def _from_zero(blocks: list[Block]) -> Layout:
    made: list[Block] = []
    for block in blocks:
        start = made[-1].stop if made else 0
        made.append(Block(block.column, block.kind, start, start + block.stop - block.start))
    return tuple(made)


def watch_columns(table: Coordinates, parties: int, g: int, rounds: int, seed: int) -> Watched:
    """Run the protocol in one process and keep what is opened."""
    names = tuple(f"owner {rank}" for rank in range(parties))
    plan = JointPlan("vertical", names, LaplacePCA(groups=g), target=table.target, rounds=rounds, seed=seed)
    owned = owned_columns(table, parties)

    def play(session: Session, rank: int) -> tuple[JointResult, Any]:
        return sanitize_vertical(session, plan, *owned[rank]), session.transcript

    result, transcript = run_together(play, names, LEAKS, seed=seed)[0]
    shown = [(entry.label, transcript.values[entry.number]) for entry in transcript.entries if entry.action == "opened"]
    clusters = np.stack([value for label, value in shown if label == "clusters"])
    groups = _filled(clusters[-1], [value for label, value in shown if label == "moved records"], g)
    if not np.array_equal(np.bincount(groups, minlength=g), result.sizes):
        raise RuntimeError("the groups of the transcript are not those of the result")
    return Watched(clusters, groups)


def _filled(labels: NDArray[np.int64], masks: list[NDArray[np.int64]], g: int) -> NDArray[np.int64]:
    """Follow the filling from what was opened, as every party does."""
    labels, final, size = labels.copy(), np.zeros(g, dtype=np.bool_), len(labels) // g
    for mask in masks:
        counts = np.where(final, len(labels), np.bincount(labels, minlength=g))
        cluster = int(counts.argmin())
        left = np.flatnonzero(~final[labels] & (labels != cluster))
        labels[left[mask[: len(left)] == 1]] = cluster
        final[cluster] = True
        assert np.bincount(labels, minlength=g)[cluster] == size
    return labels


def predicted(own: NDArray[np.float64], others: NDArray[np.float64], watched: Watched, seed: int) -> dict[str, float]:
    """Give R^2 on rows that were not learned from, mean over the others' coordinates, for three attackers."""
    known = {
        "own columns": own,
        "and the groups": np.column_stack([own, _marks(watched.groups[None])]),
        "and the clusters of all rounds": np.column_stack(
            [own, _marks(watched.groups[None]), _marks(watched.clusters)]
        ),
    }
    return {name: float(np.mean([_best(x, y, seed) for y in others.T])) for name, x in known.items()}


def _marks(labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """Give a coordinate for each cluster of each round."""
    return np.column_stack([np.eye(int(label.max()) + 1)[label] for label in labels])


def _best(x: NDArray[np.float64], y: NDArray[np.float64], seed: int) -> float:
    """Give R^2 of the better of a linear model and trees, in cross-validation."""
    from sklearn.ensemble import ExtraTreesRegressor
    from sklearn.linear_model import RidgeCV
    from sklearn.metrics import r2_score
    from sklearn.model_selection import KFold, cross_val_predict

    folds = KFold(_FOLDS, shuffle=True, random_state=seed)
    models = (
        RidgeCV(np.geomspace(0.01, 1000.0, 11)),
        ExtraTreesRegressor(40, min_samples_leaf=2, max_features=0.3, random_state=seed),
    )
    return max(float(r2_score(y, cross_val_predict(model, x, y, cv=folds))) for model in models)
