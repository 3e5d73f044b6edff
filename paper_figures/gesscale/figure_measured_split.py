"""Measured: the taxi job with source and sink on the services node.

A real Flink on emulated nodes, the first seed of each policy: load and what was processed, replicas beside
those that the load asked for, and records that wait in Kafka. Where no replica runs, the job was being
restarted.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from paper_figures.gesscale.panels import draw_measured, measured_runs


def load(tables: Path) -> pd.DataFrame:
    return measured_runs(tables, "split")


def draw(runs: pd.DataFrame) -> Figure:
    return draw_measured(runs)
