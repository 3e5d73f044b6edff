"""DEBS lines read back as the challenge's parser would, beside the real file where it is at hand."""

import csv
import re
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from fogscale.errors import FogscaleError
from workloads.records.debs_route import COLUMNS
from workloads.records.registry import create

START_MS = 1_357_517_000_000
RECORDS = 20_000
REAL = Path(__file__).parents[4] / "shared" / "data" / "taxi" / "debs2015_head100.csv"
STAMP = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"
FORMS = {
    "medallion": r"[0-9A-F]{32}", "hack_license": r"[0-9A-F]{32}", "payment_type": r"[A-Z]{3}",
    "pickup_datetime": STAMP, "dropoff_datetime": STAMP,
    "trip_time_in_secs": r"\d+", "trip_distance": r"\d+\.\d\d",
    **dict.fromkeys(COLUMNS[6:10], r"-?\d+\.\d{6}"), **dict.fromkeys(COLUMNS[11:], r"\d+\.\d\d"),
}  # fmt: skip


@pytest.fixture(scope="module")
def batch():
    return create("debs_route").batch(1, 0, START_MS + 700 * np.arange(RECORDS, dtype=np.int64))


@pytest.fixture(scope="module")
def trips(batch):
    return list(csv.DictReader((value.decode() for value in batch.values), fieldnames=COLUMNS))


def assert_form(trip):
    assert len(trip) == 17
    assert None not in trip
    for column, form in FORMS.items():
        assert re.fullmatch(form, trip[column]), (column, trip[column])


def test_lines_have_the_form_of_the_challenge(batch, trips):
    for trip, key in zip(trips, batch.keys, strict=True):
        assert_form(trip)
        assert trip["medallion"].encode() == key


def test_the_real_file_has_the_same_form(require):
    require("shared-data", REAL.exists(), f"{REAL.name} is not here, and the project ships no trace files")
    for trip in csv.DictReader(REAL.read_text().splitlines(), fieldnames=COLUMNS):
        assert_form(trip)


def test_stamps_are_event_time_and_duration(trips):
    for i, trip in enumerate(trips):
        dropoff = datetime.fromisoformat(trip["dropoff_datetime"]).replace(tzinfo=UTC)
        pickup = datetime.fromisoformat(trip["pickup_datetime"]).replace(tzinfo=UTC)
        assert dropoff.timestamp() == (START_MS + 700 * i) // 1000
        assert (dropoff - pickup).total_seconds() == int(trip["trip_time_in_secs"])


def test_stamps_cross_midnight_and_leap_days():
    midnight_ms = int(datetime(2012, 2, 29, 0, 0, 30, tzinfo=UTC).timestamp() * 1000)
    trip = create("debs_route").batch(1, 0, np.array([midnight_ms]))
    cells = trip.values[0].decode().split(",")
    assert cells[3] == "2012-02-29 00:00:30"
    assert cells[2].startswith("2012-02-28 23:")


def test_totals_add_up(trips):
    for trip in trips:
        cents = [round(float(trip[column]) * 100) for column in COLUMNS[11:]]
        assert sum(cents[:-1]) == cents[-1]


def test_tips_are_by_card_and_a_fifth(trips):
    payments = Counter(trip["payment_type"] for trip in trips)
    assert payments["CRD"] / RECORDS == pytest.approx(0.54, abs=0.02)
    for trip in trips:
        wanted = 0.2 * float(trip["fare_amount"]) if trip["payment_type"] == "CRD" else 0.0
        assert float(trip["tip_amount"]) == pytest.approx(wanted, abs=0.0051)


def test_the_night_surcharge_is_from_eight_to_six(trips):
    seen = {(int(trip["dropoff_datetime"][11:13]), trip["surcharge"]) for trip in trips}
    assert all(surcharge == ("0.50" if hour >= 20 or hour < 6 else "0.00") for hour, surcharge in seen)


def test_some_lines_have_no_coordinates(trips):
    without = [trip for trip in trips if float(trip["pickup_longitude"]) == 0]
    assert len(without) / RECORDS == pytest.approx(0.018, abs=0.004)
    assert all(float(trip[column]) == 0 for trip in without for column in COLUMNS[6:10])


@pytest.mark.parametrize(("zero_ratio", "expected"), [(0, 0), (1, 100)])
def test_their_share_is_a_parameter(zero_ratio, expected):
    values = create("debs_route", zero_ratio=zero_ratio).batch(1, 0, START_MS + np.arange(100)).values
    assert sum(b",0.000000,0.000000,0.000000,0.000000," in value for value in values) == expected
    with pytest.raises(FogscaleError, match="zero_ratio must be within 0 and 1"):
        create("debs_route", zero_ratio=-0.1)


def test_routes_are_hot_enough_for_a_top_ten(trips):
    def cell(trip, end):
        return (
            round(float(trip[f"{end}_longitude"]) / 0.005986),
            round(float(trip[f"{end}_latitude"]) / 0.0044916),
        )

    routes = Counter((cell(trip, "pickup"), cell(trip, "dropoff")) for trip in trips)
    assert routes.most_common(11)[10][1] >= 10  # seen often within six hours of trips
