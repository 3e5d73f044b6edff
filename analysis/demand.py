"""Demand and supply: how many replicas of each operator the offered load asked for, and how many ran.

Demand follows from what was offered to the operator and what replicas can do, never from what a policy saw.
What is offered to an operator is what entered the job, times the records that come to it for each: what a
bottleneck upstream holds back counts as offered all the same.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F  # noqa: N812  # the name all Spark code knows it by

from analysis.schema import RUNS, SAMPLES, check

_FACTS = ("sla_response_s", "sla_grace_s", "kind_shares")
_PARAMETERS = ("period_s", "skip_first_s", "skip_after_reconfiguration_s")
_WHOLE = ""  # the name of the input of a journal that does not tell inputs apart


def with_demand(samples: DataFrame, runs: DataFrame, window_s: float = 60.0) -> DataFrame:
    """Samples with offered_rate_per_s (mean over window_s around the sample), demand and supply of the
    measured operator, and `by_operator` with the same for each operator of the job.

    job_supply is what ran of all operators together, is_stopped whether one of them had no replica,
    is_whole_job whether by_operator names all of them. The facts of the run that metrics need come along.
    """
    facts = check(runs, RUNS, "table runs").select(
        "run_id", "duration_s", "operator", *_FACTS, *_parameters(), _is_known().alias("is_whole_job"),
        _operators().alias("facts"),
    )  # fmt: skip
    inputs = F.map_keys(F.element_at("facts", 1)["records_per_input"])
    names = F.transform("facts", lambda each: each["name"])
    early = facts.select("run_id", "duration_s", inputs.alias("inputs"), names.alias("names"))
    counted = check(samples, SAMPLES, "table samples").join(F.broadcast(early), on="run_id", how="inner")
    # Before any window: what is not asked for afterwards, like the map of replicas, need not be sorted along.
    rated = _with_offered_rates(_with_counters(counted), window_s)
    late = F.broadcast(facts.drop("duration_s"))
    known = rated.join(late, on="run_id", how="inner").withColumn("by_operator", _by_operator())
    measured = F.element_at(F.filter("by_operator", lambda each: each["operator"] == F.col("operator")), 1)
    return known.withColumn("measured", measured).select(
        *SAMPLES.names, "duration_s", *_FACTS, *_PARAMETERS,
        "measured.offered_rate_per_s", "measured.demand", "measured.supply",
        "by_operator", "job_supply", "is_stopped", "is_whole_job",
    )  # fmt: skip


def _is_known() -> Column:
    return F.coalesce(F.size("operators") > 0, F.lit(False))


def _operators() -> Column:
    """The facts of each operator; an older journal knows only the measured one, and offers it everything."""
    measured = F.struct(
        F.col("operator").alias("name"),
        "capacity_per_s",
        "n_min",
        "n_max",
        F.create_map(F.lit(_WHOLE), F.lit(1.0)).alias("records_per_input"),
    )
    return F.when(_is_known(), F.col("operators")).otherwise(F.array(measured))


def _parameters() -> list[Column]:
    return [F.coalesce(F.col(f"metrics.{name}"), F.lit(0.0)).alias(name) for name in _PARAMETERS]


def _with_counters(samples: DataFrame) -> DataFrame:
    """Adds what entered by each input (entered; null where it is not told of several), and what ran."""
    only = F.when(F.size("inputs") == 1, F.col("offered_records"))
    return samples.select(
        "*",
        F.transform(
            "inputs",
            lambda name: F.coalesce(F.try_element_at("entered_records", name), only),
        ).alias("entered"),
        F.transform("names", lambda name: F.coalesce(F.try_element_at("replicas", name), F.lit(0))).alias(
            "supplies"
        ),
        F.aggregate(F.map_values("replicas"), F.lit(0).cast("long"), lambda total, each: total + each).alias(
            "job_supply"
        ),
        F.exists(F.map_values("replicas"), lambda each: each == 0).alias("is_stopped"),
    )


def _by_operator() -> Column:
    # In a period of its own, nothing is asked for after the workload's end.
    is_over = (F.col("period_s") > 0) & (F.col("time_s") >= F.col("duration_s"))

    def of(each: Column, place: Column) -> Column:
        rate_per_s = _offered_to(each["records_per_input"])
        needed = replicas_for(rate_per_s, each["capacity_per_s"], each["n_min"], each["n_max"])
        demand = F.when(is_over, 0).otherwise(needed)
        return F.struct(
            each["name"].alias("operator"),
            rate_per_s.alias("offered_rate_per_s"),
            demand.alias("demand"),
            F.get("supplies", place).alias("supply"),
        )

    return F.transform("facts", of)


def _offered_to(records_per_input: Column) -> Column:
    shares = F.zip_with(
        "inputs", "rates_per_s", lambda name, rate: F.coalesce(records_per_input[name], F.lit(0.0)) * rate
    )
    return F.aggregate(shares, F.lit(0.0), lambda total, share: total + share)


def replicas_for(rate_per_s: Column, capacity_per_s: Column, n_min: Column, n_max: Column) -> Column:
    """The fewest replicas whose capacity covers a rate, within n_min and n_max; n_max where none do. Null
    where nobody knows the rate, or what replicas can do, unless there is only one choice.

    Capacity may fall as far-away nodes join, so it is the first count that suffices, not a bisection.
    """
    suffices = F.transform(capacity_per_s, lambda capacity: capacity >= rate_per_s)
    first = F.array_position(suffices, True).cast("int")  # 0: none
    most = F.coalesce(n_max, F.size(capacity_per_s))
    within = F.greatest(n_min, F.least(most, first))
    is_known = rate_per_s.isNotNull() & ((F.size(capacity_per_s) > 0) | (n_min == n_max))
    return F.when(is_known, F.when(first == 0, most).otherwise(within))


def _with_offered_rates(samples: DataFrame, window_s: float) -> DataFrame:
    """Adds rates_per_s: the rise of each input's counter over a window around each sample, divided by the
    window's true length.

    The counters are interpolated at both ends of the window, so the rate does not depend on where samples
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
    at_end, at_begin = _interpolated("at_end", end_s), _interpolated("at_begin", begin_s)
    rises = F.zip_with(at_end, at_begin, lambda until, since: until - since)
    last_s = F.when(F.col("time_s") <= F.col("horizon_s"), F.least(end_s, "horizon_s")).otherwise(end_s)
    length_s = last_s - F.greatest(begin_s, F.lit(0.0))
    rates_per_s = F.transform(rises, lambda rise: rise / length_s)
    return framed.withColumn("rates_per_s", F.when(length_s > 0, rates_per_s))


def _with_segments(samples: DataFrame) -> DataFrame:
    """Adds the stretch of the counters that begins at each sample (segment; null where the next sample
    is of the same instant), and that which begins a run, at (0, 0) before the first sample (opening)."""
    run = Window.partitionBy("run_id")
    order = run.orderBy("time_s", "sequence")
    next_s = F.lead("time_s").over(order)
    segment = F.struct(
        F.col("time_s").alias("from_s"),
        F.col("entered").alias("from_records"),
        next_s.alias("to_s"),
        F.lead("entered").over(order).alias("to_records"),
    )
    has_length = next_s.isNull() | (next_s > F.col("time_s"))
    first_s = F.min("time_s").over(run)
    opening = F.struct(
        F.lit(0.0).alias("from_s"),
        F.transform("entered", lambda _: F.lit(0).cast("long")).alias("from_records"),
        first_s.alias("to_s"),
        F.min("entered").over(run).alias("to_records"),  # counters never fall: those of the first
    )
    return samples.select("*", F.when(has_length, segment).alias("segment"), opening.alias("opening"))


def _last_segment(by_clock: WindowSpec, reach_us: int) -> Column:
    """The counters' stretch that holds reach_us after the current sample; the opening where none does yet.

    The frame starts at the first row because Spark extends such frames row by row; those that end at the last
    row it computes anew for every row.
    """
    begun = F.last("segment", ignorenulls=True).over(
        by_clock.rangeBetween(Window.unboundedPreceding, reach_us)
    )
    return F.coalesce(begun, F.col("opening"))


def _interpolated(segment: str, at_s: Column) -> Column:
    """The counters within a stretch; they stay as they are after the last sample, and before 0."""
    from_s, to_s = F.col(f"{segment}.from_s"), F.col(f"{segment}.to_s")
    from_records, to_records = F.col(f"{segment}.from_records"), F.col(f"{segment}.to_records")
    share = F.greatest((at_s - from_s) / (to_s - from_s), F.lit(0.0))

    def at(since: Column, until: Column) -> Column:
        return since + F.when(to_s > from_s, (until - since) * share).otherwise(0.0)

    return F.zip_with(from_records, F.coalesce(to_records, from_records), at)
