"""Table III: the seven metrics of the four autoscalers, published and ours.

Ours: mean ± half of the 95 % confidence interval (Student) over all seeds.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from analysis.metrics.labels import LABELS
from analysis.statistics import estimate
from paper_figures.published import load as load_published

SYMBOLS = {
    "accuracy_o": "accuracy_O",
    "accuracy_u": "accuracy_U",
    "timeshare_o": "timeshare_O (%)",
    "timeshare_u": "timeshare_U (%)",
    "excess_time": "excess time",
    "reconfigurations": "#reconf.",
    "cost": "cost",
}


def load(tables: Path) -> pd.DataFrame:
    published = load_published(Path(__file__).parent)
    metrics = pd.read_parquet(tables / "metrics.parquet")
    base = metrics[metrics["variation"] == ""]
    rows = []
    for policy in published.policies:
        runs = base[base["policy"] == policy]
        said = {SYMBOLS[metric]: f"{published.table[policy][metric]:g}" for metric in published.metrics}
        found = {SYMBOLS[metric]: ours(metric, runs[metric]) for metric in published.metrics}
        rows.append({"Algorithm": published.label(policy), "": "published"} | said)
        rows.append({"Algorithm": published.label(policy), "": "ours"} | found)
    return pd.DataFrame(rows)


def ours(metric: str, values: pd.Series) -> str:
    found, label = estimate(values.astype(float)), LABELS[metric]
    mean = label.text(found.mean)
    return mean if found.n < 2 else f"{mean} ± {label.text((found.high - found.low) / 2)}"
