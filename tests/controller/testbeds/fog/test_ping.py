from __future__ import annotations

import subprocess

import pytest

from controller.network import RttMatrix
from controller.testbeds.fog.ping import Measured, compared, ping_script, round_trips_ms

OUTPUT = """\
PING 10.0.0.2 (10.0.0.2) 56(84) bytes of data.
64 bytes from 10.0.0.2: icmp_seq=1 ttl=64 time=90.1 ms
64 bytes from 10.0.0.2: icmp_seq=2 ttl=64 time=50.2 ms
64 bytes from 10.0.0.2: icmp_seq=3 ttl=64 time=50.4 ms
64 bytes from 10.0.0.2: icmp_seq=4 ttl=64 time=57.0 ms

--- 10.0.0.2 ping statistics ---
4 packets transmitted, 4 received, 0% packet loss, time 3ms
PING 10.0.0.3 (10.0.0.3) 56(84) bytes of data.

--- 10.0.0.3 ping statistics ---
4 packets transmitted, 0 received, 100% packet loss, time 3ms
"""
MATRIX = RttMatrix(("a", "b", "c"), ((0, 50, 20), (50, 0, 0), (20, 0, 0)))
ADDRESSES = {"a": "10.0.0.1", "b": "10.0.0.2", "c": "10.0.0.3"}


def test_the_median_counts_without_the_first_answer_which_waited_for_arp() -> None:
    assert round_trips_ms(OUTPUT) == {"10.0.0.2": 50.4}


def test_silence_is_not_a_round_trip_of_zero() -> None:
    near, silent = compared("a", OUTPUT, MATRIX, ADDRESSES)
    assert near.holds
    assert not silent.holds
    assert silent.complaint == "a-c: no answer instead of 20 ms"


@pytest.mark.parametrize(
    ("wanted_ms", "measured_ms", "holds"),
    [
        (0, 1.0, True),
        (0, 1.1, False),
        (20, 21.0, True),
        (20, 18.9, False),
        (300, 309, True),
        (300, 290.9, False),
    ],
)
def test_a_pair_holds_within_a_millisecond_or_three_per_cent(
    wanted_ms: float, measured_ms: float, holds: bool
) -> None:
    assert Measured("a", "b", wanted_ms, measured_ms).holds is holds


def test_the_script_is_one_a_shell_understands() -> None:
    for addresses in ([], ["10.0.0.2", "10.0.0.3"]):
        subprocess.run(["sh", "-n", "-c", ping_script(addresses)], check=True)
