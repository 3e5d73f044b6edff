"""Taxi trips drawn at random, for the formats that hold them: who, from and to where, how long, for how much.

Measured in a sample of 14,300 trips of June 2013: the middle half drives 8.5 to 15.9 mph (hence the speeds
here), half of all trips are shorter than 1.8 miles, 70 % carry one passenger. Fares are the meter's of
2013: $2.50, and $0.50 per fifth of a mile. Assumed: hot areas lie around Midtown, each as popular as its
rank says (Zipf), with some dozens of street corners where trips begin and end; streets are 1.3 times as
long as the straight line; each taxi has a driver by day and one by night.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from workloads.profile import FloatArray
from workloads.records.draws import Weighted, bytes_array, normal, uniform, zipf
from workloads.records.format import IntArray
from workloads.records.keyed import Indices

TAXIS = 13_000  # medallions in New York in 2013, rounded
MIDTOWN_LATITUDE, MIDTOWN_LONGITUDE = 40.7549, -73.9840
CELL_LATITUDE, CELL_LONGITUDE = 0.004491556, 0.005986  # 500 m, the cells of the DEBS 2015 challenge
AREAS = 200
AREA_EXPONENT = 0.65
CORNERS = 64  # of an area
MILES_PER_LATITUDE, MILES_PER_LONGITUDE = 69.0, 52.3  # in New York
DETOUR = 1.3
MEDIAN_SPEED_MPH, SPEED_SPREAD = 11.6, 0.46  # lognormal
SHORTEST_MILES_100, SHORTEST_S, LONGEST_S = 10, 60, 3 * 3600
PASSENGERS = Weighted((0.70, 0.14, 0.04, 0.02, 0.06, 0.04))  # one to six
MOST_100 = 10_000  # hundredths: far above the longest trip in miles and the dearest in dollars
DAY_S = 86_400
# Streams of random values, one per property.
TAXI, FROM_AREA, FROM_CORNER, TO_AREA, TO_CORNER, SPEED, _SPEED, RIDERS, PAYMENT, FAULT = range(10)


@dataclass(frozen=True, slots=True)
class Trips:
    """One value per trip, in whole numbers: hundredths and indices are quick to write by tables."""

    driver: IntArray
    dropoff_s: IntArray
    duration_s: IntArray
    miles_100: IntArray
    from_corner: Indices  # of all corners
    to_corner: Indices
    fare_cents: IntArray


def choose_taxis(seed: int, numbers: IntArray) -> Indices:
    return (uniform(seed, TAXI, numbers) * TAXIS).astype(np.intp)


def draw_trips(seed: int, numbers: IntArray, dropoff_ms: IntArray, taxi: Indices) -> Trips:
    from_corner = _choose_corners(seed, FROM_AREA, numbers)
    to_corner = _choose_corners(seed, TO_AREA, numbers)
    miles_100 = _street_miles_100(from_corner, to_corner)
    speed_mph = MEDIAN_SPEED_MPH * np.exp(SPEED_SPREAD * normal(seed, SPEED, numbers))
    duration_s = np.clip(np.rint(miles_100 * 36 / speed_mph).astype(np.int64), SHORTEST_S, LONGEST_S)
    dropoff_s = dropoff_ms // 1000
    at_night = (dropoff_s % DAY_S // 3600 + 7) % 24 < 12  # shifts change at 5 in the morning and afternoon
    return Trips(
        driver=2 * taxi.astype(np.int64) + at_night,
        dropoff_s=dropoff_s,
        duration_s=duration_s,
        miles_100=miles_100,
        from_corner=from_corner,
        to_corner=to_corner,
        fare_cents=250 + 50 * (miles_100 // 20),
    )


def _choose_corners(seed: int, stream: int, numbers: IntArray) -> Indices:
    """Any corner of an area, hot areas more often; takes two streams."""
    area = _popularity().choose(uniform(seed, stream, numbers))
    return area * CORNERS + (uniform(seed, stream + 1, numbers) * CORNERS).astype(np.intp)


def _street_miles_100(from_corner: Indices, to_corner: Indices) -> IntArray:
    latitude, longitude = corners()
    north = (latitude[to_corner] - latitude[from_corner]) * MILES_PER_LATITUDE
    east = (longitude[to_corner] - longitude[from_corner]) * MILES_PER_LONGITUDE
    miles_100 = np.rint(np.sqrt(north**2 + east**2) * (DETOUR * 100)).astype(np.int64)
    return np.maximum(miles_100, SHORTEST_MILES_100)


@lru_cache(maxsize=1)
def _popularity() -> Weighted:
    return zipf(AREAS, AREA_EXPONENT)


@lru_cache(maxsize=1)
def corners() -> tuple[FloatArray, FloatArray]:
    """Latitude and longitude of every corner, the hottest area first; no seed moves the city."""
    reach = np.arange(-10, 11)
    north, east = (offsets.ravel() for offsets in np.meshgrid(reach, reach, indexing="ij"))
    nearest = np.lexsort((east, north, north**2 + east**2))[:AREAS]
    within = np.random.default_rng(2013).random((2, AREAS, CORNERS)) - 0.5
    latitude = MIDTOWN_LATITUDE + (north[nearest][:, None] + within[0]) * CELL_LATITUDE
    longitude = MIDTOWN_LONGITUDE + (east[nearest][:, None] + within[1]) * CELL_LONGITUDE
    return latitude.ravel().round(6), longitude.ravel().round(6)


@lru_cache(maxsize=1)
def hundredths() -> npt.NDArray[np.object_]:
    """0.00, 0.01 and so on, written."""
    return bytes_array([b"%d.%02d" % divmod(number, 100) for number in range(MOST_100)])


@lru_cache(maxsize=2)
def written_corners(template: bytes) -> npt.NDArray[np.object_]:
    """Each corner with its longitude and latitude put into a template."""
    latitude, longitude = corners()
    return bytes_array(
        [template % place for place in zip(longitude.tolist(), latitude.tolist(), strict=True)]
    )
