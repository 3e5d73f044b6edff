"""From a folder of runs to Parquet, metrics, tables and the report."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # the name all Spark code knows it by

from analysis.decisions import decision_log
from analysis.demand import with_demand
from analysis.metrics import flattened, metrics_by_operator, metrics_by_run
from analysis.runs import Tables, read_journals, read_parquet, write_parquet
from analysis.schema import SAMPLES
from analysis.spark import literal, local_path
from controller.recording import MANIFEST, NAMED_BY, run_folder
from fogscale.files import write_whole

PARQUET = "parquet"  # beside the runs
MAPS = [field.name for field in SAMPLES.fields if field.dataType.typeName() == "map"]
MAPS += ["kind_shares", "by_operator"]


class Analysis(NamedTuple):
    report: Path
    metrics: pd.DataFrame  # one row per run


def analyze(
    folder: Path,
    spark: SparkSession,
    published: Mapping[str, Mapping[str, float]] | None = None,
    title: str | None = None,
    only: Sequence[str] | None = None,
) -> Analysis:
    """Analyses all runs under a folder, and leaves Parquet, metrics, metrics_by_operator (.csv, .md, .tex),
    pairs.csv and report.html in it.

    `published` holds printed values by policy and metric, to be shown beside ours; `only` names the runs that
    count (experiment/policy/workload/seed) where the folder may hold others.
    """
    from analysis.report import write_report  # here, so that Spark starts before matplotlib is loaded
    from analysis.standing import pairs
    from analysis.tables import write_tables

    write_parquet(read_journals(spark, str(folder)), f"{folder}/{PARQUET}")
    tables = read_parquet(spark, f"{folder}/{PARQUET}")
    if only is not None:
        tables = Tables(*(table.where(F.col("run_id").isin(list(only))) for table in tables))
    metrics = flattened(metrics_by_run(tables.samples, tables.runs).orderBy("run_id").toPandas())
    shown = first_runs(metrics)
    samples, decisions = _details(tables, shown)
    write_tables(metrics.drop(columns="variation"), folder / "metrics", caption="Metrics by run")
    write_whole(folder / "pairs.csv", pairs(metrics).to_csv(index=False))
    operators = metrics_by_operator(tables.samples, tables.runs).orderBy("run_id", "operator").toPandas()
    caption = "Metrics by run and operator"
    write_tables(operators.drop(columns="variation"), folder / "metrics_by_operator", caption)
    report = write_report(
        folder=folder,
        title=title or _title(metrics),
        samples=samples,
        decisions=decisions,
        metrics=metrics,
        published=published,
        findings=_findings(tables, shown),
        operators=operators,
        configuration=_configuration(spark, folder, metrics[metrics["run_id"].isin(shown)]),
    )
    return Analysis(report, metrics)


def first_runs(metrics: pd.DataFrame) -> list[str]:
    """The runs a report draws: the first seed of each policy, for each experiment and workload."""
    first = metrics.sort_values("seed").groupby(["experiment", "workload", "policy"])["run_id"].first()
    return sorted(first)


def _details(tables: Tables, run_ids: list[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Samples with demand, and the decision log, of a few runs: all a browser can show."""

    def only(table: DataFrame) -> DataFrame:
        return table.where(F.col("run_id").isin(run_ids))

    samples = with_demand(only(tables.samples), only(tables.runs)).drop(*MAPS).toPandas()
    decisions = decision_log(only(tables.decisions), only(tables.receipts)).toPandas()
    return samples, decisions


def _findings(tables: Tables, run_ids: list[str]) -> dict[str, dict[str, Any]]:
    """What real testbeds found out besides their samples, by run; nothing where nothing was."""
    rows = tables.findings.where(F.col("run_id").isin(run_ids)).collect()
    found = {row.run_id: json.loads(row.findings) for row in rows}
    return {run_id: each for run_id, each in found.items() if each}


def _title(metrics: pd.DataFrame) -> str:
    policies = sorted(metrics["policy"].unique())
    workloads = sorted(metrics["workload"].unique())
    named = ", ".join(policies) if len(policies) <= 4 else f"{len(policies)} policies"
    return f"{named} on {', '.join(workloads)}"


def _configuration(spark: SparkSession, folder: Path, shown: pd.DataFrame) -> str:
    """The run.yml of the runs shown, one after the other."""
    reader = spark.read.format("text").options(**literal(folder), wholetext=True, recursiveFileLookup=True)
    files = reader.load(pathGlobFilter=MANIFEST)
    rows = files.select(F.col("_metadata.file_path").alias("path"), "value").orderBy("path").collect()
    named = ({key: getattr(run, key) for key in NAMED_BY} for run in shown.itertuples())
    wanted = {str(run_folder(run)) for run in named}
    texts = [
        f"# {place}\n{row.value.strip()}"
        for row in rows
        for place in wanted
        if f"{place}/{MANIFEST}" in local_path(row.path) or len(rows) == 1
    ]
    return "\n\n".join(texts) or f"No {MANIFEST} was found beside the journals."
