"""Does it pay to know the latency? Policies that do against those that do not.

Measured on a real Flink, means over the runs of each. Latency-aware: the nearest node joins and the
farthest leaves, and (Gesscale) the model knows the largest round trip. Fewer is better, except for what was
processed when the load ended.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from analysis.metrics.labels import label_of
from paper_figures.measured import METRICS
from paper_figures.published import load as load_published

PAIRS = (("thr_nlaware", "thr_nlunaware"), ("gesscale", "mdl_nlunaware"))
COMPARED = ("processed_ratio", "excess_time", "reconfigurations", "cost", "response_mean_ms")


def load(tables: Path) -> pd.DataFrame:
    if not (tables / METRICS).exists():
        return pd.DataFrame()
    measured = pd.read_parquet(tables / METRICS)
    return pd.DataFrame(
        [
            _compared(
                scenario, runs[runs["policy"] == aware], runs[runs["policy"] == unaware], aware, unaware
            )
            for scenario, runs in measured.groupby("scenario", sort=False)
            for aware, unaware in PAIRS
            if {aware, unaware} <= set(runs["policy"])
        ]
    )


def _compared(
    scenario: object, aware: pd.DataFrame, unaware: pd.DataFrame, name: str, other: str
) -> dict[str, object]:
    label = load_published(Path(__file__).parent).label
    row: dict[str, object] = {
        "job": aware["job"].iloc[0],
        "layout": scenario,
        "aware": label(name),
        "unaware": label(other),
        "runs": f"{len(aware)} / {len(unaware)}",
    }
    for metric in COMPARED:
        pair = (float(runs[metric].mean()) for runs in (aware, unaware))
        row[label_of(metric).name] = " / ".join(label_of(metric).text(value) for value in pair)
    return row
