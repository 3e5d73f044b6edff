"""What is not reproduced, said in words whose numbers come from the results.

The text of a doubt is a template that may use
    ours.<policy>.<metric>, variations.<name>.<policy>.<metric>    our means over all seeds
    published.<policy>.<metric>                                    of the published table
                                                                   (all three with <scenario>. first, if any)
    setting("testbed.….duration_s"), span_s                     of the experiment
    number | fixed(1)                                              with one digit
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd
from jinja2 import Environment, StrictUndefined, TemplateError

from controller.experiment import Experiment
from controller.older_files import path_in_todays_words
from fogscale.errors import FogscaleError
from paper_figures.campaign import BASE
from paper_figures.orders import counted, judged_orders, records
from paper_figures.published import ONLY, Doubt, Published, Variation


@dataclass(frozen=True)
class Explained:
    title: str
    text: str
    orders: list[dict[str, Any]]  # not reproduced; `without` is the verdict without the mechanism, or None
    settled: int | None  # how many of them agree without it


def remark(
    published: Published, experiment: Experiment, metrics: pd.DataFrame, orders: pd.DataFrame, span_s: float
) -> str:
    """The paper's, with its numbers."""
    level = experiment.significance
    agree = {"base": counted(orders)["agree"]} | {
        variation.name: counted(judged_orders(runs_under(metrics, variation), published, level))["agree"]
        for variation in published.variations
    }
    names = _names(published, experiment, metrics, span_s) | {"agree": agree, "orders": len(orders)}
    return _filled("published.yml, remark", published.remark, names)


def runs_under(metrics: pd.DataFrame, variation: Variation) -> pd.DataFrame:
    """The runs of a variation; of policies that it leaves alone, those of the base with the same seeds."""
    own = metrics[metrics["variation"] == variation.name]
    if variation.policies is None:
        return own
    others = metrics[(metrics["variation"] == BASE) & ~metrics["policy"].isin(variation.policies)]
    return pd.concat([own, others[others["seed"].isin(own["seed"])]])


def _names(
    published: Published, experiment: Experiment, metrics: pd.DataFrame, span_s: float
) -> dict[str, Any]:
    return {
        "ours": means(metrics, BASE),
        "published": published.tables.get(ONLY, published.tables),
        "variations": {variation.name: means(metrics, variation.name) for variation in published.variations},
        "setting": lambda path: setting(experiment, path),
        "span_s": span_s,
    }


def explained(
    published: Published, experiment: Experiment, metrics: pd.DataFrame, orders: pd.DataFrame, span_s: float
) -> list[Explained]:
    """Every doubt with its numbers, and the orders it bears on that are not reproduced."""
    names = _names(published, experiment, metrics, span_s)
    found = []
    for doubt in published.doubts:
        missed = _missed(doubt, published, metrics, orders, experiment.significance)
        settled = (
            None
            if doubt.variation not in _varied(published)
            else sum(order["without"] == "agree" for order in missed)
        )
        found.append(Explained(doubt.title, _filled_doubt(doubt, names), missed, settled))
    return found


def _varied(published: Published) -> set[str | None]:
    """The variations that were run: those that take long only in a full build."""
    return {variation.name for variation in published.variations}


def unexplained(orders: pd.DataFrame, published: Published) -> list[dict[str, Any]]:
    """Orders that are not reproduced and that no doubt bears on."""
    return [
        order
        for order in records(orders[orders["verdict"] != "agree"])
        if not any(_covers(doubt, order) for doubt in published.doubts)
    ]


def _missed(
    doubt: Doubt, published: Published, metrics: pd.DataFrame, orders: pd.DataFrame, level: float
) -> list[dict[str, Any]]:
    without: list[str | None] = [None] * len(orders)
    if doubt.variation in _varied(published):
        runs = metrics[metrics["variation"] == doubt.variation]
        without = judged_orders(runs, published, level)[
            "verdict"
        ].tolist()  # the same pairs in the same order
    return [
        {**order, "without": verdict}
        for order, verdict in zip(records(orders), without, strict=True)
        if order["verdict"] != "agree" and _covers(doubt, order)
    ]


def _covers(doubt: Doubt, order: Mapping[str, Any]) -> bool:
    return doubt.covers(order["scenario"], order["metric"], order["a"], order["b"])


def means(metrics: pd.DataFrame, variation: str) -> Mapping[str, Any]:
    """Our means by policy and metric, or by scenario, policy and metric where there are scenarios."""
    runs = metrics[metrics["variation"] == variation]
    numbers = list(runs.select_dtypes("number").columns)
    tables: dict[str, Any] = {
        str(scenario): rows.groupby("policy")[numbers].mean().to_dict("index")
        for scenario, rows in runs.groupby("scenario", sort=False)
    }
    only: Mapping[str, Any] = tables.get(ONLY, tables)
    return only


def setting(experiment: Experiment, path: str) -> Any:
    """A value of the experiment by its dotted path; None where it has none."""
    value: Any = experiment.model_dump()
    for part in path_in_todays_words(path).split("."):
        if isinstance(value, list | tuple) and part.isdigit():
            value = value[int(part)] if int(part) < len(value) else None
        else:
            value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _filled_doubt(doubt: Doubt, names: Mapping[str, Any]) -> str:
    return _filled(f"doubts.yml, '{doubt.title}'", f"{doubt.text} {doubt.text_in_full}", names)


def _filled(place: str, text: str, names: Mapping[str, Any]) -> str:
    environment = Environment(undefined=StrictUndefined, autoescape=False)  # the page escapes
    environment.filters["fixed"] = lambda value, digits: f"{value:,.{digits}f}"
    try:
        return " ".join(environment.from_string(text).render(names).split())
    except TemplateError as error:
        raise FogscaleError(f"{place}: {error}") from error
