"""One line tells how a real run stands."""

import time

import pytest

from controller.model import Sample
from controller.testbeds.flink.footprint import Footprint
from controller.testbeds.flink.status import MOST_CHARACTERS, Decision, status_line


def sample(time_s: float, offered: int, processed: int, replicas: int) -> Sample:
    return Sample(time_s, offered, processed, offered - processed, {"map": replicas, "source": 1}, 0)


def test_it_tells_load_replicas_lag_and_the_last_decision():
    before, now = sample(100, 10_000, 9_000, 2), sample(105, 11_000, 9_500, 2)

    line = status_line((before, now), ["map"], Decision(75, "map 2→3", "…"))

    assert line == "200/s  map 2  lag 1,500  0:01:15 map 2→3 …"


def test_it_says_what_it_knows_before_there_is_a_rate():
    assert status_line((), ["map"], None) == "starting"
    assert status_line((sample(0, 0, 0, 0),), ["map"], None) == "map 0  lag 0"


def test_it_fits_beside_the_bar_whatever_the_job_is_called():
    names = [f"operator_{number}" for number in range(20)]

    assert len(status_line((sample(0, 0, 0, 1),), names, None)) <= MOST_CHARACTERS


def test_the_controller_knows_what_it_takes_itself():
    footprint, begun_s, begun_cpu_s = Footprint(), time.monotonic(), time.process_time()
    ballast = bytearray(60_000_000)
    ballast[::4096] = b"x" * len(ballast[::4096])  # only pages that were written are resident
    for _ in range(200_000):
        hash(ballast[0])

    told = footprint.as_dict()

    assert 60 < told["resident_mb"] < 4000
    ratio = (time.process_time() - begun_cpu_s) / (time.monotonic() - begun_s)
    assert told["core_ratio"] == pytest.approx(ratio, rel=0.2, abs=0.02)  # whatever the machine left us
