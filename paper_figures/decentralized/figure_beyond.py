"""Beyond the paper: slow messages, lost ones, and loads that change faster.

The protocol under random delivery instead of discrete steps; a second is a step of the paper. Left, how
long a message takes one way; in the middle, the share of messages that is lost and sent again after a
second (delay 0.1 s); right, by how much the load changes within a step. Above: instances too many or too
few, as a share of those needed; below: the share of the ideal throughput. Means of the seeds, whiskers:
their 95 % interval.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from analysis.plotting import PAGE_WIDTH_IN
from paper_figures.decentralized.panels import LOAD_COLOUR, NODES_COLOUR

COLUMNS = {
    "delay_s": "Message delay (s)",
    "loss_ratio": "Messages lost",
    "change_per_s": "Change of the load\n(records per step)",
}
ROWS = {
    "wrong_ratio": ("Wrong instances /\nneeded", NODES_COLOUR),
    "throughput_ratio": ("Share of the\nideal throughput", LOAD_COLOUR),
}


def load(tables: Path) -> pd.DataFrame:
    return pd.read_parquet(tables / "beyond.parquet")


def draw(beyond: pd.DataFrame) -> Figure:
    figure = Figure(figsize=(PAGE_WIDTH_IN, 3.4))
    axes = figure.subplots(2, 3, sharex="col", sharey="row")
    for column, (what, name) in enumerate(COLUMNS.items()):
        found = beyond[beyond["what"] == what].groupby("value")
        for row, (metric, (label, colour)) in enumerate(ROWS.items()):
            axis = axes[row, column]
            mean: pd.Series = found[metric].mean()
            half: pd.Series = 1.96 * found[metric].std() / np.sqrt(found[metric].count())
            axis.errorbar(mean.index, mean, half.fillna(0.0), color=colour, marker=".", capsize=2)
            axis.yaxis.set_major_formatter(PercentFormatter(1.0))
            if column == 0:
                axis.set_ylabel(label)
        axes[1, column].set_xlabel(name)
    axes[0, 0].set_ylim(0, None)
    figure.align_ylabels(list(axes[:, 0]))
    return figure
