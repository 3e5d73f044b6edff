"""Demand and supply: how many replicas the offered load asked for, and how many ran.

Demand follows from what was offered and what replicas can do, never from what a policy saw.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F  # noqa: N812  # the name all Spark code knows it by

from analysis.schema import RUNS, SAMPLES, check


def with_demand(samples: DataFrame, runs: DataFrame, window_s: float = 60.0) -> DataFrame:
    """Samples with offered_rate_per_s (mean over window_s around the sample), demand and supply.

    The facts of the run that metrics need (duration_s) come along.
    """
    facts = check(runs, RUNS, "table runs").select(
        "run_id", "duration_s", "operator", "capacity_per_s", "n_min", "n_max"
    )
    known = check(samples, SAMPLES, "table samples").join(F.broadcast(facts), on="run_id", how="inner")
    supply = F.coalesce(F.try_element_at("replicas", F.col("operator")), F.lit(0))
    rated = _with_offered_rate(known, window_s)
    return rated.select(
        *SAMPLES.names,
        "duration_s",
        "offered_rate_per_s",
        replicas_for(F.col("offered_rate_per_s")).alias("demand"),
        supply.alias("supply"),
    )


def replicas_for(rate_per_s: Column) -> Column:
    """The fewest replicas whose capacity covers a rate, within n_min and n_max; n_max where none do.

    Capacity may fall as far-away nodes join, so it is the first count that suffices, not a bisection.
    """
    suffices = F.transform("capacity_per_s", lambda capacity: capacity >= rate_per_s)
    first = F.array_position(suffices, True).cast("int")  # 0: none
    most = F.coalesce("n_max", F.size("capacity_per_s"))
    within = F.greatest("n_min", F.least(most, first))
    return F.when(rate_per_s.isNotNull(), F.when(first == 0, most).otherwise(within))


def _with_offered_rate(samples: DataFrame, window_s: float) -> DataFrame:
    """The counter's rise over a window around each sample, divided by the window's true length.

    The counter is interpolated at both ends of the window, so the rate does not depend on where samples
    happen to lie: one taken a second after another would otherwise measure a second of noise. The window
    is cut off at 0 and at the end of the workload (or of the samples, where a run was aborted).
    """
    half_ms = round(window_s * 500)
    half_s = half_ms / 1000
    clock_ms = F.round(F.col("time_s") * 1000).cast("long")  # frames by value want whole numbers
    run = Window.partitionBy("run_id")
    forward, backward = run.orderBy(clock_ms), run.orderBy(clock_ms.desc())
    begin_s, end_s = F.col("time_s") - half_s, F.col("time_s") + half_s
    framed = samples.select(
        "*",
        F.least("duration_s", F.max("time_s").over(run)).alias("horizon_s"),
        _last_point(forward, -half_ms).alias("below_begin"),
        _last_point(forward, half_ms).alias("below_end"),
        _last_point(backward, half_ms).alias("above_begin"),
        _last_point(backward, -half_ms).alias("above_end"),
    )
    offered_by_begin = _interpolated("below_begin", "above_begin", begin_s)
    rise = _interpolated("below_end", "above_end", end_s) - offered_by_begin
    last_s = F.when(F.col("time_s") <= F.col("horizon_s"), F.least(end_s, "horizon_s")).otherwise(end_s)
    length_s = last_s - F.greatest(begin_s, F.lit(0.0))
    return framed.withColumn("offered_rate_per_s", F.when(length_s > 0, rise / length_s))


def _last_point(order: WindowSpec, reach_ms: int) -> Column:
    """The last point of the counter, in this order, at most reach_ms beyond the current sample.

    Frames start at the first row because Spark extends such frames row by row; those that end at the last
    row it computes anew for every row.
    """
    point = F.struct("time_s", F.col("offered_records").alias("records"))
    return F.last(point).over(order.rangeBetween(Window.unboundedPreceding, reach_ms))


def _interpolated(below: str, above: str, at_s: Column) -> Column:
    """The counter between two points: it starts at (0, 0), and stays as it is after the last point."""
    below_s = F.coalesce(F.col(f"{below}.time_s"), F.lit(0.0))
    below_records = F.coalesce(F.col(f"{below}.records"), F.lit(0))
    span_s = F.col(f"{above}.time_s") - below_s
    gained = F.col(f"{above}.records") - below_records
    share = F.greatest((at_s - below_s) / span_s, F.lit(0.0))
    return below_records + F.when(span_s > 0, gained * share).otherwise(0.0)
