"""Readings of the CPU gauge of one VM under constant load, for Figure 7: how far they spread, by load."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd

from controller.experiment import load as load_experiment
from controller.testbeds.simulated.measure import Draws, Readers, WindowErrors
from controller.testbeds.simulated.settings import Simulation, simulation_of

RUNS, READINGS = 20, 120
LOADS = np.linspace(0.0, 1.0, 21)


def compute() -> pd.DataFrame:
    experiment = load_experiment(Path(__file__).parent / "experiment.yml")
    given = experiment.policies["ekf"].parameters["measurement_variance"]["cpu"]
    simulation, rows = simulation_of(experiment.testbed), []
    for seed in range(RUNS):
        rng = np.random.default_rng(seed)
        for ratio in LOADS:
            read = readings(float(ratio), simulation, rng)
            rows.append((ratio, seed, read.std(ddof=1), read.mean() - ratio))
    frame = pd.DataFrame(rows, columns=["load_ratio", "seed", "sigma", "bias"])
    return frame.assign(given_sigma=given**0.5)


def readings(ratio: float, simulation: Simulation, rng: np.random.Generator) -> np.ndarray:
    """A minute of readings, one in every step, by the simulated testbed's own gauge."""
    readers = Readers.of(simulation.noise, Draws.of(rng, rng), meters=0, gauges=READINGS)
    if simulation.noise.cpu_by_window:
        shared = WindowErrors(round(simulation.metric_window_s / simulation.step_s))
        errors = [shared.of(("vm",), step, rng)[0] for step in range(1, READINGS + 1)]
        readers = readers._replace(cpu_error=iter(errors))
    return np.array([readers.cpu(ratio, factor) for factor in islice(readers.cpu_factor, READINGS)])
