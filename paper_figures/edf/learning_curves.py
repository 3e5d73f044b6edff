"""What the figure and the table of learning over many runs share."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

MODEL, FREE = "mb_res", "ql_res"
LABEL = {MODEL: "model-based", FREE: "Q-learning"}
COLOUR = {MODEL: "#0072B2", FREE: "#D55E00"}
RUN_DAYS = 0.5  # of operation; at ten times its speed, the load of five days
SMOOTHED = 10  # runs whose mean cost is compared


def learning(tables: Path) -> pd.DataFrame:
    """One row per run; none in a build without what takes long."""
    path = tables / "learning.parquet"
    return pd.read_parquet(path) if path.exists() else pd.DataFrame()


def curves(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Mean, lowest and highest cost of the seeds, by policy and number of the run."""
    return {
        policy: rows[rows["policy"] == policy].groupby("run")["cost"].agg(["mean", "min", "max"])
        for policy in (FREE, MODEL)
    }


def settled_cost(rows: pd.DataFrame) -> float:
    """Of model-based learning, over its last runs."""
    return float(curves(rows)[MODEL]["mean"].tail(SMOOTHED).mean())


def runs_until(rows: pd.DataFrame, within: float) -> int | None:
    """After how many runs Q-learning's cost, as a mean over ten runs, is at most so much above model-based
    learning's; None: in none of them."""
    smoothed = curves(rows)[FREE]["mean"].rolling(SMOOTHED, min_periods=1).mean()
    reached = smoothed.index[smoothed <= (1 + within) * settled_cost(rows)]
    return int(reached[0]) if len(reached) else None
