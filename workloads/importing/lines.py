"""Text files as lines on Spark: each line with its file and its place in it, whatever state the file is in.

Spark's own reader cannot tell where a line stood and gives up on a whole gzip that was cut off, so tasks read
the bytes themselves, a megabyte at a time, and hand them on as Arrow batches without touching single lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workloads.importing.streams import CHUNK_BYTES, Gunzip, Part

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PART_BYTES = 32 << 20
SAMPLE_CHUNK_BYTES = 1 << 16
LONGEST_LINE_BYTES = 1 << 20  # what has no line end for so long is no text: it goes to quarantine in pieces

LINES = "file int, position long, raw string, damage string"
_ARROW_LINES = pa.schema(
    [("file", pa.int32()), ("position", pa.int64()), ("raw", pa.string()), ("damage", pa.string())]
)

Batches = Iterator[pa.RecordBatch]


def read_lines(spark: SparkSession, parts: Sequence[Part], sample_every: int = 1) -> DataFrame:
    """The lines of these parts. `damage` says what ended a file early; its `raw` is the line it cut.

    With `sample_every` above 1, only the lines of one chunk in so many: enough to know what a file is like.
    """
    return spark.range(0, len(parts), 1, max(1, len(parts))).mapInArrow(_reader(parts, sample_every), LINES)


def _reader(parts: Sequence[Part], sample_every: int) -> Callable[[Batches], Batches]:
    def read(batches: Batches) -> Batches:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from line_batches(parts[number], sample_every)

    return read


def line_batches(part: Part, sample_every: int = 1) -> Batches:
    if part.is_gzip:
        return _gzip_batches(part, sample_every)
    return _plain_batches(part) if sample_every == 1 else _plain_sample(part, sample_every)


def _plain_batches(part: Part) -> Batches:
    """The lines that begin within the part; the last of them may end beyond it."""
    with Path(part.path).open("rb") as file:
        position = 0
        if part.start > 0:  # the line that runs into this part belongs to the one before
            file.seek(part.start - 1)
            position = part.start - 1 + len(file.readline(LONGEST_LINE_BYTES))
        while position < part.end:
            file.seek(position)
            if not (content := file.read(CHUNK_BYTES)):
                return
            ends = _line_ends(content, is_last=len(content) < CHUNK_BYTES)
            ends = ends[: np.searchsorted(ends, part.end - position) + 1]
            yield _batch(part.file, position, content, ends)
            position += int(ends[-1])


def _plain_sample(part: Part, sample_every: int) -> Batches:
    for start in range(part.start, part.end, SAMPLE_CHUNK_BYTES * sample_every):
        end = min(start + SAMPLE_CHUNK_BYTES, part.end)
        yield from _plain_batches(part._replace(start=start, end=end))


def _gzip_batches(part: Part, sample_every: int) -> Batches:
    position, rest = 0, b""
    stream = Gunzip(part.path)
    for number, content in enumerate(stream):
        content = rest + content
        ends = _line_ends(content, is_last=False)
        if len(ends):
            if number % sample_every == 0:
                yield _batch(part.file, position, content, ends)
            position += int(ends[-1])
            content = content[ends[-1] :]
        rest = content
    if stream.damage is not None:
        yield _damaged(part.file, position, rest, stream.damage)
    elif rest:
        yield _batch(part.file, position, rest, np.array([len(rest)]))


def _line_ends(content: bytes, is_last: bool) -> np.ndarray:
    """Where the lines of this content end, their line end included."""
    ends = np.flatnonzero(np.frombuffer(content, np.uint8) == ord("\n")) + 1
    done = int(ends[-1]) if len(ends) else 0
    if done < len(content) and (is_last or len(content) - done >= LONGEST_LINE_BYTES):
        ends = np.append(ends, len(content))
    return ends


def _batch(file: int, position: int, content: bytes, ends: np.ndarray) -> pa.RecordBatch:
    """The content becomes the memory of an array of lines, without a look at any single one."""
    offsets = np.concatenate(([0], ends)).astype(np.int32)
    raw = pa.StringArray.from_buffers(len(ends), pa.py_buffer(offsets), pa.py_buffer(content))
    try:
        raw.validate(full=True)
    except pa.ArrowInvalid:  # not UTF-8
        pieces = (content[start:end] for start, end in zip(offsets, ends, strict=False))
        raw = pa.array([piece.decode("utf-8", "backslashreplace") for piece in pieces])
    columns = [
        pa.repeat(pa.scalar(file, pa.int32()), len(ends)),
        pa.array(offsets[:-1].astype(np.int64) + position),
        pc.ascii_rtrim(raw, "\r\n"),
        pa.nulls(len(ends), pa.string()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_ARROW_LINES)


def _damaged(file: int, position: int, rest: bytes, damage: str) -> pa.RecordBatch:
    columns = [[file], [position], [rest.decode("utf-8", "backslashreplace")], [damage]]
    return pa.RecordBatch.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, _ARROW_LINES, strict=True)],
        schema=_ARROW_LINES,
    )
