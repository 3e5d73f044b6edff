"""Provisioning accuracy and timeshare, as SPEC RG defines them, over the span of the workload [0, T].

With demand d(t) and supply s(t), what runs at t:
accuracy_u = ∫ max(d - s, 0) dt / T and accuracy_o = ∫ max(s - d, 0) dt / T, in replicas;
timeshare_u and timeshare_o: the share of T in which d > s and s > d, in %.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # the name all Spark code knows it by

from analysis.metrics.intervals import seconds_until


def elasticity(held: DataFrame) -> DataFrame:
    return held.groupBy("run_id").agg(*columns())


def columns() -> list[Column]:
    seconds = seconds_until("duration_s")
    duration_s = F.first("duration_s")
    missing = F.greatest(F.col("demand") - F.col("supply"), F.lit(0))
    surplus = F.greatest(F.col("supply") - F.col("demand"), F.lit(0))
    return [
        (F.sum(missing * seconds) / duration_s).alias("accuracy_u"),
        (F.sum(surplus * seconds) / duration_s).alias("accuracy_o"),
        (100 * F.sum(F.signum(missing) * seconds) / duration_s).alias("timeshare_u"),
        (100 * F.sum(F.signum(surplus) * seconds) / duration_s).alias("timeshare_o"),
    ]
