"""The import itself: a survey, then one pass over the raw files, from which both tables are written."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # the name all Spark code knows it by

from analysis.shipping import ship_packages
from controller.errors import FogscaleError
from workloads.importing import lines, worldcup98
from workloads.importing.cleaning import (
    in_slices,
    record_reason,
    seconds,
    timed_rides,
    timed_trips,
    trip_reason,
    whole_minute,
    without_duplicates,
)
from workloads.importing.editions import TLC_PARQUET, Edition, has_header
from workloads.importing.streams import CHUNK_BYTES, Part, parts_of
from workloads.importing.survey import Cell, Slicing, Span, file_spans, rounded_vendors, slicing
from workloads.importing.taxi import parsed, parsed_stamps, read_tlc

SAMPLE_BYTES = 4 << 20  # of all files together; smaller files are looked at as a whole
LEAST_SAMPLE_BYTES = 1 << 18  # of each file
SLICE_BYTES = 64 << 20  # of raw data that one task sorts
GZIP_RATIO = 4  # how much larger the content is, about

Say = Callable[[str], None]


@dataclass(frozen=True)
class Source:
    """Rows with `file`, `position`, `raw`, `damage` and typed columns, and how they are judged."""

    edition: str
    title: str
    paths: tuple[Path, ...]
    read: Callable[[SparkSession, bool], DataFrame]  # all rows, or a sample of them
    timed: Callable[[DataFrame, frozenset[str]], DataFrame]  # adds event_s and spread_s
    reason: Callable[[DataFrame, dict[int, Span]], Column]
    columns: tuple[Column, ...]  # of an event, beside its time
    raw: Column  # a row as it stood in the file
    vendor: Column
    may_be_rounded: bool
    by_month: bool
    drops_duplicates: bool


@dataclass(frozen=True)
class Imported:
    """What the pass over all rows counted."""

    rows_in: int
    rounded: dict[str, tuple[int, int]]  # vendor -> rows whose stamps are whole minutes, of all its rows
    spread: frozenset[str]  # the vendors whose stamps were spread


def write_rows(spark: SparkSession, source: Source, folder: Path, say: Say) -> Imported:
    """Kept rows to folder/events and the others to folder/quarantine, in one pass over the raw data."""
    ship_packages(spark)
    say("looking at a sample")
    cells = survey(spark, source)
    spans, rounded = file_spans(cells, source.by_month), frozenset[str]()
    if source.may_be_rounded:
        rounded = rounded_vendors(cells)
    cut = slicing(cells, spans, _slice_count(source.paths, spark.sparkContext.defaultParallelism))
    say(f"reading and cleaning {len(source.paths)} file(s)")
    counted = Observation("rows")
    vendors = sorted({cell.vendor for cell in cells}) if source.may_be_rounded else []
    rows = source.read(spark, False).observe(counted, *_counts(source, vendors))
    judged = source.timed(_hashed(rows, source), rounded)
    judged = judged.withColumn("reason", source.reason(judged, spans))
    rows = _in_order(judged, source, cut)
    with _settings(spark, _WRITER_SETTINGS):
        _table(rows, source).write.partitionBy("quarantined").parquet(str(folder / "rows"))
    for kept, name in (("false", "events"), ("true", "quarantine")):
        part = folder / "rows" / f"quarantined={kept}"
        part.rename(folder / name) if part.exists() else (folder / name).mkdir()
        for checksum in (folder / name).glob(".*.crc"):
            checksum.unlink()
    shutil.rmtree(folder / "rows")
    found = counted.get
    shares = {
        vendor: (found[f"whole_{number}"], found[f"vendor_{number}"]) for number, vendor in enumerate(vendors)
    }
    return Imported(found["rows"], shares, rounded)


def survey(spark: SparkSession, source: Source) -> list[Cell]:
    """Rows per file, vendor and minute of a sample: a table whose size depends on the sample alone."""
    rows = source.timed(source.read(spark, True), frozenset())
    is_whole = whole_minute() if source.may_be_rounded else F.lit(False)
    cells = (
        rows.where(F.col("damage").isNull() & F.col("event_s").isNotNull())
        .groupBy("file", source.vendor.alias("vendor"), F.floor(F.col("event_s") / 60).alias("minute"))
        .agg(F.count(F.lit(1)).alias("rows"), F.count_if(is_whole).alias("whole"))
        .select("file", "vendor", "minute", "rows", "whole")
    )
    return [Cell(*row) for row in cells.collect()]


def _counts(source: Source, vendors: Sequence[str]) -> list[Column]:
    counts = [F.count(F.lit(1)).alias("rows")]
    for number, vendor in enumerate(vendors):
        is_theirs = (source.vendor == vendor) & F.col("damage").isNull()
        counts.append(F.count_if(is_theirs).alias(f"vendor_{number}"))
        counts.append(F.count_if(is_theirs & whole_minute()).alias(f"whole_{number}"))
    return counts


def _hashed(rows: DataFrame, source: Source) -> DataFrame:
    return rows.withColumn("line_hash", F.xxhash64("raw")) if source.drops_duplicates else rows


def _in_order(rows: DataFrame, source: Source, cut: Slicing) -> DataFrame:
    sliced = in_slices(rows, cut)
    if source.drops_duplicates:
        return without_duplicates(sliced)
    return sliced.sortWithinPartitions("event_s", "file", "position")


def _table(rows: DataFrame, source: Source) -> DataFrame:
    """One schema for both tables; what only quarantined rows need is null for the others."""
    is_kept = F.col("reason").isNull()
    return rows.select(
        F.timestamp_seconds("event_s").cast("timestamp_ntz").alias("event_time"),
        *source.columns,
        "reason",
        F.when(~is_kept, F.col("file")).alias("file"),
        F.when(~is_kept, F.col("position")).alias("position"),
        F.when(~is_kept, source.raw).alias("raw"),
        (~is_kept).alias("quarantined"),
    )


def _slice_count(paths: Sequence[Path], cores: int) -> int:
    size = sum(
        path.stat().st_size * (GZIP_RATIO if part.is_gzip else 1) for path, part in _first_parts(paths)
    )
    return max(-(-size // SLICE_BYTES), min(cores, -(-size // (1 << 20))), 1)


def _first_parts(paths: Sequence[Path]) -> Iterator[tuple[Path, Part]]:
    for path in paths:
        for part in parts_of(path, 0, 1 << 62)[:1]:
            yield path, part


# Two tables from one pass: each task keeps a file of each open, so that no sort by table destroys the order.
# Spark begins to sort as soon as the limit is reached, not exceeded: it must be above two.
_WRITER_SETTINGS = {
    "spark.sql.maxConcurrentOutputFileWriters": "16",
    "spark.sql.optimizer.plannedWrite.enabled": "false",
    "spark.sql.parquet.compression.codec": "snappy",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}


@contextmanager
def _settings(spark: SparkSession, settings: dict[str, str]) -> Iterator[None]:
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, earlier in before.items():
            spark.conf.unset(name) if earlier is None else spark.conf.set(name, earlier)


# Sources ---------------------------------------------------------------------------------------------------


def taxi_source(paths: Sequence[Path], edition: Edition) -> Source:
    read = _tlc_reader(paths) if edition is TLC_PARQUET else _line_reader(paths, edition)
    columns = ["pickup_time", "dropoff_time", "spread_s"]
    columns += [name for name in edition.columns if name not in (*columns, "kind", "stamp", "other_stamp")]
    if edition.rides:
        columns.append("is_start")
    return Source(
        edition=edition.name,
        title=edition.title,
        paths=tuple(paths),
        read=read,
        timed=timed_rides if edition.rides else timed_trips,
        reason=lambda rows, spans: trip_reason(rows.columns, spans),
        columns=tuple(F.col(name) for name in columns),
        raw=F.col("raw"),
        vendor=F.coalesce("vendor", F.lit("")) if edition.has_vendor else F.lit(""),
        may_be_rounded=True,
        by_month=True,
        drops_duplicates=True,
    )


def _line_reader(paths: Sequence[Path], edition: Edition) -> Callable[[SparkSession, bool], DataFrame]:
    parts = [part for n, path in enumerate(paths) for part in parts_of(path, n, lines.PART_BYTES)]
    with_header = [n for n, path in enumerate(paths) if has_header(path)]
    sample_every = _sample_every(paths, lines.SAMPLE_CHUNK_BYTES)

    def read(spark: SparkSession, is_sample: bool) -> DataFrame:
        rows = lines.read_lines(spark, parts, sample_every if is_sample else 1)
        if with_header:
            rows = rows.where((F.col("position") > 0) | ~F.col("file").isin(*with_header))
        return _with_seconds((parsed_stamps if is_sample else parsed)(rows, edition))

    return read


def _tlc_reader(paths: Sequence[Path]) -> Callable[[SparkSession, bool], DataFrame]:
    return lambda spark, _is_sample: _with_seconds(read_tlc(spark, paths))


def _with_seconds(rows: DataFrame) -> DataFrame:
    return rows.withColumns(
        {"pickup_s": seconds(F.col("pickup_time")), "dropoff_s": seconds(F.col("dropoff_time"))}
    )


def worldcup_source(paths: Sequence[Path]) -> Source:
    """No duplicates are dropped: a client may well ask for the same object twice within a second."""
    size = worldcup98.RECORD_BYTES
    parts = [part for n, path in enumerate(paths) for part in parts_of(path, n, worldcup98.PART_BYTES, size)]
    sample_every = _sample_every(paths, CHUNK_BYTES)

    def read(spark: SparkSession, is_sample: bool) -> DataFrame:
        return worldcup98.read_records(spark, parts, sample_every if is_sample else 1)

    return Source(
        edition="worldcup98",
        title="World Cup 98 access log (20-byte binary records, GMT)",
        paths=tuple(paths),
        read=read,
        timed=lambda rows, _rounded: rows.withColumn("event_s", F.col("stamp_s")),
        reason=lambda _rows, spans: record_reason(spans),
        columns=worldcup98.decoded(),
        raw=F.coalesce("raw", worldcup98.hexadecimal()),
        vendor=F.lit(""),
        may_be_rounded=False,
        by_month=False,
        drops_duplicates=False,
    )


def _sample_every(paths: Sequence[Path], chunk_bytes: int) -> int:
    """One chunk in so many is looked at."""
    wanted = max(SAMPLE_BYTES, LEAST_SAMPLE_BYTES * len(paths))
    return max(1, sum(path.stat().st_size for path in paths) // max(wanted, chunk_bytes))


def check_conservation(rows_in: int, kept: int, quarantined: int) -> None:
    if rows_in != kept + quarantined:
        raise FogscaleError(
            f"{rows_in} rows were read, but {kept} kept and {quarantined} quarantined: this is a fault of"
            " fogscale, please report it; the trace is not to be trusted"
        )
