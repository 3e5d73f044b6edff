"""plausible.html and its figures."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.metrics.labels import label_of
from analysis.plotting import PAGE_WIDTH_IN, save, styled
from controller.experiment import Experiment, scenarios_of
from fogscale.files import write_whole
from paper_figures.acceptance import Floats
from paper_figures.ceiling import NEAR
from paper_figures.page import rendered
from paper_figures.published import Published
from paper_figures.sensitivity_page import AGREE, OPEN, POINT_COLOUR, short_name

if TYPE_CHECKING:
    from paper_figures.plausible import Judged, Plausible, Table

COLUMNS = 4
BINS = 12
FARTHEST_SHOWN = 6.0  # standard deviations


def write_plausible_page(
    folder: Path,
    published: Published,
    experiment: Experiment,
    found: Plausible,
    table: Table,
    nearest: Sequence[Judged],
    beside: Sequence[Judged],
) -> None:
    drawn = pd.DataFrame([dict(world.world.drawn) for world in nearest])
    values = values_table(published, experiment, table, nearest, beside)
    kept = drawn.assign(
        set=[world.world.number for world in nearest],
        p=[world.draw.p for world in nearest],
        near=[world.near for world in nearest],
        agree=[world.orders["agree"] for world in nearest],
    )
    write_whole(folder / "plausible_worlds.csv", kept.to_csv(index=False))
    write_whole(folder / "plausible_values.csv", values.to_csv(index=False))
    with styled():
        save(draw_posterior(drawn, found), folder / "plausible_posterior")
        save(draw_values(published, table, nearest), folder / "plausible_away")
    page = rendered(
        "plausible.html.j2", published=published, found=found, values=values, short=short_name, near=NEAR
    )
    write_whole(found.page, page)


def values_table(
    published: Published,
    experiment: Experiment,
    table: Table,
    nearest: Sequence[Judged],
    beside: Sequence[Judged],
) -> pd.DataFrame:
    """Published beside the stated point, others in particular, and the posterior."""
    from paper_figures.plausible import point_title

    titles = {name: scenario.title for name, scenario in experiment.scenarios.items()}
    means = np.array([world.means for world in nearest])
    low, median, high = np.nanquantile(means, [0.05, 0.5, 0.95], axis=0)
    rows = []
    for place, (scenario, policy, metric) in enumerate(table.cells):
        label = label_of(metric)
        rows.append(
            {
                **({"Scenario": titles.get(scenario, scenario)} if len(scenarios_of(experiment)) > 1 else {}),
                "Metric": label.name,
                "Policy": published.label(policy),
                "Published": label.text(float(table.published[place])),
                **{point_title(published, point.world): label.text(point.means[place]) for point in beside},
                "Nearest worlds": label.text(median[place]),
                "5 to 95 %": f"{label.text(low[place])} to {label.text(high[place])}",
            }
        )
    return pd.DataFrame(rows)


def draw_posterior(drawn: pd.DataFrame, found: Plausible) -> Figure:
    """Where the kept worlds lie, over the prior, which is even."""
    rows = ceil(len(found.parameters) / COLUMNS)
    figure = Figure(figsize=(PAGE_WIDTH_IN, 1.25 * rows + 0.2))
    axes = figure.subplots(rows, COLUMNS, squeeze=False)
    for axis, posterior in zip(axes.flat, found.parameters, strict=False):
        bins = np.linspace(posterior.prior_low, posterior.prior_high, BINS + 1)
        colour = AGREE if posterior.moved else OPEN
        axis.hist(drawn[posterior.parameter], bins=bins, color=colour, rwidth=0.92)
        axis.axhline(len(drawn) / BINS, color=POINT_COLOUR, linewidth=0.8, linestyle=":")
        axis.set_title(_broken(short_name(posterior.parameter)), fontsize=6)
        axis.set_yticks([])
        axis.tick_params(axis="x", labelsize=6)
        axis.set_xticks([posterior.prior_low, posterior.prior_high])
        axis.grid(visible=False)
    for axis in axes.flat[len(found.parameters) :]:
        axis.set_axis_off()
    return figure


def _broken(name: str, width: int = 24) -> str:
    """In two lines where it is long."""
    if len(name) <= width or "." not in name:
        return name
    front, _, back = name.rpartition(".")
    return f"{front}.\n{back}"


def draw_values(published: Published, table: Table, nearest: Sequence[Judged]) -> Figure:
    """How far each published value is from each kept world, in standard deviations."""
    away = np.array([world.draw.away for world in nearest])
    names = [
        f"{f'{scenario}: ' if scenario else ''}{label_of(metric).name}, {published.label(policy)}"
        for scenario, policy, metric in table.cells
    ]
    figure = Figure(figsize=(PAGE_WIDTH_IN, 0.6 + 0.16 * len(names)))
    axis = figure.subplots()
    _draw_away(axis, np.clip(away, -FARTHEST_SHOWN, FARTHEST_SHOWN))
    axis.set_yticks(range(len(names)), names, fontsize=6)
    axis.set_ylim(len(names) - 0.4, -0.6)
    axis.set_xlabel(
        f"Published value less the mean of a world, in its standard deviations ({FARTHEST_SHOWN:g}: or more)"
    )
    return figure


def _draw_away(axis: Axes, away: Floats) -> None:
    axis.axvspan(-NEAR, NEAR, color=AGREE, alpha=0.15, linewidth=0)
    for place, values in enumerate(away.T):
        axis.plot(values, np.full(len(values), place), "|", color=OPEN, markersize=5)
        axis.plot(np.nanmedian(values), place, "D", color=POINT_COLOUR, markersize=3)
    axis.axvline(0, color=POINT_COLOUR, linewidth=0.6)
    axis.set_xlim(-FARTHEST_SHOWN - 0.3, FARTHEST_SHOWN + 0.3)
    axis.grid(visible=False, axis="y")
