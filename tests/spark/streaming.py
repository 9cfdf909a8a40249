"""A driver that goes on with a stream on this machine, for a test that kills it; run as a program."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import sfumato as sf
from sfumato.stream import publish as publishing
from tests.spark.sessions import session

COLUMNS = "pay double, age long, sex string, who string"


def stream(spark: Any, folder: Path) -> Any:
    """The files of a folder, one each batch."""
    return spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).parquet(str(folder / "files"))


def take_in_all(spark: Any, folder: Path, name: str = "run") -> None:
    """Take in and publish all files that are there."""
    query = sf.stream(folder / f"{name}.db").on_spark(
        stream(spark, folder),
        folder / name,
        checkpoint=folder / f"{name}-checkpoint",
        person_key=folder / "key",
        cells=4,
        once=True,
        report=False,
    )
    query.awaitTermination()


def hold(folder: Path) -> None:
    """Wait before the folder of a batch is written, and once more after it, while a file says so."""
    write = publishing.write_batch

    def holding(place: Path, *args: Any, batch: int, **options: Any) -> None:
        _wait(folder / f"before-{batch}")
        write(place, *args, batch=batch, **options)
        _wait(folder / f"after-{batch}")

    publishing.write_batch = holding  # type: ignore[assignment]


def _wait(mark: Path) -> None:
    if mark.exists():
        mark.with_name(f"at-{mark.name}").touch()
    while mark.exists():
        time.sleep(0.05)


if __name__ == "__main__":
    place = Path(sys.argv[1])
    hold(place)
    with session("local[2]", **{"spark.sql.shuffle.partitions": "1"}) as spark:
        take_in_all(spark, place)
