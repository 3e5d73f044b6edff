"""The timeline of runs: load, replicas, backlog and response time, one above the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import NDArray

from analysis.plotting import PAGE_WIDTH_IN, POLICY_COLOUR

BINS = 300  # about as many as a page has room for
_TALL, _LOW = 1.5, 1.05  # heights in inches


def timeline(runs: Mapping[str, pd.DataFrame], ink: str = "black") -> Figure:
    """Draws runs, by policy: samples with time_s, the counters, demand, supply and response_p95_ms.

    `ink` is the colour of what belongs to no policy: what was offered, and demand. One run is drawn over the
    whole width; of several, each has a row with its load and its replicas, since lines that stop and go at
    different times cannot be told apart in one panel.
    """
    end_s = max(float(run["time_s"].max()) for run in runs.values())
    unit_s, unit = _time_unit(end_s)
    answers = {name: run for name, run in runs.items() if run["response_p95_ms"].notna().any()}
    figure, rows, below = _panels(len(runs), 1 + bool(answers))
    for place, (policy, (load, replicas)) in enumerate(zip(runs, rows, strict=True)):
        _draw_rates(load, policy, runs[policy], unit_s, ink)
        _draw_replicas(replicas, policy, runs[policy], unit_s, ink)
        _entitle(load, replicas, policy, explained=place == 0, alone=len(runs) == 1)
    _draw_backlog(below[0], runs, unit_s)
    if answers:
        _draw_response(below[1], answers, unit_s)
    below[-1].set_xlabel(f"Time ({unit})")
    below[-1].set_xlim(0, end_s / unit_s)
    _equal_heights([load for load, _ in rows])
    _equal_heights([replicas for _, replicas in rows])
    return figure


def _panels(runs: int, below: int) -> tuple[Figure, list[tuple[Axes, Axes]], list[Axes]]:
    """A row of two panels for each run (one above the other for a single run), and full-width ones below."""
    alone = runs == 1
    heights = ([_TALL, _TALL] if alone else [_LOW] * runs) + [_LOW] * below
    figure = Figure(figsize=(PAGE_WIDTH_IN, sum(heights) + 0.33 * len(heights)), layout="constrained")
    grid = figure.add_gridspec(len(heights), 1 if alone else 2, height_ratios=heights)
    lowest = figure.add_subplot(grid[-1, :])
    upper = [figure.add_subplot(grid[place, :], sharex=lowest) for place in range(-below, -1)]
    if alone:
        rows = [
            (figure.add_subplot(grid[0, 0], sharex=lowest), figure.add_subplot(grid[1, 0], sharex=lowest))
        ]
    else:
        rows = [
            (
                figure.add_subplot(grid[place, 0], sharex=lowest),
                figure.add_subplot(grid[place, 1], sharex=lowest),
            )
            for place in range(runs)
        ]
    for axis in [axis for row in rows for axis in row] + upper:
        axis.tick_params(labelbottom=False)
    return figure, rows, [*upper, lowest]


def _entitle(load: Axes, replicas: Axes, policy: str, explained: bool, alone: bool) -> None:
    if alone:
        load.set_title("Records per second: offered (shaded) and processed")
        replicas.set_title("Replicas: running (coloured) and demand (line)")
    else:  # half as wide
        load.set_title(f"{policy}: records/s" + (" (offered shaded)" if explained else ""))
        replicas.set_title(f"{policy}: replicas" + (" (demand as a line)" if explained else ""))


def _equal_heights(axes: list[Axes]) -> None:
    """Panels of one kind are read against each other, so they share a scale."""
    top = max(axis.get_ylim()[1] for axis in axes)
    for axis in axes:
        axis.set_ylim(0, top)


def _time_unit(span_s: float) -> tuple[float, str]:
    if span_s > 12 * 3600:
        return 3600.0, "h"
    return (60.0, "min") if span_s > 180 else (1.0, "s")


def _draw_rates(axis: Axes, policy: str, run: pd.DataFrame, unit_s: float, ink: str) -> None:
    middle, offered = _rate(run, "offered_records")
    axis.fill_between(middle / unit_s, offered, color=ink, alpha=0.15, linewidth=0)
    middle, processed = _rate(run, "processed_records")
    axis.plot(middle / unit_s, processed, color=POLICY_COLOUR[policy], linewidth=0.9)


def _draw_replicas(axis: Axes, policy: str, run: pd.DataFrame, unit_s: float, ink: str) -> None:
    colour = POLICY_COLOUR[policy]
    time, supply = _steps(run, "supply")
    axis.fill_between(time / unit_s, supply, step="post", color=colour, alpha=0.35, linewidth=0)
    axis.step(time / unit_s, supply, where="post", color=colour, linewidth=0.8)
    time, demand = _steps(run, "demand")
    axis.step(time / unit_s, demand, where="post", color=ink, linewidth=0.8)
    axis.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=4))


def _draw_backlog(axis: Axes, runs: Mapping[str, pd.DataFrame], unit_s: float) -> None:
    for policy, run in runs.items():
        edges = _edges(run)
        lag = np.interp(edges, run["time_s"], run["lag_records"])
        axis.plot(edges / unit_s, lag, color=POLICY_COLOUR[policy], linewidth=1.0)
    axis.set_title("Lag: records offered and not yet processed")
    axis.set_ylim(0, None)
    axis.yaxis.set_major_formatter(FuncFormatter(_thousands))
    axis.yaxis.set_major_locator(MaxNLocator(nbins=4))


def _draw_response(axis: Axes, runs: Mapping[str, pd.DataFrame], unit_s: float) -> None:
    for policy, run in runs.items():
        known = run.dropna(subset=["response_p95_ms"])
        places = np.clip(np.digitize(known["time_s"], _edges(run)) - 1, 0, BINS - 1)
        worst = known.groupby(places)[["time_s", "response_p95_ms"]].max()  # a mean would hide the peaks
        axis.plot(
            worst["time_s"] / unit_s,
            worst["response_p95_ms"] / 1000,
            color=POLICY_COLOUR[policy],
            linewidth=1.0,
        )
    axis.set_title("Response time: 95th percentile, seconds")
    axis.set_yscale("log")
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _place: f"{value:g}"))
    axis.minorticks_off()


def _edges(run: pd.DataFrame) -> NDArray[np.float64]:
    return np.linspace(0.0, float(run["time_s"].max()) or 1.0, BINS + 1)


def _rate(run: pd.DataFrame, counter: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The rise of a counter per second, in bins; their middles come first."""
    edges = _edges(run)
    records = np.interp(edges, run["time_s"], run[counter])
    return (edges[1:] + edges[:-1]) / 2, np.diff(records) / np.diff(edges)


def _steps(run: pd.DataFrame, column: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Only where a step function changes, and its end: a figure needs no more."""
    values = run[column].astype(float).to_numpy()
    changes = np.flatnonzero(np.r_[True, values[1:] != values[:-1]])
    kept = np.unique(np.r_[changes, len(values) - 1])
    return run["time_s"].to_numpy()[kept], values[kept]


def _thousands(value: float, _place: Any) -> str:
    return f"{value / 1000:g} k" if abs(value) >= 1000 else f"{value:g}"
