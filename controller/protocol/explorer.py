"""All interleavings of a small scenario, or fewer that stand for all of them.

State hashing: agents, channels and messages are numbered; what an agent does about one is computed once.
Symmetry: worlds that differ only in the names of interchangeable instances count once.
Partial order: events of different agents commute, since each takes from the head and adds to the tail of
channels of its own. So it is enough to branch over a group of agents that nobody outside it can send anything
new to before they act (a persistent set). Every check is about one agent's delivery or
about the end, so none gets lost. Both reductions are compared with plain enumeration in the tests."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from itertools import permutations, product
from time import process_time
from typing import Any, NamedTuple

from controller.protocol.agent import ENDED, IDLE, LEAVING, State, child_of
from controller.protocol.messages import (
    DELETION,
    DUPLICATION,
    RECORD,
    Address,
    Duplicate,
    Event,
    Forward,
    Message,
    Reachable,
    TimedOut,
)
from controller.protocol.world import (
    VANISHED,
    Action,
    Scenario,
    Vanish,
    beginning,
    failures_seen_by,
    is_planned,
    moves,
    planned,
    with_lost,
    wrong_delivery,
    wrong_when_quiet,
)

Vector = tuple[int, ...]  # one number per agent, then one per channel; 0 is an empty channel
EMPTY = 0


class Counterexample(NamedTuple):
    scenario: Scenario
    actions: tuple[Action, ...]
    problems: tuple[str, ...]


@dataclass(frozen=True)
class Result:
    scenario: Scenario
    states: int
    transitions: int
    quiet: frozenset[str]  # the worlds in which nothing is left to happen, up to symmetry
    seconds: float  # of CPU time
    complete: bool  # False: stopped at the limit of states or time
    counterexample: Counterexample | None


class _Agent(NamedTuple):
    """An agent with how many of its planned acts are done."""

    state: State
    acts_done: int


class _Facts(NamedTuple):
    """What the reduction asks about an agent, computed once per state of it."""

    may_begin: bool  # a planned act is left, or successors are still to be told
    to_start: frozenset[Address]
    has_record: bool


class _Effect(NamedTuple):
    agent: int
    sent: tuple[tuple[int, int], ...]  # position of the channel, message
    born: tuple[tuple[int, int], ...]  # position of the agent, its state
    problems: tuple[str, ...]


class Explorer:
    """One scenario, compiled into numbers."""

    def __init__(self, scenario: Scenario, symmetry: bool = True, partial_order: bool = True) -> None:
        self.scenario = scenario
        self.step = scenario.step
        self.partial_order = partial_order and not scenario.has_failures
        self.values: list[Any] = [()]
        self.number_of: dict[Any, int] = {(): EMPTY}
        self.start = beginning(scenario)
        self.addresses = self._all_addresses()
        self.slot_of = {address: slot for slot, address in enumerate(self.addresses)}
        self.acts = [scenario.acts_of(address) for address in self.addresses]
        self._lay_channels()
        self.effects: dict[tuple[int, type, Any], _Effect] = {}
        self.local_events: dict[int, tuple[Event | Vanish, ...]] = {}
        self.facts_of: dict[int, _Facts] = {}
        self.appended: dict[tuple[int, int], int] = {}
        self.asks: dict[int, bool] = {}
        self.carries: dict[int, bool] = {}
        self.mappings = list(self._symmetries())
        self.orders = [self._order(mapping) for mapping in self.mappings] if symmetry else []
        self.renamed: list[dict[int, int]] = [{EMPTY: EMPTY} for _ in self.mappings]

    # Compiling

    def _number(self, value: Any) -> int:
        number = self.number_of.get(value)
        if number is None:
            number = self.number_of[value] = len(self.values)
            self.values.append(value)
        return number

    def _all_addresses(self) -> list[Address]:
        """Those at the beginning, and those that planned duplications will create."""
        addresses = list(self.start.states)
        for address in addresses:  # grows while it is walked: children may duplicate, too
            duplications = [act for act in self.scenario.acts_of(address) if act.kind == "duplicate"]
            for begun, act in enumerate(duplications):
                addresses += [address.child(10 * begun + i + 1) for i in range(act.children)]
        return addresses

    def _lay_channels(self) -> None:
        self.position_of: dict[tuple[int, int], int] = {}
        self.incoming: list[list[tuple[int, int]]] = [[] for _ in self.addresses]
        for (i, a), (j, b) in product(enumerate(self.addresses), repeat=2):
            is_child = b.operator == a.operator and b.name.startswith(f"{a.name}.")
            if abs(a.operator - b.operator) == 1 or is_child:
                position = len(self.addresses) + len(self.position_of)
                self.position_of[i, j] = position
                self.incoming[j].append((position, i))

    def first(self) -> Vector:
        unborn = {a: State(a, IDLE) for a in self.addresses}
        agents = [_Agent(self.start.states.get(a, unborn[a]), 0) for a in self.addresses]
        return (*map(self._number, agents), *([EMPTY] * len(self.position_of)))

    # Symmetry

    def _symmetries(self) -> Iterator[dict[Address, Address]]:
        """All renamings, but for the identity, that leave the beginning and the plan as they are."""
        groups: dict[Any, list[Address]] = {}
        named = {act.peer for act in self.scenario.acts} | {
            act.agent for act in self.scenario.acts if act.peer is not None
        }  # the plan is about these two, and nobody else can stand for them
        for address, state in self.start.states.items():
            acts = tuple((act.kind, act.children) for act in self.scenario.acts_of(address))
            own_name = address.name if address in named else ""
            kind = (address.operator, state.is_keeper, acts, self._planned_below(address), own_name)
            groups.setdefault(kind, []).append(address)
        for orders in product(*(permutations(group) for group in groups.values())):
            mapping = {
                old: new
                for group, order in zip(groups.values(), orders, strict=True)
                for old, new in zip(group, order, strict=True)
            }
            full = {address: self._follow(address, mapping) for address in self.addresses}
            if any(old != new for old, new in full.items()):
                yield full

    def _planned_below(self, address: Address) -> tuple[tuple[str, str, int], ...]:
        prefix = f"{address.name}."
        return tuple(
            (act.agent.name.removeprefix(prefix), act.kind, act.children)
            for act in self.scenario.acts
            if act.agent.operator == address.operator and act.agent.name.startswith(prefix)
        )

    @staticmethod
    def _follow(address: Address, mapping: dict[Address, Address]) -> Address:
        """Children are renamed with their parents."""
        root, dot, rest = address.name.partition(".")
        new = mapping[Address(address.operator, root)]
        return Address(new.operator, new.name + dot + rest)

    def _order(self, mapping: dict[Address, Address]) -> list[int]:
        """Where each place of a renamed vector takes its number from."""
        to = [self.slot_of[mapping[address]] for address in self.addresses]
        order = [0] * (len(to) + len(self.position_of))
        for old, new in enumerate(to):
            order[new] = old
        for (i, j), position in self.position_of.items():
            order[self.position_of[to[i], to[j]]] = position
        return order

    def _rename(self, number: int, which: int) -> int:
        known = self.renamed[which]
        if number not in known:
            known[number] = self._number(_renamed(self.values[number], self.mappings[which]))
        return known[number]

    def canonical(self, vector: Vector) -> bytes:
        """The same 16 bytes for all worlds that differ by a renaming only (128 bits: no collision in
        practice)."""
        best = vector
        for which, order in enumerate(self.orders):
            names = self.renamed[which]
            candidate = tuple(
                [
                    names[n] if n in names else self._rename(n, which)
                    for n in [vector[place] for place in order]
                ]
            )
            best = min(best, candidate)
        return blake2b(array("I", best).tobytes(), digest_size=16).digest()

    # What can happen

    def _locals(self, number: int, slot: int) -> tuple[Event | Vanish, ...]:
        events = self.local_events.get(number)
        if events is None:
            state, done = self.values[number]
            left = self.acts[slot][done:]
            found = [*moves(state), *(planned(state, left[0]) if left else ())]
            if state.status in (ENDED, VANISHED):
                found = []
            events = self.local_events[number] = tuple(found)
        return events

    def at(self, vector: Vector, slot: int) -> list[tuple[int, Any, int]]:
        """The enabled actions of one agent: (slot, event, position of the channel or -1)."""
        actions: list[tuple[int, Any, int]] = [
            (slot, event, -1) for event in self._locals(vector[slot], slot)
        ]
        for position, _ in self.incoming[slot]:
            channel = self.values[vector[position]]
            if channel:
                heads = channel[:1] if self.scenario.fifo else tuple(dict.fromkeys(channel))
                actions += [(slot, message, position) for message in heads]
        state = self.values[vector[slot]].state
        if self.scenario.has_failures and state.status not in (ENDED, VANISHED):
            actions += [(slot, event, -1) for event in failures_seen_by(state, self.states_in(vector))]
        return actions

    def enabled(self, vector: Vector) -> list[tuple[int, Any, int]]:
        by_agent = [self.at(vector, slot) for slot in range(len(self.addresses))]
        if self.partial_order:
            group = self._persistent(vector, by_agent)
            return [action for slot in group for action in by_agent[slot]]
        return [action for actions in by_agent for action in actions]

    # Partial order

    def _facts(self, number: int, slot: int) -> _Facts:
        facts = self.facts_of.get(number)
        if facts is None:
            state, done = self.values[number]
            left = self.acts[slot][done:] if state.status != ENDED else ()
            upstream = any(o.kind == DELETION and not o.downstream for o in state.operations)
            children = {c for o in state.operations for c in o.children}
            future = (
                {a for a in self.addresses if a.name.startswith(f"{state.address.name}.")} if left else set()
            )
            facts = _Facts(
                bool(left) or upstream or (state.status == LEAVING and not state.operations),
                frozenset(children | {a for a in future if a.operator == state.address.operator}),
                bool(state.queue),
            )
            self.facts_of[number] = facts
        return facts

    def _memo(self, memo: dict[int, bool], channel: int, kinds: tuple[str, ...]) -> bool:
        if channel not in memo:
            memo[channel] = any(message.kind in kinds for message in self.values[channel])
        return memo[channel]

    def _first_record(self, vector: Vector) -> int:
        """The most upstream operator that has or gets a record."""
        places = [
            address.operator
            for slot, address in enumerate(self.addresses)
            if self._facts(vector[slot], slot).has_record
        ]
        for (_, j), position in self.position_of.items():
            if vector[position] and self._memo(self.carries, vector[position], (RECORD,)):
                places.append(self.addresses[j].operator)
        return min(places, default=len(self.scenario.instances))

    def _may_send(self, vector: Vector, i: int, j: int, first_record: int) -> bool:
        """Whether i can send something to j before j acts; too often yes is slow, never wrong."""
        facts = self._facts(vector[i], i)
        a, b = self.addresses[i], self.addresses[j]
        if b in facts.to_start:
            return True
        if a.operator == b.operator:
            return False
        if facts.may_begin or (b.operator == a.operator + 1 and first_record <= a.operator):
            return True
        back = vector[self.position_of[j, i]]
        return back != EMPTY and self._memo(self.asks, back, (DUPLICATION, DELETION))

    def _persistent(self, vector: Vector, by_agent: list[list[tuple[int, Any, int]]]) -> list[int]:
        """The group of agents with the fewest actions that nobody outside can send anything new to."""
        first_record = self._first_record(vector)
        best: list[int] = [slot for slot, actions in enumerate(by_agent) if actions]
        fewest = sum(map(len, by_agent))
        for seed, actions in enumerate(by_agent):
            if not actions or len(actions) >= fewest:
                continue
            group, count = {seed}, len(actions)
            todo = [seed]
            while todo and count < fewest:
                j = todo.pop()
                for position, i in self.incoming[j]:
                    if i in group or (vector[position] and self.scenario.fifo):
                        continue  # by FIFO, what is sent now comes after what is there already
                    if self._may_send(vector, i, j, first_record):
                        group.add(i)
                        todo.append(i)
                        count += len(by_agent[i])
            if not todo and count < fewest:
                best, fewest = sorted(group), count
        return best

    # What happens

    def _effect(self, number: int, slot: int, event: Any) -> _Effect:
        key = (number, type(event), event)  # named tuples of two kinds with the same parts are equal
        effect = self.effects.get(key)
        if effect is None:
            effect = self.effects[key] = self._compute(self.values[number], slot, event)
        return effect

    def _compute(self, agent: _Agent, slot: int, event: Any) -> _Effect:
        state, done = agent
        problems: tuple[str, ...] = ()
        if isinstance(event, Message):
            problems = tuple(wrong_delivery(state, event, self.scenario))
        if isinstance(event, Message) and state.status in (VANISHED, ENDED):
            return _Effect(self._number(_Agent(with_lost(state, [event]), done)), (), (), problems)
        if isinstance(event, Vanish):
            gone = _Agent(state._replace(status=VANISHED), done + 1)
            return _Effect(self._number(gone), (), (), problems)
        outcome = self.step(state, event)
        is_act = not isinstance(event, Message | Forward | TimedOut | Reachable)
        if isinstance(event, TimedOut):
            is_act = is_planned(self.scenario, state.address, done, event)
        born = (
            tuple(
                (self.slot_of[child], self._number(_Agent(child_of(state, child), 0)))
                for child in event.children
            )
            if isinstance(event, Duplicate)
            else ()
        )
        sent = tuple(
            (self.position_of[slot, self.slot_of[m.receiver]], self._number(m)) for m in outcome.messages
        )
        return _Effect(self._number(_Agent(outcome.state, done + is_act)), sent, born, problems)

    def _append(self, channel: int, message: int) -> int:
        key = (channel, message)
        longer = self.appended.get(key)
        if longer is None:
            longer = self.appended[key] = self._number((*self.values[channel], self.values[message]))
        return longer

    def after(self, vector: Vector, action: tuple[int, Any, int]) -> tuple[Vector, tuple[str, ...]]:
        slot, event, position = action
        effect = self._effect(vector[slot], slot, event)
        new = list(vector)
        new[slot] = effect.agent
        if position >= 0:
            channel = list(self.values[vector[position]])
            channel.remove(event)
            new[position] = self._number(tuple(channel))
        elif isinstance(event, TimedOut):
            self._lose(new, self.slot_of[event.peer], slot)
        for place, number in effect.born:
            new[place] = number
        for place, message in effect.sent:
            new[place] = self._append(new[place], message)
        return tuple(new), effect.problems

    def _lose(self, vector: list[int], dead: int, slot: int) -> None:
        """What a vanished process had sent and nobody has taken yet ended with it."""
        lost = self.position_of.get((dead, slot))
        peer = self.values[vector[dead]]
        if lost is not None and peer.state.status == VANISHED:
            messages = self.values[vector[lost]]
            vector[dead] = self._number(peer._replace(state=with_lost(peer.state, messages)))
            vector[lost] = EMPTY

    def states_in(self, vector: Vector) -> dict[Address, State]:
        return {address: self.values[vector[slot]].state for slot, address in enumerate(self.addresses)}

    def wrong_at_the_end(self, vector: Vector) -> tuple[str, ...]:
        return tuple(wrong_when_quiet(self.states_in(vector), self.scenario))

    def signature(self, states: Mapping[Address, State]) -> str:
        """The same text for all ends that differ by a renaming only, in this explorer and in any other."""
        born = [s for s in states.values() if s.status != IDLE or s.parent is not None]
        identity = {address: address for address in self.addresses}
        texts = (repr(sorted(_in_order(_renamed(s, m)) for s in born)) for m in [identity, *self.mappings])
        return min(texts)


def _renamed(value: Any, mapping: dict[Address, Address]) -> Any:
    if isinstance(value, Address):
        return mapping[value]
    if isinstance(value, frozenset):
        return frozenset(_renamed(each, mapping) for each in value)
    if isinstance(value, tuple):
        parts = [_renamed(each, mapping) for each in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value


def _in_order(value: Any) -> str:
    """A text of a value in which sets have an order."""
    if isinstance(value, frozenset):
        return "{" + ",".join(sorted(map(_in_order, value))) + "}"
    if isinstance(value, tuple):
        return "(" + ",".join(map(_in_order, value)) + ")"
    return repr(value)


class _Frame(NamedTuple):
    """A world on the way from the beginning to where the search is."""

    vector: Vector
    digest: bytes
    actions: Iterator[Any]  # those not tried yet
    came_by: Any


class _Search:
    """Depth first, with the way to where it is."""

    def __init__(self, explorer: Explorer) -> None:
        self.explorer = explorer
        self.is_open: dict[bytes, bool] = {}  # True: on the way from the beginning to here
        self.quiet: set[str] = set()
        self.transitions = 0
        self.path: list[_Frame] = []
        self.began = process_time()
        first = explorer.first()
        self._enter(first, explorer.canonical(first), None)

    @property
    def seconds(self) -> float:
        return process_time() - self.began

    def go_on(self) -> tuple[str, ...]:
        """The next action of the newest world; what it shows to be wrong."""
        vector, digest, actions, _ = self.path[-1]
        action = next(actions, None)
        if action is None:
            self.is_open[digest] = False
            self.path.pop()
            return ()
        self.transitions += 1
        after, problems = self.explorer.after(vector, action)
        new = self.explorer.canonical(after)
        if problems:
            self.path.append(_Frame(after, new, iter(()), action))
        elif new not in self.is_open:
            problems = self._enter(after, new, action)
        elif self.is_open[new]:
            self.path.append(_Frame(after, new, iter(()), action))
            problems = ("quiet is never reached: the run goes round in a circle",)
        return problems

    def _enter(self, vector: Vector, digest: bytes, action: Any) -> tuple[str, ...]:
        self.is_open[digest] = True
        following = self.explorer.enabled(vector)
        self.path.append(_Frame(vector, digest, iter(following), action))
        if following:
            return ()
        self.quiet.add(self.explorer.signature(self.explorer.states_in(vector)))
        return self.explorer.wrong_at_the_end(vector)

    def result(self, problems: tuple[str, ...], complete: bool) -> Result:
        found, scenario = None, self.explorer.scenario
        if problems:
            way = [frame.came_by for frame in self.path if frame.came_by]
            actions = tuple(Action(self.explorer.addresses[a[0]], a[1]) for a in way)
            found = Counterexample(scenario, actions, problems)
        quiet = frozenset(self.quiet)
        return Result(scenario, len(self.is_open), self.transitions, quiet, self.seconds, complete, found)


def explore(
    scenario: Scenario,
    symmetry: bool = True,
    partial_order: bool = True,
    max_states: int = 10**9,
    max_seconds: float = float("inf"),
) -> Result:
    """Depth first through all interleavings; stops at the first thing that is wrong. A world that leads back
    to
    itself would be a run that never gets quiet."""
    search = _Search(Explorer(scenario, symmetry, partial_order))
    while search.path:
        if problems := search.go_on():
            return search.result(problems, complete=True)
        is_late = search.transitions % 1024 == 0 and search.seconds > max_seconds
        if len(search.is_open) >= max_states or is_late:
            return search.result((), complete=False)
    return search.result((), complete=True)


def shortest(scenario: Scenario, max_states: int = 2_000_000) -> Counterexample | None:
    """The shortest way to what the scenario shows, or to anything wrong, breadth first: for a chart."""
    explorer = Explorer(scenario)
    vector = explorer.first()
    came: list[tuple[int, Any]] = [(-1, None)]
    seen = {explorer.canonical(vector)}
    layer = [(0, vector)]

    def found(index: int, last: Any, problems: tuple[str, ...]) -> Counterexample:
        way = [last]
        while index > 0:
            index, action = came[index][0], came[index][1]
            way.append(action)
        return Counterexample(
            scenario, tuple(Action(explorer.addresses[a[0]], a[1]) for a in reversed(way)), problems
        )

    while layer and len(seen) < max_states:
        following = []
        for index, vector in layer:
            for action in explorer.enabled(vector):
                after, problems = explorer.after(vector, action)
                if not problems and not explorer.enabled(after):
                    problems = explorer.wrong_at_the_end(after)
                if any(scenario.shows in problem for problem in problems):
                    return found(index, action, problems)
                new = explorer.canonical(after)
                if new not in seen:
                    seen.add(new)
                    came.append((index, action))
                    following.append((len(came) - 1, after))
        layer = following
    return None
