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
    """late_records and kind_time_s are null where no kind of record has a deadline, violations and their
    timeshares where the run has no objective. The steady ones leave out what falls within sla_grace_s after
    the begin of a reconfiguration, which misses the objective whoever asked for it."""
    came = F.when(F.col("response_mean_ms").isNotNull(), F.col("next_offered") - F.col("offered_records"))
    timed = F.sum(came)
    late = F.aggregate(F.map_values("late_records"), F.lit(0).cast("long"), lambda total, each: total + each)
    is_missed, was_missed = _above("response_mean_ms"), _above("last_response_mean_ms")
    is_steady, was_steady = is_missed & _out_of_grace("steady_s"), was_missed & _out_of_grace("last_steady_s")
    return [
        F.when(timed > 0, F.sum(F.col("response_mean_ms") * came) / timed).alias("response_mean_ms"),
        F.max(F.when(F.size("late_records") > 0, late)).alias("late_records"),
        _kind_time_s().alias("kind_time_s"),
        _timeshare(is_missed).alias("violation_timeshare"),
        _begins(is_missed, was_missed).alias("violations"),
        _timeshare(is_steady).alias("steady_violation_timeshare"),
        _begins(is_steady, was_steady).alias("steady_violations"),
    ]


def _above(response_ms: str) -> Column:
    return F.col(response_ms) > F.col("sla_response_s") * 1000


def _out_of_grace(steady_s: str) -> Column:
    return F.coalesce(F.col(steady_s) >= F.coalesce("sla_grace_s", F.lit(0.0)), F.lit(True))


def _timeshare(is_missed: Column) -> Column:
    """In % of the workload's span."""
    missed_s = F.when(is_missed.isNotNull(), is_missed.cast("int")) * seconds_until("duration_s")
    return 100 * F.sum(missed_s) / F.first("duration_s")


def _begins(is_missed: Column, was_missed: Column) -> Column:
    begins = is_missed & ~F.coalesce(was_missed, F.lit(False))
    return F.sum(F.when(begins.isNotNull(), begins.cast("int")))


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
