"""Means and counts of a table by OpenDP, where it is installed: ``opendp_peer.py TABLE.csv QUESTIONS.json EPSILON``.

QUESTIONS holds ``means`` (column: [low, high]) and ``counts`` (column: categories). The budget is split evenly over the
questions. A mean is one of clamped numbers, of a table whose size is public. One JSON document is printed.
"""

from __future__ import annotations

import csv
import json
import sys
import time
from pathlib import Path


def main(table: Path, questions: Path, epsilon: float) -> None:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    with table.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    asked = json.loads(questions.read_text())
    each = epsilon / (len(asked["means"]) + len(asked["counts"]))
    entries: dict[str, object] = {}
    begin = time.process_time()
    for name, (low, high) in asked["means"].items():
        cells = [float(row[name]) for row in rows]
        space = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=len(rows)), dp.symmetric_distance()
        clamped = space >> dp.t.then_clamp((float(low), float(high))) >> dp.t.then_mean()
        measure = dp.binary_search_chain(lambda scale, mean=clamped: mean >> dp.m.then_laplace(scale), 2, each)
        entries[name] = measure(cells)
    for name, categories in asked["counts"].items():
        space = dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance()
        counted = space >> dp.t.then_count_by_categories(categories=categories, null_category=False)
        measure = dp.binary_search_chain(lambda scale, count=counted: count >> dp.m.then_laplace(scale), 1, each)
        entries[name] = measure([row[name] for row in rows])
    entries["cpu"] = time.process_time() - begin
    print(json.dumps(entries))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3]))
