"""Measured: the lookup job, which waits for answers from the services node.

As for the taxi job: a real Flink on emulated nodes, the first seed of each policy. Eight questions are on
their way at once, so an instance on a far node does less than one nearby, whatever its processor could do.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from paper_figures.gesscale.panels import draw_measured, measured_runs


def load(tables: Path) -> pd.DataFrame:
    return measured_runs(tables, "lookup")


def draw(runs: pd.DataFrame) -> Figure:
    return draw_measured(runs)
