"""What the figures are drawn from: the samples that a scaler judged, numbered as in the thesis.

Samples within the four minutes after a rescaling are discarded and have no number, so that curves jump there.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd

from controller.models.polynomial import Polynomial, Samples, UnfitError, trained

NUMBERS = (
    "workload_per_s", "slow_ratio", "capacity_per_s", "exploration", "foreseen_workload_per_s",
    "foreseen_slow_ratio", "residual",
)  # fmt: skip


def observed(tables: Path, scenario: str) -> pd.DataFrame:
    """Everything that both scalers saw with the first seed, over time: policy, time_s, replicas asked for,
    and what a decision rested on (NUMBERS). Discarded samples have no numbers but the workload."""
    decisions = pd.read_parquet(tables / "decisions.parquet")
    chosen = decisions[decisions["scenario"] == scenario]
    estimates = [json.loads(document) for document in chosen["estimates"]]
    numbers = pd.DataFrame.from_records(estimates, columns=list(NUMBERS), index=chosen.index).astype(float)
    numbers["workload_per_s"] = numbers["workload_per_s"].fillna(chosen["offered_rate_per_s"])
    frame = chosen[["policy", "time_s"]].assign(replicas=chosen["requested"]).join(numbers)
    return frame.reset_index(drop=True)


def runs_of_base(tables: Path) -> pd.DataFrame:
    """One row per run. Means leave out the minutes after a rescaling, but `violation_timeshare` is a share of
    the whole time."""
    metrics, whole = (pd.read_parquet(tables / f"{name}.parquet") for name in ("metrics", "metrics_whole"))
    keys = ["scenario", "policy", "seed"]
    base = metrics[metrics["variation"] == ""].drop(columns="violation_timeshare")
    return base.merge(whole[[*keys, "violation_timeshare"]], on=keys, how="left")


def samples_of(tables: Path, scenario: str, policy: str) -> pd.DataFrame:
    """The samples that a scaler judged, numbered: `sample` is 1, 2, …"""
    seen = observed(tables, scenario)
    judged = seen[(seen["policy"] == policy) & seen["slow_ratio"].notna()].reset_index(drop=True)
    return judged.assign(sample=judged.index + 1)


def explored(samples: pd.DataFrame) -> pd.DataFrame:
    """The samples up to the first model that was relied on: what it was trained with."""
    controlled = samples["exploration"].to_numpy() == 0
    first = int(np.argmax(controlled)) if controlled.any() else len(samples)
    return samples.iloc[:first]


def model_of(exploration: pd.DataFrame) -> Polynomial | None:
    """The model, trained once more as the policy did; None where the samples cannot carry one."""
    rows = Samples(
        *(exploration[name].to_numpy(float) for name in ("workload_per_s", "replicas", "slow_ratio"))
    )
    try:
        return trained(rows)[0]
    except UnfitError:
        return None
