"""Quality of service: how long records took, how many came too late, how long an objective was missed.

Every record counts once: a sample's response time weighs as many records as were offered until the next.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # the name all Spark code knows it by

from analysis.metrics.intervals import seconds_until


def service(held: DataFrame) -> DataFrame:
    return held.groupBy("run_id").agg(*columns())


def columns() -> list[Column]:
    """late_records and kind_time_s are null where no kind of record has a deadline, violation_timeshare and
    violations where the run has no objective."""
    came = F.when(F.col("response_mean_ms").isNotNull(), F.col("next_offered") - F.col("offered_records"))
    timed = F.sum(came)
    late = F.aggregate(F.map_values("late_records"), F.lit(0).cast("long"), lambda total, each: total + each)
    is_missed = F.col("response_mean_ms") > F.col("sla_response_s") * 1000
    missed_s = F.when(is_missed.isNotNull(), is_missed.cast("int")) * seconds_until("duration_s")
    begins = is_missed & ~F.coalesce(
        F.col("last_response_mean_ms") > F.col("sla_response_s") * 1000, F.lit(False)
    )
    return [
        F.when(timed > 0, F.sum(F.col("response_mean_ms") * came) / timed).alias("response_mean_ms"),
        F.max(F.when(F.size("late_records") > 0, late)).alias("late_records"),
        _kind_time_s().alias("kind_time_s"),
        (100 * F.sum(missed_s) / F.first("duration_s")).alias("violation_timeshare"),
        F.sum(F.when(begins.isNotNull(), begins.cast("int"))).alias("violations"),
    ]


def _kind_time_s() -> Column:
    """Kind -> the mean time of its records. Counters never fall, so the last sample has the largest."""
    last = F.max_by(
        F.struct("time_in_job_s", "kind_shares", "offered_records"), F.struct("time_s", "sequence")
    )
    return F.map_zip_with(
        last["time_in_job_s"],
        last["kind_shares"],
        lambda _, time_s, share: time_s / (share * last["offered_records"]),
    )
