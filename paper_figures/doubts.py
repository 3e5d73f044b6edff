"""What is not reproduced, said in words whose numbers come from the results.

The text of a doubt is a template that may use
    ours.<policy>.<metric>, published.<policy>.<metric>, variations.<name>.<policy>.<metric>   means over seeds
    setting("simulation.….duration_s"), span_s                                               of the experiment
    number | fixed(1)                                                                        with one digit
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd
from jinja2 import Environment, StrictUndefined, TemplateError

from controller.errors import FogscaleError
from controller.experiment import Experiment
from paper_figures.campaign import BASE
from paper_figures.published import Doubt, Published


@dataclass(frozen=True)
class Explained:
    title: str
    text: str
    orders: pd.DataFrame  # not reproduced, by the metrics it bears on


def explained(
    published: Published, experiment: Experiment, metrics: pd.DataFrame, orders: pd.DataFrame, span_s: float
) -> list[Explained]:
    """Every doubt with its numbers, and the orders that are not reproduced by its metrics."""
    missed = orders[orders["verdict"] != "agree"]
    names = {
        "ours": means(metrics, BASE),
        "published": published.table,
        "variations": {variation.name: means(metrics, variation.name) for variation in published.variations},
        "setting": lambda path: setting(experiment, path),
        "span_s": span_s,
    }
    return [
        Explained(doubt.title, _filled(doubt, names), missed[missed["metric"].isin(doubt.metrics)])
        for doubt in published.doubts
    ]


def means(metrics: pd.DataFrame, variation: str) -> Mapping[str, Mapping[str, float]]:
    runs = metrics[metrics["variation"] == variation]
    numbers = runs.select_dtypes("number").columns
    table: dict[str, dict[str, float]] = runs.groupby("policy")[list(numbers)].mean().to_dict("index")  # type: ignore[assignment]
    return table


def setting(experiment: Experiment, path: str) -> Any:
    """A value of the experiment by its dotted path; None where it has none."""
    value: Any = experiment.model_dump()
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _filled(doubt: Doubt, names: Mapping[str, Any]) -> str:
    environment = Environment(undefined=StrictUndefined, autoescape=False)  # noqa: S701  # the page escapes
    environment.filters["fixed"] = lambda value, digits: f"{value:,.{digits}f}"
    try:
        return " ".join(environment.from_string(doubt.text).render(names).split())
    except TemplateError as error:
        raise FogscaleError(f"doubts.yml, '{doubt.title}': {error}") from error
