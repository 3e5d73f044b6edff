"""The import on Spark: a look at a sample, then one pass over the raw files and one exchange by time.

Tasks work on Arrow columns from the first byte to the written file; an event never becomes a row of the
JVM, which alone would take longer than the rest. Spark spreads the tasks over its workers, brings together
what belongs to the same slice of time, tries again what fails, and counts.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # the name all Spark code knows it by

from analysis.shipping import ship_packages
from fogscale.errors import FogscaleError
from workloads.importing import slices
from workloads.importing.editions import TLC_PARQUET
from workloads.importing.slices import Verdicts
from workloads.importing.sources import Source
from workloads.importing.streams import Part
from workloads.importing.survey import Cell, file_spans, rounded_vendors, slicing

SLICE_BYTES = 64 << 20  # of raw data that one task sorts
GZIP_RATIO = 4  # how much larger the content is, about
PARQUET_RATIO = 8  # of the TLC's files: 18 bytes a row, and 122 as columns in memory

Say = Callable[[str], None]
Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True)
class Imported:
    """What the pass over all rows counted."""

    rows_in: int
    rounded: dict[str, tuple[int, int]]  # vendor -> rows whose stamps are whole minutes, of all its rows
    spread: frozenset[str]  # the vendors whose stamps were spread


def write_rows(spark: SparkSession, source: Source, folder: Path, say: Say) -> Imported:
    """Kept rows to folder/events and the others to folder/quarantine, in one pass over the raw data."""
    ship_packages(spark)
    for name in ("events", "quarantine", slices.DUPLICATES, slices.EXCHANGE):
        (folder / name).mkdir()
    say("looking at a sample")
    cells = survey(spark, source)
    spans = file_spans(cells, source.by_month)
    spread = rounded_vendors(cells) if source.may_be_rounded else frozenset[str]()
    cut = slicing(cells, spans, _slice_count(source, spark.sparkContext.defaultParallelism))
    say(f"reading and cleaning {len(source.paths)} file(s)")
    counted = Observation("rows")
    blocks = read_blocks(spark, source, Verdicts(spans, spread, cut), folder)
    blocks = blocks.observe(counted, F.sum("rows").alias("rows"))
    tallies = write_slices(blocks, source, cut.count, folder).collect()
    if any(tally.what == slices.DUPLICATES for tally in tallies):
        say("looking up the lines of duplicates")
        quote_duplicates(spark, source, folder).collect()
    for name in (slices.DUPLICATES, slices.EXCHANGE):
        shutil.rmtree(folder / name)
    rows, whole = Counter[str](), Counter[str]()
    for tally in tallies:
        if tally.what == slices.VENDOR:
            rows[tally.name] += tally.rows
            whole[tally.name] += tally.whole
    shares = {vendor: (whole[vendor], rows[vendor]) for vendor in sorted(rows)}
    return Imported(counted.get["rows"] or 0, shares, spread)


def survey(spark: SparkSession, source: Source) -> list[Cell]:
    """Rows per file, vendor and minute of a sample: a table whose size depends on the sample alone."""

    def count(part: Part) -> Batches:
        yield from slices.counted(part, source)

    cells = _for_each(
        spark, source.parts, count, "file int, vendor string, minute long, rows long, whole long"
    )
    totals = cells.toArrow().group_by(["file", "vendor", "minute"])
    totals = totals.aggregate([("rows", "sum"), ("whole", "sum")])
    return [Cell(*row) for row in zip(*(column.to_pylist() for column in totals.columns), strict=True)]


def read_blocks(spark: SparkSession, source: Source, verdicts: Verdicts, folder: Path) -> DataFrame:
    """Judged rows in blocks of columns, each of one slice of time: where each block is."""
    target = str(folder.resolve())

    def read(part: Part) -> Batches:
        yield from slices.blocks(part, source, verdicts, target)

    return _for_each(spark, source.parts, read, slices.BLOCKS)


def write_slices(blocks: DataFrame, source: Source, count: int, folder: Path) -> DataFrame:
    """Sorts each slice, writes its files and says what was in it."""
    target = str(folder.resolve())

    def write(batches: Batches) -> Batches:
        yield from slices.written(batches, source, target)

    return blocks.repartitionById(count, F.col("slice")).mapInArrow(write, slices.TALLIES)


def quote_duplicates(spark: SparkSession, source: Source, folder: Path) -> DataFrame:
    """Moves the duplicates to the quarantine, with their lines: too few to carry every line for them."""
    target = str(folder.resolve())

    def quote(part: Part) -> Batches:
        yield from slices.quoted(part, source, target)

    return _for_each(spark, source.parts, quote, "rows long")


def _for_each(
    spark: SparkSession, parts: Sequence[Part], work: Callable[[Part], Batches], schema: str
) -> DataFrame:
    """A task for each part."""

    def run(batches: Batches) -> Batches:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from work(parts[number])

    return spark.range(0, len(parts), 1, max(1, len(parts))).mapInArrow(run, schema)


def _slice_count(source: Source, cores: int) -> int:
    size = _content_bytes(source)
    return max(-(-size // SLICE_BYTES), min(cores, -(-size // (1 << 20))), 1)


def _content_bytes(source: Source) -> int:
    """What the files hold once it is unpacked, about."""
    gzipped = {part.path for part in source.parts if part.is_gzip}
    ratio = PARQUET_RATIO if source.edition == TLC_PARQUET.name else 1
    return sum(path.stat().st_size * (GZIP_RATIO if str(path) in gzipped else ratio) for path in source.paths)


def check_conservation(rows_in: int, kept: int, quarantined: int) -> None:
    if rows_in != kept + quarantined:
        raise FogscaleError(
            f"{rows_in} rows were read, but {kept} kept and {quarantined} quarantined: this is a fault of"
            " fogscale, please report it; the trace is not to be trusted"
        )
