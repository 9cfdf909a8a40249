"""The engine for a cluster; pyspark is imported in this folder alone, and only where it is asked for."""

from __future__ import annotations

from sfumato.engines.spark.cells import run_on_spark
from sfumato.engines.spark.file import ClusterFile, open_on_spark
from sfumato.engines.spark.move import move_on_spark, sample_on_spark
from sfumato.engines.spark.parts import is_spark_frame, number_rows

__all__ = [
    "ClusterFile",
    "is_spark_frame",
    "move_on_spark",
    "number_rows",
    "open_on_spark",
    "run_on_spark",
    "sample_on_spark",
]
