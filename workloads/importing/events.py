"""The events of an imported trace as records: row after row as they happened, in the format of their kind.

A record's times are those of the replay: its event at the time that the schedule says, the pick-up as much
earlier as it was.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from controller.errors import FogscaleError
from workloads.importing.trace import event_files, read_manifest
from workloads.records.format import WHOLE, Batch, IntArray, Share

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class TraceRecords:
    """What workloads.records.format.Records asks for; a replay longer than the trace begins it anew."""

    folder: str
    name: str  # of the format

    def batch(self, seed: int, first: int, event_times_ms: IntArray, share: Share = WHOLE) -> Batch:
        """The trace is what it is, whatever the seed."""
        key_of, render = FORMATS[self.name]
        numbers, keys, values = [], [], []
        rows = read_rows(self.folder, first, len(event_times_ms))
        for number, time_ms, row in zip(
            range(first, first + len(event_times_ms)), event_times_ms, rows, strict=True
        ):
            key = key_of(row).encode()
            if share.total == 1 or crc32(key) % share.total == share.number:
                numbers.append(number)
                keys.append(key)
                values.append(render(number, int(time_ms), row).encode())
        return Batch(np.array(numbers, dtype=np.int64), keys, values)


def trace_records(path: str | Path) -> TraceRecords:
    manifest = read_manifest(Path(path))
    return TraceRecords(str(path), record_format(manifest["edition"]))


def record_format(edition: str) -> str:
    """The format of workloads/records/ in which events of an edition are sent."""
    return {"debs2015": "debs_route", "worldcup98": "worldcup_request"}.get(edition, "taxi_ride")


# Rows by number


class _Group(NamedTuple):
    """A row group, which is read as a whole."""

    file: Path
    number: int


def read_rows(folder: str, first: int, count: int) -> Iterator[Row]:
    groups, starts = _index(folder)
    total = starts[-1]
    position, left = first % total, count
    while left:
        number = bisect_right(starts, position) - 1
        table = _read(groups[number])
        part = table.slice(position - starts[number], left)
        yield from part.to_pylist()
        left -= part.num_rows
        position = (position + part.num_rows) % total


@lru_cache(maxsize=4)
def _index(folder: str) -> tuple[list[_Group], list[int]]:
    """The row groups of a trace, and how many rows are before each of them and in all."""
    groups, starts = [], [0]
    for file in event_files(Path(folder)):
        metadata = pq.read_metadata(file)
        for number in range(metadata.num_row_groups):
            groups.append(_Group(file, number))
            starts.append(starts[-1] + metadata.row_group(number).num_rows)
    if not starts[-1]:
        raise FogscaleError(f"{folder} holds no events: import the trace again")
    return groups, starts


@lru_cache(maxsize=2)
def _read(group: _Group) -> pa.Table:
    return pq.ParquetFile(group.file).read_row_group(group.number)


# Formats


def taxi_ride(number: int, time_ms: int, row: Row) -> str:
    """The fields of workloads/records/taxi_ride.py; null where the edition does not tell.

    Ids stay as they are in the edition: numbers, or MD5 digests. A START of a ride has no drop-off yet.
    """
    is_start = bool(row.get("is_start"))
    lasted_ms = 0 if is_start else _milliseconds(row["dropoff_time"] - row["pickup_time"])
    fields = {
        "rideId": row.get("ride_id", number),
        "taxiId": _id(row.get("taxi_id")),
        "driverId": _id(row.get("driver_id")),
        "pickupTime": time_ms - lasted_ms,
        "dropoffTime": None if is_start else time_ms,
        "pickupLon": row.get("pickup_longitude"),
        "pickupLat": row.get("pickup_latitude"),
        "dropoffLon": row.get("dropoff_longitude"),
        "dropoffLat": row.get("dropoff_latitude"),
        "passengers": row.get("passengers"),
        "distanceMi": row.get("distance_miles"),
        "fareUsd": row.get("fare"),
    }
    if "pickup_zone" in row:
        fields |= {"pickupZone": row["pickup_zone"], "dropoffZone": row["dropoff_zone"]}
    return json.dumps(fields, separators=(",", ":"))


def debs_route(_number: int, time_ms: int, row: Row) -> str:
    """The 17 columns of the challenge."""
    lasted_ms = _milliseconds(row["dropoff_time"] - row["pickup_time"])
    places = (row[f"{end}_{side}"] for end in ("pickup", "dropoff") for side in ("longitude", "latitude"))
    money = (row[name] for name in ("fare", "surcharge", "mta_tax", "tip", "tolls", "total"))
    return ",".join(
        (
            row["taxi_id"],
            row["driver_id"],
            _stamp(time_ms - lasted_ms),
            _stamp(time_ms),
            str(row["trip_time_s"]),
            f"{row['distance_miles']:.2f}",
            *(f"{degrees:.6f}" for degrees in places),
            row["payment_type"],
            *(f"{dollars:.2f}" for dollars in money),
        )
    )


def worldcup_request(_number: int, time_ms: int, row: Row) -> str:
    """The fields of workloads/records/worldcup_request.py."""
    fields = {
        "timestamp": time_ms // 1000,
        "clientID": row["client"],
        "objectID": row["object"],
        "type": row["type"],
        "size": row["size_bytes"],
        "method": row["method"],
        "status": row["status"],
        "version": row["version"],
        "region": row["region"],
        "server": row["server"],
    }
    return json.dumps(fields, separators=(",", ":"))


def _taxi_key(row: Row) -> str:
    """The taxi, so that its trips keep their order; the TLC names none, so there it is where it started."""
    return str(row["taxi_id"] if "taxi_id" in row else row["pickup_zone"])


FORMATS: dict[str, tuple[Callable[[Row], str], Callable[[int, int, Row], str]]] = {
    "taxi_ride": (_taxi_key, taxi_ride),
    "debs_route": (_taxi_key, debs_route),
    "worldcup_request": (lambda row: str(row["client"]), worldcup_request),
}


def _id(text: str | None) -> str | int | None:
    return int(text) if text is not None and text.isdecimal() else text


def _milliseconds(duration: timedelta) -> int:
    return round(duration.total_seconds() * 1000)


def _stamp(time_ms: int) -> str:
    return f"{datetime.fromtimestamp(time_ms // 1000, UTC):%Y-%m-%d %H:%M:%S}"
