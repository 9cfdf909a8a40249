"""Compiling the kernels of the default path ahead of their first use, in two processes at once."""

from __future__ import annotations

import logging
import os
import subprocess
import sys

import numpy as np

from sfumato.core.compiled import fixed, is_cached
from sfumato.core.groups import summarize
from sfumato.core.groups.discrete import carry_along, place_categories, place_missing
from sfumato.core.groups.generate import generate
from sfumato.core.records import CATEGORY_SCALE, Block, BlockKind
from sfumato.methods.condense.compact import WorkerThreads, first_grouping
from sfumato.methods.condense.leaves import (
    GroupedRecords,
    Leaves,
    Search,
    empty_results,
    improve_leaves,
    start_leaves,
)
from sfumato.methods.condense.trees import Span, principal_tree, random_tree

__all__ = ["compile_ahead", "compile_search", "compile_start"]

_SEARCH = (improve_leaves,)
_START = (random_tree, principal_tree, start_leaves, place_missing, place_categories, carry_along)


def compile_ahead() -> bool:
    """Compile what is not yet on disk, with a message; return whether anything was compiled.

    Two processes share the work and leave it in Numba's cache. They optimize less: for these kernels that takes three
    quarters of the time and was measured to run no slower. Where a process cannot be started, or finds another
    package, the kernels compile when they are called.
    """
    jobs = [
        name
        for name, kernels in (("compile_search", _SEARCH), ("compile_start", _START))
        if not all(is_cached(kernel) for kernel in kernels)
    ]
    if not jobs or not sys.executable:
        return bool(jobs)
    logging.getLogger("sfumato").warning(
        "compiling the grouping code once for this installation, less than a minute ..."
    )
    running = [
        subprocess.Popen(
            [sys.executable, "-P", "-c", f"from sfumato.methods.condense.warm import {job}; {job}()"],
            env=os.environ | {"NUMBA_OPT": "2"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for job in jobs
    ]
    try:
        for process in running:
            process.wait()
    finally:
        for process in running:
            process.kill()
    return True


def compile_search() -> None:
    """Call the kernel of a search round once."""
    values, levels = _sample()
    starts, groups = np.arange(0, len(values) + 1, 5), len(values) // 5
    bounds = np.array([0, groups])
    leaves = Leaves(np.arange(groups), bounds, starts[bounds])
    records, made = GroupedRecords(values, levels, np.arange(len(values)), starts), empty_results(1, *values.shape)
    improve_leaves(records, leaves, 0, 1, Search(1, 1, 1, 5, np.uint64(1)), made)


def compile_start() -> None:
    """Call the kernels of the first grouping and of generation once."""
    values, levels = _sample()
    first_grouping(values, levels, WorkerThreads(1))
    bounds = np.empty(len(values) + 1, dtype=np.int64)
    centres, weight = values.copy(), levels.copy()
    random_tree(centres, weight, (32, 1024), np.uint64(1), np.arange(200), np.empty(200), Span(0, 200, -1), bounds)
    layout = (
        Block("number", BlockKind.NUMBER, 0, 1, (0.0,)),
        Block("category", BlockKind.CATEGORY, 1, 3, (0.0, 0.0)),
        Block("category", BlockKind.MISSING, 3, 4),
    )
    rows = np.zeros((6, 4))
    rows[:, 0] = np.arange(6.0)
    rows[[0, 1, 2, 3], [1, 2, 1, 2]] = CATEGORY_SCALE
    rows[4:, 3] = 1.0
    groups = summarize(rows, np.zeros(6, dtype=np.int64), np.full(6, 6))
    generate(groups, layout, np.random.default_rng(0))


def _sample() -> tuple[np.ndarray, np.ndarray]:
    values, levels = np.random.default_rng(0).normal(size=(200, 2)), np.full(200, 5)
    return fixed(values, np.float64), fixed(levels, np.int64)
