"""The runs: how each came about, and that no record was lost.

Emulated nodes share the cores of one machine with whatever else it does: the load average (of one minute,
mean over the run) is of everything, the run itself included. Any waiting: share of the run in which at least
one task of the machine waited for a processor. Own wait: how long a task of the controller or of the
testbed's services waited for its turn, in the mean; short where the rest of the machine has a lower priority,
however high the load. Stopped: median time without a processed record in one rescaling.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from paper_figures.measured import METRICS
from paper_figures.published import load as load_published


def load(tables: Path) -> pd.DataFrame:
    if not (tables / METRICS).exists():
        return pd.DataFrame()
    runs = pd.read_parquet(tables / METRICS)
    label = load_published(Path(__file__).parent).label
    return pd.DataFrame(
        {
            "Algorithm": runs["policy"].map(label),
            "job": runs["job"],
            "layout": runs["scenario"],
            "seed": runs["seed"],
            "begun (UTC)": runs["begun"].str.slice(0, 16).str.replace("T", " "),
            "hours of load": runs["span_h"],
            "minutes": (runs["duration_s"] / 60).round(1),
            "records": runs["produced"].astype("Int64"),
            "lost": runs["lost"].astype("Int64"),
            "doubled": runs["doubled"].astype("Int64"),
            "interrupted": runs["gaps"],
            "stopped (s)": runs["silent_s"].round(1),
            "cores": runs["cores"].astype("Int64"),
            "load average": runs["load_average_mean"].round(1),
            "any waiting (%)": (100 * runs["cpu_waiting_ratio"]).round(0),
            "own wait (ms)": runs["own_wait_ms"].astype(float).round(2),
        }
    )
