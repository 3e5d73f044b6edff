"""What Figures 6 and 7 share: a run over time, in panels one above the other."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, MultipleLocator

from analysis.plotting import PAGE_WIDTH_IN, POLICY_COLOUR
from paper_figures.measured import SERIES
from paper_figures.published import load as load_published

OFFERED_COLOUR = "#9AA3AE"
OVER_COLOUR = "#5B8DB8"
UNDER_COLOUR = "#C4513A"
WINDOW_S = 60.0


def run_of(tables: Path, policy: str) -> pd.DataFrame:
    """The run of a policy with the first seed."""
    series = pd.read_parquet(tables / "series.parquet")
    return series[series["policy"] == policy].reset_index(drop=True)


def draw_run(run: pd.DataFrame, policy: str, with_deviation: bool) -> Figure:
    """Workload and throughput, replicas, and deviation from the ideal, as in the paper."""
    heights = [1.5, 1.0, 1.0] if with_deviation else [1.5, 1.0]
    figure = Figure(figsize=(PAGE_WIDTH_IN, 1.25 * sum(heights)))
    axes = figure.subplots(len(heights), 1, sharex=True, height_ratios=heights)
    draw_rates(axes[0], run, policy)
    draw_replicas(axes[1], run, policy)
    if with_deviation:
        draw_deviation(axes[2], run)
    axes[-1].set_xlabel("Time (min)")
    axes[-1].set_xlim(0, run["time_s"].max() / 60)
    axes[-1].xaxis.set_major_locator(MultipleLocator(30))
    figure.align_ylabels(list(axes))
    return figure


def draw_rates(axis: Axes, run: pd.DataFrame, policy: str) -> None:
    minutes, offered_per_s = rates(run, "offered_records")
    axis.fill_between(minutes, offered_per_s, color=OFFERED_COLOUR, alpha=0.35, linewidth=0, label="workload")
    minutes, processed_per_s = rates(run, "processed_records")
    axis.plot(minutes, processed_per_s, color=POLICY_COLOUR[policy], label="processed", linewidth=1.0)
    axis.set(ylabel="Records/s", ylim=(0, None))
    axis.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, borderaxespad=0.1)


def draw_replicas(axis: Axes, run: pd.DataFrame, policy: str) -> None:
    minutes = run["time_s"] / 60
    axis.fill_between(
        minutes, run["supply"], step="post", color=POLICY_COLOUR[policy], alpha=0.25, linewidth=0
    )
    axis.step(minutes, run["supply"], where="post", color=POLICY_COLOUR[policy], linewidth=1.0)
    axis.set(ylabel="Replicas", ylim=(0, 6.5))
    axis.yaxis.set_major_locator(MultipleLocator(2))


def draw_deviation(axis: Axes, run: pd.DataFrame) -> None:
    """Replicas running minus the ideal number; 0 is perfect, and a stopped job lacks all it needs."""
    within = run[run["time_s"] <= run["duration_s"]]
    minutes, deviation = within["time_s"] / 60, within["supply"] - within["demand"]
    over, under = deviation.clip(lower=0), deviation.clip(upper=0)
    axis.fill_between(minutes, over, step="post", color=OVER_COLOUR, linewidth=0, label="too many")
    axis.fill_between(minutes, under, step="post", color=UNDER_COLOUR, linewidth=0, label="too few")
    axis.axhline(0, color="#30363D", linewidth=0.6)
    axis.set(ylabel="Replicas − ideal", ylim=(-6.5, 4.5))
    axis.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=5))
    axis.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, borderaxespad=0.1)


def rates(run: pd.DataFrame, counter: str, window_s: float = WINDOW_S) -> tuple[np.ndarray, np.ndarray]:
    """The rise of a counter per second in full windows; their middles, in minutes, come first."""
    edges_s = np.arange(0.0, run["time_s"].max() + 1e-6, window_s)
    records = np.interp(edges_s, run["time_s"], run[counter])
    return (edges_s[1:] + edges_s[:-1]) / 120, np.diff(records) / window_s


def measured_runs(tables: Path, scenario: str) -> pd.DataFrame:
    """The first seed of every policy on a real testbed; empty where none is recorded."""
    if not (tables / SERIES).exists():
        return pd.DataFrame()
    series = pd.read_parquet(tables / SERIES)
    return series[series["scenario"] == scenario].reset_index(drop=True)


def draw_measured(runs: pd.DataFrame) -> Figure:
    """One column per policy: rates, replicas and demand, lag; all on the same scales."""
    published = load_published(Path(__file__).parent)
    policies = [policy for policy in published.policies if policy in set(runs["policy"])]
    figure = Figure(figsize=(PAGE_WIDTH_IN, 4.2))
    rows = figure.subplots(3, len(policies), sharex=True, sharey="row", squeeze=False)
    for (rate, replicas, lag), policy in zip(rows.T, policies, strict=True):
        run = runs[runs["policy"] == policy]
        minutes = run["time_s"] / 60
        for counter, colour in (
            ("offered_records", OFFERED_COLOUR),
            ("processed_records", POLICY_COLOUR[policy]),
        ):
            rate.plot(*rates(run, counter, 30.0), color=colour, linewidth=1.0)
        replicas.step(minutes, run["demand"], where="post", color=OFFERED_COLOUR, linewidth=1.0)
        replicas.step(minutes, run["supply"], where="post", color=POLICY_COLOUR[policy], linewidth=1.0)
        lag.fill_between(
            minutes, run["lag_records"] / 1000, color=POLICY_COLOUR[policy], alpha=0.4, linewidth=0
        )
        rate.set_title(published.label(policy))
        lag.set_xlabel("Time (min)")
    rows[0][0].set(ylabel="Records/s\n(grey: load)", ylim=(0, None))
    rows[1][0].set(ylabel="Replicas\n(grey: demand)", ylim=(0, None))
    rows[1][0].yaxis.set_major_locator(MultipleLocator(1))
    rows[2][0].set(ylabel="Lag\n(1000 records)", ylim=(0, None))
    figure.align_ylabels(list(rows[:, 0]))
    return figure
