"""Contention: replicas beyond the cores of their node slow each other down, and one that leaves helps all."""

import numpy as np
import pytest

from controller.experiment import Run
from controller.model import Node, Operator, Plan, Topology
from controller.network import RttMatrix
from controller.policies import create
from controller.run import prepare
from controller.testbeds.simulated.testbed import SimulatedTestbed
from tests.support.jobs import placed
from tests.support.runs import constant, load_csv, run_values, simulated, simulation

NEAR_AND_FAR = RttMatrix(("n1", "n2", "n3"), ((0, 2, 60), (2, 0, 60), (60, 60, 0)))


def crowded(shared_cores, placement, rate_per_s=80):
    """Two operators of 100/s a replica; nodes have one core and two slots."""
    nodes = tuple(Node(name, 1, 2048, slots=2) for name in ("n1", "n2", "n3"))
    operators = (Operator("source", n_max=1), Operator("map", ("source",), n_max=2))
    capacity = {name: {"law": "linear", "per_replica_per_s": 100} for name in ("source", "map")}
    settings = simulation(
        capacity=capacity,
        reconfiguration={"style": "pause", "duration_s": 2},
        shared_cores=shared_cores,
        buffering="queues",
    )
    arrivals = {"source": np.array(constant(rate_per_s, 600), dtype=np.int64)}
    topology = Topology(nodes, operators, NEAR_AND_FAR)
    return SimulatedTestbed(topology, placement, settings, arrivals, np.random.default_rng(1))


TOGETHER = {"source": ("n1",), "map": ("n1",)}


def test_two_replicas_on_one_core_do_half_as_much_each():
    testbed = crowded(True, TOGETHER)
    testbed.wait(300)
    seen = testbed.observe()
    assert seen.operators["source"].throughput_per_s == pytest.approx(50)
    assert seen.nodes["n1"].cpu_ratio == pytest.approx(1.0)
    assert seen.nodes["n2"].cpu_ratio == 0.0


def test_without_contention_they_do_not_notice_each_other():
    testbed = crowded(False, TOGETHER)
    testbed.wait(300)
    assert testbed.observe().operators["map"].throughput_per_s == pytest.approx(80)


def test_one_that_moves_away_gives_both_a_core():
    testbed = crowded(True, TOGETHER)
    testbed.wait(60)
    testbed.apply(Plan({"source": ("n1",), "map": ("n2",)}, reason="crowded"))
    testbed.wait(300)
    seen = testbed.observe()
    # The backlog of 60 · 30 records is gone after 90 s of 20/s more than come.
    assert seen.operators["source"].throughput_per_s == pytest.approx(80)
    assert seen.nodes["n2"].cpu_ratio == pytest.approx(0.8)


def test_edf_moves_a_replica_from_a_crowded_node_to_a_calm_one():
    testbed = crowded(True, TOGETHER, rate_per_s=45)  # 90 % of half a core each
    policy = create(
        "edf", {"local": "threshold", "high_ratio": 0.95, "migration": True, "overloaded_ratio": 0.8}
    )
    policy.start(testbed.observe().topology, np.random.default_rng(3))
    for _ in range(8):
        testbed.wait(30)
        plan = policy.decide(testbed.observe())
        if plan is not None:
            testbed.apply(plan)
    ends = testbed.observe()
    assert {node for nodes in ends.placement.values() for node in nodes} != {"n1"}
    assert ends.operators["source"].cpu_ratio == pytest.approx(0.45)
    assert max(node.cpu_ratio for node in ends.nodes.values()) < 0.8


def test_a_node_with_enough_cores_is_no_slower():
    plain, shared = (simulated(constant(150, 120), shared_cores=each) for each in (False, True))
    for testbed in (plain, shared):
        testbed.wait(90)
    assert plain.observe().operators == shared.observe().operators
    assert placed("fog1", "fog2") == shared.observe().placement


def test_the_setting_reaches_a_run(tmp_path):
    values = run_values("static", load_csv(tmp_path, [50.0] * 3))
    values["testbed"] |= {"shared_cores": True, "waiting_lines": "each"}
    prepared = prepare(Run.model_validate(values))
    assert prepared.run.testbed.shared_cores
    assert prepared.run.testbed.waiting_lines == "each"
