"""The World Cup 98 access logs: 20-byte big-endian records, read in batches on Spark.

Arlitt and Jin, "1998 World Cup Web Site Access Logs": stamp, client, object, size, method, status, type and
server. The bits of status and server are taken apart by column expressions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # the name all Spark code knows it by

from workloads.importing.streams import CHUNK_BYTES, Gunzip, Part

RECORD_BYTES = 20
PART_BYTES = 32 << 20
HALF_RECORD = "half record"

_RECORD = np.dtype(
    [
        ("stamp_s", ">u4"), ("client", ">u4"), ("object", ">u4"), ("size", ">u4"),
        ("method", "u1"), ("status", "u1"), ("type", "u1"), ("server", "u1"),
    ]
)  # fmt: skip
_NO_SIZE = 0xFFFFFFFF

METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "TRACE", "OPTIONS", "CONNECT", "OTHER")
TYPES = (
    "HTML", "IMAGE", "AUDIO", "VIDEO", "JAVA", "FORMATTED", "DYNAMIC", "TEXT", "COMPRESSED", "PROGRAMS",
    "DIRECTORY", "ICL", "OTHER_TYPES",
)  # fmt: skip
STATUS_CODES = (
    100, 101, 200, 201, 202, 203, 204, 205, 206, 300, 301, 302, 303, 304, 305, 400, 401, 402, 403, 404, 405,
    406, 407, 408, 409, 410, 411, 412, 413, 414, 415, 500, 501, 502, 503, 504, 505,
)  # fmt: skip
HTTP_VERSIONS = ("HTTP/0.9", "HTTP/1.0", "HTTP/1.1", "HTTP/X.X")
REGIONS = ("Santa Clara", "Plano", "Herndon", "Paris")

RECORDS = (
    "file int, position long, stamp_s long, client long, object long, size long, method short, status short,"
    " type short, server short, raw string, damage string"
)
_ARROW_RECORDS = pa.schema(
    [("file", pa.int32()), ("position", pa.int64())]
    + [(name, pa.int64()) for name in ("stamp_s", "client", "object", "size")]
    + [(name, pa.int16()) for name in ("method", "status", "type", "server")]
    + [("raw", pa.string()), ("damage", pa.string())]
)

Batches = Iterator[pa.RecordBatch]


def read_records(spark: SparkSession, parts: Sequence[Part], sample_every: int = 1) -> DataFrame:
    """The records of these parts; with `sample_every` above 1, those of one chunk in so many."""
    return spark.range(0, len(parts), 1, max(1, len(parts))).mapInArrow(_reader(parts, sample_every), RECORDS)


def _reader(parts: Sequence[Part], sample_every: int) -> Callable[[Batches], Batches]:
    def read(batches: Batches) -> Batches:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from record_batches(parts[number], sample_every)

    return read


def record_batches(part: Part, sample_every: int = 1) -> Batches:
    position, rest = part.start, b""
    stream = Gunzip(part.path) if part.is_gzip else None
    for number, content in enumerate(stream if stream is not None else _plain_chunks(part)):
        content = rest + content if rest else content
        whole = len(content) // RECORD_BYTES
        if whole and number % sample_every == 0:
            yield _batch(part.file, position, np.frombuffer(content, _RECORD, whole))
        position += whole * RECORD_BYTES
        rest = content[whole * RECORD_BYTES :]
    damage = stream.damage if stream is not None else None
    if rest or damage:
        yield _damaged(part.file, position, rest, damage or HALF_RECORD)


def _plain_chunks(part: Part) -> Iterator[bytes]:
    """Parts begin and end between records, but for the end of the file."""
    with Path(part.path).open("rb") as file:
        file.seek(part.start)
        left = part.end - part.start
        while left and (content := file.read(min(CHUNK_BYTES, left))):
            left -= len(content)
            yield content


def _batch(file: int, position: int, records: np.ndarray) -> pa.RecordBatch:
    """Native numbers in columns of their own; a big-endian stride is undone once per column."""
    rows = len(records)
    columns = [
        pa.repeat(pa.scalar(file, pa.int32()), rows),
        pa.array(np.arange(position, position + rows * RECORD_BYTES, RECORD_BYTES)),
    ]
    columns += [
        pa.array(records[field.name].astype(field.type.to_pandas_dtype()))
        for field in list(_ARROW_RECORDS)[2:-2]
    ]
    columns += [pa.nulls(rows, pa.string()), pa.nulls(rows, pa.string())]
    return pa.RecordBatch.from_arrays(columns, schema=_ARROW_RECORDS)


def _damaged(file: int, position: int, rest: bytes, damage: str) -> pa.RecordBatch:
    row = {"file": file, "position": position, "raw": rest.hex(), "damage": damage}
    return pa.RecordBatch.from_pylist([row], schema=_ARROW_RECORDS)


def decoded() -> tuple[Column, ...]:
    """A record's numbers, and what the packed ones among them mean."""
    columns = {
        "client": F.col("client"),
        "object": F.col("object"),
        "size_bytes": F.when(F.col("size") != _NO_SIZE, F.col("size")),
        "method": _named(METHODS, F.col("method")),
        "status": _named(STATUS_CODES, F.col("status").bitwiseAND(0x3F)),
        "version": _named(HTTP_VERSIONS, F.shiftright("status", 6)),
        "type": _named(TYPES, F.col("type")),
        "region": _named(REGIONS, F.shiftright("server", 5)),
        "server": F.col("server").bitwiseAND(0x1F),
    }
    return tuple(column.alias(name) for name, column in columns.items())


def _named(names: Sequence[str | int], index: Column) -> Column:
    return F.get(F.array(*(F.lit(name) for name in names)), index.cast("int"))


def hexadecimal() -> Column:
    """The 20 bytes of a record, written anew from its numbers."""
    wide = [F.lpad(F.lower(F.hex(F.col(name))), 8, "0") for name in ("stamp_s", "client", "object", "size")]
    narrow = [F.lpad(F.lower(F.hex(F.col(name))), 2, "0") for name in ("method", "status", "type", "server")]
    return F.concat(*wide, *narrow)
