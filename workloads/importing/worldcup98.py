"""The World Cup 98 access logs: 20-byte big-endian records, read some megabytes at a time.

Arlitt and Jin, "1998 World Cup Web Site Access Logs": stamp, client, object, size, method, status, type and
server. The bits of status and server are taken apart column by column.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fogscale.errors import FogscaleError
from workloads.importing.reasons import HALF_RECORD, NUMBER_OF
from workloads.importing.rows import Rows
from workloads.importing.streams import CHUNK_BYTES, Part, Piece, gunzipped, parts_of
from workloads.importing.survey import SECOND_US

RECORD_BYTES = 20
PART_BYTES = 32 << 20
FROM_S = int(datetime(1998, 4, 1, tzinfo=UTC).timestamp())  # the first request is of 30 April,
UNTIL_S = int(datetime(1998, 8, 1, tzinfo=UTC).timestamp())  # the last of 26 July
_HEAD_RECORDS = 1000

_RECORD = np.dtype(
    [
        ("stamp_s", ">u4"), ("client", ">u4"), ("object", ">u4"), ("size", ">u4"),
        ("method", "u1"), ("status", "u1"), ("type", "u1"), ("server", "u1"),
    ]
)  # fmt: skip
_NATIVE = {name: np.dtype(_RECORD[name].newbyteorder("=")) for name in _RECORD.names or ()}
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
_PACKED = ("method", "status", "type", "server")
HTTP_VERSIONS = ("HTTP/0.9", "HTTP/1.0", "HTTP/1.1", "HTTP/X.X")
REGIONS = ("Santa Clara", "Plano", "Herndon", "Paris")


def check_logs(paths: Sequence[Path]) -> None:
    """Any bytes can be read as records, but only those of the logs were stamped in these months."""
    for path in paths:
        stamps_s = _first_stamps_s(path)
        if len(stamps_s) and np.mean((stamps_s >= FROM_S) & (stamps_s < UNTIL_S)) < 0.5:
            first = datetime.fromtimestamp(int(stamps_s[0]), UTC)
            raise FogscaleError(
                f"{path} is no World Cup log: read as one, it begins on {first:%d %B %Y}, but the logs are of"
                " April to July 1998; name files like wc_day46_1.gz"
            )


def _first_stamps_s(path: Path) -> npt.NDArray[np.uint32]:
    """None where the file does not hold a whole record."""
    for part in parts_of(path, 0, PART_BYTES, RECORD_BYTES)[:1]:
        for rows in read_records(part):
            if len(stamps_s := rows.table["stamp_s"].drop_null()):
                found: npt.NDArray[np.uint32] = stamps_s.slice(0, _HEAD_RECORDS).to_numpy()
                return found
    return np.empty(0, np.uint32)


def read_records(part: Part, sample_every: int = 1) -> Iterator[Rows]:
    """The records of a part; with `sample_every` above 1, those of one chunk in so many."""
    position, rest = part.start, b""
    pieces = gunzipped(part.path) if part.is_gzip else map(Piece, _plain_chunks(part))
    for number, (content, damage) in enumerate(pieces):
        content = rest + content if rest else content
        whole = len(content) // RECORD_BYTES
        if whole and number % sample_every == 0:
            yield _rows(position, np.frombuffer(content, _RECORD, whole))
        position += whole * RECORD_BYTES
        rest = content[whole * RECORD_BYTES :]
        if damage is not None:  # the next member is taken to begin with a whole record
            yield _damaged(position, rest, damage)
            position, rest = position + len(rest), b""
    if rest:
        yield _damaged(position, rest, HALF_RECORD)


def _plain_chunks(part: Part) -> Iterator[bytes]:
    """Parts begin and end between records, but for the end of the file."""
    with Path(part.path).open("rb") as file:
        file.seek(part.start)
        left = part.end - part.start
        while left and (content := file.read(min(CHUNK_BYTES, left))):
            left -= len(content)
            yield content


def _rows(position: int, records: np.ndarray) -> Rows:
    """Native numbers in columns of their own; a big-endian stride is undone once per column."""
    columns = {name: pa.array(records[name].astype(to)) for name, to in _NATIVE.items()}
    places = np.arange(position, position + len(records) * RECORD_BYTES, RECORD_BYTES)
    columns |= {"position": pa.array(places), "reason": pa.array(np.zeros(len(records), np.uint8))}
    return Rows(pa.table(columns), lambda numbers: [records[number].tobytes().hex() for number in numbers])


def _damaged(position: int, rest: bytes, damage: str) -> Rows:
    nothing = {name: pa.nulls(1, pa.from_numpy_dtype(to)) for name, to in _NATIVE.items()}
    row = {**nothing, "position": pa.array([position]), "reason": pa.array([NUMBER_OF[damage]], pa.uint8())}
    return Rows(pa.table(row), lambda numbers: [rest.hex() for _ in numbers])


def decoded(records: pa.Table) -> pa.Table:
    """An event's columns: a record's numbers, and what the packed ones among them mean."""
    stamp_s = pc.fill_null(records["stamp_s"], 0).to_numpy()
    size = pc.fill_null(records["size"], _NO_SIZE).to_numpy()
    codes = {name: pc.fill_null(records[name], 255).to_numpy() for name in _PACKED}
    event_us = stamp_s * np.int64(SECOND_US)
    columns = {
        "event_time": pa.array(event_us.view("datetime64[us]"), mask=records["stamp_s"].is_null().to_numpy()),
        "client": records["client"],
        "object": records["object"],
        "size_bytes": pa.array(size, mask=size == _NO_SIZE),
        "method": _named(METHODS, codes["method"]),
        "status": _status(codes["status"] & 0x3F),
        "version": _named(HTTP_VERSIONS, codes["status"] >> 6),
        "type": _named(TYPES, codes["type"]),
        "region": _named(REGIONS, codes["server"] >> 5),
        "server": pa.array((codes["server"] & 0x1F).astype(np.int16)),
    }
    return pa.table(columns)


def _named(names: Sequence[str], indices: npt.NDArray[np.uint8]) -> pa.DictionaryArray:
    """Null where an index has no name."""
    return pa.DictionaryArray.from_arrays(
        pa.array(indices.view(np.int8), mask=indices >= len(names)), pa.array(names)
    )


def _status(indices: npt.NDArray[np.uint8]) -> pa.Array:
    codes = np.zeros(64, np.int32)
    codes[: len(STATUS_CODES)] = STATUS_CODES
    return pa.array(codes[indices], mask=indices >= len(STATUS_CODES))
