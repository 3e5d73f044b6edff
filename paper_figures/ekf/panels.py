"""What the figures of this paper share."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

WORKLOAD_COLOUR = "#9AA3AE"
THRESHOLD_COLOUR = "#30363D"
LOW_RATIO, HIGH_RATIO = 0.45, 0.80
EXCERPT_S = (0.0, 1000.0)  # about what Figures 8 and 9 show


def decisions_of(tables: Path, scenario: str, policy: str, end_s: float = EXCERPT_S[1]) -> pd.DataFrame:
    """What a policy saw in its first run, twice a second, with the estimates as columns."""
    decisions = pd.read_parquet(tables / "decisions.parquet")
    rows = decisions[
        (decisions["scenario"] == scenario) & (decisions["policy"] == policy) & (decisions["time_s"] < end_s)
    ].reset_index(drop=True)
    estimates = pd.DataFrame.from_records(rows["estimates"].map(json.loads).tolist(), index=rows.index)
    return rows.join(estimates.rename(columns=lambda name: name.partition(".")[2]))


def events_of(run: pd.DataFrame) -> int:
    """How often another number of instances was asked for."""
    return int((run["requested"].diff().fillna(0) != 0).sum())


def draw_load(axis: Axes, time_s: pd.Series, load: pd.Series, **line: object) -> None:
    axis.plot(time_s, 100 * load, **line)  # type: ignore[arg-type]
    axis.set(ylabel="CPU (%)", ylim=(0, None))


def draw_thresholds(axis: Axes) -> None:
    for ratio, label in ((HIGH_RATIO, "Θ⁺"), (LOW_RATIO, "Θ⁻")):
        axis.axhline(100 * ratio, color=THRESHOLD_COLOUR, linewidth=0.7, linestyle=(0, (4, 3)))
        axis.annotate(
            label, (0.004, 100 * ratio + 1), xycoords=("axes fraction", "data"), va="bottom", fontsize=7
        )


def draw_workload(axis: Axes, time_s: pd.Series, rate_per_s: pd.Series) -> None:
    """Images per second, as an area behind what else is drawn, on an axis of its own at the right."""
    right = axis.twinx()
    right.fill_between(time_s, rate_per_s, step="post", color=WORKLOAD_COLOUR, alpha=0.3, linewidth=0)
    right.set(ylabel="Images/s", ylim=(0, 1.15 * max(1.0, float(np.nanmax(rate_per_s)))))
    right.spines["right"].set_visible(True)
    right.grid(visible=False)
    axis.set_zorder(right.get_zorder() + 1)
    axis.patch.set_visible(False)


def draw_instances(axis: Axes, time_s: pd.Series, instances: pd.Series, colour: str) -> None:
    axis.step(time_s, instances, where="post", color=colour, linewidth=1.0)
    axis.set(ylabel="VMs", ylim=(0, float(instances.max()) + 1))
    axis.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=5))
