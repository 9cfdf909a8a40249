"""The engine for a cluster; pyspark is imported in this folder alone, and only if it is asked for."""

from __future__ import annotations

from sfumato.engines.spark.parts import ClusterFile, is_spark_frame, open_on_spark
from sfumato.engines.spark.run import ClusterRows

__all__ = ["ClusterFile", "ClusterRows", "is_spark_frame", "open_on_spark"]
