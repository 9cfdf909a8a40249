"""Compiling the kernels of a report in a second process, while the first still makes the release."""

from __future__ import annotations

import atexit
import contextvars
import os
import subprocess
import sys
import threading
import time
from importlib import import_module

from sfumato.core.compiled import share_cached
from sfumato.core.progress import OutOfTime, tell

__all__ = ["compile_ahead", "compile_apart", "compile_report", "share_compiled", "wait_for_report"]

_MODULES = (
    "sfumato.core.neighbours",
    "sfumato.assess.risk.estimates",
    "sfumato.assess.attacks.singling",
    "sfumato.core.itemsets.mining",
)
_LOOK = 0.2  # seconds between two looks at how far it is
_running: list[subprocess.Popen[bytes]] = []  # one at most


def compile_apart() -> None:
    """Compile in a second process what a report needs and is not on disk yet, and wait: it takes much memory."""
    compile_ahead(least_cores=1)
    wait_for_report()


def compile_ahead(*, least_cores: int = 2) -> None:
    """Start compiling what a report needs and is not on disk yet, once a process, and tell how far it is.

    Where no second process can be started, or there are fewer cores, the kernels compile when they are called.
    """
    if _running or not sys.executable or (os.cpu_count() or 1) < least_cores or share_compiled() == 1.0:
        return
    command = "from sfumato.assess.warm import compile_report; compile_report()"
    try:
        _running.append(
            subprocess.Popen(
                [sys.executable, "-P", "-c", command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        )
    except OSError:
        return
    atexit.register(_stop, _running[0])
    context = contextvars.copy_context()
    threading.Thread(target=lambda: context.run(_watch, _running[0]), daemon=True).start()


def share_compiled() -> float:
    """Share of a report's kernels that are on disk."""
    for name in _MODULES:
        import_module(name)
    return share_cached(*_MODULES)


def wait_for_report() -> None:
    """Wait until the second process, if there is one, has compiled all."""
    for process in _running:
        process.wait()


def compile_report() -> None:
    """Call each kernel of a report once, those that it needs first before the others."""
    import numpy as np

    from sfumato.core.neighbours import nearest, nearest_without_each_column

    nearest(np.zeros((2, 1)), np.zeros((1, 1)))

    from sfumato.core.itemsets import Transactions
    from sfumato.core.itemsets.mining import frequent_itemsets

    frequent_itemsets(Transactions.of([[0, 1, 2], [0, 1], [2]]), 1)

    from sfumato.assess.attacks.singling import Predicates, SortedRows, find_fits

    nearest_without_each_column(np.zeros((2, 2)), np.zeros((1, 2)), np.arange(2), 1)
    none = np.zeros((1, 1), dtype=np.int64)
    find_fits(Predicates(none, none, np.zeros((1, 1))), SortedRows.of_matrix(np.zeros((1, 1))))


def _watch(process: subprocess.Popen[bytes]) -> None:
    """Tell how many kernels are compiled until all are, or nobody wants to know any more."""
    try:
        while process.poll() is None:
            tell("compiling", share_compiled())
            time.sleep(_LOOK)
        tell("compiling", 1.0)
    except OutOfTime:
        return


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
