"""Every instance decides for itself, through the ordinary loop: what it sees, what becomes of it."""

from collections import Counter
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from controller import loop
from controller.experiment import Run
from controller.model import Capability, Instance, Node, Operator, OperatorMetrics, Topology
from controller.network import RttUniform
from controller.policies import create
from controller.protocol.delays import views_agree
from controller.protocol.messages import SCALING_KINDS
from controller.run import prepare
from fogscale.errors import FogscaleError
from tests.support.runs import load_csv

OPERATORS = ("first", "second", "third")
UP_AND_DOWN_PER_S = [150.0] * 3 + [500.0] * 6 + [100.0] * 6  # minute by minute; an instance does 100


@dataclass
class Steps:
    steps: list = field(default_factory=list)
    recorded: None = None

    def append(self, step):
        self.steps.append(step)

    def end(self, finished, samples, findings):
        self.finished = finished


def pipeline_run(folder, rates_per_s=UP_AND_DOWN_PER_S, *, nodes=24, elastic=False, faults=(), **parameters):
    """Three operators of two instances; new nodes are there at once, and nothing stops."""
    return Run.model_validate(
        {
            "experiment": "test",
            "policy": "decentralized",
            "policy_parameters": {"period_s": 2.0} | parameters,
            "workload": {"name": str(load_csv(folder, rates_per_s)), "speed": 1, "copies": 1},
            "seed": 1,
            "topology": {
                "nodes": [{"name": f"n{i}"} for i in range(1, nodes + 1)],
                "operators": [
                    {"name": name, "upstream": list(OPERATORS[:i][-1:])} for i, name in enumerate(OPERATORS)
                ],
                "rtt_ms": {"uniform_ms": 5},
                "elastic": elastic,
            },
            "start": dict.fromkeys(OPERATORS, 2),
            "measured_operator": "second",
            "testbed": {
                "kind": "simulated",
                "capacity": {name: {"law": "linear", "per_replica_per_s": 100} for name in OPERATORS},
                "reconfiguration": {"style": "boot", "duration_s": [1, 4]},
                "buffering": "queues",
                "metric_window_s": 2,
                "faults": list(faults),
            },
        }
    )


def played(run):
    """The run, its policy afterwards and the turns of the loop."""
    prepared = prepare(run)
    testbed, policy = prepared.ready()
    log = Steps()
    with testbed:
        loop.run(testbed, policy, log)
    return prepared, policy.policy, log.steps  # without what contains its mistakes


@pytest.fixture(scope="module")
def usual(tmp_path_factory):
    return played(pipeline_run(tmp_path_factory.mktemp("load")))


def settled(policy):
    """The agents once what is under way has come to its end, with no new decisions."""
    crew = policy._crew
    while not crew.is_quiet:
        crew.advance()
    return crew


def counts(steps):
    return [sum(len(nodes) for nodes in step.observation.requested.values()) for step in steps]


def notes_of(steps, kind):
    return [note for step in steps for note in step.notes if note.kind == kind]


def test_instances_come_and_go_with_the_load(usual):
    _, _, steps = usual
    by_time = {step.observation.time_s: count for step, count in zip(steps, counts(steps), strict=True)}
    assert by_time[538] == pytest.approx(3 * 500 / 70, abs=5)  # 6/7..8/7 of 21.4 leaves none to act
    assert by_time[898] == pytest.approx(3 * 100 / 70, abs=3)


def test_an_instance_is_created_inactive_and_starts_once_its_neighbours_know_it(usual):
    _, _, steps = usual
    born = {}
    for step in steps:
        for some in (step.plan.instances if step.plan else {}).values():
            for each in some:
                born.setdefault(each.id, []).append((step.observation.time_s, each.active))
    new = {name: seen for name, seen in born.items() if not seen[0][1]}
    assert len(new) > 10
    started = [name for name, seen in new.items() if seen[-1][1]]
    assert len(started) == len(new)
    for name in started:
        assert next(t for t, active in new[name] if active) > new[name][0][0]


def test_no_name_is_ever_used_again_and_no_plan_is_refused(usual):
    _, _, steps = usual
    receipts = [receipt for step in steps for receipt in step.observation.receipts]
    assert {receipt.outcome for receipt in receipts} == {"done"}
    there, gone = set(), set()
    for step in steps:
        now = {each.id for some in step.observation.requested_instances.values() for each in some}
        assert not now & gone
        gone |= there - now
        there = now
    assert len(gone) > 10


def test_when_quiet_every_agent_has_an_instance_and_views_agree(usual):
    _, policy, steps = usual
    agents = {agent.name for agent in policy._crew.members()}
    wanted = policy._wanted_instances(steps[-1].observation)
    assert agents <= {each.id for some in wanted.values() for each in some}
    assert views_agree(settled(policy).states, len(OPERATORS))


def test_wrong_totals_change_no_decision(usual):
    """An agent sees what arrives at it: nothing that is said of an operator, a node or the job counts."""
    prepared, _, steps = usual
    policy, rng = prepared.policy(), np.random.default_rng(7)
    for step in steps:
        seen = step.observation
        wrong = {
            name: OperatorMetrics(*rng.uniform(0, 1e6, 11), instances=shown.instances)
            for name, shown in seen.operators.items()
        }
        lied_to = replace(seen, operators=wrong, nodes={}, lag_records=1e9, response_time_ms=1e9)
        assert policy.decide(lied_to) == step.plan


def test_the_own_load_does_change_decisions(usual):
    prepared, _, steps = usual
    policy = prepared.policy()
    plans = []
    for step in steps:
        idle = {
            name: replace(
                shown, instances=tuple(replace(each, arrival_rate_per_s=0.0) for each in shown.instances)
            )
            for name, shown in step.observation.operators.items()
        }
        plans.append(policy.decide(replace(step.observation, operators=idle)))
    assert plans != [step.plan for step in steps]


def test_messages_and_decisions_are_notes_and_questions_for_n_t_are_counted_apart(usual):
    _, _, steps = usual
    for step in steps:
        kinds = Counter(note.kind for note in step.notes)
        assert step.estimates["messages"] == sum(kinds[kind] for kind in SCALING_KINDS)
        assert step.estimates["questions"] == kinds["count"] + kinds["count_reply"]
    assert sum(step.estimates["questions"] for step in steps) > 0
    asked = sum(note.data["nodes"] for note in notes_of(steps, "duplicates"))
    assert len(notes_of(steps, "start")) == asked  # every node that was created got its start
    assert all(note.data["n_t"] >= 1 for note in notes_of(steps, "count_reply"))


def test_a_duplication_that_finds_no_node_fails_and_is_tried_again(tmp_path):
    """Nine nodes for what needs 21; when the load falls, all of them are given back."""
    _, policy, steps = played(pipeline_run(tmp_path, nodes=9))
    failed = [note for note in notes_of(steps, "duplicates") if note.data["nodes"] < note.data["wanted"]]
    assert len(failed) > 3
    assert max(counts(steps)) == 9
    assert {r.outcome for step in steps for r in step.observation.receipts} == {"done"}
    assert counts(steps)[-1] < 9
    assert views_agree(settled(policy).states, len(OPERATORS))


def test_once_a_node_comes_back_the_next_look_gets_it(tmp_path):
    fault = {"kind": "node_loss", "at_s": 60, "for_s": 400, "node": "n9", "recovery_s": 1}
    rates_per_s = [150.0] * 3 + [400.0] * 10
    _, _, steps = played(pipeline_run(tmp_path, rates_per_s, nodes=9, faults=[fault]))
    used = [step.observation.time_s for step in steps if "n9" in str(step.observation.requested)]
    assert min(used) > 460
    assert max(counts(steps)) == 9


def test_an_elastic_pool_has_always_one_more(tmp_path):
    _, _, steps = played(pipeline_run(tmp_path, nodes=6, elastic=True))
    assert max(counts(steps)) > 15
    assert all(note.data["nodes"] == note.data["wanted"] for note in notes_of(steps, "duplicates"))


@pytest.mark.parametrize("node", ["n3", "n4"])
def test_a_lost_instance_is_forgotten_and_a_lost_keeper_replaced(tmp_path, node):
    fault = {"kind": "node_loss", "at_s": 250, "for_s": 200, "node": node, "recovery_s": 1}
    _, policy, steps = played(pipeline_run(tmp_path, faults=[fault]))
    assert views_agree(settled(policy).states, len(OPERATORS))
    for operator in range(len(OPERATORS)):
        own = [s for a, s in policy._crew.members().items() if a.operator == operator]
        assert sum(s.is_keeper for s in own) == 1
    was_keeper = steps[0].observation.requested_instances["second"][0].node == node
    assert len(notes_of(steps, "keeps")) == was_keeper


def test_an_operator_that_lost_all_its_instances_goes_on_with_what_the_testbed_restarts(tmp_path):
    fault = {"kind": "node_loss", "at_s": 100, "for_s": 60, "node": "n3", "recovery_s": 1}
    run = pipeline_run(tmp_path, [60.0] * 6, faults=[fault])
    run = run.model_copy(update={"start": {"first": 2, "second": 1, "third": 2}})
    _, policy, steps = played(run)
    assert min(len(step.observation.requested["second"]) for step in steps) == 0
    assert len(steps[-1].observation.requested["second"]) >= 1
    assert views_agree(settled(policy).states, len(OPERATORS))


def test_without_a_known_capacity_an_instance_goes_by_its_own_busy_time(tmp_path):
    prepared = prepare(pipeline_run(tmp_path))
    known, measured = (
        create("decentralized", {"capacity_per_s": {"first": (100.0,)}}),
        create("decentralized"),
    )
    assert measured.needs - known.needs == {Capability.BUSY}
    testbed, log = prepared.setup.testbed(), Steps()
    policy = create("decentralized", {"period_s": 2.0})
    policy.start(prepared.topology, np.random.default_rng(1))
    loop.run(testbed, policy, log)
    assert max(counts(log.steps)) == pytest.approx(3 * 500 / 70, abs=8)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"target_ratio": 0.0}, "target_ratio is 0.0: give a ratio above 0"),
        ({"target_ratio": 1.5}, "at most 1"),
        ({"up_ratio": 0.6}, "give a down_ratio below up_ratio"),
        ({"up_ratio": 0.5, "down_ratio": 0.6}, "give a down_ratio below up_ratio"),
        ({"printed": ["all_at_onec"]}, "'printed' of policy 'decentralized'"),
        ({"period_steps": 0}, "give at least 1"),
    ],
)
def test_parameters_that_make_no_sense_are_named_before_the_run(tmp_path, parameters, message):
    with pytest.raises(FogscaleError, match=message):
        prepare(pipeline_run(tmp_path, **parameters)).policy()


def test_a_target_of_all_of_the_capacity_is_allowed(tmp_path):
    run = pipeline_run(tmp_path, target_ratio=1.0, up_ratio=1.0, down_ratio=0.8)
    assert max(counts(played(run)[2])) >= 12


def test_a_job_that_branches_is_refused_in_one_line():
    operators = (Operator("a"), Operator("b", ("a",)), Operator("c", ("a",)))
    topology = Topology((Node("n", 1, 1),), operators, RttUniform(1.0))
    with pytest.raises(FogscaleError, match="'c' does not come after b alone"):
        create("decentralized").start(topology, np.random.default_rng(1))


def test_what_is_there_inactive_and_not_its_own_is_left_alone(usual):
    prepared, _, steps = usual
    policy = prepared.policy()
    first = steps[1].observation
    stranger = Instance("somebody", "n24", active=False)
    there = {**first.requested_instances, "second": (*first.requested_instances["second"], stranger)}
    assert policy.decide(replace(first, requested_instances=there)) is None
