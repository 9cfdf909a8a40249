"""Sessions of Spark for tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def session(master: str, **settings: str) -> Iterator[Any]:
    """A session on a master; one on this machine stays for the next test, as it takes long to start."""
    from pyspark.sql import SparkSession

    usual = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.adaptive.coalescePartitions.enabled": "false",  # else one worker would do all cells
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.log.level": "ERROR",
    }
    before = SparkSession.getActiveSession()
    if before is not None and before.sparkContext.master != master:
        before.stop()
    builder = SparkSession.builder.master(master)
    for name, value in {**usual, **settings}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    try:
        yield spark
    finally:
        if not master.startswith("local"):
            spark.stop()
