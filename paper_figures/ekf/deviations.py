"""The published standard deviations, and Welch's test from means and deviations alone."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml
from scipy.stats import ttest_ind_from_stats

from paper_figures.published import Order


@cache
def _deviations() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(Path(__file__).with_suffix(".yml").read_text(encoding="utf-8"))
    return found


def published_sd(scenario: str, policy: str, metric: str) -> float:
    return float(_deviations()["tables"][scenario][policy][metric])


def published_runs() -> int:
    return int(_deviations()["runs"])


def published_p(order: Order) -> float:
    """The two-sided p that the paper's table gives for a pair."""
    runs = published_runs()
    found = ttest_ind_from_stats(
        order.published_a,
        published_sd(order.scenario, order.a, order.metric),
        runs,
        order.published_b,
        published_sd(order.scenario, order.b, order.metric),
        runs,
        equal_var=False,
    )
    return float(found.pvalue)
