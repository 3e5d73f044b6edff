"""Instances: what was allocated, whether it served or not. Boots, stops and standby are paid for, too."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # the name all Spark code knows it by

from analysis.metrics.intervals import mean_over_time, seconds_until


def instances(held: DataFrame) -> DataFrame:
    return held.groupBy("run_id").agg(*columns())


def columns() -> list[Column]:
    """instance_time_s until everything is processed; mean_instances over the span of the workload, without
    those on standby, which mean_standby counts."""
    used = F.col("allocated") - F.coalesce("standby", F.lit(0))
    return [
        F.sum(F.col("allocated") * seconds_until("done_s")).alias("instance_time_s"),
        mean_over_time(used).alias("mean_instances"),
        mean_over_time(F.col("standby")).alias("mean_standby"),
    ]
