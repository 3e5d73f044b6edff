"""The editions in which New York's taxi trips were published, and how a file shows which one it is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fogscale.errors import FogscaleError
from workloads.importing.streams import gunzipped, is_gzip

ID, TEXT, WHOLE, NUMBER, COORDINATE, STAMP, KIND = (
    "id", "text", "whole", "number", "coordinate", "stamp", "kind",
)  # fmt: skip

_HEAD_BYTES = 1 << 16
_HEAD_LINES = 20  # the first of them may be malformed
_PARQUET_MAGIC = b"PAR1"

_PLACES = {
    "pickup_longitude": COORDINATE, "pickup_latitude": COORDINATE,
    "dropoff_longitude": COORDINATE, "dropoff_latitude": COORDINATE,
}  # fmt: skip
_TRIP_COLUMNS = {
    "taxi_id": ID, "driver_id": ID, "vendor": TEXT, "rate_code": TEXT, "store_and_forward": TEXT,
    "pickup_time": STAMP, "dropoff_time": STAMP, "passengers": WHOLE, "trip_time_s": WHOLE,
    "distance_miles": NUMBER, **_PLACES,
}  # fmt: skip
_TRIP_HEADER = (
    "medallion,hack_license,vendor_id,rate_code,store_and_fwd_flag,pickup_datetime,dropoff_datetime,"
    "passenger_count,trip_time_in_secs,trip_distance,pickup_longitude,pickup_latitude,dropoff_longitude,"
    "dropoff_latitude"
)
_STAMP = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")
_MD5 = re.compile(r"[0-9A-Fa-f]{32}")


@dataclass(frozen=True, eq=False)
class Edition:
    name: str
    title: str
    columns: dict[str, str]  # name in the trace -> kind of field, in the order of the file
    rides: bool = False  # a START and an END event for each trip, rather than one row


FOIL = Edition("foil", "FOIL/Whong trip data (MD5 ids)", _TRIP_COLUMNS)
DONOVAN_WORK = Edition("donovan_work", "Donovan & Work trip data (numeric ids)", _TRIP_COLUMNS)
DEBS2015 = Edition(
    "debs2015",
    "DEBS 2015 Grand Challenge (17 columns, no header)",
    {
        "taxi_id": ID, "driver_id": ID, "pickup_time": STAMP, "dropoff_time": STAMP, "trip_time_s": WHOLE,
        "distance_miles": NUMBER, **_PLACES, "payment_type": TEXT, "fare": NUMBER, "surcharge": NUMBER,
        "mta_tax": NUMBER, "tip": NUMBER, "tolls": NUMBER, "total": NUMBER,
    },
)  # fmt: skip
FLINK_RIDES = Edition(
    "flink_rides",
    "Flink training rides (START and END events)",
    {
        "ride_id": WHOLE, "kind": KIND, "stamp": STAMP, "other_stamp": STAMP, **_PLACES,
        "passengers": WHOLE, "taxi_id": ID, "driver_id": ID,
    },
    rides=True,
)  # fmt: skip
TLC_PARQUET = Edition(
    "tlc_parquet",
    "TLC trip records in Parquet (taxi zones instead of coordinates)",
    {
        "vendor": TEXT, "pickup_time": STAMP, "dropoff_time": STAMP, "passengers": WHOLE,
        "distance_miles": NUMBER, "pickup_zone": WHOLE, "dropoff_zone": WHOLE,
        "payment_type": TEXT, "fare": NUMBER, "tip": NUMBER, "tolls": NUMBER, "total": NUMBER,
    },
)  # fmt: skip
EDITIONS = (FOIL, DONOVAN_WORK, DEBS2015, TLC_PARQUET, FLINK_RIDES)


def recognise(paths: Sequence[Path]) -> Edition:
    """The one edition that all these files are of."""
    found = {path: edition_of(path) for path in paths}
    editions = list(dict.fromkeys(found.values()))
    if len(editions) > 1:
        examples = [next(path for path, edition in found.items() if edition is each) for each in editions]
        listed = ", ".join(f"{path} is {found[path].title}" for path in examples)
        raise FogscaleError(f"files of different editions cannot be one trace: {listed}; import each alone")
    return editions[0]


def edition_of(path: Path) -> Edition:
    if not (head := _head(path)):
        what = "holds nothing that can be gunzipped" if is_gzip(path) else "is empty"
        raise FogscaleError(f"{path} {what}: leave it out")
    if head.startswith(_PARQUET_MAGIC):
        return _parquet_edition(path)
    lines = _first_lines(head)
    for line in lines:
        if (edition := _edition_of_row(line)) is not None:
            return edition
    first = lines[0] if lines else ""
    if _header_of(first) == _TRIP_HEADER:  # rows would say it more surely
        return FOIL if ", " in first else DONOVAN_WORK
    known = "; ".join(edition.title for edition in EDITIONS)
    raise FogscaleError(
        f"{path} is of no known edition: its first line has {len(first.split(','))} field(s) and reads"
        f" '{first[:120]}'{_hint(first)}; known are: {known}"
    )


def has_header(path: Path) -> bool:
    lines = _first_lines(_head(path))
    return bool(lines) and _header_of(lines[0]) == _TRIP_HEADER


def _head(path: Path) -> bytes:
    """The first bytes, gunzipped in the same way as all of them will be."""
    if not is_gzip(path):
        with path.open("rb") as file:
            return file.read(_HEAD_BYTES)
    head = bytearray()
    for piece in gunzipped(str(path)):
        head += piece.content
        if len(head) >= _HEAD_BYTES:
            break
    return bytes(head[:_HEAD_BYTES])


def _first_lines(head: bytes) -> list[str]:
    return head.decode("utf-8-sig", "backslashreplace").splitlines()[:_HEAD_LINES]


def _header_of(line: str) -> str:
    return ",".join(name.strip().strip('"').lower() for name in line.split(","))


def _edition_of_row(line: str) -> Edition | None:
    fields = [field.strip().strip('"') for field in line.split(",")]
    stamps = [number for number, field in enumerate(fields) if _STAMP.fullmatch(field)]
    if len(fields) == 14 and stamps == [5, 6]:
        if _MD5.fullmatch(fields[0]):
            return FOIL
        return DONOVAN_WORK if fields[0].isdecimal() else None
    if len(fields) == 17 and stamps == [2, 3] and _MD5.fullmatch(fields[0]):
        return DEBS2015
    if len(fields) == 11 and stamps == [2, 3] and fields[1] in ("START", "END"):
        return FLINK_RIDES
    return None


def _hint(first: str) -> str:
    if "fare_amount" in first.lower() and "medallion" in first.lower():
        return " (that is a file of fares; the trips are in the trip_data files)"
    return ""


def _parquet_edition(path: Path) -> Edition:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        names = pq.read_schema(path).names
    except (pa.ArrowInvalid, OSError) as error:
        raise FogscaleError(
            f"{path} is no whole Parquet file ({str(error).splitlines()[0]}): fetch it again"
        ) from error
    if any({f"{cab}_pickup_datetime", f"{cab}_dropoff_datetime"} <= set(names) for cab in ("tpep", "lpep")):
        return TLC_PARQUET
    raise FogscaleError(
        f"{path} is a Parquet file with the columns {', '.join(names[:8])}, …: of Parquet files only the"
        " TLC's yellow and green ones with tpep_pickup_datetime or lpep_pickup_datetime can be imported"
    )
