"""Rows of Table 1: published and ours, one below the other."""

from __future__ import annotations

from math import isnan
from pathlib import Path

import pandas as pd

from paper_figures.campaign import BASE
from paper_figures.published import load as load_published

COLUMNS = {
    "monitored_mean_ms": ("Mean (ms)", 1),
    "monitored_p50_ms": ("P50 (ms)", 1),
    "monitored_p95_ms": ("P95 (ms)", 1),
    "mean_instances": ("Replicas", 2),
    "downtime_timeshare": ("Downtime (%)", 2),
    "violation_timeshare": ("R_max violation (%)", 2),
}


def both(tables: Path, name: str) -> pd.DataFrame:
    """Every policy twice: as published, and the mean of our runs in that table."""
    published = load_published(Path(__file__).parent)
    metrics = pd.read_parquet(tables / f"{name}.parquet")
    base = metrics[metrics["variation"] == BASE]
    rows = []
    for policy in published.policies:
        ours = base[base["policy"] == policy]
        rows.append({"Policy": published.label(policy), "": "published"} | _cells(published.table[policy]))
        means = {metric: float(ours[metric].astype(float).mean()) for metric in COLUMNS}
        rows.append({"Policy": published.label(policy), "": "ours"} | _cells(means))
    return pd.DataFrame(rows)


def _cells(values: dict[str, float]) -> dict[str, str]:
    return {
        title: "–" if isnan(values[metric]) else f"{values[metric]:,.{digits}f}"
        for metric, (title, digits) in COLUMNS.items()
    }
