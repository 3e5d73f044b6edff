"""Figure 7d: Gesscale over the two taxi days.

The first seed. The nearest node joins, the farthest leave, several at once where the model allows.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from paper_figures.gesscale.panels import draw_run, run_of


def load(tables: Path) -> pd.DataFrame:
    return run_of(tables, "gesscale")


def draw(run: pd.DataFrame) -> Figure:
    return draw_run(run, "gesscale", with_deviation=True)
