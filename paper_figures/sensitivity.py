"""`make sensitivity`: how much of the ranking survives over everything the assumed parameters could be.

Parameter sets come from a scrambled Halton sequence: it fills the ranges evenly, and so does each beginning
of it, which is why the variations (other capacity laws, mechanisms in doubt) can repeat the first sets only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import BaseModel, Field
from pyspark.sql import SparkSession
from scipy.stats import qmc, spearmanr

from controller.experiment import Experiment
from controller.experiment import load as load_experiment
from fogscale.errors import FogscaleError
from fogscale.files import write_whole
from paper_figures.build import campaign_folder, figures_folder
from paper_figures.campaign import BASE, Case, simulated, varied_experiment
from paper_figures.cpu import CpuMeter
from paper_figures.indices import first_order, largest_by_chance
from paper_figures.orders import VERDICTS, counted, judged_orders
from paper_figures.page import SENSITIVITY
from paper_figures.published import Published, Variation, paper_folder
from paper_figures.published import load as load_published
from paper_figures.sensitivity_page import write_sensitivity_page

DRAW_SEED = 20130501  # of the parameter sets: the same sets every time
SHARE_REPEATED = 10  # of the sets, one in so many is repeated for each variation

ORDER = ("scenario", "metric", "a", "b")  # what tells an order

Drawn = Mapping[str, float]


class Agreement(BaseModel):
    """How many orders agree over the parameter sets of one variation."""

    variation: str
    title: str
    sets: int
    calibrated: int  # orders that agree with the calibration itself, with as many seeds as the sets have
    lowest: int
    lower_quartile: float
    median: float
    upper_quartile: float
    highest: int
    median_same_direction: float  # by means alone, whether significant or not


class Sensitivity(BaseModel):
    """sensitivity.json."""

    sets: int
    seeds: int
    orders: int
    agreement: list[Agreement]
    text: str
    cpu_s: float
    page: Path = Field(exclude=True)


def sensitivity(
    paper: str, out: Path, spark: SparkSession, sets: int = 200, seeds: int = 5, fresh: bool = False
) -> Sensitivity:
    """Repeats a paper's ranking over drawn parameter sets and its variations, as one Spark campaign."""
    meter = CpuMeter()
    source = paper_folder(paper)
    experiment, published = load_experiment(source / "experiment.yml"), load_published(source)
    if not any(published.orders()):
        raise FogscaleError(
            f"paper '{source.name}' publishes no order of policies to repeat: see its claims, make figures"
        )
    folder = figures_folder(out, source.name)
    drawn = drawn_sets(experiment, sets)
    cases = _cases(source, experiment, published, drawn, range(1, seeds + 1))
    with simulated(spark, cases, campaign_folder(out, "sensitivity", source.name), fresh) as campaign:
        meter.read_s()
        metrics = campaign.metrics()
    write_whole(folder / "sensitivity_metrics.parquet", metrics.to_parquet())
    orders = orders_by_set(metrics, published, experiment.significance)
    agreement = agreement_by_set(orders)
    parts = {
        "sets": _sets_table(agreement, drawn),
        "orders": order_frequency(orders),
        "correlation": correlation(agreement, drawn),
        "hangs_on": hangs_on(orders, drawn),
    }
    for name, frame in parts.items():
        write_whole(folder / f"sensitivity_{name}.csv", frame.to_csv(index=False))
    summaries = _summaries(agreement, published)
    found = Sensitivity(
        sets=sets,
        seeds=seeds,
        orders=len(list(published.orders())),
        agreement=summaries,
        text=_in_words(summaries[0], len(list(published.orders()))),
        cpu_s=meter.read_s(),
        page=folder / "sensitivity.html",
    )
    write_sensitivity_page(folder, published, experiment, found, agreement, parts)
    write_whole(folder / SENSITIVITY, json.dumps(found.model_dump(), indent=2) + "\n")
    return found


def drawn_sets(experiment: Experiment, sets: int) -> list[Drawn]:
    """Values for every parameter that has a range."""
    free = [parameter for parameter in experiment.parameters if parameter.range is not None]
    if not free:
        raise FogscaleError(f"experiment '{experiment.name}' declares no parameter with a range: add some")
    low, high = np.array([parameter.range for parameter in free]).T
    points = qmc.Halton(len(free), scramble=True, rng=DRAW_SEED).random(sets)
    values = qmc.scale(points, low, high)
    return [dict(zip((parameter.path for parameter in free), row, strict=True)) for row in values.tolist()]


def _cases(
    source: Path, experiment: Experiment, published: Published, drawn: Sequence[Drawn], seeds: Sequence[int]
) -> list[Case]:
    """Set 0 is the calibration itself. All sets for the base, the first ones for each variation."""
    variations: list[Variation | None] = [
        None,
        *(variation for variation in published.variations if variation.repeated_over_sets),
    ]
    repeated = min(len(drawn), max(2, len(drawn) // SHARE_REPEATED))
    cases = []
    for variation in variations:
        chosen = drawn if variation is None else drawn[:repeated]
        for number, values in enumerate([{}, *chosen]):
            changed = varied_experiment(source, experiment, variation, values)
            name = variation.name if variation else BASE
            cases.append(Case(changed, published.policies, seeds, name, number))
    return cases


def orders_by_set(metrics: pd.DataFrame, published: Published, level: float) -> pd.DataFrame:
    """The judged orders of every variation and set."""
    judged = {
        case: judged_orders(runs, published, level)
        for case, runs in metrics.groupby(["variation", "set"], sort=False)
    }
    orders = pd.concat(judged, names=["variation", "set"]).reset_index(["variation", "set"])
    ours, said = orders["ours_b"] - orders["ours_a"], orders["published_b"] - orders["published_a"]
    orders["same_direction"] = np.sign(ours) == np.sign(said)
    orders["as_published"] = ours * np.where(said == 0, 1, np.sign(said))  # positive: in that direction
    columns = ["variation", "set", *ORDER, "verdict", "same_direction", "as_published"]
    return orders[columns].reset_index(drop=True)


def agreement_by_set(orders: pd.DataFrame) -> pd.DataFrame:
    """How many orders agree, disagree, are not significant, and have the published direction by means alone;
    one row per variation and set."""
    rows = [
        {"variation": variation, "set": number}
        | counted(judged)
        | {"same_direction": int(judged["same_direction"].sum())}
        for (variation, number), judged in orders.groupby(["variation", "set"], sort=False)
    ]
    return pd.DataFrame(rows)


def order_frequency(orders: pd.DataFrame) -> pd.DataFrame:
    """In which share of the base's sets each order agrees, disagrees or is not significant."""
    base = orders[(orders["variation"] == BASE) & (orders["set"] > 0)]
    for verdict in VERDICTS:
        base = base.assign(**{verdict: base["verdict"] == verdict})
    return base.groupby(list(ORDER), sort=False)[list(VERDICTS)].mean().reset_index()


def hangs_on(orders: pd.DataFrame, drawn: Sequence[Drawn]) -> pd.DataFrame:
    """For every order that the calibration does not reproduce, the parameter that decides most about the
    difference of the two policies: its index, and which way it turns the order (rank correlation; above 0,
    larger values turn it as published). No parameter where chance alone could do as much."""
    base = orders[orders["variation"] == BASE]
    values = pd.DataFrame(drawn)
    limit = largest_by_chance(len(values), values.shape[1])
    rows = []
    for order, judged in base.groupby(list(ORDER), sort=False):
        verdict = judged.loc[judged["set"] == 0, "verdict"].iloc[0]
        sets = judged[judged["set"] > 0].sort_values("set")
        if verdict != "agree":
            share = float((sets["verdict"] == "agree").mean())
            found = _most(values, sets["as_published"].to_numpy(dtype=float), limit)
            rows.append((*order, verdict, share, *found))
    return pd.DataFrame(rows, columns=[*ORDER, "verdict", "agrees_in", "parameter", "index", "correlation"])


def _most(values: pd.DataFrame, result: NDArray[np.float64], limit: float) -> tuple[str, float, float]:
    if not np.isfinite(result).all():
        return "", float("nan"), float("nan")
    indices = {path: first_order(values[path].to_numpy(), result) for path in values}
    path = max(indices, key=lambda path: np.nan_to_num(indices[path], nan=-1.0))
    if not indices[path] > limit:
        return "", float("nan"), float("nan")
    return str(path), indices[path], float(spearmanr(values[path], result).statistic)


def correlation(agreement: pd.DataFrame, drawn: Sequence[Drawn]) -> pd.DataFrame:
    """Spearman's rank correlation of each parameter with the agreement: which assumption matters."""
    base = agreement[(agreement["variation"] == BASE) & (agreement["set"] > 0)].sort_values("set")
    rows = []
    for path in drawn[0]:
        values = [values[path] for values in drawn]
        constant = len(set(base["agree"])) < 2  # then nothing can be told
        found = None if constant else spearmanr(values, base["agree"])
        rows.append(
            {
                "parameter": path,
                "rank_correlation": found.statistic if found else np.nan,
                "p": found.pvalue if found else np.nan,
            }
        )
    table = pd.DataFrame(rows)
    return table.sort_values("rank_correlation", key=abs, ascending=False, ignore_index=True)


def _sets_table(agreement: pd.DataFrame, drawn: Sequence[Drawn]) -> pd.DataFrame:
    """Agreement beside the parameters it was found with."""
    values = pd.DataFrame(drawn).assign(set=range(1, len(drawn) + 1))
    return agreement.merge(values, on="set", how="left")


def _summaries(agreement: pd.DataFrame, published: Published) -> list[Agreement]:
    titles = {BASE: "As declared"} | {variation.name: variation.title for variation in published.variations}
    found = []
    for variation in agreement["variation"].unique():
        rows = agreement[agreement["variation"] == variation]
        sets = rows[rows["set"] > 0]
        drawn = sets["agree"]
        quartiles = drawn.quantile([0.25, 0.5, 0.75])
        found.append(
            Agreement(
                variation=variation,
                title=titles[variation],
                sets=len(drawn),
                calibrated=int(rows.loc[rows["set"] == 0, "agree"].iloc[0]),
                lowest=int(drawn.min()),
                lower_quartile=float(quartiles[0.25]),
                median=float(quartiles[0.5]),
                upper_quartile=float(quartiles[0.75]),
                highest=int(drawn.max()),
                median_same_direction=float(sets["same_direction"].median()),
            )
        )
    order = list(titles)
    return sorted(found, key=lambda agreement: order.index(agreement.variation))


def _in_words(base: Agreement, orders: int) -> str:
    return (
        f"Over {base.sets} parameter sets drawn from the declared ranges, {base.median:g} of {orders} orders "
        f"agree in the median (half of the sets: {base.lower_quartile:g} to {base.upper_quartile:g}; all: "
        f"{base.lowest} to {base.highest}). The calibration itself has {base.calibrated} with as many seeds. "
        f"By means alone, significant or not, {base.median_same_direction:g} have the published direction in "
        f"the median."
    )
