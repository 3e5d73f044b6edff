"""What Figure 5 draws six times: response time and replicas of one run."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, MultipleLocator

from analysis.plotting import PAGE_WIDTH_IN, POLICY_COLOUR

R_MAX_COLOUR = "#30363D"
HIGHEST_MS = 1000.0  # what a change costs goes far beyond; the published figures cut it off, too


def run_of(tables: Path, policy: str) -> pd.DataFrame:
    """The run of a policy with the first seed, every sample with what ran then."""
    series = pd.read_parquet(tables / "series.parquet")
    return series[series["policy"] == policy].reset_index(drop=True)


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
    ran = run["job_supply"].where(run["job_supply"] >= 8)  # a paused operator has none for a moment
    replicas.step(hours, ran.ffill(), where="post", color=colour, linewidth=0.9)
    replicas.set(xlabel="Time (h)", ylabel="Replicas", ylim=(7, 22), xlim=(0, 12))
    replicas.xaxis.set_major_locator(MultipleLocator(2))
    replicas.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=5))
    figure.align_ylabels([response, replicas])
    return figure
