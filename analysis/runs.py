"""Recorded runs as tables: journals in, typed Parquet out and in again."""

from __future__ import annotations

from typing import NamedTuple

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # the name all Spark code knows it by
from pyspark.sql.types import ArrayType, BooleanType, IntegerType, StringType, StructField, StructType

from analysis.schema import DECISIONS, FINDINGS, RECEIPTS, RUNS, SAMPLES, check, columns_of
from controller.model import Plan, Receipt, Sample
from controller.recording import FORMAT_VERSION, JOURNAL, NAMED_BY, OLDER_NAMES, RunFacts
from fogscale.errors import FogscaleError

MAX_SAMPLES_PER_LINE = 1_000_000  # sequence = line * this + place in the line, so it rises over the journal


class Tables(NamedTuple):
    """What is known of a set of runs; one row per run, sample, decision, receipt, and run with findings."""

    runs: DataFrame
    samples: DataFrame
    decisions: DataFrame
    receipts: DataFrame
    findings: DataFrame


# Of the same names: what each table is checked against.
_SCHEMAS = dict(zip(Tables._fields, (RUNS, SAMPLES, DECISIONS, RECEIPTS, FINDINGS), strict=True))


def _pick(schema: StructType, *names: str) -> StructType:
    return StructType([schema[name] for name in names])


_PLAN = columns_of(Plan)
_RECEIPT = columns_of(Receipt, leaving_out=("plan",)).add("plan", _PLAN)
_OBSERVATION = (
    _pick(DECISIONS, "requested", "operators", "lag_records")
    .add("placement", DECISIONS["running"].dataType)
    .add("receipts", ArrayType(_RECEIPT))
)
_CORRUPT = "_corrupt_record"
_LINE = StructType(
    [
        StructField("kind", StringType()),
        StructField("version", IntegerType()),
        StructField("run", columns_of(RunFacts)),
        DECISIONS["time_s"],
        StructField("observation", _OBSERVATION),
        StructField("plan", _PLAN),
        DECISIONS["waited_s"],
        DECISIONS["estimates"],
        DECISIONS["notes"],
        StructField("samples", ArrayType(columns_of(Sample))),
        StructField("finished", BooleanType()),
        FINDINGS["findings"],
        StructField(_CORRUPT, StringType()),
    ]
)


def read_journals(spark: SparkSession, folder: str) -> Tables:
    """The tables of all runs whose journals lie anywhere under a folder (a local one, or s3a://...)."""
    # Parsed once and kept by the executors: each table, and the check, is a selection of the same lines.
    # A local checkpoint rather than a cache, since Spark drops it when nobody holds the tables any more.
    lines = _parsed(_lines(spark, str(folder))).localCheckpoint()
    _check_journals(lines, str(folder))
    return _tables(lines)


def _lines(spark: SparkSession, folder: str) -> DataFrame:
    """One row per whole line: file, line number, text."""
    try:
        # Whole files, since an error has to name the line and Spark does not number lines.
        files = spark.read.text(folder, wholetext=True, pathGlobFilter=JOURNAL, recursiveFileLookup=True)
    except AnalysisException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            raise _nothing_under(folder) from None
        raise
    lines = F.split("value", "\n")
    whole_lines = F.slice(lines, 1, F.size(lines) - 1)  # what follows the last line end is empty, or torn
    return files.select(
        F.col("_metadata.file_path").alias("file"),
        F.posexplode(whole_lines).alias("line", "text"),
    ).select("file", (F.col("line") + 1).alias("line"), "text")


def _parsed(lines: DataFrame) -> DataFrame:
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
    text = F.col("text")
    for older, name in OLDER_NAMES.items():
        text = F.replace(text, F.lit(f'"{older}":'), F.lit(f'"{name}":'))
    record = F.from_json(text, _LINE, options)
    return lines.select("file", "line", record.alias("record")).select("file", "line", "record.*")


def _check_journals(lines: DataFrame, folder: str) -> None:
    run_id = _run_id("run.")
    is_start = (F.col("line") == 1) & (F.col("kind") == "start")
    is_corrupt = F.col(_CORRUPT).isNotNull() | F.col("kind").isNull()
    journals = (
        lines.groupBy("file")
        .agg(
            F.min(F.when(is_corrupt, F.col("line"))).alias("corrupt_line"),
            F.max(F.when(is_start, F.col("version"))).alias("version"),
            F.max(F.when(is_start, run_id)).alias("run_id"),
        )
        .orderBy("file")
        .collect()
    )
    if not journals:
        raise _nothing_under(folder)
    seen: dict[str, str] = {}
    for journal in journals:
        path = journal.file.removeprefix("file://")
        if journal.corrupt_line is not None:
            raise FogscaleError(
                f"{path}, line {journal.corrupt_line}: not a journal record; move the run's folder away "
                f"and run it again"
            )
        if journal.run_id is None:
            raise FogscaleError(
                f"{path}, line 1: not the start of a journal; move the file away and run again"
            )
        if journal.version != FORMAT_VERSION:
            raise FogscaleError(
                f"{path}: written in format {journal.version}, this fogscale reads {FORMAT_VERSION}"
            )
        if journal.run_id in seen:
            raise FogscaleError(
                f"{path} and {seen[journal.run_id]} are both the run {journal.run_id}: move one of them away"
            )
        seen[journal.run_id] = path


def _nothing_under(folder: str) -> FogscaleError:
    return FogscaleError(f"no {JOURNAL} under {folder}: run an experiment first, or name another folder")


def _run_id(prefix: str = "") -> Column:
    return F.concat_ws("/", *(F.col(prefix + part).cast("string") for part in NAMED_BY))


def _tables(lines: DataFrame) -> Tables:
    starts = lines.where((F.col("kind") == "start") & (F.col("line") == 1))
    names = starts.select("file", _run_id("run.").alias("run_id"))
    steps = lines.where(F.col("kind") == "step")
    ends = lines.where((F.col("kind") == "end") & F.col("findings").isNotNull())
    run_of_line = {"on": "file", "how": "inner"}
    return Tables(
        runs=_checked("runs", starts.select(_run_id("run.").alias("run_id"), "run.*")),
        samples=_checked("samples", _samples(lines).join(F.broadcast(names), **run_of_line)),
        decisions=_checked("decisions", _decisions(steps).join(F.broadcast(names), **run_of_line)),
        receipts=_checked("receipts", _receipts(steps).join(F.broadcast(names), **run_of_line)),
        findings=_checked(
            "findings", ends.select("file", "findings").join(F.broadcast(names), **run_of_line)
        ),
    )


def _checked(name: str, table: DataFrame) -> DataFrame:
    return check(table, _SCHEMAS[name], f"table {name}")


def _samples(lines: DataFrame) -> DataFrame:
    sequence = F.col("line").cast("long") * MAX_SAMPLES_PER_LINE + F.col("place")
    return lines.select("file", "line", F.posexplode("samples").alias("place", "sample")).select(
        "file", sequence.alias("sequence"), "sample.*"
    )


def _decisions(steps: DataFrame) -> DataFrame:
    none = F.array().cast(DECISIONS["notes"].dataType)
    return steps.select(
        "file",
        "time_s",
        "waited_s",
        *(f"plan.{name}" for name in _PLAN.names if name != "notes"),
        F.col("observation.placement").alias("running"),
        "observation.requested",
        "observation.operators",
        "observation.lag_records",
        "estimates",
        F.concat(F.coalesce("plan.notes", none), F.coalesce("notes", none)).alias("notes"),
    )


def _receipts(steps: DataFrame) -> DataFrame:
    receipts = steps.select("file", F.explode("observation.receipts").alias("receipt")).select(
        "file", "receipt.*"
    )
    return receipts.select("*", "plan.placement", "plan.reason")


def write_parquet(tables: Tables, folder: str) -> None:
    """Writes the tables, in partitions by experiment and policy: what figures select by."""
    for name, table in tables._asdict().items():
        experiment, policy = (F.split_part("run_id", F.lit("/"), F.lit(place)) for place in (1, 2))
        parted = table.select("*", experiment.alias("of_experiment"), policy.alias("of_policy"))
        writer = parted.repartition("of_experiment", "of_policy").write.mode("overwrite")
        writer.partitionBy("of_experiment", "of_policy").parquet(f"{folder}/{name}")


def read_parquet(spark: SparkSession, folder: str) -> Tables:
    """The tables that write_parquet left in a folder."""
    return Tables(*(_read_table(spark, folder, name) for name in Tables._fields))


def _read_table(spark: SparkSession, folder: str, name: str) -> DataFrame:
    try:
        table = spark.read.parquet(f"{folder}/{name}")
    except AnalysisException as error:
        if error.getCondition() == "UNABLE_TO_INFER_SCHEMA":  # written, but without a row: nothing happened
            return spark.createDataFrame([], _SCHEMAS[name])
        if error.getCondition() == "PATH_NOT_FOUND":
            raise FogscaleError(f"no table {name} in {folder}: run fogscale analyze first") from None
        raise
    return _checked(name, table)
