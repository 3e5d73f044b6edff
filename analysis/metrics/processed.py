"""What was processed by the end of the workload."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # the name all Spark code knows it by


def processed(held: DataFrame) -> DataFrame:
    return held.groupBy("run_id").agg(*columns())


def columns() -> list[Column]:
    """processed_ratio counts against all that was offered; it is null where nothing was."""
    by_end = F.max(F.when(F.col("time_s") <= F.col("duration_s"), F.col("processed_records")))
    offered = F.max("offered_records")
    return [
        by_end.alias("processed_records"),
        F.when(offered > 0, by_end / offered).alias("processed_ratio"),
    ]
