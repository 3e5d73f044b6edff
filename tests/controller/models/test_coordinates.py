"""Vivaldi: positions from measured round trips."""

from math import dist, nan

import numpy as np
import pytest

from controller.models.coordinates import Vivaldi
from fogscale.errors import FogscaleError

PLACES = {f"node{i}": (float(7 * (i % 4)), float(11 * (i // 4))) for i in range(12)}
# Five sites in ms, measured: not of any plane.
MEASURED = np.array(
    [[0, 12, 45, 80, 82], [12, 0, 40, 78, 81], [45, 40, 0, 60, 64], [80, 78, 60, 0, 9], [82, 81, 64, 9, 0]]
)


def in_a_plane(a, b):
    return dist(PLACES[a], PLACES[b])


def measured(a, b):
    return float(MEASURED[int(a), int(b)])


def median_error(nodes, rtt_ms, predicted_ms):
    """By how much predictions are off in the median over all pairs, relative to the round trips."""
    pairs = [(a, b) for i, a in enumerate(nodes) for b in list(nodes)[:i]]
    return float(np.median([abs(predicted_ms(a, b) - rtt_ms(a, b)) / rtt_ms(a, b) for a, b in pairs]))


def converged(nodes, rtt_ms, rounds=200, seed=1):
    vivaldi = Vivaldi(3, np.random.default_rng(seed))
    for _ in range(rounds):
        vivaldi.gossip(nodes, rtt_ms)
    return vivaldi


def test_two_nodes_move_apart_by_hand():
    """Both are unsure (error 1), so the first moves by 0.25 · 0.5 · 10 ms."""
    vivaldi = Vivaldi(2, np.random.default_rng(1))
    vivaldi.measured("a", "b", 10.0)
    assert vivaldi.distance_ms("a", "b") == pytest.approx(1.25)


@pytest.mark.parametrize("seed", range(3))
def test_distances_in_a_plane_are_found(seed):
    vivaldi = converged(list(PLACES), in_a_plane, seed=seed)
    assert median_error(PLACES, in_a_plane, vivaldi.distance_ms) < 0.05


def test_a_measured_matrix_is_predicted_within_a_tenth():
    nodes = [str(i) for i in range(5)]
    early, late = converged(nodes, measured, rounds=2), converged(nodes, measured)
    assert median_error(nodes, measured, late.distance_ms) < 0.1
    assert median_error(nodes, measured, early.distance_ms) > 0.3


def test_a_node_that_joins_finds_its_place():
    vivaldi = converged(list(PLACES)[:8], in_a_plane)
    for _ in range(200):
        vivaldi.gossip(list(PLACES), in_a_plane)
    assert vivaldi.distance_ms("node11", "node0") == pytest.approx(in_a_plane("node11", "node0"), rel=0.1)


def test_what_is_no_time_moves_nobody():
    vivaldi = converged(list(PLACES), in_a_plane, rounds=20)
    before = vivaldi.distance_ms("node0", "node5")
    for bad in (nan, -1.0, float("inf")):
        vivaldi.measured("node0", "node5", bad)
    assert vivaldi.distance_ms("node0", "node5") == before


def test_a_node_alone_gossips_with_nobody():
    Vivaldi(2, np.random.default_rng(1)).gossip(["only"], lambda _a, _b: 1.0)


def test_no_dimensions_are_refused():
    with pytest.raises(FogscaleError, match="give at least 1"):
        Vivaldi(0, np.random.default_rng(1))
