"""TaskManagers per sample and SLA violations, published and ours.

Ours: mean ± half of the 95 % confidence interval (Student) over all seeds. Violations are counted from the
truth; "restarts aside", and TaskManagers per sample, leave out the four minutes after a rescaling, as the
thesis does, in which every restart of the job misses the SLA, whoever asked for it. TaskManagers on hot
standby (two) are not counted, as in the thesis.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from analysis.metrics.labels import label_of
from analysis.statistics import estimate
from controller.experiment import load as load_experiment
from paper_figures.published import load as load_published
from paper_figures.thesis.samples import runs_of_base

HERE = Path(__file__).parent
COLUMNS = {
    "mean_instances": "TaskManagers",
    "steady_violations": "Violations, restarts aside",
    "steady_violation_timeshare": "SLA missed, restarts aside (% of time)",
    "violation_timeshare": "SLA missed in all (% of time)",
    "reconfigurations": "Rescalings",
}


def load(tables: Path) -> pd.DataFrame:
    published, scenarios = load_published(HERE), load_experiment(HERE / "experiment.yml").scenarios
    base = runs_of_base(tables)
    rows = []
    for scenario, table in published.tables.items():
        for policy, said in table.items():
            about = {"Scenario": scenarios[scenario].title, "Scaler": published.label(policy)}
            runs = base[(base["scenario"] == scenario) & (base["policy"] == policy)]
            if said:
                values = {column: f"{said[key]:g}" if key in said else "" for key, column in COLUMNS.items()}
                rows.append(about | {" ": "published"} | values)
            ours = {column: _ours(key, runs[key]) for key, column in COLUMNS.items()}
            rows.append(about | {" ": "ours"} | ours)
    return pd.DataFrame(rows)


def _ours(metric: str, values: pd.Series) -> str:
    found, label = estimate(values.astype(float)), label_of(metric)
    mean = label.text(found.mean)
    return mean if found.n < 2 else f"{mean} ± {label.text((found.high - found.low) / 2)}"
