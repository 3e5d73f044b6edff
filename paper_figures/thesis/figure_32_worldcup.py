"""Figure 32: exploration and optimal control under the World Cup load.

The first seed, with the scheduled slowdown of all TaskManagers at sample 1700, which makes the proactive
scaler discard its model.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from paper_figures.thesis.panels import draw_performance
from paper_figures.thesis.samples import samples_of


def load(tables: Path) -> pd.DataFrame:
    return samples_of(tables, "worldcup", "proactive")


def draw(samples: pd.DataFrame) -> Figure:
    return draw_performance(samples, "proactive", intervals="5 s")
