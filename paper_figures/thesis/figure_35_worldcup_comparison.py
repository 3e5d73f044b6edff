"""Figure 35: both scalers under the World Cup load.

The first seed. Only the proactive scaler's run has the slowdown near sample 1700 (150 min), as in the
thesis.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from paper_figures.thesis.panels import draw_comparison
from paper_figures.thesis.samples import observed


def load(tables: Path) -> pd.DataFrame:
    return observed(tables, "worldcup")


def draw(seen: pd.DataFrame) -> Figure:
    return draw_comparison(seen)
