"""Figure 4: the same load, filtered before it is held against the thresholds.

The same trend and the same noise as in Figure 3, through one Kalman filter. The paper counts 7 scaling
operations instead of 23.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from paper_figures.ekf import noisy_load


def load(tables: Path) -> pd.DataFrame:
    return noisy_load.read(tables, filtered=True)


def draw(run: pd.DataFrame) -> Figure:
    return noisy_load.draw(run, filtered=True)
