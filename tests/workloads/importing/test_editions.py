"""Each edition is recognised from a few lines, and what is none is described."""

import gzip

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fogscale.errors import FogscaleError
from tests.support.taxi_files import FOIL_HEADER, debs, donovan_work, foil, ride
from workloads.importing.editions import (
    DEBS2015,
    DONOVAN_WORK,
    FLINK_RIDES,
    FOIL,
    TLC_PARQUET,
    edition_of,
    has_header,
    recognise,
)

HEADER = FOIL_HEADER.replace(" ", "")
START = ride(6, "START", "2013-01-01 00:00:00")


def write(path, *lines):
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


@pytest.mark.parametrize(
    ("lines", "edition", "header"),
    [
        pytest.param([FOIL_HEADER, foil(1)], FOIL, True, id="FOIL"),
        pytest.param([foil(1)], FOIL, False, id="FOIL without its header"),
        pytest.param([FOIL_HEADER], FOIL, True, id="FOIL without rows: a space after each comma"),
        pytest.param([HEADER], DONOVAN_WORK, True, id="Donovan & Work without rows"),
        pytest.param([FOIL_HEADER, "", "what is this?"], FOIL, True, id="FOIL without a sound row"),
        pytest.param([HEADER, donovan_work(1)], DONOVAN_WORK, True, id="Donovan & Work"),
        pytest.param([FOIL_HEADER, donovan_work(1)], DONOVAN_WORK, True, id="ids say more than spaces"),
        pytest.param(["what is this?", "", debs(1)], DEBS2015, False, id="DEBS 2015 after malformed lines"),
        pytest.param([START], FLINK_RIDES, False, id="Flink rides"),
        pytest.param(["\ufeff" + HEADER, foil(1)], FOIL, True, id="with a byte order mark"),
    ],
)
def test_an_edition_is_recognised(tmp_path, lines, edition, header):
    path = write(tmp_path / "file", *lines)
    assert edition_of(path) is edition
    assert has_header(path) is header
    content = path.read_bytes()
    first, rest = content[: content.index(b"\n") + 1], content[content.index(b"\n") + 1 :]
    whole = gzip.compress(content)
    for zipped in (
        whole,
        whole[:-8] + bytes(4) + whole[-4:],  # with a wrong checksum
        gzip.compress(b"") + whole,
        gzip.compress(first) + gzip.compress(rest),
    ):
        path.write_bytes(zipped)
        assert edition_of(path) is edition
        assert has_header(path) is header


@pytest.mark.parametrize("cab", ["tpep", "lpep"])
def test_a_parquet_file_of_the_tlc_is_recognised(tmp_path, cab):
    path = tmp_path / "yellow_tripdata_2023-01.parquet"
    pq.write_table(pa.table({f"{cab}_pickup_datetime": [1], f"{cab}_dropoff_datetime": [2]}), path)
    assert edition_of(path) is TLC_PARQUET


def test_another_parquet_file_is_described(tmp_path):
    path = tmp_path / "file.parquet"
    pq.write_table(pa.table({"a": [1], "b": [2]}), path)
    with pytest.raises(FogscaleError, match=r"Parquet file with the columns a, b, .* tpep_pickup_datetime"):
        edition_of(path)


def test_half_a_parquet_file_is_no_edition(tmp_path):
    path = tmp_path / "file.parquet"
    pq.write_table(pa.table({"a": list(range(1000))}), path)
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(FogscaleError, match=r"no whole Parquet file .* fetch it again"):
        edition_of(path)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        pytest.param(
            "a,b,c\n1,2,3\n", r"first line has 3 field\(s\) and reads 'a,b,c'; known are: FOIL", id="CSV"
        ),
        pytest.param(
            "medallion, hack_license, vendor_id, pickup_datetime, payment_type, fare_amount\n",
            "file of fares; the trips are in the trip_data files",
            id="fares",
        ),
        pytest.param("\x00\x01\x02", "first line has 1 field", id="binary"),
        pytest.param(f"{FOIL_HEADER}, tip\n", r"first line has 15 field\(s\)", id="one field too many"),
        pytest.param("", "is empty: leave it out", id="empty"),
        pytest.param("\x1f\x00", "first line has 1 field", id="half a magic number"),
    ],
)
def test_what_is_no_edition_is_described(tmp_path, content, expected):
    path = tmp_path / "file"
    path.write_text(content)
    with pytest.raises(FogscaleError, match=expected):
        edition_of(path)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(gzip.compress(b""), id="nothing"),  # named: it holds the time at which it was made
        pytest.param(b"\x1f\x8b\x08" + bytes(40), id="zeros"),
    ],
)
def test_a_gzip_of_nothing_is_told_apart_from_an_empty_file(tmp_path, content):
    path = tmp_path / "file.gz"
    path.write_bytes(content)
    with pytest.raises(FogscaleError, match=r"file\.gz holds nothing that can be gunzipped: leave it out"):
        edition_of(path)


def test_files_of_different_editions_are_refused_in_one_line(tmp_path):
    files = [write(tmp_path / "a.csv", FOIL_HEADER, foil(1)), write(tmp_path / "b.csv", debs(1))]
    with pytest.raises(FogscaleError, match=r"a\.csv is FOIL.*b\.csv is DEBS 2015.*import each alone"):
        recognise(files)
