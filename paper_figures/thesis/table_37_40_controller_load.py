"""Figures 37–40: the controller's own load, in the thesis and as measured here.

Measured while these tables were made, on this machine, in a process that is fed the samples of Figures 27
and 29 one by one; CPU time of one core. The thesis' controller also asks Prometheus and Flink over HTTP for
every sample, which these numbers leave out; training and stability check are the same work on data of the
same size.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from paper_figures.thesis.controller_load import measured
from paper_figures.thesis.samples import explored, samples_of

# What htop showed: Figures 37 to 40, §5.5.
ROWS = (
    ("Exploration: CPU", "%", "0–2", "exploration_cpu_ratio", 100, 4),
    ("Exploration: memory", "MB", "141", "exploration_mb", 1, 0),
    ("Training of the model", "s", "5", "training_s", 1, 4),
    ("Stability check, k = 250", "s", "60", "stability_s", 1, 3),
    ("Training and check: most memory", "MB", "144", "learning_mb", 1, 0),
    ("Optimal control: CPU", "%", "0–3", "control_cpu_ratio", 100, 4),
    ("Optimal control: memory", "MB", "143", "control_mb", 1, 0),
)


def load(tables: Path) -> pd.DataFrame:
    exploration = explored(samples_of(tables, "exploration", "proactive"))
    found = measured(exploration, samples_of(tables, "optimal_control", "proactive"))
    return pd.DataFrame(
        {
            "": name,
            "Unit": unit,
            "Thesis": published,
            "Ours, measured": f"{scale * found[key]:.{digits}f}",
        }
        for name, unit, published, key, scale, digits in ROWS
    )
