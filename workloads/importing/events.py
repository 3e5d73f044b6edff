"""The events of imported traces as records, in the format of their kind.

A workload made of traces sends the rows of the moment: all of them, one in so many, or each several times.
A record's times are those of the replay: its event at the time that the schedule says, the pick-up as much
earlier as it was.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fogscale.errors import FogscaleError
from workloads.excerpts import Excerpt
from workloads.importing.trace import event_files, read_manifest
from workloads.records.format import WHOLE, Batch, IntArray, Share

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class TraceRecords:
    """What workloads.records.format.Records asks for; beyond all records, the first row comes anew."""

    name: str  # of the format
    excerpts: tuple[Excerpt, ...]
    records: float  # of the whole replay, before copies

    def batch(self, seed: int, first: int, event_times_ms: IntArray, share: Share = WHOLE) -> Batch:
        """The trace is what it is, whatever the seed."""
        key_of, render = FORMATS[self.name]
        numbers, keys, values = [], [], []
        asked = np.arange(first, first + len(event_times_ms))
        for number, time_ms, row in zip(asked.tolist(), event_times_ms, self._rows(asked), strict=True):
            key = key_of(row).encode()
            if share.total == 1 or crc32(key) % share.total == share.number:
                numbers.append(number)
                keys.append(key)
                values.append(render(number, int(time_ms), row).encode())
        return Batch(np.array(numbers, dtype=np.int64), keys, values)

    def _rows(self, numbers: IntArray) -> Iterator[Row]:
        """Record n of N stands for the n-th part of all rows, and is the row in its middle."""
        position = np.minimum((numbers % ceil(self.records) + 0.5) / self.records, 1.0)
        ends = np.cumsum([excerpt.share for excerpt in self.excerpts])
        chosen = np.minimum(np.searchsorted(ends, position, side="right"), len(ends) - 1)
        for part in _runs(chosen):
            excerpt, end = self.excerpts[chosen[part.start]], ends[chosen[part.start]]
            within = 1 - (end - position[part]) / excerpt.share
            yield from read_rows(excerpt.folder, (excerpt.first_row + within * excerpt.rows).astype(np.int64))


def trace_records(path: str | Path) -> TraceRecords:
    """All rows of a trace, one after the other, for a workload that has no events of its own."""
    folder = str(path)
    rows = _index(folder)[1][-1]
    return TraceRecords(_format_of(folder), (Excerpt(folder, 1.0, 0.0, rows),), rows)


def excerpt_records(excerpts: Sequence[Excerpt], records: float) -> TraceRecords:
    """The rows that so many records of a replay are."""
    formats = {_format_of(excerpt.folder): excerpt.folder for excerpt in excerpts}
    if len(formats) > 1:
        listed = ", ".join(f"{folder} has {name}" for name, folder in formats.items())
        raise FogscaleError(f"traces of different records cannot be sent as one: {listed}; name --records")
    return TraceRecords(next(iter(formats)), tuple(excerpts), records)


def _format_of(folder: str) -> str:
    return record_format(read_manifest(Path(folder))["edition"])


def record_format(edition: str) -> str:
    """The format of workloads/records/ in which events of an edition are sent."""
    return {"debs2015": "debs_route", "worldcup98": "worldcup_request"}.get(edition, "taxi_ride")


# Rows by number


class _Group(NamedTuple):
    """A row group, which is read as a whole."""

    file: Path
    number: int


def read_rows(folder: str, numbers: IntArray) -> Iterator[Row]:
    groups, starts = _index(folder)
    numbers = np.clip(numbers, 0, starts[-1] - 1)
    in_group = np.searchsorted(starts, numbers, side="right") - 1
    for part in _runs(in_group):
        group = int(in_group[part.start])
        yield from _read(groups[group]).take(numbers[part] - starts[group]).to_pylist()


def _runs(values: IntArray) -> Iterator[slice]:
    """Where neighbours are equal."""
    edges = [0, *(np.flatnonzero(np.diff(values)) + 1).tolist(), len(values)]
    return (slice(start, end) for start, end in pairwise(edges) if end > start)


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
