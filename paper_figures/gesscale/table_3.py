"""Table III: the seven metrics of the four autoscalers, published and ours.

Ours: mean ± half of the 95 % confidence interval (Student) over all seeds. How much of the latency shows as
idle CPU is not published: all of it in ours, and, below, none of it.
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
OURS = {"": "ours", "cpu_mechanism_off": "ours, no idle CPU"}


def load(tables: Path) -> pd.DataFrame:
    published = load_published(Path(__file__).parent)
    metrics = pd.read_parquet(tables / "metrics.parquet")
    rows = []
    for policy in published.policies:
        said = {SYMBOLS[metric]: f"{published.table[policy][metric]:g}" for metric in published.metrics}
        rows.append({"Algorithm": published.label(policy), "": "published"} | said)
        for variation, title in OURS.items():
            runs = metrics[(metrics["variation"] == variation) & (metrics["policy"] == policy)]
            found = {SYMBOLS[metric]: ours(metric, runs[metric]) for metric in published.metrics}
            rows.append({"Algorithm": published.label(policy), "": title} | found)
    return pd.DataFrame(rows)


def ours(metric: str, values: pd.Series) -> str:
    found, label = estimate(values.astype(float)), LABELS[metric]
    mean = label.text(found.mean)
    return mean if found.n < 2 else f"{mean} ± {label.text((found.high - found.low) / 2)}"
