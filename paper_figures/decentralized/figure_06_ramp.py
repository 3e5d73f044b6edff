"""Figure 6: traffic under a load that only grows.

Every operator's load grows by 100 records a step. Points: the iterations in which instances duplicate, of
all seeds. The line is the mean of the seeds' fits. On a straight ramp about as many instances are added
in a late iteration as in an early one, so that an iteration's traffic grows little faster than the number
of nodes; what it takes to double that number grows with its square.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from analysis.plotting import PAGE_WIDTH_IN
from paper_figures.decentralized.panels import LOAD_COLOUR, NODES_COLOUR
from paper_figures.decentralized.statements import FIGURE_6, exponents, of_ramp, per_doubling, per_iteration

PANELS = {
    "Messages of an iteration": per_iteration,
    "Messages while nodes double": per_doubling,
}


def load(tables: Path) -> pd.DataFrame:
    ramps = pd.read_parquet(tables / "ramps.parquet")
    return of_ramp(ramps, FIGURE_6)


def draw(ramps: pd.DataFrame) -> Figure:
    figure = Figure(figsize=(PAGE_WIDTH_IN, 2.6))
    for axis, (name, points_of) in zip(figure.subplots(1, 2), PANELS.items(), strict=True):
        points = pd.concat([points_of(run) for _, run in ramps.groupby("seed")])
        points = points[points["messages"] > 0]
        axis.plot(points["nodes"], points["messages"], ".", markersize=1.5, alpha=0.25, color=LOAD_COLOUR)
        found = exponents(ramps, FIGURE_6, points_of)["exponent"]
        x, y = np.log(points["nodes"]), np.log(points["messages"])
        ends = np.array([points["nodes"].min(), points["nodes"].max()], dtype=float)
        fitted = np.exp(y.mean() + found.mean() * (np.log(ends) - x.mean()))
        axis.plot(ends, fitted, color=NODES_COLOUR, label=f"exponent {found.mean():.2f}")
        axis.set(xscale="log", yscale="log", xlabel="Nodes", ylabel=name)
        for side in (axis.xaxis, axis.yaxis):
            side.set_major_locator(LogLocator(subs=(1, 2, 5)))
            side.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
            side.set_minor_formatter(NullFormatter())
        axis.legend(loc="upper left")
    return figure
