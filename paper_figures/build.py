"""`make figures`: everything a paper shows, regenerated, with the published values beside ours."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd
from pydantic import BaseModel, Field
from pyspark.sql import SparkSession

from controller.experiment import Experiment, MetricsSettings, varied
from controller.experiment import load as load_experiment
from fogscale.errors import FogscaleError
from fogscale.files import write_whole
from paper_figures.campaign import BASE, Case, Simulated, paper_module, simulated, varied_experiment
from paper_figures.ceiling import Ceiling, cells, near, with_ceiling
from paper_figures.claims import JudgedClaim, Statements, judged_claims
from paper_figures.cpu import CpuMeter
from paper_figures.decisions import decided
from paper_figures.exhibits import figures, tables_of, work_out
from paper_figures.measured import write_measured
from paper_figures.orders import counted, judged_orders
from paper_figures.page import write_page
from paper_figures.published import Published, paper_folder
from paper_figures.published import load as load_published


class Summary(BaseModel):
    """summary.json: what others script against."""

    orders: dict[str, int]
    ceiling: Ceiling
    cells: dict[str, int]  # published values near ours (two standard deviations), and all
    claims: list[JudgedClaim]
    seeds: int
    full: bool  # with what takes long
    cpu_s: float
    page: Path = Field(exclude=True)


@dataclass(frozen=True)
class Results:
    """What a campaign found, as pandas frames; the page and all parts are made from this."""

    metrics: pd.DataFrame  # one row per run, the variations included
    series: pd.DataFrame  # the first seed of every policy over time
    decisions: pd.DataFrame  # the same runs as their policies saw them, turn by turn
    orders: pd.DataFrame
    ceiling: Ceiling
    cells: pd.DataFrame  # every published value beside ours
    claims: list[JudgedClaim]
    whole: pd.DataFrame | None = None  # metrics of the base with nothing left out, where some leave out

    @property
    def base(self) -> pd.DataFrame:
        return self.metrics[self.metrics["variation"] == BASE]

    @property
    def span_s(self) -> float:
        return float(self.series["duration_s"].iloc[0])


def build(
    paper: str,
    out: Path,
    spark: SparkSession,
    seeds: int | None = None,
    fresh: bool = False,
    full: bool = False,
) -> Summary:
    """Simulates the experiment of a paper, and fills out/figures/<paper>/ with all its tables and figures.

    `paper` is a name, or the path of a folder with the same files; `seeds` as the experiment says if None.
    What was simulated is kept in out/campaigns, and not simulated again unless `fresh`. Variations and sweeps
    that take long are part of it only if `full`.
    """
    meter = CpuMeter()
    source = paper_folder(paper)
    experiment, whole = load_experiment(source / "experiment.yml"), load_published(source)
    published = whole if full else whole.in_short
    folder = figures_folder(out, source.name)
    numbers = range(1, (seeds or experiment.seeds) + 1)
    cases = cases_of(source, experiment, whole.in_short, numbers)
    kept = campaign_folder(out, "figures", source.name)
    with simulated(spark, cases, kept, fresh) as campaign:
        results = _results(campaign, cases, published, experiment, meter)
    if full:
        results = _with_the_rest(
            results, spark, long_cases_of(source, experiment, whole, numbers), kept, fresh
        )
    tables = _write_tables(results, folder)
    write_measured(source, folder, tables, spark)
    work_out(source, tables)
    _write_measurements(source, experiment, numbers, tables)
    if full:
        _write_long_measurements(source, experiment, numbers, tables, spark, out)
    claims = judged_claims(results.base, published, experiment.significance, _statements(source, tables))
    results = replace(results, claims=claims)
    shown = tables_of(source, tables, folder), figures(source, tables, folder)
    left_out = len(whole.variations) + len(whole.sweeps) - len(published.variations) - len(published.sweeps)
    page = write_page(folder, source, published, experiment, results, *shown, left_out)
    summary = Summary(
        orders=counted(results.orders),
        ceiling=results.ceiling,
        cells={"near": near(results.cells), "all": len(results.cells)},
        claims=results.claims,
        seeds=len(numbers),
        full=full,
        cpu_s=meter.read_s(),
        page=page,
    )
    write_whole(folder / "summary.json", json.dumps(summary.model_dump(), indent=2) + "\n")
    return summary


def figures_folder(out: Path, paper: str) -> Path:
    folder = out / "figures" / paper
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FogscaleError(f"cannot write into {folder}: {error.strerror}; name another folder") from error
    return folder


def cases_of(source: Path, experiment: Experiment, published: Published, seeds: Sequence[int]) -> list[Case]:
    """The experiment itself, its variations and its sweeps. Policies outside the published table (the ideal)
    are only drawn, so one seed of them is enough."""
    others = [policy for policy in experiment.policies if policy not in published.policies]
    cases = [Case(experiment, published.policies, seeds)]
    if others:
        cases.append(Case(experiment, others, seeds[:1]))
    for variation in published.variations:
        changed = varied_experiment(source, experiment, variation, {})
        policies = variation.policies or published.policies
        cases.append(Case(changed, policies, seeds[: variation.seeds], variation.name))
    for sweep in published.sweeps:
        for name, changes in sweep.points():
            cases.append(Case(varied(experiment, changes), published.policies, seeds[: sweep.seeds], name))
    return cases


def long_cases_of(
    source: Path, experiment: Experiment, published: Published, seeds: Sequence[int]
) -> list[Case]:
    """What a full build has besides."""
    known = {case.variation for case in cases_of(source, experiment, published.in_short, seeds)}
    return [each for each in cases_of(source, experiment, published, seeds) if each.variation not in known]


def campaign_folder(out: Path, command: str, paper: str) -> Path:
    return out / "campaigns" / f"{command}-{paper}"


def _results(
    campaign: Simulated, cases: Sequence[Case], published: Published, experiment: Experiment, meter: CpuMeter
) -> Results:
    meter.read_s()
    metrics = campaign.metrics()
    series = campaign.series(BASE, seed=cases[0].seeds[0])
    base = metrics[metrics["variation"] == BASE]
    level = experiment.significance
    orders, ceiling = with_ceiling(judged_orders(base, published, level), base, published, level)
    leaves_out = experiment.metrics != MetricsSettings()
    whole = campaign.whole_metrics(BASE) if leaves_out else None
    return Results(metrics, series, decided(cases), orders, ceiling, cells(base, published), [], whole)


def _with_the_rest(
    results: Results, spark: SparkSession, cases: Sequence[Case], kept: Path, fresh: bool
) -> Results:
    """With the runs that take long. Their rows are kept in a folder of their own, so that a build without
    them does not throw them away."""
    if not cases:
        return results
    with simulated(spark, cases, kept.with_name(f"{kept.name}-full"), fresh) as campaign:
        metrics = pd.concat([results.metrics, campaign.metrics()], ignore_index=True)
    return replace(results, metrics=metrics)


def _write_tables(results: Results, folder: Path) -> Path:
    """The tables that figures are drawn from, so that one can be redrawn without a new campaign."""
    tables = folder / "tables"
    shutil.rmtree(tables, ignore_errors=True)
    tables.mkdir()
    write_whole(tables / "metrics.parquet", results.metrics.to_parquet())
    write_whole(tables / "metrics.csv", results.metrics.to_csv(index=False))
    if results.whole is not None:
        write_whole(tables / "metrics_whole.parquet", results.whole.to_parquet())
    write_whole(tables / "series.parquet", results.series.to_parquet())
    write_whole(tables / "decisions.parquet", results.decisions.to_parquet())
    write_whole(tables / "orders.parquet", results.orders.to_parquet())
    write_whole(tables / "cells.parquet", results.cells.to_parquet())
    return tables


def _write_measurements(source: Path, experiment: Experiment, seeds: Sequence[int], tables: Path) -> None:
    """What a paper measures beside the campaign: measured(experiment, seeds) of its measurements.py returns
    tables by name."""
    measure = getattr(paper_module(source, "measurements"), "measured", None)
    if measure is not None:
        _write_frames(measure(experiment, seeds), tables)


def _write_long_measurements(
    source: Path, experiment: Experiment, seeds: Sequence[int], tables: Path, spark: SparkSession, out: Path
) -> None:
    """And what takes long: measured_in_full(experiment, seeds, spark, kept), whose folder `kept` is for what
    an interrupted build need not do again."""
    measure = getattr(paper_module(source, "measurements"), "measured_in_full", None)
    if measure is not None:
        _write_frames(
            measure(experiment, seeds, spark, campaign_folder(out, "measured", source.name)), tables
        )


def _write_frames(frames: Mapping[str, pd.DataFrame], tables: Path) -> None:
    for name, frame in frames.items():
        write_whole(tables / f"{name}.parquet", frame.to_parquet())


def _statements(source: Path, tables: Path) -> Statements:
    """The numbers behind claims that compare no policies: statements(tables) of the paper's statements.py."""
    module = paper_module(source, "statements")
    found: Statements = module.statements(tables) if module is not None else {}
    return found
