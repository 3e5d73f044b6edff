"""Figures 3 and 4, drawn alike from the table noisy_load."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from analysis.plotting import PAGE_WIDTH_IN, POLICY_COLOUR
from paper_figures.ekf.panels import draw_instances, draw_load, draw_thresholds

SPAN_S = 240.0


def read(tables: Path, filtered: bool) -> pd.DataFrame:
    run = pd.read_parquet(tables / "noisy_load.parquet")
    return run[run["filtered"] == filtered]


def operations(run: pd.DataFrame) -> int:
    return int((run["operators"].diff().fillna(0) != 0).sum())


def draw(run: pd.DataFrame, filtered: bool) -> Figure:
    figure = Figure(figsize=(PAGE_WIDTH_IN, 2.9))
    load, operators = figure.subplots(2, 1, sharex=True, height_ratios=[1.5, 1.0])
    colour = POLICY_COLOUR["ekf" if filtered else "pure"]
    if filtered:
        draw_load(
            load, run["time_s"], run["measured_ratio"], color="#C5CAD0", linewidth=0.8, label="measured"
        )
    label = "filtered" if filtered else "measured"
    draw_load(load, run["time_s"], run["load_ratio"], color=colour, linewidth=1.0, label=label)
    draw_thresholds(load)
    load.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, borderaxespad=0.1)
    draw_instances(operators, run["time_s"], run["operators"], colour)
    operators.set(xlabel="Time (s)", ylabel="Operators", xlim=(0, SPAN_S))
    operators.set_title(f"{operations(run)} scaling operations", fontsize=7)
    return figure
