"""Taxi files of every edition with every fault: what is kept, and why the rest is not."""

import gzip
import json
from dataclasses import replace
from datetime import datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fogscale.errors import FogscaleError
from tests.support.imports import events_of, import_files, quarantine_of
from tests.support.taxi_files import FOIL_HEADER, HERE, debs, donovan_work, foil, md5, ride
from workloads.importing.editions import TLC_PARQUET
from workloads.importing.sources import taxi_source
from workloads.importing.spark_job import _slice_count
from workloads.importing.taxi import TLC_BATCH_ROWS, read_tlc, tlc_parts

pytestmark = pytest.mark.spark

NOON = "2013-06-08 12:00:07"
FAULTY = {
    "wrong, number, of, fields": "malformed line",
    "": "malformed line",
    foil(101, miles="far"): "malformed line",
    foil(102, miles="NaN"): "malformed line",
    foil(103, miles=""): "malformed line",
    foil(104, pickup="2013-06-08"): "malformed line",
    foil(105, dropoff="2013-06-31 00:00:00"): "malformed line",
    foil(106, seconds="1.5x"): "malformed line",
    foil(107, places=("west", "40.75", "-73.97", "40.76")): "malformed line",
    foil(108) + ",": "malformed line",
    foil(109, places=("0", "40.75", "-73.97", "40.76")): "zero coordinates",
    foil(110, places=("0.000000", "0.000000", "0.000000", "0.000000")): "zero coordinates",
    foil(111, places=("-73.98", "40.75", "", "")): "invalid coordinates",
    foil(112, places=("40.75", "-73.98", "40.76", "-73.97")): "invalid coordinates",
    foil(113, places=("-74.51", "40.75", "-73.97", "40.76")): "invalid coordinates",
    foil(114, places=("-73.98", "40.75", "-73.97", "41.21")): "invalid coordinates",
    foil(115, pickup=NOON, dropoff=NOON): "non-positive duration",
    foil(116, pickup=NOON, dropoff="2013-06-08 11:59:00"): "non-positive duration",
    foil(117, seconds="0"): "non-positive duration",
    foil(118, seconds="-604"): "non-positive duration",
    foil(119, miles="0"): "non-positive distance",
    foil(120, miles="-1.5"): "non-positive distance",
    foil(121, pickup="2013-06-08 12:00:00", dropoff="2013-06-08 12:06:00", miles="10.01"): "impossible speed",
    foil(122, pickup="2008-01-01 00:00:05", dropoff="2008-01-01 00:10:00"): "stamp out of span",
    foil(123, pickup="2013-07-02 00:00:05", dropoff="2013-07-02 00:10:00"): "stamp out of span",
    foil(124, pickup="2013-06-30 23:00:00", dropoff="2013-07-02 00:00:00"): "stamp out of span",
    # The calendar's last second, and its first: where adding a day, or taking one off, leaves the calendar.
    foil(126, pickup="9999-12-31 23:49:59", dropoff="9999-12-31 23:59:59"): "stamp out of span",
    foil(127, pickup="2013-06-08 12:00:00", dropoff="9999-12-31 23:59:59"): "stamp out of span",
    foil(128, pickup="0001-01-01 00:00:00", dropoff="0001-01-01 00:10:00"): "stamp out of span",
    # Several faults: the first reason in the declared order.
    foil(125, miles="0", places=("0", "0", "0", "0")): "zero coordinates",
}
SOUND = [
    *(foil(n, dropoff=f"2013-06-{1 + n % 28:02d} 10:{n % 60:02d}:{n * 7 % 60:02d}",
           pickup=f"2013-06-{1 + n % 28:02d} 09:50:01") for n in range(400)),
    foil(501, pickup="2013-06-30 23:59:59", dropoff="2013-07-01 00:20:01"),
    foil(502, pickup="2013-06-08 12:00:00", dropoff="2013-06-08 12:06:00", miles="10.00"),
    foil(503, places=("-74.5", "40.4", "-73.4", "41.2")),
]  # fmt: skip
TWICE = [foil(7_000), foil(109, places=("0", "40.75", "-73.97", "40.76"))]


@pytest.fixture(scope="module")
def faulty(spark, tmp_path_factory):
    """Sound, faulty and repeated lines in two files, the second without a line end at its end."""
    folder = tmp_path_factory.mktemp("faulty")
    first, second = folder / "trip_data_6.csv", folder / "more.csv.gz"
    lines = [FOIL_HEADER, *SOUND[:200], *FAULTY, TWICE[0], TWICE[0]]
    first.write_text("\n".join(lines) + "\n")
    second.write_bytes(gzip.compress("\r\n".join([FOIL_HEADER, *SOUND[200:], *TWICE]).encode()))
    manifest = import_files(spark, "taxi", [first, second], folder / "trace")
    return manifest, folder / "trace", (first, second)


def test_every_row_is_kept_or_quarantined_for_its_reason(faulty):
    manifest, trace, _ = faulty
    expected = pd.Series(
        [*FAULTY.values(), "exact duplicate", "exact duplicate", "exact duplicate"]
    ).value_counts()
    assert manifest["rows"]["by_reason"] == expected.to_dict()
    assert manifest["rows"]["in"] == len(SOUND) + len(FAULTY) + 4
    assert manifest["rows"]["kept"] == len(SOUND) + 1 == len(events_of(trace))
    assert manifest["edition"] == "foil"


def test_the_quarantine_holds_each_line_as_it_stood_and_where(faulty):
    _, trace, files = faulty
    contents = [files[0].read_bytes(), gzip.decompress(files[1].read_bytes())]
    rows = quarantine_of(trace)
    for row in rows.itertuples():
        at = contents[row.file][row.position :]
        assert at.split(b"\n")[0].rstrip(b"\r").decode() == row.raw
        if row.reason != "exact duplicate":
            assert FAULTY[row.raw] == row.reason
    assert sorted(rows.loc[rows["reason"] == "exact duplicate", "raw"]) == sorted([TWICE[0], *TWICE])


def test_events_are_in_the_order_of_their_drop_offs(faulty):
    _, trace, _ = faulty
    events = events_of(trace)
    assert events["event_time"].is_monotonic_increasing
    assert (events["event_time"] == events["dropoff_time"]).all()
    assert not {"reason", "file", "position", "raw"} & set(events)
    seen = events.set_index("taxi_id").loc[md5(501)]
    assert (seen["distance_miles"], seen["vendor"], seen["passengers"]) == (0.8, "CMT", 2)
    assert tuple(seen[["pickup_longitude", "pickup_latitude"]]) == (float(HERE[0]), float(HERE[1]))
    assert seen["event_time"] == pd.Timestamp("2013-07-01 00:20:01")


def test_the_rate_counts_each_event_in_its_second(faulty):
    manifest, trace, _ = faulty
    events = events_of(trace)
    rate = pq.read_table(trace / "rate.parquet").to_pandas()
    start = pd.Timestamp(manifest["start"])
    by_second = ((events["event_time"] - start) // pd.Timedelta(seconds=1)).value_counts().sort_index()
    assert dict(zip(rate["second"], rate["records"], strict=True)) == by_second.to_dict()
    assert rate["second"].iloc[0] == 0
    assert manifest["span_s"] == rate["second"].iloc[-1] + 1
    assert manifest["rate"]["peak_per_s"] == by_second.max()
    assert manifest["rate"]["mean_per_s"] == pytest.approx(len(events) / manifest["span_s"])


def test_stamps_of_a_vendor_who_rounds_are_spread_and_no_others(spark, tmp_path):
    rng = np.random.default_rng(1)
    lines, starts = [], pd.Timestamp("2013-06-03") + pd.to_timedelta(rng.integers(0, 86_400, 3000), "s")
    for number, start in enumerate(starts):
        is_rounded = number % 2 == 0
        pickup = start.floor("min") if is_rounded else start
        dropoff = pickup + pd.Timedelta(seconds=60 * int(rng.integers(1, 30)) + (0 if is_rounded else 13))
        lines.append(foil(number, str(pickup), str(dropoff), "VTS" if is_rounded else "CMT"))
    path = tmp_path / "file.csv"
    path.write_text("\n".join(lines))
    manifest = import_files(spark, "taxi", [path], tmp_path / "a")
    events = events_of(tmp_path / "a")
    vts = events["vendor"] == "VTS"
    assert (events.loc[~vts, "event_time"] == events.loc[~vts, "dropoff_time"]).all()
    shift_s = (events["event_time"] - events["dropoff_time"]).dt.total_seconds()
    assert (shift_s == events["spread_s"]).all()
    assert shift_s.between(0, 59).all()
    by_second = shift_s[vts].value_counts().reindex(range(60), fill_value=0)
    assert by_second.between(8, 50).all(), "1500 rows over 60 seconds: 25 each, give or take five deviations"
    assert {row["vendor"]: (row["whole"], row["spread"]) for row in manifest["whole_minutes"]} == {
        "CMT": (0, False), "VTS": (1500, True),
    }  # fmt: skip
    assert "100% of the rows of vendor VTS" in manifest["notes"][0]

    path.write_text("\n".join(reversed(lines)))
    import_files(spark, "taxi", [path], tmp_path / "b")
    again = events_of(tmp_path / "b").set_index("taxi_id")["event_time"]
    assert (again.sort_index() == events.set_index("taxi_id")["event_time"].sort_index()).all()


def test_rides_are_two_events_that_stay_in_order_when_spread(spark, tmp_path):
    """Even if only the start fell on a full minute, by chance, and the ride was over before its new start."""
    lines = []
    for n in range(1, 301):
        start, end = f"2013-01-01 00:{n % 50:02d}:00", f"2013-01-01 00:{n % 50 + 1:02d}:00"
        lines += [ride(n, "START", start), ride(n, "END", end, start)]
    for n in range(301, 401):
        start, end = f"2013-01-01 00:{n % 50:02d}:00", f"2013-01-01 00:{n % 50:02d}:0{1 + n % 9}"
        near = ("-73.98", "40.75", "-73.98", "40.75")
        lines += [ride(n, "START", start, places=near), ride(n, "END", end, start, near)]
    lines += [
        ride(501, "END", "2013-01-01 00:05:05", "2013-01-01 00:05:05"),
        ride(
            502, "END", "2013-01-01 00:05:05", "2013-01-01 00:05:04", ("-73.99", "40.70", "-73.97", "40.78")
        ),
        ride(503, "STOP", "2013-01-01 00:05:05"),
    ]
    path = tmp_path / "rides.gz"
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    manifest = import_files(spark, "taxi", [path], tmp_path / "trace")
    assert manifest["rows"]["by_reason"] == {
        "malformed line": 1, "non-positive duration": 1, "impossible speed": 1,
    }  # fmt: skip
    events = events_of(tmp_path / "trace")
    start = events[events["is_start"]].set_index("ride_id")["event_time"].sort_index()
    end = events[~events["is_start"]].set_index("ride_id")["event_time"].sort_index()
    assert (start < end).all()
    assert len(start) == len(end) == 400
    own = events["dropoff_time"].where(~events["is_start"], events["pickup_time"])
    assert (events["event_time"].dt.floor("min") == own.dt.floor("min")).all(), "within their minute"
    assert ((events["event_time"] - own).dt.total_seconds() == events["spread_s"]).all()
    assert "by a hash of each ride (an END that its START would pass" in manifest["notes"][0]
    full = start.index <= 300
    assert ((end - start)[full] == pd.Timedelta(minutes=1)).all(), "both events of a ride move alike"
    assert (start[full].dt.second == 0).mean() < 0.1


def test_donovan_and_work_and_debs_rows_are_read_alike(spark, tmp_path):
    for name, write in (("donovan_work", donovan_work), ("debs2015", debs)):
        path = tmp_path / f"{name}.csv"
        path.write_text("".join(f"{write(n)}\n" for n in range(1, 4)))
        manifest = import_files(spark, "taxi", [path], tmp_path / name)
        assert (manifest["edition"], manifest["rows"]["kept"]) == (name, 3)
    work, challenge = events_of(tmp_path / "donovan_work"), events_of(tmp_path / "debs2015")
    assert sorted(work["taxi_id"]) == ["2013000001", "2013000002", "2013000003"]
    assert set(work["vendor"]) == {"CMT"}
    assert set(challenge["total"]) == {7.5}
    shared = ["event_time", "pickup_time", "distance_miles", "pickup_longitude", "dropoff_latitude"]
    pd.testing.assert_frame_equal(work[shared], challenge[shared])


def quoted(line):
    return ",".join(f'"{cell}"' for cell in line.split(","))


@pytest.mark.parametrize(
    ("write", "header"),
    [
        pytest.param(foil, FOIL_HEADER, id="FOIL"),
        pytest.param(foil, "", id="FOIL, no header"),
        pytest.param(debs, "", id="DEBS"),
        pytest.param(lambda n: ride(n, "START", "2013-06-08 09:12:07"), "", id="rides"),
    ],
)
def test_quotes_around_fields_belong_to_none_of_them(spark, tmp_path, write, header):
    """Nor does a mark of byte order at the start of the file."""
    lines = ([header.replace(" ", "")] if header else []) + [write(n) for n in range(1, 4)]
    for name, dress, mark in (("bare", str, ""), ("quoted", quoted, "\ufeff")):
        content = mark + "".join(f"{dress(line)}\n" for line in lines)
        (tmp_path / f"{name}.csv").write_text(content, encoding="utf-8")
        manifest = import_files(spark, "taxi", [tmp_path / f"{name}.csv"], tmp_path / name)
        assert (manifest["rows"]["in"], manifest["rows"]["kept"]) == (3, 3)
    pd.testing.assert_frame_equal(events_of(tmp_path / "bare"), events_of(tmp_path / "quoted"))


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        pytest.param(f"{FOIL_HEADER}\n", "there is no row in trips.csv", id="a header and nothing else"),
        pytest.param(f"{FOIL_HEADER}\n\n", r"none of the 1 rows .*\(1 malformed", id="an empty line"),
    ],
)
def test_a_file_without_rows_becomes_no_trace(spark, tmp_path, content, complaint):
    (tmp_path / "trips.csv").write_text(content)
    with pytest.raises(FogscaleError, match=complaint):
        import_files(spark, "taxi", [tmp_path / "trips.csv"], tmp_path / "trace")
    assert [path.name for path in tmp_path.iterdir()] == ["trips.csv"]


def tlc_month(path, pickups, cab="tpep", **columns):
    rows = len(pickups)
    stamps = pa.array([datetime.fromisoformat(pickup) for pickup in pickups], pa.timestamp("us"))
    later = pa.array(
        [datetime.fromisoformat(pickup).replace(minute=40) for pickup in pickups], pa.timestamp("us")
    )
    table = {
        "VendorID": [1] * rows, f"{cab}_pickup_datetime": stamps, f"{cab}_dropoff_datetime": later,
        "passenger_count": pa.array([1.0] * rows), "trip_distance": [2.5] * rows,
        "PULocationID": [142] * rows, "DOLocationID": [236] * rows, "payment_type": [1] * rows,
        "fare_amount": [9.3] * rows, "total_amount": [12.0] * rows,
    } | columns  # fmt: skip
    pq.write_table(pa.table(table), path)


def test_tlc_months_of_different_types_become_one_trace_without_coordinate_rules(spark, tmp_path):
    january, february = (
        tmp_path / "yellow_tripdata_2023-01.parquet",
        tmp_path / "yellow_tripdata_2023-02.parquet",
    )
    tlc_month(
        january,
        [f"2023-01-{day:02d} 10:15:{day:02d}" for day in range(1, 29)]
        + ["2023-01-05 10:15:05", "2023-01-30 10:50:00"],
        trip_distance=[2.5] * 27 + [0.0, 2.5, 2.5],
        passenger_count=pa.array([None] + [1.0] * 29),
    )
    tlc_month(
        february,
        ["2023-02-01 10:15:05", "2023-02-02 10:15:05"],
        VendorID=pa.array([2, 2], pa.int32()),
        passenger_count=pa.array([1, 2]),
        Airport_fee=pa.array([0.0, 1.25]),
    )
    manifest = import_files(spark, "taxi", [january, february], tmp_path / "trace")
    assert manifest["rows"]["by_reason"] == {
        "exact duplicate": 1, "non-positive duration": 1, "non-positive distance": 1,
    }  # fmt: skip
    assert (manifest["edition"], manifest["rows"]["kept"]) == ("tlc_parquet", 29)
    quarantined = quarantine_of(tmp_path / "trace")
    assert list(zip(quarantined["position"], quarantined["reason"], strict=True)) == [
        (27, "non-positive distance"), (28, "exact duplicate"), (29, "non-positive duration"),
    ]  # fmt: skip
    assert json.loads(quarantined["raw"][0])["trip_distance"] == 0.0
    events = events_of(tmp_path / "trace")
    assert set(events["pickup_zone"]) == {142}
    assert events["event_time"].iloc[-1] == pd.Timestamp("2023-02-02 10:40:05")


def test_tlc_rows_that_differ_in_a_column_the_trace_leaves_out_are_no_duplicates(spark, tmp_path):
    """Green cabs, too. The same rate is written 1 in one month and 1.0 in the next, or not at all."""
    months = [tmp_path / f"green_tripdata_2023-0{month}.parquet" for month in (1, 2)]
    stamps = ["2023-01-05 10:15:05"] * 6
    flags, rates = ["N", "N", "Y", "N", None, None], pa.array([1, 2, 1, 1, 1, None])
    tlc_month(months[0], stamps, "lpep", RatecodeID=rates, store_and_fwd_flag=flags)
    tlc_month(months[1], stamps[:2], "lpep", ratecodeid=pa.array([2.0, None]), store_and_fwd_flag=["N", None])
    manifest = import_files(spark, "taxi", months, tmp_path / "trace")
    assert manifest["rows"]["by_reason"] == {"exact duplicate": 3}
    quarantined = quarantine_of(tmp_path / "trace")
    assert list(zip(quarantined["file"], quarantined["position"], strict=True)) == [(0, 3), (1, 0), (1, 1)]
    assert not {"others"} & {*events_of(tmp_path / "trace"), *quarantined}


def test_a_sample_of_a_tlc_month_is_one_batch_in_so_many_and_what_a_survey_looks_at(tmp_path):
    path = tmp_path / "yellow_tripdata_2023-01.parquet"
    tlc_month(path, ["2023-01-05 10:15:05"] * (5 * TLC_BATCH_ROWS))
    (part,) = tlc_parts(path, 0)
    sampled = [rows.table for rows in read_tlc(part, sample_every=3)]
    assert [table["position"][0].as_py() for table in sampled] == [0, 3 * TLC_BATCH_ROWS]
    assert [table.num_rows for table in sampled] == [TLC_BATCH_ROWS] * 2
    assert sampled[0]["reason"].to_pylist()[:3] == [0, 0, 0]
    assert sampled[0]["fare"].null_count == TLC_BATCH_ROWS


def test_all_row_groups_of_a_tlc_month_are_read_empty_ones_or_not(tmp_path):
    whole, path = tmp_path / "whole.parquet", tmp_path / "yellow_tripdata_2023-01.parquet"
    tlc_month(whole, [f"2023-01-05 10:15:{second:02d}" for second in range(12)])
    month = pq.read_table(whole)
    with pq.ParquetWriter(path, month.schema) as writer:
        for first, rows in ((0, 0), (0, 5), (5, 0), (5, 7), (12, 0)):
            writer.write_table(month.slice(first, rows))
    assert pq.read_metadata(path).num_row_groups == 5
    parts = tlc_parts(path, 3)
    assert [(part.file, part.start, part.end) for part in parts] == [(3, 0, 5), (3, 5, 12)]
    tables = [rows.table for part in parts for rows in read_tlc(part)]
    read = pa.concat_tables([table.select(["position", "pickup_time"]) for table in tables])
    assert read["position"].to_pylist() == list(range(12))
    assert read["pickup_time"].to_pylist() == month["tpep_pickup_datetime"].to_pylist()


def test_slices_of_packed_files_hold_as_much_as_those_of_plain_ones(tmp_path):
    """A month of 40 MB in Parquet is some 280 MB in memory, of which a task is to sort a quarter at most."""
    path = tmp_path / "yellow_tripdata_2023-01.parquet"
    tlc_month(path, ["2023-01-05 10:15:05"])
    source = taxi_source([path], TLC_PARQUET)
    with path.open("ab") as file:
        file.truncate(40 << 20)
    assert _slice_count(source, cores=2) == 5
    assert _slice_count(replace(source, edition="foil"), cores=2) == 2


def test_rows_after_a_damaged_gzip_member_are_kept(spark, tmp_path):
    """The first member, of the header alone, is sound; the second has a wrong checksum."""
    lines = [foil(n, dropoff=f"2013-06-08 09:{22 + n % 30}:{n % 59:02d}") for n in range(60)]
    members = [
        gzip.compress("".join(f"{line}\n" for line in some).encode())
        for some in ([FOIL_HEADER], lines[:20], lines[20:])
    ]
    members[1] = members[1][:-8] + bytes(4) + members[1][-4:]
    path = tmp_path / "trips.csv.gz"
    path.write_bytes(b"".join(members))
    manifest = import_files(spark, "taxi", [path], tmp_path / "trace")
    assert manifest["rows"]["by_reason"] == {"corrupt gzip member": 1}
    assert set(events_of(tmp_path / "trace")["taxi_id"]) == {md5(n) for n in range(60)}


@pytest.mark.parametrize("cut", [0.2, 0.5, 0.9, -3])
def test_a_cut_gzip_keeps_the_rows_before(spark, tmp_path, cut):
    lines = [foil(n * n, dropoff=f"2013-06-08 09:{22 + n % 30}:{n % 59:02d}") for n in range(800)]
    content = gzip.compress("".join(f"{line}\n" for line in lines).encode())
    path = tmp_path / "cut.csv.gz"
    path.write_bytes(content[: int(cut * len(content)) if cut > 0 else cut])
    manifest = import_files(spark, "taxi", [path], tmp_path / "trace")
    assert manifest["rows"]["by_reason"] == {"truncated gzip member": 1}
    (lost,) = quarantine_of(tmp_path / "trace").itertuples()
    kept = manifest["rows"]["kept"]
    assert sum(len(line) + 1 for line in lines[:kept]) == lost.position
    assert (lines[kept] if kept < len(lines) else "").startswith(lost.raw)
    assert set(events_of(tmp_path / "trace")["taxi_id"]) == {md5(n * n) for n in range(kept)}
