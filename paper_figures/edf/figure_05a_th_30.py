"""Figure 5a: thresholds of 0.3.

The first seed: the mean response time of the job, and replicas of all operators, over twelve hours.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from paper_figures.edf.panels import draw_run, run_of


def load(tables: Path) -> pd.DataFrame:
    return run_of(tables, "th_30")


def draw(run: pd.DataFrame) -> Figure:
    return draw_run(run)
