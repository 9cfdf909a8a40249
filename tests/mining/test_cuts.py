"""Cutting groups finer: nothing of the whole is lost."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.core.errors import BadInput, OptionError
from sfumato.core.groups import Groups, summarize
from sfumato.mining import GroupKMeans, cut_groups
from tests.groups.drawn_groups import merge


def random_groups(seed: int, g: int, size: int) -> Groups:
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(g), size)
    return summarize(rng.normal(size=(g * size, 3)) + labels[:, None], labels, np.full(g * size, size))


def all_in_one(groups: Groups) -> Groups:
    whole = groups.take(slice(0, 1))
    for group in range(1, len(groups)):
        whole = merge(whole, groups.take(slice(group, group + 1)))
    return whole


@pytest.mark.parametrize("size", [2, 5, 16])
@pytest.mark.parametrize("times", [0, 1, 3])
def test_pieces_merge_to_what_was_cut(size: int, times: int) -> None:
    groups = random_groups(1, 6, size)
    before, after = all_in_one(groups), all_in_one(cut_groups(groups, times=times))
    assert before.count == after.count
    np.testing.assert_allclose(after.mean, before.mean, atol=1e-9)
    np.testing.assert_allclose(after.scatter, before.scatter, atol=1e-8)


@pytest.mark.parametrize(("size", "times", "pieces"), [(8, 3, 8), (8, 5, 8), (5, 2, 4), (1, 3, 1)])
def test_groups_are_cut_down_to_single_records_and_no_further(size: int, times: int, pieces: int) -> None:
    finer = cut_groups(random_groups(2, 4, size), times=times)
    assert len(finer) == 4 * pieces
    assert finer.count.min() >= 1


def test_a_cut_never_raises_the_scatter_nor_the_inertia_of_one_cluster() -> None:
    groups = random_groups(3, 10, 12)
    finer = cut_groups(groups)
    assert finer.ssq < groups.ssq
    whole = [GroupKMeans(n_clusters=1).fit(these).inertia_ for these in (groups, finer)]
    np.testing.assert_allclose(whole[0], whole[1], rtol=1e-9)


def test_bad_cuts_are_refused() -> None:
    groups = random_groups(4, 2, 5)
    with pytest.raises(OptionError, match="times is -1"):
        cut_groups(groups, times=-1)
    with pytest.raises(BadInput, match="0 groups"):
        cut_groups(groups.take(slice(0, 0)))
