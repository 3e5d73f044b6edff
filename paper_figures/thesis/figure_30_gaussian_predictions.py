"""Figure 30: predictions in optimal control under the gaussian load with low variance.

Slow records as predicted and as measured, their residuals, and the workload. The line through the last ten
minutes lags behind a load that rises ever faster, and overshoots where it flattens.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from paper_figures.thesis.panels import draw_predictions
from paper_figures.thesis.samples import samples_of


def load(tables: Path) -> pd.DataFrame:
    return samples_of(tables, "optimal_control", "proactive")


def draw(samples: pd.DataFrame) -> Figure:
    return draw_predictions(samples)
