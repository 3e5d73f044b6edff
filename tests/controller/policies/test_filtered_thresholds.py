"""PURE, GW and EKF: thresholds 45/80 on filtered CPU and memory; the EKF also says how many."""

from dataclasses import replace

import numpy as np
import pytest

from controller.model import InstanceMetrics, OperatorMetrics
from controller.models.weierstrass import WeierstrassFilters
from controller.policies import create
from fogscale.errors import FogscaleError
from tests.support.jobs import chain, placed, replicas_of, seen

NODES = ("fog1", "fog2", "fog3", "fog4", "fog5")
NAMES = ["pure", "gw", "ekf"]
every = pytest.mark.parametrize("name", NAMES)
PER_RECORD = {  # an instance does 12.5 records/s
    "level_sensitivity": {"cpu": 0.0, "memory": 0.0},
    "change_sensitivity": {"cpu": 0.08, "memory": 0.0},
}


def started(name, topology=None, **parameters):
    if name == "ekf":
        parameters = PER_RECORD | parameters
    policy = create(name, parameters)
    policy.start(topology or chain(), np.random.default_rng(1))
    return policy


def look(time_s, cpu, memory=0.3, running=2, requested=None, rate_per_s=15.0, topology=None):
    """One observation; cpu is a number for all instances, or one for each."""
    cpus = [cpu] * running if not isinstance(cpu, list) else cpu
    instances = [
        InstanceMetrics(f"map-{n}", NODES[n], "running", cpu_ratio=one, memory_ratio=memory)
        for n, one in enumerate(cpus)
    ]
    asked = running if requested is None else requested
    instances += [InstanceMetrics(f"boot-{n}", NODES[n], "booting") for n in range(running, asked)]
    return seen(
        NODES[:asked],
        time_s=time_s,
        topology=topology,
        running=placed(*NODES[:running]),
        map=OperatorMetrics(arrival_rate_per_s=rate_per_s, instances=tuple(instances)),
    )


def settled(name, cpu=0.6, memory=0.3, seconds=30.0, running=2, rate_per_s=15.0, **parameters):
    """A policy that has watched a steady job long enough for its filter to be in use, and its time."""
    policy = started(name, **parameters)
    times_s = np.arange(0.5, seconds, 0.5)
    for time_s in times_s:
        plan = policy.decide(look(time_s, cpu, memory, running, rate_per_s=rate_per_s))
        assert plan is None
    return policy, float(times_s[-1] + 0.5)


def held(name, cpu, memory=0.3, running=2, seconds=40.0, **parameters):
    """What it does when a load is held from the start: the first plan, if any."""
    policy = started(name, **parameters)
    for time_s in np.arange(0.5, seconds, 0.5):
        plan = policy.decide(look(time_s, cpu, memory, running))
        if plan is not None and replicas_of(plan) != running:
            return replicas_of(plan)
    return None


def keeps_the_plan(plan, observation, why):
    return plan.placement == observation.requested and plan.reason == f"keeps the plan: {why}"


# Thresholds


@every
@pytest.mark.parametrize(
    ("cpu", "memory", "expected"),
    [
        pytest.param(0.81, 0.3, 3, id="CPU above 80 %"),
        pytest.param(0.6, 0.81, 3, id="memory alone is enough to go up"),
        pytest.param(0.80, 0.80, None, id="exactly 80 %"),
        pytest.param(0.6, 0.6, None, id="in between"),
        pytest.param(0.3, 0.5, None, id="memory alone keeps it from going down"),
        pytest.param(0.45, 0.45, None, id="exactly 45 %"),
        pytest.param(0.39, 0.39, 1, id="all below"),
        pytest.param(0.0, 0.0, 1, id="idle"),
        pytest.param(None, 0.3, None, id="no CPU"),
        pytest.param(0.3, None, None, id="no memory: not down"),
        pytest.param(0.85, None, 3, id="no memory: up all the same"),
        pytest.param(float("nan"), float("nan"), None, id="not a number"),
        pytest.param(85.0, 30.0, None, id="percent where ratios are meant"),
    ],
)
def test_thresholds(name, cpu, memory, expected):
    assert held(name, cpu, memory) == expected


@every
def test_the_average_over_instances_counts(name):
    assert held(name, [1.0, 0.55], running=2) is None
    assert held(name, [1.0, 0.65], running=2) == 3


@every
def test_thresholds_are_parameters(name):
    assert held(name, 0.65, low_ratio=0.2, high_ratio=0.6) == 3
    assert held(name, 0.25, 0.25, low_ratio=0.2, high_ratio=0.6) is None


@every
def test_thresholds_in_the_wrong_order_are_an_error(name):
    with pytest.raises(FogscaleError, match="give a lower low_ratio"):
        started(name, low_ratio=0.8, high_ratio=0.8)


@every
def test_bounds(name):
    topology = chain(n_min=2, n_max=3)
    policy = started(name, topology)
    for time_s in np.arange(0.5, 40, 0.5):
        assert policy.decide(look(time_s, 1.0, running=3, topology=topology)) is None
    policy = started(name, topology)
    for time_s in np.arange(0.5, 40, 0.5):
        assert policy.decide(look(time_s, 0.0, 0.0, running=2, topology=topology)) is None


@every
def test_the_youngest_instance_leaves(name):
    policy = started(name)
    plans = [policy.decide(look(t, 0.2, 0.2, running=3)) for t in np.arange(0.5, 40, 0.5)]
    first = next(plan for plan in plans if plan is not None)
    left = first.placement["map"]
    assert left == NODES[: len(left)]


# Filters


def test_pure_acts_on_a_single_reading():
    policy, now_s = settled("pure")
    assert replicas_of(policy.decide(look(now_s, 0.9))) == 3


@pytest.mark.parametrize("name", ["gw", "ekf"])
def test_a_single_spike_is_filtered_away(name):
    policy, now_s = settled(name)
    assert policy.decide(look(now_s, 0.9)) is None


def test_gw_acts_once_its_mean_is_above():
    """After k readings of 0.9 the mean is what the filter of its own test says."""
    policy, now_s = settled("gw")
    gw = WeierstrassFilters(1)
    for time_s in np.arange(0.5, now_s, 0.5):
        gw.step(time_s, ("a",), np.array([[0.6]]))
    for k in range(20):
        time_s = now_s + 0.5 * k
        mean = gw.step(time_s, ("a",), np.array([[0.9]]))[0, 0]
        plan = policy.decide(look(time_s, 0.9))
        assert (plan is not None) == (mean > 0.8)
        if plan is not None:
            break
    assert 2 <= k <= 10


def test_ekf_says_nothing_during_dead_time_and_ease_in():
    policy = started("ekf")
    for time_s in np.arange(0.5, 20.5, 0.5):  # the first reading is at 0.5 s
        assert policy.decide(look(time_s, 0.95)) is None
        assert policy.why_kept == "map: no usable cpu or memory load"
    assert replicas_of(policy.decide(look(20.5, 0.95))) == 3


# How many


@pytest.mark.parametrize(
    ("running", "load", "expected"),
    [
        pytest.param(1, 0.81, 2, id="0.81 needs 1.01 instances"),
        pytest.param(2, 0.90, 3, id="1.80 needs 2.25"),
        pytest.param(3, 1.00, 4, id="3.00 needs 3.75"),
        pytest.param(4, 0.99, 5, id="3.96 needs 4.95"),
        pytest.param(5, 0.40, 4, id="2.00 is at least 45 % on 4.4"),
        pytest.param(5, 0.20, 2, id="1.00 is at least 45 % on 2.2"),
        pytest.param(3, 0.10, 1, id="0.30 fits on one"),
        pytest.param(2, 0.42, None, id="0.84 would be too much for one, so two stay"),
        pytest.param(2, 0.39, 1, id="0.78 fits on one"),
    ],
)
def test_ekf_asks_for_what_the_load_needs(running, load, expected):
    assert held("ekf", load, min(load, 0.1), running=running) == expected


def test_a_jump_of_the_rate_tells_how_many_more_before_the_load_can():
    """From 7.5 to 57.5 records/s on one instance: 0.6 + 50·0.08 = 4.6, which needs 5.75 instances; CPU reads
    no more than 1."""
    topology = chain(n_max=None, elastic=True)
    policy, now_s = settled("ekf", running=1, rate_per_s=7.5)
    plan = policy.decide(look(now_s, 1.0, running=1, rate_per_s=57.5, topology=topology))
    assert replicas_of(plan) == 6
    assert "6 needed" in plan.reason
    assert policy.estimates["map.cpu_filtered_ratio"] > 4
    assert policy.estimates["map.cpu_measured_ratio"] == 1.0


def test_one_at_a_time_is_a_parameter():
    policy, now_s = settled("ekf", running=1, rate_per_s=7.5, sizing="one")
    assert replicas_of(policy.decide(look(now_s, 1.0, running=1, rate_per_s=57.5))) == 2


def test_an_absurd_forecast_is_cut():
    """A rate a thousand times as high is a broken meter rather than a load."""
    topology = chain(n_max=None, elastic=True)
    policy, now_s = settled("ekf", running=1, rate_per_s=7.5, max_step=4)
    plan = policy.decide(look(now_s, 0.9, running=1, rate_per_s=7500.0, topology=topology))
    assert replicas_of(plan) == 5
    assert "at most 4 at once" in plan.reason


def test_the_whole_rate_overrates_a_change_where_there_are_several_instances():
    """+10 records/s on four instances at 60 %: 0.6 + 0.2 = 0.8 by their share, 1.4 by the whole rate."""
    shared, now_s = settled("ekf", running=4, rate_per_s=30.0, rate="per_instance")
    assert shared.decide(look(now_s, 0.8, running=4, rate_per_s=40.0)) is None
    whole, now_s = settled("ekf", running=4, rate_per_s=30.0)
    assert replicas_of(whole.decide(look(now_s, 0.8, running=4, rate_per_s=40.0))) == 5  # all there are


BEYOND = {"rate": "per_instance", "measurement": "censored", "while_booting": "scale"}


def test_a_full_load_says_only_that_it_is_full():
    """A forecast of 4.6 is pulled down by readings of 1.0, unless they count as "at least"."""
    kept = {}
    for measurement in ("identity", "censored"):
        policy, now_s = settled("ekf", running=1, rate_per_s=7.5, measurement=measurement)
        for i in range(40):
            policy.decide(look(now_s + 0.5 * i, 1.0, running=1, requested=5, rate_per_s=57.5))
        kept[measurement] = policy.estimates["map.cpu_filtered_ratio"]
    assert kept["identity"] < 2.0
    assert kept["censored"] == pytest.approx(4.6, abs=0.01)


def test_the_load_divides_among_those_that_join():
    """4.6 on one instance is 1.15 on each of four; as many as were asked for, so nothing happens."""
    policy, now_s = settled("ekf", running=1, rate_per_s=7.5, **BEYOND)
    policy.decide(look(now_s, 1.0, running=1, rate_per_s=57.5))
    assert policy.decide(look(now_s + 0.5, 1.0, running=4, requested=5, rate_per_s=57.5)) is None
    assert policy.estimates["map.cpu_filtered_ratio"] == pytest.approx(1.15, abs=0.01)


def test_printed_eq_15_holds_the_sum_against_the_threshold():
    assert held("ekf", 0.5, combine="average") is None
    assert held("ekf", 0.5, combine="sum", sizing="one") == 3


# While instances boot


@pytest.mark.parametrize("name", ["pure", "gw"])
def test_asks_again_while_others_boot(name):
    policy, now_s = settled(name, cpu=0.79)
    plans = [policy.decide(look(now_s + 0.5 * i, 1.0, running=2, requested=3)) for i in range(10)]
    assert replicas_of(plans[-1]) == 4


def test_ekf_asks_for_none_twice():
    policy, now_s = settled("ekf", running=1, rate_per_s=7.5)
    assert replicas_of(policy.decide(look(now_s, 1.0, running=1, rate_per_s=30.0))) == 3
    for i in range(1, 6):
        assert policy.decide(look(now_s + 0.5 * i, 1.0, running=1, requested=3, rate_per_s=30.0)) is None


@every
def test_can_wait_for_those_that_boot(name):
    policy, now_s = settled(name, cpu=0.79, while_booting="wait")
    for i in range(20):
        assert policy.decide(look(now_s + 0.5 * i, 1.0, running=2, requested=3)) is None
    assert policy.why_kept == "map: 1 instances are booting"


@pytest.mark.parametrize(
    ("way", "requested", "expected"),
    [
        ("as_idle", 3, None),
        ("as_idle", 2, 3),
        ("as_idle", 5, 4),
        ("kept", 3, None),
        ("kept", 2, 3),
        ("kept", 5, None),
    ],
)
def test_can_count_those_that_boot_as_idle(way, requested, expected):
    """Two at 100 %: with one idle 67 %, without 100 %, with three idle 40 %, unless those are to be kept."""
    policy, now_s = settled("pure", while_booting=way)
    assert replicas_of(policy.decide(look(now_s, 1.0, running=2, requested=requested))) == expected


@every
@pytest.mark.parametrize("way", ["as_idle", "kept"])
def test_goes_down_on_those_that_run_even_while_others_boot(name, way):
    policy, now_s = settled(name, while_booting=way)
    plans = (policy.decide(look(now_s + 0.5 * i, 0.2, running=2, requested=3)) for i in range(80))
    assert replicas_of(next(filter(None, plans))) < 3


@pytest.mark.parametrize("name", ["pure", "gw"])
def test_thresholds_close_to_each_other_do_not_take_back_what_boots(name):
    """A full instance and a booting one average to 50 %, which is below the lower threshold."""
    policy, now_s = settled(name, low_ratio=0.55, high_ratio=0.6, while_booting="kept")
    for i in range(20):
        assert policy.decide(look(now_s + 0.5 * i, 1.0, running=1, requested=2)) is None


# Starts


@every
def test_a_warm_start_begins_with_what_the_last_run_used(name):
    policy = started(name)
    policy.load({"version": 1, "instances": {"map": 3.4}})
    plan = policy.decide(look(0.0, 0.6))
    assert replicas_of(plan) == 3
    assert plan.reason == "map 3, as in the last run"
    assert policy.decide(look(0.5, 0.6, running=2, requested=3)) is None


@every
def test_a_cold_start_leaves_what_the_experiment_says(name):
    assert started(name).decide(look(0.0, 0.6, running=1)) is None


@every
def test_a_warm_start_of_an_unknown_operator_is_an_error(name):
    with pytest.raises(FogscaleError, match="did you mean map"):
        started(name).load({"version": 1, "instances": {"mop": 2}})


@every
def test_the_mean_instances_of_a_run_are_what_the_next_begins_with(name):
    """Three turns with two instances, one with three."""
    policy = started(name)
    for turn, requested in enumerate((2, 2, 2, 3)):
        policy.decide(look(0.5 * turn, 0.6, running=2, requested=requested))
    assert policy.save() == {"version": 1, "instances": {"map": 2.25}}


@every
@pytest.mark.parametrize("learned", [{}, {"version": 9, "instances": {}}, {"version": 1, "instances": [2]}])
def test_a_damaged_warm_start_is_refused(name, learned):
    with pytest.raises(FogscaleError, match="should start from"):
        started(name).load(learned)


# Bad input


@every
def test_the_same_metrics_again_are_no_news(name):
    policy, now_s = settled(name)
    stale = replace(look(now_s + 0.5, 1.0), measured_s=now_s - 0.5)
    assert policy.decide(stale) is None
    assert policy.why_kept == "nothing new was measured"


@every
def test_instances_without_metrics_are_left_alone_and_their_filters_wait(name):
    policy, now_s = settled(name)
    gone = look(now_s, 0.6)
    gone = replace(gone, operators={**gone.operators, "map": OperatorMetrics()})
    assert keeps_the_plan(policy.decide(gone), gone, "map: no instance was measured")
    assert policy.why_kept == "map: no instance was measured"
    policy.decide(look(now_s + 0.5, 0.6))
    assert policy.estimates["map.cpu_filtered_ratio"] == pytest.approx(0.6)


@every
def test_a_stopped_job_is_left_alone(name):
    policy, now_s = settled(name)
    assert policy.decide(look(now_s, 0.6, running=0, requested=2)) is None
    assert policy.why_kept == "map: no instance runs"


@every
def test_why_nothing_happened_names_the_metric(name):
    policy, now_s = settled(name)
    blind = look(now_s, 0.2, None)
    assert keeps_the_plan(policy.decide(blind), blind, "map: no usable memory load")
    assert policy.why_kept == "map: no usable memory load"


@every
def test_bad_metrics_are_told_once_and_again_after_they_were_good(name):
    policy, now_s = settled(name)
    loads = [None, None, 0.6, None, float("nan"), 42.0]
    plans = [policy.decide(look(now_s + 0.5 * k, load, 0.6)) for k, load in enumerate(loads)]
    reason = "keeps the plan: map: no usable cpu load"
    assert [plan and plan.reason for plan in plans] == [reason, None, None, reason, None, None]


@every
def test_a_plan_that_scales_tells_of_bad_metrics_too(name):
    policy, now_s = settled(name, cpu=0.79)
    for k in range(20):
        plan = policy.decide(look(now_s + 0.5 * k, 1.0, 0.6))
        if plan:
            break
    assert "no usable" not in plan.reason
    blind = policy.decide(look(now_s + 0.5 * (k + 1), 1.0, None))
    assert replicas_of(blind) == 3
    assert blind.reason.endswith("; map: no usable memory load")


@pytest.mark.parametrize("rate_per_s", [None, float("nan"), float("inf"), -5.0])
def test_ekf_without_a_rate_is_a_plain_kalman_filter(rate_per_s):
    policy, now_s = settled("ekf")
    for i in range(20):
        assert policy.decide(look(now_s + 0.5 * i, 0.6, rate_per_s=rate_per_s)) is None
    assert policy.estimates["map.cpu_filtered_ratio"] == pytest.approx(0.6)


def test_ekf_learns_a_and_b_while_it_runs():
    """Nothing is given: after a minute of rates up and down it forecasts as one that was told b = 0.08."""
    learning = started("ekf", level_sensitivity=None, change_sensitivity=None)
    told, rng, rate_per_s = started("ekf"), np.random.default_rng(2), 7.5
    for time_s in np.arange(0.5, 60, 0.5):
        rate_per_s = float(np.clip(rate_per_s + rng.choice([-0.5, 0.5]), 6.5, 8.5))
        learning.decide(look(time_s, 0.08 * rate_per_s, running=1, rate_per_s=rate_per_s))
        told.decide(look(time_s, 0.08 * rate_per_s, running=1, rate_per_s=rate_per_s))
    jump = look(60.0, 1.0, running=1, rate_per_s=rate_per_s + 25)
    plan, expected = learning.decide(jump), told.decide(jump)
    assert learning.estimates == pytest.approx(told.estimates, abs=1e-3)
    assert learning.estimates["map.cpu_filtered_ratio"] > 2
    assert replicas_of(plan) == replicas_of(expected) == 3


def test_ekf_says_when_it_could_not_learn():
    policy = started("ekf", level_sensitivity=None, change_sensitivity=None)
    plans = [policy.decide(look(t, 0.95)) for t in np.arange(0.5, 30, 0.5)]
    first = next(plan for plan in plans if plan is not None)
    assert first.reason.endswith("(the rate never changed: nothing to fit a and b to)")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"level_sensitivity": {"cpu": 0.1, "memory": 0.1}, "change_sensitivity": None},
            "give both or neither",
        ),
        ({"measurement_variance": {"cpuu": 0.1}}, "did you mean cpu"),
        ({"measurement_variance": {"cpu": 0.1}}, "a value for memory too"),
    ],
)
def test_parameters_that_cannot_be_are_an_error(parameters, message):
    with pytest.raises(FogscaleError, match=message):
        started("ekf", **parameters)


def test_the_reason_names_the_loads():
    policy, now_s = settled("pure")
    assert policy.decide(look(now_s, 0.95)).reason == "map +1: cpu at 95%, memory at 30%"
