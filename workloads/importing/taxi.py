"""Lines of a taxi file to typed columns, and the same columns from the TLC's Parquet files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # the name all Spark code knows it by

from workloads.importing.editions import COORDINATE, ID, KIND, NUMBER, STAMP, TEXT, WHOLE, Edition

MALFORMED = "malformed line"

_STAMP_CHARACTERS = 19
_TYPES = {WHOLE: "bigint", NUMBER: "double", COORDINATE: "double", STAMP: "timestamp_ntz"}

_TLC_COLUMNS = {
    "vendor": ("vendorid", "string"),
    "passengers": ("passenger_count", "bigint"),
    "distance_miles": ("trip_distance", "double"),
    "pickup_zone": ("pulocationid", "bigint"),
    "dropoff_zone": ("dolocationid", "bigint"),
    "payment_type": ("payment_type", "string"),
    "fare": ("fare_amount", "double"),
    "tip": ("tip_amount", "double"),
    "tolls": ("tolls_amount", "double"),
    "total": ("total_amount", "double"),
}


def parsed(lines: DataFrame, edition: Edition) -> DataFrame:
    """The columns of the edition; `damage` becomes "malformed line" where a line does not have them."""
    texts = _texts(edition)
    typed = lines.withColumn("fields", _fields(edition)).withColumns(
        {name: _value(edition.columns[name], text) for name, text in texts.items()}
    )  # each is parsed here, once; below, null tells that it could not be
    faults = [F.size("fields") != len(texts)]
    faults += [
        _fault(kind, F.col(name), texts[name]) for name, kind in edition.columns.items() if kind != TEXT
    ]
    malformed = F.when(reduce(Column.__or__, faults), MALFORMED)
    judged = typed.withColumn("damage", F.coalesce("damage", malformed)).drop("fields")
    return _rides(judged) if edition.rides else judged


def parsed_stamps(lines: DataFrame, edition: Edition) -> DataFrame:
    """Only who and when, which is all that a survey needs."""
    wanted = {
        name: _value(edition.columns[name], text)
        for name, text in _texts(edition).items()
        if edition.columns[name] in (STAMP, KIND) or name in ("vendor", "ride_id")
    }
    stamps = lines.withColumn("fields", _fields(edition)).withColumns(wanted).drop("fields")
    return _rides(stamps) if edition.rides else stamps


def _fields(edition: Edition) -> Column:
    """No field of any edition contains a comma, so quotes can go before the split."""
    raw = F.replace("raw", F.lit('"'), F.lit("")) if edition.has_quotes else F.col("raw")
    return F.split(raw, ",", -1)


def _texts(edition: Edition) -> dict[str, Column]:
    return {name: F.get("fields", F.lit(number)) for number, name in enumerate(edition.columns)}


def _value(kind: str, text: Column) -> Column:
    return text.try_cast(_TYPES[kind]) if kind in _TYPES else text


def _fault(kind: str, value: Column, text: Column) -> Column:
    """When a field is not what its kind says. Empty coordinates are no fault of the line but invalid ones."""
    if kind == ID:
        return value == ""
    if kind == KIND:
        return ~value.isin("START", "END")
    if kind == STAMP:  # a date alone would be taken for its midnight
        return value.isNull() | (F.length(text) < _STAMP_CHARACTERS)
    if kind == COORDINATE:
        return value.isNull() & (text != "")
    return value.isNull() | F.isnan(value) if kind == NUMBER else value.isNull()


def _rides(typed: DataFrame) -> DataFrame:
    """A START knows when it began; an END carries its own stamp first and the ride's start second."""
    is_start = F.col("kind") == "START"
    return typed.withColumns(
        {
            "is_start": is_start,
            "pickup_time": F.when(is_start, F.col("stamp")).otherwise(F.col("other_stamp")),
            "dropoff_time": F.when(~is_start, F.col("stamp")),
        }
    ).drop("kind", "stamp", "other_stamp")


def read_tlc(spark: SparkSession, paths: Sequence[Path]) -> DataFrame:
    """Months differ in types and capitals, so each file is read by itself and brought to one form."""
    return reduce(DataFrame.unionByName, (_read_month(spark, path, n) for n, path in enumerate(paths)))


def _read_month(spark: SparkSession, path: Path, file: int) -> DataFrame:
    month = spark.read.parquet(str(path))
    names = {name.lower(): name for name in month.columns}
    cab = "tpep" if "tpep_pickup_datetime" in names else "lpep"
    stamps = {"pickup_time": f"{cab}_pickup_datetime", "dropoff_time": f"{cab}_dropoff_datetime"}
    columns: Mapping[str, Column] = {
        name: _tlc_column(names, source, to) for name, (source, to) in _TLC_COLUMNS.items()
    } | {name: F.col(names[source]).cast("timestamp_ntz") for name, source in stamps.items()}
    whole = [F.col(name).isNotNull() for name in ("pickup_time", "dropoff_time", "distance_miles")]
    return month.select(
        F.lit(file).alias("file"),
        F.col("_metadata.row_index").alias("position"),
        F.to_json(F.struct(*month.columns)).alias("raw"),
        *(column.alias(name) for name, column in columns.items()),
    ).withColumn("damage", F.when(~reduce(Column.__and__, whole), MALFORMED))


def _tlc_column(names: Mapping[str, str], source: str, to: str) -> Column:
    return F.col(names[source]).try_cast(to) if source in names else F.lit(None).cast(to)
