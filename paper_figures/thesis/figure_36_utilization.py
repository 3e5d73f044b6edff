"""Figure 36: utilization of the TaskManagers under the World Cup load.

The first seed. Workload over the capacity of one TaskManager as each scaler has measured it (Algorithm 1)
is about how many are needed; beside it those allocated.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from analysis.plotting import POLICY_COLOUR
from paper_figures.thesis.panels import WORKLOAD_COLOUR, parallelism, stacked
from paper_figures.thesis.samples import observed


def load(tables: Path) -> pd.DataFrame:
    return observed(tables, "worldcup")


def draw(seen: pd.DataFrame) -> Figure:
    figure, axes = stacked(2, height_in=1.4)
    for axis, policy in zip(axes, ("proactive", "reactive"), strict=True):
        rows = seen[seen["policy"] == policy]
        minutes = rows["time_s"] / 60
        # Before the first violation nothing is known of the capacity; the thesis draws its first value there.
        needed = rows["workload_per_s"] / rows["capacity_per_s"].ffill().bfill()
        axis.plot(minutes, needed, color=WORKLOAD_COLOUR, linewidth=0.8, label="workload / capacity")
        axis.step(minutes, rows["replicas"], where="post", color=POLICY_COLOUR[policy], label="allocated")
        parallelism(axis, rows["replicas"])
        axis.set_title(policy, loc="left", pad=2)
        axis.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, borderaxespad=0.1)
    axes[-1].set(xlabel="Time (min)", xlim=(0, seen["time_s"].max() / 60))
    figure.align_ylabels(axes)
    return figure
