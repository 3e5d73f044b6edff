"""Figure 9: measured and filtered CPU load in EKF's Pyramid run.

The run of Figure 8, both loads averaged over the instances that have an estimate or a reading. Above 100 %,
the estimate says how many more VMs are needed. There is no filtered load until an instance has an estimate.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from analysis.plotting import PAGE_WIDTH_IN, POLICY_COLOUR
from paper_figures.ekf.panels import EXCERPT_S, decisions_of, draw_load, draw_thresholds, draw_workload


def load(tables: Path) -> pd.DataFrame:
    return decisions_of(tables, "pyramid", "ekf")


def draw(run: pd.DataFrame) -> Figure:
    figure = Figure(figsize=(PAGE_WIDTH_IN, 2.7))
    axis = figure.subplots()
    draw_workload(axis, run["time_s"], run["offered_rate_per_s"].fillna(0.0))
    measured, filtered = run["cpu_measured_ratio"], run["cpu_filtered_ratio"]
    draw_load(axis, run["time_s"], measured, color="#7A828C", linewidth=0.6, label="measured")
    draw_load(axis, run["time_s"], filtered, color=POLICY_COLOUR["ekf"], linewidth=1.1, label="filtered")
    draw_thresholds(axis)
    axis.set(xlabel="Time (s)", xlim=EXCERPT_S)
    axis.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, borderaxespad=0.1)
    return figure
