"""Figure 34: predictions in optimal control under the World Cup load.

As Figure 30. The last residual, of the scheduled slowdown, is far above the threshold and ends optimal
control.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from paper_figures.thesis.panels import draw_predictions
from paper_figures.thesis.samples import samples_of


def load(tables: Path) -> pd.DataFrame:
    return samples_of(tables, "worldcup", "proactive")


def draw(samples: pd.DataFrame) -> Figure:
    return draw_predictions(samples)
