"""Binary logs of the World Cup: every bit where it belongs, and damaged files as far as they go."""

import gzip
import struct

import numpy as np
import pytest

from fogscale.errors import FogscaleError
from tests.support.imports import events_of, import_files, quarantine_of
from workloads.importing.streams import parts_of
from workloads.importing.worldcup98 import check_logs, read_records

START_S = 897_516_000  # 10 June 1998, 22:00 GMT
FIRST_REAL = bytes.fromhex("3548ed690000872800000c88000060a000420160")


def record(stamp_s, client=1, item=2, size=3, method=0, status=0x42, kind=1, server=0x60):
    return struct.pack(">IIIIBBBB", stamp_s, client, item, size, method, status, kind, server)


def no_log(*, is_zipped):
    content = b"time,count\n" + b"".join(b"2013-05-01 00:%02d:00,384\n" % minute for minute in range(60))
    return gzip.compress(content) if is_zipped else content


@pytest.mark.parametrize(
    ("content", "begins"),
    [
        pytest.param(no_log(is_zipped=False), "21 November 2031", id="a CSV"),
        pytest.param(no_log(is_zipped=True), "21 November 2031", id="a gzipped CSV"),
        pytest.param(struct.pack("<IIIIBBBB", 893971817, *range(7)) * 9, "", id="little-endian records"),
        pytest.param(bytes(400), "01 January 1970", id="zeros"),
    ],
)
def test_what_is_no_log_is_refused(tmp_path, content, begins):
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(FogscaleError, match=f"is no World Cup log: read as one, it begins on .*{begins}"):
        check_logs([path])


def test_logs_are_let_pass_also_if_they_are_damaged_or_empty(tmp_path):
    sound = log(2000)
    contents = {
        "log": sound, "log.gz": gzip.compress(sound), "half": sound[:7], "empty": b"",
        "cut.gz": gzip.compress(sound)[:300], "some odd": record(0) * 400 + sound, "first and last":
        FIRST_REAL + record(901_500_000),
    }  # fmt: skip
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    check_logs([tmp_path / name for name in contents])


def log(count, start_s=START_S):
    rng = np.random.default_rng(count)
    steps = np.cumsum(rng.integers(0, 2, count)) + start_s
    return b"".join(record(int(stamp), int(rng.integers(1, 50)), n) for n, stamp in enumerate(steps))


@pytest.mark.parametrize("name", ["log.bin", "log.gz"])
def test_batches_hold_what_struct_reads(tmp_path, name):
    content = (
        log(70_000) + FIRST_REAL + record(0xFFFFFFFF, 0xFFFFFFFE, 0x80000000, 0xFFFFFFFF, 255, 255, 254, 253)
    )
    path = tmp_path / name
    path.write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    batches = [rows for part in parts_of(path, 5, 400_000, 20) for rows in read_records(part)]
    found = [tuple(row.values()) for rows in batches for row in rows.table.to_pylist()]
    assert found == [
        (*values, 20 * number, 0) for number, values in enumerate(struct.iter_unpack(">IIIIBBBB", content))
    ]
    hexadecimal = [text for rows in batches for text in rows.raw(np.arange(rows.table.num_rows))]
    assert bytes.fromhex("".join(hexadecimal)) == content


@pytest.mark.spark
def test_the_bits_of_a_record_are_taken_apart(spark, tmp_path):
    path = tmp_path / "wc_day5_1"
    odd = record(893971818, 7, 8, 0xFFFFFFFF, 2, 0x80 | 13, 0, 0x25)
    path.write_bytes(FIRST_REAL + odd)
    manifest = import_files(spark, "worldcup98", [path], tmp_path / "trace")
    assert (manifest["start"], manifest["span_s"]) == ("1998-04-30T21:30:17+00:00", 2)
    first, second = events_of(tmp_path / "trace").to_dict("records")
    assert first | {"event_time": None} == {
        "event_time": None, "client": 34600, "object": 3208, "size_bytes": 24736, "method": "GET",
        "status": 200, "version": "HTTP/1.0", "type": "IMAGE", "region": "Paris", "server": 0,
    }  # fmt: skip
    assert np.isnan(second.pop("size_bytes"))
    assert second | {"event_time": None} == {
        "event_time": None, "client": 7, "object": 8, "method": "POST", "status": 304, "version": "HTTP/1.1",
        "type": "HTML", "region": "Plano", "server": 5,
    }  # fmt: skip


@pytest.mark.spark
def test_damage_is_quarantined_and_stops_nothing(spark, tmp_path):
    """A half record, a gzip cut in mid-record, an empty file, and a stamp of another year."""
    content = log(3000)
    half, cut, empty, stray = (tmp_path / name for name in ("half.bin", "cut.gz", "empty.gz", "stray"))
    half.write_bytes(content[: 20 * 500 + 7])
    compressed = gzip.compress(content)
    cut.write_bytes(compressed[: len(compressed) // 2])
    empty.write_bytes(gzip.compress(b""))
    stray.write_bytes(content[: 20 * 900] + record(START_S - 365 * 86_400, 9))
    manifest = import_files(spark, "worldcup98", [half, cut, empty, stray], tmp_path / "trace")
    assert manifest["rows"]["by_reason"] == {
        "truncated gzip member": 1, "half record": 1, "stamp out of span": 1,
    }  # fmt: skip
    rows = quarantine_of(tmp_path / "trace").to_dict("records")
    assert [(row["file"], row["reason"]) for row in rows] == [
        (0, "half record"), (1, "truncated gzip member"), (3, "stamp out of span"),
    ]  # fmt: skip
    assert (rows[0]["position"], rows[0]["raw"]) == (10_000, content[10_000:10_007].hex())
    whole = rows[1]["position"] // 20
    assert rows[1]["raw"] == content[20 * whole : 20 * whole + len(rows[1]["raw"]) // 2].hex()
    assert rows[2]["raw"] == record(START_S - 365 * 86_400, 9).hex()
    assert manifest["rows"]["kept"] == 500 + whole + 900
    assert events_of(tmp_path / "trace")["event_time"].is_monotonic_increasing


@pytest.mark.spark
def test_records_after_a_damaged_gzip_member_are_kept(spark, tmp_path):
    content = log(300)
    members = [gzip.compress(some) for some in (content[:1000], content[1000:3007], content[4000:])]
    members[1] = members[1][:-8] + bytes(4) + members[1][-4:]
    path = tmp_path / "wc_day46_1.gz"
    path.write_bytes(b"".join(members))
    manifest = import_files(spark, "worldcup98", [path], tmp_path / "trace")
    assert manifest["rows"]["by_reason"] == {"corrupt gzip member": 1}
    assert events_of(tmp_path / "trace")["object"].tolist() == [*range(150), *range(200, 300)]


@pytest.mark.spark
def test_the_same_request_twice_in_a_second_is_two_requests(spark, tmp_path):
    path = tmp_path / "log"
    path.write_bytes(record(START_S) * 3)
    assert import_files(spark, "worldcup98", [path], tmp_path / "trace")["rows"]["kept"] == 3
