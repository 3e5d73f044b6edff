"""Figure 3: operators scaled by thresholds on the load as it is measured.

A made-up load, as the paper's own is not published: a trend with the noise of the experiment. The paper
counts 23 scaling operations.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from paper_figures.ekf import noisy_load


def load(tables: Path) -> pd.DataFrame:
    return noisy_load.read(tables, filtered=False)


def draw(run: pd.DataFrame) -> Figure:
    return noisy_load.draw(run, filtered=False)
