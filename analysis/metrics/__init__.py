"""Metrics of runs. One file per family; each is a function DataFrame -> DataFrame, one row per run.

All integrate truth samples over time: a sample's state holds until the next one, however far that is.
Each family also gives its columns, so that `metrics_by_run` computes all of them in a single pass.
"""

from __future__ import annotations

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # the name all Spark code knows it by

from analysis.demand import with_demand
from analysis.metrics import cost, elasticity, excess, instances, processed, reconfigurations, service
from analysis.metrics.intervals import intervals
from analysis.schema import RUNS, check

FAMILIES = (elasticity, excess, reconfigurations, cost, processed, service, instances)
IDENTITY = ("run_id", "experiment", "policy", "workload", "seed", "variation")


def metrics_by_run(samples: DataFrame, runs: DataFrame, window_s: float = 60.0) -> DataFrame:
    """All metrics, one row per run; those of a run without samples are null."""
    held = intervals(with_demand(samples, runs, window_s))
    columns = [column for family in FAMILIES for column in family.columns()]
    metrics = held.groupBy("run_id").agg(*columns)
    identity = check(runs, RUNS, "table runs").select(*IDENTITY)
    joined = identity.join(metrics, on="run_id", how="left")
    return joined.withColumn("finished", F.coalesce("finished", F.lit(False)))


def flattened(metrics: pd.DataFrame) -> pd.DataFrame:
    """One column per kind of records, kind_time_s.<kind>, instead of one that holds dictionaries."""
    kinds = pd.DataFrame.from_records([value or {} for value in metrics["kind_time_s"]], index=metrics.index)
    return metrics.drop(columns="kind_time_s").join(kinds.add_prefix("kind_time_s."))
