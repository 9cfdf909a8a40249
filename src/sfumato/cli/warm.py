"""Compile the kernels ahead of the first run: ``python -m sfumato.cli.warm``."""

from __future__ import annotations

import time

import rich_click as click

__all__ = ["warm"]


def warm() -> float:
    """Run the whole path once on a small table and give the seconds it took."""
    import pyarrow as pa

    from sfumato.condense.mechanism import Condensation
    from sfumato.pipeline import sanitize

    started = time.perf_counter()
    ages = [20 + row % 50 for row in range(60)]
    words = ["a", "b", None] * 20
    sanitize(pa.table({"age": ages, "word": words}), Condensation(k=5), level="age > 50: 8, else: 5", report=False)
    return time.perf_counter() - started


if __name__ == "__main__":
    click.echo("sfumato: compiling the grouping code once for this installation ...", err=True)
    click.echo(f"sfumato: done in {warm():.1f} s", err=True)
