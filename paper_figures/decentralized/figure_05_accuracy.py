"""Figure 5: accuracy, and the share of the ideal throughput, of one operator.

The first seed, the operator in the middle. The accuracy is the number of instances over the ideal one,
⌈load/C⌉ as in the examples of §5.3; the throughput is what the instances can process of the load of the
step. Shaded: 90 % of all seeds.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from paper_figures.decentralized.panels import (
    LOAD_COLOUR,
    NODES_COLOUR,
    band,
    one_run,
    stacked,
    stepped,
)
from paper_figures.decentralized.statements import needed, op_throughput


def load(tables: Path) -> pd.DataFrame:
    steps = stepped(tables).reset_index(drop=True)
    accuracy = steps["op_nodes"] / needed(steps["op_load"])
    return steps.assign(accuracy=accuracy, throughput=op_throughput(steps))


def draw(steps: pd.DataFrame) -> Figure:
    figure, (above, below) = stacked((1.7, 1.3))
    run = one_run(steps)
    for axis, column, colour in ((above, "accuracy", LOAD_COLOUR), (below, "throughput", NODES_COLOUR)):
        band(axis, steps, column, colour)
        axis.step(run["step"], run[column], where="post", color=colour, linewidth=1.0)
    above.axhline(1.0, color="#6E7781", linewidth=0.6)
    above.set(ylabel="Accuracy", ylim=(0, None))
    below.set(ylabel="Share of the\nideal throughput", xlabel="Step", ylim=(0, 1.05))
    below.set_xlim(0, run["step"].max())
    below.yaxis.set_major_formatter(PercentFormatter(1.0))
    figure.align_ylabels([above, below])
    return figure
