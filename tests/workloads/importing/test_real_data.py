"""The samples of the public files: counts checked by hand and by a second implementation."""

import gzip
import struct
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

from tests.support.imports import events_of, import_files
from tests.support.taxi_files import reasons_of, ride_reasons_of
from workloads.catalog import load

pytestmark = pytest.mark.spark

DATA = Path(__file__).parents[3].parent / "shared" / "data"
FOIL = DATA / "taxi" / "foil_trips_2013-06_sample.csv"
DEBS = DATA / "taxi" / "debs2015_head100.csv"
RIDES = DATA / "taxi" / "flink_rides_2013-01-01.gz"
LOG = DATA / "worldcup98" / "binary_1000_records.gz"


@pytest.fixture
def imported(spark, require, tmp_path):
    def run(kind, path):
        require(
            "shared-data", path.exists(), f"{path.name} is not here, and the project ships no trace files"
        )
        return import_files(spark, kind, [path], tmp_path / "trace"), tmp_path / "trace"

    return run


def counts(manifest):
    return {"kept": manifest["rows"]["kept"], **manifest["rows"]["by_reason"]}


def test_the_foil_sample(imported):
    manifest, trace = imported("taxi", FOIL)
    assert manifest["edition"] == "foil"
    assert counts(manifest) == {
        "kept": 13_954, "zero coordinates": 252, "invalid coordinates": 12, "non-positive duration": 24,
        "non-positive distance": 52, "impossible speed": 6,
    }  # fmt: skip
    lines = FOIL.read_text().splitlines()[1:]
    assert len(lines) == manifest["rows"]["in"] == 14_300
    assert counts(manifest) == reasons_of(lines, stamps=5, seconds=8, miles=9, places=10)
    assert {row["vendor"]: (row["whole"], row["rows"]) for row in manifest["whole_minutes"]} == {
        "CMT": (_both_whole(lines, "CMT"), 7178), "VTS": (7122, 7122),
    }  # fmt: skip
    events = events_of(trace)
    assert (events["dropoff_time"].dt.second == 0).mean() > 0.5, "a naive replay bursts"
    assert (events["event_time"].dt.second == 0).mean() < 0.03
    assert (events["event_time"] > events["pickup_time"]).all()


def _both_whole(lines, vendor):
    rows = (line.split(",") for line in lines)
    return sum(row[2] == vendor and row[5].endswith(":00") and row[6].endswith(":00") for row in rows)


def test_the_head_of_debs(imported):
    manifest, _ = imported("taxi", DEBS)
    assert manifest["edition"] == "debs2015"
    assert counts(manifest) == {
        "kept": 84, "zero coordinates": 8, "non-positive distance": 7, "impossible speed": 1,
    }  # fmt: skip
    assert counts(manifest) == reasons_of(
        DEBS.read_text().splitlines(), stamps=2, seconds=4, miles=5, places=6
    )


def test_the_flink_rides(imported):
    manifest, trace = imported("taxi", RIDES)
    assert manifest["edition"] == "flink_rides"
    assert counts(manifest) == {
        "kept": 97_958, "zero coordinates": 1_969, "invalid coordinates": 17, "non-positive duration": 44,
        "impossible speed": 12,
    }  # fmt: skip
    lines = gzip.decompress(RIDES.read_bytes()).decode().splitlines()
    assert counts(manifest) == ride_reasons_of(lines)
    events = events_of(trace).set_index("ride_id")
    starts, ends = (events.loc[events["is_start"] == side, "event_time"] for side in (True, False))
    both = starts.index.intersection(ends.index)
    assert len(both) > 40_000
    assert (starts[both] < ends[both]).all(), "no ride ends before it starts"


def test_a_thousand_requests_of_the_world_cup(imported):
    manifest, trace = imported("worldcup98", LOG)
    assert counts(manifest) == {"kept": 1000}
    assert (manifest["start"], manifest["span_s"]) == ("1998-04-30T21:30:17+00:00", 1839)
    records = list(struct.iter_unpack(">IIIIBBBB", gzip.decompress(LOG.read_bytes())))
    profile = load(str(trace)).profile
    by_second = Counter(record[0] - records[0][0] for record in records)
    assert [profile.counts[second] for second in range(1839)] == [by_second[second] for second in range(1839)]
    events = events_of(trace)
    assert list(events["client"]) == [record[1] for record in records]
    assert Counter(events["status"]) == {200: 844, 304: 152, 206: 4}
    assert events["size_bytes"].isna().sum() == sum(record[3] == 0xFFFFFFFF for record in records)
    assert events["event_time"].iloc[0] == pd.Timestamp(records[0][0], unit="s")
