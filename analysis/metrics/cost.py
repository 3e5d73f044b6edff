"""Cost: one unit per replica of an operator and minute, over the whole run, the excess period included.

That of a run is the measured operator's, as the papers define it; job_cost (job.py) counts all operators.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # the name all Spark code knows it by

from analysis.metrics.intervals import seconds_until


def cost(held: DataFrame) -> DataFrame:
    return held.groupBy("run_id").agg(*columns())


def columns() -> list[Column]:
    """Replicas that are stopped cost nothing, and none are charged once everything has been processed."""
    return [(F.sum(F.col("supply") * seconds_until("done_s")) / 60).alias("cost")]
