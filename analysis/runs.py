"""Recorded runs as tables: journals in, typed Parquet out and in again."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # the name all Spark code knows it by
from pyspark.sql.types import ArrayType, BooleanType, IntegerType, StringType, StructField, StructType

from analysis.schema import DECISIONS, FINDINGS, RECEIPTS, RUNS, SAMPLES, check, columns_of
from analysis.spark import literal, local_path
from controller.journal import does_not_add_up, too_large, unchecked
from controller.model import Plan, Receipt, Sample
from controller.recording import (
    CHAIN,
    COMPARISONS,
    FORMAT_VERSION,
    JOURNAL,
    LARGEST_JOURNAL_BYTES,
    NAMED_BY,
    OLDER_NAMES,
    READ_VERSIONS,
    RunFacts,
)
from fogscale.errors import FogscaleError, warn

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
    _check_sizes(folder)
    lines = _parsed(_lines(spark, str(folder))).localCheckpoint()
    left_out = _check_journals(lines, str(folder))
    return _tables(lines.where(~F.col("file").isin(left_out)) if left_out else lines)


def _check_sizes(folder: str) -> None:
    """Spark holds a journal in one piece, several times over: what cannot fit is refused in words. On other
    storage than a disk, Spark complains itself."""
    if "://" not in folder:
        for path in sorted(_journals_below(Path(folder).absolute(), frozenset())):
            if not path.is_file():
                raise FogscaleError(f"{path} is no file: move its folder away")
            if path.stat().st_size > LARGEST_JOURNAL_BYTES:
                raise FogscaleError(too_large(path))


def _journals_below(folder: Path, above: frozenset[str]) -> Iterator[Path]:
    """Links are followed, as Spark does, which would go round for ever where one leads back."""
    real = os.path.realpath(folder)
    if real in above:
        raise FogscaleError(f"{folder} is a link to a folder in which it lies: remove it")
    try:
        entries = list(os.scandir(folder))
    except OSError:  # Spark tells, where it matters
        return
    for entry in entries:
        if entry.is_dir():
            yield from _journals_below(Path(entry.path), above | {real})
        elif entry.name == JOURNAL:
            yield Path(entry.path)


def _lines(spark: SparkSession, folder: str) -> DataFrame:
    """One row per whole line: file, line number, text."""
    try:
        # Whole files, since an error has to name the line and Spark does not number lines.
        reader = spark.read.format("text").options(
            **literal(folder), wholetext=True, recursiveFileLookup=True
        )
        files = reader.load(pathGlobFilter=JOURNAL)
    except AnalysisException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            raise _nothing_under(folder) from None
        raise
    lines = F.split("value", "\n")
    whole_lines = F.slice(lines, 1, F.size(lines) - 1)  # what follows the last line end is empty, or torn
    digest = F.md5("value").alias("digest")
    texts = files.select(F.col("_metadata.file_path").alias("file"), digest, whole_lines.alias("lines"))
    # In a select of its own: beside the generator it would be worked out anew for every line.
    broken_line = F.array_position(_adds_up(F.col("lines")), F.lit(False)).alias("broken_line")
    checked = texts.select("file", "digest", broken_line, "lines")
    numbered = checked.select("file", "digest", "broken_line", F.posexplode("lines").alias("line", "text"))
    return numbered.withColumn("line", F.col("line") + 1)


def _adds_up(lines: Column) -> Column:
    """For each line whether its checksum fits, as controller.journal works it out: a CRC-32 over the checksum
    before it, in digits, and the line without its own."""

    def fits(line: Column, place: Column) -> Column:
        before = F.when(place == 0, F.lit("0")).otherwise(_checksum(F.get(lines, place - 1)))
        body = F.substr(line, F.lit(1), F.length(line) - F.length(_checksum(line)) - len(CHAIN) - 1)
        stated = F.crc32(F.concat(before, body, F.lit("}"))).cast("string") == _checksum(line)
        return line.contains(CHAIN) & stated

    return F.transform(lines, fits)


def _checksum(line: Column) -> Column:
    return F.rtrim(F.substring_index(line, CHAIN, -1), F.lit("}"))


def _parsed(lines: DataFrame) -> DataFrame:
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
    text = F.col("text")
    for older, name in OLDER_NAMES.items():
        text = F.replace(text, F.lit(f'"{older}":'), F.lit(f'"{name}":'))
    record = F.from_json(text, _LINE, options)
    of_line = ("file", "digest", "broken_line", "line")
    return lines.select(*of_line, record.alias("record")).select(*of_line, "record.*")


def _check_journals(lines: DataFrame, folder: str) -> list[str]:
    """Refuses what is damaged; returns the files that count no more, since they repeat another or belong to a
    comparison of its own."""
    journals = _summaries(lines)
    if not journals:
        raise _nothing_under(folder)
    left_out = _comparisons([journal.file for journal in journals], folder)
    counted = [journal for journal in journals if journal.file not in left_out]
    for journal in counted:
        if (problem := _problem_of(journal)) is not None:
            raise FogscaleError(problem)
    if older := [local_path(journal.file) for journal in counted if journal.version == 1]:
        warn(f"{unchecked(older[0])}" + (f", and {len(older) - 1} more like it" if len(older) > 1 else ""))
    return left_out + _repeated(counted)


def _summaries(lines: DataFrame) -> list[Row]:
    """One row per journal, by its file."""
    is_start = (F.col("line") == 1) & (F.col("kind") == "start")
    is_corrupt = F.col(_CORRUPT).isNotNull() | F.col("kind").isNull()
    journals = lines.groupBy("file").agg(
        F.min(F.when(is_corrupt, F.col("line"))).alias("corrupt_line"),
        F.max(F.when(is_start, F.col("version"))).alias("version"),
        F.max(F.when(is_start, _run_id("run."))).alias("run_id"),
        F.first("broken_line").alias("broken_line"),
        F.first("digest").alias("digest"),
    )
    return journals.orderBy("file").collect()


def _problem_of(journal: Row) -> str | None:
    path = local_path(journal.file)
    if journal.corrupt_line is not None:
        return (
            f"{path}, line {journal.corrupt_line}: not a journal record; move the run's folder away "
            f"and run it again"
        )
    if journal.run_id is None:
        return f"{path}, line 1: not the start of a journal; move the file away and run again"
    if journal.version not in READ_VERSIONS:
        return f"{path}: written in format {journal.version}, this fogscale reads {FORMAT_VERSION}"
    if journal.version > 1 and journal.broken_line:
        return does_not_add_up(path, journal.broken_line)
    return None


def _repeated(journals: list[Row]) -> list[str]:
    """The files that hold a run once more, word for word; two of one name that differ are refused."""
    seen: dict[str, Row] = {}
    repeated = []
    for journal in journals:
        first = seen.setdefault(journal.run_id, journal)
        if first is journal:
            continue
        if first.digest != journal.digest:
            raise FogscaleError(
                f"{local_path(journal.file)} and {local_path(first.file)} are both the run "
                f"{journal.run_id}, and differ: name the folder of one of them, or move one away"
            )
        repeated.append(journal.file)
    return repeated


def _comparisons(files: list[str], folder: str) -> list[str]:
    """Where a folder of results has runs of its own, the comparisons below it are reported on their own."""
    root = (folder if "://" in folder else str(Path(folder).absolute())).rstrip("/") + "/"
    below = {file: local_path(file).removeprefix(root) for file in files}
    if not any(place.startswith("experiment=") for place in below.values()):
        return []
    compared = [file for file, place in below.items() if place.startswith(f"{COMPARISONS}/")]
    if compared:
        warn(f"{len(compared)} runs in {folder}/{COMPARISONS} are left out: analyse its folders one by one")
    return compared


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
        path = literal(f"{folder}/{name}")["path"]  # to write, Spark knows no patterns
        writer.partitionBy("of_experiment", "of_policy").parquet(path)


def read_parquet(spark: SparkSession, folder: str) -> Tables:
    """The tables that write_parquet left in a folder."""
    return Tables(*(_read_table(spark, folder, name) for name in Tables._fields))


def _read_table(spark: SparkSession, folder: str, name: str) -> DataFrame:
    try:
        table = spark.read.format("parquet").options(**literal(f"{folder}/{name}")).load()
    except AnalysisException as error:
        if error.getCondition() == "UNABLE_TO_INFER_SCHEMA":  # written, but without a row: nothing happened
            return spark.createDataFrame([], _SCHEMAS[name])
        if error.getCondition() == "PATH_NOT_FOUND":
            raise FogscaleError(f"no table {name} in {folder}: run fogscale analyze first") from None
        raise
    return _checked(name, table)
