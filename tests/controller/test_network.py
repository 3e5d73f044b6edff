"""Round trips: from a matrix, from coordinates, from delays, uniform, and slowed down."""

import copy

import pytest

from controller.network import RttCoordinates, RttDelays, RttMatrix, RttScaled, RttUniform

MATRIX = RttMatrix(("a", "b", "c"), ((0, 10, 20), (10, 0, 30), (20, 30, 0)))
COORDINATES = RttCoordinates({"a": (0.0, 0.0), "b": (3.0, 4.0), "c": (0.0, 4.0)})
DELAYS = RttDelays({"a": 0.0, "b": 5.0, "c": 100.0})
ALL = [MATRIX, COORDINATES, DELAYS, RttUniform(7.0), RttScaled(DELAYS, 3.0)]


@pytest.mark.parametrize(
    ("rtt_ms", "expected"),
    [
        pytest.param(MATRIX, {"ab": 10, "ac": 20, "bc": 30}, id="matrix"),
        pytest.param(COORDINATES, {"ab": 5, "ac": 4, "bc": 3}, id="a 3-4-5 triangle"),
        pytest.param(DELAYS, {"ab": 5, "ac": 100, "bc": 100}, id="the larger delay counts"),
        pytest.param(RttUniform(7.0), {"ab": 7, "ac": 7, "bc": 7}, id="uniform"),
        pytest.param(RttUniform(), {"ab": 0, "ac": 0, "bc": 0}, id="no network at all"),
        pytest.param(RttScaled(MATRIX, 2.5), {"ab": 25, "ac": 50, "bc": 75}, id="2.5 times as slow"),
        pytest.param(RttScaled(RttScaled(MATRIX, 2), 2), {"ab": 40, "ac": 80, "bc": 120}, id="twice, twice"),
    ],
)
def test_round_trips(rtt_ms, expected):
    assert {a + b: rtt_ms(a, b) for a, b in ("ab", "ac", "bc")} == expected


@pytest.mark.parametrize("rtt_ms", ALL, ids=lambda rtt: type(rtt).__name__)
def test_to_itself_it_takes_no_time(rtt_ms):
    assert [rtt_ms(node, node) for node in "abc"] == [0, 0, 0]


@pytest.mark.parametrize("rtt_ms", ALL, ids=lambda rtt: type(rtt).__name__)
def test_there_and_back_is_the_same_both_ways(rtt_ms):
    assert all(rtt_ms(a, b) == rtt_ms(b, a) for a in "abc" for b in "abc")


def test_uniform_round_trips_hold_for_nodes_created_later():
    assert RttUniform(7.0)("a", "elastic-1") == 7


@pytest.mark.parametrize("rtt_ms", ALL, ids=lambda rtt: type(rtt).__name__)
def test_equal_values_are_equal_networks(rtt_ms):
    """The journal writes a topology again only when it has changed."""
    assert copy.deepcopy(rtt_ms) == rtt_ms
    assert RttScaled(rtt_ms, 2.0) != rtt_ms
