"""Proactive against reactive: does it hold the SLA at least as often, at no more TaskManagers?

Differences proactive − reactive of the same seed (the same load), their mean and 95 % confidence interval
(Student); below 0 is better. "No worse": not significantly above 0.
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
METRICS = ("mean_instances", "steady_violations", "steady_violation_timeshare", "violation_timeshare")


def load(tables: Path) -> pd.DataFrame:
    published, scenarios = load_published(HERE), load_experiment(HERE / "experiment.yml").scenarios
    base = runs_of_base(tables)
    rows = [
        {"Scenario": scenarios[scenario].title} | _difference(base[base["scenario"] == scenario], metric)
        for scenario in published.tables
        for metric in METRICS
    ]
    return pd.DataFrame(rows)


def _difference(runs: pd.DataFrame, metric: str) -> dict[str, str]:
    by_policy = runs.astype({metric: float}).pivot_table(index="seed", columns="policy", values=metric)
    apart = by_policy["proactive"] - by_policy["reactive"]
    found, label = estimate(apart), label_of(metric)
    known = found.n > 1
    return {
        "Metric": f"{label.name} ({label.unit})" if label.unit else label.name,
        "Proactive − reactive": f"{found.mean:+.3f}",
        "95 % from": f"{found.low:+.3f}" if known else "",
        "to": f"{found.high:+.3f}" if known else "",
        "Seeds in which proactive is no worse": f"{int((apart <= 0).sum())} of {found.n}",
        "No worse": _verdict(found.low, found.high) if known else "one seed",
    }


def _verdict(low: float, high: float) -> str:
    if low > 0:
        return "no, worse"
    return "yes, better" if high < 0 else "yes, no significant difference"
