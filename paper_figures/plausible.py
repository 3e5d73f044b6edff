"""`make plausible`: which worlds make a paper's table plausible, and what its claims are worth in them.

Every world is a set of parameters drawn over the declared ranges, run once. Those nearest to the published
table are kept: they are the posterior of the assumed parameters, beside the ranges as their prior. The kept
worlds are run again with many seeds, which tells whether the published table could be a draw of theirs.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from pydantic import BaseModel, Field
from pyspark.sql import SparkSession
from scipy.stats import kstest

from analysis.kept_rows import KeptRows
from controller.experiment import Experiment
from controller.experiment import load as load_experiment
from fogscale.errors import FogscaleError
from fogscale.files import write_whole
from paper_figures.acceptance import Draw, Floats, as_draw, distances, fewest_worlds, spread_by_neighbours
from paper_figures.build import campaign_folder, figures_folder
from paper_figures.campaign import BASE
from paper_figures.ceiling import NEAR
from paper_figures.claims import State, judged_claims
from paper_figures.cpu import CpuMeter
from paper_figures.metric_rows import Study, Told, World, worlds_of
from paper_figures.orders import counted, judged_orders
from paper_figures.published import Published, paper_folder
from paper_figures.published import load as load_published
from paper_figures.sensitivity import Drawn, drawn_sets

KEPT = 100
SHARE_KEPT = 10  # of the worlds, at most one in so many is kept
RESOLUTION = 0.01  # no value is known any better, relative to the largest published one of its metric
PLAUSIBLE = 0.05  # a table that so few of a world's own tables are as far away as: not one of them
MOVED = 0.01  # a posterior differs from its prior if chance alone would do as much so rarely
STATES: tuple[State, ...] = ("holds", "in direction only", "does not hold")

Cell = tuple[str, str, str]
"""Scenario, policy and metric of a published value."""


class Posterior(BaseModel):
    """Of one parameter: where the kept worlds lie within its range."""

    parameter: str
    prior_low: float
    prior_high: float
    low: float  # 5 %
    median: float
    high: float  # 95 %
    p: float  # that even draws from the prior would differ as much (Kolmogorov and Smirnov)
    moved: bool


class ClaimWorth(BaseModel):
    """In which share of the kept worlds a claim has which state."""

    text: str
    shares: dict[State, float]


class Point(BaseModel):
    """One world in particular, with many seeds."""

    title: str
    p: float  # of the published table, as a draw of it
    near: int  # published values within two standard deviations
    agree: int  # orders
    claims: dict[State, int]


class Plausible(BaseModel):
    """plausible.json."""

    sets: int
    kept: int
    seeds: int
    values: int
    orders: int
    nearest: float  # the distance of the best world, in spreads
    farthest_kept: float
    plausible: int  # kept worlds of which the published table could be a draw
    agree: list[float]  # orders that agree in the kept worlds: 5 %, median, 95 %
    near: list[float]  # published values within two standard deviations: the same
    parameters: list[Posterior]
    claims: list[ClaimWorth]
    points: list[Point]
    text: str
    cpu_s: float
    page: Path = Field(exclude=True)


@dataclass(frozen=True)
class Judged:
    """A world, as judged by many runs."""

    world: World
    draw: Draw
    means: Floats
    orders: Mapping[str, int]
    claims: Sequence[State]

    @property
    def near(self) -> int:
        return int((np.abs(self.draw.away) <= NEAR).sum())


@dataclass(frozen=True)
class Table:
    """The published values in one row."""

    cells: list[Cell]
    published: Floats
    resolution: Floats

    def drawn_from(self, metrics: pd.DataFrame, by: str) -> Floats:
        """The same values of our runs: [set or seed, value]."""
        names = list(dict.fromkeys(metric for _, _, metric in self.cells))
        wide = metrics.pivot_table(
            index=by, columns=["scenario", "policy"], values=names, aggfunc="first", dropna=False
        )
        columns = [(metric, scenario, policy) for scenario, policy, metric in self.cells]
        found: Floats = wide.sort_index()[columns].to_numpy(dtype=float)
        return found


def plausible(
    paper: str,
    out: Path,
    spark: SparkSession,
    sets: int = 300,
    seeds: int = 20,
    keep: int = KEPT,
    fresh: bool = False,
    told: Told | None = None,
) -> Plausible:
    """Draws worlds, keeps the nearest, runs those again with many seeds, and writes out/figures/<paper>/."""
    from paper_figures.plausible_page import write_plausible_page

    meter = CpuMeter()
    source = paper_folder(paper)
    experiment, published = load_experiment(source / "experiment.yml"), load_published(source)
    table, drawn = table_of(published), drawn_sets(experiment, sets)
    _check(source.name, table, drawn, sets)
    kept = KeptRows(campaign_folder(out, "plausible", source.name))
    study = Study(source, experiment, published.policies, _metrics(published), kept)
    with kept.alone():
        if fresh:
            kept.keep_only(())
        worlds = list(worlds_of(drawn))
        metrics = study.rows(spark, worlds, [1], told)
        distance = distance_of(metrics, table, in_unit_cube(experiment, drawn))
        chosen = np.argsort(distance)[: min(keep, max(2, sets // SHARE_KEPT))]
        points = [World(0, {}), *_points(published)]
        confirmed = study.rows(spark, [*points, *(worlds[i] for i in chosen)], range(1, seeds + 1))
        meter.read_s()
    judged = _judged(confirmed, table, published, experiment, [*points, *(worlds[i] for i in chosen)])
    nearest, beside = judged[len(points) :], judged[: len(points)]
    folder = figures_folder(out, source.name)
    found = _found(published, experiment, sets, seeds, distance[chosen], nearest, beside, table)
    found = found.model_copy(update={"cpu_s": meter.read_s(), "page": folder / "plausible.html"})
    write_plausible_page(folder, published, experiment, found, table, nearest, beside)
    write_whole(folder / "plausible.json", json.dumps(found.model_dump(), indent=2) + "\n")
    return found


def _check(paper: str, table: Table, drawn: Sequence[Drawn], sets: int) -> None:
    if not table.cells:
        raise FogscaleError(
            f"paper '{paper}' publishes no table to compare with: try make sensitivity PAPER={paper}"
        )
    needed = fewest_worlds(len(drawn[0]))
    if sets < needed:
        raise FogscaleError(f"{sets} sets are too few for {len(drawn[0])} parameters: draw {needed} or more")


def table_of(published: Published) -> Table:
    cells, values, resolution = [], [], []
    for scenario, rows in published.tables.items():
        for policy, row in rows.items():
            for metric, value in row.items():
                largest = max(abs(other.get(metric, 0.0)) for other in rows.values())
                cells.append((scenario, policy, metric))
                values.append(value)
                resolution.append(RESOLUTION * largest or RESOLUTION)
    return Table(cells, np.array(values), np.array(resolution))


def _metrics(published: Published) -> list[str]:
    """Those of the table, and those that claims compare."""
    claimed = [claim for claim in published.claims if claim.measured is None]
    names = [
        *published.metrics,
        *(metric for claim in claimed if claim.limit is None for metric in claim.change.metrics),
        *(claim.limit.metric for claim in claimed if claim.limit is not None),
    ]
    return list(dict.fromkeys(names))


def _points(published: Published) -> list[World]:
    beside = [variation for variation in published.variations if variation.beside_posterior]
    return [World(0, {}, variation) for variation in beside]


def in_unit_cube(experiment: Experiment, drawn: Sequence[Drawn]) -> Floats:
    ranges = {parameter.path: parameter.range for parameter in experiment.parameters if parameter.range}
    low, high = np.array([ranges[path] for path in drawn[0]]).T
    points: Floats = (np.array([list(values.values()) for values in drawn]) - low) / (high - low)
    return points


def distance_of(metrics: pd.DataFrame, table: Table, points: Floats) -> Floats:
    tables = table.drawn_from(metrics, "set")
    spread = np.fmax(spread_by_neighbours(points, tables), table.resolution)
    return distances(tables, table.published, spread)


def _judged(
    metrics: pd.DataFrame,
    table: Table,
    published: Published,
    experiment: Experiment,
    worlds: Sequence[World],
) -> list[Judged]:
    by_world = dict(iter(metrics.groupby(["variation", "set"], sort=False)))
    level = experiment.significance
    found = []
    for world in worlds:
        runs = by_world[world.variation.name if world.variation else BASE, world.number]
        tables = table.drawn_from(runs, "seed")
        draw = as_draw(tables, table.published, table.resolution, published.runs_per_value)
        orders = counted(judged_orders(runs, published, level))
        states = [claim.state for claim in judged_claims(runs, published, level)]
        found.append(Judged(world, draw, tables.mean(axis=0), orders, states))
    return found


def _found(
    published: Published,
    experiment: Experiment,
    sets: int,
    seeds: int,
    distance: Floats,
    nearest: Sequence[Judged],
    beside: Sequence[Judged],
    table: Table,
) -> Plausible:
    count = sum(world.draw.p >= PLAUSIBLE for world in nearest)
    agree = [world.orders["agree"] for world in nearest]
    near = [world.near for world in nearest]
    parameters = posteriors(experiment, [world.world.drawn for world in nearest])
    orders = len(list(published.orders()))
    return Plausible(
        sets=sets,
        kept=len(nearest),
        seeds=seeds,
        values=len(table.cells),
        orders=orders,
        nearest=float(distance.min()),
        farthest_kept=float(distance.max()),
        plausible=count,
        agree=np.quantile(agree, [0.05, 0.5, 0.95]).tolist(),
        near=np.quantile(near, [0.05, 0.5, 0.95]).tolist(),
        parameters=parameters,
        claims=_claims(published, nearest),
        points=[_point(published, world) for world in beside],
        text=_in_words(sets, nearest, count, near, len(table.cells), parameters),
        cpu_s=0.0,
        page=Path(),
    )


def posteriors(experiment: Experiment, kept: Sequence[Drawn]) -> list[Posterior]:
    ranges = {parameter.path: parameter.range for parameter in experiment.parameters if parameter.range}
    found = []
    for path in kept[0]:
        prior_low, prior_high = ranges[path]
        values = np.array([world[path] for world in kept])
        low, median, high = np.quantile(values, [0.05, 0.5, 0.95])
        p = float(kstest((values - prior_low) / (prior_high - prior_low), "uniform").pvalue)
        found.append(
            Posterior(
                parameter=path,
                prior_low=prior_low,
                prior_high=prior_high,
                low=low,
                median=median,
                high=high,
                p=p,
                moved=p < MOVED,
            )
        )
    return sorted(found, key=lambda posterior: posterior.p)


def _claims(published: Published, nearest: Sequence[Judged]) -> list[ClaimWorth]:
    texts = [claim.text for claim in published.claims if claim.measured is None]
    found = []
    for place, text in enumerate(texts):
        counts = Counter(world.claims[place] for world in nearest)
        found.append(ClaimWorth(text=text, shares={state: counts[state] / len(nearest) for state in STATES}))
    return found


def point_title(published: Published, world: World) -> str:
    return world.variation.title if world.variation else f"As stated ({published.point})"


def _point(published: Published, judged: Judged) -> Point:
    counts = Counter(judged.claims)
    return Point(
        title=point_title(published, judged.world),
        p=judged.draw.p,
        near=judged.near,
        agree=judged.orders["agree"],
        claims={state: counts[state] for state in STATES},
    )


def _in_words(
    sets: int,
    nearest: Sequence[Judged],
    count: int,
    near: Sequence[int],
    values: int,
    parameters: Sequence[Posterior],
) -> str:
    moved = [posterior.parameter for posterior in parameters if posterior.moved]
    kept = len(nearest)
    verdict = (
        f"Of {count} of them the published table could be a draw (p ≥ {PLAUSIBLE:g})"
        if count
        else "Of none of them the published table as a whole could be a draw"
    )
    said = (
        f"The table says something about {len(moved)} of {len(parameters)} assumed parameters"
        if moved
        else "The table says nothing about any of the assumed parameters"
    )
    return (
        f"{sets} worlds were drawn from the declared ranges, and the {kept} nearest to the published table "
        f"kept. {verdict}; in the median world {np.median(near):g} of its {values} values are within two "
        f"standard deviations. {said}."
    )
