"""The modifications beside a yardstick of the same run, in CPU seconds: ``python benchmarks/speed/modify.py``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.speed.hot_paths import spent  # noqa: E402
from sfumato.core.records import CATEGORY_SCALE, Block, BlockKind, Layout, Records  # noqa: E402
from sfumato.methods.modify import Blocking  # noqa: E402
from sfumato.methods.modify.swap import (  # noqa: E402
    Downgrading,
    Subsampling,
    Swapping,
)

RESULTS = ROOT / "benchmarks" / "results" / "modify.md"
ROWS, TURNS = 50_000, 2
NUMBERS, LABELS = 6, 5


def records_with_gaps(rows: int) -> Records:
    """Six numbers, two of five steps each and two categories, that hang on four causes; all may hold missing cells."""
    rng = np.random.default_rng(7)
    causes = rng.standard_normal((rows, 4))
    columns: list[tuple[str, np.ndarray]] = [
        (f"n{place}", causes @ rng.standard_normal(4) + rng.standard_normal(rows)) for place in range(NUMBERS)
    ]
    columns += [(f"w{place}", np.clip(np.rint(causes[:, place]), -2, 2)) for place in range(2)]
    parts, layout, start = [], list[Block](), 0
    for name, cells in columns:
        parts += [cells, np.zeros(rows)]
        layout.append(Block(name, BlockKind.NUMBER, start, start + 1, (0.0,), 0.0, 1.0))
        layout.append(Block(name, BlockKind.MISSING, start + 1, start + 2))
        start += 2
    for place in range(2):
        label = np.clip(causes[:, place] * 1.5 + 2.5, 0, LABELS - 1).astype(np.int64)
        parts += [*(np.eye(LABELS)[label] * CATEGORY_SCALE).T, np.zeros(rows)]
        layout.append(Block(f"c{place}", BlockKind.CATEGORY, start, start + LABELS, (0.0,) * LABELS))
        layout.append(Block(f"c{place}", BlockKind.MISSING, start + LABELS, start + LABELS + 1))
        start += LABELS + 1
    made: Layout = tuple(layout)
    nothing = np.zeros(rows, dtype=np.int64)
    return Records(np.column_stack(parts), made, nothing, nothing.copy(), "c0")


def _sort(records: Records) -> None:
    for block in records.layout:
        if block.kind is BlockKind.NUMBER:
            np.argsort(records.values[:, block.start], kind="stable")


def _count(records: Records) -> None:
    import pyarrow as pa

    cells = {block.column: records.values[:, block.start] for block in records.layout if block.column in ("w0", "w1")}
    for name in ("c0", "c1"):
        block = next(each for each in records.layout if each.column == name)
        cells[name] = records.values[:, block.where].argmax(axis=1)
    pa.table(cells).group_by(list(cells)).aggregate([([], "count_all")])


def _tree(records: Records) -> None:
    from sklearn.tree import DecisionTreeClassifier

    block = next(each for each in records.layout if each.column == "c0")
    others = [place for place in range(records.values.shape[1]) if not block.start <= place < block.stop]
    label = records.values[:, block.where].argmax(axis=1)
    DecisionTreeClassifier(criterion="entropy", min_samples_leaf=50).fit(records.values[:, others], label)


def main() -> None:
    """Measure each method and what stands beside it, in turns, and write the table."""
    records, few = records_with_gaps(ROWS), records_with_gaps(2_000)
    four = ("c0", "c1", "w0", "w1")
    cases: list[tuple[str, Callable[[Records], object], str, Callable[[Records], object]]] = [
        ("swap, eight columns by rank", _run(Swapping(pass_categories=True)), "sorting them", _sort),
        ("swap in leaves", _run(Swapping(within="leaves")), "scikit-learn's tree", _tree),
        ("sample, a tenth", _run(Subsampling()), "sorting eight columns", _sort),
        ("block, four columns, k 500", _run(Blocking(columns=four, k=500)), "counting rows alike once, Arrow", _count),
        ("downgrade, limit 0.5", _run(Downgrading("c0", limit=0.5)), "scikit-learn's tree", _tree),
    ]
    lines = [
        "# The modifications beside a yardstick of the same run",
        "",
        f"`python benchmarks/speed/modify.py`; {ROWS:,} rows of ten columns, CPU seconds, the best of {TURNS}",
        "turns, on two cores that others used meanwhile. The yardstick is the least that such a method has to do, by a",
        "kept library.",
        "",
        "| method | CPU s | beside | CPU s |",
        "|---|---|---|---|",
    ]
    for name, ours, beside, yardstick in cases:
        ours(few)  # compiles
        times = [(spent(lambda: ours(records)), spent(lambda: yardstick(records))) for _ in range(TURNS)]  # noqa: B023
        own, other = (min(each) for each in zip(*times, strict=True))
        lines.append(f"| {name} | {max(own, 0.0):.2f} | {beside} | {other:.2f} |")
    RESULTS.write_text("\n".join(lines) + "\n", "utf-8")
    print(RESULTS.read_text("utf-8"))


def _run(mechanism: Swapping | Subsampling | Blocking | Downgrading) -> Callable[[Records], object]:
    return lambda records: mechanism.sanitize(records, rng=np.random.default_rng(8))


if __name__ == "__main__":
    main()
