"""Figure 7b: THR-NLAware over the two taxi days.

The first seed. The paper sees decisions to scale down that have to be taken back at once (its t = 130 min).
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from paper_figures.gesscale.panels import draw_run, run_of


def load(tables: Path) -> pd.DataFrame:
    return run_of(tables, "thr_nlaware")


def draw(run: pd.DataFrame) -> Figure:
    return draw_run(run, "thr_nlaware", with_deviation=True)
