"""Samples as intervals: from when to when each sample's state holds."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  # the name all Spark code knows it by


def intervals(samples: DataFrame) -> DataFrame:
    """Adds begin_s, end_s and next_offered (null for the last sample of a run), last_response_mean_ms and
    last_steady_s (null for the first), steady_s, done_s and finished.

    steady_s is how long ago the last reconfiguration began; null where there was none yet.

    done_s is when everything offered had been processed, not before the workload's end; where that never
    happened it is the time of the last sample, and finished is false. What ran before the first sample is
    taken to be what ran at it.
    """
    run = Window.partitionBy("run_id")
    order = run.orderBy("time_s", "sequence")
    is_done = (F.col("time_s") >= F.col("duration_s")) & (F.col("lag_records") <= 0)
    all_done_s = F.min(F.when(is_done, F.col("time_s"))).over(run)
    is_change = F.col("reconfigurations") > F.coalesce(F.lag("reconfigurations").over(order), F.lit(0))
    changed = samples.withColumn("change_s", F.when(is_change, F.col("time_s")))
    changed_s = F.last("change_s", ignorenulls=True).over(order)
    return changed.withColumn("steady_s", F.col("time_s") - changed_s).select(
        "*",
        F.when(F.row_number().over(order) == 1, F.lit(0.0)).otherwise(F.col("time_s")).alias("begin_s"),
        F.lead("time_s").over(order).alias("end_s"),
        F.lead("offered_records").over(order).alias("next_offered"),
        F.lag("response_mean_ms").over(order).alias("last_response_mean_ms"),
        F.lag("steady_s").over(order).alias("last_steady_s"),
        F.coalesce(all_done_s, F.max("time_s").over(run)).alias("done_s"),
        all_done_s.isNotNull().alias("finished"),
    )


def seconds_until(limit: str) -> Column:
    """How long each state holds, cut off at a limit; the last state holds until the limit."""
    end_s = F.least(F.coalesce("end_s", limit), limit)
    return F.greatest(end_s - F.col("begin_s"), F.lit(0.0))
