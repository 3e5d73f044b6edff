"""Metrics of runs. One file per family; each is a function DataFrame -> DataFrame, one row per run.

What is said of replicas in `metrics_by_run` is said of the measured operator, as the papers define it, or,
where the name begins with job_, of all operators; `metrics_by_operator` says it of each.

All integrate truth samples over time: a sample's state holds until the next one, however far that is.
Each family also gives its columns, so that `metrics_by_run` computes all of them in a single pass.
"""

from __future__ import annotations

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # the name all Spark code knows it by

from analysis.demand import with_demand
from analysis.metrics import (
    cost,
    downtime,
    elasticity,
    excess,
    instances,
    job,
    processed,
    reconfigurations,
    service,
)
from analysis.metrics.intervals import intervals, mean_over_time
from analysis.schema import RUNS, check

FAMILIES = (elasticity, excess, reconfigurations, cost, processed, service, instances, downtime, job)
OF_AN_OPERATOR = (elasticity, cost, downtime)
IDENTITY = ("run_id", "experiment", "policy", "workload", "seed", "variation")


def metrics_by_run(samples: DataFrame, runs: DataFrame, window_s: float = 60.0) -> DataFrame:
    """All metrics, one row per run; those of a run without samples are null."""
    held = intervals(with_demand(samples, runs, window_s))
    columns = [column for family in FAMILIES for column in family.columns()]
    metrics = held.groupBy("run_id").agg(*columns)
    identity = check(runs, RUNS, "table runs").select(*IDENTITY)
    joined = identity.join(metrics, on="run_id", how="left")
    return joined.withColumn("finished", F.coalesce("finished", F.lit(False)))


def metrics_by_operator(samples: DataFrame, runs: DataFrame, window_s: float = 60.0) -> DataFrame:
    """What can be said of one operator, one row per run and operator."""
    held = intervals(with_demand(samples, runs, window_s))
    each = held.drop("operator", "offered_rate_per_s", "demand", "supply", "is_stopped")
    of_operators = each.select("*", F.inline("by_operator"))
    columns = [column for family in OF_AN_OPERATOR for column in family.columns()]
    rate_per_s = mean_over_time(F.col("offered_rate_per_s")).alias("offered_rate_per_s")
    metrics = (
        of_operators.withColumn("is_stopped", F.col("supply") == 0)
        .groupBy("run_id", "operator")
        .agg(rate_per_s, *columns)
    )
    identity = check(runs, RUNS, "table runs").select(*IDENTITY)
    return identity.join(metrics, on="run_id", how="inner")


def flattened(metrics: pd.DataFrame) -> pd.DataFrame:
    """One column per kind of records, kind_time_s.<kind>, instead of one that holds dictionaries."""
    kinds = pd.DataFrame.from_records([value or {} for value in metrics["kind_time_s"]], index=metrics.index)
    return metrics.drop(columns="kind_time_s").join(kinds.add_prefix("kind_time_s."))
