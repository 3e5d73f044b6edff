"""The protocol holds in every small scenario, every fault is found, and the reductions lose nothing."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

import pytest

from controller.protocol.chart import as_svg, as_text
from controller.protocol.explorer import Explorer, explore, shortest
from controller.protocol.faults import FAULTS, PRINTED, as_printed, with_fault
from controller.protocol.scenarios import ALL, FAILURES, FIGURE_2, SMALL, drawn, gives_up
from controller.protocol.schedule import played_at_random, replayed
from controller.protocol.world import Scenario, beginning, enabled, perform, wrong_when_quiet

QUICK = [name for name, scenario in SMALL.items() if len(scenario.instances) < 3]
SLOW_WITHOUT_REDUCTIONS = [
    "duplicate-twice-x-duplicate",
    "duplicate-then-delete-x-delete",
    "child-duplicates-x-child-deletes",
]
SLOW_FAILURES = ["duplicate-and-vanish-x-duplicate", "duplicate-and-vanish-x-delete"]
QUICK_FAILURES = [name for name in FAILURES if name not in SLOW_FAILURES]


def plainly(scenario):
    """All worlds by plain enumeration with `world.perform`, without numbers, symmetry or partial order."""
    start = beginning(scenario)
    signature = Explorer(scenario).signature
    seen, todo, ends, problems = {start.key}, [start], set(), set()
    while todo:
        world = todo.pop()
        actions = enabled(world, scenario)
        if not actions:
            ends.add(signature(world.states))
            problems.update(wrong_when_quiet(world.states, scenario))
        for action in actions:
            after, wrong = perform(world, action, scenario)
            problems.update(wrong)
            if after.key not in seen:
                seen.add(after.key)
                todo.append(after)
    return len(seen), ends, problems


@pytest.mark.parametrize("name", QUICK)
def test_the_corrected_protocol_holds_in_every_interleaving(name):
    result = explore(SMALL[name])
    assert result.counterexample is None
    assert result.complete
    assert result.quiet


@pytest.mark.parametrize("name", QUICK_FAILURES)
def test_the_graph_is_consistent_again_after_a_peer_vanished_or_was_cut_off_at_any_moment(name):
    result = explore(FAILURES[name])
    assert result.counterexample is None
    assert result.complete


@pytest.mark.parametrize(
    "name",
    ["one-operator", "duplicate-x-duplicate", "duplicate-x-delete", "delete-x-delete", "delete+delete"],
)
def test_without_reductions_the_explorer_counts_what_plain_enumeration_counts(name):
    states, ends, problems = plainly(SMALL[name])
    result = explore(SMALL[name], symmetry=False, partial_order=False)
    assert (result.states, result.quiet, problems) == (states, ends, set())


@pytest.mark.parametrize("name", [n for n in QUICK if n not in SLOW_WITHOUT_REDUCTIONS])
def test_the_reductions_reach_the_same_ends_in_fewer_states(name):
    scenario = SMALL[name]
    full = explore(scenario, symmetry=False, partial_order=False)
    by_symmetry = explore(scenario, partial_order=False)
    by_order = explore(scenario, symmetry=False)
    both = explore(scenario)
    assert by_order.quiet == by_symmetry.quiet == both.quiet == full.quiet
    assert both.states <= by_symmetry.states <= full.states
    assert both.states < full.states


@pytest.mark.parametrize("name", FAULTS)
def test_every_fault_is_found_with_and_without_reductions_and_replays(name):
    scenario = with_fault(name)
    found = explore(scenario).counterexample
    assert found is not None
    assert explore(scenario, symmetry=False, partial_order=False).counterexample is not None
    assert replayed(scenario, found.actions).problems == found.problems


def test_there_are_at_least_ten_faults_and_the_scenarios_hold_without_them():
    assert len(FAULTS) >= 10
    assert {scenario for _, scenario in FAULTS.values()} <= {*QUICK, *QUICK_FAILURES}  # which hold: see above


@pytest.mark.parametrize("name", [n for n in QUICK_FAILURES if n != "duplicate-and-vanish"])
def test_failures_are_explored_as_plain_enumeration_does(name):
    states, ends, problems = plainly(FAILURES[name])
    result = explore(FAILURES[name], symmetry=False)
    assert (result.states, result.quiet, problems) == (states, ends, set())
    assert explore(FAILURES[name]).quiet == ends


def test_an_instance_that_the_plan_names_is_not_taken_for_its_sibling():
    cut_off = Scenario("cut-off", (1, 3), (gives_up(0, "1", 1, "2"),))
    states, ends, _ = plainly(cut_off)
    result = explore(cut_off)
    assert (result.states, result.quiet) == (states, ends)


@pytest.mark.parametrize("seed", range(5))
def test_random_schedules_of_failures_hold(seed):
    for scenario in FAILURES.values():
        assert played_at_random(scenario, seed).problems == ()


def test_a_record_is_lost_only_with_a_process_that_vanished():
    without = replace(FAILURES["delete-x-vanish"], acts=FAILURES["delete-x-vanish"].acts[:1])
    assert explore(without).counterexample is None
    kept = explore(replace(FAILURES["delete-x-vanish"], fault=FAULTS["drops_queue"][0])).counterexample
    assert kept is not None
    assert kept.problems == ("record 0 was lost",)


@pytest.mark.parametrize(
    ("name", "problems"),
    [
        ("all_at_once", ("O0,2 sent a record to O1,2, which has terminated",)),
        ("by_view", ("O0,1.1 does not have O1,1.1 among its successors",)),
        ("one_counter", ("quiet is not reached: O0,1.1 never got its start", "record 0 was lost")),
        ("view_alone", ("O0,2 sent a record to O1,1.1, which has terminated",)),
    ],
)
def test_the_paper_as_printed_fails(name, problems):
    found = shortest(as_printed(name))
    assert found is not None
    assert found.problems == problems
    assert replayed(found.scenario, found.actions).problems == problems
    assert explore(ALL[PRINTED[name][1]]).counterexample is None  # and holds once it is repaired


def test_without_fifo_the_new_instance_sends_to_a_terminated_one_as_in_figure_2():
    found = shortest(FIGURE_2)
    assert found is not None
    assert found.problems == ("O0,1.1 sent a record to O1,2, which has terminated",)
    events = [
        (a.agent, getattr(a.event, "kind", None), getattr(a.event, "sender", None)) for a in found.actions
    ]
    n1, n2 = found.scenario.acts[0].agent, found.scenario.acts[1].agent
    # The ack overtakes the deletion that was sent before it.
    assert events.index((n1, "duplication_ack", n2)) < events.index((n1, "deletion", n2))


def test_a_chart_has_one_line_per_event_and_the_verdict():
    found = shortest(with_fault("drops_early_records"))
    text = as_text(*found)
    lines = text.splitlines()
    assert len(lines) == 2 + len(found.actions) + len(found.problems)
    assert lines[-1] == "  => record 0 was lost"
    assert "duplication of O0,1.1 (sent in" in text
    drawing = ElementTree.fromstring(as_svg(*found))
    rows = [
        e
        for e in drawing
        if (e.tag.endswith(("circle", "path")) and "marker-end" in e.attrib) or "r" in e.attrib
    ]
    assert len(rows) == len(found.actions)


@pytest.mark.parametrize("seed", range(20))
def test_random_schedules_of_larger_pipelines_hold_and_replay(seed):
    scenario = drawn((3, 3, 3), seed)
    played = played_at_random(scenario, seed)
    assert played.problems == ()
    assert played_at_random(scenario, seed) == played
    assert replayed(scenario, played.actions) == played


def test_a_limit_stops_the_exploration_and_says_so():
    result = explore(SMALL["duplicate-x-duplicate"], max_states=50)
    assert not result.complete
    assert result.states == 50
