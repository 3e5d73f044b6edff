"""Figure 6: the three workload scenarios.

Pyramid and Square are as published. The lab's own trace was never published: ours is a stand-in with as many
images in the mean, and with both rapid and smooth changes.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis.plotting import PAGE_WIDTH_IN
from controller.experiment import load as load_experiment
from controller.experiment import scenarios_of
from workloads import catalog
from workloads.replay import ReplaySettings, offered_rate_per_s

STEP_S = 1.0


def load(_tables: Path) -> pd.DataFrame:
    experiment = load_experiment(Path(__file__).parent / "experiment.yml")
    frames = []
    for name, scenario in scenarios_of(experiment).items():
        profile = catalog.load(scenario.workload.name, **scenario.workload.parameters).profile
        rate_per_s = offered_rate_per_s(profile, ReplaySettings(), STEP_S)
        time_s = np.arange(len(rate_per_s)) * STEP_S
        title = experiment.scenarios[name].title
        frames.append(pd.DataFrame({"scenario": title, "time_s": time_s, "rate_per_s": rate_per_s}))
    return pd.concat(frames, ignore_index=True)


def draw(rates: pd.DataFrame) -> Figure:
    scenarios = rates["scenario"].unique()
    figure = Figure(figsize=(PAGE_WIDTH_IN, 1.1 * len(scenarios) + 0.4))
    axes = figure.subplots(len(scenarios), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    for axis, scenario in zip(axes, scenarios, strict=True):
        rows = rates[rates["scenario"] == scenario]
        axis.step(rows["time_s"], rows["rate_per_s"], where="post", color="#30363D", linewidth=1.0)
        axis.set(ylabel="Images/s", ylim=(0, 1.1 * rates["rate_per_s"].max()))
        axis.set_title(scenario, fontsize=7)
    axes[-1].set(xlabel="Time (s)", xlim=(0, rates["time_s"].max()))
    return figure
