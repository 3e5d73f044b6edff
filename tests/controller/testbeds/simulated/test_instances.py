"""Instances have an identity: each plan does to this one, and to no other, what it says."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.model import Instance, Node, Operator, Plan, Topology
from controller.network import RttUniform
from tests.support.runs import constant, simulated

NODES = ("fog1", "fog2", "fog3")
STYLES = ("restart", "in_place", "boot", "pause", "instant")
BOOT = {"style": "boot", "duration_s": 10}


def two_slots_each() -> Topology:
    names = ("services", *NODES)
    return Topology(
        nodes=tuple(Node(name, 4, 2048, slots=2) for name in names),
        operators=(
            Operator("source", n_max=1),
            Operator("map", ("source",), n_max=6),
            Operator("sink", ("map",), n_max=1),
        ),
        rtt_ms=RttUniform(1.0),
    )


def job(style="instant", map_nodes=("fog1", "fog1"), **changes):
    reconfiguration = {"style": style, "duration_s": 0 if style == "instant" else 2}
    values = {"reconfiguration": reconfiguration, "sample_interval_s": 1} | changes
    return simulated(constant(10, 3000), topology=two_slots_each(), map_nodes=map_nodes, **values)


def asked(job, *map_instances, reason="by name"):
    """Asks for these instances of map; the others stay. What came of it, and what is seen a minute later."""
    others = job.observe().requested_instances
    job.apply(Plan.of_instances({**others, "map": tuple(map_instances)}, reason))
    job.wait(60)
    seen = job.observe()
    return seen.receipts[-1], seen


def states(seen):
    return {each.id: each.state for each in seen.operators["map"].instances}


def truth(job):
    return list(job.samples())[-1]


@pytest.mark.parametrize("style", STYLES)
def test_removing_the_first_of_two_on_a_node_removes_the_first(style):
    running = job(style)
    first, second = running.observe().requested_instances["map"]
    receipt, seen = asked(running, second)
    assert receipt.outcome == "done"
    assert seen.requested_instances["map"] == (second,)
    assert states(seen) == {second.id: "running"}
    assert first.id != second.id


@pytest.mark.parametrize("style", STYLES)
def test_leave_and_join_on_one_node_in_one_plan_is_a_change(style):
    running = job(style)
    _, second = running.observe().requested_instances["map"]
    receipt, seen = asked(running, second, Instance("successor", "fog1"))
    assert receipt.outcome == "done"
    assert states(seen) == {second.id: "running", "successor": "running"}
    assert seen.placement["map"] == ("fog1", "fog1")
    assert truth(running).reconfigurations == 1


@pytest.mark.parametrize("style", STYLES)
def test_an_inactive_instance_takes_a_slot_and_costs_but_serves_nothing(style):
    running = job(style)
    now = running.observe().requested_instances["map"]
    spare = Instance("spare", "fog2", active=False)
    receipt, seen = asked(running, *now, spare)
    assert (receipt.outcome, receipt.downtime_s) == ("done", 0.0)  # nobody who serves was touched
    assert states(seen)["spare"] == "inactive"
    assert seen.placement["map"] == ("fog1", "fog1")
    sample = truth(running)
    assert (sample.replicas["map"], sample.allocated, sample.reconfigurations) == (2, 5, 0)

    too_many = (*now, spare, Instance("x", "fog2"), Instance("y", "fog2"))
    receipt, seen = asked(running, *too_many)
    assert receipt.message == "node fog2 has 2 slots, the plan takes 3"

    receipt, seen = asked(running, *now, replace(spare, active=True))
    assert receipt.outcome == "done"
    assert states(seen)["spare"] == "running"
    assert (truth(running).replicas["map"], seen.placement["map"]) == (3, ("fog1", "fog1", "fog2"))


def test_what_is_up_already_serves_at_once_and_a_new_one_boots():
    running = job(reconfiguration=BOOT)
    now = running.observe().requested_instances["map"]
    spare = Instance("spare", "fog2", active=False)
    asked(running, *now, spare)
    others = running.observe().requested_instances
    wanted = (*now, replace(spare, active=True), Instance("new", "fog3"))
    running.apply(Plan.of_instances({**others, "map": wanted}, "both"))
    running.wait(1)
    assert states(running.observe())["spare"] == "running"
    assert states(running.observe())["new"] == "booting"
    running.wait(10)
    assert states(running.observe())["new"] == "running"


def test_one_that_is_activated_while_it_boots_serves_when_it_has_booted():
    running = job(reconfiguration=BOOT)
    others = running.observe().requested_instances
    now, spare = others["map"], Instance("spare", "fog2", active=False)
    running.apply(Plan.of_instances({**others, "map": (*now, spare)}, "create"))
    running.wait(4)
    assert states(running.observe())["spare"] == "booting"
    running.apply(Plan.of_instances({**others, "map": (*now, replace(spare, active=True))}, "activate"))
    running.wait(5)
    assert states(running.observe())["spare"] == "booting"
    running.wait(1)  # 10 s after it was created, not after it was activated
    assert states(running.observe())["spare"] == "running"


@pytest.mark.parametrize("style", STYLES)
def test_a_move_keeps_the_name(style):
    running = job(style)
    first, second = running.observe().requested_instances["map"]
    _, seen = asked(running, replace(first, node="fog3"), second)
    assert states(seen) == {first.id: "running", second.id: "running"}
    assert {each.id: each.node for each in seen.operators["map"].instances}[first.id] == "fog3"


def test_a_name_is_never_used_again():
    running = job()
    first, second = running.observe().requested_instances["map"]
    asked(running, second)
    receipt, _ = asked(running, first, second)
    assert (receipt.outcome, receipt.message) == (
        "refused",
        f"{first.id} has been used before: give a new instance a new name",
    )
    # Nor does the testbed, when it names them itself.
    running.apply(Plan(running.observe().requested | {"map": ("fog1", "fog1")}, reason="counts"))
    kept, new = running.observe().requested_instances["map"]
    assert kept == second
    assert new.id not in (first.id, second.id)


def test_names_of_a_change_that_failed_may_be_tried_again():
    faults = [{"kind": "failed_savepoint", "at_s": 0, "for_s": 30}]
    running = job("restart", faults=faults)
    now = running.observe().requested_instances["map"]
    receipt, seen = asked(running, *now, Instance("new", "fog2"))
    assert (receipt.outcome, seen.requested_instances["map"]) == ("failed", now)
    receipt, seen = asked(running, *now, Instance("new", "fog2"))
    assert (receipt.outcome, states(seen)["new"]) == ("done", "running")


@pytest.mark.parametrize(
    ("instances", "expected"),
    [
        pytest.param(
            {"map": (Instance("a", "fog1"), Instance("a", "fog2"))}, "two instances are called a", id="twice"
        ),
        pytest.param({"map": (Instance("source-services-0", "fog1"),)}, "two instances are", id="another's"),
        pytest.param({"map": (Instance("a", "fog9"),)}, "unknown node 'fog9'", id="no such node"),
        pytest.param({"map": ()}, "0 replicas of map are outside 1..6", id="nobody active"),
    ],
)
def test_what_cannot_be_is_refused_in_words(instances, expected):
    running = job()
    running.apply(Plan.of_instances(running.observe().requested_instances | instances, "why not"))
    (receipt,) = running.observe().receipts
    assert receipt.outcome == "refused"
    assert receipt.message.startswith(expected)


def test_a_placement_of_its_own_beside_named_instances_is_refused():
    running = job()
    named = running.observe().requested_instances
    running.apply(Plan({**running.observe().requested, "map": ("fog2",)}, instances=named))
    (receipt,) = running.observe().receipts
    assert "the placement is not that of the active instances" in receipt.message


def test_the_same_instances_in_another_order_are_no_change():
    running = job()
    first, second = running.observe().requested_instances["map"]
    receipt, seen = asked(running, second, first)
    assert receipt.outcome == "unchanged"
    assert seen.requested_instances["map"] == (first, second)


def test_a_plan_that_counts_keeps_the_oldest_and_nobody_who_is_not_active():
    running = job()
    first, second = running.observe().requested_instances["map"]
    asked(running, first, second, Instance("spare", "fog2", active=False))
    running.apply(Plan(running.observe().requested | {"map": ("fog1",)}, reason="counts"))
    assert running.observe().requested_instances["map"] == (first,)


# Random sequences against a small model


@dataclass
class Model:
    """Who should be there: name -> instance; and all names there have ever been."""

    there: dict[str, Instance]
    used: set[str] = field(default_factory=set)

    def allows(self, wanted: tuple[Instance, ...]) -> bool:
        names = [each.id for each in wanted]
        nodes = [each.node for each in wanted]
        return (
            len(set(names)) == len(names)
            and all(nodes.count(node) <= 2 for node in nodes)
            and 1 <= sum(each.active for each in wanted) <= 6
            and all(name in self.there or name not in self.used for name in names)
        )

    def become(self, wanted: tuple[Instance, ...]) -> None:
        self.there = {each.id: each for each in wanted}
        self.used |= set(self.there)


named = st.builds(Instance, id=st.sampled_from("abcdefgh"), node=st.sampled_from(NODES), active=st.booleans())
wishes = st.lists(named, min_size=1, max_size=5, unique_by=lambda each: each.id).map(tuple)


@settings(max_examples=25, deadline=None)
@given(style=st.sampled_from(STYLES), plans=st.lists(wishes, min_size=1, max_size=6))
def test_any_sequence_of_named_plans_does_what_a_small_model_does(style, plans):
    running = job(style)
    start = running.observe().requested_instances["map"]
    model = Model({each.id: each for each in start}, {each.id for each in start})
    for wanted in plans:
        is_allowed = model.allows(wanted)
        is_new = set(wanted) != set(model.there.values())
        receipt, seen = asked(running, *wanted)
        assert receipt.outcome == ("refused" if not is_allowed else "done" if is_new else "unchanged")
        if is_allowed:
            model.become(wanted)
        expected = {name: "running" if each.active else "inactive" for name, each in model.there.items()}
        assert states(seen) == expected
        assert {each.id: each for each in seen.requested_instances["map"]} == model.there
        active = sorted(each.node for each in model.there.values() if each.active)
        assert sorted(seen.placement["map"]) == sorted(seen.requested["map"]) == active
        sample = truth(running)
        assert (sample.replicas["map"], sample.allocated) == (len(active), len(model.there) + 2)


@settings(max_examples=25, deadline=None)
@given(plans=st.lists(st.tuples(wishes, st.integers(1, 15)), min_size=1, max_size=8))
def test_whoever_is_requested_is_seen_exactly_once_however_plans_overlap(plans):
    """Boots take 10 s and plans come before they end."""
    running = job(reconfiguration=BOOT)
    running.wait(1)
    for wanted, wait_s in plans:
        others = running.observe().requested_instances
        running.apply(Plan.of_instances({**others, "map": wanted}, "next"))
        running.wait(wait_s)
        seen = running.observe()
        shown = sorted(each.id for each in seen.operators["map"].instances)
        assert shown == sorted(each.id for each in seen.requested_instances["map"])
        serving = [each.node for each in seen.operators["map"].instances if each.state == "running"]
        assert sorted(serving) == sorted(seen.placement["map"])
        assert truth(running).allocated == len(shown) + 2
    running.wait(30)
    seen = running.observe()
    assert states(seen) == {
        each.id: "running" if each.active else "inactive" for each in seen.requested_instances["map"]
    }
