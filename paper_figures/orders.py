"""Orders: who is lower than whom by which metric, as published and by our runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.statistics import judge_order, welch
from paper_figures.published import Order, Published

Runs = Mapping[Any, pd.DataFrame]
"""By scenario and policy."""

VERDICTS = ("agree", "disagree", "not_significant")


def judged_orders(metrics: pd.DataFrame, published: Published, level: float = 0.05) -> pd.DataFrame:
    """One row per published order; metrics has one row per run."""
    ours: Runs = dict(iter(metrics.groupby(["scenario", "policy"], sort=False)))
    rows = []
    for order in published.orders():
        runs_a, runs_b = (_values(ours, order, policy) for policy in (order.a, order.b))
        judged = {
            "ours_a": runs_a.mean() if runs_a.size else np.nan,
            "ours_b": runs_b.mean() if runs_b.size else np.nan,
            "p": welch(runs_a, runs_b),
            "verdict": judge_order(order.published_a, order.published_b, runs_a, runs_b, level),
        }
        rows.append(order._asdict() | judged)
    return pd.DataFrame(rows)


def _values(ours: Runs, order: Order, policy: str) -> NDArray[np.float64]:
    runs = ours.get((order.scenario, policy))
    return np.array([]) if runs is None else runs[order.metric].to_numpy(dtype=float)


def counted(orders: pd.DataFrame) -> dict[str, int]:
    """How many orders agree, disagree and are not significant."""
    counts = orders["verdict"].value_counts()
    return {verdict: int(counts.get(verdict, 0)) for verdict in VERDICTS}


def records(orders: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a frame as dictionaries by column name."""
    return [{str(name): value for name, value in row.items()} for row in orders.to_dict("records")]
