"""The engine for a cluster; pyspark is imported in this folder alone, and only where it is asked for."""

from __future__ import annotations

from sfumato.engines.spark.parts import ClusterFile, is_spark_frame, number_rows, open_on_spark
from sfumato.engines.spark.run import move_on_spark, run_on_spark, sample_on_spark

__all__ = [
    "ClusterFile",
    "is_spark_frame",
    "move_on_spark",
    "number_rows",
    "open_on_spark",
    "run_on_spark",
    "sample_on_spark",
]
