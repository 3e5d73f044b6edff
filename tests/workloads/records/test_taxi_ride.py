"""Taxi rides read back as the job would: JSON that is consistent in itself and looks like New York."""

import json
from collections import Counter
from math import asin, cos, radians, sin, sqrt

import numpy as np
import pytest

from workloads.records.registry import create
from workloads.records.trips import CELL_LATITUDE, CELL_LONGITUDE

START_MS = 1_367_366_400_123  # midnight of 1 May 2013 and a bit
RECORDS = 20_000


@pytest.fixture(scope="module")
def batch():
    return create("taxi_ride").batch(1, 500, START_MS + 1000 * np.arange(RECORDS, dtype=np.int64))


@pytest.fixture(scope="module")
def rides(batch):
    return [json.loads(value) for value in batch.values]


def miles_between(ride):
    """The straight line, on a sphere."""
    lat1, lat2 = radians(ride["pickupLat"]), radians(ride["dropoffLat"])
    half_lat, half_lon = (lat2 - lat1) / 2, radians(ride["dropoffLon"] - ride["pickupLon"]) / 2
    return 2 * 3958.8 * asin(sqrt(sin(half_lat) ** 2 + cos(lat1) * cos(lat2) * sin(half_lon) ** 2))


def test_number_key_and_event_time_are_in_the_record(batch, rides):
    for i, (number, key, ride) in enumerate(zip(batch.numbers, batch.keys, rides, strict=True)):
        assert ride["rideId"] == number == 500 + i
        assert str(ride["taxiId"]).encode() == key
        assert ride["dropoffTime"] == START_MS + 1000 * i


def test_distance_follows_the_streets_between_the_places(rides):
    for ride in rides[:2000]:
        straight = miles_between(ride)
        assert ride["distanceMi"] == pytest.approx(max(0.1, 1.3 * straight), rel=0.01, abs=0.011)


def test_durations_are_driven_at_city_speeds(rides):
    hours = np.array([(ride["dropoffTime"] - ride["pickupTime"]) / 3.6e6 for ride in rides])
    miles = np.array([ride["distanceMi"] for ride in rides])
    far = miles > 0.5  # nearer ones are rounded up to a minute
    low, middle, high = np.percentile(miles[far] / hours[far], (25, 50, 75))
    assert (low, middle, high) == pytest.approx((8.5, 11.6, 15.9), rel=0.04)  # measured in real trips
    assert np.percentile(miles, (25, 50, 75)) == pytest.approx((1.1, 1.8, 3.3), rel=0.2)


def test_fares_are_the_meters(rides):
    for ride in rides[:2000]:
        fifths = int(round(ride["distanceMi"] * 100) // 20)
        assert ride["fareUsd"] == pytest.approx(2.5 + 0.5 * fifths)


def test_some_areas_are_hot(rides):
    cells = Counter(
        (
            round((ride["pickupLat"] - 40.7549) / CELL_LATITUDE),
            round((ride["pickupLon"] + 73.984) / CELL_LONGITUDE),
        )
        for ride in rides
    )
    shares = [count / RECORDS for _, count in cells.most_common(30)]
    weights = 1 / np.arange(1, 201) ** 0.65
    assert shares[:5] == pytest.approx((weights / weights.sum())[:5], rel=0.15)
    assert cells.most_common(1)[0][0] == (0, 0)  # Midtown
    assert 150 < len(cells) <= 200


def test_taxis_have_a_driver_by_day_and_one_by_night():
    times_ms = START_MS + 3_600_000 * (np.arange(24 * 2000, dtype=np.int64) % 24)
    drivers = {}
    for value in create("taxi_ride").batch(1, 0, times_ms).values:
        ride = json.loads(value)
        hour = ride["dropoffTime"] // 3_600_000 % 24
        drivers.setdefault((ride["taxiId"], 5 <= hour < 17), set()).add(ride["driverId"])
    assert all(len(ids) == 1 for ids in drivers.values())
    by_day = {next(iter(ids)) for (_, day), ids in drivers.items() if day}
    by_night = {next(iter(ids)) for (_, day), ids in drivers.items() if not day}
    assert not by_day & by_night


def test_most_rides_carry_one_passenger(rides):
    passengers = Counter(ride["passengers"] for ride in rides)
    assert passengers[1] / RECORDS == pytest.approx(0.70, abs=0.02)
    assert passengers.keys() == {1, 2, 3, 4, 5, 6}
