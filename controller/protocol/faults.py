"""Faults put into the protocol on purpose: the explorer has to find each of them, or its "nothing found" is
worth
nothing. Each wraps the step function; the second entry names the scenario that shows it."""

from __future__ import annotations

from dataclasses import replace

from controller.protocol.agent import IDLE, LEAVING, Outcome, State, Variant, leave
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


def _is(event: Event, kind: str) -> bool:
    return isinstance(event, Message) and event.kind == kind


def lost_ack(step: Step) -> Step:
    """New nodes do not ack duplications."""

    def faulty(state: State, event: Event) -> Outcome:
        outcome = step(state, event)
        silent = state.status == IDLE and _is(event, DUPLICATION)
        return outcome._replace(messages=()) if silent else outcome

    return faulty


def wrong_set(step: Step) -> Step:
    """New successors are put among the predecessors."""

    def faulty(state: State, event: Event) -> Outcome:
        outcome = step(state, event)
        if not _is(event, DUPLICATION) or not state.is_active:
            return outcome
        new = outcome.state.succs - state.succs
        return outcome._replace(
            state=outcome.state._replace(succs=state.succs, preds=outcome.state.preds | new)
        )

    return faulty


def no_keeper(step: Step) -> Step:
    """The keeper leaves like everybody else."""

    def faulty(state: State, event: Event) -> Outcome:
        if isinstance(event, Delete) and state.is_keeper:
            return leave(state, Variant())
        return step(state, event)

    return faulty


def early_start(step: Step) -> Step:
    """New nodes start at the first ack."""

    def faulty(state: State, event: Event) -> Outcome:
        if _is(event, DUPLICATION_ACK):
            hasty = tuple(o._replace(waiting=o.waiting & {event.sender}) for o in state.operations)  # type: ignore[union-attr]
            return step(state._replace(operations=hasty), event)
        return step(state, event)

    return faulty


def stale_start(step: Step) -> Step:
    """The start has only those neighbours that were told, none that came later."""

    def faulty(state: State, event: Event) -> Outcome:
        outcome = step(state, event)
        if not _is(event, DUPLICATION) or not state.operations:
            return outcome
        return outcome._replace(state=outcome.state._replace(succs=state.succs, preds=state.preds))

    return faulty


def forgets_to_add(step: Step) -> Step:
    """A new node acks newcomers before its start, but forgets them."""

    def faulty(state: State, event: Event) -> Outcome:
        if _is(event, START):
            state = state._replace(succs_to_add=NOBODY, preds_to_add=NOBODY)
        return step(state, event)

    return faulty


def forgets_to_delete(step: Step) -> Step:
    """A new node acks leavers before its start, but forgets them."""

    def faulty(state: State, event: Event) -> Outcome:
        if _is(event, START):
            state = state._replace(succs_to_delete=NOBODY, preds_to_delete=NOBODY)
        return step(state, event)

    return faulty


def early_end(step: Step) -> Step:
    """A leaving instance ends at the first ack."""

    def faulty(state: State, event: Event) -> Outcome:
        if _is(event, DELETION_ACK):
            hasty = tuple(o._replace(waiting=o.waiting & {event.sender}) for o in state.operations)  # type: ignore[union-attr]
            return step(state._replace(operations=hasty), event)
        return step(state, event)

    return faulty


def drops_queue(step: Step) -> Step:
    """A leaving instance ends with records in its queue."""

    def faulty(state: State, event: Event) -> Outcome:
        if _is(event, DELETION_ACK) and state.status == LEAVING:
            state = state._replace(queue=())
        return step(state, event)

    return faulty


def tells_successors_alone(step: Step) -> Step:
    """A leaving instance never tells its predecessors."""

    def faulty(state: State, event: Event) -> Outcome:
        if isinstance(event, Delete):
            outcome = step(state._replace(preds=NOBODY), event)
            return outcome._replace(state=outcome.state._replace(preds=state.preds))
        return step(state, event)

    return faulty


def keeps_leavers(step: Step) -> Step:
    """Deletions are acked, but the leaver stays in the view."""

    def faulty(state: State, event: Event) -> Outcome:
        outcome = step(state, event)
        if not _is(event, DELETION) or not state.is_active:
            return outcome
        return outcome._replace(state=outcome.state._replace(succs=state.succs, preds=state.preds))

    return faulty


def sends_twice(step: Step) -> Step:
    """A record goes to its successor two times."""

    def faulty(state: State, event: Event) -> Outcome:
        outcome = step(state, event)
        return outcome._replace(messages=outcome.messages * 2) if isinstance(event, Forward) else outcome

    return faulty


def drops_early_records(step: Step) -> Step:
    """A new node throws away what arrives before its start."""

    def faulty(state: State, event: Event) -> Outcome:
        return Outcome(state) if state.status == IDLE and _is(event, RECORD) else step(state, event)

    return faulty


def tells_predecessors_alone(step: Step) -> Step:
    """A duplicating instance does not tell its successors."""

    def faulty(state: State, event: Event) -> Outcome:
        if isinstance(event, Duplicate):
            outcome = step(state._replace(succs=NOBODY), event)
            return outcome._replace(state=outcome.state._replace(succs=state.succs))
        return step(state, event)

    return faulty


def ends_with_a_duplication_open(step: Step) -> Step:
    """A leaving instance does not wait until its own duplications are through."""

    def faulty(state: State, event: Event) -> Outcome:
        if isinstance(event, Delete) and not state.is_keeper:
            state = state._replace(operations=())
        return step(state, event)

    return faulty


def returns_without_children(step: Step) -> Step:
    """Who comes back, or takes somebody in again, says nothing of the children it has had meanwhile."""

    def faulty(state: State, event: Event) -> Outcome:
        outcome = step(state, event)
        told = [m._replace(addresses=NOBODY) if m.kind in (RETURN, WELCOME) else m for m in outcome.messages]
        return outcome._replace(messages=tuple(told))

    return faulty


def never_times_out(step: Step) -> Step:
    """A peer that has vanished is waited for without end."""

    def faulty(state: State, event: Event) -> Outcome:
        if isinstance(event, TimedOut) and state.operations:
            return Outcome(state._replace(gone=state.gone | {event.peer}))
        return step(state, event)

    return faulty


def never_returns(step: Step) -> Step:
    """A peer that was given up too early stays so, although it can be reached again."""

    def faulty(state: State, event: Event) -> Outcome:
        if isinstance(event, Reachable):
            return Outcome(state._replace(returning=state.returning | {event.peer}))
        return step(state, event)

    return faulty


FAULTS: dict[str, tuple[Fault, str]] = {
    fault.__name__: (fault, scenario)
    for fault, scenario in (
        (lost_ack, "duplicate-x-duplicate"),
        (wrong_set, "duplicate-x-duplicate"),
        (early_start, "duplicate-x-duplicate"),
        (stale_start, "duplicate-x-duplicate"),
        (forgets_to_add, "duplicate-x-duplicate"),
        (forgets_to_delete, "duplicate-x-delete"),
        (early_end, "delete-x-delete"),
        (drops_queue, "delete"),
        (tells_successors_alone, "delete-x-delete"),
        (keeps_leavers, "delete-x-delete"),
        (sends_twice, "duplicate"),
        (drops_early_records, "duplicate"),
        (tells_predecessors_alone, "duplicate"),
        (ends_with_a_duplication_open, "duplicate-then-delete-x-duplicate"),
        (never_times_out, "duplicate-x-vanish"),
        (never_returns, "partition"),
        (returns_without_children, "duplicate-and-partition"),
    )
}


def with_fault(name: str) -> Scenario:
    """The scenario that shows the fault, with it in."""
    fault, scenario = FAULTS[name]
    return replace(ALL[scenario], name=f"{scenario} with {name}", fault=fault)


# The paper as printed, one reading at a time, in the smallest scenario in which it fails.
PRINTED: dict[str, tuple[Variant, str]] = {
    "all_at_once": (Variant(leaving="all_at_once"), "delete-x-delete"),
    "by_view": (Variant(roles="by_view"), "duplicate-x-duplicate"),
    "one_counter": (Variant(acks="one_counter"), "duplicate-twice-x-duplicate"),
    "view_alone": (Variant(start="view_alone"), "delete-x-duplicate-and-child-deletes"),
}


def as_printed(name: str) -> Scenario:
    variant, scenario = PRINTED[name]
    return replace(ALL[scenario], name=f"{scenario} as printed ({name})", variant=variant)
