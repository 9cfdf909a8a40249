"""Kernels are compiled once and kept on disk."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sfumato.cli.verbs import warm
from sfumato.core.compiled import is_cached
from sfumato.core.groups.discrete import carry_along, place_categories, place_missing
from sfumato.core.groups.generate import generate
from sfumato.methods.condense import paper
from sfumato.methods.condense.paper import segment
from tests.groups.drawn_groups import mixed_records


def test_after_one_call_every_kernel_lies_in_the_cache() -> None:
    rng = np.random.default_rng(1)
    mixed = mixed_records(rng, [5, 6], [(0, 0.2), (3, 0.2)])
    generate(mixed.groups, mixed.layout, rng)
    segment(mixed.values, np.arange(11), 3, rng.permutation(11))
    assert all(is_cached(kernel) for kernel in (place_missing, place_categories, carry_along, paper._form_groups))


def test_warming_up_compiles_what_wide_tables_need(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr("sfumato.methods.condense.compact.in_fewer_columns", lambda values: seen.append(values.shape))
    warm()
    ((rows, columns),) = seen
    assert rows < columns


_COUNTED = """
import numba
from sfumato.methods.condense import leaves, moves, trees, warm
numba.config.OPT = 0
warm.compile_search()
warm.compile_start()
found = {id(each): each for room in (leaves, moves, trees) for each in vars(room).values()}
for each in found.values():
    if hasattr(each, "py_func") and len(each.signatures) > 1:
        print(each.py_func.__qualname__)
"""


@pytest.mark.slow
def test_no_kernel_of_the_default_path_is_compiled_twice(tmp_path: Path) -> None:
    """A plain number here and a counted one there make two kernels of one.

    Only what leaves copy and trees read is compiled for both, `around`.
    """
    told = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _COUNTED],
        env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.split() == ["around"]
