"""What the figures share: one run as the paper shows it, and where all runs lie."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.plotting import PAGE_WIDTH_IN
from paper_figures.decentralized.statements import PER_NODE

LOAD_COLOUR = "#0072B2"  # blue and red, as in the paper
NODES_COLOUR = "#C4513A"
BAND = (0.05, 0.95)


def stepped(tables: Path) -> pd.DataFrame:
    """The paper's clock, all seeds."""
    steps = pd.read_parquet(tables / "steps.parquet")
    return steps[steps["way"] == "steps"]


def one_run(steps: pd.DataFrame) -> pd.DataFrame:
    first: pd.DataFrame = steps[steps["seed"] == steps["seed"].min()]
    return first


def stacked(heights_in: tuple[float, ...]) -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=(PAGE_WIDTH_IN, sum(heights_in) + 0.5))
    axes = figure.subplots(len(heights_in), 1, sharex=True, height_ratios=heights_in, squeeze=False)
    return figure, list(axes[:, 0])


def band(axis: Axes, steps: pd.DataFrame, column: str, colour: str) -> None:
    """Where nine of ten seeds lie."""
    low, high = (steps.groupby("step")[column].quantile(share) for share in BAND)
    axis.fill_between(low.index, low, high, color=colour, alpha=0.15, linewidth=0)


def load_and_nodes(axis: Axes, steps: pd.DataFrame, load: str, nodes: str) -> None:
    """Both curves of one run, on axes of the same scale: a node for C·r records."""
    run = one_run(steps)
    band(axis, steps.assign(ideal=steps[load] / PER_NODE), "ideal", LOAD_COLOUR)
    axis.plot(run["step"], run[load] / PER_NODE, color=LOAD_COLOUR, linewidth=1.0, label="load / (C·r)")
    axis.step(run["step"], run[nodes], where="post", color=NODES_COLOUR, linewidth=1.0, label="nodes")
    axis.set(ylabel="Nodes", ylim=(0, None))
    records = axis.secondary_yaxis("right", functions=(_records, _nodes))
    records.set_ylabel("Load (records per step)")
    axis.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, borderaxespad=0.1)


def _records(nodes: Any) -> Any:
    return nodes * PER_NODE


def _nodes(records: Any) -> Any:
    return records / PER_NODE


def messages(axis: Axes, steps: pd.DataFrame, column: str) -> None:
    run = one_run(steps)
    band(axis, steps, column, LOAD_COLOUR)
    axis.bar(run["step"], run[column], width=1.0, color=LOAD_COLOUR)
    axis.set(ylabel="Messages", xlabel="Step", xlim=(0, run["step"].max()), ylim=(0, None))
