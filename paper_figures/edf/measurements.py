"""What takes long and no campaign has: learning over 200 runs of twelve hours, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from pyspark.sql import SparkSession

from analysis.warm_starts import chained
from controller.experiment import Experiment, Run, runs_of
from controller.policies.edf import Edf
from controller.policies.edf.costs import Costs

POLICIES = ("ql_res", "mb_res")
RUNS = 200


def measured_in_full(
    experiment: Experiment, seeds: Sequence[int], spark: SparkSession, kept: Path
) -> dict[str, pd.DataFrame]:
    def costs(run: Run) -> Costs:  # within, so that workers of a cluster get it as it is
        return Costs(Edf(**run.policy_parameters))

    return {"learning": chained(spark, runs_of(experiment, POLICIES, seeds), RUNS, costs, kept)}
