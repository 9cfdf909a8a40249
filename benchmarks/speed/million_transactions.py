"""A million transactions, drawn on the spot: seconds and memory of every pass; called by ``itemsets.py``.

``python benchmarks/speed/million_transactions.py`` prints it alone.
"""

from __future__ import annotations

import resource
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

TRANSACTIONS, ITEMS, MEAN = 1_000_000, 40_000, 7.0


def draw(path: Path) -> int:
    """Write transactions of items of Zipf's frequencies as a FIMI file, and say how many entries they have."""
    rng = np.random.default_rng(5)
    sizes = rng.poisson(MEAN, TRANSACTIONS) + 1
    chances = 1.0 / np.arange(1, ITEMS + 1)
    items = rng.choice(ITEMS, int(sizes.sum()), p=chances / chances.sum())
    rows = np.repeat(np.arange(TRANSACTIONS), sizes)
    keys = np.unique(rows * ITEMS + items)
    words = (keys % ITEMS).astype(str)
    ends = np.flatnonzero(np.diff(np.append(keys // ITEMS, -1)))
    marks = np.full(len(words), " ", dtype="<U1")
    marks[ends] = "\n"
    path.write_text("".join(np.char.add(words, marks).tolist()))
    return len(keys)


def steps() -> tuple[dict[str, Any], list[str]]:
    """Lines of a table, a step each, and what was drawn."""
    from sfumato.core.itemsets.mining import frequent_itemsets
    from sfumato.transactions.estimate import estimate_itemsets
    from sfumato.transactions.mechanism import TransactionRandomization, read_rules
    from sfumato.transactions.rules import RuleHiding
    from sfumato.transactions.table import read_transactions

    lines: list[str] = []

    def timed(name: str, run: Callable[[], Any]) -> Any:
        begin = time.process_time()
        done = run()
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        lines.append(f"| {name} | {time.process_time() - begin:.1f} | {memory:,} |\n")
        print(lines[-1], end="", flush=True)
        return done

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "million.dat")
        with ProcessPoolExecutor(1) as apart:  # its memory is not that of the steps
            entries = apart.submit(draw, path).result()
        table = timed("read the FIMI file", lambda: read_transactions(path))
    transactions, rng = table.transactions, np.random.default_rng(1)
    found = timed("mine at 0.5 %", lambda: frequent_itemsets(transactions, TRANSACTIONS // 200))
    timed("mine at 0.1 %", lambda: frequent_itemsets(transactions, TRANSACTIONS // 1000))
    for law in (
        TransactionRandomization("flip", keep=0.9, insert=0.0002),
        TransactionRandomization("uniform", keep=0.6),
    ):
        done = timed(f"randomize by {law.operator}", lambda law=law: law.sanitize(table, rng=rng))
        operator, sets = law.law(transactions), done.table.transactions
        estimated = timed(
            "estimate at 1 %, up to 3 items",
            lambda law=operator, sets=sets: estimate_itemsets(law, sets, None, 0.01, longest=3),
        )
        print(f"{len(estimated)} sets estimated")
    pairs = [(some, count) for some, count in zip(found.as_tuples(), found.counts, strict=True) if len(some) == 2]
    (one, other), count = max(pairs, key=lambda each: each[1])
    confidence = 0.9 * count / transactions.counts[one]
    how = RuleHiding("consequent", 0.005, float(confidence))
    text = f"{table.labels[one]} -> {table.labels[other]}"
    limits = {"min_support": how.min_support, "min_confidence": how.min_confidence}
    rules = timed("read a rule", lambda: read_rules([text], table, **limits))
    timed("hide it, and once more at random", lambda: how.sanitize(table, rules=rules, rng=rng))
    return {"items": transactions.width, "entries": entries}, lines


if __name__ == "__main__":
    steps()
