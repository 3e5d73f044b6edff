"""The load of Figures 3 and 4: a trend with noise, and thresholds that scale operators one by one.

The figures' data are not published; they show the idea, on a load that no number of operators changes. Ours:
three slow waves of demand, read twice a second with the noise that the experiment assumes, shared by the
operators that run at once.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from controller.experiment import load as load_experiment
from controller.models.kalman import KalmanFilters, KalmanSettings
from controller.testbeds.simulated.settings import simulation_of
from paper_figures.ekf.noisy_load import SPAN_S
from paper_figures.ekf.panels import HIGH_RATIO, LOW_RATIO

STEP_S = 0.5
SEED = 1


def compute() -> pd.DataFrame:
    return pd.concat([scaled(filtered).assign(filtered=filtered) for filtered in (False, True)])


def demand(times_s: np.ndarray) -> np.ndarray:
    """In units of what one operator can do: up and down between 1 and 4, as in the figures."""
    return 2.4 + 1.3 * np.sin(2 * np.pi * times_s / 160 - 1.3) + 0.25 * np.sin(2 * np.pi * times_s / 37)


def scaled(filtered: bool) -> pd.DataFrame:
    """Operators that thresholds ask for, on what is measured or on what one Kalman filter makes of it."""
    experiment = load_experiment(Path(__file__).parent / "experiment.yml")
    noise = simulation_of(experiment.testbed).noise.cpu_absolute
    rng = np.random.default_rng(SEED)
    times_s = np.arange(0.0, SPAN_S, STEP_S)
    settings = KalmanSettings((noise**2,), dead_time_s=2.0, ease_in_s=0.0, system_noise_floor=1e-4)
    filters, operators, rows = KalmanFilters(settings), 2, []
    for time_s, wanted in zip(times_s, demand(times_s), strict=True):
        measured = max(0.0, wanted / operators + noise * rng.standard_normal())
        estimate = float(filters.step(float(time_s), ("all",), np.array([[measured]]), [0.0])[0, 0])
        load = estimate if filtered and np.isfinite(estimate) else measured
        rows.append((time_s, measured, load, operators))
        change = int(load > HIGH_RATIO) - int(load < LOW_RATIO and operators > 1)
        if change:
            filters.divide(operators / (operators + change))
            operators += change
    return pd.DataFrame(rows, columns=["time_s", "measured_ratio", "load_ratio", "operators"])
