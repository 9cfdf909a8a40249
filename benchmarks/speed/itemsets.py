"""CPU seconds of frequent itemset mining beside mlxtend and pyfim, on the same transactions in the same run.

``python benchmarks/speed/itemsets.py --peers PYTHON`` writes benchmarks/results/itemsets.md. PYTHON is that of an
environment with mlxtend, pandas and pyfim; the peers run there, one after the other, so that ours stays without them.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
RESULT = ROOT / "benchmarks" / "results" / "itemsets.md"
CASES = [
    ("mushroom.dat", (0.4, 0.2, 0.1)),
    ("retail.dat.gz", (0.01, 0.001, 0.0005)),
    ("T10I4D100K.dat.gz", (0.01, 0.002, 0.0005)),
]
ROUNDS = 9
MOST_ENTRIES = 3_000_000  # of a table of 0 and 1 that mlxtend is given: it needs one, and takes minutes beyond
HEAD = """# Frequent itemsets: CPU seconds beside other miners

`python benchmarks/speed/itemsets.py --peers PYTHON`; {machine}, one thread, best of {rounds} rounds, which take
turns. Ours is `core.itemsets.frequent_itemsets` on transactions in compressed sparse rows, and what it returns are
arrays; pyfim 6.28 (MIT, C, by C. Borgelt) is given lists and returns lists of tuples, mlxtend 0.25 (BSD-3, Python) is
given a Boolean data frame and returns one; reading the file and making that form is not timed. mlxtend is run where a
case takes it less than minutes (retail and T10I4D100K as
Boolean frames do not). All find the same sets, but that pyfim leaves
out one of mushroom: the item that every transaction holds, alone.

| transactions | support | sets | ours | pyfim eclat | pyfim fpgrowth | mlxtend fpgrowth | fastest other / ours |
| --- | --- | --- | --- | --- | --- | --- | --- |
"""
TAIL = """
Chosen: our own. Of sets whose transactions all hold a further item (mushroom has many) the larger ones are written down
and not counted. It needs no compiler at installation (pyfim comes as C sources) and the report's rule measures use the
same arrays.

## A million transactions

Drawn on the spot: {transactions:,} transactions of {items:,} items, {entries:,} entries, with item frequencies as steep
as those of click streams (Zipf). CPU seconds of each step, and the largest memory of the process after it.

| step | seconds | MB |
| --- | --- | --- |
"""


def read_lists(name: str) -> list[list[int]]:
    path = Path(os.environ["SFUMATO_DATA"]) / name
    with gzip.open(path, "rt") if name.endswith(".gz") else path.open() as file:
        return [[int(word) for word in line.split()] for line in file]


def best(run: Callable[[], Any], rounds: int = ROUNDS) -> tuple[float, int]:
    times = []
    for _ in range(rounds):
        begin = time.process_time()
        found = run()
        times.append(time.process_time() - begin)
    return min(times), len(found)


def peers(name: str, supports: Iterable[float]) -> None:
    """Run in the environment of the peers: a line of JSON for each support."""
    import fim  # type: ignore[import-not-found]
    import pandas as pd
    from mlxtend.frequent_patterns import fpgrowth  # type: ignore[import-not-found]
    from mlxtend.preprocessing import TransactionEncoder  # type: ignore[import-not-found]

    lists = read_lists(name)
    encoder = TransactionEncoder().fit(lists)
    frame: Any = None
    if len(lists) * len(encoder.columns_) <= MOST_ENTRIES:
        frame = pd.DataFrame(encoder.transform(lists), columns=list(map(str, encoder.columns_)))
    for support in supports:
        line: dict[str, Any] = {"support": support}
        for miner in ("eclat", "fpgrowth"):
            mine = getattr(fim, miner)
            line[miner] = best(lambda mine=mine, support=support: mine(lists, supp=100 * support, zmin=1))
        if frame is not None and support >= 0.2:
            line["mlxtend"] = best(lambda support=support: fpgrowth(frame, min_support=support), 1)
        print(json.dumps(line), flush=True)


def compare(python: Path) -> str:
    from sfumato.core.itemsets import Transactions, least_count
    from sfumato.core.itemsets.mining import frequent_itemsets

    frequent_itemsets(Transactions.of([[0, 1]]), 1)
    lines = []
    for name, supports in CASES:
        command = [str(python), __file__, "--case", name, *map(str, supports)]
        told = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
        transactions = Transactions.of(read_lists(name))
        for line in map(json.loads, told):
            least = least_count(line["support"], len(transactions))
            ours, sets = best(lambda transactions=transactions, least=least: frequent_itemsets(transactions, least))
            others = [line.get(miner) for miner in ("eclat", "fpgrowth", "mlxtend")]
            shown = ["-" if other is None else f"{other[0]:.3f}" for other in others]
            ratio = min(other[0] for other in others if other) / ours
            stem = name.partition(".")[0]
            told_ours = f"{sets:,} | {ours:.3f}"
            lines.append(f"| {stem} | {line['support']:.2%} | {told_ours} | {' | '.join(shown)} | {ratio:.1f} |")
            print(lines[-1], flush=True)
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", type=Path)
    parser.add_argument("--case", nargs="+")
    asked = parser.parse_args()
    if asked.case:
        peers(asked.case[0], map(float, asked.case[1:]))
        return
    from million_transactions import TRANSACTIONS, steps

    cores = f"{os.cpu_count()} shared cores, Python {platform.python_version()}"
    text = HEAD.format(machine=cores, rounds=ROUNDS) + compare(asked.peers)
    facts, lines = steps()
    RESULT.write_text(text + TAIL.format(transactions=TRANSACTIONS, **facts) + "".join(lines), encoding="utf-8")


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    main()
