"""What having no coordinator costs: the same load through the same loop.

One walk enters the first operator and passes through all five; all seeds, means with 95 % intervals. DS2
knows the rate that is offered to the job and sizes all operators at once, for the same load of 0.7 per
instance. Gesscale acts on back pressure, which is seen upstream of a saturated operator; here nothing
stands before the operator that takes the input, so it never acts, and its row says nothing of Gesscale.
All three decide every five steps at least, on nodes that are there at once. Cost and accuracy count all
operators; demand is at full load (r = 1).
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from paper_figures.decentralized.statements import interval

COLUMNS = {
    "job_cost": ("Cost (replica-minutes)", 1.0, 1),
    "job_accuracy_u": ("Instances below demand", 1.0, 2),
    "job_accuracy_o": ("Instances above demand", 1.0, 2),
    "job_timeshare_u": ("Time with too few (%)", 1.0, 1),
    "processed_ratio": ("Processed in time (%)", 100.0, 2),
    "reconfigurations": ("Reconfigurations", 1.0, 1),
}


def load(tables: Path) -> pd.DataFrame:
    metrics = pd.read_parquet(tables / "metrics.parquet")
    runs = metrics[(metrics["scenario"] == "pipeline") & (metrics["variation"] == "")]
    rows = []
    for policy, some in runs.groupby("policy", sort=True):
        row: dict[str, object] = {"Policy": policy, "Seeds": len(some)}
        for key, (name, scale, digits) in COLUMNS.items():
            values = scale * some[key].astype(float)
            row[name] = interval(values, digits)
        rows.append(row)
    return pd.DataFrame(rows)
