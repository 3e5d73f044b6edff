"""The thesis' proactive scaler: exploration, optimal control and the ways between them."""

import json
from dataclasses import replace
from math import inf, nan

import msgspec
import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.model import Receipt
from controller.models.polynomial import Polynomial, Seen
from controller.policies import create
from controller.policies.proactive import hysteresis
from fogscale.errors import FogscaleError
from tests.support.jobs import chain, placed, replicas_of
from tests.support.runs import simulated
from tests.support.slow_records import hundred_each, shown


def known(model=None, capacity_per_s=100.0):
    record = {"model": msgspec.to_builtins(model or hundred_each()), "capacity_per_s": capacity_per_s}
    return {"version": 1, "parts": {"job": record}}


def started(seed=1, topology=None, learned=None, **parameters):
    policy = create("proactive", {"standby": 0, "discard_s": 0} | parameters)
    policy.start(topology or chain(), np.random.default_rng(seed))
    if learned is not None:
        policy.load(learned)
    return policy


def controlling(history, slow_ratio=0.0, replicas=2, **parameters):
    """In optimal control, after the workload of `history` (5 s apart) up to the time 0; not yet decided."""
    policy = started(learned=known(parameters.pop("model", None)), **parameters)
    for i, workload_per_s in enumerate(history, start=1 - len(history)):
        policy._watch_workload(policy._memories["job"], 5.0 * i, workload_per_s)
    return policy


def steady(workload_per_s):
    return [workload_per_s] * 121


# Hysteresis


@pytest.mark.parametrize(
    ("old", "target", "expected"),
    [
        pytest.param(2, 2, 2, id="there already"),
        pytest.param(2, 3, 3, id="one up: 2.9"),
        pytest.param(1, 5, 5, id="four up: 4.6"),
        pytest.param(1, 11, 10, id="ten up: exactly 10"),
        pytest.param(3, 2, 2, id="one down: 2.6, but always a step"),
        pytest.param(5, 2, 4, id="three down: 3.8, on the safe side"),
        pytest.param(6, 1, 4, id="five down: exactly 4"),
    ],
)
def test_hysteresis_takes_a_share_of_the_way(old, target, expected):
    assert hysteresis(old, target, 0.9, 0.4) == expected


@given(st.integers(1, 100), st.integers(1, 100), st.floats(0.01, 1), st.floats(0.01, 1))
def test_hysteresis_always_moves_and_never_beyond_the_target(old, target, up_gain, down_gain):
    new = hysteresis(old, target, up_gain, down_gain)
    assert min(old, target) <= new <= max(old, target)
    assert (new == old) == (target == old)


def test_a_gain_of_0_stands_still():
    assert hysteresis(5, 9, 0.0, 0.0) == hysteresis(5, 1, 0.0, 0.0) == 5


@pytest.mark.parametrize("gain", ["up_gain", "down_gain"])
def test_a_gain_above_1_is_refused(gain):
    with pytest.raises(FogscaleError, match=gain):
        create("proactive", {gain: 1.5})


# Algorithm 6


@pytest.mark.parametrize(
    ("workload_per_s", "replicas", "expected"),
    [
        pytest.param(150.0, 2, None, id="two bear 150"),
        pytest.param(199.9, 2, None, id="and 199.9"),
        pytest.param(200.0, 2, 3, id="at 200 a tenth would be slow"),
        pytest.param(350.0, 1, 4, id="four at once, by 90 % of the way"),
        pytest.param(99.0, 2, 1, id="one bears 99"),
        pytest.param(10.0, 4, 3, id="towards one: 40 % of the way is 2.8, on the safe side"),
    ],
)
def test_the_fewest_without_a_foreseen_violation(workload_per_s, replicas, expected):
    plan = controlling(steady(workload_per_s)).decide(shown(replicas, workload_per_s, 0.0))
    assert replicas_of(plan) == expected


def test_it_scales_for_the_workload_to_come():
    """180 records/s now, 2 more every 5 s: 204 in a minute, which two cannot bear."""
    rising = [180.0 - 2.0 * (120 - i) for i in range(121)]
    plan = controlling(rising).decide(shown(2, 180.0, 0.05))
    assert replicas_of(plan) == 3
    assert plan.reason == "+1: 3 for 182–204 records/s in the next 60 s"
    slower = [180.0 - (120 - i) for i in range(121)]
    assert controlling(slower).decide(shown(2, 180.0, 0.05)) is None


def test_it_samples_every_5_s_and_decides_every_60():
    policy = controlling(steady(150.0))
    assert policy.period_s == 5.0
    policy.decide(shown(2, 150.0, 0.05))
    for i in range(1, 12):
        assert policy.decide(shown(2, 399.0, 0.05, 5.0 * i)) is None
    assert policy.decide(shown(2, 399.0, 0.05, 60.0)) is not None


def test_where_even_the_most_it_knows_are_too_few_it_takes_one_more():
    plan = controlling(steady(401.0)).decide(shown(4, 401.0, 0.09))
    assert replicas_of(plan) == 5


# Change points


def settled(slow_ratios, **parameters):
    """Two TaskManagers at 150 records/s, for which 0.05 slow records are foreseen; then these."""
    policy = controlling(steady(150.0), **parameters)
    assert policy.decide(shown(2, 150.0, 0.05)) is None
    times_s = [5.0 * i for i in range(1, len(slow_ratios) + 1)]
    return policy, [
        policy.decide(shown(2, 150.0, slow_ratio, time_s))
        for slow_ratio, time_s in zip(slow_ratios, times_s, strict=True)
    ]


def test_a_residual_above_008_sends_it_back_to_explore():
    policy, seen = settled([0.05, 0.13, 0.1301])
    assert seen[:2] == [None, None]
    assert seen[2].reason == "+1: 13% slow records; exploration: the model is 0.080 off"
    assert replicas_of(seen[2]) == 3  # Algorithm 2 takes over at once
    assert policy.period_s == 15.0
    assert policy.save()["parts"] == {}


def test_residuals_are_journalled():
    policy, _ = settled([0.07])
    assert policy.estimates["foreseen_slow_ratio"] == pytest.approx(0.05)
    assert policy.estimates["residual"] == pytest.approx(0.02)
    assert policy.estimates["foreseen_workload_per_s"] == pytest.approx(150.0)
    assert policy.estimates["exploration"] == 0.0


def test_small_residuals_are_borne_unless_gradual_changes_count():
    """No slow records where 0.05 were foreseen: 0.01 over the allowance each, so the 49th exceeds 0.48."""
    _, seen = settled([0.0] * 55)
    assert seen == [None] * 55
    _, seen = settled([0.0] * 55, gradual_change=True, gradual_limit=0.485)
    said = [(i, plan.reason) for i, plan in enumerate(seen) if plan]
    assert said == [(48, "exploration: the model is off by 0.49 in sum")]


def test_the_samples_after_a_rescale_are_no_residuals():
    policy = controlling(steady(250.0), discard_s=240)
    plan = policy.decide(shown(2, 250.0, 0.05))
    assert replicas_of(plan) == 3
    done = Receipt(plan, "done", 0.0, 30.0, 30.0)
    assert policy.decide(shown(3, 250.0, 40.0, 5.0, stopped=True)) is None
    assert policy.decide(shown(3, 250.0, 40.0, 30.0, receipts=(done,))) is None
    for time_s in range(35, 240, 5):
        assert policy.decide(shown(3, 250.0, 9.0, float(time_s))) is None
    assert policy.decide(shown(3, 250.0, 0.05, 240.0)) is None  # decides again, and stays
    assert policy.save()["parts"] != {}


def test_a_change_restarts_the_data():
    """Twelve samples make a check; those from before the change do not count."""
    policy = started(check_samples=12)
    memory = policy._memories["job"]
    memory.rows = [(100.0, 1.0, 0.1)] * 11
    memory.model, memory.decided_s = hundred_each(), 0.0
    memory.predicted, memory.predicted_replicas = np.full(12, 0.05), 2
    policy.decide(shown(2, 150.0, 0.9, 5.0))
    assert memory.rows == [(150.0, 2, 0.9)]


# Beyond the data


def test_beyond_its_data_it_keeps_the_plan_and_says_why_once():
    """With four TaskManagers 480 records/s were seen; 700 were not."""
    policy = controlling(steady(700.0))
    first = policy.decide(shown(4, 700.0, 0.05))
    assert dict(first.placement) == dict(shown(4, 700.0).requested)
    assert first.reason == "keeps the plan: the workload ahead is beyond the model's data"
    assert [policy.decide(shown(4, 700.0, 0.05, 5.0 * i)) for i in range(1, 40)] == [None] * 39
    assert "beyond" in policy.why_kept


def test_a_violation_there_is_explored_and_the_data_are_kept():
    policy = controlling(steady(700.0))
    policy._memories["job"].rows = [(1.0, 1.0, 0.0)] * 7
    plan = policy.decide(shown(4, 700.0, 0.2))
    assert replicas_of(plan) == 5
    assert "exploration: the workload ahead is beyond" in plan.reason
    assert len(policy._memories["job"].rows) == 7


def test_a_number_of_taskmanagers_never_seen_is_not_trusted():
    """Only 1 and 3 were seen: 150 records/s are too much for one, so it takes three, not two."""
    model = replace(hundred_each(), seen=(Seen(1, 0.0, 120.0), Seen(3, 0.0, 360.0)))
    assert replicas_of(controlling(steady(150.0), model=model).decide(shown(1, 150.0, 0.0))) == 3


def test_as_printed_a_polynomial_is_trusted_everywhere():
    """One that falls with the workload finds a single TaskManager best for any load."""
    falling = Polynomial(
        1, ((0, 0), (1, 0)), (0.0, -0.2), (0.0, 100.0), (1.0, 4.0), (Seen(4, 0.0, 100.0),), 9, 0
    )
    high = shown(4, 900.0, 0.0)
    trusting = controlling(steady(900.0), model=falling, extrapolation="printed")
    assert replicas_of(trusting.decide(high)) == 3  # 40 % of the way to one
    careful = controlling(steady(900.0), model=falling)
    assert dict(careful.decide(high).placement) == dict(high.requested)


def test_as_printed_n_max_is_the_target_where_none_is_good_enough():
    policy = controlling(steady(900.0), extrapolation="printed")
    assert replicas_of(policy.decide(shown(4, 900.0, 0.0))) == 5


# Exploration


def explored(policy, samples):
    return [policy.decide(shown(n, w, slow, 15.0 * i)) for i, (n, w, slow) in enumerate(samples, start=1)]


def learning_curve(count, seed=0):
    """Workload up and down over one and two TaskManagers, slow records as of hundred_each, but for noise."""
    rng = np.random.default_rng(seed)
    for i in range(count):
        workload = 10 + 180 * np.sin(np.pi * i / count) ** 2
        replicas = 1 if workload < 95 else 2
        yield replicas, workload, max(0.0, 0.099 + 0.001 * (workload - 100 * replicas)) + 1e-4 * rng.random()


def test_a_stable_model_brings_optimal_control():
    policy = started(check_samples=60)
    policy.decide(shown(1, 100.0, 0.1, 0.0))  # the capacity is known: 100 records/s
    seen = explored(policy, learning_curve(59))
    assert policy.estimates["exploration"] == 1.0
    assert [plan for plan in seen if plan] == [seen[-1]]
    assert seen[-1].reason.startswith("optimal control: degree ")
    assert "from 60 samples" in seen[-1].reason
    assert policy.period_s == 5.0


def test_without_a_scale_up_it_goes_on_exploring():
    policy = started(check_samples=60)
    seen = explored(policy, learning_curve(60))
    assert seen[-1].reason == ("stays in exploration: the capacity is not known before the first scale-up")
    assert policy.period_s == 15.0


def test_noise_without_a_pattern_is_not_relied_on():
    rng = np.random.default_rng(3)
    policy = started(check_samples=60)
    policy.decide(shown(1, 100.0, 0.1, 0.0))
    noise = [(5, w, s) for w, s in zip(rng.uniform(10, 900, 59), rng.uniform(0, 9, 59), strict=True)]
    reason = explored(policy, noise)[-1].reason
    assert reason.startswith("stays in exploration: spread ")


@pytest.mark.parametrize(
    ("samples", "why"),
    [
        pytest.param([(1, 50.0 + i, 0.01) for i in range(4)], "4 samples are too few", id="too few"),
        pytest.param([(1, 50.0, 0.01)] * 30, "all samples are of one workload", id="singular"),
    ],
)
def test_data_that_cannot_carry_a_model_keep_it_exploring(samples, why):
    policy = started(check_samples=len(samples))
    last = explored(policy, samples)[-1]
    assert last.placement == placed("fog1")
    assert last.reason == f"stays in exploration: {why}"


def test_it_reacts_while_it_explores():
    policy = started()
    assert replicas_of(policy.decide(shown(1, 100.0, 0.1))) == 2


@pytest.mark.parametrize(
    "option", [{"degree_by": "cross_validated"}, {"robust_training": True}, {"algorithm_4": "printed"}]
)
def test_the_options_of_training_lead_to_control_too(option):
    policy = started(check_samples=60, **option)
    policy.decide(shown(1, 100.0, 0.1, 0.0))
    assert explored(policy, learning_curve(59))[-1].reason.startswith("optimal control")


# What is learnt


@pytest.mark.parametrize(
    "through", [lambda r: yaml.safe_load(yaml.safe_dump(r)), lambda r: json.loads(json.dumps(r))]
)
def test_what_one_run_learns_another_can_start_from(through):
    teacher = started(check_samples=60)
    teacher.decide(shown(1, 100.0, 0.1, 0.0))
    explored(teacher, learning_curve(59))
    pupil = started(learned=through(teacher.save()))
    assert pupil.period_s == 5.0
    assert pupil.save() == teacher.save()


def test_starting_again_and_loading_starts_from_the_model_given():
    policy, seen = settled([0.9])
    assert seen[0] is not None
    assert policy.period_s == 15.0
    policy.start(chain(), np.random.default_rng(1))
    assert policy.save() == {"version": 1, "parts": {}}
    policy.load(known())
    assert policy.period_s == 5.0
    job = known()["parts"]["job"] | {"capacity_measurements": 1}
    assert policy.save() == msgspec.to_builtins({"version": 1, "parts": {"job": job}})


@pytest.mark.parametrize(
    ("learned", "expected"),
    [
        pytest.param(
            {"version": 1, "parts": {"jobs": known()["parts"]["job"]}}, "mean job", id="no such part"
        ),
        pytest.param({"parts": {}}, "version None, not 1", id="no version"),
        pytest.param(known() | {"version": 2}, "version 2, not 1", id="a later version"),
        pytest.param({"version": 1, "parts": {"job": {"model": 7}}}, "'proactive'.*damaged", id="damaged"),
        pytest.param({"version": 1}, "damaged", id="cut off"),
        pytest.param(
            {"version": 1, "parts": {"job": known()["parts"]["job"] | {"capacity_per_s": -5.0}}},
            "damaged .*> 0",
            id="a capacity below 0",
        ),
    ],
)
def test_what_it_cannot_start_from_is_refused(learned, expected):
    with pytest.raises(FogscaleError, match=expected):
        started(learned=learned)


def test_a_short_past_predicts_nothing():
    policy = started(learned=known())
    first = policy.decide(shown(2, 150.0, 0.05))
    assert first.reason == "keeps the plan: too few samples to predict the workload"


# Garbage

readings = st.one_of(st.none(), st.sampled_from([nan, inf, -inf, -5.0, 0.0, 1e-9]))


@settings(deadline=None)
@given(st.lists(st.tuples(readings, readings), min_size=1, max_size=60), st.integers(1, 5), st.booleans())
def test_on_garbage_it_never_scales(noise, replicas, trained):
    policy = started(check_samples=7, **({"learned": known()} if trained else {}))
    for i, (workload_per_s, lag_records) in enumerate(noise):
        observation = shown(replicas, workload_per_s, None, 15.0 * i, lag_records=lag_records)
        if workload_per_s in (0.0, 1e-9) and lag_records in (0.0, 1e-9):
            continue  # no load and no queue: that is calm, not garbage
        plan = policy.decide(observation)
        assert plan is None or dict(plan.placement) == dict(observation.requested)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10_000))
def test_whatever_it_learns_it_moves_one_step_or_within_the_data(seed):
    """Random slow records over random workloads: the bounds are never reached in one leap."""
    rng = np.random.default_rng(seed)
    policy = started(seed=seed, check_samples=20, stability_threshold=1e9)
    requested, time_s = 1, 0.0
    for _ in range(120):
        observation = shown(requested, float(rng.uniform(1, 500)), float(rng.uniform(0, 0.3)), time_s)
        plan = policy.decide(observation)
        time_s += policy.period_s
        if plan is not None:
            wanted = len(plan.placement["map"])
            seen = {int(n) for _, n, _ in policy._memories["job"].rows} | {requested}
            assert 1 <= wanted <= max(seen) + 1
            requested = wanted


# From exploration to control on the simulated testbed


def journey(policy, arrivals, until_s):
    """The turns of the loop: observations and plans."""
    testbed = simulated(
        arrivals,
        map_nodes=["fog1"],
        reconfiguration={"style": "restart", "duration_s": 10},
        noise={"relative": 0.01, "queue_relative": 0.05},
        metric_window_s=15,
        arrival_scv=0.3,
        service_scv=0.3,
    )
    turns = []
    while not testbed.finished and (not turns or turns[-1][0].time_s < until_s):
        observation = testbed.observe()
        plan = policy.decide(observation)
        if plan is not None:
            testbed.apply(plan)
        turns.append((observation, plan, policy.period_s, dict(policy.estimates)))
        testbed.wait(policy.period_s)
    return turns


@pytest.fixture(scope="module")
def explored_run():
    """Two hours in which the load rises from 0 to 280 records/s and falls again; 100 per replica."""
    rng = np.random.default_rng(4)
    hours = np.arange(7200) / 3600
    arrivals = rng.poisson(280 * np.exp(-(((hours - 1) / 0.4) ** 2) / 2)).tolist()
    policy = started(check_samples=150, standby=2, discard_s=120)
    return policy, journey(policy, arrivals, 7200)


def test_a_load_that_rises_and_falls_teaches_it_all_it_needs(explored_run):
    policy, turns = explored_run
    reasons = [plan.reason for _, plan, _, _ in turns if plan]
    assert any("optimal control: degree" in reason for reason in reasons)
    assert {seen["replicas"] for seen in policy.save()["parts"]["job"]["model"]["seen"]} >= {1, 2}
    assert {period_s for _, _, period_s, _ in turns} == {15.0, 5.0}


def test_replaying_what_it_saw_rebuilds_its_memory(explored_run):
    policy, turns = explored_run
    again = started(check_samples=150, standby=2, discard_s=120)
    for observation, plan, period_s, estimates in turns:
        assert again.decide(observation) == plan
        assert (again.period_s, again.estimates) == (period_s, estimates)
    assert again.save() == policy.save()
