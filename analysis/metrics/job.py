"""The job in total: what all its operators cost together, and how far they are from their demand."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # the name all Spark code knows it by

from analysis.metrics.intervals import mean_over_time, percent_of_time, seconds_until


def job(held: DataFrame) -> DataFrame:
    return held.groupBy("run_id").agg(*columns())


def columns() -> list[Column]:
    """job_accuracy adds up what is missing or too much at each operator; job_timeshare is the share of time
    in which any operator has too few, or too many. Null where the demand of some operator is not known."""
    missing = _at_all_operators(lambda each: each["demand"] - each["supply"])
    surplus = _at_all_operators(lambda each: each["supply"] - each["demand"])
    return [
        (F.sum(F.col("job_supply") * seconds_until("done_s")) / 60).alias("job_cost"),
        mean_over_time(missing).alias("job_accuracy_u"),
        mean_over_time(surplus).alias("job_accuracy_o"),
        percent_of_time(missing > 0).alias("job_timeshare_u"),
        percent_of_time(surplus > 0).alias("job_timeshare_o"),
    ]


def _at_all_operators(difference: Callable[[Column], Column]) -> Column:
    total = F.aggregate(
        "by_operator",
        F.lit(0).cast("long"),
        lambda total, each: (
            total + F.when(difference(each) > 0, difference(each)).otherwise(difference(each) * 0)
        ),
    )
    return F.when(F.col("is_whole_job"), total)
