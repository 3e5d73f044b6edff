"""Gesscale's Algorithms 1–4, worked by hand on single observations."""

from dataclasses import replace

import numpy as np
import pytest

from controller.model import Node, Observation, Operator, OperatorMetrics, Topology
from controller.network import RttUniform
from controller.policies import create
from tests.support.jobs import chain, placed, replicas_of, seen

ALONE = chain(rtt_ms=RttUniform(0.0))  # no network, so that Eq. 2 is easily followed


def started(topology=None, **parameters):
    policy = create("gesscale", parameters)
    policy.start(topology or chain(), np.random.default_rng(1))
    return policy


def overloaded(nodes, throughput_per_s=200.0, topology=None, source_bp=0.9, map_bp=0.0, time_s=0.0):
    """The source is back-pressured by map."""
    return seen(
        nodes,
        time_s=time_s,
        topology=topology,
        source=OperatorMetrics(throughput_per_s=throughput_per_s, back_pressure_ratio=source_bp),
        map=OperatorMetrics(
            offered_rate_per_s=throughput_per_s, throughput_per_s=throughput_per_s, back_pressure_ratio=map_bp
        ),
    )


def calm(nodes, rate_per_s, topology=None, input_per_s=None):
    """Everything that comes is processed."""
    return seen(
        nodes,
        topology=topology,
        source=OperatorMetrics(throughput_per_s=rate_per_s, back_pressure_ratio=0.0),
        map=OperatorMetrics(
            offered_rate_per_s=rate_per_s if input_per_s is None else input_per_s,
            throughput_per_s=rate_per_s,
            back_pressure_ratio=0.0,
        ),
    )


def taught(nodes, throughput_per_s, topology=None, **parameters):
    """A policy that has measured one saturated configuration."""
    policy = started(topology, confirmations=1, **parameters)
    policy.decide(overloaded(nodes, throughput_per_s, topology))
    return policy


# Algorithm 1: the root of back pressure


@pytest.mark.parametrize(
    ("source_bp", "map_bp", "scales"),
    [
        pytest.param(0.9, 0.0, True, id="high above, none itself"),
        pytest.param(0.51, 0.5, True, id="just above one half, exactly one half itself"),
        pytest.param(0.5, 0.0, False, id="exactly one half is not high"),
        pytest.param(0.9, 0.51, False, id="itself back-pressured: the root is further down"),
        pytest.param(0.0, 0.0, False, id="no back pressure at all"),
        pytest.param(None, 0.0, False, id="not measured above"),
        pytest.param(0.9, None, False, id="not measured itself"),
    ],
)
def test_the_root_of_back_pressure_is_scaled(source_bp, map_bp, scales):
    policy = started(confirmations=1)
    plan = policy.decide(overloaded(["fog1", "fog2"], source_bp=source_bp, map_bp=map_bp))
    assert replicas_of(plan) == (3 if scales else None)


def diamond() -> Topology:
    """source → left, right → join, each of which can be scaled."""
    operators = (
        Operator("source", n_max=1),
        Operator("left", ("source",)),
        Operator("right", ("source",)),
        Operator("join", ("left", "right")),
    )
    return Topology(tuple(Node(f"n{i}", 4, 2048) for i in range(8)), operators, RttUniform(1.0))


def diamond_seen(**back_pressure) -> Observation:
    topology = diamond()
    placement = {operator.name: (f"n{i}",) for i, operator in enumerate(topology.operators)}
    operators = {
        name: OperatorMetrics(offered_rate_per_s=100, throughput_per_s=100, back_pressure_ratio=ratio)
        for name, ratio in back_pressure.items()
    }
    return Observation(0, topology, placement, placement, operators)


@pytest.mark.parametrize(
    ("back_pressure", "scaled"),
    [
        pytest.param(
            {"source": 0.9, "left": 0.8, "right": 0.7, "join": 0}, {"join"}, id="all above are high"
        ),
        pytest.param(
            {"source": 0.9, "left": 0.8, "right": 0, "join": 0},
            {"right"},
            id="join has a calm input, right has none",
        ),
        pytest.param({"source": 0.9, "left": 0, "right": 0, "join": 0}, {"left", "right"}, id="two roots"),
    ],
)
def test_all_upstream_operators_must_be_back_pressured(back_pressure, scaled):
    plan = started(diamond(), confirmations=1).decide(diamond_seen(**back_pressure))
    assert {name for name, nodes in plan.placement.items() if len(nodes) == 2} == scaled


def test_back_pressure_must_be_confirmed():
    policy = started()
    assert policy.decide(overloaded(["fog1"])) is None
    assert replicas_of(policy.decide(overloaded(["fog1"]))) == 2


def test_calm_in_between_starts_the_confirmation_over():
    policy = started()
    assert policy.decide(overloaded(["fog1"])) is None
    assert policy.decide(calm(["fog1"], 50)) is None
    assert policy.decide(overloaded(["fog1"])) is None
    assert replicas_of(policy.decide(overloaded(["fog1"]))) == 2


def test_after_a_scale_up_the_next_one_needs_its_own_confirmation():
    policy = started()
    plans = [
        policy.decide(overloaded(nodes)) for nodes in (["fog1"], ["fog1"], ["fog1", "fog2"], ["fog1", "fog2"])
    ]
    assert [replicas_of(plan) for plan in plans] == [None, 2, None, 3]


# Algorithm 3: one more, up to n_max


@pytest.mark.parametrize("throughput_per_s", [10.0, 1e6])
def test_one_replica_is_added_however_large_the_overload(throughput_per_s):
    plan = started(confirmations=1).decide(overloaded(["fog1"], throughput_per_s))
    assert replicas_of(plan) == 2


def test_at_n_max_nothing_is_added():
    topology = chain(n_max=2)
    assert started(topology, confirmations=1).decide(overloaded(["fog1", "fog2"], topology=topology)) is None


def test_at_n_max_the_operator_is_measured_all_the_same():
    """Two saturated replicas do 200, so at 60 records/s one is enough."""
    topology = chain(n_max=2, rtt_ms=RttUniform(0.0))
    policy = taught(["fog1", "fog2"], 200, topology)
    assert replicas_of(policy.decide(calm(["fog1", "fog2"], 60, topology))) == 1


def test_the_nearest_free_node_joins():
    plan = started(confirmations=1).decide(overloaded(["fog1", "fog3"]))
    assert plan.placement == placed("fog1", "fog3", "fog2")


def test_the_reason_tells_what_and_why():
    plan = started(confirmations=1).decide(overloaded(["fog1"], 123.4))
    assert plan.reason == "map +1: saturated at 123 records/s"


def test_operators_that_cannot_be_scaled_are_left_alone():
    """The sink is the root, but has n_max 1; the source has no upstream."""
    observation = seen(
        ["fog1"],
        source=OperatorMetrics(throughput_per_s=100, back_pressure_ratio=0.9),
        map=OperatorMetrics(throughput_per_s=100, back_pressure_ratio=0.9),
    )
    assert started(confirmations=1).decide(observation) is None


# Algorithms 2 and 4: as few as cover the input

FOUR = ["fog1", "fog2", "fog3", "fog4"]


def test_without_a_model_nothing_is_removed():
    assert started().decide(calm(FOUR, 1)) is None


@pytest.mark.parametrize(
    ("rate_per_s", "expected"),
    [
        # Four replicas do 400, one does 100.
        pytest.param(281, None, id="29.75 % spare"),
        pytest.param(280, 3, id="exactly 30 % spare, and 300 cover 280"),
        pytest.param(210, 3, id="300 cover 210 with 30 % spare, but 200 do not"),
        pytest.param(200, 2, id="two at once: 300 have 33 % spare, 200 just cover it"),
        pytest.param(141, 2, id="200 have 29.5 % spare: enough"),
        pytest.param(100, 1, id="three at once"),
        pytest.param(5, 1, id="never below n_min"),
        pytest.param(0, 1, id="not even without input"),
    ],
)
def test_replicas_are_removed_while_the_others_cover_the_input(rate_per_s, expected):
    policy = taught(FOUR, 400, ALONE)
    assert replicas_of(policy.decide(calm(FOUR, rate_per_s, ALONE))) == expected


def test_what_remains_must_cover_what_is_offered_not_what_is_processed():
    """Only 100 are processed, but 250 are offered: three replicas must stay."""
    policy = taught(FOUR, 400, ALONE)
    assert replicas_of(policy.decide(calm(FOUR, 100, ALONE, input_per_s=250))) == 3


@pytest.mark.parametrize(
    ("parameters", "operator_n_min", "expected"),
    [({"n_min": 2}, 1, 2), ({}, 3, 3), ({"n_min": 2}, 3, 3), ({"n_min": 3}, 2, 3)],
)
def test_the_larger_of_both_n_min_holds(parameters, operator_n_min, expected):
    topology = chain(n_min=operator_n_min, rtt_ms=RttUniform(0.0))
    policy = taught(FOUR, 400, topology, **parameters)
    assert replicas_of(policy.decide(calm(FOUR, 5, topology))) == expected


def test_the_spare_threshold_is_a_parameter():
    policy = taught(FOUR, 400, ALONE, spare_ratio=0.25)
    assert replicas_of(policy.decide(calm(FOUR, 300, ALONE))) == 3
    assert policy.decide(calm(FOUR, 301, ALONE)) is None


@pytest.mark.parametrize("rate_per_s", [280, 200, 100, 5, 0])
def test_the_printed_algorithm_never_scales_down(rate_per_s):
    """Line 5 asks for MST ≤ IR while DT ≥ 30 % says that MST is much more than what is processed."""
    policy = taught(FOUR, 400, ALONE, algorithm_4="printed")
    assert policy.decide(calm(FOUR, rate_per_s, ALONE)) is None


def test_the_farthest_node_leaves():
    """fog4 is 150 ms from all others; then fog3, 100 ms."""
    policy = taught(FOUR, 400)
    policy.decide(overloaded(FOUR, 400))
    plan = policy.decide(calm(["fog4", "fog1", "fog3", "fog2"], 150))
    assert plan.placement["map"] == ("fog1", "fog2")


def test_the_farthest_nodes_leave_wherever_they_stand():
    policy = taught(FOUR, 400)
    assert policy.decide(calm(["fog4", "fog1", "fog2"], 150)).placement["map"] == ("fog1", "fog2")


def test_the_reason_for_less_tells_what_remains():
    plan = taught(FOUR, 400, ALONE).decide(calm(FOUR, 150, ALONE))
    assert plan.reason == "map -2: 200 records/s are enough for 150"


# The model grows with the measurements


def test_the_network_counts_once_two_configurations_are_known():
    """100 on fog1 and 190 on fog1 and fog2, 50 ms apart, mean α = 100 and γ = 0.2 (Eq. 3). Three replicas on
    fog1, fog2 and fog3 do 300 − 0.2 · 100 = 280, two do 190: for 191 they are too few, for 190 enough."""
    policy = taught(["fog1"], 100)
    policy.decide(overloaded(["fog1", "fog2"], 190))
    three = ["fog1", "fog2", "fog3"]
    assert policy.decide(calm(three, 191)) is None
    assert replicas_of(policy.decide(calm(three, 189.9))) == 2


def test_distance_can_keep_a_replica_that_the_simple_model_would_remove():
    """Without fog5, fog3 and fog4 remain, 150 ms apart: 200 − 0.2 · 150 = 170 instead of 190."""
    policy = taught(["fog1"], 100)
    policy.decide(overloaded(["fog1", "fog2"], 190))
    near, far = ["fog1", "fog2", "fog3"], ["fog3", "fog4", "fog5"]
    assert replicas_of(policy.decide(calm(near, 175))) == 2
    assert policy.decide(calm(far, 175)) is None


def test_an_overload_while_it_is_not_confirmed_teaches_nothing():
    policy = started()
    policy.decide(overloaded(FOUR, 400))
    assert policy.decide(calm(FOUR, 5)) is None


def test_each_operator_has_its_own_model():
    policy = started(diamond(), confirmations=1)
    policy.decide(diamond_seen(source=0.9, left=0, right=0.9, join=0))
    four = {"source": ("n0",), "left": ("n1", "n2"), "right": ("n3", "n4"), "join": ("n5",)}
    observation = replace(diamond_seen(source=0, left=0, right=0, join=0), placement=four, requested=four)
    quiet = {
        name: replace(metrics, offered_rate_per_s=5, throughput_per_s=5)
        for name, metrics in observation.operators.items()
    }
    plan = policy.decide(replace(observation, operators=quiet))
    assert {name for name in four if len(plan.placement[name]) < len(four[name])} == {"left"}


def test_what_must_be_covered_may_be_what_passes():
    """100 per replica are known; 150 pass where 250 are offered: four have spare capacity, two cover 150."""
    seen_now = calm(["fog1", "fog2", "fog3", "fog4"], 150, input_per_s=250)
    assert replicas_of(taught(["fog1"], 100).decide(seen_now)) == 3
    assert replicas_of(taught(["fog1"], 100, must_cover="throughput").decide(seen_now)) == 2
