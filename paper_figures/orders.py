"""Orders: who is lower than whom by which metric, as published and by our runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from analysis.statistics import holm, judge_order, paired, pairs_by_seed, signed_rank, welch
from analysis.verdicts import Test, Verdict
from paper_figures.published import Order, Published

Runs = Mapping[Any, pd.DataFrame]
"""By scenario and policy."""

VERDICTS = ("agree", "disagree", "not_significant")


def judged_orders(metrics: pd.DataFrame, published: Published, level: float = 0.05) -> pd.DataFrame:
    """One row per published order; metrics has one row per run.

    p is that of the paper's test, p_holm the same with Holm's correction for all orders of a table, by which
    an order is judged, and p_rank that of signed ranks, to look at beside it.
    """
    ours: Runs = dict(iter(metrics.groupby(["scenario", "policy"], sort=False)))
    rows = [order._asdict() | _tested(ours, order, published.test) for order in published.orders()]
    orders = pd.DataFrame(rows, columns=[*Order._fields, "ours_a", "ours_b", "p", "p_rank", "p_holm"])
    for places in orders.groupby("scenario", sort=False).indices.values():
        orders.loc[places, "p_holm"] = holm(orders.loc[places, "p"])
    orders["verdict"] = [_verdict(order, level) for order in records(orders)]
    return orders


def _verdict(order: Mapping[str, Any], level: float) -> Verdict:
    published, ours = (order["published_a"], order["published_b"]), (order["ours_a"], order["ours_b"])
    return judge_order(*published, *ours, order["p_holm"], level)


def _tested(ours: Runs, order: Order, test: Test) -> dict[str, float]:
    none = pd.DataFrame({"seed": [], order.metric: []})
    of_a, of_b = (ours.get((order.scenario, policy), none) for policy in (order.a, order.b))
    pairs = pairs_by_seed(of_a, of_b, order.metric)
    return {
        "ours_a": of_a[order.metric].astype(float).mean(),
        "ours_b": of_b[order.metric].astype(float).mean(),
        "p": paired(*pairs) if test == "paired" else welch(of_a[order.metric], of_b[order.metric]),
        "p_rank": signed_rank(*pairs),
    }


def counted(orders: pd.DataFrame) -> dict[str, int]:
    """How many orders agree, disagree and are not significant."""
    counts = orders["verdict"].value_counts()
    return {verdict: int(counts.get(verdict, 0)) for verdict in VERDICTS}


def records(orders: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a frame as dictionaries by column name."""
    return [{str(name): value for name, value in row.items()} for row in orders.to_dict("records")]
