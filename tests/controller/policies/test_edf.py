"""EDF's managers, with numbers that can be checked by hand."""

import json
from dataclasses import replace
from math import nan

import numpy as np
import pytest

from controller.contract import Step
from controller.experiment import Run
from controller.journal import SampleLog
from controller.model import (
    InstanceMetrics,
    Node,
    NodeMetrics,
    Observation,
    Operator,
    OperatorMetrics,
    Plan,
    Topology,
)
from controller.models.scaling_process import KEEP, States, Weights
from controller.network import RttDelays, RttUniform
from controller.policies import create
from controller.policies.edf.application_manager import TokenBucket, answers
from controller.policies.edf.costs import Costs
from controller.policies.edf.learning import Rules
from controller.policies.edf.model_based import ModelBased
from controller.policies.edf.node_manager import a_near_one, busiest_of, changed, migrations
from controller.policies.edf.operator_manager import View
from controller.policies.edf.q_learning import QLearning
from controller.policies.edf.requests import Request
from controller.policies.edf.threshold import Threshold
from controller.run import followed
from fogscale.errors import FogscaleError
from tests.support.runs import load_csv, run_values

WEIGHTS = Weights(performance=0.4, resources=0.4, reconfiguration=0.2)
RULES = Rules(WEIGHTS, discount=0.5, rate=0.1, exploration=0.0)
STATES = States(1, 3, 10, 50.0)


def cpu(*utilisations):
    return View(len(utilisations), None, None, utilisations)


def slow_at(replicas, rate_per_s, response_ms):
    return View(replicas, rate_per_s, response_ms, ())


# Thresholds (§5.1)


@pytest.mark.parametrize(
    ("utilisations", "change", "score"),
    [
        pytest.param((0.85,), 1, 0.5, id="halfway between the threshold and 100 %"),
        pytest.param((0.6, 0.76), 1, 0.2, id="one hot replica is enough"),
        pytest.param((0.7,), 0, None, id="at the threshold nothing happens"),
        pytest.param((0.3, 0.3), 0, None, id="0.6 left alone is not below 0.75 · 0.7"),
        pytest.param((0.2, 0.22), -1, (0.525 - 0.42) / 0.525, id="one can go"),
        pytest.param((0.05,), 0, None, id="the last one stays"),
        pytest.param((0.9, 0.9, 0.9), 0, None, id="no more than K_max"),
        pytest.param((), 0, None, id="nothing measured"),
    ],
)
def test_thresholds(utilisations, change, score):
    proposal = Threshold(0.7, 0.75, 1, 3).propose(replace(cpu(*utilisations)))
    assert (proposal.change if proposal else 0) == change
    if proposal:
        assert proposal.score == pytest.approx(score)


# Q-learning (§5.2.1)


def q_learning(rules=RULES, states=STATES, seed=1):
    return QLearning("op", states, rules, 100.0, np.random.default_rng(seed))


def test_q_learning_updates_by_equation_2():
    learner = q_learning()
    assert learner.propose(slow_at(1, 100.0, 50.0)) is None  # all are 0: nothing is done
    learner.carried_out(0)
    learner.propose(slow_at(1, 200.0, 150.0))  # too slow: 0.4, and one replica of three costs 0.4 / 3
    assert learner.values[0, 2, KEEP] == pytest.approx(0.1 * (0.4 + 0.4 / 3))
    assert np.count_nonzero(np.where(np.isfinite(learner.values), learner.values, 0)) == 1


def test_q_learning_tries_what_it_has_not_tried():
    learner = q_learning()
    learner.propose(slow_at(1, 100.0, 50.0))
    learner.carried_out(0)
    proposal = learner.propose(slow_at(1, 100.0, 50.0))  # to keep has cost something, to add nothing yet
    assert proposal.change == 1
    assert proposal.score == pytest.approx(0.1 * 0.4 / 3)


def test_who_was_denied_learns_that_it_kept_its_replicas():
    learner = q_learning()
    learner.propose(slow_at(1, 100.0, 50.0))
    learner.carried_out(0)
    learner.propose(slow_at(1, 100.0, 50.0))  # asks for one more
    learner.carried_out(0)  # and does not get it
    learner.propose(slow_at(1, 100.0, 50.0))
    once = 0.1 * 0.4 / 3
    assert learner.values[0, 2, KEEP] == pytest.approx(0.9 * once + 0.1 * (0.4 / 3 + 0.5 * 0.0))
    assert learner.values[0, 2, 2] == 0.0


def test_what_came_otherwise_than_planned_teaches_nothing():
    learner = q_learning()
    learner.propose(slow_at(1, 100.0, 50.0))
    learner.carried_out(1)
    learner.propose(slow_at(1, 100.0, 50.0))  # the replica never came: a node was lost, a plan failed
    assert not np.where(np.isfinite(learner.values), learner.values, 0).any()


def test_what_a_long_change_has_brought_is_learned_once_it_is_over():
    """It takes two turns, in the first of which the operator stands still."""
    seen = busy_job()
    policy = started(seen.topology, local="q_learning")
    assert policy.decide(seen) is None
    more = policy.decide(replace(seen, time_s=30.0)).placement
    paused = replace(seen, time_s=60.0, placement={**more, "work": ()}, requested=more)
    assert policy.decide(paused) is None
    policy.decide(replace(seen, time_s=90.0, placement=more, requested=more))
    added = policy.save()["operators"]["work"]["values"][0][2][2]  # with one replica, at 100/s, one more
    assert added == pytest.approx(0.1 * (0.2 + 0.4 * 2 / 3))


def test_exploration_draws_from_what_is_allowed():
    learner = q_learning(replace(RULES, exploration=1.0))
    drawn = []
    for _ in range(200):
        proposal = learner.propose(slow_at(1, 100.0, 50.0))
        drawn.append(proposal.change if proposal else 0)
        learner.carried_out(0)
    assert {*drawn} == {0, 1}
    assert 70 < drawn.count(1) < 130


# Model-based (§5.2.2)


def model_based(states=STATES):
    return ModelBased("op", states, RULES, 100.0)


def test_model_based_counts_transitions_and_averages_costs():
    learner = model_based()
    for rate_per_s, response_ms in ((100.0, 50.0), (100.0, 150.0), (150.0, 150.0)):
        learner.propose(slow_at(1, rate_per_s, response_ms))
        learner.carried_out(0)
    assert learner.moves[2, [2, 3]].tolist() == [0.5, 0.5]  # from 100/s once to 100, once to 150
    assert learner.moves[7, 7] == 1.0  # never seen: it stays
    assert learner.unknown_cost[0, 2] == pytest.approx(0.1 * 0.4)
    assert learner.unknown_cost[0, 3] == pytest.approx(0.9 * 0.04 + 0.1 * 0.4)


def test_costs_rise_with_the_rate_and_fall_with_the_replicas():
    learner = model_based()
    learner.propose(slow_at(2, 200.0, 50.0))
    learner.carried_out(0)
    learner.propose(slow_at(2, 200.0, 150.0))  # too slow with two at 200/s
    costs = learner.unknown_cost
    assert costs[:2, 4:] == pytest.approx(0.04)  # so with one or two at 200/s or more
    assert not costs[2].any()  # of three nothing is known
    assert not costs[:, :4].any()
    learner.carried_out(0)
    for _ in range(50):
        learner.propose(slow_at(1, 300.0, 50.0))  # one is quick enough at 300/s
        learner.carried_out(0)
    assert (learner.unknown_cost[:, :7] <= learner.unknown_cost[0, 6] + 1e-12).all()


def test_model_based_learns_to_add_a_replica_where_one_is_too_slow():
    learner = ModelBased("op", STATES, replace(RULES, discount=0.99), 100.0)
    replicas, requests = 1, []
    for _ in range(200):
        proposal = learner.propose(slow_at(replicas, 300.0, 150.0 if replicas == 1 else 50.0))
        change = proposal.change if proposal else 0
        learner.carried_out(change)
        requests.append(change)
        replicas += change
    assert replicas == 2
    assert sum(map(abs, requests[-100:])) == 0


def test_a_step_of_the_largest_operator_is_one_backup(monkeypatch):
    from controller.policies.edf import model_based as module

    calls = []
    original = module.backed_up
    monkeypatch.setattr(module, "backed_up", lambda *values: calls.append(1) or original(*values))
    learner = ModelBased("op", States(1, 6, 10, 50.0), RULES, 100.0)
    for _ in range(5):
        learner.propose(slow_at(1, 300.0, 150.0))
        learner.carried_out(0)
    assert len(calls) == 4  # the first look has nothing behind it


@pytest.mark.parametrize("make", [q_learning, model_based])
def test_an_operator_that_cannot_be_scaled_asks_for_nothing(make):
    learner = make(states=States(1, 1, 10, 50.0))
    for rate_per_s in (0.0, 100.0, 1e9):
        assert learner.propose(slow_at(1, rate_per_s, 500.0)) is None
        learner.carried_out(0)
    assert learner.clipped == 1


@pytest.mark.parametrize("make", [q_learning, model_based])
@pytest.mark.parametrize("gap", [{"rate_per_s": None}, {"response_ms": None}])
def test_without_a_rate_or_a_response_time_nothing_is_asked_or_learned(make, gap):
    learner = make()
    learner.propose(slow_at(1, 100.0, 50.0))
    learner.carried_out(0)
    assert learner.propose(replace(slow_at(1, 100.0, 150.0), **gap)) is None
    assert not np.where(np.isfinite(learner.values), learner.values, 0).any()


# The application manager (§7)


def request(operator, score, node="n1", action="scale_out"):
    return Request(action, operator, node, score, f"operator {operator}", "because")


def told(answered):
    return {answer.request.operator: answer.granted for answer in answered}


def test_of_two_that_want_the_same_node_the_higher_score_gets_it():
    answered = answers([request("a", 0.2), request("b", 0.6), request("c", 0.1, "n2")], None)
    assert told(answered) == {"a": False, "b": True, "c": True}
    denied = next(answer for answer in answered if not answer.granted)
    assert "conflict: scale_out of b has n1" in denied.why


def test_of_equal_scores_who_asked_first_gets_it():
    assert told(answers([request("a", 0.5), request("b", 0.5)], None)) == {"a": True, "b": False}


def test_to_remove_replicas_of_one_node_is_no_conflict():
    asked = [request("a", 0.5, action="scale_in"), request("b", 0.4, action="scale_in")]
    assert all(told(answers(asked, None)).values())


def test_an_operator_is_changed_once_at_a_time():
    asked = [request("a", 0.5), request("a", 0.9, "n2", "migrate")]
    assert [(each.request.action, each.granted) for each in answers(asked, None)] == [
        ("scale_out", False),
        ("migrate", True),
    ]


def bucket(capacity=1):
    return TokenBucket(capacity, period_s=60.0, low_ms=125.0, high_ms=225.0)


def test_a_slow_application_gets_a_token_for_one_scale_out():
    tokens = bucket()
    tokens.refill(0.0, 300.0)
    asked = [request("a", 0.2, "n1"), request("b", 0.6, "n2"), request("c", 0.9, "n3", "scale_in")]
    assert told(answers(asked, tokens)) == {"a": False, "b": True, "c": False}


def test_a_quick_application_gets_a_token_for_one_scale_in():
    tokens = bucket()
    tokens.refill(0.0, 100.0)
    asked = [request("a", 0.2, "n1"), request("c", 0.1, "n3", "scale_in")]
    assert told(answers(asked, tokens)) == {"a": False, "c": True}


@pytest.mark.parametrize("response_ms", [125.0, 200.0, 225.0, None])
def test_between_the_thresholds_nothing_is_granted(response_ms):
    tokens = bucket()
    tokens.refill(0.0, response_ms)
    assert not any(told(answers([request("a", 0.2)], tokens)).values())


def test_tokens_of_one_kind_drive_out_the_others_and_do_not_pile_up():
    tokens = bucket(capacity=2)
    for turn in range(5):
        tokens.refill(60.0 * turn, 100.0)
    assert (tokens.kind, tokens.tokens) == ("L", 2)
    tokens.refill(300.0, 300.0)
    assert (tokens.kind, tokens.tokens) == ("H", 1)


def test_a_token_comes_once_a_period():
    tokens = bucket(capacity=9)
    for time_s in (0.0, 30.0, 60.0, 90.0, 120.0):
        tokens.refill(time_s, 300.0)
    assert tokens.tokens == 3


# Node managers (§5, §6)


def test_near_nodes_are_likelier():
    rng = np.random.default_rng(1)
    distance_ms = {"a": 0.0, "b": 10.0, "c": 10.0, "d": 50.0}
    drawn = [
        a_near_one(list(distance_ms), ["a"], lambda node, _origin: distance_ms[node], rng)
        for _ in range(4500)
    ]
    shares = {node: drawn.count(node) / 4500 for node in distance_ms}
    expected = {"a": 1.0, "b": 0.5, "c": 0.5, "d": 0.25}  # halved with every further distance
    for node, weight in expected.items():
        assert shares[node] == pytest.approx(weight / 2.25, abs=0.03)


def test_a_scale_in_relieves_the_busiest_node():
    metrics = {"n1": NodeMetrics(0.2), "n2": NodeMetrics(0.9), "n3": NodeMetrics(None)}
    assert busiest_of(("n1", "n2", "n3"), metrics) == "n2"
    assert busiest_of(("n1", "n3"), {}) == "n3"  # nothing known: the youngest


NODES = tuple(Node(name, 8, 16384, slots=2) for name in ("n1", "n2", "n3"))
FAR = RttDelays({"n1": 1.0, "n2": 5.0, "n3": 80.0})


def job(cpu_of_nodes, placement, operators=None, rtt_ms=FAR):
    topology = Topology(NODES, (Operator("source", n_max=1), Operator("work", ("source",), n_max=3)), rtt_ms)
    return Observation(
        time_s=60.0,
        topology=topology,
        placement=placement,
        requested=placement,
        operators=operators or {"source": OperatorMetrics(), "work": OperatorMetrics()},
        nodes={name: NodeMetrics(cpu_ratio) for name, cpu_ratio in cpu_of_nodes.items()},
        measured_s=60.0,
        response_time_ms=100.0,
    )


def test_an_overloaded_node_sheds_a_replica_to_one_that_is_not():
    seen = job({"n1": 0.9, "n2": 0.85, "n3": 0.1}, {"source": ("n2",), "work": ("n1",)})
    asked = migrations(seen, 0.8, FAR, np.random.default_rng(1))
    assert [(each.operator, each.moved_from, each.node) for each in asked] == [
        ("work", "n1", "n3"),
        ("source", "n2", "n3"),
    ]
    assert [each.score for each in asked] == pytest.approx([0.5, 0.25])
    assert changed(seen.requested, asked[0])["work"] == ("n3",)


@pytest.mark.parametrize("ratio", [0.8, 0.3, None, nan])
def test_a_node_that_is_not_overloaded_keeps_all(ratio):
    seen = job({"n1": ratio, "n2": 0.1, "n3": 0.1}, {"source": ("n2",), "work": ("n1",)})
    assert migrations(seen, 0.8, FAR, np.random.default_rng(1)) == []


def test_without_a_calm_node_nobody_moves():
    seen = job({"n1": 0.9, "n2": 0.9, "n3": None}, {"source": ("n2",), "work": ("n1",)})
    assert migrations(seen, 0.8, FAR, np.random.default_rng(1)) == []


# The whole


def started(topology, **parameters):
    policy = create("edf", parameters)
    policy.start(topology, np.random.default_rng(1))
    return policy


def hot(ratio, response_ms=50.0, rate_per_s=100.0):
    instance = InstanceMetrics("work-n1-0", "n1", "running", cpu_ratio=ratio)
    return OperatorMetrics(
        arrival_rate_per_s=rate_per_s, cpu_ratio=ratio, response_time_ms=response_ms, instances=(instance,)
    )


def busy_job(ratio=0.9, **changes):
    operators = {"source": OperatorMetrics(), "work": hot(ratio, **changes)}
    return job(dict.fromkeys(("n1", "n2", "n3"), 0.1), {"source": ("n2",), "work": ("n1",)}, operators)


def test_what_is_asked_granted_and_denied_stands_in_the_notes():
    seen = busy_job()
    policy = started(seen.topology, local="threshold")
    plan = policy.decide(seen)
    assert len(plan.placement["work"]) == 2
    assert plan.reason == "work +1: a replica at 90%, above 70%"
    assert [(note.kind, note.sender, note.receiver) for note in policy.notes] == [
        ("scale_out", "operator work", "application manager"),
        ("granted", "application manager", "operator work"),
    ]
    assert policy.notes[0].data["score"] == pytest.approx(2 / 3)
    with_tokens = started(seen.topology, local="threshold", token_bucket=True)
    assert with_tokens.decide(replace(seen, response_time_ms=200.0)) is None
    assert [note.kind for note in with_tokens.notes] == ["scale_out", "denied"]
    assert with_tokens.notes[1].data["why"] == "no tokens in the bucket"
    assert with_tokens.estimates == {"asked": 1.0, "granted": 0.0}


@pytest.mark.parametrize("local", ["threshold", "q_learning", "model_based"])
def test_readings_that_are_no_numbers_are_no_readings(local):
    seen = busy_job(nan, response_ms=nan, rate_per_s=nan)
    policy = started(seen.topology, local=local)
    for turn in range(5):
        assert policy.decide(replace(seen, time_s=30.0 * turn)) is None


def test_where_every_slot_is_taken_nothing_is_asked():
    full = {"source": ("n2",), "work": ("n1",)}
    topology = Topology(
        tuple(replace(node, slots=1) for node in NODES[:2]),
        (Operator("source", n_max=1), Operator("work", ("source",), n_max=3)),
        RttUniform(1.0),
    )
    seen = replace(
        job({"n1": 0.1, "n2": 0.1}, full, {"source": OperatorMetrics(), "work": hot(0.9)}), topology=topology
    )
    policy = started(topology, local="threshold")
    assert policy.decide(seen) is None
    assert policy.notes == ()


@pytest.mark.parametrize(
    ("local", "left"), [("threshold", {1}), ("model_based", {1}), ("q_learning", {1, 2, 3, 4, 5})]
)
def test_where_nothing_arrives_no_replica_is_kept_without_need(local, left, tmp_path):
    """A minute of records, then an hour of nothing; Q-learning tries others out to the end."""
    values = run_values("edf", load_csv(tmp_path, [10.0] + [0.0] * 60), policy_parameters={"local": local})
    values["testbed"] |= {"buffering": "queues", "reconfiguration": {"style": "pause", "duration_s": 2}}
    log = SampleLog()
    followed(Run.model_validate(values), log)
    assert log.samples[0].replicas["map"] == 2
    assert log.samples[-1].replicas["map"] in left
    assert log.samples[-1].lag_records == 0


def test_rates_beyond_the_range_are_counted():
    seen = busy_job(rate_per_s=5000.0)
    policy = started(seen.topology)
    policy.decide(seen)
    assert policy.estimates["rates_beyond_range"] == 1.0


def test_coordinates_stand_in_for_the_matrix():
    seen = busy_job()
    policy = started(seen.topology, local="threshold", distances="coordinates")
    assert policy.decide(seen) is not None


# Warm start


def taught(local, turns=40):
    seen = busy_job(response_ms=400.0)
    policy = started(seen.topology, local=local)
    for turn in range(turns):
        policy.decide(replace(seen, time_s=30.0 * turn))
    return policy


@pytest.mark.parametrize("local", ["q_learning", "model_based"])
def test_what_was_learned_comes_back_from_a_file(local):
    learned = json.loads(json.dumps(taught(local).save()))
    fresh = started(busy_job().topology, local=local)
    fresh.load(learned)
    assert fresh.save() == learned
    assert (
        learned["operators"]["work"]["values"]
        != started(busy_job().topology, local=local).save()["operators"]["work"]["values"]
    )


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        pytest.param(lambda it: it.update(version=9), "has version 9", id="another version"),
        pytest.param(lambda it: it.update(local="q_learning"), "learned by q_learning", id="another learner"),
        pytest.param(lambda it: it["operators"].clear(), "says nothing of operator 'work'", id="no operator"),
        pytest.param(lambda it: it["operators"]["work"].update(k_max=5), "k_max 5", id="other dimensions"),
        pytest.param(lambda it: it["operators"]["work"].update(levels=3), "levels 3", id="fewer levels"),
        pytest.param(lambda it: it["operators"]["work"].update(values=[1.0]), "damaged", id="a torn table"),
        pytest.param(lambda it: it["operators"]["work"].update(seen="x"), "damaged", id="no table at all"),
        pytest.param(
            lambda it: it["operators"]["work"]["seen"][2].append(-1.0), "damaged", id="a longer row"
        ),
        pytest.param(
            lambda it: it["operators"]["work"].update(largest_gain=-1.0), "damaged", id="less than nothing"
        ),
        pytest.param(lambda it: it["operators"]["work"].update(largest_gain=nan), "damaged", id="no number"),
        pytest.param(lambda it: it.update(operators=[1]), "damaged", id="no mapping"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(damage, message):
    learned = json.loads(json.dumps(taught("model_based").save()))
    damage(learned)
    with pytest.raises(FogscaleError, match=message) as refusal:
        started(busy_job().topology).load(learned)
    assert "\n" not in str(refusal.value)


def test_thresholds_have_nothing_to_start_from():
    policy = started(busy_job().topology, local="threshold")
    assert policy.save()["operators"] == {}
    with pytest.raises(FogscaleError, match="learns nothing"):
        policy.load(policy.save())


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"performance_weight": 0.9}, "add up to 1.5"),
        ({"high_ratio": 1.0}, "high_ratio is 1"),
        ({"discount": 1.0}, "less than 1"),
        ({"learning_rate": 1.5}, "at most 1"),
        ({"quantum_per_s": 0.0}, "more than 0"),
        ({"bucket_low_ms": 300.0}, "swap them"),
    ],
)
def test_impossible_parameters_are_refused(parameters, message):
    with pytest.raises(FogscaleError, match=message):
        create("edf", parameters)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"response_bounds_ms": {"wrok": 5.0}}, "did you mean work"),
        ({"response_bounds_ms": {"work": 0.0}}, "give more than 0"),
        ({"quantum_per_s": 0.001}, "raise quantum_per_s"),
    ],
)
def test_parameters_that_do_not_fit_the_job_are_refused(parameters, message):
    with pytest.raises(FogscaleError, match=message):
        started(busy_job().topology, **parameters)


# What it costs


def test_costs_are_counted_turn_by_turn():
    """Of three replicas, one runs, then two; asked for the second, slow before it came; the last turn tells
    nothing of its response time, as an operator that stands still."""
    policy = create("edf", {"response_bounds_ms": {"work": 100.0}})
    costs = Costs(policy)
    slow = busy_job(response_ms=150.0)
    more = {**slow.requested, "work": ("n1", "n2")}
    costs.append(Step(slow, Plan(more, reason="because"), 30.0, ()))
    quick = replace(busy_job(response_ms=50.0), placement=more, requested=more)
    costs.append(Step(quick, None, 30.0, ()))
    paused = replace(busy_job(response_ms=None), placement=more, requested=more, response_time_ms=None)
    costs.append(Step(paused, None, 30.0, ()))
    row = costs.row()
    assert row["performance"] == pytest.approx(0.4 * 2 / 3)
    assert row["resources"] == pytest.approx(0.4 * 2 / 3)
    assert row["reconfiguration"] == pytest.approx(0.2 / 3)
    assert row["cost"] == pytest.approx(row["performance"] + row["resources"] + row["reconfiguration"])
    assert row["replicas"] == pytest.approx(3.0)
    assert row["slow"] == pytest.approx(1 / 3)
