"""Figure 28: the performance model learnt from the gaussian load.

One line per number of TaskManagers over the workloads that were seen with it; points: what was measured.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from paper_figures.thesis.panels import draw_model
from paper_figures.thesis.samples import explored, samples_of


def load(tables: Path) -> pd.DataFrame:
    return explored(samples_of(tables, "exploration", "proactive"))


def draw(exploration: pd.DataFrame) -> Figure:
    return draw_model(exploration)
