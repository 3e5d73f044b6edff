"""Beyond the paper: what runs cost as learning goes on from one to the next.

Each run of 12 hours starts from what the one before has learned, with the job and the load of Table 1.
Costs are those of Eq. 1, per turn and of all five operators that may be scaled: weights (.4, .4, .2) of slow
records, replicas and changes. Lines are means over the seeds, bands go from the lowest to the highest.
Dotted: model-based learning over its last ten runs.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from analysis.plotting import COLUMN_WIDTH_IN
from paper_figures.edf.learning_curves import COLOUR, LABEL, MODEL, RUN_DAYS, curves, learning, settled_cost


def load(tables: Path) -> pd.DataFrame:
    return learning(tables)


def draw(rows: pd.DataFrame) -> Figure:
    figure = Figure(figsize=(COLUMN_WIDTH_IN * 1.4, 2.8))
    axis = figure.subplots()
    for policy, costs in curves(rows).items():
        days = costs.index * RUN_DAYS
        axis.fill_between(days, costs["min"], costs["max"], color=COLOUR[policy], alpha=0.2, linewidth=0)
        axis.plot(days, costs["mean"], color=COLOUR[policy], label=LABEL[policy])
    axis.axhline(settled_cost(rows), color=COLOUR[MODEL], linewidth=0.8, linestyle=":")
    axis.set_xscale("log")
    axis.set(xlabel="Days of operation", ylabel="Cost per turn", ylim=(0, None))
    axis.legend(fontsize=7)
    return figure
