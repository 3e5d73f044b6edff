"""Taxi rides in JSON, for the Gesscale job, which finds the attraction nearest to the pickup (§V-A-b).

The paper names what a record holds (time and coordinates of pickup and drop-off; driver, taxi and ride) and
not how it is written. Event time is the drop-off, in milliseconds; the key is the taxi, so that its rides
keep their order; the ride's number is the record's.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from workloads.records.draws import bytes_array, uniform
from workloads.records.format import IntArray
from workloads.records.keyed import Indices, KeyedRecords, Keys
from workloads.records.trips import (
    PASSENGERS,
    RIDERS,
    TAXIS,
    choose_taxis,
    draw_trips,
    hundredths,
    written_corners,
)

FIRST_ID = 2013_000_001  # taxis and drivers are numbered as in the Flink training's rides
TEMPLATE = (
    b'{"rideId":%d,"taxiId":%b,"driverId":%b,"pickupTime":%d,"dropoffTime":%d,'
    b'"pickupLon":%b,"dropoffLon":%b,"passengers":%d,"distanceMi":%b,"fareUsd":%b}'
)
PICKUP, DROPOFF = b'%.6f,"pickupLat":%.6f', b'%.6f,"dropoffLat":%.6f'


@dataclass(frozen=True, slots=True)
class TaxiRide(KeyedRecords):
    """Taxi rides in JSON, keyed by taxi."""

    name = "taxi_ride"

    def all_keys(self, seed: int) -> Keys:
        return _taxis()

    def choose_keys(self, seed: int, numbers: IntArray) -> Indices:
        return choose_taxis(seed, numbers)

    def render(self, seed: int, numbers: IntArray, event_times_ms: IntArray, chosen: Indices) -> list[bytes]:
        trips = draw_trips(seed, numbers, event_times_ms, chosen)
        columns = (
            numbers,
            _taxis().keys[chosen],
            _drivers()[trips.driver],
            event_times_ms - 1000 * trips.duration_s,
            event_times_ms,
            written_corners(PICKUP)[trips.from_corner],
            written_corners(DROPOFF)[trips.to_corner],
            1 + PASSENGERS.choose(uniform(seed, RIDERS, numbers)),
            hundredths()[trips.miles_100],
            hundredths()[trips.fare_cents],
        )
        return [TEMPLATE % row for row in zip(*(column.tolist() for column in columns), strict=True)]


@lru_cache(maxsize=1)
def _taxis() -> Keys:
    return Keys([b"%d" % (FIRST_ID + taxi) for taxi in range(TAXIS)])


@lru_cache(maxsize=1)
def _drivers() -> npt.NDArray[np.object_]:
    return bytes_array([b"%d" % (FIRST_ID + driver) for driver in range(2 * TAXIS)])
