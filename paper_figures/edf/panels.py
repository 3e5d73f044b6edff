"""What Figure 5 draws six times: response time and replicas of one run."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, MultipleLocator

from analysis.plotting import PAGE_WIDTH_IN, POLICY_COLOUR
from controller.experiment import load as load_experiment
from controller.testbeds.simulated.settings import simulation_of

R_MAX_COLOUR = "#30363D"
HIGHEST_MS = 1000.0  # what a change costs goes far beyond; the published figures cut it off, too


def run_of(tables: Path, policy: str) -> pd.DataFrame:
    """The run of a policy with the first seed, every sample with what ran then."""
    series = pd.read_parquet(tables / "series.parquet")
    return series[series["policy"] == policy].reset_index(drop=True)


def between_pauses(run: pd.DataFrame) -> pd.Series:
    """Replicas of the job. A paused operator has none, which is no other number of replicas."""
    experiment = load_experiment(Path(__file__).parent / "experiment.yml")
    pause_s = simulation_of(experiment.testbed).reconfiguration.range_s[1]
    changed_s = run["time_s"].where(run["reconfigurations"].diff() > 0).ffill()
    return run["job_supply"].mask(run["time_s"] - changed_s < pause_s).ffill()


def draw_run(run: pd.DataFrame) -> Figure:
    figure = Figure(figsize=(PAGE_WIDTH_IN, 3.0))
    response, replicas = figure.subplots(2, 1, sharex=True, height_ratios=[1.4, 1.0])
    hours = run["time_s"] / 3600
    colour = POLICY_COLOUR["edf"]
    response.plot(hours, run["response_mean_ms"], color=colour, linewidth=0.7)
    response.axhline(250, color=R_MAX_COLOUR, linewidth=0.7, linestyle=(0, (4, 3)))
    response.annotate("R_max", (1.004, 250), xycoords=("axes fraction", "data"), va="center", fontsize=7)
    response.set(ylabel="Response time (ms)", ylim=(0, HIGHEST_MS))
    changes = int(run["reconfigurations"].iloc[-1]) if len(run) else 0
    response.set_title(f"{changes} changes", fontsize=7)
    replicas.step(hours, between_pauses(run), where="post", color=colour, linewidth=0.9)
    replicas.set(xlabel="Time (h)", ylabel="Replicas", ylim=(7, 22), xlim=(0, 12))
    replicas.xaxis.set_major_locator(MultipleLocator(2))
    replicas.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=5))
    figure.align_ylabels([response, replicas])
    return figure
