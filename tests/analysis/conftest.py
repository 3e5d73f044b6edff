"""Runs small enough to check by hand, as journals and as tables."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from analysis.schema import RUNS, SAMPLES
from controller.recording import run_id

Frames = Callable[..., DataFrame]
AUDIT = {
    "run": "1",
    "produced": 1500,
    "found": 1500,
    "lost": 0,
    "doubled": 0,
    "unexpected": 0,
    "drained": True,
    "clean": True,
}


def facts(**changes: Any) -> dict[str, Any]:
    run = {
        "experiment": "demo",
        "policy": "static",
        "workload": "ramp",
        "seed": 1,
        "duration_s": 100.0,
        "operator": "map",
        "capacity_per_s": [10.0, 20.0, 30.0],
        "n_min": 1,
        "n_max": 3,
    }
    return run | changes


def sample(time_s: float, offered: int, processed: int, replicas: int, reconfigurations: int = 0) -> dict:
    return {
        "time_s": time_s,
        "offered_records": offered,
        "processed_records": processed,
        "lag_records": offered - processed,
        "replicas": {"map": replicas},
        "reconfigurations": reconfigurations,
        "response_p50_ms": None,
        "response_p95_ms": 120.0,
        "response_p99_ms": None,
    }


@pytest.fixture(scope="session")
def runs_table(spark: SparkSession) -> Frames:
    """The runs table of some runs' facts, e.g. runs_table({"seed": 2})."""

    def make(*changes: dict[str, Any]) -> DataFrame:
        rows = [facts(**change) for change in changes or [{}]]
        for row in rows:
            row["run_id"] = run_id(row)
        return spark.createDataFrame([[row.get(name) for name in RUNS.names] for row in rows], RUNS)

    return make


@pytest.fixture(scope="session")
def samples_table(spark: SparkSession) -> Frames:
    """The samples table of one run."""

    def make(samples: Sequence[dict], run_id: str = "demo/static/ramp/1") -> DataFrame:
        rows = [{"run_id": run_id, "sequence": place, **row} for place, row in enumerate(samples)]
        return spark.createDataFrame([[row.get(name) for name in SAMPLES.names] for row in rows], SAMPLES)

    return make


def step(
    time_s: float, samples: Sequence[dict], plan: dict | None = None, receipts: Sequence[dict] = ()
) -> dict:
    return {
        "kind": "step",
        "time_s": time_s,
        "observation": {
            "time_s": time_s,
            "placement": {"map": ["pi1", "pi2"]},
            "requested": {"map": ["pi1", "pi2"]},
            "operators": {"map": {"input_rate_per_s": 12.5, "cpu_ratio": 0.5, "instances": []}},
            "nodes": {"pi1": {"cpu_ratio": 0.5, "memory_ratio": None}},
            "measured_s": None,
            "lag_records": 7,
            "response_time_ms": None,
            "receipts": list(receipts),
        },
        "plan": plan,
        "waited_s": 60.0,
        "samples": list(samples),
    }


PLAN = {"placement": {"map": ["pi1", "pi2", "pi3"]}, "standby": 0, "reason": "map +1 for 25 records/s"}
RECEIPT = {
    "plan": PLAN,
    "outcome": "done",
    "requested_s": 0.0,
    "finished_s": 60.0,
    "downtime_s": 60.0,
    "message": "",
}


@pytest.fixture
def journal_lines() -> Callable[..., list[str]]:
    """A run of two decisions: 2 replicas, stopped from 40 to 60 s, then 3; done at 110 s."""

    def make(**changes: Any) -> list[str]:
        lines = [
            {"kind": "start", "version": 1, "run": facts(**changes), "topology": {"nodes": []}},
            step(0.0, [sample(0, 0, 0, 2)], plan=PLAN),
            step(60.0, [sample(40, 600, 600, 0, 1), sample(60, 900, 600, 3, 1)], receipts=[RECEIPT]),
            {
                "kind": "end",
                "findings": {"audit": AUDIT},
                "finished": True,
                "samples": [sample(100, 1500, 1400, 3, 1), sample(110, 1500, 1500, 3, 1)],
            },
        ]
        return [json.dumps(line) for line in lines]

    return make


@pytest.fixture
def write_journal(tmp_path: Path) -> Callable[..., Path]:
    """Writes journal text where the controller would, under tmp_path/results."""

    def write(text: str, policy: str = "static", seed: int = 1) -> Path:
        folder = tmp_path / "results/experiment=demo" / f"policy={policy}" / "workload=ramp" / f"seed={seed}"
        folder.mkdir(parents=True)
        path = folder / "journal.jsonl"
        path.write_text(text)
        return path

    return write
