"""Figure 31: both scalers under the gaussian load with low variance.

The first seed, over time instead of samples, since each scaler discards samples of its own.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from paper_figures.thesis.panels import draw_comparison
from paper_figures.thesis.samples import observed


def load(tables: Path) -> pd.DataFrame:
    return observed(tables, "optimal_control")


def draw(seen: pd.DataFrame) -> Figure:
    return draw_comparison(seen)
