"""The thesis' Algorithms 1 and 2, worked by hand on single observations."""

from dataclasses import replace
from math import inf, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.model import Capability, Node, Observation, Operator, OperatorMetrics, Plan, Receipt, Topology
from controller.network import RttUniform
from controller.policies import create
from controller.policies._slow_records import Capacity, measured_again
from tests.support.jobs import chain, placed, replicas_of
from tests.support.slow_records import shown


def started(topology=None, **parameters):
    """A policy whose standby is asked for already; every sample counts, however soon after a rescale."""
    policy = create("reactive", {"standby": 0, "discard_s": 0} | parameters)
    policy.start(topology or chain(), np.random.default_rng(1))
    return policy


def plans(policy, observations):
    return [policy.decide(observation) for observation in observations]


def taught(capacity_per_s, **parameters):
    """A policy that has measured one violation, with a single TaskManager."""
    policy = started(**parameters)
    assert replicas_of(policy.decide(shown(1, capacity_per_s, 0.1))) == 2
    return policy


# Algorithm 1


def test_the_first_capacity_is_the_workload_per_taskmanager():
    assert measured_again(None, 300.0, 2) == Capacity(150.0, 1)


def test_later_ones_are_averaged_by_their_number():
    """150 and 100 make 125; with 200 on top, (2·125 + 200)/3 = 150."""
    second = measured_again(Capacity(150.0, 1), 300.0, 3)
    assert second == Capacity(125.0, 2)
    assert measured_again(second, 800.0, 4) == Capacity(150.0, 3)


# Algorithm 2: up


@pytest.mark.parametrize(
    ("slow_ratio", "expected"), [(0.0999, None), (0.1, 3), (5.0, 3)], ids=["below", "at the SLA", "far above"]
)
def test_one_more_as_soon_as_a_tenth_of_the_records_is_slow(slow_ratio, expected):
    plan = started().decide(shown(2, 200.0, slow_ratio))
    assert replicas_of(plan) == expected
    if plan:
        assert plan.reason == f"+1: {slow_ratio:.0%} slow records"


def test_by_the_capacity_as_many_as_the_workload_needs():
    """100 per TaskManager at first; then 390 on 2 means (100 + 195)/2 = 147.5, and 390 needs 3."""
    policy = taught(100.0, scale_up="capacity")
    assert replicas_of(policy.decide(shown(2, 390.0, 0.5, 15.0))) == 3
    policy = taught(100.0, scale_up="capacity")
    policy.decide(shown(3, 270.0, 0.2, 15.0))  # (100 + 90)/2 = 95
    assert replicas_of(policy.decide(shown(1, 400.0, 3.0, 30.0))) == 3  # (2·95 + 400)/3 = 196.7


def test_by_the_capacity_a_slow_rise_adds_one():
    assert replicas_of(started(scale_up="capacity").decide(shown(2, 200.0, 0.1))) == 3


def test_never_more_than_n_max_or_there_are_slots():
    assert started().decide(shown(5, 200.0, 9.0)) is None
    three_slots = replace(chain(), nodes=chain().nodes[:4])
    assert started(three_slots).decide(shown(3, 200.0, 9.0, topology=three_slots)) is None


def test_at_n_max_no_capacity_is_measured():
    policy = taught(100.0)
    policy.decide(shown(5, 5000.0, 9.0, 15.0))
    policy.decide(shown(5, 400.0, 0.0, 30.0))
    assert policy.estimates["capacity_per_s"] == 100.0


# Algorithm 2: down


def test_one_fewer_after_ten_samples_in_a_row():
    """90 of 100 records/s each may be in use: 180 records/s need 2 of 3."""
    policy = taught(100.0)
    calm = [shown(3, 180.0, 0.0, 15.0 * i) for i in range(1, 11)]
    seen = plans(policy, calm)
    assert seen[:9] == [None] * 9
    assert replicas_of(seen[9]) == 2
    assert seen[9].reason == "-1: 2 are enough for 180 records/s"


@pytest.mark.parametrize(
    "interruption",
    [
        pytest.param(shown(3, 181.0, 0.0, 75.0), id="a load that needs all three"),
        pytest.param(shown(3, 600.0, 0.2, 75.0), id="a violation"),
    ],
)
def test_the_samples_must_be_consecutive(interruption):
    policy = taught(100.0)
    plans(policy, [shown(3, 100.0, 0.0, 15.0 * i) for i in range(1, 5)])
    policy.decide(interruption)
    seen = plans(policy, [shown(3, 100.0, 0.0, 75.0 + 15.0 * i) for i in range(1, 11)])
    assert [replicas_of(plan) for plan in seen] == [None] * 9 + [2]


def test_without_a_capacity_nothing_goes_down():
    assert plans(started(), [shown(3, 1.0, 0.0, 15.0 * i) for i in range(30)]) == [None] * 30


def test_never_below_n_min():
    topology = chain(n_min=2)
    policy = started(topology)
    policy.decide(shown(2, 200.0, 0.5, topology=topology))
    calm = [shown(2, 5.0, 0.0, 15.0 * i, topology=topology) for i in range(1, 30)]
    assert plans(policy, calm) == [None] * 29


def test_as_printed_it_never_goes_down():
    policy = taught(100.0, algorithm_2="printed")
    assert plans(policy, [shown(3, 50.0, 0.0, 15.0 * i) for i in range(1, 60)]) == [None] * 59


# Rescaling


def receipt(plan, requested_s=0.0, finished_s=30.0, downtime_s=30.0, outcome="done"):
    return Receipt(plan, outcome, requested_s, finished_s, downtime_s)


def test_samples_are_discarded_for_four_minutes_after_a_rescale():
    policy = started(discard_s=240)
    plan = policy.decide(shown(1, 100.0, 0.5))
    assert replicas_of(plan) == 2
    assert policy.decide(shown(2, 100.0, 60.0, 15.0, stopped=True)) is None
    assert policy.decide(shown(2, 100.0, 50.0, 30.0, receipts=(receipt(plan),))) is None
    assert policy.estimates == {}
    assert policy.decide(shown(2, 100.0, 5.0, 239.0)) is None
    assert replicas_of(policy.decide(shown(2, 100.0, 5.0, 240.0))) == 3


def test_they_are_counted_from_when_the_job_really_stopped():
    """A new TaskManager took 60 s to come up; the job ran on meanwhile."""
    policy = started(discard_s=240)
    plan = policy.decide(shown(1, 100.0, 0.5))
    waiting = replace(shown(2, 100.0, 0.5, 15.0), placement=placed("fog1"))
    assert policy.decide(waiting) is None
    done = receipt(plan, 0.0, 90.0, 30.0)  # down from 60 s to 90 s
    assert policy.decide(shown(2, 100.0, 5.0, 90.0, receipts=(done,))) is None
    assert policy.decide(shown(2, 100.0, 5.0, 299.0)) is None
    assert replicas_of(policy.decide(shown(2, 100.0, 5.0, 300.0))) == 3


def test_a_fault_that_stops_the_job_discards_too():
    policy = started(discard_s=240)
    assert policy.decide(shown(2, 100.0, 9.0, 100.0, stopped=True)) is None
    assert policy.decide(shown(2, 100.0, 9.0, 339.0)) is None
    assert replicas_of(policy.decide(shown(2, 100.0, 9.0, 340.0))) == 3


def test_a_refused_plan_costs_no_samples():
    policy = started(discard_s=240)
    plan = policy.decide(shown(1, 100.0, 0.5))
    refused = receipt(plan, finished_s=0.0, downtime_s=0.0, outcome="refused")
    assert replicas_of(policy.decide(shown(1, 100.0, 0.5, 15.0, receipts=(refused,)))) == 2


def test_metrics_shown_twice_are_one_sample():
    policy = taught(100.0)
    stale = [replace(shown(3, 100.0, 0.0, 15.0 * i), measured_s=15.0) for i in range(1, 30)]
    assert plans(policy, stale) == [None] * 29


# Hot standby


def test_two_taskmanagers_are_kept_on_hot_standby():
    policy = create("reactive")
    policy.start(chain(), np.random.default_rng(1))
    first = policy.decide(shown(2, 100.0))
    assert first == Plan(placed("fog1", "fog2"), 2, "2 on hot standby")
    answered = receipt(first, 0.0, 0.0, 0.0)
    assert (
        policy.decide(shown(2, 100.0, 0.0, 15.0, receipts=(answered,))) is None
    )  # said once, nothing discarded
    assert policy.decide(shown(2, 100.0, 0.5, 30.0)).standby == 2


def test_it_asks_again_for_a_standby_that_was_refused():
    policy = create("reactive")
    policy.start(chain(), np.random.default_rng(1))
    first = policy.decide(shown(2, 100.0))
    refused = receipt(first, outcome="refused")
    assert policy.decide(shown(2, 100.0, 0.0, 15.0, receipts=(refused,))) == first


def test_instances_on_standby_are_used_first_then_the_lowest_that_is_free():
    plan = started().decide(shown(1, 100.0, 0.5, standby=("fog4",)))
    assert plan.placement["map"] == ("fog1", "fog4")
    assert started().decide(shown(1, 100.0, 0.5)).placement["map"] == ("fog1", "fog2")
    holed = shown(2, 100.0, 0.5)
    holed = replace(holed, placement=placed("fog1", "fog3"), requested=placed("fog1", "fog3"))
    assert started().decide(holed).placement["map"] == ("fog1", "fog3", "fog2")  # recycled, as in Alg. 8


def test_it_needs_standby_only_where_it_asks_for_some():
    assert Capability.STANDBY in create("reactive").needs
    assert Capability.STANDBY not in create("reactive", {"standby": 0}).needs


# Bad input


@pytest.mark.parametrize(
    ("workload_per_s", "lag_records", "why"),
    [
        (nan, 10.0, "not a number"),
        (100.0, nan, "not a number"),
        (inf, 10.0, "not a number"),
        (100.0, inf, "not a number"),
        (-1.0, 10.0, "below 0"),
        (100.0, -1.0, "below 0"),
        (0.0, 10.0, "hardly any"),
        (0.5, 1.0, "hardly any"),
    ],
)
def test_garbage_keeps_the_plan_and_says_why_once(workload_per_s, lag_records, why):
    policy = started()
    first, second = plans(
        policy, [shown(2, workload_per_s, lag_records=lag_records, time_s=15.0 * i) for i in range(2)]
    )
    assert first.placement == placed("fog1", "fog2")
    assert first.reason.startswith("keeps the plan: ")
    assert why in first.reason
    assert why in policy.why_kept
    assert second is None


def test_no_load_and_no_queue_is_no_garbage():
    policy = taught(100.0)
    seen = plans(policy, [shown(3, 0.0, 0.0, 15.0 * i) for i in range(1, 11)])
    assert replicas_of(seen[-1]) == 2


values = st.one_of(st.none(), st.sampled_from([nan, inf, -inf, -1.0, 0.0, 1e-12, 1e300]))


@given(st.lists(st.tuples(values, values), min_size=1, max_size=40))
def test_on_garbage_nothing_is_ever_scaled(readings):
    """A finite queue that is huge for its workload is left out here: that is an overload."""
    policy = started()
    for i, (workload_per_s, lag_records) in enumerate(readings):
        if lag_records == 1e300 and workload_per_s == 1e300:
            continue
        observation = shown(2, workload_per_s, None, 15.0 * i, lag_records=lag_records)
        plan = policy.decide(observation)
        assert plan is None or dict(plan.placement) == dict(observation.requested)


# Several operators


def two_steps() -> Topology:
    """source → first → second; both can be scaled."""
    operators = (
        Operator("source", n_max=1),
        Operator("first", ("source",), n_max=4),
        Operator("second", ("first",), n_max=3),
    )
    return Topology(tuple(Node(f"n{i}", 4, 2048) for i in range(9)), operators, RttUniform(1.0))


def two_steps_seen(first_busy, second_busy, lag_records=50.0) -> Observation:
    placement = {"source": ("n0",), "first": ("n1",), "second": ("n2",)}
    operators = {
        "source": OperatorMetrics(offered_rate_per_s=100.0, busy_ratio=0.1),
        "first": OperatorMetrics(offered_rate_per_s=100.0, busy_ratio=first_busy),
        "second": OperatorMetrics(offered_rate_per_s=300.0, busy_ratio=second_busy),
    }
    return Observation(0, two_steps(), placement, placement, operators, lag_records=lag_records)


def counts(plan):
    return {name: len(nodes) for name, nodes in plan.placement.items()}


def test_all_operators_are_scaled_alike():
    plan = started(two_steps()).decide(two_steps_seen(0.5, 1.0))
    assert counts(plan) == {"source": 1, "first": 2, "second": 2}


@pytest.mark.parametrize(
    ("busy", "scaled"), [((1.0, 0.4), "first"), ((0.4, 1.0), "second")], ids=["first", "second"]
)
def test_or_only_the_busiest_which_the_lag_is_due_to(busy, scaled):
    plan = started(two_steps(), per_operator=True).decide(two_steps_seen(*busy))
    assert counts(plan) == {"source": 1, "first": 1, "second": 1} | {scaled: 2}
    assert plan.reason.startswith(f"{scaled} +1: ")


def test_on_its_own_an_operator_needs_its_busy_share():
    assert started(two_steps(), per_operator=True).decide(two_steps_seen(None, None)) is None
    assert Capability.BUSY in create("reactive", {"per_operator": True}).needs
