"""One instance as a state machine: `step(state, event) -> state, messages`, with a view of its neighbours
only.

Algorithms 1 and 4 to 11 of the paper, corrected as DESIGN.md's errata say; `Variant` has the printed
readings. The
clock, the network, the draw and the making of nodes are the caller's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from controller.protocol.decision import Rules, calls_for_action, decide
from controller.protocol.messages import (
    COUNT,
    COUNT_REPLY,
    DELETION,
    DELETION_ACK,
    DUPLICATION,
    DUPLICATION_ACK,
    INPUT,
    NOBODY,
    RECORD,
    RETURN,
    START,
    WELCOME,
    Address,
    Addresses,
    Duplicate,
    Event,
    Forward,
    Gone,
    Joined,
    Keep,
    Message,
    Reachable,
    Tick,
    TimedOut,
)

IDLE, ACTIVE, LEAVING, ENDED = "idle", "active", "leaving", "ended"


@dataclass(frozen=True)
class Variant:
    """The corrected protocol; every other choice is the paper's as printed, and fails
    (docs/decentralized.md)."""

    leaving: Literal["upstream_first", "all_at_once"] = "upstream_first"
    roles: Literal["by_operator", "by_view"] = (
        "by_operator"  # how a sender is known as successor or predecessor
    )
    acks: Literal["per_operation", "one_counter"] = "per_operation"
    start: Literal["with_leavers", "view_alone"] = (
        "with_leavers"  # what a new node is told of those who leave
    )


CORRECTED = Variant()


class Operation(NamedTuple):
    """A duplication or deletion of one's own that still waits for acks."""

    number: int
    kind: str
    waiting: Addresses
    children: tuple[Address, ...] = ()
    leavers: Addresses = NOBODY  # neighbours that left meanwhile, and tell the children so themselves
    downstream: bool = True  # of a deletion: successors were told, too
    missing: int = 0  # acks still to come, for the reading with one counter


class State(NamedTuple):
    address: Address
    status: str = ACTIVE
    is_keeper: bool = False
    is_last: bool = False
    succs: Addresses = NOBODY
    preds: Addresses = NOBODY
    succs_to_add: Addresses = NOBODY
    preds_to_add: Addresses = NOBODY
    succs_to_delete: Addresses = NOBODY
    preds_to_delete: Addresses = NOBODY
    operations: tuple[Operation, ...] = ()
    operations_begun: int = 0
    queue: tuple[int, ...] = ()  # records that arrived and are not processed
    consumed: tuple[int, ...] = ()  # records that the last operator has processed
    asked: Tick | None = None  # the load and draw that wait for n_t
    parent: Address | None = None
    gone: Addresses = NOBODY  # peers that ended or fell silent: nothing of theirs is believed any more
    begotten: Addresses = NOBODY  # own children that some of those may not know
    returning: Addresses = NOBODY  # of those, the ones that were asked to take this agent in again
    left_early: Addresses = NOBODY  # said that they leave before they were announced: see _deletion
    ignored: int = 0  # messages that made no sense here

    @property
    def is_active(self) -> bool:
        return self.status in (ACTIVE, LEAVING)


class Outcome(NamedTuple):
    state: State
    messages: tuple[Message, ...] = ()
    nodes_wanted: int = (
        0  # createNode(): the caller answers with Duplicate(children), fewer or none if there are no nodes
    )


def child_of(parent: State, address: Address) -> State:
    """A new node: idle until its start. It knows whom its parent tells of it, should the parent end
    before."""
    return State(
        address,
        IDLE,
        is_last=parent.is_last,
        succs=parent.succs,
        preds=parent.preds,
        parent=parent.address,
        gone=parent.gone,
    )


def pipeline(instances: tuple[int, ...], records: tuple[int, ...] = ()) -> dict[Address, State]:
    """A quiet pipeline with so many instances per operator; the first of each is its keeper. The input has
    records."""
    return quiet([sorted(str(i + 1) for i in range(count)) for count in instances], records=records)


def quiet(
    names: Sequence[Sequence[str]], keepers: Sequence[int] = (), records: tuple[int, ...] = ()
) -> dict[Address, State]:
    """A pipeline in which nothing is under way, by the names of its instances; the first ones of an operator
    are its keepers, one if nothing is said."""
    levels = [(INPUT,), *(tuple(Address(o, name) for name in some) for o, some in enumerate(names))]
    states = {INPUT: State(INPUT, is_keeper=True, succs=frozenset(levels[1]), queue=records)}
    for place, level in enumerate(levels[1:], start=1):
        is_last = place == len(levels) - 1
        kept = keepers[place - 1] if keepers else 1
        for number, address in enumerate(level):
            states[address] = State(
                address,
                is_keeper=number < kept,
                is_last=is_last,
                succs=NOBODY if is_last else frozenset(levels[place + 1]),
                preds=frozenset(levels[place - 1]),
            )
    return states


def step(state: State, event: Event, variant: Variant = CORRECTED, rules: Rules | None = None) -> Outcome:
    """What an agent does about one message or local event."""
    if state.status == ENDED:
        return Outcome(state)
    if isinstance(event, Message):
        if event.receiver != state.address or event.kind not in _HANDLERS:
            return _ignored(state)
        if event.sender in state.gone and event.kind not in (RECORD, RETURN, WELCOME):
            return _ignored(state)
        outcome = _HANDLERS[event.kind](state, event, variant, rules)
    elif isinstance(event, Tick):
        outcome = _tick(state, event, rules or Rules())
    else:
        outcome = _local(state, event, variant)
    return _settled(outcome, variant) if outcome.state.status == LEAVING else outcome


def _local(state: State, event: Event, variant: Variant) -> Outcome:
    if isinstance(event, Forward):
        return _forward(state, event)
    if isinstance(event, Gone | TimedOut):
        return _gone(state, event.peer, variant)
    if isinstance(event, Reachable):
        return _reachable(state, event.peer)
    if isinstance(event, Joined):
        return _joined(state, event.peer)
    if state.status != ACTIVE:
        return Outcome(state)  # who leaves, or is not there yet, begins nothing
    if isinstance(event, Keep):
        return Outcome(state._replace(is_keeper=True))
    if isinstance(event, Duplicate):
        return _duplicate(state, event.children, variant)
    return Outcome(state) if state.is_keeper else leave(state, variant)


def _ignored(state: State) -> Outcome:
    return Outcome(state._replace(ignored=state.ignored + 1))


# Beginning: Algorithms 1, 4 and 8


def _begin(state: State, operation: Operation, addresses: Addresses, variant: Variant) -> Outcome:
    """Algorithm 1: tell everybody the operation waits for. One counter forgets what it counted before."""
    earlier = () if variant.acks == "one_counter" else state.operations
    state = state._replace(
        operations=(*earlier, operation._replace(missing=len(operation.waiting))),
        operations_begun=operation.number,
    )
    told = operation.waiting if operation.kind == DELETION else NOBODY
    messages = tuple(
        Message(operation.kind, state.address, peer, operation.number, addresses, told=told)
        for peer in sorted(operation.waiting)
    )
    return Outcome(state, messages)


def _duplicate(state: State, children: tuple[Address, ...], variant: Variant) -> Outcome:
    if not children:
        return Outcome(state)  # no node was to be had: the next period tries again
    operation = Operation(state.operations_begun + 1, DUPLICATION, state.succs | state.preds, children)
    if state.gone:
        state = state._replace(begotten=state.begotten | frozenset(children))
    begun = _begin(state, operation, frozenset(children), variant)
    return begun if operation.waiting else _started(begun.state, operation)


def leave(state: State, variant: Variant) -> Outcome:
    """Algorithm 8. As printed, successors forget the instance while records still reach it; so they are told
    last."""
    at_once = variant.leaving == "all_at_once"
    told = state.preds | state.succs if at_once else state.preds
    operation = Operation(state.operations_begun + 1, DELETION, told, downstream=at_once)
    return _begin(state._replace(status=LEAVING), operation, frozenset({state.address}), variant)


# Neighbours change: Algorithms 5 and 9


def _side(state: State, sender: Address, variant: Variant) -> str | None:
    """Whether the sender is a successor or a predecessor. Its operator says so also to a node that has no
    view yet."""
    if variant.roles == "by_view":
        if state.status == IDLE:
            return None
        return "succs" if sender in state.succs else "preds" if sender in state.preds else None
    step_down = sender.operator - state.address.operator
    return {1: "succs", -1: "preds"}.get(step_down)


def _duplication(state: State, message: Message, variant: Variant, _rules: Rules | None) -> Outcome:
    side = _side(state, message.sender, variant)
    if side is None and variant.roles == "by_operator":
        return _ignored(state)
    if side is not None:
        there = message.addresses - state.gone - state.left_early
        name = side if state.is_active else f"{side}_to_add"
        state = state._replace(**{name: getattr(state, name) | there})
    return Outcome(state, (_answer(message, DUPLICATION_ACK),))


def _deletion(state: State, message: Message, variant: Variant, _rules: Rules | None) -> Outcome:
    side = _side(state, message.sender, variant)
    if side is None and variant.roles == "by_operator":
        return _ignored(state)
    if side is not None and state.is_active:
        view = getattr(state, side)
        if (
            unknown := message.addresses - view
        ):  # its parent vanished, and what that one said is still to come
            state = state._replace(left_early=state.left_early | unknown)
        state = state._replace(**{side: view - message.addresses})
        if state.operations and variant.start == "with_leavers":
            operations = tuple(_with_leaver(o, message) for o in state.operations)
            state = state._replace(operations=operations)
    elif side is not None:
        name = f"{side}_to_delete"
        state = state._replace(**{name: getattr(state, name) | message.addresses})
    return Outcome(state, (_answer(message, DELETION_ACK),))


def _with_leaver(operation: Operation, deletion: Message) -> Operation:
    """A leaver that knows the new nodes tells them itself that it leaves, and records of its may be on the
    way to
    them until then. So they have to know it, too, or they could end before those arrive."""
    if operation.kind != DUPLICATION or not deletion.told.issuperset(operation.children):
        return operation
    return operation._replace(leavers=operation.leavers | {deletion.sender})


def _answer(message: Message, kind: str, number: int = 0) -> Message:
    return Message(kind, message.receiver, message.sender, message.operation, number=number)


# Acks: Algorithms 6 and 10


def _ack(state: State, message: Message, variant: Variant, _rules: Rules | None) -> Outcome:
    if variant.acks == "one_counter":
        return _counted(state)
    for operation in state.operations:
        if operation.number == message.operation and message.sender in operation.waiting:
            left = operation._replace(waiting=operation.waiting - {message.sender})
            return _noted(state, operation, left)
    return _ignored(state)


def _counted(state: State) -> Outcome:
    if not state.operations:
        return _ignored(state)
    (operation,) = state.operations
    left = operation._replace(missing=operation.missing - 1)
    return _noted(state, operation, left._replace(waiting=left.waiting if left.missing else NOBODY))


def _noted(state: State, before: Operation, after: Operation) -> Outcome:
    if after.kind == DUPLICATION and not after.waiting:
        return _started(state, before)
    return Outcome(state._replace(operations=tuple(after if o is before else o for o in state.operations)))


def _started(state: State, operation: Operation) -> Outcome:
    """Algorithm 6: everybody knows the new nodes, so they may start, with the view as it is by now."""
    rest = tuple(each for each in state.operations if each.number != operation.number)
    succs, preds = state.succs, state.preds
    if operation.leavers:
        below = frozenset(p for p in operation.leavers if p.operator > state.address.operator)
        succs, preds = succs | below, preds | (operation.leavers - below)
    told = tuple(
        Message(START, state.address, child, operation.number, succs=succs, preds=preds)
        for child in operation.children
    )
    return Outcome(state._replace(operations=rest), told)


def _settled(outcome: Outcome, variant: Variant) -> Outcome:
    """Algorithm 10: on with leaving once the acks are in and the queue is empty; duplications end first."""
    state = outcome.state
    deletion = next((o for o in state.operations if o.kind == DELETION), None)
    if deletion is None or deletion.waiting or state.queue:
        return outcome
    if not deletion.downstream:
        rest = tuple(o for o in state.operations if o is not deletion)
        operation = Operation(state.operations_begun + 1, DELETION, state.succs, downstream=True)
        begun = _begin(state._replace(operations=rest), operation, frozenset({state.address}), variant)
        return _settled(Outcome(begun.state, outcome.messages + begun.messages), variant)
    if len(state.operations) > 1:
        return outcome
    return Outcome(state._replace(status=ENDED, operations=()), outcome.messages)


# The new node: Algorithm 7


def _start(state: State, message: Message, _variant: Variant, _rules: Rules | None) -> Outcome:
    if state.status != IDLE or message.sender != state.parent:
        return _ignored(state)
    return Outcome(_activated(state, message.succs, message.preds))


def _activated(state: State, succs: Addresses, preds: Addresses) -> State:
    succs, preds = succs | state.succs_to_add, preds | state.preds_to_add
    left_early = (state.succs_to_delete - succs) | (state.preds_to_delete - preds)
    return state._replace(
        status=ACTIVE,
        succs=succs - state.succs_to_delete - state.gone,
        preds=preds - state.preds_to_delete - state.gone,
        left_early=state.left_early | left_early,
        succs_to_add=NOBODY,
        preds_to_add=NOBODY,
        succs_to_delete=NOBODY,
        preds_to_delete=NOBODY,
    )


# Records


def _record(state: State, message: Message, _variant: Variant, _rules: Rules | None) -> Outcome:
    return Outcome(state._replace(queue=(*state.queue, message.number)))


def _forward(state: State, event: Forward) -> Outcome:
    if not state.queue or not state.is_active:
        return Outcome(state)
    record, rest = state.queue[0], state.queue[1:]
    if state.is_last:
        return Outcome(state._replace(queue=rest, consumed=(*state.consumed, record)))
    if event.to not in state.succs:
        return Outcome(state)
    assert event.to is not None
    return Outcome(state._replace(queue=rest), (Message(RECORD, state.address, event.to, number=record),))


# Deciding: n_t from a predecessor, then Algorithms 2 to 4


def _tick(state: State, tick: Tick, rules: Rules) -> Outcome:
    """Ask for n_t where the load calls for action. Which predecessor is asked does not matter: each has all
    siblings."""
    wants = state.status == ACTIVE and calls_for_action(tick.load, state.is_keeper, rules)
    if not wants or not state.preds:
        return Outcome(state._replace(asked=None))
    return Outcome(state._replace(asked=tick), (Message(COUNT, state.address, min(state.preds)),))


def _count(state: State, message: Message, _variant: Variant, _rules: Rules | None) -> Outcome:
    if message.sender not in state.succs:
        return _ignored(state)
    return Outcome(state, (_answer(message, COUNT_REPLY, len(state.succs)),))


def _count_reply(state: State, message: Message, variant: Variant, rules: Rules | None) -> Outcome:
    asked = state.asked
    if asked is None or state.status != ACTIVE or message.sender not in state.preds:
        return _ignored(state)
    state = state._replace(asked=None)
    decision = decide(asked.load, message.number, state.is_keeper, asked.draw, rules or Rules())
    return leave(state, variant) if decision.leave else Outcome(state, nodes_wanted=decision.duplications)


# Beyond the paper: peers that end without a word, or seem to


def _gone(state: State, peer: Address, variant: Variant) -> Outcome:
    """Forget the peer, and wait for it no longer. A node whose parent is gone before its start leaves by
    itself."""
    was_orphaned = state.status == IDLE and peer == state.parent
    untold = frozenset(c for o in state.operations for c in o.children)  # the peer may have missed them
    state = state._replace(
        succs=state.succs - {peer},
        preds=state.preds - {peer},
        succs_to_add=state.succs_to_add - {peer},
        preds_to_add=state.preds_to_add - {peer},
        gone=state.gone | {peer},
        begotten=state.begotten | untold,
        operations=tuple(
            o._replace(waiting=o.waiting - {peer}, leavers=o.leavers - {peer}) for o in state.operations
        ),
    )
    if was_orphaned:
        return leave(_activated(state, state.succs, state.preds), variant)
    ready = [o for o in state.operations if o.kind == DUPLICATION and not o.waiting]
    return _each_started(state, ready)


def _reachable(state: State, peer: Address) -> Outcome:
    """The peer was given up too early. What was under way between the two is void, so both begin anew."""
    if peer not in state.gone or not _takes_in(state, peer):
        return Outcome(state)
    return _asking(state, frozenset({peer}))


def _takes_in(state: State, peer: Address) -> bool:
    """Who leaves wants no predecessors any more, and successors as long as it has told none of them."""
    side = _side(state, peer, CORRECTED)
    if state.status == LEAVING:
        return side == "succs" and any(not o.downstream for o in state.operations)
    return side is not None


def given_up(state: State) -> Addresses:
    """Whom the agent gave up, and would ask to be taken in again as soon as it can be reached."""
    if state.status not in (ACTIVE, LEAVING):
        return NOBODY
    return frozenset(peer for peer in state.gone - state.returning if _takes_in(state, peer))


def _asking(state: State, peers: Addresses) -> Outcome:
    asked = peers - state.returning
    state = state._replace(returning=state.returning | asked)
    ask = [Message(RETURN, state.address, peer, addresses=state.begotten) for peer in sorted(asked)]
    return Outcome(state, tuple(ask))


def _return(state: State, message: Message, variant: Variant, _rules: Rules | None) -> Outcome:
    """The sender had given this agent up, or was given up by it: neither may have heard of what the other did
    since."""
    peer = message.sender
    if _side(state, peer, CORRECTED) is None:
        return _ignored(state)
    outcome = _gone(state, peer, variant)
    if not _takes_in(outcome.state, peer):
        return outcome
    answer = Message(WELCOME, state.address, peer, addresses=outcome.state.begotten)
    met = _met(outcome.state, message)
    return Outcome(met.state, (*outcome.messages, answer, *met.messages))


def _welcome(state: State, message: Message, _variant: Variant, _rules: Rules | None) -> Outcome:
    return _met(state, message) if _takes_in(state, message.sender) else _ignored(state)


def _met(state: State, message: Message) -> Outcome:
    """Take the sender in, and make oneself known to its children."""
    peer = message.sender
    side = _side(state, peer, CORRECTED) or ""  # a neighbour's: see _takes_in
    name = side if state.is_active else f"{side}_to_add"
    gone = state.gone - {peer}
    state = state._replace(
        **{name: getattr(state, name) | {peer}}, gone=gone, returning=state.returning - {peer}
    )
    asking = _asking(state, message.addresses)
    return asking if gone else asking._replace(state=asking.state._replace(begotten=NOBODY))


def _joined(state: State, peer: Address) -> Outcome:
    """As if a neighbour had announced it; nobody waits for an ack."""
    side = _side(state, peer, CORRECTED)
    if side is None or peer in state.gone:
        return _ignored(state)
    name = side if state.is_active else f"{side}_to_add"
    return Outcome(state._replace(**{name: getattr(state, name) | {peer}}))


def _each_started(state: State, operations: Iterable[Operation]) -> Outcome:
    messages: tuple[Message, ...] = ()
    for operation in operations:
        started = _started(state, operation)
        state, messages = started.state, messages + started.messages
    return Outcome(state, messages)


_Handler = Callable[[State, Message, Variant, Rules | None], Outcome]
_HANDLERS: dict[str, _Handler] = {
    DUPLICATION: _duplication,
    DUPLICATION_ACK: _ack,
    START: _start,
    DELETION: _deletion,
    DELETION_ACK: _ack,
    COUNT: _count,
    COUNT_REPLY: _count_reply,
    RECORD: _record,
    RETURN: _return,
    WELCOME: _welcome,
}
