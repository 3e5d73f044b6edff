"""One agent, message by message, as the paper's algorithms say; cases worked by hand."""

from __future__ import annotations

import random

import pytest

from controller.protocol.agent import CORRECTED, Variant, child_of, pipeline, step
from controller.protocol.messages import (
    COUNT,
    COUNT_REPLY,
    INPUT,
    RECORD,
    RETURN,
    SCALING_KINDS,
    WELCOME,
    Address,
    Delete,
    Duplicate,
    Forward,
    Gone,
    Joined,
    Keep,
    Message,
    Reachable,
    Tick,
    TimedOut,
)

KINDS = (*SCALING_KINDS, COUNT, COUNT_REPLY, RECORD, RETURN, WELCOME)
A1, A2 = Address(0, "1"), Address(0, "2")
B1, B2 = Address(1, "1"), Address(1, "2")
C1 = Address(2, "1")
NEW, NEW_A = B2.child(1), A1.child(1)


def agents():
    return pipeline((2, 2, 1))


def sent(outcome):
    return [(m.kind, m.receiver) for m in outcome.messages]


def acks(state, kind, senders, operation=1):
    """The outcome after acks of all of these, and what was sent on the way."""
    messages = []
    for sender in senders:
        outcome = step(state, Message(kind, sender, state.address, operation))
        state, messages = outcome.state, messages + list(outcome.messages)
    return state, messages


def test_a_quiet_pipeline_knows_its_neighbours_and_its_keepers():
    states = agents()
    assert states[B2].preds == {A1, A2}
    assert states[B2].succs == {C1}
    assert states[A1].preds == {INPUT}
    assert states[C1].is_last
    assert not states[C1].succs
    assert [a.name for a, s in states.items() if s.is_keeper] == ["input", "1", "1", "1"]


def test_duplication_tells_all_neighbours_and_starts_after_the_last_ack():
    begun = step(agents()[B2], Duplicate((NEW,)))
    assert sent(begun) == [("duplication", A1), ("duplication", A2), ("duplication", C1)]
    assert {m.addresses for m in begun.messages} == {frozenset({NEW})}
    state, messages = acks(begun.state, "duplication_ack", [C1, A2])
    assert messages == []
    state, messages = acks(state, "duplication_ack", [A1])
    assert [(m.kind, m.receiver, m.succs, m.preds) for m in messages] == [("start", NEW, {C1}, {A1, A2})]
    assert state.operations == ()


def test_the_start_has_neighbours_that_came_while_it_waited():
    state = step(agents()[B2], Duplicate((NEW,))).state
    newcomer = A1.child(1)
    state = step(state, Message("duplication", A1, B2, 1, frozenset({newcomer}))).state
    _, messages = acks(state, "duplication_ack", [A1, A2, C1])
    assert messages[0].preds == {A1, A2, newcomer}


def test_an_idle_node_remembers_what_it_hears_and_uses_it_at_its_start():
    parent = agents()[B2]
    node = child_of(parent, NEW)
    newcomer = C1.child(1)
    for message in (
        Message("duplication", C1, NEW, 1, frozenset({newcomer})),
        Message("deletion", A2, NEW, 1, frozenset({A2})),
    ):
        outcome = step(node, message)
        node = outcome.state
        assert sent(outcome) == [(f"{message.kind}_ack", message.sender)]
    assert not node.is_active
    node = step(node, Message("start", B2, NEW, 1, succs=frozenset({C1}), preds=frozenset({A1, A2}))).state
    assert node.is_active
    assert node.succs == {C1, newcomer}
    assert node.preds == {A1}


def test_as_printed_an_idle_node_forgets_since_it_has_no_neighbours_to_look_up():
    node = child_of(agents()[B2], NEW)
    message = Message("duplication", C1, NEW, 1, frozenset({C1.child(1)}))
    outcome = step(node, message, Variant(roles="by_view"))
    assert outcome.state == node
    assert sent(outcome) == [("duplication_ack", C1)]


def test_leaving_tells_predecessors_first_and_successors_once_nothing_can_arrive_any_more():
    begun = step(agents()[B2], Delete())
    assert sent(begun) == [("deletion", A1), ("deletion", A2)]
    state = step(begun.state, Message("record", A2, B2, number=7)).state
    state, messages = acks(state, "deletion_ack", [A1, A2])
    assert messages == []  # a record is still in the queue
    outcome = step(state, Forward(C1))
    assert sent(outcome) == [("record", C1), ("deletion", C1)]
    state, _ = acks(outcome.state, "deletion_ack", [C1], operation=2)
    assert state.status == "ended"


def test_records_go_on_in_the_order_in_which_they_came():
    state = agents()[B2]
    for number in (7, 3):
        state = step(state, Message("record", A1, B2, number=number)).state
    first = step(state, Forward(C1))
    second = step(first.state, Forward(C1))
    assert [outcome.messages[0].number for outcome in (first, second)] == [7, 3]


def test_as_printed_leaving_tells_all_at_once():
    begun = step(agents()[B2], Delete(), Variant(leaving="all_at_once"))
    assert sent(begun) == [("deletion", A1), ("deletion", A2), ("deletion", C1)]


def test_the_keeper_does_not_leave_and_who_leaves_begins_nothing_new():
    keeper = agents()[B1]
    assert step(keeper, Delete()).state == keeper
    leaving = step(agents()[B2], Delete()).state
    assert step(leaving, Duplicate((NEW,))) == (leaving, (), 0)


def test_a_duplication_without_a_node_changes_nothing():
    state = agents()[B2]
    assert step(state, Duplicate(())) == (state, (), 0)


def test_overlapping_operations_count_their_acks_apart():
    state = step(agents()[B2], Duplicate((NEW,))).state
    second = step(state, Duplicate((B2.child(2),))).state
    _, messages = acks(second, "duplication_ack", [A1, A2, C1], operation=2)
    assert [m.receiver for m in messages] == [B2.child(2)]
    _, messages = acks(second, "duplication_ack", [A1, A2, C1], operation=1)
    assert [m.receiver for m in messages] == [NEW]


def test_as_printed_one_counter_forgets_the_first_of_two_operations():
    variant = Variant(acks="one_counter")
    state = step(agents()[B2], Duplicate((NEW,)), variant).state
    state = step(state, Duplicate((B2.child(2),)), variant).state
    started = []
    for operation, sender in [(1, A1), (1, A2), (1, C1), (2, A1), (2, A2), (2, C1)]:
        outcome = step(state, Message("duplication_ack", sender, B2, operation), variant)
        state = outcome.state
        started += [m.receiver for m in outcome.messages]
    assert started == [B2.child(2)]


def test_n_t_comes_from_a_predecessor_and_only_the_own_load_counts():
    asked = step(agents()[B2], Tick(load=525, draw=0.4))
    assert sent(asked) == [("count", A1)]
    reply = step(agents()[A1], asked.messages[0]).messages[0]
    assert (reply.kind, reply.number) == ("count_reply", 2)
    assert step(asked.state, reply).nodes_wanted == 1  # 525 * 2 / 350 = 3: one is missing, chance 0.5
    assert step(agents()[B2], Tick(load=350, draw=0.4)).messages == ()


def test_a_low_load_leaves_and_a_change_of_mind_forgets_the_question():
    asked = step(agents()[B2], Tick(load=0, draw=0.9))
    reply = Message("count_reply", A1, B2, number=2)
    assert step(asked.state, reply).state.status == "leaving"
    calm = step(asked.state, Tick(load=350, draw=0.0)).state
    assert step(calm, reply).state.ignored == 1


@pytest.mark.parametrize(
    "message",
    [
        Message("duplication", Address(3, "9"), B2, 1, frozenset({Address(3, "9.1")})),
        Message("deletion", B1, B2, 1, frozenset({B1})),
        Message("duplication_ack", A1, B2, 9),
        Message("start", B1, B2, 1),
        Message("count", Address(2, "7"), B2),
        Message("nonsense", A1, B2),
        Message("duplication", A1, B1, 1, frozenset({A1.child(1)})),
    ],
    ids=lambda m: f"{m.kind} from {m.sender}",
)
def test_what_makes_no_sense_is_counted_and_changes_nothing_else(message):
    state = agents()[B2]
    assert step(state, message) == (state._replace(ignored=1), (), 0)


ODD = [INPUT, Address(-2, "testbed"), A1, A2, B1, B2, NEW, C1, Address(7, "9")]


def odd_events(draw, me):
    """Any message from anybody about anybody, and any local event."""

    def some():
        return frozenset(draw.sample(ODD, draw.randrange(4)))

    message = Message(
        draw.choice([*KINDS, "nonsense"]), draw.choice(ODD), me, draw.randrange(3),
        some(), some(), some(), some(), draw.randrange(-1, 3),
    )  # fmt: skip
    peer = draw.choice(ODD)
    local = (Duplicate(tuple(some())), Delete(), Forward(None), Forward(peer), Keep(), Gone(peer))
    more = (TimedOut(peer), Reachable(peer), Joined(peer), Tick(draw.uniform(0, 1000), draw.random()))
    return message if draw.random() < 0.7 else draw.choice([*local, *more])


@pytest.mark.parametrize("seed", range(100))
def test_no_event_however_odd_makes_an_agent_fail_or_a_keeper_leave(seed):
    draw = random.Random(seed)
    me = draw.choice([B1, B2, NEW])
    state = agents().get(me) or child_of(agents()[B2], NEW)
    for _ in range(60):
        was_keeper = state.is_keeper
        state = step(state, odd_events(draw, me)).state
        assert state.address == me
        assert not was_keeper or state.status == "active"


def test_who_has_ended_answers_nobody():
    ended = agents()[B2]._replace(status="ended")
    for event in (Message("duplication", A1, B2, 1, frozenset({A1.child(1)})), Delete(), Forward(C1)):
        assert step(ended, event) == (ended, (), 0)


def test_only_its_parent_starts_a_node_and_only_a_predecessor_says_how_many_there_are():
    idle = child_of(agents()[B2], NEW)
    assert step(idle, Message("start", B1, NEW, 1)).state.status == "idle"
    assert step(idle, Message("start", B2, NEW, 1)).state.status == "active"
    asked = step(agents()[B2], Tick(load=525, draw=0.4)).state
    assert step(asked, Message("count_reply", C1, B2, number=9)).nodes_wanted == 0


def test_a_start_that_comes_twice_does_not_call_back_who_leaves():
    start = Message("start", B2, NEW, 1, succs=frozenset({C1}), preds=frozenset({A1}))
    node = step(child_of(agents()[B2], NEW), start).state
    leaving = step(node, Delete()).state
    assert step(leaving, start) == (leaving._replace(ignored=1), (), 0)


def test_who_has_been_told_to_leave_decides_nothing_when_n_t_arrives():
    asked = step(agents()[B2], Tick(load=0, draw=0.9)).state
    leaving = step(asked, Delete()).state
    assert step(leaving, Message("count_reply", A1, B2, number=2)) == (leaving._replace(ignored=1), (), 0)


def test_a_leaver_that_is_gone_is_not_in_the_start():
    state = step(agents()[B2], Duplicate((NEW,))).state
    state = step(state, Message("deletion", A2, B2, 2, frozenset({A2}), told=frozenset({B2, NEW}))).state
    state = step(state, Gone(A2)).state
    _, messages = acks(state, "duplication_ack", [A1, C1])
    assert messages[0].preds == {A1}


def test_an_ack_twice_counts_once():
    state = step(agents()[B2], Duplicate((NEW,))).state
    state, messages = acks(state, "duplication_ack", [A1, A1, A2])
    assert (messages, state.ignored) == ([], 1)


def test_a_peer_that_is_gone_is_waited_for_no_longer_and_believed_no_more():
    state = step(agents()[B2], Duplicate((NEW,))).state
    state, _ = acks(state, "duplication_ack", [A1, C1])
    outcome = step(state, Gone(A2))
    assert sent(outcome) == [("start", NEW)]
    assert outcome.messages[0].preds == {A1}
    late = step(outcome.state, Message("duplication", A2, B2, 1, frozenset({A2.child(1)})))
    assert late.state.preds == {A1}


def test_an_announcement_of_one_that_is_gone_already_comes_too_late():
    """As the testbed's word may be faster than the parent's."""
    newcomers = A1.child(1), A1.child(2)
    state = step(agents()[B2], Gone(newcomers[0])).state
    state = step(state, Message("duplication", A1, B2, 1, frozenset(newcomers))).state
    assert state.preds == {A1, A2, newcomers[1]}


def test_a_node_whose_parent_is_gone_before_its_start_leaves_in_good_order():
    outcome = step(child_of(agents()[B2], NEW), Gone(B2))
    assert outcome.state.status == "leaving"
    assert sent(outcome) == [("deletion", A1), ("deletion", A2)]


def test_a_node_that_leaves_for_want_of_a_parent_tells_also_those_it_heard_of_before_its_start():
    newcomer = A1.child(1)
    node = step(child_of(agents()[B2], NEW), Message("duplication", A1, NEW, 1, frozenset({newcomer}))).state
    told = [receiver for _, receiver in sent(step(node, Gone(B2)))]
    assert told == [A1, newcomer, A2]


def test_who_left_before_a_node_started_is_not_taken_in_when_it_is_announced_at_last():
    late = A2.child(1)  # its parent vanished; what that one had sent is still on its way
    node = step(child_of(agents()[B2], NEW), Message("deletion", late, NEW, 1, frozenset({late}))).state
    start = Message("start", B2, NEW, 1, succs=frozenset({C1}), preds=frozenset({A1, A2}))
    node = step(node, start).state
    assert step(node, Message("duplication", A2, NEW, 1, frozenset({late}))).state.preds == {A1, A2}


def test_a_new_node_is_told_of_a_leaver_that_knows_it_and_not_of_one_that_does_not():
    state = step(agents()[B2], Duplicate((NEW,))).state
    state, _ = acks(state, "duplication_ack", [A2])
    knows = Message("deletion", A2, B2, 2, frozenset({A2}), told=frozenset({B1, B2, NEW}))
    does_not = Message("deletion", C1, B2, 2, frozenset({C1}), told=frozenset({B1, B2}))
    for deletion in (knows, does_not):
        state = step(state, deletion).state
    assert state.preds == {A1}
    _, messages = acks(state, "duplication_ack", [A1, C1])
    assert (messages[0].preds, messages[0].succs) == ({A1, A2}, set())


def test_the_only_operator_of_a_chain_has_the_input_to_wait_for_and_nobody_else():
    states = pipeline((2,))
    begun = step(states[A2], Duplicate((A2.child(1),)))
    assert sent(begun) == [("duplication", INPUT)]
    alone = states[A2]._replace(preds=frozenset())
    assert sent(step(alone, Duplicate((A2.child(1),)))) == [("start", A2.child(1))]
    assert step(alone, Delete()).state.status == "ended"


def test_states_and_messages_are_values():
    assert len({step(agents()[B2], Delete(), CORRECTED) for _ in range(3)}) == 1


def test_a_peer_that_the_testbed_started_is_known_at_once_and_by_an_idle_node_from_its_start():
    states = pipeline((1, 1, 1))
    middle, new = states[Address(1, "1")], Address(2, "restarted")
    assert step(middle, Joined(new)).state.succs == middle.succs | {new}
    idle = child_of(middle, Address(1, "1.1"))
    waiting = step(idle, Joined(new)).state
    started = step(
        waiting, Message("start", middle.address, idle.address, succs=middle.succs, preds=middle.preds)
    )
    assert started.state.succs == middle.succs | {new}


def test_who_is_no_neighbour_or_known_to_be_gone_does_not_join():
    middle = pipeline((1, 1, 1, 1))[Address(1, "1")]
    assert step(middle, Joined(Address(3, "x"))).state.ignored == 1
    gone = step(middle, Gone(Address(2, "1"))).state
    assert step(gone, Joined(Address(2, "1"))).state.succs == frozenset()


def test_a_new_keeper_stays_and_who_leaves_already_cannot_be_one():
    other = pipeline((1, 2, 1))[Address(1, "2")]
    kept = step(other, Keep()).state
    assert step(kept, Delete()).state == kept
    leaving = step(other, Delete()).state
    assert step(leaving, Keep()).state == leaving


def test_a_peer_given_up_too_early_is_taken_in_again_and_meets_the_children_it_missed():
    first, below = pipeline((1, 1))[A1], pipeline((1, 1))[B1]
    first = step(first, TimedOut(B1)).state
    begun = step(first, Duplicate((NEW_A,)))
    assert sent(begun) == [("duplication", INPUT)]  # B1 is not waited for
    asking = step(begun.state, Reachable(B1))
    assert sent(asking) == [("return", B1)]
    assert sent(step(asking.state, Reachable(B1))) == []  # once is enough
    below, messages, _ = step(below, asking.messages[0])
    assert [(m.kind, m.receiver) for m in messages] == [("welcome", A1), ("return", NEW_A)]
    assert step(asking.state, messages[0]).state.succs == {B1}


def test_late_duplicate_and_unknown_returns_change_nothing_more():
    below = pipeline((1, 1))[B1]
    again = Message("return", A1, B1)
    once = step(below, again).state
    assert once == below
    assert step(below, Message("return", Address(3, "far"), B1)).state.ignored == 1
    leaving = step(pipeline((1, 2))[B2], Delete()).state
    assert sent(step(leaving, Message("return", A1, B2))) == []
