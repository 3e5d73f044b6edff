"""Figure 35, without the slowdown: both scalers under the same World Cup load.

Not in the thesis: what its run would have been without the anomaly. The first seed.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from paper_figures.thesis.panels import draw_comparison
from paper_figures.thesis.samples import observed


def load(tables: Path) -> pd.DataFrame:
    return observed(tables, "worldcup_no_fault")


def draw(seen: pd.DataFrame) -> Figure:
    return draw_comparison(seen)
