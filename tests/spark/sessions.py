"""Sessions of Spark for tests, and waiting for what they do."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

LIMIT = 300  # seconds until whatever is waited for must have come


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


def wait_for(found: Callable[[], Any], over: Callable[[], bool]) -> Any:
    """What is found once it is there; fails where that takes long, or where what should bring it is over."""
    end = time.monotonic() + LIMIT
    while not (it := found()):
        assert time.monotonic() < end, "it did not come"
        assert not over(), "the run ended before it came"
        time.sleep(0.1)
    return it
