"""Campaigns: many simulated runs, spread over the cores of this machine or of a cluster by Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import fields
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # the name all Spark code knows it by
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import ArrayType, DataType, MapType, StructType
from pyspark.storagelevel import StorageLevel

from analysis.kept_rows import KeptRows, keys_of
from analysis.schema import RUNS, SAMPLES
from analysis.shipping import ship_packages
from analysis.spark import literal
from analysis.spreading import (
    failing_by_name,
    is_shared,
    label,
    named_failures,
    progress,
    spread,
    with_policies_of_script,
)
from controller.model import Sample
from controller.recording import run_id, variation_text
from fogscale.errors import FogscaleError

Simulate = Callable[[str], tuple[dict[str, Any], Sequence[Sample]]]
"""From a run as a JSON document to the facts of the run (as in a journal's start line) and its samples."""

ROWS_PER_TASK = 100_000  # samples that a task sorts by run and time, several times at once

_ROW = StructType([*SAMPLES.fields]).add("run", RUNS)
_SAMPLED = tuple(field.name for field in fields(Sample))


class Campaign(NamedTuple):
    """The tables of a campaign, until released."""

    runs: DataFrame
    samples: DataFrame
    rows: DataFrame
    in_use: ExitStack

    def release(self) -> None:
        self.rows.unpersist()
        self.in_use.close()


def run_campaign(
    spark: SparkSession,
    runs: Sequence[str],
    simulate: Simulate | None = None,
    kept: Path | None = None,
    fresh: bool = False,
) -> Campaign:
    """Simulates each run (a JSON document) once, and returns their runs and samples.

    With a folder `kept`, each run's rows are written there as soon as it has ended, and what is there already
    is not simulated again (`fresh`: it is), so that an interrupted campaign goes on, and an analysis that
    failed repeats nothing. Without one, or where the workers of a cluster do not see the folder, Spark keeps
    the rows until they are released, in its compressed columns and on disk when memory is short; a lost
    machine's share is simulated again, which gives the same rows, since a run's seed decides them.
    """
    if not runs:
        raise FogscaleError("the campaign has no runs: name at least one policy, workload and seed")
    ship_packages(spark)
    work = simulate or with_policies_of_script(_real_simulate)
    with ExitStack() as in_use:
        if kept is not None and is_shared(spark, kept):
            in_use.enter_context(KeptRows(kept).alone())
            rows = _kept_rows(spark, runs, work, KeptRows(kept.absolute()), fresh)
        else:
            rows = spread(spark, list(enumerate(runs)), "position int, document string").mapInArrow(
                _simulated(work), _ROW
            )
            rows = rows.persist(StorageLevel.MEMORY_AND_DISK)
        with progress(spark, len(runs)), named_failures(rows):
            count = rows.count()
        samples = rows.where(F.col("time_s").isNotNull()).select(*SAMPLES.names)
        campaign = Campaign(
            runs=rows.where(F.col("run").isNotNull()).select("run.*"),
            # All that follows works run by run; without this, a long campaign's tasks run out of memory.
            samples=samples.repartition(_partitions(spark, count), "run_id"),
            rows=rows,
            in_use=in_use.pop_all(),
        )
    _check_distinct(campaign)
    return campaign


def _kept_rows(
    spark: SparkSession, runs: Sequence[str], simulate: Simulate, kept: KeptRows, fresh: bool
) -> DataFrame:
    keys = keys_of(runs)
    if fresh:
        kept.keep_only(())
    missing = kept.missing(keys)
    wanted = [(place, run, key) for place, (run, key) in enumerate(zip(runs, keys, strict=True))]
    # Two runs with one key are one run twice, which is found out once both have rows.
    if duplicate := next((row for row in wanted if keys.index(row[2]) != row[0]), None):
        raise FogscaleError(f"{label(*duplicate[:2])} is in the campaign twice: vary its seed or settings")
    todo = [row for row in wanted if row[2] in missing]
    if todo:
        tasks = spread(spark, todo, "position int, document string, key string")
        written = tasks.mapInArrow(_written(simulate, kept), "key string")
        with progress(spark, len(todo)), named_failures(written):
            written.count()
    kept.keep_only(keys)
    reader = spark.read.schema(_ROW).options(**literal(kept.folder))
    return reader.format("parquet").load(pathGlobFilter="*.parquet")


def _partitions(spark: SparkSession, rows: int) -> int:
    return max(int(spark.conf.get("spark.sql.shuffle.partitions") or 1), ceil(rows / ROWS_PER_TASK))


def _check_distinct(campaign: Campaign) -> None:
    """Two runs of one name would be measured as if they were one."""
    twice = campaign.runs.groupBy("run_id").count().where(F.col("count") > 1).first()
    if twice is not None:
        campaign.release()
        raise FogscaleError(
            f"{twice['count']} runs of the campaign are all {twice['run_id']}: vary their seed or settings"
        )


# On the workers


def _simulated(
    simulate: Simulate,
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def simulate_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                yield _run_one(simulate, row["position"], row["document"])

    return simulate_batches


def _written(
    simulate: Simulate, kept: KeptRows
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def write_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                kept.write(row["key"], _run_one(simulate, row["position"], row["document"]))
                yield pa.RecordBatch.from_pydict({"key": [row["key"]]})

    return write_batches


def _run_one(simulate: Simulate, position: int, document: str) -> pa.RecordBatch:
    with failing_by_name(position, document):
        return _batch(*simulate(document))


def _real_simulate(run: str) -> tuple[dict[str, Any], Sequence[Sample]]:
    from controller.run import simulate  # on the worker only: the driver need not load the engine

    return simulate(run)


def _batch(facts: Mapping[str, Any], samples: Sequence[Sample]) -> pa.RecordBatch:
    """The rows of one run: its samples, the first of which carries the facts of the run."""
    named = {"run_id": run_id(facts), "variation": variation_text(facts)}
    run = {column.name: _nested(facts.get(column.name), column.dataType) for column in RUNS.fields} | named
    rows = max(1, len(samples))  # a run without samples is still a run
    columns: dict[str, list[Any]] = {
        name: [_cell(getattr(sample, name)) for sample in samples] or [None] for name in _SAMPLED
    }
    columns["run_id"] = [named["run_id"]] * rows
    columns["sequence"] = list(range(rows))
    columns["run"] = [run] + [None] * (rows - 1)
    return pa.RecordBatch.from_pydict(columns, schema=to_arrow_schema(_ROW))


def _nested(value: Any, kind: DataType) -> Any:
    """The same at any depth."""
    if value is None:
        return None
    if isinstance(kind, MapType):
        return [(name, _nested(each, kind.valueType)) for name, each in value.items()]
    if isinstance(kind, ArrayType):
        return [_nested(each, kind.elementType) for each in value]
    if isinstance(kind, StructType):
        return {column.name: _nested(value.get(column.name), column.dataType) for column in kind.fields}
    return value


def _cell(value: Any) -> Any:
    """As Arrow takes it: a mapping as its pairs."""
    return list(value.items()) if isinstance(value, Mapping) else value
