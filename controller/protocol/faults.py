"""Faults put into the protocol on purpose: the explorer has to find each of them, or its "nothing found" is
worth nothing. Each changes what goes into the step function or what comes out of it; `FAULTS` names the
scenario that shows it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps

from controller.protocol.agent import ENDED, IDLE, LEAVING, Operation, Outcome, State, Variant, leave
from controller.protocol.messages import (
    DELETION,
    DELETION_ACK,
    DUPLICATION,
    DUPLICATION_ACK,
    NOBODY,
    RECORD,
    RETURN,
    START,
    WELCOME,
    Delete,
    Duplicate,
    Event,
    Forward,
    Message,
    Reachable,
    TimedOut,
)
from controller.protocol.scenarios import ALL
from controller.protocol.world import Fault, Scenario, Step


def _before(change: Callable[[State, Event], State]) -> Fault:
    """A fault that changes the state before the agent acts."""

    @wraps(change)
    def fault(step: Step) -> Step:
        return lambda state, event: step(change(state, event), event)

    return fault


def _after(change: Callable[[State, Event, Outcome], Outcome]) -> Fault:
    """A fault that changes what comes of an event."""

    @wraps(change)
    def fault(step: Step) -> Step:
        return lambda state, event: change(state, event, step(state, event))

    return fault


def _is(event: Event, *kinds: str) -> bool:
    return isinstance(event, Message) and event.kind in kinds


def _with(outcome: Outcome, **changes: object) -> Outcome:
    return outcome._replace(state=outcome.state._replace(**changes))  # type: ignore[arg-type]


def _first_ack_is_enough(state: State, event: Event) -> State:
    assert isinstance(event, Message)
    hasty = tuple(o._replace(waiting=o.waiting & {event.sender}) for o in state.operations)
    return state._replace(operations=hasty)


# Acks


@_after
def lost_ack(state: State, event: Event, outcome: Outcome) -> Outcome:
    """New nodes do not ack duplications."""
    return outcome._replace(messages=()) if state.status == IDLE and _is(event, DUPLICATION) else outcome


@_after
def lost_deletion_ack(state: State, event: Event, outcome: Outcome) -> Outcome:
    """New nodes do not ack deletions."""
    return outcome._replace(messages=()) if state.status == IDLE and _is(event, DELETION) else outcome


@_after
def ack_of_another_operation(_state: State, event: Event, outcome: Outcome) -> Outcome:
    """An ack names the operation after the one that it belongs to."""
    if not _is(event, DUPLICATION, DELETION):
        return outcome
    return outcome._replace(messages=tuple(m._replace(operation=m.operation + 1) for m in outcome.messages))


@_before
def early_start(state: State, event: Event) -> State:
    """New nodes start at the first ack."""
    return _first_ack_is_enough(state, event) if _is(event, DUPLICATION_ACK) else state


@_before
def early_end(state: State, event: Event) -> State:
    """A leaving instance goes on at the first ack."""
    return _first_ack_is_enough(state, event) if _is(event, DELETION_ACK) else state


@_after
def waits_for_no_leaver(_state: State, event: Event, outcome: Outcome) -> Outcome:
    """Whoever says that it leaves is waited for no longer."""
    if not isinstance(event, Message) or event.kind != DELETION:
        return outcome
    operations = tuple(o._replace(waiting=o.waiting - {event.sender}) for o in outcome.state.operations)
    return _with(outcome, operations=operations)


# Views


@_after
def wrong_set(state: State, event: Event, outcome: Outcome) -> Outcome:
    """New successors are put among the predecessors."""
    if not _is(event, DUPLICATION) or not state.is_active:
        return outcome
    new = outcome.state.succs - state.succs
    return _with(outcome, succs=state.succs, preds=outcome.state.preds | new)


@_after
def keeps_leavers(state: State, event: Event, outcome: Outcome) -> Outcome:
    """Deletions are acked, but the leaver stays in the view."""
    if not _is(event, DELETION) or not state.is_active:
        return outcome
    return _with(outcome, succs=state.succs, preds=state.preds)


@_after
def stale_start(state: State, event: Event, outcome: Outcome) -> Outcome:
    """The start has only those neighbours that were told, none that came later."""
    if not _is(event, DUPLICATION) or not state.operations:
        return outcome
    return _with(outcome, succs=state.succs, preds=state.preds)


@_before
def start_with_every_leaver(state: State, event: Event) -> State:
    """The start keeps also those leavers that know nothing of the new node and never tell it."""
    if not isinstance(event, Message) or event.kind != DELETION:
        return state

    def keeping(operation: Operation) -> Operation:
        return operation._replace(leavers=operation.leavers | {event.sender})

    return state._replace(
        operations=tuple(keeping(o) if o.kind == DUPLICATION else o for o in state.operations)
    )


@_before
def forgets_to_add(state: State, event: Event) -> State:
    """A new node acks newcomers before its start, but forgets them."""
    return state._replace(succs_to_add=NOBODY, preds_to_add=NOBODY) if _is(event, START) else state


@_before
def forgets_to_delete(state: State, event: Event) -> State:
    """A new node acks leavers before its start, but forgets them."""
    return state._replace(succs_to_delete=NOBODY, preds_to_delete=NOBODY) if _is(event, START) else state


# Duplicating


def tells_predecessors_alone(step: Step) -> Step:
    """A duplicating instance does not tell its successors."""

    def faulty(state: State, event: Event) -> Outcome:
        if isinstance(event, Duplicate):
            return _with(step(state._replace(succs=NOBODY), event), succs=state.succs)
        return step(state, event)

    return faulty


@_after
def announces_one_of_two(_state: State, event: Event, outcome: Outcome) -> Outcome:
    """Of several new nodes only the first is announced."""
    if not isinstance(event, Duplicate):
        return outcome
    first = frozenset(event.children[:1])
    return outcome._replace(messages=tuple(m._replace(addresses=first) for m in outcome.messages))


@_after
def starts_one_of_two(_state: State, event: Event, outcome: Outcome) -> Outcome:
    """Of several new nodes only the first is started."""
    return outcome._replace(messages=outcome.messages[:1]) if _is(event, DUPLICATION_ACK) else outcome


@_after
def child_is_a_keeper(_state: State, event: Event, outcome: Outcome) -> Outcome:
    """New nodes become keepers, so nobody ever scales in again."""
    return _with(outcome, is_keeper=True) if _is(event, START) else outcome


@_after
def child_is_the_last(_state: State, event: Event, outcome: Outcome) -> Outcome:
    """A new node believes that nobody comes after it."""
    return _with(outcome, is_last=True) if _is(event, START) else outcome


# Leaving


def no_keeper(step: Step) -> Step:
    """The keeper leaves like everybody else."""

    def faulty(state: State, event: Event) -> Outcome:
        if isinstance(event, Delete) and state.is_keeper:
            return leave(state, Variant())
        return step(state, event)

    return faulty


@_after
def never_leaves(state: State, event: Event, outcome: Outcome) -> Outcome:
    """A decision to leave has no effect."""
    return Outcome(state) if isinstance(event, Delete) else outcome


def leaves_again(step: Step) -> Step:
    """Who leaves already begins once more."""

    def faulty(state: State, event: Event) -> Outcome:
        if isinstance(event, Delete) and state.status == LEAVING:
            return leave(state, Variant())
        return step(state, event)

    return faulty


def tells_successors_alone(step: Step) -> Step:
    """A leaving instance never tells its predecessors."""

    def faulty(state: State, event: Event) -> Outcome:
        if isinstance(event, Delete):
            return _with(step(state._replace(preds=NOBODY), event), preds=state.preds)
        return step(state, event)

    return faulty


@_before
def drops_queue(state: State, event: Event) -> State:
    """A leaving instance ends with records in its queue."""
    return state._replace(queue=()) if _is(event, DELETION_ACK) and state.status == LEAVING else state


def tells_successors_with_a_full_queue(step: Step) -> Step:
    """A leaving instance tells its successors as soon as its predecessors have acked."""

    def faulty(state: State, event: Event) -> Outcome:
        if not _is(event, DELETION_ACK):
            return step(state, event)
        outcome = step(state._replace(queue=()), event)
        return outcome if outcome.state.status == ENDED else _with(outcome, queue=state.queue)

    return faulty


@_before
def ends_with_a_duplication_open(state: State, event: Event) -> State:
    """A leaving instance does not wait until its own duplications are through."""
    return state._replace(operations=()) if isinstance(event, Delete) and not state.is_keeper else state


@_before
def ends_before_its_children_start(state: State, event: Event) -> State:
    """A leaving instance does not wait for the acks that leavers owe to its duplications."""
    if not _is(event, DELETION_ACK):
        return state
    return state._replace(operations=tuple(o for o in state.operations if o.kind == DELETION))


# Records


@_after
def sends_twice(_state: State, event: Event, outcome: Outcome) -> Outcome:
    """A record goes to its successor two times."""
    return outcome._replace(messages=outcome.messages * 2) if isinstance(event, Forward) else outcome


@_after
def drops_early_records(state: State, event: Event, outcome: Outcome) -> Outcome:
    """A new node throws away what arrives before its start."""
    return Outcome(state) if state.status == IDLE and _is(event, RECORD) else outcome


# Failures


@_after
def never_times_out(state: State, event: Event, outcome: Outcome) -> Outcome:
    """A peer that has vanished is waited for without end."""
    if isinstance(event, TimedOut) and state.operations:
        return Outcome(state._replace(gone=state.gone | {event.peer}))
    return outcome


@_after
def orphan_waits(state: State, event: Event, outcome: Outcome) -> Outcome:
    """A new node whose parent has vanished goes on waiting for its start."""
    if isinstance(event, TimedOut) and state.status == IDLE and event.peer == state.parent:
        return Outcome(state._replace(gone=state.gone | {event.peer}))
    return outcome


@_before
def believes_late_announcements(state: State, event: Event) -> State:
    """A node that has said already that it leaves is taken in when its announcement arrives at last."""
    return state._replace(left_early=NOBODY) if _is(event, DUPLICATION) else state


@_after
def never_returns(state: State, event: Event, outcome: Outcome) -> Outcome:
    """A peer that was given up too early stays so, although it can be reached again."""
    if isinstance(event, Reachable):
        return Outcome(state._replace(returning=state.returning | {event.peer}))
    return outcome


@_after
def returns_once(state: State, event: Event, outcome: Outcome) -> Outcome:
    """A peer that was given up, taken in again and given up once more is not asked a second time."""
    if not _is(event, RETURN, WELCOME):
        return outcome
    return _with(outcome, returning=outcome.state.returning | state.returning)


@_after
def forgets_children_early(_state: State, event: Event, outcome: Outcome) -> Outcome:
    """The first of several peers that come back is told of new children, the others are not."""
    return _with(outcome, begotten=NOBODY) if _is(event, RETURN, WELCOME) else outcome


@_after
def returns_without_children(_state: State, _event: Event, outcome: Outcome) -> Outcome:
    """Who comes back, or takes somebody in again, says nothing of the children it has had meanwhile."""
    told = [m._replace(addresses=NOBODY) if m.kind in (RETURN, WELCOME) else m for m in outcome.messages]
    return outcome._replace(messages=tuple(told))


@_after
def returns_to_old_business(state: State, event: Event, outcome: Outcome) -> Outcome:
    """Who takes a peer in again still waits for what it had sent before."""
    if not _is(event, RETURN):
        return outcome
    return Outcome(
        outcome.state._replace(operations=state.operations),
        tuple(m for m in outcome.messages if m.kind != START),
    )


FAULTS: dict[str, tuple[Fault, str]] = {
    fault.__name__: (fault, scenario)
    for fault, scenario in (
        (lost_ack, "duplicate-x-duplicate"),
        (lost_deletion_ack, "duplicate-x-delete"),
        (ack_of_another_operation, "duplicate"),
        (early_start, "duplicate-x-duplicate"),
        (early_end, "delete-x-delete"),
        (waits_for_no_leaver, "delete-x-duplicate"),
        (wrong_set, "duplicate-x-duplicate"),
        (keeps_leavers, "delete-x-delete"),
        (stale_start, "duplicate-x-duplicate"),
        (start_with_every_leaver, "delete-x-duplicate"),
        (forgets_to_add, "duplicate-x-duplicate"),
        (forgets_to_delete, "duplicate-x-delete"),
        (tells_predecessors_alone, "duplicate"),
        (announces_one_of_two, "duplicate-by-two"),
        (starts_one_of_two, "duplicate-by-two"),
        (child_is_a_keeper, "duplicate-and-child-deletes-x-delete"),
        (child_is_the_last, "duplicate"),
        (no_keeper, "everybody-leaves"),
        (never_leaves, "delete"),
        (leaves_again, "leave-twice"),
        (tells_successors_alone, "delete-x-delete"),
        (drops_queue, "delete"),
        (tells_successors_with_a_full_queue, "delete"),
        (ends_with_a_duplication_open, "duplicate-then-delete-x-duplicate"),
        (ends_before_its_children_start, "delete-x-duplicate-then-delete"),
        (sends_twice, "duplicate"),
        (drops_early_records, "duplicate"),
        (never_times_out, "duplicate-x-vanish"),
        (orphan_waits, "duplicate-and-vanish"),
        (believes_late_announcements, "duplicate-and-vanish"),
        (never_returns, "partition"),
        (returns_once, "partition-twice"),
        (forgets_children_early, "duplicate-and-partition-from-two"),
        (returns_without_children, "duplicate-and-partition"),
        (returns_to_old_business, "partition-x-duplicate"),
    )
}


def with_fault(name: str) -> Scenario:
    """The scenario that shows the fault, with it in."""
    fault, scenario = FAULTS[name]
    return replace(ALL[scenario], name=f"{scenario} with {name}", fault=fault)


# The paper as printed, one reading at a time, in the smallest scenario in which it fails, and how.
PRINTED: dict[str, tuple[Variant, str, str]] = {
    "all_at_once": (Variant(leaving="all_at_once"), "delete-x-delete", "has terminated"),
    "by_view": (Variant(roles="by_view"), "duplicate-x-duplicate", "does not have"),
    "one_counter": (Variant(acks="one_counter"), "duplicate-twice-x-duplicate", "never got its start"),
    "view_alone": (Variant(start="view_alone"), "delete-x-duplicate-and-child-deletes", "has terminated"),
}


def as_printed(name: str) -> Scenario:
    variant, scenario, shows = PRINTED[name]
    return replace(ALL[scenario], name=f"{scenario} as printed ({name})", variant=variant, shows=shows)
