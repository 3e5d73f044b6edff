"""The rows of a calibration: kept as they come, whatever tears the file; and what stamps say."""

from __future__ import annotations

import pytest

from controller.calibration.points import OWN, Restart, Rows, Wanted
from controller.calibration.session import uniform_rows
from controller.calibration.stamps import Stamps
from controller.testbeds.flink.broker import Left
from fogscale.errors import FogscaleError
from tests.controller.calibration.test_fitting import point

WANTED = [Wanted(replicas=n, rtt_ms=rtt) for rtt in (5.0, OWN) for n in (2, 1)]


def test_what_was_measured_is_not_measured_again(tmp_path):
    rows = Rows(tmp_path / "a" / "rows.jsonl")
    assert rows.missing(WANTED) == WANTED
    rows.add(point(2, 5.0, 150))
    rows.add(Restart(style="restart", before=2, after=3, silent_s=31.5))
    again = Rows(tmp_path / "a" / "rows.jsonl")
    assert again.missing(WANTED) == WANTED[1:]
    assert (again.points[0].rate_per_s, again.restarts[0].silent_s) == (150, 31.5)


def test_a_torn_line_is_measured_again_and_the_next_row_is_whole(tmp_path):
    path = tmp_path / "rows.jsonl"
    rows = Rows(path)
    rows.add(point(2, 5.0, 150))
    with path.open("a") as file:
        file.write('{"kind": "point", "repl')
    assert len(Rows(path).points) == 1
    Rows(path).add(point(1, 5.0, 80))
    assert [each.rate_per_s for each in Rows(path).points] == [150, 80]


def test_where_the_first_line_is_torn_nothing_of_it_is_left(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"kind": "point", "repl')
    Rows(path).add(point(1, 5.0, 80))
    assert [each.rate_per_s for each in Rows(path).points] == [80]


@pytest.mark.parametrize("line", [b'{"kind": "point"}', b"\xff\xfe", b"[]", b"", b"[" * 100_000])
def test_a_damaged_line_is_named(tmp_path, line):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(line + b"\n")
    with pytest.raises(FogscaleError, match=r"rows\.jsonl, line 1 is damaged"):
        _ = Rows(path).points


def test_round_trips_are_the_same_between_all_but_server_and_services():
    rows = {"nodes": ["server1", "services1", "fog1", "fog2"]}
    rows |= {
        "server1": [0, 0, 5, 50],
        "services1": [0, 0, 5, 50],
        "fog1": [5, 5, 0, 50],
        "fog2": [50, 50, 50, 0],
    }
    assert uniform_rows(rows, 300.0) == {
        "nodes": ["server1", "services1", "fog1", "fog2"],
        "server1": [0, 0, 300, 300],
        "services1": [0, 0, 300, 300],
        "fog1": [300, 300, 0, 300],
        "fog2": [300, 300, 300, 0],
    }


def stamps_at(*times_s: float) -> Stamps:
    stamps = Stamps()
    stamps.add(Left(number, 0, int(time_s * 1000)) for number, time_s in enumerate(times_s))
    return stamps


def test_rates_and_silences_follow_from_stamps_in_any_order():
    stamps = stamps_at(1.0, 3.0, 2.0, 12.0, 13.0)
    assert stamps.rate_per_s(0.5, 3.5) == pytest.approx(1.0)
    assert stamps.between(1.0, 2.0) == 1
    assert stamps.longest_gap(2.5, 12.5) == (9.0, 12.0)
    assert stamps.first_after(3.0) == 12.0
    assert stamps.first_after(13.0) is None


def test_a_job_that_gets_warm_in_ten_seconds():
    """10/s for 10 s, then 20/s."""
    slow = [i / 10 for i in range(100)]
    warm = [10 + i / 20 for i in range(600)]
    share, seconds = stamps_at(*slow, *warm).catch_up(0.0, 40.0, 20.0)
    assert (share, seconds) == (pytest.approx(0.5), 10.0)


def test_a_job_that_is_warm_at_once():
    assert stamps_at(*(i / 20 for i in range(600))).catch_up(0.0, 25.0, 20.0) == (1.0, 0.0)
