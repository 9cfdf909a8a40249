"""Kernels are compiled once and kept on disk."""

from __future__ import annotations

import numpy as np

from sfumato.compiled import is_cached
from sfumato.condense import segment as segmentation
from sfumato.condense.segment import segment
from sfumato.groups import generate
from sfumato.groups.follow import follow
from sfumato.groups.settle import settle_categories, settle_missing
from tests.groups.drawn_groups import mixed_records


def test_after_one_call_every_kernel_lies_in_the_cache() -> None:
    rng = np.random.default_rng(1)
    mixed = mixed_records(rng, [5, 6], [(0, 0.2), (3, 0.2)])
    generate(mixed.groups, mixed.layout, rng)
    segment(mixed.values, np.arange(11), 3, rng.permutation(11))
    assert all(is_cached(kernel) for kernel in (settle_missing, settle_categories, follow, segmentation._form_groups))
