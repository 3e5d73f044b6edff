"""The paper's discrete steps (§5.1): what a decision sends is processed in the same step, everything else in
the
next one. Messages are counted in the step that processes them, as the paper's 30 and 168 are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from controller.protocol.agent import ACTIVE, CORRECTED, ENDED, State, Variant, child_of, pipeline, step
from controller.protocol.decision import Rules
from controller.protocol.messages import (
    COUNT,
    COUNT_REPLY,
    DELETION_ACK,
    DUPLICATION,
    DUPLICATION_ACK,
    INPUT,
    SCALING_KINDS,
    Address,
    Duplicate,
    Event,
    Message,
    Tick,
)

Loads = NDArray[np.float64]  # steps × operators
Looks = Literal["apart", "since_birth", "together"]
"""Which instances look at their load in a step: each has a phase of its own, drawn; each has that of its own
first step; or all look in the same steps."""


@dataclass
class StepRun:
    """Agents under the paper's clock. `advance` is one step; the events are this step's decisions or
    ticks."""

    states: dict[Address, State]
    variant: Variant = CORRECTED
    rules: Rules = field(default_factory=Rules)
    free_nodes: int | None = None  # None: as many as anybody asks for
    due: list[Message] = field(default_factory=list)
    counted: Counter[str] = field(default_factory=Counter)  # messages processed in the last step, by kind
    counted_by_operator: Counter[int] = field(
        default_factory=Counter
    )  # those that the paper counts, by whose
    announced_by_operator: Counter[int] = field(default_factory=Counter)  # of these, what announces new nodes

    @property
    def is_quiet(self) -> bool:
        return not self.due

    @property
    def messages(self) -> int:
        """What the paper counts of the last step; asking for n_t is apart."""
        return sum(self.counted[kind] for kind in SCALING_KINDS)

    def advance(self, events: Iterable[tuple[Address, Event]] = ()) -> None:
        arrived, self.due = self.due, []
        self.counted, self.counted_by_operator, self.announced_by_operator = Counter(), Counter(), Counter()
        for message in arrived:
            self.due += self._do(message.receiver, message)
        first = [message for agent, event in events for message in self._begun(agent, event)]
        behind = {(m.sender, m.receiver) for m in self.due}
        for message in first:
            if (message.sender, message.receiver) in behind:
                self.due.append(message)  # channels are FIFO: nothing overtakes
            else:
                self.due += self._do(message.receiver, message)

    def _begun(self, agent: Address, event: Event) -> Sequence[Message]:
        """What a decision sends. The question for n_t is answered at once: the paper gives it no time."""
        messages = self._do(agent, event)
        while messages and messages[0].kind in (COUNT, COUNT_REPLY):
            messages = self._do(messages[0].receiver, messages[0])
        return messages

    def _do(self, agent: Address, event: Event) -> Sequence[Message]:
        if isinstance(event, Message):
            self.counted[event.kind] += 1
            if event.kind in SCALING_KINDS:
                is_ack = event.kind in (DUPLICATION_ACK, DELETION_ACK)
                whose = event.receiver if is_ack else event.sender
                self.counted_by_operator[whose.operator] += 1
                self.announced_by_operator[whose.operator] += event.kind == DUPLICATION
        state = self.states.get(agent)
        if state is None:
            return ()  # it has terminated
        state, messages, wanted = step(state, event, self.variant, self.rules)
        if wanted:
            children = self._new_nodes(state, wanted)
            state, messages, _ = step(state, Duplicate(children), self.variant, self.rules)
        if state.status == ENDED:
            del self.states[agent]
            self.free_nodes = None if self.free_nodes is None else self.free_nodes + 1
        else:
            self.states[agent] = state
        return messages

    def _new_nodes(self, parent: State, wanted: int) -> tuple[Address, ...]:
        """createNode(): as many as there are. Numbers of operations make names unique."""
        if self.free_nodes is not None:
            wanted = min(wanted, self.free_nodes)
            self.free_nodes -= wanted
        names = tuple(parent.address.child(1000 * parent.operations_begun + i + 1) for i in range(wanted))
        self.states.update({name: child_of(parent, name) for name in names})
        return names

    def instances(self, operators: int) -> NDArray[np.int64]:
        """Active instances of each operator."""
        counts = np.zeros(operators, dtype=np.int64)
        for address, state in self.states.items():
            if address is not INPUT and state.is_active:
                counts[address.operator] += 1
        return counts

    def shares(self, loads: Sequence[float]) -> Mapping[int, float]:
        """What arrives at each instance of an operator: predecessors split the load over all successors they
        have."""
        first: dict[int, State] = {}
        for address, state in self.states.items():
            if state.is_active and address.operator not in first:
                first[address.operator] = state
        return {o: loads[o] / len(first[o - 1].succs) for o in range(len(loads))}


@dataclass(frozen=True)
class StepResult:
    loads: Loads
    instances: NDArray[np.int64]  # steps × operators, active ones, after each step
    messages: NDArray[np.int64]  # per step, as the paper counts
    questions: NDArray[np.int64]  # per step: asking for n_t, and the answers
    messages_of: NDArray[np.int64]  # steps × operators: those of an operator's own duplications and deletions
    announcements: NDArray[np.int64]  # steps × operators: messages that announce new instances
    left: dict[Address, State]  # who is there at the end, once all messages are through


def simulate(
    instances: tuple[int, ...],
    loads: Loads,
    seed: int,
    rules: Rules | None = None,
    variant: Variant = CORRECTED,
    period_steps: int = 5,
    free_nodes: int | None = None,
    looks: Looks = "apart",
) -> StepResult:
    """The paper's experiment: every instance looks at its own load once per period."""
    run = StepRun(pipeline(instances), variant, rules or Rules(), free_nodes)
    draw = np.random.default_rng(seed)
    phase: dict[Address, int] = {}
    operators = range(len(instances))
    rows, counted, messages_of, announcements = [], [], [], []
    for number, load in enumerate(loads):
        _give_phases(phase, run.states, number, period_steps, looks, draw)
        shares = run.shares(load)
        ticks = [
            (address, Tick(shares[address.operator], float(draw.random())))
            for address, state in run.states.items()
            if phase.get(address) == number % period_steps and state.status == ACTIVE and address is not INPUT
        ]
        run.advance(ticks)
        rows.append(run.instances(len(instances)))
        counted.append((run.messages, run.counted[COUNT] + run.counted[COUNT_REPLY]))
        messages_of.append([run.counted_by_operator[operator] for operator in operators])
        announcements.append([run.announced_by_operator[operator] for operator in operators])
    while not run.is_quiet:
        run.advance()
    messages, questions = np.array(counted).T
    return StepResult(
        loads,
        np.array(rows),
        messages,
        questions,
        np.array(messages_of),
        np.array(announcements),
        run.states,
    )


def _give_phases(
    phase: dict[Address, int],
    states: Mapping[Address, State],
    number: int,
    period_steps: int,
    looks: Looks,
    draw: np.random.Generator,
) -> None:
    """To those that have none yet. Without a draw the first look comes a whole period after the start."""
    for address, state in states.items():
        if address in phase:
            continue
        if looks == "apart":
            phase[address] = int(draw.integers(period_steps))
        elif looks == "together":
            phase[address] = period_steps - 1
        elif state.status == ACTIVE:
            phase[address] = (number - 1) % period_steps


def brownian(operators: int, steps: int, start: float, per_step: float, seed: int) -> Loads:
    """A load per operator that wanders on its own, reflected at zero (§5.1; its steps are not published)."""
    draw = np.random.default_rng(seed)
    moves = draw.normal(0.0, per_step, size=(steps, operators))
    moves[0] = 0.0
    return np.abs(start + np.cumsum(moves, axis=0))
