"""Figure 7: how the noise of measured CPU depends on the load.

One VM under constant load, 20 runs of a minute for each load, as the paper does with FakeLoad; its values are
not given in the text, which calls σ sufficiently uniform. Ours is uniform by assumption, but for what 0 and
100 % cut off; the dashed line is the σ of the R that the filter is given.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from analysis.plotting import COLUMN_WIDTH_IN, POLICY_COLOUR


def load(tables: Path) -> pd.DataFrame:
    return pd.read_parquet(tables / "gauge_readings.parquet")


def draw(found: pd.DataFrame) -> Figure:
    figure = Figure(figsize=(COLUMN_WIDTH_IN, 2.3))
    axis = figure.subplots()
    by_load = 100 * found.groupby("load_ratio")["sigma"].agg(["mean", "min", "max"])
    percent, colour = 100 * by_load.index.to_numpy(), POLICY_COLOUR["ekf"]
    axis.fill_between(percent, by_load["min"], by_load["max"], color=colour, alpha=0.2, linewidth=0)
    axis.plot(percent, by_load["mean"], color=colour, marker="o", label="ours, mean and range of 20 runs")
    sigma = 100 * found["given_sigma"].iloc[0]
    axis.axhline(sigma, color="#30363D", linewidth=0.8, linestyle=(0, (4, 3)), label="√R of the filter")
    axis.set(xlabel="CPU load (%)", ylabel="σ of readings (% points)", xlim=(0, 100), ylim=(0, 1.5 * sigma))
    axis.legend(loc="lower center")
    return figure
