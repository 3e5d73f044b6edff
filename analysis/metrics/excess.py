"""Excess computation time: how long the backlog lasted after the workload's end, as a share of the
span T over which metrics are taken."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # the name all Spark code knows it by


def excess(held: DataFrame) -> DataFrame:
    return held.groupBy("run_id").agg(*columns())


def columns() -> list[Column]:
    """excess_time is a lower bound where finished is false: the backlog outlived the samples."""
    excess_s = F.greatest(F.first("done_s") - F.first("duration_s"), F.lit(0.0))
    return [
        (excess_s / F.first("span_s")).alias("excess_time"),
        F.first("finished").alias("finished"),
    ]
