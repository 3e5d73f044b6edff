"""Initial placement against all placements there are."""

from collections import Counter
from itertools import product

import numpy as np
import pytest

from controller.initial_placement import Way, quickest, way_of
from controller.model import Node, Operator, Topology
from controller.network import RttMatrix, RttUniform
from controller.topology import start_placement
from fogscale.errors import FogscaleError

DIAMOND = (
    Operator("source"),
    Operator("left", ("source",)),
    Operator("right", ("source",)),
    Operator("sink", ("left", "right")),
)


def matrix(names, *rows):
    return RttMatrix(names, rows)


def random_topology(rng, operators):
    """Three or four nodes with one to three slots, any round trips, triangle inequality or not."""
    names = tuple(f"n{number}" for number in range(rng.integers(3, 5)))
    half = np.triu(rng.integers(1, 100, (len(names), len(names))), 1)
    rtts_ms = tuple(map(tuple, (half + half.T).astype(float).tolist()))
    nodes = tuple(Node(name, 4, 2048, slots=int(rng.integers(1, 4))) for name in names)
    return Topology(nodes, operators, RttMatrix(names, rtts_ms))


def all_placements(topology, pinned, replicas):
    """Every way to give each missing replica a node, as far as slots allow."""
    missing = [name for name in pinned for _ in range(replicas.get(name, 0) - len(pinned[name]))]
    slots = {node.name: node.slots for node in topology.nodes}
    for nodes in product(slots, repeat=len(missing)):
        placement = {name: list(given) for name, given in pinned.items()}
        for name, node in zip(missing, nodes, strict=True):
            placement[name].append(node)
        taken = Counter(node for given in placement.values() for node in given)
        if all(taken[node] <= slots[node] for node in taken):
            yield {name: tuple(given) for name, given in placement.items()}


def test_a_way_is_worked_out_by_hand():
    """source on a; left on a and b; right on b; sink on c. a–b 10, a–c 40, b–c 20 ms there and back."""
    names = ("a", "b", "c")
    topology = Topology(
        tuple(Node(name, 4, 2048, slots=9) for name in names),
        DIAMOND,
        matrix(names, (0, 10, 40), (10, 0, 20), (40, 20, 0)),
    )
    placement = {"source": ("a",), "left": ("a", "b"), "right": ("b",), "sink": ("c",)}
    # left: (0 + 10) / 2 / 2 = 2.5, then (40 + 20) / 2 / 2 = 15; right: 5, then 10.
    assert way_of(topology, placement) == Way(17.5, 32.5)


@pytest.mark.parametrize("seed", range(40))
def test_no_other_placement_has_a_shorter_way(seed):
    rng = np.random.default_rng(seed)
    topology = random_topology(rng, DIAMOND)
    room = sum(node.slots for node in topology.nodes)
    replicas = dict.fromkeys(("source", "left", "right", "sink"), 1)
    replicas["left"] += int(rng.integers(0, 2)) if room > 4 else 0
    if room < sum(replicas.values()):
        pytest.skip("fewer slots than operators")
    pinned = dict.fromkeys(replicas, ())
    if seed % 2:  # every other time, the sink has its place
        pinned["sink"] = (topology.nodes[-1].name,)
    best = min(way_of(topology, each) for each in all_placements(topology, pinned, replicas))
    found = quickest(topology, pinned, replicas)
    assert way_of(topology, found) == pytest.approx(best)
    assert {name: len(nodes) for name, nodes in found.items()} == replicas
    taken = Counter(node for nodes in found.values() for node in nodes)
    assert all(taken[node.name] <= node.slots for node in topology.nodes)


def test_a_job_that_fits_on_one_node_stays_on_the_first():
    nodes = tuple(Node(f"n{number}", 4, 2048, slots=4) for number in range(3))
    found = quickest(
        Topology(nodes, DIAMOND, RttUniform(20.0)),
        {operator.name: () for operator in DIAMOND},
        dict.fromkeys((operator.name for operator in DIAMOND), 1),
    )
    assert set(found.values()) == {("n0",)}


def test_a_large_job_is_placed_in_time_and_no_worse_than_one_by_one(monkeypatch):
    """60 replicas on 30 nodes: nobody tries them all."""
    from controller import initial_placement

    operators = tuple(Operator(f"op{i}", (f"op{i - 1}",) if i else ()) for i in range(20))
    names = tuple(f"n{number}" for number in range(30))
    half = np.triu(np.random.default_rng(1).integers(1, 100, (30, 30)), 1)
    rtts_ms = tuple(map(tuple, (half + half.T).astype(float).tolist()))
    topology = Topology(
        tuple(Node(name, 4, 2048, slots=2) for name in names), operators, RttMatrix(names, rtts_ms)
    )
    empty, replicas = {each.name: () for each in operators}, {each.name: 3 for each in operators}
    monkeypatch.setattr(initial_placement, "MOST_TRIED", 0)
    one_by_one = quickest(topology, empty, replicas)
    monkeypatch.setattr(initial_placement, "MOST_TRIED", 100)
    assert way_of(topology, quickest(topology, empty, replicas)) <= way_of(topology, one_by_one)
    assert way_of(topology, one_by_one) < way_of(topology, start_placement(topology, replicas, {}))


def test_an_experiment_chooses_it():
    """Two slots each: in order, the sink comes to lie far away; the quickest way begins on another node."""
    names = ("far", "near1", "near2")
    operators = (Operator("source"), Operator("work", ("source",)), Operator("sink", ("work",)))
    topology = Topology(
        tuple(Node(name, 4, 2048, slots=2) for name in names),
        operators,
        matrix(names, (0, 200, 200), (200, 0, 4), (200, 4, 0)),
    )
    in_order = start_placement(topology, {}, {})
    assert in_order == {"source": ("far",), "work": ("far",), "sink": ("near1",)}
    quick = start_placement(topology, {}, {}, "quickest")
    assert way_of(topology, quick) == Way(2.0, 2.0)
    assert "far" not in {node for nodes in quick.values() for node in nodes}


def test_an_elastic_topology_has_nothing_to_choose_from():
    topology = Topology((), (Operator("source"),), RttUniform(0.0), elastic=True)
    with pytest.raises(FogscaleError, match="use in_order"):
        start_placement(topology, {}, {}, "quickest")
