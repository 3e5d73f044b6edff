"""MDL-NLUnaware: Gesscale with Eq. 2 from the latest measurement, on nodes drawn at random."""

import numpy as np

from controller.model import OperatorMetrics
from controller.policies import create
from tests.support.jobs import chain, replicas_of, seen

FOUR = ["fog1", "fog2", "fog3", "fog4"]


def started(seed=1, **parameters):
    policy = create("mdl_nlunaware", {"confirmations": 1, **parameters})
    policy.start(chain(), np.random.default_rng(seed))
    return policy


def overloaded(nodes, throughput_per_s):
    return seen(
        nodes,
        source=OperatorMetrics(throughput_per_s=throughput_per_s, back_pressure_ratio=0.9),
        map=OperatorMetrics(
            offered_rate_per_s=throughput_per_s, throughput_per_s=throughput_per_s, back_pressure_ratio=0.0
        ),
    )


def calm(nodes, rate_per_s):
    return seen(
        nodes,
        source=OperatorMetrics(throughput_per_s=rate_per_s, back_pressure_ratio=0.0),
        map=OperatorMetrics(
            offered_rate_per_s=rate_per_s, throughput_per_s=rate_per_s, back_pressure_ratio=0.0
        ),
    )


def test_the_latest_measurement_counts_alone():
    """First 100 per replica, then only 50: at 150 records/s two would do, then three."""
    policy = started()
    policy.decide(overloaded(["fog1", "fog2"], 200))
    assert replicas_of(policy.decide(calm(FOUR, 150))) == 2
    policy.decide(overloaded(["fog1", "fog2", "fog3"], 150))
    assert policy.decide(calm(FOUR, 150)) is None  # 200 with 25 % spare
    assert replicas_of(policy.decide(calm(FOUR, 140))) == 3  # 30 % spare, and 150 cover it


def test_the_network_does_not_count():
    """fog3, fog4 and fog5 are far apart; Gesscale would keep all three for 175 records/s."""
    policy = started()
    policy.decide(overloaded(["fog1"], 100))
    policy.decide(overloaded(["fog1", "fog2"], 190))
    assert replicas_of(policy.decide(calm(["fog3", "fog4", "fog5"], 175))) == 2


def test_nodes_join_and_leave_at_random():
    joined, left = set(), set()
    for seed in range(60):
        policy = started(seed, n_min=3)
        joined.add(policy.decide(overloaded(["fog1"], 200)).placement["map"][-1])
        kept = policy.decide(calm(FOUR, 5)).placement["map"]
        left.add(({*FOUR} - {*kept}).pop())
    assert joined == {"fog2", "fog3", "fog4", "fog5"}
    assert left == {*FOUR}


def test_the_same_seed_draws_the_same_nodes():
    first, second = started(7), started(7)
    for policy in (first, second):
        policy.decide(overloaded(["fog1"], 100))
    assert first.decide(overloaded(["fog1"], 100)) == second.decide(overloaded(["fog1"], 100))


def test_at_once_goes_to_the_fewest_that_cover_the_throughput():
    """α = 100. At 90 records/s of four one is enough; step by step it would stop where less than 30 % are
    spare, and at n_min."""
    at_once, by_steps = started(n_min=2, scale_down="at_once"), started(n_min=2)
    for policy in (at_once, by_steps):
        policy.decide(overloaded(["fog1", "fog2"], 200))
    assert replicas_of(at_once.decide(calm(FOUR, 90))) == 1
    assert replicas_of(by_steps.decide(calm(FOUR, 90))) == 2
    assert replicas_of(at_once.decide(calm(FOUR, 110))) == 2  # ⌈1.1⌉
    assert at_once.decide(calm(["fog1", "fog2"], 10)) is None  # only above n_min
    assert at_once.decide(calm(FOUR, 290)) is None  # 27.5 % spare


def test_anew_no_remaining_replica_needs_to_keep_its_node():
    kept, drawn = set(), set()
    for seed in range(40):
        for anew, found in ((False, kept), (True, drawn)):
            policy = started(seed, n_min=2, anew=anew)
            policy.decide(overloaded(["fog1", "fog2"], 200))
            found.update(policy.decide(calm(["fog1", "fog2", "fog3", "fog4"], 150)).placement["map"])
    assert kept == set(FOUR)
    assert drawn > kept
