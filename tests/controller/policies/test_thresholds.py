"""THR-NLUnaware and THR-NLAware: CPU thresholds, one replica at a time."""

import numpy as np
import pytest

from controller.model import OperatorMetrics
from controller.policies import create
from tests.support.jobs import chain, placed, replicas_of, seen

both = pytest.mark.parametrize("name", ["thr_nlaware", "thr_nlunaware"])


def started(name="thr_nlaware", seed=1, **parameters):
    policy = create(name, parameters)
    policy.start(chain(), np.random.default_rng(seed))
    return policy


def at_cpu(cpu_ratio, nodes=("fog1", "fog2"), topology=None):
    return seen(nodes, topology=topology, map=OperatorMetrics(cpu_ratio=cpu_ratio))


@both
@pytest.mark.parametrize(
    ("cpu_ratio", "expected"),
    [
        pytest.param(1.0, 3, id="full"),
        pytest.param(0.901, 3, id="above 90 %"),
        pytest.param(0.90, None, id="exactly 90 %"),
        pytest.param(0.70, None, id="in between"),
        pytest.param(0.50, None, id="exactly 50 %"),
        pytest.param(0.499, 1, id="below 50 %"),
        pytest.param(0.0, 1, id="idle"),
        pytest.param(None, None, id="not measured"),
    ],
)
def test_thresholds(name, cpu_ratio, expected):
    assert replicas_of(started(name).decide(at_cpu(cpu_ratio))) == expected


@both
def test_one_replica_at_a_time(name):
    four = ("fog1", "fog2", "fog3", "fog4")
    assert replicas_of(started(name).decide(at_cpu(0.01, four))) == 3


@both
def test_bounds(name):
    policy, topology = started(name), chain(n_min=2, n_max=3)
    assert policy.decide(at_cpu(1.0, ("fog1", "fog2", "fog3"), topology)) is None
    assert policy.decide(at_cpu(0.0, ("fog1", "fog2"), topology)) is None


def test_thresholds_are_parameters():
    policy = started(high_cpu_ratio=0.8, low_cpu_ratio=0.3)
    assert replicas_of(policy.decide(at_cpu(0.81))) == 3
    assert policy.decide(at_cpu(0.31)) is None


def test_only_operators_that_can_be_scaled_count():
    observation = seen(["fog1"], source=OperatorMetrics(cpu_ratio=1.0), map=OperatorMetrics(cpu_ratio=0.7))
    assert started().decide(observation) is None


def test_the_reason_names_the_cpu():
    assert started().decide(at_cpu(0.95)).reason == "map +1: CPU at 95%"
    assert started().decide(at_cpu(0.25)).reason == "map -1: CPU at 25%"


def test_aware_the_nearest_node_joins_and_the_farthest_leaves():
    policy = started("thr_nlaware")
    assert policy.decide(at_cpu(0.95, ("fog1", "fog3"))).placement == placed("fog1", "fog3", "fog2")
    assert policy.decide(at_cpu(0.1, ("fog4", "fog1", "fog2"))).placement == placed("fog1", "fog2")


def test_unaware_any_node_joins_and_any_leaves():
    joined, left = set(), set()
    for seed in range(60):
        policy = started("thr_nlunaware", seed)
        joined.add(policy.decide(at_cpu(0.95, ("fog1", "fog3"))).placement["map"][-1])
        left |= {"fog1", "fog2", "fog4"} - {
            *policy.decide(at_cpu(0.1, ("fog4", "fog1", "fog2"))).placement["map"]
        }
    assert joined == {"fog2", "fog4", "fog5"}
    assert left == {"fog1", "fog2", "fog4"}


def test_anew_is_for_less_only():
    """On the way up, whoever runs keeps running."""
    drawn = set()
    for seed in range(40):
        policy = started("thr_nlunaware", seed, anew=True)
        assert policy.decide(at_cpu(1.0)).placement["map"][:2] == ("fog1", "fog2")
        drawn.update(policy.decide(at_cpu(0.1)).placement["map"])
    assert {"fog1", "fog2"} < drawn
