"""Figure 7c: MDL-NLUnaware over the two taxi days.

The first seed. Several replicas may leave at once, but nodes are drawn at random and the model knows no
delays.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from paper_figures.gesscale.panels import draw_run, run_of


def load(tables: Path) -> pd.DataFrame:
    return run_of(tables, "mdl_nlunaware")


def draw(run: pd.DataFrame) -> Figure:
    return draw_run(run, "mdl_nlunaware", with_deviation=True)
