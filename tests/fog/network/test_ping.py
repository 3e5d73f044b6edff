from __future__ import annotations

import subprocess

import pytest

from controller.network import RttMatrix
from fog.network.ping import Measured, compared, late_ones_again, ping_script, round_trips_ms
from fogscale.errors import FogscaleError

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


@pytest.mark.parametrize(("seen_longer_ms", "holds"), [(0.4, True), (1.6, False)])
def test_only_late_pairs_are_looked_at_again_and_longer(seen_longer_ms: float, holds: bool) -> None:
    """Busy for a moment, or for long; what was in time or silent stays as it was."""
    fine, silent = Measured("a", "b", 50, 50.2), Measured("a", "d", 5, None)
    asked: list[list[str]] = []

    def look_longer(peers: list[str]) -> list[Measured]:
        asked.append(peers)
        return [Measured("a", "c", 0, seen_longer_ms)]

    found = late_ones_again([fine, Measured("a", "c", 0, 1.6), silent], look_longer)
    assert asked == [["c"]]
    assert found == [fine, Measured("a", "c", 0, seen_longer_ms), silent]
    assert found[1].holds is holds


def test_nobody_is_asked_again_where_all_is_in_time() -> None:
    def never(_peers: list[str]) -> list[Measured]:
        raise AssertionError

    assert late_ones_again([Measured("a", "b", 50, 50.2)], never) == [Measured("a", "b", 50, 50.2)]


def test_a_target_that_is_no_address_reaches_no_shell() -> None:
    with pytest.raises(FogscaleError, match="is no address"):
        ping_script(["10.0.0.1", "10.0.0.2; reboot"])
