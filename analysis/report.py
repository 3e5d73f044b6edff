"""One self-contained report.html: what came out, how it came about, and what was run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import isfinite, isnan
from pathlib import Path
from statistics import median
from typing import Any

import pandas as pd
from jinja2 import Environment, FileSystemLoader

from analysis.metrics.labels import Label, measured
from analysis.plotting import POLICY_COLOUR, ink, inked, svg
from analysis.standing import RULE, SIGNIFICANT, Standing, headline, p_text, standings
from analysis.statistics import Comparison, compare, estimate
from analysis.timeline import timeline
from fogscale.clock import clock
from fogscale.files import write_whole

Published = Mapping[str, Mapping[str, float]]
"""Policy -> metric -> the value printed in a paper."""

NOTED_TURNS = 200  # without a plan, so many are shown; all are in the table of decisions
PAPER_RESTART_S = 120.0  # of the Gesscale paper's Pis
MOST_RESIDENT_MB, MOST_CORE_RATIO = 141, 0.03  # of the thesis' controller
_TILES = ("cost", "reconfigurations", "timeshare_u", "timeshare_o", "excess_time", "processed_ratio")


@dataclass(frozen=True, slots=True)
class Cell:
    main: str
    note: str = ""
    printed: str = ""  # the published value
    share: float = 0.0  # of the column's largest value, for the bar beneath
    verdict: str = ""  # better | worse | unclear


@dataclass(frozen=True, slots=True)
class Found:
    """What a real testbed found out besides its samples."""

    audit: str
    is_clean: bool
    rescales: Sequence[Mapping[str, str]]
    gaps: Sequence[str]
    pace: str = ""  # what a restart took, against the time scale that was declared
    controller: str = ""  # what it took of the machine


@dataclass(frozen=True, slots=True)
class OperatorTable:
    """What is known of each operator; no rows where the job has only one."""

    metrics: Sequence[tuple[str, Label]] = ()
    rows: Mapping[str, Mapping[str, Mapping[str, Cell]]] = field(default_factory=dict)  # operator, policy


@dataclass(frozen=True, slots=True)
class Section:
    """Runs that may be compared: of one experiment and workload."""

    heading: str
    summary: str
    standings: Sequence[Standing]  # best first; none for a single policy
    policies: Sequence[tuple[str, str, int]]  # name, colour, runs
    metrics: Sequence[tuple[str, Label]]
    rows: Mapping[str, Mapping[str, Cell]]  # by policy and metric
    pairs: Mapping[tuple[str, str], Mapping[str, Cell]]  # by policies and metric
    operators: OperatorTable
    figure: str
    shown: Mapping[str, int]  # policy -> the seed drawn
    logs: Mapping[str, Sequence[Mapping[str, Any]]]  # by policy
    findings: Mapping[str, Found]  # by policy; only of real testbeds
    warnings: Sequence[str]


def write_report(
    folder: Path,
    title: str,
    samples: pd.DataFrame,
    decisions: pd.DataFrame,
    metrics: pd.DataFrame,
    published: Published | None,
    configuration: str,
    findings: Mapping[str, Mapping[str, Any]] | None = None,
    operators: pd.DataFrame | None = None,
) -> Path:
    """Writes folder/report.html.

    samples: those of `with_demand`, at least of the first seed of each policy; decisions: those of
    `decision_log`; metrics: those of `metrics_by_run`; configuration: text, shown as it is; findings: by run;
    operators: those of `metrics_by_operator`.
    """
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    groups = metrics.sort_values(["experiment", "workload", "policy", "seed"]).groupby(
        ["experiment", "workload"]
    )
    sections = [
        _section(
            f"Experiment {experiment}, workload {workload}",
            group,
            samples,
            decisions,
            published or {},
            findings or {},
            None if operators is None else operators[operators["run_id"].isin(group["run_id"])],
        )
        for (experiment, workload), group in groups
    ]
    page = environment.get_template("report.html.j2").render(
        title=title, sections=sections, configuration=configuration, published=bool(published), tiles=_TILES
    )
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "report.html"
    write_whole(path, page)
    return path


def _section(
    heading: str,
    metrics: pd.DataFrame,
    samples: pd.DataFrame,
    decisions: pd.DataFrame,
    published: Published,
    findings: Mapping[str, Mapping[str, Any]],
    operators: pd.DataFrame | None,
) -> Section:
    first = metrics.groupby("policy", sort=True).first()
    run_of = {str(policy): str(run_id) for policy, run_id in first["run_id"].items()}
    columns = measured(metrics)
    counts = metrics["policy"].value_counts()
    places = standings(metrics)
    return Section(
        heading=heading,
        summary=_summary(metrics, places),
        standings=places if len(places) > 1 else (),
        policies=[(policy, POLICY_COLOUR[policy], int(counts[policy])) for policy in run_of],
        metrics=columns,
        rows=_metric_rows(metrics, columns, published),
        pairs=_pair_rows(metrics, columns),
        operators=_operator_table(operators),
        figure=_figure(samples, run_of),
        shown={policy: int(first.loc[policy, "seed"]) for policy in run_of},  # type: ignore[arg-type]
        logs={policy: _log(decisions, run_id) for policy, run_id in run_of.items()},
        findings={
            policy: _found(findings[run_id]) for policy, run_id in run_of.items() if run_id in findings
        },
        warnings=list(_warnings(metrics)),
    )


def _figure(samples: pd.DataFrame, run_of: Mapping[str, str]) -> str:
    ordered = samples.sort_values(["time_s", "sequence"])
    runs = {policy: ordered[ordered["run_id"] == run_id] for policy, run_id in run_of.items()}
    drawn = {policy: run for policy, run in runs.items() if len(run)}
    if not drawn:
        return ""
    with inked():
        return svg(timeline(drawn, ink()))


def _metric_rows(
    metrics: pd.DataFrame, columns: Sequence[tuple[str, Label]], published: Published
) -> dict[str, dict[str, Cell]]:
    largest = metrics.groupby("policy")[[name for name, _ in columns]].mean().max()
    rows = {}
    for policy, runs in metrics.groupby("policy", sort=True):
        printed = published.get(str(policy), {})
        rows[str(policy)] = {
            name: _metric_cell(runs[name], label, printed.get(name), largest[name]) for name, label in columns
        }
    return rows


def _operator_table(operators: pd.DataFrame | None) -> OperatorTable:
    if operators is None or operators["operator"].nunique() < 2:
        return OperatorTable()
    columns = measured(operators)
    rows = {
        str(operator): _metric_rows(runs, columns, published={})
        for operator, runs in operators.groupby("operator", sort=True)
    }
    return OperatorTable(columns, rows)


def _metric_cell(values: pd.Series, label: Label, printed: float | None, largest: float) -> Cell:
    ours = estimate(values.astype(float))
    if ours.n == 0:
        return Cell("–")
    main = label.text(ours.mean)
    if ours.n > 1:
        main += f" ± {label.text(ours.high - ours.mean)}"
    elif (values == values.round()).all() and label.digits == 1:
        main = f"{values.iloc[0]:,.0f}"  # a single count needs no decimals
    published = "" if printed is None else f"{printed * label.scale:,g}"
    return Cell(main, printed=published, share=ours.mean / largest if largest > 0 else 0.0)


def _pair_rows(
    metrics: pd.DataFrame, columns: Sequence[tuple[str, Label]]
) -> dict[tuple[str, str], dict[str, Cell]]:
    """How the first policy of each pair differs from the second."""
    pairs = combinations(sorted(metrics["policy"].unique()), 2)
    return {
        (ours, other): {
            name: _pair_cell(compare(metrics, name, a=other, b=ours), label) for name, label in columns
        }
        for ours, other in pairs
    }


def _pair_cell(pair: Comparison, label: Label) -> Cell:
    if isnan(pair.difference):
        return Cell("–")
    if isfinite(pair.relative):
        main = _signed(f"{100 * pair.relative:+.1f} %")
    else:
        main = _signed(f"{pair.difference * label.scale:+.{label.digits}f}")
    if isnan(pair.p):
        return Cell(main)
    if pair.p >= SIGNIFICANT:
        return Cell(main, p_text(pair.p), verdict="unclear")
    is_better = (pair.difference < 0) == label.lower_is_better
    return Cell(main, p_text(pair.p), verdict="better" if is_better else "worse")


def _signed(text: str) -> str:
    return text.replace("-", "−")


def _summary(metrics: pd.DataFrame, places: Sequence[Standing]) -> str:
    """The first thing to know: which policy to take, by which rule."""
    runs = len(metrics)
    if len(places) < 2:
        return "" if runs == 1 else f"Means and 95 % confidence intervals over {runs} runs."
    return f"{headline(metrics, places)} {runs} runs of {len(places)} policies. {RULE}"


def _warnings(metrics: pd.DataFrame) -> Iterator[str]:
    unfinished = metrics.loc[~metrics["finished"].astype(bool), "run_id"]
    if len(unfinished):
        yield (
            f"{len(unfinished)} of {len(metrics)} runs ended before all records were processed, so excess "
            f"time and cost are lower bounds: {_some(unfinished)}."
        )


def _some(names: Iterable[str], most: int = 3) -> str:
    listed = list(names)
    return ", ".join(listed[:most]) + (f" and {len(listed) - most} more" if len(listed) > most else "")


def _log(decisions: pd.DataFrame, run_id: Any) -> list[dict[str, Any]]:
    """Every plan, and the first turns in which something was noted without one: a page has an end."""
    rows = decisions[decisions["run_id"] == run_id].sort_values("time_s")
    planned = rows["planned"].astype(bool)
    rows = pd.concat([rows[planned], rows[~planned].head(NOTED_TURNS)]).sort_values("time_s")
    return [
        {
            "time": clock(row.time_s),
            "change": (row.change or "no change") if row.planned else "",
            "reason": row.reason or "",
            "planned": bool(row.planned),
            "notes": list(row.notes),
            "outcome": _outcome(row) if row.planned else "",
            "state": row.outcome if isinstance(row.outcome, str) else "open",
        }
        for row in rows.itertuples()
    ]


def _outcome(row: Any) -> str:
    if not isinstance(row.outcome, str):
        return "no answer by the end"
    text = row.outcome
    if row.downtime_s and not isnan(row.downtime_s):
        text += f", down for {row.downtime_s:g} s"
    return f"{text}: {row.message}" if row.message else text


def _found(findings: Mapping[str, Any]) -> Found:
    audit = findings.get("audit")
    return Found(
        audit=_audit(audit),
        is_clean=bool(audit and audit["clean"]),
        rescales=[_rescale(each) for each in findings.get("rescales", ())],
        gaps=[
            f"{clock(gap['at_s'])}, {gap['seconds']:.0f} s: nobody watched, so they are left out"
            for gap in findings.get("gaps", ())
        ],
        pace=_pace(findings),
        controller=_controller(findings.get("controller")),
    )


def _pace(findings: Mapping[str, Any]) -> str:
    """Nothing where periods are the paper's own."""
    declared = findings.get("time_scale", 1)
    restarts_s = [
        each["silent_s"]
        for each in findings.get("rescales", ())
        if each["style"] == "restart" and each["outcome"] == "done"
    ]
    if declared == 1:
        return ""
    text = f"Time scale {declared:g}: a restart of {declared * PAPER_RESTART_S:.0f} s stands for the paper's"
    text += f" {PAPER_RESTART_S:.0f} s, and all periods are shorter by as much."
    if restarts_s:
        text += f" Measured here: {median(restarts_s):.0f} s in the median of {len(restarts_s)}."
    return text


def _controller(footprint: Mapping[str, Any] | None) -> str:
    if not footprint:
        return ""
    within = footprint["resident_mb"] <= MOST_RESIDENT_MB and footprint["core_ratio"] <= MOST_CORE_RATIO
    return (
        f"The controller took {footprint['resident_mb']:.0f} MB of memory and "
        f"{100 * footprint['core_ratio']:.1f} % of a core ({'within' if within else 'above'} the "
        f"{MOST_RESIDENT_MB} MB and {100 * MOST_CORE_RATIO:.0f} % of the thesis)."
    )


def _audit(audit: Mapping[str, Any] | None) -> str:
    if audit is None:
        return "The run ended before its records could be counted."
    text = f"{audit['produced']:,} records produced, {audit['lost']:,} lost, {audit['doubled']:,} doubled"
    if audit["unexpected"]:
        text += f", {audit['unexpected']:,} that nobody sent"
    return text + ("." if audit["drained"] else "; the backlog outlived the time for it.")


def _rescale(rescale: Mapping[str, Any]) -> dict[str, str]:
    """Both downtimes: the longest time without a processed record, and without one that was committed."""
    before, wanted = rescale["before"], rescale["wanted"]
    changes = [
        f"{name} {len(before[name])} → {len(nodes)}"
        for name, nodes in wanted.items()
        if nodes != before[name]
    ]
    committed_s = rescale["commit_silent_s"]
    return {
        "time": clock(rescale["requested_s"]),
        "change": ", ".join(changes) or "no change",
        "style": rescale["style"],
        "outcome": rescale["outcome"],
        "silent": f"{rescale['silent_s']:.1f} s",
        "committed": "–" if committed_s is None else f"{committed_s:.1f} s",
    }
