"""Provisioning accuracy and timeshare, as SPEC RG defines them, over the span of the workload [0, T].

T is shorter by what the run leaves out (intervals.py).

With demand d(t) and supply s(t), what runs at t:
accuracy_u = ∫ max(d - s, 0) dt / T and accuracy_o = ∫ max(s - d, 0) dt / T, in replicas;
timeshare_u and timeshare_o: the share of T in which d > s and s > d, in %.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # the name all Spark code knows it by

from analysis.metrics.intervals import mean_over_time, percent_of_time


def elasticity(held: DataFrame) -> DataFrame:
    return held.groupBy("run_id").agg(*columns())


def columns() -> list[Column]:
    missing = F.greatest(F.col("demand") - F.col("supply"), F.lit(0))
    surplus = F.greatest(F.col("supply") - F.col("demand"), F.lit(0))
    return [
        mean_over_time(missing).alias("accuracy_u"),
        mean_over_time(surplus).alias("accuracy_o"),
        percent_of_time(missing > 0).alias("timeshare_u"),
        percent_of_time(surplus > 0).alias("timeshare_o"),
    ]
