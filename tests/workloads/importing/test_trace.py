"""A trace as a workload and as a supply of records; and folders that are not touched."""

import json
import os
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from controller.errors import FogscaleError
from tests.support.imports import events_of, import_files
from tests.support.taxi_files import debs, donovan_work, foil
from tests.workloads.importing.test_worldcup98 import log
from workloads import catalog
from workloads.importing.trace import check_target, draft, write_rate
from workloads.records.debs_route import COLUMNS
from workloads.records.format import Share
from workloads.records.registry import create


def trips(write, count):
    return [
        write(n, dropoff=f"2013-06-08 10:{n % 60:02d}:{n * 7 % 60:02d}", pickup="2013-06-08 09:50:01")
        for n in range(count)
    ]


@pytest.fixture(scope="module")
def traces(spark, tmp_path_factory):
    """A trace of each record format."""
    folder = tmp_path_factory.mktemp("traces")
    contents = {
        "foil": "\n".join(trips(foil, 500)).encode(),
        "work": "\n".join(trips(donovan_work, 50)).encode(),
        "debs": "\n".join(trips(debs, 50)).encode(),
        "worldcup98": log(2000),
    }
    for name, content in contents.items():
        (folder / f"{name}.raw").write_bytes(content)
        kind = "worldcup98" if name == "worldcup98" else "taxi"
        import_files(spark, kind, [folder / f"{name}.raw"], folder / name)
    return folder


@pytest.mark.spark
def test_a_trace_is_a_workload_by_its_path(traces):
    workload = catalog.load(str(traces / "foil"))
    assert workload.name == "foil"
    assert workload.profile.step_s == 1.0
    assert workload.profile.total_records == 500
    assert workload.profile.start == "2013-06-08T10:00:00"
    assert "foil.raw" in workload.profile.source
    events = events_of(traces / "foil")
    busiest = events["event_time"].value_counts()
    second = int((busiest.index[0] - events["event_time"][0]).total_seconds())
    assert workload.profile.counts[second] == busiest.iloc[0]
    with pytest.raises(FogscaleError, match="a trace takes no parameters, but got peak"):
        catalog.load(str(traces / "foil"), peak=3)


@pytest.mark.spark
def test_taxi_records_are_the_events_in_order_with_the_fields_of_the_format(traces):
    records = pickle.loads(pickle.dumps(create(str(traces / "work"))))  # producers are processes
    times_ms = np.arange(10) * 1000 + 5_000_000
    batch = records.batch(1, 20, times_ms)
    events = events_of(traces / "work").iloc[20:30]
    assert batch.numbers.tolist() == list(range(20, 30))
    assert batch.keys == [key.encode() for key in events["taxi_id"]]
    generated = json.loads(create("taxi_ride").batch(1, 0, times_ms[:1]).values[0])  # noqa: PD011
    for value, time_ms, event in zip(batch.values, times_ms.tolist(), events.itertuples(), strict=True):
        ride = json.loads(value)
        assert ride.keys() == generated.keys()
        assert ride["dropoffTime"] == time_ms
        lasted_ms = (event.dropoff_time - event.pickup_time) / pd.Timedelta(milliseconds=1)
        assert time_ms - ride["pickupTime"] == lasted_ms
        assert (ride["taxiId"], ride["pickupLon"]) == (int(event.taxi_id), event.pickup_longitude)


@pytest.mark.spark
def test_debs_records_are_the_lines_of_the_file_at_the_times_of_the_replay(traces):
    events = events_of(traces / "debs")
    stamps_ms = (events["event_time"] - pd.Timestamp(0)) // pd.Timedelta(milliseconds=1)
    batch = create(str(traces / "debs")).batch(1, 0, stamps_ms.to_numpy())
    lines = {line.split(",")[0]: line.split(",") for line in trips(debs, 50)}
    for value in batch.values:  # noqa: PD011
        fields = value.decode().split(",")
        raw = lines[fields[0]]
        assert len(fields) == len(COLUMNS)
        assert fields[:5] == raw[:5], "ids and stamps to the letter"
        assert list(map(float, fields[5:10] + fields[11:])) == list(map(float, raw[5:10] + raw[11:]))
        assert fields[10] == raw[10]


@pytest.mark.spark
def test_world_cup_records_have_the_fields_of_the_format(traces):
    batch = create(str(traces / "worldcup98")).batch(1, 0, np.array([5_000, 6_000]))
    generated = json.loads(create("worldcup_request").batch(1, 0, np.array([5_000])).values[0])  # noqa: PD011
    request = json.loads(batch.values[1])  # noqa: PD011
    assert request.keys() == generated.keys()
    assert (request["timestamp"], request["objectID"], request["status"]) == (6, 1, 200)
    assert batch.keys[1] == str(request["clientID"]).encode()


@pytest.mark.spark
def test_shares_divide_the_records_by_key_and_a_long_replay_begins_anew(traces):
    records = create(str(traces / "foil"))
    times_ms = np.arange(1200) * 10
    whole = records.batch(1, 0, times_ms)
    assert whole.keys[500:1000] == whole.keys[:500]
    shares = [records.batch(1, 0, times_ms, Share(number, 3)) for number in range(3)]
    assert sorted(np.concatenate([share.numbers for share in shares])) == list(range(1200))
    assert all(len(share.numbers) > 100 for share in shares)
    assert not set(shares[0].keys) & set(shares[1].keys)
    part = records.batch(2, 700, times_ms[700:710])
    assert part.values == whole.values[700:710], "any part of it can be made by itself"  # noqa: PD011


@pytest.mark.spark
def test_the_report_stands_alone(traces):
    page = (traces / "foil" / "report.html").read_text()
    assert page.count("<svg") == 1
    assert "FOIL/Whong" in page
    for outside in ("<link", "<script", 'src="http', "@import"):
        assert outside not in page


def test_a_folder_that_is_no_trace_is_never_replaced(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("years of work")
    for fresh in (False, True):
        with pytest.raises(FogscaleError, match="is no trace: name another"):
            check_target(tmp_path / "mine", fresh)
    check_target(tmp_path / "new", False)


def test_a_trace_is_replaced_only_when_asked_and_only_by_a_complete_one(tmp_path):
    target = tmp_path / "trace"
    with draft(target, False) as folder:
        (folder / "trace.json").write_text("1")
    with pytest.raises(FogscaleError, match="holds a trace already: add --fresh"):
        check_target(target, False)
    with pytest.raises(RuntimeError), draft(target, True):
        raise RuntimeError("out of disk")
    assert (target / "trace.json").read_text() == "1"
    with draft(target, True) as folder:
        (folder / "trace.json").write_text("3")
    assert (target / "trace.json").read_text() == "3"
    assert [path.name for path in tmp_path.iterdir()] == ["trace"], "nothing half-done is left"


def test_a_draft_whose_process_was_killed_is_removed_by_the_next_import(tmp_path):
    """Only such: one that is being written, and a folder whose name merely begins alike, stay."""
    killed = subprocess.Popen([sys.executable, "-c", ""])
    killed.wait()
    dead, alive, other = (f".trace.{end}" for end in (killed.pid, os.getppid(), "notes"))
    for name in (dead, alive, other, f".trace2.{killed.pid}"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "rows").write_text("half")
    with draft(tmp_path / "trace", False) as folder:
        (folder / "trace.json").write_text("1")
    assert {path.name for path in tmp_path.iterdir()} == {"trace", alive, other, f".trace2.{killed.pid}"}


@pytest.mark.parametrize("content", ["{", "[]", '{"format": 99}'])
def test_a_manifest_of_another_kind_is_refused(tmp_path, content):
    (tmp_path / "trace.json").write_text(content)
    with pytest.raises(FogscaleError, match="import"):
        catalog.load(str(tmp_path))


def test_a_second_that_goes_on_in_the_next_file_is_counted_once(tmp_path):
    """Event files end anywhere, also in mid-second."""
    import pyarrow.parquet as pq

    (tmp_path / "events").mkdir()
    for number, seconds in enumerate(([7, 7, 9], [9, 9, 9], [9], [12])):
        stamps = pd.DataFrame({"event_time": pd.to_datetime(seconds, unit="s")})
        stamps.to_parquet(tmp_path / "events" / f"part-{number:05d}.parquet")
    pace = write_rate(tmp_path)
    rate = pq.read_table(tmp_path / "rate.parquet").to_pydict()
    assert rate == {"second": [0, 2, 5], "records": [2, 5, 1]}
    assert (pace.start_s, pace.span_s, pace.peak_records) == (7, 6, 5)


def test_events_out_of_order_are_noticed(tmp_path):
    (tmp_path / "events").mkdir()
    stamps = pd.DataFrame({"event_time": pd.to_datetime([5, 4], unit="s")})
    stamps.to_parquet(tmp_path / "events" / "part-0.parquet")
    with pytest.raises(RuntimeError, match="not in the order of time"):
        write_rate(tmp_path)
