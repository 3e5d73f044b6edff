"""A small pipeline with its channels, as one value: which events can happen next, what they change, what is
wrong.

Decisions are not drawn here but planned (`Act`): each happens at any moment the schedule likes. Records never
influence the protocol, so one record on every possible way stands for all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Literal, NamedTuple

from controller.protocol.agent import (
    ACTIVE,
    CORRECTED,
    ENDED,
    IDLE,
    LEAVING,
    Outcome,
    State,
    Variant,
    child_of,
    given_up,
    pipeline,
    step,
)
from controller.protocol.messages import (
    RECORD,
    Address,
    Delete,
    Duplicate,
    Event,
    Forward,
    Message,
    Reachable,
    TimedOut,
)

VANISHED = "vanished"  # ended without a word: the world's knowledge, never an agent's
Step = Callable[[State, Event], Outcome]
Fault = Callable[[Step], Step]


class Act(NamedTuple):
    """Something that an agent does once, at any moment after its earlier acts."""

    agent: Address
    kind: Literal["duplicate", "delete", "vanish", "give_up"]
    children: int = 1
    peer: Address | None = None  # whom it gives up, although that one lives


class Vanish(NamedTuple):
    """The agent's process ends on the spot."""


@dataclass(frozen=True)
class Scenario:
    name: str
    instances: tuple[int, ...]
    acts: tuple[Act, ...]
    records: int = 1
    fifo: bool = True
    variant: Variant = CORRECTED
    fault: Fault | None = field(default=None, compare=False)
    shows: str = ""  # words of what a chart of it should end with, where several things go wrong

    @cached_property
    def step(self) -> Step:
        plain: Step = partial(step, variant=self.variant)
        return plain if self.fault is None else self.fault(plain)

    @cached_property
    def has_failures(self) -> bool:
        return any(act.kind in ("vanish", "give_up") for act in self.acts)

    @cached_property
    def leavers(self) -> frozenset[Address]:
        """Who decides to leave and may: all but the keepers."""
        keepers = {a for a, state in pipeline(self.instances).items() if state.is_keeper}
        return frozenset(act.agent for act in self.acts if act.kind == "delete") - keepers

    @cached_property
    def _acts_by_agent(self) -> Mapping[Address, tuple[Act, ...]]:
        agents = dict.fromkeys(act.agent for act in self.acts)
        return {agent: tuple(act for act in self.acts if act.agent == agent) for agent in agents}

    def acts_of(self, agent: Address) -> tuple[Act, ...]:
        return self._acts_by_agent.get(agent, ())


class Action(NamedTuple):
    """An event at an agent; a message is taken from its channel."""

    agent: Address
    event: Event | Vanish


Channels = Mapping[tuple[Address, Address], tuple[Message, ...]]


class World(NamedTuple):
    states: Mapping[Address, State]
    channels: Channels  # only those that hold a message
    acts_done: Mapping[Address, int]

    @property
    def key(self) -> tuple[object, ...]:
        """Equal worlds have equal keys, however they came about."""
        return (
            frozenset(self.states.items()),
            frozenset(self.channels.items()),
            frozenset(self.acts_done.items()),
        )


def beginning(scenario: Scenario) -> World:
    return World(pipeline(scenario.instances, tuple(range(scenario.records))), {}, {})


def enabled(world: World, scenario: Scenario) -> list[Action]:
    """All that can happen next, in an order that the way to this world determines."""
    actions = [
        Action(receiver, message)
        for (_, receiver), channel in world.channels.items()
        for message in (channel[:1] if scenario.fifo else dict.fromkeys(channel))
    ]
    for agent in world.states:
        actions += own_actions(world, agent, scenario)
    return actions


def own_actions(world: World, agent: Address, scenario: Scenario) -> list[Action]:
    """What an agent can do without a message. Only where there are failures does that depend on others."""
    state = world.states[agent]
    if state.status in (VANISHED, ENDED):
        return []
    events: list[Event | Vanish] = list(moves(state))
    acts, done = scenario.acts_of(agent), world.acts_done.get(agent, 0)
    if done < len(acts):
        events += planned(state, acts[done])
    if scenario.has_failures:
        events += failures_seen_by(state, world.states)
    return [Action(agent, event) for event in events]


def failures_seen_by(state: State, states: Mapping[Address, State]) -> Iterator[Event]:
    """Peers that vanished time out, and those that were given up but live can be reached again. Who left in
    good order has told everybody, but for those it had given up."""
    for peer in sorted(known_to(state)):
        other = states[peer]
        if other.status == VANISHED or (other.status == ENDED and state.address in other.gone):
            yield TimedOut(peer)
    for peer in sorted(given_up(state)):
        if peer in states and states[peer].status not in (VANISHED, ENDED):
            yield Reachable(peer)


def moves(state: State) -> Iterator[Event]:
    """What an agent can do by itself, apart from planned acts: process the next record."""
    if state.queue and state.is_active:
        if state.is_last:
            yield Forward(None)
        yield from map(Forward, sorted(state.succs))


def planned(state: State, act: Act) -> Iterator[Event | Vanish]:
    """The event of an act, if its moment can be now."""
    if act.kind == "give_up" and act.peer in known_to(state) and state.status != IDLE:
        assert act.peer is not None
        yield TimedOut(act.peer)
    if act.kind == "vanish" and (state.status != IDLE or state.parent is not None):
        yield Vanish()
    elif state.is_active and act.kind == "delete":
        yield Delete()  # also to one that leaves already, which must not begin to leave again
    elif state.status == ACTIVE and act.kind == "duplicate":
        yield Duplicate(next_children(state, act.children))


def next_children(state: State, count: int) -> tuple[Address, ...]:
    """Names for new nodes; an operation's number makes them unique."""
    first = 10 * state.operations_begun
    return tuple(state.address.child(first + i + 1) for i in range(count))


def known_to(state: State) -> frozenset[Address]:
    """Every peer that an agent still counts on, except for those it knows to be gone."""
    known = state.succs | state.preds | state.succs_to_add | state.preds_to_add
    for operation in state.operations:
        known |= operation.waiting | frozenset(operation.children)
    if state.status == IDLE and state.parent is not None:
        known |= {state.parent}
    return known - state.gone


def perform(world: World, action: Action, scenario: Scenario) -> tuple[World, list[str]]:
    """The world after an action, and what the action itself shows to be wrong."""
    agent, event = action
    states, channels, done = dict(world.states), dict(world.channels), dict(world.acts_done)
    state = states[agent]
    problems: list[str] = []
    if isinstance(event, Message):
        _take(channels, event)
        problems = wrong_delivery(state, event, scenario)
        if state.status in (VANISHED, ENDED):
            states[agent] = with_lost(state, [event])
            return World(states, channels, done), problems
    elif isinstance(event, Duplicate | Delete | Vanish):
        done[agent] = done.get(agent, 0) + 1
    elif isinstance(event, TimedOut):
        peer = states[event.peer]
        if is_planned(scenario, agent, done.get(agent, 0), event):
            done[agent] = done.get(agent, 0) + 1
        if peer.status == VANISHED:  # what it had sent and nobody has taken yet ended with it
            states[event.peer] = with_lost(peer, channels.pop((event.peer, agent), ()))
    if isinstance(event, Vanish):
        states[agent] = state._replace(status=VANISHED)
        return World(states, channels, done), problems
    if isinstance(event, Duplicate):
        states.update({child: child_of(state, child) for child in event.children})
    outcome = scenario.step(state, event)
    states[agent] = outcome.state
    for message in outcome.messages:
        pair = (message.sender, message.receiver)
        channels[pair] = (*channels.get(pair, ()), message)
    return World(states, channels, done), problems


def is_planned(scenario: Scenario, agent: Address, done: int, event: TimedOut) -> bool:
    """Whether a time-out is the agent's next act. That of a dead peer is none: it comes by itself."""
    acts = scenario.acts_of(agent)
    return done < len(acts) and acts[done].kind == "give_up" and acts[done].peer == event.peer


def with_lost(state: State, messages: Iterable[Message]) -> State:
    """Records that nobody will process, in the hands of one that has ended."""
    lost = tuple(message.number for message in messages if message.kind == RECORD)
    return state._replace(queue=(*state.queue, *lost)) if lost else state


def _take(channels: dict[tuple[Address, Address], tuple[Message, ...]], message: Message) -> None:
    pair = (message.sender, message.receiver)
    rest = list(channels[pair])
    rest.remove(message)
    if rest:
        channels[pair] = tuple(rest)
    else:
        del channels[pair]


# What must hold. Each check looks at one delivery, or at a world where nothing can happen any more: so
# orders that
# differ only in events of different agents cannot change a verdict, which the explorer relies on.


def wrong_delivery(state: State, message: Message, scenario: Scenario) -> list[str]:
    """A record at the wrong place. Who was given up may not know yet that somebody has left."""
    if message.kind != RECORD or message.sender in state.gone:
        return []
    if state.status == ENDED:
        return [f"{message.sender} sent a record to {state.address}, which has terminated"]
    if state.is_active and message.sender not in state.preds and not scenario.has_failures:
        return [
            f"{state.address} got a record from {message.sender}, which it does not know as a predecessor"
        ]
    return []


def wrong_when_quiet(states: Mapping[Address, State], scenario: Scenario) -> list[str]:
    """Everything that is wrong where no event is left. All planned acts were done by then."""
    born = [s for s in states.values() if s.status != IDLE or s.parent is not None]
    live = [s for s in born if s.status not in (ENDED, VANISHED)]
    problems = [
        f"quiet is not reached: {_waits(s)}" for s in live if s.operations or s.status in (IDLE, LEAVING)
    ]
    problems += [
        f"operator {operator} has no instance left"
        for operator in range(len(scenario.instances))
        if not any(s.address.operator == operator and s.is_active for s in live)
    ]
    problems += [
        f"{s.address} decided to leave and is still there"
        for s in live
        if s.address in scenario.leavers and s.status == ACTIVE
    ]
    if not problems:
        problems = [wrong for state in live for wrong in _wrong_views(state, live)]
    return problems + list(_wrong_records(born, scenario))


def _waits(state: State) -> str:
    if state.status == IDLE:
        return f"{state.address} never got its start"
    peers = sorted({peer for operation in state.operations for peer in operation.waiting})
    return f"{state.address} still waits for {', '.join(map(str, peers)) or 'its queue'}"


def _wrong_views(state: State, live: list[State]) -> Iterator[str]:
    for side, seen, step_down in (("successors", state.succs, 1), ("predecessors", state.preds, -1)):
        there = {s.address for s in live if s.address.operator == state.address.operator + step_down}
        for peer in sorted(there - seen):
            yield f"{state.address} does not have {peer} among its {side}"
        for peer in sorted(seen - there):
            yield f"{state.address} has {peer} among its {side}, which has terminated"


def _wrong_records(born: list[State], scenario: Scenario) -> Iterator[str]:
    """Each record is processed once. Only what was in the hands of a process that vanished, or was sent to
    one that has ended, may be lost where there are failures."""
    ended = [state for state in born if state.status in (VANISHED, ENDED)]
    excused = {record for state in ended for record in state.queue} if scenario.has_failures else set()
    last = len(scenario.instances) - 1
    for state in born:
        if state.consumed and state.address.operator != last:
            yield f"{state.address} processed a record as if nobody came after it"
    consumed = Counter(record for state in born for record in state.consumed)
    for record in range(scenario.records):
        if consumed[record] == 0 and record not in excused:
            yield f"record {record} was lost"
        elif consumed[record] > 1:
            yield f"record {record} was processed {consumed[record]} times"
