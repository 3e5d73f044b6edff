"""Readings of the CPU gauge of one VM under constant load, for Figure 7: how far they spread, by load."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd

from controller.experiment import load as load_experiment
from controller.testbeds.simulated.measure import Draws, Readers
from controller.testbeds.simulated.settings import Noise, simulation_of

RUNS, READINGS = 20, 120
LOADS = np.linspace(0.0, 1.0, 21)


def compute() -> pd.DataFrame:
    experiment = load_experiment(Path(__file__).parent / "experiment.yml")
    given = experiment.policies["ekf"].parameters["measurement_variance"]["cpu"]
    rows = []
    for seed in range(RUNS):
        rng = np.random.default_rng(seed)
        for ratio in LOADS:
            read = readings(float(ratio), simulation_of(experiment.testbed).noise, rng)
            rows.append((ratio, seed, read.std(ddof=1), read.mean() - ratio))
    frame = pd.DataFrame(rows, columns=["load_ratio", "seed", "sigma", "bias"])
    return frame.assign(given_sigma=given**0.5)


def readings(ratio: float, noise: Noise, rng: np.random.Generator) -> np.ndarray:
    """A minute of readings, by the simulated testbed's own gauge."""
    readers = Readers.of(noise, Draws.of(rng, rng), meters=0, gauges=READINGS)
    return np.array([readers.cpu(ratio, factor) for factor in islice(readers.cpu_factor, READINGS)])
