"""Figure 33: the performance model learnt from the World Cup load.

As Figure 28, with the parallelisms 1 and 2 that this load explores.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from paper_figures.thesis.panels import draw_model
from paper_figures.thesis.samples import explored, samples_of


def load(tables: Path) -> pd.DataFrame:
    return explored(samples_of(tables, "worldcup", "proactive"))


def draw(exploration: pd.DataFrame) -> Figure:
    return draw_model(exploration)
