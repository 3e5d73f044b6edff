"""Errata: EKF as it is meant, and as its equations are printed.

Means of the runs that the variations have. Eq. 12 to 14 never update P a posteriori; f(x, u) adds a·D at
constant load too; Eq. 10 predicts from the input before; Eq. 15 sums what §3.3 averages.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from analysis.metrics.labels import label_of
from controller.experiment import load as load_experiment
from paper_figures.campaign import BASE
from paper_figures.ekf.aggregate import NAMES
from paper_figures.published import load as load_published

FOLDER = Path(__file__).parent


def load(tables: Path) -> pd.DataFrame:
    published, experiment = load_published(FOLDER), load_experiment(FOLDER / "experiment.yml")
    runs = pd.read_parquet(tables / "metrics.parquet")
    runs = runs[runs["policy"] == "ekf"]
    titles = {BASE: "as meant"} | {
        variation.name: variation.title
        for variation in published.variations
        if variation.name.startswith("printed_") and (runs["variation"] == variation.name).any()
    }
    if titles.keys() == {BASE}:  # a build without what takes long
        return pd.DataFrame()
    rows = []
    for scenario, about in experiment.scenarios.items():
        for variation, title in titles.items():
            found = runs[(runs["scenario"] == scenario) & (runs["variation"] == variation)]
            means = {
                name: label_of(metric).text(found[metric].astype(float).mean()) if len(found) else "–"
                for metric, name in NAMES.items()
            }
            rows.append({"Scenario": about.title, "EKF": title} | means)
    return pd.DataFrame(rows)
