"""Figure 27: exploration under the gaussian load of five hours.

The first seed. A TaskManager is added after each violation; while the load falls, one by one leaves.
Samples of the four minutes after a rescaling are discarded, hence the jumps. The model becomes stable at
the second check.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from paper_figures.thesis.panels import draw_performance
from paper_figures.thesis.samples import samples_of


def load(tables: Path) -> pd.DataFrame:
    return samples_of(tables, "exploration", "proactive")


def draw(samples: pd.DataFrame) -> Figure:
    return draw_performance(samples, "proactive", intervals="15 s, in optimal control 5 s")
