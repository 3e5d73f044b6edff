"""What is recorded arrives in Spark whole: tables derive from the values, and no field gets lost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_type_hints

import pyarrow as pa
import pytest

from analysis.campaign import _batch
from analysis.runs import read_journals
from analysis.schema import SAMPLES, column_type, columns_of
from controller.contract import Step
from controller.journal import Journal
from controller.model import Node, Observation, Operator, Sample, Topology
from controller.network import RttUniform
from controller.recording import JOURNAL, RunFacts, run_folder

FACTS = {
    "experiment": "demo", "policy": "static", "workload": "ramp", "seed": 3,
    "duration_s": 100.0, "operator": "map",
    "capacity_per_s": [10.0, 20.0], "n_min": 1, "n_max": 2, "sla_response_s": 0.5, "sla_grace_s": 2.0,
    "kind_shares": {"slow": 0.25}, "variation": {},
    "operators": [{"name": "map", "capacity_per_s": [10.0, 20.0], "n_min": 1, "n_max": None,
                   "records_per_input": {"source": 0.5, "clock": 0.0}}],
    "metrics": {"period_s": 120.0, "skip_first_s": 30.0, "skip_after_reconfiguration_s": 60.0},
}  # fmt: skip


@dataclass(frozen=True)
class LongerSample(Sample):
    """A sample with one more field of every kind, as a later fogscale may have it."""

    paid: float | None = None
    dropped_records: int = 0
    moved: bool = False
    mode: Literal["calm", "busy"] = "calm"
    waiting: Mapping[str, int] = field(default_factory=dict)
    nodes: tuple[str, ...] = ()


def filled(name: str, place: int) -> Any:
    """A value that no default and no other field has, fit for the field's column."""
    number = 1000 + place
    match column_type(get_type_hints(Sample)[name]):
        case column if column.typeName() == "map":
            value = number if column.valueType.typeName() == "long" else number + 0.5
            return {f"key of {name}": value}
        case column if column.typeName() == "double":
            return number + 0.5
        case column if column.typeName() == "long":
            return number
        case column:
            raise AssertionError(f"{name}: say here how a {column.simpleString()} is filled")


def full_sample() -> Sample:
    values = {known.name: filled(known.name, place) for place, known in enumerate(fields(Sample))}
    return Sample(**values)


def test_the_table_of_samples_has_every_field_of_a_sample_and_two_of_its_own():
    assert SAMPLES.names == ["run_id", "sequence", *(known.name for known in fields(Sample))]


def test_a_field_that_a_sample_gains_becomes_a_column_of_its_type():
    gained = {column.name: column.dataType.simpleString() for column in columns_of(LongerSample).fields[-6:]}
    assert gained == {
        "paid": "double",
        "dropped_records": "bigint",
        "moved": "boolean",
        "mode": "string",
        "waiting": "map<string,bigint>",
        "nodes": "array<string>",
    }


@pytest.mark.spark
def test_every_field_of_a_sample_arrives_through_the_journal(spark, tmp_path):
    sample = full_sample()
    topology = Topology((Node("pi1", 4, 4096),), (Operator("map"),), RttUniform(1.0))
    seen = Observation(0.0, topology, {"map": ("pi1",)}, {"map": ("pi1",)}, {})
    journal = Journal.open(tmp_path / run_folder(FACTS) / JOURNAL, FACTS, topology)
    journal.append(Step(seen, None, 60.0, (sample,)))
    journal.end(True, [], {})
    journal.close()
    (row,) = read_journals(spark, str(tmp_path)).samples.collect()
    arrived = row.asDict()
    assert {known.name: arrived[known.name] for known in fields(Sample)} == {
        known.name: getattr(sample, known.name) for known in fields(Sample)
    }


@pytest.mark.spark
def test_every_fact_of_a_run_arrives_through_the_journal(spark, tmp_path):
    topology = Topology((Node("pi1", 4, 4096),), (Operator("map"),), RttUniform(1.0))
    journal = Journal.open(tmp_path / run_folder(FACTS) / JOURNAL, FACTS, topology)
    journal.close()
    (row,) = read_journals(spark, str(tmp_path)).runs.collect()
    assert sorted(FACTS) == sorted(known.name for known in fields(RunFacts))
    assert row.asDict(recursive=True) == FACTS | {"run_id": "demo/static/ramp/3", "variation": "{}"}


def test_every_field_of_a_sample_arrives_through_a_campaign():
    sample = full_sample()
    batch: pa.RecordBatch = _batch(FACTS, [sample])
    (row,) = batch.to_pylist(maps_as_pydicts="strict")
    for known in fields(Sample):
        assert row[known.name] == getattr(sample, known.name), known.name
    assert row["run"] == FACTS | {"run_id": "demo/static/ramp/3", "variation": "{}"}
