"""Taxi files of every edition as the tests write them, and a judge of their rows in plain Python."""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime

FOIL_HEADER = (
    "medallion, hack_license, vendor_id, rate_code, store_and_fwd_flag, pickup_datetime, dropoff_datetime, "
    "passenger_count, trip_time_in_secs, trip_distance, pickup_longitude, pickup_latitude, "
    "dropoff_longitude, dropoff_latitude"
)
HERE = ("-73.98", "40.75", "-73.97", "40.76")


def md5(number: int) -> str:
    return f"{number:032X}"


def foil(
    taxi: int,
    pickup: str = "2013-06-08 09:12:07",
    dropoff: str = "2013-06-08 09:22:11",
    vendor: str = "CMT",
    seconds: str | None = None,
    miles: str = ".80",
    places: Sequence[str] = HERE,
) -> str:
    seconds = seconds or "604"
    return ",".join(
        [md5(taxi), md5(taxi + 1), vendor, "1", "N", pickup, dropoff, "2", seconds, miles, *places]
    )


def donovan_work(taxi: int, **fields: str) -> str:
    """Numeric ids and, in some of the files, quotes."""
    cells = foil(taxi, **fields).split(",")
    cells[:2] = [str(2013_000_000 + taxi), str(2013_000_100 + taxi)]
    return ",".join(f'"{cell}"' if number in (2, 5, 6) else cell for number, cell in enumerate(cells))


def debs(taxi: int, **fields: str) -> str:
    cells = foil(taxi, **fields).split(",")
    money = ["CSH", "6.50", "0.50", "0.50", "0.00", "0.00", "7.50"]
    return ",".join([*cells[:2], *cells[5:7], cells[8], cells[9], *cells[10:], *money])


def ride(
    number: int, kind: str, stamp: str, other: str = "1970-01-01 00:00:00", places: Sequence[str] = HERE
) -> str:
    return ",".join([str(number), kind, stamp, other, *places, "1", "2013000006", "2013000007"])


# A judge of its own


def reasons_of(lines: Iterable[str], stamps: int, seconds: int, miles: int, places: int) -> Counter[str]:
    """How many rows of trips are kept or dropped for what, by the positions of their fields."""
    return Counter(
        _trip(row[stamps : stamps + 2], row[seconds], row[miles], row[places : places + 4])
        for row in csv.reader(lines)
    )


def ride_reasons_of(lines: Iterable[str]) -> Counter[str]:
    return Counter(_ride(line.split(",")) for line in lines)


def _trip(stamps: list[str], seconds: str, miles: str, places: list[str]) -> str:
    if fault := _place_fault(places):
        return fault
    lasted_s = _lasted_s(*stamps)
    if lasted_s <= 0 or int(seconds) <= 0:
        return "non-positive duration"
    if float(miles) <= 0:
        return "non-positive distance"
    return "impossible speed" if float(miles) / lasted_s > 100 / 3600 else "kept"


def _ride(cells: list[str]) -> str:
    if fault := _place_fault(cells[4:8]):
        return fault
    if cells[1] == "END":
        lasted_s = _lasted_s(cells[3], cells[2])
        if lasted_s <= 0:
            return "non-positive duration"
        if _straight_miles(*map(float, cells[4:8])) / lasted_s > 100 / 3600:
            return "impossible speed"
    return "kept"


def _place_fault(places: list[str]) -> str | None:
    degrees = [float(place) if place else math.nan for place in places]
    if 0.0 in degrees:
        return "zero coordinates"
    west, south, west_2, south_2 = degrees
    inside = min(west, west_2) >= -74.5 and max(west, west_2) <= -73.4
    inside = inside and min(south, south_2) >= 40.4 and max(south, south_2) <= 41.2
    return None if inside and not any(map(math.isnan, degrees)) else "invalid coordinates"


def _lasted_s(start: str, end: str) -> float:
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()


def _straight_miles(west: float, south: float, west_2: float, south_2: float) -> float:
    """By the spherical law of cosines, unlike the code under test."""
    west, south, west_2, south_2 = map(math.radians, (west, south, west_2, south_2))
    cosine = math.sin(south) * math.sin(south_2) + math.cos(south) * math.cos(south_2) * math.cos(
        west - west_2
    )
    return 3958.8 * math.acos(min(1.0, cosine))
