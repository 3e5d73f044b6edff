"""Samples as intervals: from when to when each sample's state holds."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  # the name all Spark code knows it by


def intervals(samples: DataFrame) -> DataFrame:
    """Adds begin_s, end_s and next_offered (null for the last sample of a run), last_response_mean_ms and
    last_steady_s (null for the first), steady_s, span_s, counts_from_s, counts_until_s, done_s and finished.

    steady_s is how long ago the last reconfiguration began; null where there was none yet.

    span_s is over which time means are taken: the workload's, or a period of its own. counts_until_s is its
    end, or where everything was processed before: then nothing is demanded, and nothing supplied.

    counts_from_s is from when on a state counts in means: not while the run begins or a reconfiguration is
    young, where the run says so. begins_to_count_s leaves out the first of these only.

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
    begin_s = F.when(F.row_number().over(order) == 1, F.lit(0.0)).otherwise(F.col("time_s"))
    skip_s = F.col("skip_after_reconfiguration_s")
    young_until_s = F.when(skip_s > 0, changed_s + skip_s)  # null, which greatest() ignores, before any
    has_period = F.col("period_s") > 0
    done_s = F.coalesce(all_done_s, F.max("time_s").over(run))
    span_s = F.when(has_period, F.col("period_s")).otherwise(F.col("duration_s"))
    return changed.withColumn("steady_s", F.col("time_s") - changed_s).select(
        "*",
        begin_s.alias("begin_s"),
        F.greatest(begin_s, "skip_first_s", young_until_s).alias("counts_from_s"),
        F.greatest(begin_s, "skip_first_s").alias("begins_to_count_s"),
        F.lead("time_s").over(order).alias("end_s"),
        F.lead("offered_records").over(order).alias("next_offered"),
        F.lag("response_mean_ms").over(order).alias("last_response_mean_ms"),
        F.lag("steady_s").over(order).alias("last_steady_s"),
        span_s.alias("span_s"),
        F.when(has_period, F.least(span_s, done_s)).otherwise(span_s).alias("counts_until_s"),
        done_s.alias("done_s"),
        all_done_s.isNotNull().alias("finished"),
    )


def mean_over_time(value: Column) -> Column:
    """Of what holds within the span, without what the run leaves out."""
    return F.sum(value * counted_s()) / _counted_span_s()


def percent_of_time(is_so: Column, since: str = "counts_from_s") -> Column:
    """The share of the same span; null where it is never known."""
    return 100 * F.sum(is_so.cast("int") * counted_s(since)) / _counted_span_s(since)


def counted_s(since: str = "counts_from_s") -> Column:
    """How long each state holds within that span."""
    end_s = F.least(F.coalesce("end_s", "counts_until_s"), "counts_until_s")
    return F.greatest(end_s - F.col(since), F.lit(0.0))


def _counted_span_s(since: str = "counts_from_s") -> Column:
    span_s = F.first("span_s") - F.sum(seconds_until("counts_until_s") - counted_s(since))
    return F.when(span_s > 0, span_s)


def records_that_count() -> Column:
    """Of those that came while each state held; null for the last state."""
    end_s, begin_s = F.col("end_s"), F.col("begin_s")
    counted_s = F.greatest(end_s - F.col("counts_from_s"), F.lit(0.0))
    share = F.when(end_s > begin_s, counted_s / (end_s - begin_s)).otherwise(1.0)
    return (F.col("next_offered") - F.col("offered_records")) * share


def seconds_until(limit: str) -> Column:
    """How long each state holds, cut off at a limit; the last state holds until the limit."""
    end_s = F.least(F.coalesce("end_s", limit), limit)
    return F.greatest(end_s - F.col("begin_s"), F.lit(0.0))
