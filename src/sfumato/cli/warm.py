"""Compile the kernels ahead of the first run: ``python -m sfumato.cli.warm``."""

from __future__ import annotations

import time

import rich_click as click

__all__ = ["warm"]


def warm() -> float:
    """Compile the default path, run each grouping once on a small table, and give the seconds it took."""
    import numpy as np
    import pyarrow as pa

    from sfumato.assess.neighbours import nearest
    from sfumato.mechanisms.condense.compact import in_fewer_columns
    from sfumato.mechanisms.condense.mechanism import Condensation
    from sfumato.publish.sanitize import sanitize

    started = time.perf_counter()
    table = pa.table({"age": [20 + row % 50 for row in range(60)], "word": ["a", "b", None] * 20})
    for grouping in ("compact", "mdav", "paper"):
        sanitize(table, Condensation(k=5, grouping=grouping), level="age > 50: 8, else: 5", report=False)
    in_fewer_columns(np.eye(2, 3))
    nearest(np.zeros((2, 1)), np.zeros((1, 1)))
    return time.perf_counter() - started


if __name__ == "__main__":
    click.echo(f"sfumato: the grouping code is compiled ({warm():.1f} s)", err=True)
