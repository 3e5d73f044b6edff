"""index.html: the whole reproduction on one page, published values beside ours."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from analysis.metrics.labels import label_of
from analysis.tables import text
from controller.experiment import Experiment
from fogscale.documents import read_json
from fogscale.files import write_whole
from paper_figures.campaign import BASE, NOT_A_SETTING, paper_module
from paper_figures.ceiling import near, with_ceiling
from paper_figures.claims import judged_claims
from paper_figures.doubts import explained, remark, runs_under, setting, unexplained
from paper_figures.exhibits import Part, written
from paper_figures.orders import counted, judged_orders, records
from paper_figures.published import Published, Variation

if TYPE_CHECKING:
    from paper_figures.build import Results

TESTS = {"paired": "t, pairs by seed", "welch": "Welch"}
SENSITIVITY = "sensitivity.json"  # what an earlier `make sensitivity` left beside the page


def write_page(
    folder: Path,
    source: Path,
    published: Published,
    experiment: Experiment,
    results: Results,
    tables: Sequence[Part],
    figures: Sequence[Part],
    left_out: int = 0,
) -> Path:
    """Writes the tables that every paper has, and the page; left_out: variations and sweeps of --full."""
    scenarios = {name: scenario.title for name, scenario in experiment.scenarios.items()}
    orders = orders_table(results.orders, published, scenarios)
    written(orders, "orders", "Orders of policies, published and ours", "", folder)
    claims = claims_table(results, published)
    written(claims, "claims", "Claims of the text, published and ours", "", folder)
    robust = variations_table(results.metrics, published, experiment.significance)
    parameters = parameters_table(experiment, source)
    span_s = experiment.metrics.period_s or results.span_s
    told = (published, experiment, results.metrics, results.orders, span_s)
    page = rendered(
        "page.html.j2",
        published=published,
        counts=counted(results.orders),
        ceiling=results.ceiling,
        near=near(results.cells),
        cells=written(cells_table(results.cells, published, scenarios), "cells", "Values", "", folder).frame,
        claims=list(zip(published.claims, results.claims, strict=True)),
        seeds=int(results.base["seed"].nunique()),
        scenarios=scenarios,
        matrices=_matrices(results.orders, published),
        tables=tables,
        figures=figures,
        variations=written(robust, "variations", "The ranking under other assumptions", "", folder).frame,
        parameters=written(parameters, "parameters", "Free parameters and their origin", "", folder).frame,
        doubts=explained(*told),
        remark=remark(*told),
        unexplained=unexplained(results.orders, published),
        sensitivity=_read_json(folder / SENSITIVITY),
        plausible=_read_json(folder / "plausible.json"),
        left_out=left_out,
        paper=source.name,
        level=experiment.significance,
        test=TESTS[published.test],
    )
    path = folder / "index.html"
    write_whole(path, page)
    return path


def rendered(template: str, **names: Any) -> str:
    loader = FileSystemLoader(Path(__file__).parent / "templates")
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["cell"] = text
    environment.globals.update(name_of=_name, shown=shown, numeric=_numeric_columns)
    return environment.get_template(template).render(names)


def shown(metric: str, value: float | None) -> str:
    """A metric's value as a reader wants it, without its unit."""
    if value is None or isnan(value):
        return "–"
    return label_of(metric).text(value)


def _numeric_columns(frame: pd.DataFrame) -> list[bool]:
    """Which columns read as numbers, with or without an interval, and stand best on the right."""
    number = r"[−-]?[\d.,]+( ± [\d.,]+)?"
    columns = (frame.iloc[:, place] for place in range(frame.shape[1]))
    return [
        pd.api.types.is_numeric_dtype(column)
        or all(isinstance(value, str) and re.fullmatch(number, value) for value in column)
        for column in columns
    ]


def orders_table(orders: pd.DataFrame, published: Published, scenarios: Mapping[str, str]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            **({"Scenario": orders["scenario"].map(scenarios)} if orders["scenario"].any() else {}),
            "Metric": [_name(metric) for metric in orders["metric"]],
            "A": orders["a"].map(published.label),
            "B": orders["b"].map(published.label),
            "Published A": orders["published_a"],
            "Published B": orders["published_b"],
            "Ours A": orders["ours_a"],
            "Ours B": orders["ours_b"],
            f"p ({TESTS[published.test]})": orders["p"],
            "p (Holm)": orders["p_holm"],
            "p (signed rank)": orders["p_rank"],
            "Expected (%)": 100 * orders["expected"],
            "Verdict": orders["verdict"].astype(str).str.replace("_", " "),
        }
    )


def _name(metric: str) -> str:
    return label_of(metric).name


def claims_table(results: Results, published: Published) -> pd.DataFrame:
    rows = [
        {
            "Claim": claim.text,
            "Where": claim.where,
            "Published": judged.published,
            "Ours": judged.ours,
            "Unit": judged.unit,
            "95 % from": judged.low,
            "to": judged.high,
            "p (Holm)": judged.p,
            "State": judged.state,
        }
        for claim, judged in zip(published.claims, results.claims, strict=True)
    ]
    return pd.DataFrame(rows).astype(
        {"Published": float, "Ours": float, "95 % from": float, "to": float, "p (Holm)": float}
    )


def variations_table(metrics: pd.DataFrame, published: Published, level: float) -> pd.DataFrame:
    """How the ranking fares when something is changed, the calibration itself first. With few seeds a perfect
    simulator agrees with fewer orders, too."""
    base = Variation(name=BASE, title=f"As stated ({published.point})", why="")
    rows = []
    for variation in (base, *published.variations):
        runs = runs_under(metrics, variation)
        orders, ceiling = with_ceiling(judged_orders(runs, published, level), runs, published, level)
        counts = counted(orders)
        states = Counter(claim.state for claim in judged_claims(runs, published, level))
        rows.append(
            {
                "Assumption": variation.title,
                "Seeds": int(runs["seed"].nunique()),
                "Orders that agree": counts["agree"],
                "A perfect simulator": round(ceiling.agree),
                "Disagree": counts["disagree"],
                "Not significant": counts["not_significant"],
                "Claims that hold": states["holds"],
                "In direction only": states["in direction only"],
                "What is changed": variation.why,
            }
        )
    return pd.DataFrame(rows)


def cells_table(cells: pd.DataFrame, published: Published, scenarios: Mapping[str, str]) -> pd.DataFrame:
    """Those farthest away first."""
    rows = cells.sort_values("away", key=abs, ascending=False, na_position="last")
    labels = [label_of(metric) for metric in rows["metric"]]
    return pd.DataFrame(
        {
            **({"Scenario": rows["scenario"].map(scenarios)} if rows["scenario"].any() else {}),
            "Policy": rows["policy"].map(published.label),
            "Metric": [label.name for label in labels],
            "Published": rows["published"],
            "Ours": rows["ours"],
            "Standard deviation": rows["deviation"],
            "Away (standard deviations)": rows["away"].round(1),
        }
    ).reset_index(drop=True)


def parameters_table(experiment: Experiment, source: Path) -> pd.DataFrame:
    calibration = paper_module(source, "calibration")
    points: Mapping[str, float] = getattr(calibration, "POINT", {})
    rows = [
        {
            "Parameter": parameter.path.removeprefix(NOT_A_SETTING),
            "Value": _value_text(points.get(parameter.path, setting(experiment, parameter.path))),
            "Unit": parameter.unit,
            "Origin": parameter.origin,
            "Range": f"{parameter.range[0]:g} – {parameter.range[1]:g}" if parameter.range else "",
            "Why": parameter.why,
        }
        for parameter in experiment.parameters
    ]
    return pd.DataFrame(rows, columns=["Parameter", "Value", "Unit", "Origin", "Range", "Why"])


def _value_text(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_value_text(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        distinct = dict.fromkeys(
            item["name"] if isinstance(item, Mapping) and "name" in item else _value_text(item)
            for item in value
        )
        return ", ".join(distinct)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, int | float) else str(value if value is not None else "")


Matrix = list[tuple[str, list[dict[str, Any]]]]
"""Metric -> its pairs, in the order of the columns."""


def _matrices(orders: pd.DataFrame, published: Published) -> dict[str, Matrix]:
    found: dict[str, Matrix] = {}
    for scenario, rows in orders.groupby("scenario", sort=False):
        by_metric = [(metric, records(rows[rows["metric"] == metric])) for metric in published.metrics]
        found[str(scenario)] = [(metric, pairs) for metric, pairs in by_metric if pairs]
    return found


def _read_json(path: Path) -> Any:
    return read_json(path) if path.exists() else None
