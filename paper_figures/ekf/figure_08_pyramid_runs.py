"""Figure 8: three Pyramid runs, with PURE, GW and EKF.

The first seed. Lines are the VMs that run (thin: that are asked for), areas the images per second that come
in.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from analysis.plotting import PAGE_WIDTH_IN, POLICY_COLOUR
from paper_figures.ekf.panels import EXCERPT_S, decisions_of, draw_instances, draw_workload, events_of

LABELS = {"pure": "PURE", "gw": "GW", "ekf": "EKF"}


def load(tables: Path) -> pd.DataFrame:
    return pd.concat([decisions_of(tables, "pyramid", policy) for policy in LABELS], ignore_index=True)


def draw(runs: pd.DataFrame) -> Figure:
    figure = Figure(figsize=(PAGE_WIDTH_IN, 4.6))
    axes = figure.subplots(len(LABELS), 1, sharex=True, sharey=True)
    most = max(runs["running"].max(), runs["requested"].max())
    for axis, (policy, label) in zip(axes, LABELS.items(), strict=True):
        run = runs[runs["policy"] == policy]
        draw_workload(axis, run["time_s"], run["offered_rate_per_s"].fillna(0.0))
        axis.step(run["time_s"], run["requested"], where="post", color=POLICY_COLOUR[policy], linewidth=0.5)
        draw_instances(axis, run["time_s"], run["running"], POLICY_COLOUR[policy])
        axis.set(ylim=(0, most + 1))
        axis.set_title(f"{label}, {events_of(run)} scaling events", fontsize=7)
    axes[-1].set(xlabel="Time (s)", xlim=EXCERPT_S)
    return figure
