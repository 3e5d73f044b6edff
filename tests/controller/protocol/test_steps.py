"""The paper's discrete steps: its message counts, exactly, and its worked cases."""

from __future__ import annotations

from time import process_time

import numpy as np
import pytest

from controller.protocol.agent import CORRECTED, Variant, pipeline
from controller.protocol.decision import Rules
from controller.protocol.delays import views_agree
from controller.protocol.messages import Address, Delete, Duplicate, Message, Tick
from controller.protocol.steps import StepRun, brownian, simulate

PAPER = Variant(leaving="all_at_once")
AS_PRINTED = Variant("all_at_once", "by_view", "one_counter", "view_alone")


def instance(name, operator=1):
    return Address(operator, str(name))


def counted_until_quiet(run, events):
    run.advance(events)
    counts = [run.messages]
    while not run.is_quiet:
        run.advance()
        counts.append(run.messages)
    return counts


def test_a_duplication_with_14_successors_and_16_predecessors_sends_30_messages_in_its_first_step():
    run = StepRun(pipeline((16, 7, 14)))
    run.states[instance(2).child(1)] = run.states[instance(2)]._replace(
        address=instance(2).child(1), status="idle", parent=instance(2)
    )
    counts = counted_until_quiet(run, [(instance(2), Duplicate((instance(2).child(1),)))])
    assert counts == [30, 30, 1]  # duplications; acks; the start: three steps


def test_one_deletion_and_the_acks_of_three_others_are_168_messages():
    run = StepRun(pipeline((21, 7, 21)), PAPER)
    run.advance([(instance(name), Delete()) for name in (2, 3, 4)])
    assert run.messages == 3 * 42
    run.advance([(instance(5), Delete())])
    assert run.messages == 168
    run.advance()
    assert run.messages == 42
    assert run.is_quiet
    assert list(run.instances(3)) == [21, 3, 21]


def test_leaving_takes_two_steps_as_printed_and_four_in_the_order_that_loses_nothing():
    for variant, counts in ((PAPER, [7, 7]), (CORRECTED, [4, 4, 3, 3])):
        run = StepRun(pipeline((4, 2, 3)), variant)
        assert counted_until_quiet(run, [(instance(2), Delete())]) == counts


@pytest.mark.parametrize("variant", [CORRECTED, PAPER], ids=["corrected", "as the paper"])
@pytest.mark.parametrize("leavers", [1, 2, 4])
def test_a_deletion_costs_twice_the_neighbours(variant, leavers):
    run = StepRun(pipeline((3, 5, 6)), variant)
    events = [(instance(name), Delete()) for name in range(2, 2 + leavers)]
    assert sum(counted_until_quiet(run, events)) == leavers * 2 * (3 + 6)


@pytest.mark.parametrize(("new", "instances"), [(1, 4), (3, 4), (4, 4), (6, 4), (9, 4), (5, 1)])
def test_a_duplication_round_costs_what_the_paper_says(new, instances):
    run = StepRun(pipeline((3, instances, 6)))
    shares = [new // instances + (i < new % instances) for i in range(instances)]
    events = []
    for i, share in enumerate(shares):
        parent = instance(i + 1)
        children = run._new_nodes(run.states[parent], share)
        events += [(parent, Duplicate(children))] if children else []
    assert sum(counted_until_quiet(run, events)) == 2 * min(new, instances) * (3 + 6) + new
    assert run.instances(3)[1] == instances + new
    assert views_agree(run.states, 3)


def test_n_t_is_asked_for_apart_from_what_the_paper_counts():
    run = StepRun(pipeline((2, 2, 2)))
    run.advance([(instance(2), Tick(load=1050.0, draw=0.5))])  # 3 times the target: two new ones
    assert (run.counted["count"], run.counted["count_reply"], run.messages) == (1, 1, 4)


def test_a_bounded_pool_that_is_empty_refuses_and_the_next_period_tries_again():
    run = StepRun(pipeline((2, 2, 2)), free_nodes=1)
    for agent in (1, 2):
        run.advance([(instance(agent), Tick(load=1050.0, draw=0.5))])
    while not run.is_quiet:
        run.advance()
    assert list(run.instances(3)) == [2, 3, 2]
    assert views_agree(run.states, 3)
    run.free_nodes = 1
    run.advance([(instance(2), Tick(load=1050.0, draw=0.5))])
    assert run.messages == 4


def test_who_leaves_gives_its_node_back_and_all_messages_are_those_of_its_operator():
    run = StepRun(pipeline((2, 2, 2)), free_nodes=0)
    run.advance([(instance(2), Delete())])
    whose = set(run.counted_by_operator)
    while not run.is_quiet:
        run.advance()
        whose |= set(run.counted_by_operator)
    assert (run.free_nodes, whose) == (1, {1})


def test_an_instance_that_duplicates_twice_gives_no_name_twice():
    run = StepRun(pipeline((2, 2, 2)))
    for _ in range(2):
        run.advance([(instance(2), Tick(load=1050.0, draw=0.5))])  # two new ones each time
        while not run.is_quiet:
            run.advance()
    assert list(run.instances(3)) == [2, 6, 2]


def test_a_decision_does_not_overtake_the_ack_that_its_sender_has_just_sent():
    run = StepRun(pipeline((1, 2)))
    above, child = instance(1, operator=0), instance(1, operator=0).child(1)
    run.due = [Message("duplication", above, instance(2), 1, frozenset({child}))]
    run.advance([(instance(2), Delete())])
    assert [m.kind for m in run.due if m.receiver == above] == ["duplication_ack", "deletion"]


def test_a_steady_load_finds_the_number_of_instances_it_needs():
    loads = np.full((60, 3), 7000.0)  # 7000 / 350 = 20 instances
    result = simulate((7, 7, 7), loads, seed=1)
    assert result.instances[-1] == pytest.approx(
        [20, 20, 20], abs=3
    )  # 6/7..8/7 of the target leaves none to act
    assert result.messages[-10:].sum() == 0


def test_no_load_leaves_the_keepers_alone():
    result = simulate((7, 7, 7), np.zeros((60, 3)), seed=1)
    assert list(result.instances[-1]) == [1, 1, 1]


def test_one_instance_of_each_operator_scales_and_never_goes():
    result = simulate((1, 1, 1), np.full((40, 3), 3500.0), seed=3)
    assert result.instances[-1] == pytest.approx([10, 10, 10], abs=2)
    assert simulate((1, 1, 1), np.zeros((40, 3)), seed=3).instances.tolist() == [[1, 1, 1]] * 40


def test_a_chain_of_one_operator_scales():
    result = simulate((2,), np.full((40, 1), 3500.0), seed=3)
    assert result.instances[-1][0] == pytest.approx(10, abs=2)


def test_instances_that_look_together_decide_in_every_fifth_step():
    loads = np.tile(np.linspace(2450.0, 6000.0, 43)[:, None], (1, 3))
    found = simulate((7, 7, 7), loads, seed=1, looks="together")
    announced = np.flatnonzero(found.announcements.any(axis=1))
    assert set(announced % 5) == {4}  # §5.4: messages are sent from iteration 5 on
    # The next step processes as many acks, the one after it the starts of their children.
    acked, started = found.messages[announced + 1], found.messages[announced + 2]
    assert (acked == found.messages[announced]).all()
    assert (started > 0).all()


def test_since_birth_an_instance_looks_a_period_after_its_start():
    loads = np.full((20, 1), 7000.0)  # one instance of 500: 19 more at first, the rest by those
    found = simulate((1,), loads, seed=1, looks="since_birth")
    assert np.flatnonzero(found.announcements[:, 0])[0] == 4
    assert found.instances[:8, 0].tolist() == [1, 1, 1, 1, 1, 1, 20, 20]


def test_the_same_seed_gives_the_same_run_and_views_agree_under_a_wild_load():
    loads = brownian(4, 120, 2450.0, 400.0, seed=5)
    first, second = (simulate((7, 7, 7, 7), loads, seed=2) for _ in range(2))
    assert np.array_equal(first.instances, second.instances)
    assert np.array_equal(first.messages, second.messages)
    assert first.instances.min() >= 1


def test_as_printed_nobody_makes_one_instance_and_nobody_leaves():
    printed = Rules(floor_difference=True, whole_probability=True, more_than_one=True, signed_deletion=True)
    loads = np.full((40, 2), 7 * 450.0)  # 9 needed of 7: a factor below 1 never makes two
    assert simulate((7, 7), loads, 1, printed).instances[-1].tolist() == [7, 7]
    assert simulate((7, 7), np.zeros((40, 2)), 1, printed, AS_PRINTED).instances[-1].tolist() == [7, 7]


def test_a_hundred_operators_take_little_time():
    began = process_time()
    simulate((10,) * 100, brownian(100, 50, 3500.0, 70.0, seed=1), seed=1)
    assert process_time() - began < 10
