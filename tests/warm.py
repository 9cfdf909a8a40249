"""Compile the kernels that tests call before the processes of a run would each compile them: ``python -m tests.warm``.

It takes a minute after a kernel has changed, and no time otherwise.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

__all__ = ["warm_all"]

_ROOT = Path(__file__).parents[1]
_ROOMS = [_ROOT / "src" / "sfumato" / room for room in ("methods/condense", "methods/chain", "core/groups")]
_STAMP = _ROOMS[0] / "__pycache__" / "warm"  # beside what is compiled: with it it goes


def warm_all() -> None:
    """Go each way to a kernel once: groupings, reports, streams, benchmarks, and the steps that tests take alone."""
    import numpy as np
    import pyarrow as pa

    import sfumato as sf
    import tests.conftest  # noqa: F401 - how property tests draw
    from benchmarks.model_tree import ModelTree
    from sfumato.cli.verbs import warm
    from sfumato.methods.condense.compact import in_fewer_columns
    from tests.condense import test_centroid_index, test_dynamic, test_trees
    from tests.condense.streams import draw_arrivals

    warm()
    rng = np.random.default_rng(0)
    table = pa.table({"x": rng.normal(size=40).round(2), "y": rng.normal(size=40).round(2), "class": ["a", "b"] * 20})
    for grouping in ("modified", "holistic"):
        sf.sanitize(table, sf.Condensation(k=5, grouping=grouping), report=False)
    sf.sanitize(table, sf.ClasswiseCondensation(k=5), target="class")
    sf.sanitize(table, sf.Chain(k=4, leaf=8), target="class", report=False)
    in_fewer_columns(rng.normal(size=(5, 9)))
    arrivals = draw_arrivals(1, 60)
    arrivals.started(k=2).absorb(arrivals.values, arrivals.levels)
    ModelTree().fit(rng.normal(size=(60, 2)), rng.normal(size=60))
    test_dynamic.test_the_longest_axis_is_the_leading_eigenvector()
    test_dynamic.test_absorbing_a_record_gives_the_statistics_of_the_larger_group()
    test_dynamic.test_merging_the_halves_gives_back_the_group_and_they_are_those_of_split_groups()
    test_dynamic.test_a_group_splits_at_equality_also_after_odd_splits_have_made_fractions()
    test_dynamic.test_the_strict_test_asks_for_twice_the_highest_level()
    test_centroid_index.test_the_index_answers_like_brute_force_while_centroids_move_and_split()
    test_centroid_index.test_the_cache_answers_like_brute_force_while_centroids_move_and_split()
    test_trees.test_the_first_principal_cut_is_across_the_longest_axis()
    test_trees.test_another_seed_gives_another_random_tree()


def _sources() -> str:
    """Digest of every file that has a kernel, and of the rooms whose kernels call each other; and of the Python."""
    digest = hashlib.sha256(sys.version.encode())
    for folder in ("src", "benchmarks", "tests"):
        for path in sorted((_ROOT / folder).rglob("*.py")):
            text = path.read_bytes()
            if path.parent in _ROOMS or b"sfumato.core.compiled" in text:
                digest.update(text)
    return digest.hexdigest()


if __name__ == "__main__" and not (_STAMP.is_file() and _STAMP.read_text() == _sources()):
    warm_all()
    _STAMP.parent.mkdir(exist_ok=True)
    _STAMP.write_text(_sources())
