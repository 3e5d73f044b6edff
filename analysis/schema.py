"""The tables of an analysis, declared once: what a column is called, and what it holds."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructType,
)

from fogscale.errors import FogscaleError


def _struct(**columns: DataType) -> StructType:
    table = StructType()
    for name, kind in columns.items():
        table.add(name, kind)
    return table


_TEXT, _NUMBER, _COUNT, _COUNTER, _FLAG = StringType(), DoubleType(), IntegerType(), LongType(), BooleanType()
_PLACEMENT = MapType(_TEXT, ArrayType(_TEXT))

RUNS = _struct(
    run_id=_TEXT,
    experiment=_TEXT,
    policy=_TEXT,
    workload=_TEXT,
    seed=_COUNTER,
    duration_s=_NUMBER,  # T, the span of the workload
    operator=_TEXT,  # the one that is scaled and measured
    capacity_per_s=ArrayType(_NUMBER),  # of 1, 2, ... replicas on the best nodes
    n_min=_COUNT,
    n_max=_COUNT,
    sla_response_s=_NUMBER,  # the objective: mean response times above it violate it; null: there is none
    sla_grace_s=_NUMBER,  # how long after a reconfiguration a miss is no steady violation; null: 0
    kind_shares=MapType(_TEXT, _NUMBER),  # of all records, per kind that has a deadline
    variation=_TEXT,  # JSON, what a campaign varied
)

SAMPLES = _struct(
    run_id=_TEXT,
    sequence=_COUNTER,  # the order of samples taken at the same instant
    time_s=_NUMBER,
    offered_records=_COUNTER,
    processed_records=_COUNTER,
    lag_records=_COUNTER,
    replicas=MapType(_TEXT, _COUNT),
    reconfigurations=_COUNT,
    response_p50_ms=_NUMBER,
    response_p95_ms=_NUMBER,
    response_p99_ms=_NUMBER,
    response_mean_ms=_NUMBER,
    late_records=MapType(_TEXT, _COUNTER),  # since the start, per kind of record with a deadline
    time_in_job_s=MapType(_TEXT, _NUMBER),  # since the start, of all records of a kind together
    standby=_COUNT,  # idle instances that are up
    allocated=_COUNT,  # instances that are paid for: running or stopped, booting, on standby
)

_OPERATOR_METRICS = _struct(
    input_rate_per_s=_NUMBER,
    throughput_per_s=_NUMBER,
    true_rate_per_s=_NUMBER,
    back_pressure_ratio=_NUMBER,
    busy_ratio=_NUMBER,
    cpu_ratio=_NUMBER,
    memory_ratio=_NUMBER,
    queue_records=_NUMBER,
    response_time_ms=_NUMBER,
)

DECISIONS = _struct(
    run_id=_TEXT,
    time_s=_NUMBER,
    waited_s=_NUMBER,
    placement=_PLACEMENT,  # what the policy asked for; null where it left things as they were
    standby=_COUNT,
    reason=_TEXT,
    running=_PLACEMENT,  # what it saw
    requested=_PLACEMENT,
    operators=MapType(_TEXT, _OPERATOR_METRICS),
    lag_records=_NUMBER,
    estimates=MapType(_TEXT, _NUMBER),  # what the policy's decision rests on, in its own words
)

RECEIPTS = _struct(
    run_id=_TEXT,
    requested_s=_NUMBER,
    finished_s=_NUMBER,
    downtime_s=_NUMBER,
    outcome=_TEXT,
    message=_TEXT,
    placement=_PLACEMENT,
    reason=_TEXT,
)


def check(table: DataFrame, schema: StructType, name: str = "table") -> DataFrame:
    """The declared columns of a table, in order; an error names all that are missing or of another type."""
    found = {field.name: field.dataType.simpleString() for field in table.schema.fields}
    declared = {field.name: field.dataType.simpleString() for field in schema.fields}
    wrong = [
        f"{column} is {found[column]}, not {kind}" if column in found else f"{column} is missing"
        for column, kind in declared.items()
        if found.get(column) != kind
    ]
    if wrong:
        raise FogscaleError(f"the {name} does not fit its schema: {'; '.join(wrong)}")
    return table.select(*schema.names)
