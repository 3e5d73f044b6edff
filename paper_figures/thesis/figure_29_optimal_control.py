"""Figure 29: optimal control under the gaussian load with low variance.

The first seed, with the model that an earlier exploration has learnt. Where the workload ahead is beyond
the model's data, the plan is kept, and explored again if the SLA is violated there.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from paper_figures.thesis.panels import draw_performance
from paper_figures.thesis.samples import samples_of


def load(tables: Path) -> pd.DataFrame:
    return samples_of(tables, "optimal_control", "proactive")


def draw(samples: pd.DataFrame) -> Figure:
    return draw_performance(samples, "proactive", intervals="5 s")
