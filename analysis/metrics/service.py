"""Quality of service: how long records took, how many came too late, how long an objective was missed.

Every record counts once: a sample's response time weighs as many records as were offered until the next.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # the name all Spark code knows it by

from analysis.metrics.intervals import counted_s, percent_of_time, records_that_count


def service(held: DataFrame) -> DataFrame:
    return held.groupBy("run_id").agg(*columns())


def columns() -> list[Column]:
    """late_records and kind_time_s are null where no kind of record has a deadline, violations and their
    timeshares where the run has no objective. The steady ones leave out what falls within sla_grace_s after
    the begin of a reconfiguration, which misses the objective whoever asked for it."""
    came = F.when(F.col("response_mean_ms").isNotNull(), records_that_count())
    timed = F.sum(came)
    late = F.aggregate(F.map_values("late_records"), F.lit(0).cast("long"), lambda total, each: total + each)
    is_missed, was_missed = _above("response_mean_ms"), _above("last_response_mean_ms")
    is_steady, was_steady = is_missed & _out_of_grace("steady_s"), was_missed & _out_of_grace("last_steady_s")
    return [
        *_over_time(),  # first: Spark would take response_mean_ms in it for the alias below
        F.when(timed > 0, F.sum(F.col("response_mean_ms") * came) / timed).alias("response_mean_ms"),
        *_quantiles(),
        F.max(F.when(F.size("late_records") > 0, late)).alias("late_records"),
        _kind_time_s().alias("kind_time_s"),
        percent_of_time(is_missed).alias("violation_timeshare"),
        _begins(is_missed, was_missed).alias("violations"),
        percent_of_time(is_steady).alias("steady_violation_timeshare"),
        _begins(is_steady, was_steady).alias("steady_violations"),
    ]


def _above(response_ms: str) -> Column:
    return F.col(response_ms) > F.col("sla_response_s") * 1000


def _out_of_grace(steady_s: str) -> Column:
    return F.coalesce(F.col(steady_s) >= F.coalesce("sla_grace_s", F.lit(0.0)), F.lit(True))


def _quantiles() -> list[Column]:
    """Of all records of a run. Of those that came while a sample held, half are taken to have needed its
    median, the others times that rise evenly to its 95th percentile and from there to its 99th: for a run
    that never changes that is exact."""
    came = F.when(F.col("response_p99_ms").isNotNull(), records_that_count())
    p50_ms, p95_ms, p99_ms = (F.col(f"response_{name}_ms") for name in ("p50", "p95", "p99"))
    parts = [(p50_ms, 0.50)]
    parts += [(p50_ms + (p95_ms - p50_ms) * step / 5, 0.09) for step in range(1, 6)]
    parts += [(p95_ms + (p99_ms - p95_ms) * step / 2, 0.02) for step in (1, 2)]
    parts += [(p99_ms, 0.01)]
    of_sample = [
        F.struct(time_ms.alias("time_ms"), (came * share).alias("records")) for time_ms, share in parts
    ]
    ordered = F.array_sort(F.flatten(F.collect_list(F.when(came > 0, F.array(*of_sample)))))
    total = F.sum(came)
    return [
        _quantile(ordered, level * total).alias(name)
        for name, level in (("response_p50_ms", 0.50), ("response_p95_ms", 0.95), ("response_p99_ms", 0.99))
    ]


def _over_time() -> list[Column]:
    """The mean response time as a monitor shows it, over time: every second weighs the same, however many
    records came in it."""
    held_s = F.when(F.col("response_mean_ms").isNotNull(), counted_s())
    total_s = F.sum(held_s)
    state = F.struct(F.col("response_mean_ms").alias("time_ms"), held_s.alias("records"))
    ordered = F.array_sort(F.collect_list(F.when(held_s > 0, state)))
    mean_ms = F.when(total_s > 0, F.sum(F.col("response_mean_ms") * held_s) / total_s)
    return [
        mean_ms.alias("monitored_mean_ms"),
        *(
            _quantile(ordered, level * total_s).alias(name)
            for name, level in (("monitored_p50_ms", 0.50), ("monitored_p95_ms", 0.95))
        ),
    ]


def _quantile(ordered: Column, records: Column) -> Column:
    """The time that so many of the records stayed within."""
    nothing = F.struct(F.lit(0.0).alias("records"), F.lit(None).cast("double").alias("time_ms"))
    enough = records * (1 - 1e-9)  # a sum of many parts may fall short of it by rounding

    def add(passed: Column, part: Column) -> Column:
        time_ms = F.when(passed["records"] < enough, part["time_ms"]).otherwise(passed["time_ms"])
        return F.struct((passed["records"] + part["records"]).alias("records"), time_ms.alias("time_ms"))

    return F.aggregate(ordered, nothing, add, lambda passed: passed["time_ms"])


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
