"""What agreement could be at best.

A published table is one draw: run the same experiment again, and some orders turn. So even a perfect
simulator would not agree with all of them. Here our own runs stand for the truth: tables are drawn from them,
each value from as many runs as the paper had, and judged as the published one is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from paper_figures.orders import records
from paper_figures.published import Published

DRAWS = 2000
DRAW_SEED = 20130501  # the same draws every time
INFORMATIVE = 0.95  # an order that so many tables show: the published one should, too
NEAR = 2.0  # standard deviations

Cells = dict[tuple[str, str, str], NDArray[np.float64]]
"""By scenario, policy and metric: the value of each drawn table."""


@dataclass(frozen=True)
class Ceiling:
    """How many orders of a drawn table agree with our runs: the mean, and 5 and 95 % of the draws."""

    agree: float
    low: float
    high: float
    informative: int  # orders that nearly every drawn table shows


def with_ceiling(
    orders: pd.DataFrame, metrics: pd.DataFrame, published: Published, level: float
) -> tuple[pd.DataFrame, Ceiling]:
    """The judged orders with `expected`, the share of drawn tables in which each of them agrees."""
    if orders.empty:
        return orders.assign(expected=pd.Series(dtype=float)), Ceiling(0.0, 0.0, 0.0, 0)
    drawn = _drawn(metrics, published)
    agrees = np.array([_agrees(order, drawn, level) for order in records(orders)])
    counts = agrees.sum(axis=0)
    expected = agrees.mean(axis=1)
    low, high = np.quantile(counts, [0.05, 0.95])
    informative = int((expected >= INFORMATIVE).sum())
    return orders.assign(expected=expected), Ceiling(
        float(counts.mean()), float(low), float(high), informative
    )


def _drawn(metrics: pd.DataFrame, published: Published) -> Cells:
    """Whole runs are drawn, so that metrics of one run stay together."""
    rng = np.random.default_rng(DRAW_SEED)
    cells: Cells = {}
    for (scenario, policy), runs in metrics.groupby(["scenario", "policy"], sort=False):
        chosen = rng.integers(len(runs), size=(DRAWS, published.runs_per_value))
        for metric in published.metrics:
            cells[str(scenario), str(policy), metric] = (
                runs[metric].to_numpy(dtype=float)[chosen].mean(axis=1)
            )
    return cells


def _agrees(order: Mapping[str, Any], drawn: Cells, level: float) -> NDArray[np.bool_]:
    """As judge_order does, for all drawn tables at once."""
    nothing = np.full(DRAWS, np.nan)
    a, b = (drawn.get((order["scenario"], order[side], order["metric"]), nothing) for side in ("a", "b"))
    if not order["p_holm"] < level:
        return np.asarray(a == b)
    return np.asarray(np.sign(b - a) == np.sign(order["ours_b"] - order["ours_a"]))


def cells(metrics: pd.DataFrame, published: Published) -> pd.DataFrame:
    """Every published value beside ours; `away` is how many of our standard deviations lie between them: of a
    mean of as many runs as the published value has. Not known where our runs do not differ at all."""
    rows = []
    for scenario, table in published.tables.items():
        for policy, values in table.items():
            runs = metrics[(metrics["scenario"] == scenario) & (metrics["policy"] == policy)]
            for metric, value in values.items():
                ours = runs[metric].astype(float)
                deviation = ours.std(ddof=1) / np.sqrt(published.runs_per_value)
                away = (value - ours.mean()) / deviation if deviation > 0 else np.nan
                rows.append((scenario, policy, metric, value, ours.mean(), deviation, away))
    names = ["scenario", "policy", "metric", "published", "ours", "deviation", "away"]
    return pd.DataFrame(rows, columns=names).astype(dict.fromkeys(names[3:], float))


def near(found: pd.DataFrame) -> int:
    """How many published values are within two standard deviations of ours."""
    return int((found["away"].abs() <= NEAR).sum())
