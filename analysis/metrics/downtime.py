"""Downtime: how long an operator had no running replica; of a run, how long any of its operators had none.

What a run leaves out after reconfigurations counts here: downtime is nowhere else.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # the name all Spark code knows it by

from analysis.metrics.intervals import percent_of_time


def downtime(held: DataFrame) -> DataFrame:
    return held.groupBy("run_id").agg(*columns())


def columns() -> list[Column]:
    return [percent_of_time(F.col("is_stopped"), since="begins_to_count_s").alias("downtime_timeshare")]
