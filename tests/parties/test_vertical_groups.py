"""K-means and filling between owners of columns: each step is the right one as far as fixed point can tell."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sfumato.core.groups.kmeans import fill_clusters
from sfumato.parties import groupwise, vertical
from sfumato.parties.channel import PartyError
from sfumato.parties.groupwise import cluster_rows, fill_groups, next_to_fill
from sfumato.parties.ledger import Transcript
from sfumato.parties.session import Session, SharedArray
from sfumato.parties.vertical import LEAKS, ColumnCentres
from tests.examples import examples
from tests.parties.conftest import Together
from tests.parties.owners import NAMES, Matrix, random_numbers

seeds = st.integers(0, 2**32 - 1)
some_cases = examples(30)
Labels = NDArray[np.int64]


def group(
    together: Together, values: Matrix, parties: int, g: int, rounds: int = 10
) -> tuple[Labels, Labels, Matrix, Transcript]:
    """Cluster and fill; gives clusters, groups, the centres in all columns, and the transcript."""
    columns = np.array_split(np.arange(values.shape[1]), parties)

    def play(session: Session, rank: int) -> tuple[Labels, Labels, Matrix, Transcript]:
        kept = ColumnCentres(session, values[:, columns[rank]], g)
        labels, sizes, _ = cluster_rows(session, kept, rounds)
        return labels, fill_groups(session, kept, labels, sizes)[0], kept.centres, session.transcript

    seen = together(play, NAMES[:parties], LEAKS)
    for labels, filled, _, _ in seen:
        assert labels.tolist() == seen[0][0].tolist()
        assert filled.tolist() == seen[0][1].tolist()
    return seen[0][0], seen[0][1], np.hstack([centres for _, _, centres, _ in seen]), seen[0][3]


def opened(transcript: Transcript, label: str) -> list[Labels]:
    return [transcript.values[e.number] for e in transcript.entries if e.action == "opened" and e.label == label]


def means(values: Matrix, labels: Labels, before: Matrix) -> Matrix:
    return np.array(
        [values[labels == j].mean(axis=0) if (labels == j).any() else before[j] for j in range(len(before))]
    )


def squares(values: Matrix, centres: Matrix) -> Matrix:
    return np.asarray(np.square(values[:, None] - centres).sum(axis=2))


@some_cases
@given(seeds, st.integers(2, 5))
def test_in_every_round_each_record_goes_to_a_nearest_centre(together: Together, seed: int, parties: int) -> None:
    rng = np.random.default_rng(seed)
    n, g = int(rng.integers(6, 60)), int(rng.integers(2, 6))
    values = random_numbers(rng, n, 6) / np.sqrt(6.0)
    first = rng.choice(n, g, replace=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vertical, "first_rows", lambda *_: first)
        last, _, end, transcript = group(together, values, parties, g)
    centres, before = values[first], None
    for labels in opened(transcript, "clusters"):
        apart = squares(values, centres)
        assert (apart[np.arange(n), labels] <= apart.min(axis=1) + parties * 2.0**-vertical._FINE).all()
        if before is None or (labels != before).any():
            centres = means(values, labels, centres)
        before = labels
    assert before is not None
    assert last.tolist() == before.tolist()
    np.testing.assert_allclose(end, centres, atol=1e-12)


@some_cases
@given(seeds, st.integers(2, 5))
def test_the_smallest_cluster_takes_the_nearest_records_of_others_just_as_many_as_it_lacks(
    together: Together, seed: int, parties: int
) -> None:
    rng = np.random.default_rng(seed)
    n, g = int(rng.integers(8, 60)), int(rng.integers(2, 7))
    values = random_numbers(rng, n, 6) / np.sqrt(6.0)
    labels, filled, centres, transcript = group(together, values, parties, g, rounds=int(rng.integers(1, 6)))
    now, final = labels.copy(), np.zeros(g, dtype=np.bool_)
    for mask in opened(transcript, "moved records"):
        cluster = next_to_fill(np.bincount(now, minlength=g), final, n // g)
        assert cluster is not None
        left = np.flatnonzero(~final[now] & (now != cluster))
        taken = mask == 1
        assert taken.sum() == n // g - (now == cluster).sum()
        apart = squares(values[left], centres[[cluster]])[:, 0]
        assert apart[taken].max() <= apart[~taken].min(initial=np.inf) + parties * 2.0**-vertical._FINE
        now[left[taken]], final[cluster] = cluster, True
    assert next_to_fill(np.bincount(now, minlength=g), final, n // g) is None
    assert filled.tolist() == now.tolist()
    assert np.bincount(filled, minlength=g).min() >= n // g


@pytest.mark.parametrize("parties", [2, 3, 5])
def test_clear_clusters_are_found_and_filled_as_by_one_owner(together: Together, parties: int) -> None:
    rng = np.random.default_rng(8)
    sizes, g, d = (30, 11, 7, 12), 4, 6
    spots = np.eye(g, d) * 1.5
    values = np.repeat(spots, sizes, axis=0) + rng.uniform(-0.05, 0.05, (60, d))
    first = np.array([0, 30, 41, 48])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vertical, "first_rows", lambda *_: first)
        labels, filled, centres, _ = group(together, values, parties, g)
    assert labels.tolist() == np.repeat(np.arange(g), sizes).tolist()
    np.testing.assert_allclose(centres, means(values, labels, spots), atol=1e-12)
    assert filled.tolist() == fill_clusters(values, labels, centres, 15).tolist()


def test_equal_records_leave_clusters_empty_and_filling_gives_each_its_share(together: Together) -> None:
    labels, filled, _, _ = group(together, np.full((20, 4), 0.25), 2, 4)
    assert set(labels.tolist()) == {0}
    assert np.bincount(filled).tolist() == [5, 5, 5, 5]


def test_rows_in_blocks_go_where_they_go_in_one(together: Together) -> None:
    values = random_numbers(np.random.default_rng(3), 50, 4) / 2.0
    first = np.arange(5)
    found = []
    for cells in (2**20, 60):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(vertical, "first_rows", lambda *_: first)
            patch.setattr(groupwise, "MOST_CELLS", cells)
            labels, filled, _, transcript = group(together, values, 3, 5)
        shapes = {e.shape for e in transcript.entries if e.action == "engine" and e.label == "argmin"}
        assert len(shapes) == 1
        found.append((labels.tolist(), filled.tolist(), shapes))
    assert found[0][:2] == found[1][:2]
    assert found[0][2] == {(50, 5)}
    assert found[1][2] == {(10, 5)}


def test_one_group_needs_no_engine(together: Together) -> None:
    labels, filled, centres, transcript = group(together, random_numbers(np.random.default_rng(4), 9, 4), 2, 1)
    assert set(labels.tolist()) == set(filled.tolist()) == {0}
    assert not any(entry.action == "engine" for entry in transcript.entries)
    np.testing.assert_allclose(centres, 0.0, atol=1e-12)


@pytest.mark.parametrize("wrong", ["argmin", "top"])
def test_an_engine_that_answers_nonsense_is_noticed(together: Together, wrong: str) -> None:
    values = random_numbers(np.random.default_rng(5), 20, 4)
    columns = np.array_split(np.arange(4), 2)

    def play(session: Session, rank: int) -> None:
        real = getattr(session, wrong)

        def off(*arguments: object) -> SharedArray:
            return session.scale(real(*arguments), 7)

        setattr(session, wrong, off)
        kept = ColumnCentres(session, values[:, columns[rank]], 4)
        labels, sizes, _ = cluster_rows(session, kept, 1)
        fill_groups(session, kept, labels, sizes)

    with pytest.raises(PartyError, match="sent or computed wrong"):
        together(play, NAMES[:2], LEAKS)
