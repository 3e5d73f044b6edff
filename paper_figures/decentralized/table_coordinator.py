"""What having no coordinator costs: the same loads through the same loop.

One walk passes through the job; all seeds, means with 95 % intervals. The job: five operators with message
queues between them; a source and five operators with back pressure; or one operator that scales between
others with capacity to spare, with back pressure: cost and instances are its own. Too few, too many:
instances against demand at full load (r = 1). In time: records processed by the end. Changes:
reconfigurations. DS2 knows the rate that is offered to the job and sizes all operators at once, for the same
load of 0.7 per instance. Gesscale acts on the back pressure that it sees before a saturated operator, so it
needs a source, and records that wait there. Where back pressure slows the source down, instances see no more
arrive than the narrowest operator lets through: those of all other operators find themselves idle and leave,
while DS2 sees what is offered. Gesscale sees back pressure where all that is upstream is less than half
busy, which is so for one operator behind a fast source and seldom for five of a kind. It adds one instance
at a time, once two looks in a row show saturation. All decide every five steps at most, on nodes that are
there at once.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from paper_figures.decentralized.statements import interval

SCENARIOS = {  # what is shown of it: the whole job's metrics, or those of the operator that scales
    "pipeline": ("queues", "job_"),
    "behind_a_source": ("back pressure", "job_"),
    "one_that_scales": ("one operator", ""),
}
COLUMNS = {
    "cost": ("Cost (replica-min)", 1.0, 1),
    "accuracy_u": ("Too few", 1.0, 2),
    "accuracy_o": ("Too many", 1.0, 2),
    "timeshare_u": ("Too few (% of time)", 1.0, 1),
}
WHOLE = {
    "processed_ratio": ("In time (%)", 100.0, 1),
    "reconfigurations": ("Changes", 1.0, 0),
}


def load(tables: Path) -> pd.DataFrame:
    metrics = pd.read_parquet(tables / "metrics.parquet")
    rows = []
    for scenario, (title, prefix) in SCENARIOS.items():
        runs = metrics[(metrics["scenario"] == scenario) & (metrics["variation"] == "")]
        columns = {f"{prefix}{key}": shown for key, shown in COLUMNS.items()} | WHOLE
        for policy, some in runs.groupby("policy", sort=True):
            row: dict[str, object] = {"Job": title, "Policy": policy}
            for key, (name, scale, digits) in columns.items():
                row[name] = interval(scale * some[key].astype(float), digits)
            rows.append(row)
    return pd.DataFrame(rows)
