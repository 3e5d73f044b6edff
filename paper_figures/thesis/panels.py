"""What the figures of the thesis share: panels one above the other, slow records against the SLA."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from analysis.plotting import PAGE_WIDTH_IN, POLICY_COLOUR
from paper_figures.thesis.samples import model_of

SLA_RATIO = 0.1
CHANGE_RESIDUAL = 0.08
WORKLOAD_COLOUR = "#6E7781"
ACTUAL_COLOUR = "#30363D"
SLA_COLOUR = "#C4513A"
REPLICAS_COLOURS = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#D55E00",
)  # of 1, 2, … TaskManagers


def stacked(panels: int, height_in: float = 1.15) -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=(PAGE_WIDTH_IN, height_in * panels + 0.3))
    axes = list(np.atleast_1d(figure.subplots(panels, 1, sharex=True)))
    return figure, axes


def draw_performance(samples: pd.DataFrame, policy: str, intervals: str) -> Figure:
    """Figures 27, 29 and 32: workload, parallelism and slow records, sample by sample."""
    figure, axes = stacked(3)
    number = samples["sample"]
    axes[0].plot(number, samples["workload_per_s"], color=WORKLOAD_COLOUR, linewidth=0.9)
    axes[0].set(ylabel="Workload\n(records/s)", ylim=(0, None))
    axes[1].step(number, samples["replicas"], where="post", color=POLICY_COLOUR[policy])
    parallelism(axes[1], samples["replicas"])
    axes[2].plot(number, samples["slow_ratio"], color=POLICY_COLOUR[policy], linewidth=0.7)
    slow_records(axes[2], samples["slow_ratio"])
    for axis in axes:
        shade_exploration(axis, samples)
    axes[-1].set(xlabel=f"Sample (one per {intervals}; shaded: exploration)", xlim=(0, number.max()))
    figure.align_ylabels(axes)
    return figure


def draw_predictions(samples: pd.DataFrame) -> Figure:
    """Figures 30 and 34: slow records and workload as foreseen and as they came, and the residuals."""
    control = samples[samples["exploration"] == 0]
    figure, axes = stacked(3)
    number = control["sample"]
    _both(axes[0], number, control["slow_ratio"], control["foreseen_slow_ratio"])
    slow_records(axes[0], control["slow_ratio"])
    axes[0].legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, borderaxespad=0.1)
    axes[1].plot(number, control["residual"], color=POLICY_COLOUR["proactive"], linewidth=0.7)
    axes[1].axhline(CHANGE_RESIDUAL, color=SLA_COLOUR, linewidth=0.8)
    axes[1].annotate(
        "a change", (0.005, CHANGE_RESIDUAL), xycoords=("axes fraction", "data"), xytext=(0, 2),
        textcoords="offset points", fontsize=6, color=SLA_COLOUR,
    )  # fmt: skip
    axes[1].set(ylabel="Residual of\nslow records", ylim=(0, 1.6 * CHANGE_RESIDUAL))
    _both(axes[2], number, control["workload_per_s"], control["foreseen_workload_per_s"])
    axes[2].set(ylabel="Workload\n(records/s)", ylim=(0, None))
    axes[2].set_xlabel("Sample in optimal control (one per 5 s)")
    figure.align_ylabels(axes)
    return figure


def _both(axis: Axes, number: pd.Series, actual: pd.Series, foreseen: pd.Series) -> None:
    axis.plot(number, actual, color=ACTUAL_COLOUR, linewidth=0.7, label="actual")
    axis.plot(number, foreseen, color=POLICY_COLOUR["proactive"], linewidth=0.9, label="predicted")


def draw_comparison(seen: pd.DataFrame) -> Figure:
    """Figures 31 and 35: both scalers over time, since they discard different samples."""
    figure, axes = stacked(4)
    for policy, rows in seen.groupby("policy", sort=True):
        minutes, colour = rows["time_s"] / 60, POLICY_COLOUR[str(policy)]
        style = "-" if policy == "proactive" else (0, (4, 1))
        axes[1].step(minutes, rows["replicas"], where="post", color=colour, linestyle=style, label=policy)
        panel = axes[2] if policy == "proactive" else axes[3]
        panel.plot(minutes, rows["slow_ratio"], color=colour, linewidth=0.7)
        panel.set_title(str(policy), loc="left", pad=2)
    first = seen[seen["policy"] == seen["policy"].min()]
    axes[0].plot(first["time_s"] / 60, first["workload_per_s"], color=WORKLOAD_COLOUR, linewidth=0.9)
    axes[0].set(ylabel="Workload\n(records/s)", ylim=(0, None))
    parallelism(axes[1], seen["replicas"])
    axes[1].legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, borderaxespad=0.1)
    for axis in axes[2:]:
        slow_records(axis, seen["slow_ratio"])
    axes[-1].set(xlabel="Time (min; gaps: samples discarded)", xlim=(0, seen["time_s"].max() / 60))
    figure.align_ylabels(axes)
    return figure


def draw_model(exploration: pd.DataFrame) -> Figure:
    """Figures 28 and 33: slow records over workload, a line per number of TaskManagers; points: measured."""
    figure = Figure(figsize=(PAGE_WIDTH_IN, 2.8))
    axis = figure.subplots()
    model = model_of(exploration)
    for replicas, rows in exploration.groupby("replicas"):
        number = int(str(replicas))
        colour = REPLICAS_COLOURS[(number - 1) % len(REPLICAS_COLOURS)]
        name = f"{number} TaskManager{'' if number == 1 else 's'}"
        workload_per_s = rows["workload_per_s"]
        (points,) = axis.plot(
            workload_per_s, rows["slow_ratio"], ".", color=colour, markersize=2.5, alpha=0.35
        )
        if model is None:
            points.set_label(name)
        else:
            within_per_s = np.linspace(workload_per_s.min(), workload_per_s.max(), 200)
            axis.plot(within_per_s, model.value(within_per_s, float(number)), color=colour, label=name)
    slow_records(axis, exploration["slow_ratio"])
    axis.set(xlabel="Workload (records/s)", xlim=(0, None))
    axis.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=6, borderaxespad=0.1)
    return figure


def slow_records(axis: Axes, slow_ratio: pd.Series) -> None:
    """Up to twice the SLA: readings far above it (a backlog) are cut off."""
    axis.axhline(SLA_RATIO, color=SLA_COLOUR, linewidth=0.8)
    axis.annotate(
        "SLA", (0.005, SLA_RATIO), xycoords=("axes fraction", "data"), xytext=(0, 2),
        textcoords="offset points", fontsize=6, color=SLA_COLOUR,
    )  # fmt: skip
    axis.set(ylabel="Slow records\n(queue/workload)", ylim=(0, min(0.2, max(0.12, 1.1 * slow_ratio.max()))))


def parallelism(axis: Axes, replicas: pd.Series) -> None:
    axis.set(ylabel="TaskManagers", ylim=(0, replicas.max() + 0.4))
    axis.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=5))


def shade_exploration(axis: Axes, samples: pd.DataFrame) -> None:
    exploring = (samples["exploration"] == 1).to_numpy()
    number = samples["sample"].to_numpy()
    edges = np.flatnonzero(np.diff(np.concatenate([[0], exploring.astype(int), [0]])))
    for begin, end in edges.reshape(-1, 2):
        axis.axvspan(number[begin], number[end - 1], color=WORKLOAD_COLOUR, alpha=0.10, linewidth=0)
