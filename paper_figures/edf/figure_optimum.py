"""Beyond the paper: how far learned tables are from the optimum, and how many runs Q-learning needs.

partialRank alone, as a decision process whose transitions and response times are known, so that value
iteration finds the optimum. Each line is what following the learned table for ever would cost beyond it,
after so many hours of the load, which begins anew every twelve hours while the table is kept: 200 runs, each
of which starts from what the one before has learned. One seed of Q-learning; model-based learning draws
nothing by chance. Without pauses, noise and other operators, so this is the best they can do.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from analysis.plotting import COLUMN_WIDTH_IN
from paper_figures.edf.known_process import learned_over_runs

COLOUR = {"q_learning": "#D55E00", "model_based": "#0072B2"}
LABEL = {"q_learning": "Q-learning", "model_based": "model-based"}
STYLE = {"res": "-", "rcf": "--"}


def load(_tables: Path) -> pd.DataFrame:
    return learned_over_runs()


def draw(rows: pd.DataFrame) -> Figure:
    figure = Figure(figsize=(COLUMN_WIDTH_IN * 1.4, 2.8))
    axis = figure.subplots()
    for (local, weights), some in rows.groupby(["local", "weights"], sort=False):
        means = some.groupby("hours")["beyond_optimum_percent"].mean()
        label = f"{LABEL[str(local)]}, {weights}"
        axis.plot(means.index, means, STYLE[str(weights)], color=COLOUR[str(local)], marker=".", label=label)
    axis.set_xscale("log")
    axis.set_yscale("symlog", linthresh=1)
    axis.set(xlabel="Hours of the load", ylabel="Cost beyond the optimum (%)", ylim=(0, 1000))
    axis.legend(fontsize=7)
    return figure
