"""Figure 4: load and number of nodes of one operator, and the messages of its own duplications and deletions.

The first seed, the operator in the middle; the load is drawn in the nodes that it needs at the target
ratio, load/(C·r). Shaded: 90 % of all seeds, whose walks differ. Messages are counted in the step that
processes them.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from paper_figures.decentralized.panels import load_and_nodes, messages, stacked, stepped


def load(tables: Path) -> pd.DataFrame:
    return stepped(tables)


def draw(steps: pd.DataFrame) -> Figure:
    figure, (above, below) = stacked((2.2, 1.2))
    load_and_nodes(above, steps, "op_load", "op_nodes")
    messages(below, steps, "op_messages")
    figure.align_ylabels([above, below])
    return figure
