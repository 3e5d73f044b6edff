"""A trace as a workload and as a supply of records; and folders that are not touched."""

import json
import os
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from fogscale.errors import FogscaleError, Interrupted
from tests.support.imports import events_of, import_files
from tests.support.taxi_files import debs, donovan_work, foil
from tests.workloads.importing.test_worldcup98 import START_S, log, record
from workloads import catalog
from workloads.importing.spark_job import check_conservation
from workloads.importing.trace import MOST_STEPS, check_target, draft, write_rate
from workloads.producer.chunks import chunks
from workloads.producer.command import records_of
from workloads.producer.tasks import job_of
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
        "clients": b"".join(record(START_S + n, n) for n in range(6100)),  # client n in second n
    }
    for name, content in contents.items():
        (folder / f"{name}.raw").write_bytes(content)
        kind = "worldcup98" if name in ("worldcup98", "clients") else "taxi"
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


def sent(workload, **pace):
    """When each record of a replay is, in seconds of the trace's clock, and whose it is."""
    replay = replace(workload.replay, **pace)
    records = records_of(workload, None, replay.scale)
    job = job_of(workload, replay, records, "t", "r")
    values = [value for chunk in chunks(job.tasks[0], 0.0) for value in chunk.values]  # noqa: PD011
    requests = [json.loads(value) for value in values]
    return np.array([(each["timestamp"], each["clientID"]) for each in requests]).T


@pytest.mark.spark
@pytest.mark.parametrize(
    ("name", "parameters", "count", "first"),
    [
        pytest.param("TRACE", {}, 100, 0, id="as by default, one in 61"),
        pytest.param("shifted", {"of": "TRACE", "by_s": -3000}, 51, 3000, id="begun in its midst"),
        pytest.param("shifted", {"of": "TRACE", "by_s": 500}, 100, 0, id="begun later"),
        pytest.param("scaled", {"of": "TRACE", "factor": 0.5}, 50, 0, id="half of it"),
        pytest.param(
            "scaled", {"of": {"name": "shifted", "parameters": {"of": "TRACE", "by_s": -3000}}, "factor": 61},
            3100, 3000, id="the rest, all rows",
        ),
        pytest.param("scaled", {"of": "TRACE", "factor": 183}, 18_300, 0, id="each row three times"),
    ],
)  # fmt: skip
def test_a_thinned_or_moved_replay_sends_the_events_of_the_moment(traces, name, parameters, count, first):
    """Client n asks in second n, so a request must not be far from its client: half a record's distance, and
    the ten seconds of the trace that a second of the replay holds."""
    filled = yaml.safe_load(json.dumps(parameters).replace("TRACE", str(traces / "clients")))
    stamps_s, clients = sent(catalog.load(name.replace("TRACE", str(traces / "clients")), **filled))
    assert abs(len(clients) - count) <= 1
    distance_s = (6100 - first) / count
    assert np.abs(stamps_s - START_S - clients).max() <= distance_s / 2 + 10
    assert (np.diff(clients) >= 0).all()
    assert clients[0] <= first + distance_s
    assert clients[-1] >= 6100 - 2 * distance_s - 1


@pytest.mark.spark
def test_all_rows_are_sent_once_at_any_speed(traces):
    for speed in (1.0, 10.0, 61.7):
        _, clients = sent(catalog.load(str(traces / "clients")), speed=speed, scale=1.0)
        assert clients.tolist() == list(range(6100))


@pytest.mark.spark
def test_joined_traces_send_their_own_events_one_after_the_other(traces):
    late = {"name": "shifted", "parameters": {"of": str(traces / "clients"), "by_s": -6000}}
    of = [str(traces / "worldcup98"), late, str(traces / "clients")]
    _, clients = sent(catalog.load("joined", of=of), scale=61.0)
    events = events_of(traces / "worldcup98")["client"].tolist()
    assert clients.tolist() == [*events, *range(6000, 6100), *range(6100)]


@pytest.mark.spark
@pytest.mark.parametrize(
    ("others", "complaint"),
    [
        ("foil", "traces of different records cannot be sent as one"),
        (None, "joins events of a trace"),
    ],
)
def test_joined_with_other_records_a_trace_cannot_be_sent(traces, others, complaint):
    of = [str(traces / "clients"), "sine" if others is None else str(traces / others)]
    joined = catalog.load("joined", of=of)
    assert joined.profile.total_records > 0, "its rates are all that a simulation asks for"
    with pytest.raises(FogscaleError, match=complaint):
        sent(joined)


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


def test_a_link_is_refused_before_anything_is_read(tmp_path):
    (tmp_path / "trace").mkdir()
    (tmp_path / "latest").symlink_to(tmp_path / "trace")
    with pytest.raises(FogscaleError, match="latest is a link: name the folder itself"):
        check_target(tmp_path / "latest", True)


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


def imported(target, text, fresh=False, meanwhile=lambda _folder: None):
    with draft(target, fresh) as folder:
        (folder / "trace.json").write_text(text)
        meanwhile(folder)


def test_of_two_imports_at_once_the_second_does_not_replace_the_first(tmp_path):
    target = tmp_path / "trace"

    def meanwhile(_folder):
        target.mkdir()
        (target / "trace.json").write_text("first")

    with pytest.raises(FogscaleError, match="holds a trace already"):
        imported(target, "second", meanwhile=meanwhile)
    assert [path.name for path in tmp_path.iterdir()] == ["trace"]
    assert (target / "trace.json").read_text() == "first"


def test_an_interruption_while_an_older_trace_is_replaced_loses_none(tmp_path, monkeypatch):
    target, rename = tmp_path / "trace", Path.rename
    imported(target, "older")

    def interrupted(path, to):
        if to == target and path.name != ".trace.older":
            raise Interrupted("interrupted")
        return rename(path, to)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", interrupted)
        with pytest.raises(Interrupted):
            imported(target, "newer", fresh=True)
    assert (target / "trace.json").read_text() == "older"
    imported(target, "newer", fresh=True)
    assert (target / "trace.json").read_text() == "newer"
    assert [path.name for path in tmp_path.iterdir()] == ["trace"]


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


def test_a_trace_of_years_becomes_coarser_rather_than_too_large(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    manifest = {
        "format": 1, "name": "long", "kind": "taxi", "title": "trips", "files": [],
        "span_s": 3 * MOST_STEPS + 1, "start": "2010-01-01T00:00:00", "rows": {"kept": 26},
    }  # fmt: skip
    (tmp_path / "trace.json").write_text(json.dumps(manifest))
    seconds = [0, 1, 4, 3 * MOST_STEPS]
    pq.write_table(pa.table({"second": seconds, "records": [5, 6, 7, 8]}), tmp_path / "rate.parquet")
    profile = catalog.load(str(tmp_path)).profile
    assert profile.step_s == 4
    assert profile.total_records == 26
    assert profile.between([0, 4, 8]).tolist() == [11, 7]
    assert len(profile.counts) <= MOST_STEPS


def test_rows_that_went_missing_are_a_fault_that_is_told():
    check_conservation(rows_in=5, kept=3, quarantined=2)
    with pytest.raises(FogscaleError, match="5 rows were read, but 3 kept and 1 quarantined: this is a"):
        check_conservation(rows_in=5, kept=3, quarantined=1)


def test_events_out_of_order_are_noticed(tmp_path):
    (tmp_path / "events").mkdir()
    stamps = pd.DataFrame({"event_time": pd.to_datetime([5, 4], unit="s")})
    stamps.to_parquet(tmp_path / "events" / "part-0.parquet")
    with pytest.raises(RuntimeError, match="not in the order of time"):
        write_rate(tmp_path)
