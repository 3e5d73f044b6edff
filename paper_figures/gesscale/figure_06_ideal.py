"""Figure 6: the ideal autoscaler, which follows the load at once and at no cost.

It cannot be built; it is what accuracy and timeshare are measured against.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from paper_figures.gesscale.panels import draw_run, run_of


def load(tables: Path) -> pd.DataFrame:
    return run_of(tables, "ideal")


def draw(run: pd.DataFrame) -> Figure:
    return draw_run(run, "ideal", with_deviation=False)
