"""Orders: who is lower than whom by which metric, as published and by our runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.statistics import judge_order, welch
from paper_figures.published import Published

VERDICTS = ("agree", "disagree", "not_significant")


def judged_orders(metrics: pd.DataFrame, published: Published, level: float = 0.05) -> pd.DataFrame:
    """One row per metric and pair of policies; metrics has one row per run."""
    ours = _values(metrics, published)
    rows = []
    for metric in published.metrics:
        for a, b in published.pairs:
            said_a, said_b = published.table[a][metric], published.table[b][metric]
            runs_a, runs_b = ours[a, metric], ours[b, metric]
            rows.append(
                {
                    "metric": metric,
                    "a": a,
                    "b": b,
                    "published_a": said_a,
                    "published_b": said_b,
                    "ours_a": runs_a.mean() if runs_a.size else np.nan,
                    "ours_b": runs_b.mean() if runs_b.size else np.nan,
                    "p": welch(runs_a, runs_b),
                    "verdict": judge_order(said_a, said_b, runs_a, runs_b, level),
                }
            )
    return pd.DataFrame(rows)


def _values(metrics: pd.DataFrame, published: Published) -> Mapping[tuple[str, str], NDArray[np.float64]]:
    return {
        (policy, metric): metrics.loc[metrics["policy"] == policy, metric].to_numpy(dtype=float)
        for policy in published.policies
        for metric in published.metrics
    }


def counted(orders: pd.DataFrame) -> dict[str, int]:
    """How many orders agree, disagree and are not significant."""
    counts = orders["verdict"].value_counts()
    return {verdict: int(counts.get(verdict, 0)) for verdict in VERDICTS}


def records(orders: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a frame as dictionaries by column name."""
    return [{str(name): value for name, value in row.items()} for row in orders.to_dict("records")]
