"""Tables 3 to 5: the five metrics of one scenario, published and ours."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from analysis.metrics.labels import label_of
from paper_figures.campaign import BASE
from paper_figures.ekf.deviations import published_sd
from paper_figures.published import load as load_published

NAMES = {
    "instance_time_s": "Total VM time [1000 VM-s]",
    "reconfigurations": "Scaling events",
    "kind_time_s.image": "Image processing time [s]",
    "kind_time_s.query": "Query processing time [s]",
    "late_records": "SLA violations [1000]",
}


def aggregate(tables: Path, scenario: str) -> pd.DataFrame:
    published = load_published(Path(__file__).parent)
    metrics = pd.read_parquet(tables / "metrics.parquet")
    base = metrics[(metrics["variation"] == BASE) & (metrics["scenario"] == scenario)]
    rows = []
    for metric, name in NAMES.items():
        for origin in ("published", "ours"):
            row = {"Metric": name, "": origin}
            for policy in published.policies:
                if origin == "published":
                    mean = published.tables[scenario][policy][metric]
                    deviation = published_sd(scenario, policy, metric)
                else:
                    values = base.loc[base["policy"] == policy, metric].astype(float)
                    mean, deviation = values.mean(), values.std(ddof=1)
                row[f"{published.label(policy)} (σ)"] = _text(metric, mean, deviation)
            rows.append(row)
    return pd.DataFrame(rows)


def _text(metric: str, mean: float, deviation: float) -> str:
    label = label_of(metric)
    return label.text(mean) if pd.isna(deviation) else f"{label.text(mean)} ({label.text(deviation)})"
