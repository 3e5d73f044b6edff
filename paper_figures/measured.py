"""Runs that were recorded on a real testbed (`make campaign`), as tables beside the simulated ones.

A paper's folder `measured/` holds the records. From them alone, with no testbed, come
tables/measured.parquet (one row per run: its metrics, and how it came about) and
tables/measured_series.parquet (the first seed over time).
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # the name all Spark code knows it by

from analysis.demand import with_demand
from analysis.metrics import flattened, metrics_by_run
from analysis.runs import Tables, read_journals
from controller.campaign.records import about, records_in, unpacked
from controller.recording import run_id
from controller.run import run_of
from fogscale.files import write_whole

RECORDS = "measured"  # in a paper's folder
METRICS, SERIES = "measured.parquet", "measured_series.parquet"
_OVER_TIME = (
    "run_id", "time_s", "duration_s", "offered_records", "processed_records", "lag_records",
    "offered_rate_per_s", "demand", "supply", "reconfigurations", "response_mean_ms",
)  # fmt: skip


def write_measured(source: Path, folder: Path, tables: Path, spark: SparkSession) -> None:
    """Leaves both tables, and the runs themselves, unpacked, in folder/measured; nothing where there is no
    record."""
    records, place = source / RECORDS, folder / RECORDS
    shutil.rmtree(place, ignore_errors=True)
    if not records_in(records):
        return
    facts = pd.DataFrame([_facts(run) for run in unpacked(records, place)])
    journals = read_journals(spark, str(place))
    found = flattened(metrics_by_run(journals.samples, journals.runs).drop("variation").toPandas())
    durations = journals.runs.select("run_id", "duration_s").toPandas()
    metrics = found.merge(facts.merge(durations, on="run_id"), on="run_id")
    metrics = metrics.merge(_found_out(journals), on="run_id", how="left")
    in_order = metrics.sort_values(["scenario", "policy", "seed"], ignore_index=True)
    write_whole(tables / METRICS, in_order.to_parquet())
    write_whole(tables / SERIES, _series(journals, metrics).to_parquet())


def _facts(folder: Path) -> dict[str, Any]:
    """How a run came about."""
    run, told = run_of(folder), about(folder)
    machine, testbed = told.get("machine", {}), run.testbed.model_dump()
    return {
        "run_id": run_id(run.named_by),
        "scenario": run.experiment.partition(".")[2],
        "begun": told.get("begun"),
        "job": testbed.get("job"),
        "span_h": None if testbed.get("span_s") is None else testbed["span_s"] / 3600,
        "load_average_mean": machine.get("load_average_mean"),
        "cpu_waiting_ratio": machine.get("cpu_waiting_ratio"),
        "own_wait_ms": machine.get("own_wait_ms"),
        "cores": machine.get("cores"),
    }


def _found_out(journals: Tables) -> pd.DataFrame:
    """What the testbeds found out besides samples: the audit, and how long rescalings took."""
    rows = journals.findings.select("run_id", "findings").collect()
    found = [{"run_id": row.run_id, **_in_short(json.loads(row.findings))} for row in rows]
    return pd.DataFrame(found, columns=["run_id", *_in_short({})])


def _in_short(findings: Mapping[str, Any]) -> dict[str, Any]:
    audit, rescales = findings.get("audit") or {}, findings.get("rescales") or []
    silent_s = [each["silent_s"] for each in rescales if each["outcome"] == "done"]
    return {
        "produced": audit.get("produced"),
        "lost": audit.get("lost"),
        "doubled": audit.get("doubled"),
        "silent_s": median(silent_s) if silent_s else None,
        "gaps": len(findings.get("gaps") or []),
    }


def _series(journals: Tables, metrics: pd.DataFrame) -> pd.DataFrame:
    shown = metrics.sort_values("seed").groupby(["scenario", "policy"])["run_id"].first().tolist()

    def only(table: DataFrame) -> DataFrame:
        return table.where(F.col("run_id").isin(shown))

    series = with_demand(only(journals.samples), only(journals.runs)).select(*_OVER_TIME).toPandas()
    named = metrics[["run_id", "scenario", "policy"]]
    ordered = ["scenario", "policy", "time_s"]
    return series.merge(named, on="run_id").sort_values(ordered, ignore_index=True)
