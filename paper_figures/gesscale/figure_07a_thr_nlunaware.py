"""Figure 7a: THR-NLUnaware over the two taxi days.

The first seed. Throughput falls to zero at every reconfiguration and exceeds the workload while the backlog
is worked off; below, what runs minus what the ideal autoscaler runs.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from paper_figures.gesscale.panels import draw_run, run_of


def load(tables: Path) -> pd.DataFrame:
    return run_of(tables, "thr_nlunaware")


def draw(run: pd.DataFrame) -> Figure:
    return draw_run(run, "thr_nlunaware", with_deviation=True)
