"""Demand and supply: how many replicas the offered load asked for, and how many ran.

Demand follows from what was offered and what replicas can do, never from what a policy saw.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F  # noqa: N812  # the name all Spark code knows it by

from analysis.schema import RUNS, SAMPLES, check


def with_demand(samples: DataFrame, runs: DataFrame, window_s: float = 60.0) -> DataFrame:
    """Samples with offered_rate_per_s (mean over window_s around the sample), demand and supply.

    The facts of the run that metrics need (duration_s, the objective, kind_shares) come along.
    """
    facts = check(runs, RUNS, "table runs").select(
        "run_id",
        "duration_s",
        "operator",
        "capacity_per_s",
        "n_min",
        "n_max",
        "sla_response_s",
        "sla_grace_s",
        "kind_shares",
    )
    known = check(samples, SAMPLES, "table samples").join(F.broadcast(facts), on="run_id", how="inner")
    # Before any window: what is not asked for afterwards, like the map of replicas, need not be sorted along.
    supply = F.coalesce(F.try_element_at("replicas", F.col("operator")), F.lit(0))
    rated = _with_offered_rate(known.withColumn("supply", supply), window_s)
    demand = replicas_for(F.col("offered_rate_per_s"))
    facts_kept = ("duration_s", "sla_response_s", "sla_grace_s", "kind_shares")
    return rated.select(*SAMPLES.names, *facts_kept, "offered_rate_per_s", demand.alias("demand"), "supply")


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
    half_us = round(window_s * 500_000)
    half_s = half_us / 1_000_000
    run = Window.partitionBy("run_id")
    by_clock = run.orderBy(F.round(F.col("time_s") * 1_000_000).cast("long"))  # such frames want integers
    begin_s, end_s = F.col("time_s") - half_s, F.col("time_s") + half_s
    framed = _with_segments(samples).select(
        "*",
        F.least("duration_s", F.max("time_s").over(run)).alias("horizon_s"),
        _last_segment(by_clock, -half_us).alias("at_begin"),
        _last_segment(by_clock, half_us).alias("at_end"),
    )
    rise = _interpolated("at_end", end_s) - _interpolated("at_begin", begin_s)
    last_s = F.when(F.col("time_s") <= F.col("horizon_s"), F.least(end_s, "horizon_s")).otherwise(end_s)
    length_s = last_s - F.greatest(begin_s, F.lit(0.0))
    return framed.withColumn("offered_rate_per_s", F.when(length_s > 0, rise / length_s))


def _with_segments(samples: DataFrame) -> DataFrame:
    """Adds the stretch of the offered counter that begins at each sample (segment; null where the next sample
    is of the same instant), and that which begins a run, at (0, 0) before the first sample (opening)."""
    run = Window.partitionBy("run_id")
    order = run.orderBy("time_s", "sequence")
    next_s = F.lead("time_s").over(order)
    segment = F.struct(
        F.col("time_s").alias("from_s"),
        F.col("offered_records").alias("from_records"),
        next_s.alias("to_s"),
        F.lead("offered_records").over(order).alias("to_records"),
    )
    has_length = next_s.isNull() | (next_s > F.col("time_s"))
    first_s = F.min("time_s").over(run)
    opening = F.struct(
        F.lit(0.0).alias("from_s"),
        F.lit(0).cast("long").alias("from_records"),
        first_s.alias("to_s"),
        F.min("offered_records").over(run).alias("to_records"),  # counters never fall: that of the first
    )
    return samples.select("*", F.when(has_length, segment).alias("segment"), opening.alias("opening"))


def _last_segment(by_clock: WindowSpec, reach_us: int) -> Column:
    """The counter's stretch that holds reach_us after the current sample; the opening where none does yet.

    The frame starts at the first row because Spark extends such frames row by row; those that end at the last
    row it computes anew for every row.
    """
    begun = F.last("segment", ignorenulls=True).over(
        by_clock.rangeBetween(Window.unboundedPreceding, reach_us)
    )
    return F.coalesce(begun, F.col("opening"))


def _interpolated(segment: str, at_s: Column) -> Column:
    """The counter within a stretch; it stays as it is after the last sample, and before 0."""
    from_s, to_s = F.col(f"{segment}.from_s"), F.col(f"{segment}.to_s")
    from_records, to_records = F.col(f"{segment}.from_records"), F.col(f"{segment}.to_records")
    share = F.greatest((at_s - from_s) / (to_s - from_s), F.lit(0.0))
    gained = F.when(to_s > from_s, (to_records - from_records) * share).otherwise(0.0)
    return from_records + gained
