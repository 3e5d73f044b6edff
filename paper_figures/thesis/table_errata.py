"""Errata: the thesis' algorithms as printed, beside what is meant.

Means over all seeds. Algorithm 2 resets its counter in the loop and never scales down; Algorithm 3 compares
predictions with themselves, so that its model is a constant; Algorithm 4 resamples the inputs of one model;
Algorithm 6 trusts the polynomial beyond its data. A stability check every 300 samples is 25 min at 5 s, not
40 (§5.4).
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pandas as pd

from controller.experiment import load as load_experiment
from paper_figures.published import load as load_published

HERE = Path(__file__).parent
PRINTED = ("", "printed_algorithm_2", "printed_algorithm_3", "printed_algorithm_4", "extrapolation")
COLUMNS = {
    "mean_instances": "TaskManagers",
    "steady_violations": "Violations, restarts aside",
    "steady_violation_timeshare": "SLA missed, restarts aside (% of time)",
}


def load(tables: Path) -> pd.DataFrame:
    published, scenarios = load_published(HERE), load_experiment(HERE / "experiment.yml").scenarios
    titles = {"": "As meant"} | {variation.name: variation.title for variation in published.variations}
    metrics = pd.read_parquet(tables / "metrics.parquet").astype(dict.fromkeys(COLUMNS, float))
    cases = dict(iter(metrics.groupby(["variation", "policy", "scenario"])))
    rows = []
    for scenario, name, policy in product(published.tables, PRINTED, published.policies):
        runs = cases.get((name, policy, scenario))
        if runs is not None:
            about = {"Scenario": scenarios[scenario].title, "Variant": titles[name], "Scaler": policy}
            rows.append(about | {text: round(float(runs[key].mean()), 3) for key, text in COLUMNS.items()})
    return pd.DataFrame(rows)
