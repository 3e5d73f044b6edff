"""sensitivity.html and its figures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from analysis.metrics.labels import label_of
from analysis.plotting import PAGE_WIDTH_IN, save, styled
from controller.experiment import Experiment
from fogscale.files import write_whole
from paper_figures.campaign import BASE, NOT_A_SETTING
from paper_figures.page import rendered
from paper_figures.published import Published

if TYPE_CHECKING:
    from paper_figures.sensitivity import Sensitivity

AGREE, DISAGREE, OPEN = "#2F9E72", "#D9713F", "#C3CAD4"
POINT_COLOUR = "#30363D"


def write_sensitivity_page(
    folder: Path,
    published: Published,
    experiment: Experiment,
    found: Sensitivity,
    agreement: pd.DataFrame,
    parts: Mapping[str, pd.DataFrame],
) -> None:
    with styled():
        drawings = {
            "sensitivity_agreement": draw_agreement(agreement, found),
            "sensitivity_orders": draw_orders(parts["orders"], published),
            "sensitivity_parameters": draw_correlation(parts["correlation"]),
        }
    for stem, figure in drawings.items():
        save(figure, folder / stem)
    page = rendered(
        "sensitivity.html.j2",
        published=published,
        experiment=experiment,
        found=found,
        correlation=parts["correlation"],
        hangs_on=parts["hangs_on"],
        short=short_name,
    )
    write_whole(found.page, page)


def draw_agreement(agreement: pd.DataFrame, found: Sensitivity) -> Figure:
    """The distribution over the sets, with the calibration marked; below, the same for each variation."""
    figure = Figure(figsize=(PAGE_WIDTH_IN, 2.1 + 0.3 * len(found.agreement)))
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[2.0, 0.35 * len(found.agreement)])
    base = agreement[(agreement["variation"] == BASE) & (agreement["set"] > 0)]
    bins = np.arange(-0.5, found.orders + 1.5)
    above.hist(base["agree"], bins=bins, color=AGREE, alpha=0.75, rwidth=0.9)
    point = found.agreement[0].calibrated
    above.axvline(point, color=POINT_COLOUR, linewidth=1.2)
    above.annotate(
        f" as calibrated: {point}", (point, 0.96), xycoords=("data", "axes fraction"), va="top", fontsize=7
    )
    above.set_ylabel("Parameter sets")
    above.margins(y=0.2)  # room for the words beside the line
    above.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=5))
    _draw_boxes(below, agreement, found)
    below.set(xlabel=f"Orders that agree, of {found.orders}", xlim=(-0.5, found.orders + 0.5))
    return figure


def _draw_boxes(axis: Axes, agreement: pd.DataFrame, found: Sensitivity) -> None:
    drawn = agreement[agreement["set"] > 0].groupby("variation")["agree"].apply(list)
    axis.boxplot(
        [drawn[row.variation] for row in found.agreement],
        orientation="horizontal",
        widths=0.55,
        medianprops={"color": AGREE, "linewidth": 1.6},
        flierprops={"markersize": 2},
        boxprops={"linewidth": 0.7},
        whiskerprops={"linewidth": 0.7},
    )
    places = range(1, len(found.agreement) + 1)
    axis.plot([row.calibrated for row in found.agreement], places, "D", color=POINT_COLOUR, markersize=3.5)
    axis.set_yticks(list(places), [row.title for row in found.agreement])
    axis.invert_yaxis()
    axis.grid(axis="x")
    axis.grid(visible=False, axis="y")


def draw_orders(frequency: pd.DataFrame, published: Published) -> Figure:
    """In which share of the sets each order agrees, one panel per scenario and metric."""
    panels = list(frequency.groupby(["scenario", "metric"], sort=False))
    columns = 2
    rows = -(-len(panels) // columns)
    pairs = len(published.pairs)
    figure = Figure(figsize=(PAGE_WIDTH_IN, rows * (0.17 * pairs + 0.45)))
    axes = figure.subplots(rows, columns, sharex=True, squeeze=False)
    for axis, ((scenario, metric), shares) in zip(axes.flat, panels, strict=False):
        _draw_shares(axis, shares, published)
        name = label_of(str(metric)).name
        axis.set_title(f"{scenario}: {name}" if scenario else name)
    for axis in axes.flat[len(panels) :]:
        axis.set_axis_off()
    _draw_key(axes.flat[-1] if len(axes.flat) > len(panels) else axes.flat[0])
    for axis in axes.flat[len(panels) - columns : len(panels)]:  # the lowest of each column
        axis.set_xlabel("Share of sets (%)")
        axis.tick_params(labelbottom=True)
    return figure


def _draw_shares(axis: Axes, rows: pd.DataFrame, published: Published) -> None:
    names = [
        f"{published.label(a)} / {published.label(b)}" for a, b in zip(rows["a"], rows["b"], strict=True)
    ]
    start = np.zeros(len(rows))
    for verdict, colour in (("agree", AGREE), ("not_significant", OPEN), ("disagree", DISAGREE)):
        width = 100 * rows[verdict].to_numpy()
        axis.barh(names, width, left=start, color=colour, height=0.72)
        start = start + width
    axis.invert_yaxis()
    axis.set_xlim(0, 100)
    axis.grid(visible=False)
    axis.tick_params(axis="y", length=0, labelsize=6)


def _draw_key(axis: Axes) -> None:
    named = (("agrees", AGREE), ("not significant", OPEN), ("disagrees", DISAGREE))
    handles = [axis.bar(0, 0, color=colour, label=label) for label, colour in named]
    axis.legend(handles=handles, loc="center", fontsize=8)


def draw_correlation(correlation: pd.DataFrame) -> Figure:
    """Which assumption matters: rank correlation of each parameter with the number of orders that agree."""
    figure = Figure(figsize=(PAGE_WIDTH_IN, 0.5 + 0.22 * len(correlation)))
    axis = figure.subplots()
    values = correlation["rank_correlation"].fillna(0.0)
    is_significant = correlation["p"] < 0.05
    colours = [POINT_COLOUR if known else OPEN for known in is_significant]
    axis.barh([short_name(path) for path in correlation["parameter"]], values, color=colours, height=0.65)
    axis.axvline(0, color=POINT_COLOUR, linewidth=0.6)
    axis.set(xlim=(-1, 1), xlabel="Rank correlation with the number of orders that agree (pale: p ≥ 0.05)")
    axis.invert_yaxis()
    axis.grid(axis="x")
    axis.grid(visible=False, axis="y")
    return figure


def short_name(path: str) -> str:
    """The path without what all of them share."""
    return path.removeprefix(NOT_A_SETTING).removeprefix("testbed.")
