"""Asynchronous delivery: every message takes half a round trip of the topology and a random delay on top;
channels
stay FIFO. Everybody ticks at a time of their own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count

import numpy as np

from controller.network import Rtt
from controller.protocol.agent import CORRECTED, ENDED, IDLE, State, Variant, child_of, pipeline, step
from controller.protocol.decision import Rules
from controller.protocol.messages import INPUT, INPUT_OPERATOR, Address, Duplicate, Event, Message, Tick
from fogscale.errors import FogscaleError

NodeOf = Callable[[Address], str]
LoadAt = Callable[[int, float], float]  # operator, seconds -> records per time unit of the whole operator


@dataclass
class DelayedRun:
    """Agents under a clock of their own; time is in seconds and passes only in `run_until`."""

    instances: tuple[int, ...]
    rtt_ms: Rtt
    node_of: NodeOf
    load_at: LoadAt
    seed: int = 0
    jitter_ms: float = 5.0  # mean of the exponential delay on top
    loss_ratio: float = 0.0  # of messages on the way; each is sent again (link.py) until it arrives
    resend_s: float = 1.0  # how long the sender waits before that
    period_s: float = 5.0
    rules: Rules = field(default_factory=Rules)
    variant: Variant = CORRECTED

    def __post_init__(self) -> None:
        if not 0 <= self.loss_ratio < 1:
            raise FogscaleError(f"loss_ratio is {self.loss_ratio}: give a ratio of at least 0 and below 1")
        self.time_s = 0.0
        self.states = pipeline(self.instances)
        self.sent: Counter[str] = Counter()
        self.ticking = True
        self._draw = np.random.default_rng(self.seed)
        self._agenda: list[tuple[float, int, Address, Event | None]] = []
        self._order = count()
        self._last_arrival_s: dict[tuple[Address, Address], float] = {}
        for address in self.states:
            self._plan_tick(address, self._draw.uniform(0, self.period_s))

    @property
    def is_quiet(self) -> bool:
        busy = any(state.operations or state.status == IDLE for state in self.states.values())
        return not busy and all(event is None for *_, event in self._agenda)

    def run_until(self, time_s: float) -> None:
        while self._agenda and self._agenda[0][0] <= time_s:
            self.time_s, _, agent, event = heappop(self._agenda)
            if agent in self.states:
                self._do(agent, self._tick(agent) if event is None else event)
        self.time_s = max(self.time_s, time_s)

    def settle(self, at_most_s: float = 3600.0) -> None:
        """No more decisions; what is on the way arrives."""
        self.ticking = False
        self.run_until(self.time_s + at_most_s)

    def _plan_tick(self, agent: Address, time_s: float) -> None:
        if agent != INPUT:
            heappush(self._agenda, (time_s, next(self._order), agent, None))

    def _tick(self, agent: Address) -> Event | None:
        """The own share of the load: a predecessor splits it over the successors it has."""
        if not self.ticking:
            return None
        self._plan_tick(agent, self.time_s + self.period_s)
        state = self.states[agent]
        if not state.is_active or not state.preds:
            return None
        sharing = len(self.states[min(state.preds & self.states.keys())].succs)
        return Tick(self.load_at(agent.operator, self.time_s) / max(1, sharing), float(self._draw.random()))

    def _do(self, agent: Address, event: Event | None) -> None:
        if event is None:
            return
        outcome = step(self.states[agent], event, self.variant, self.rules)
        if outcome.nodes_wanted:
            state = outcome.state
            first = 1000 * state.operations_begun
            names = tuple(agent.child(first + i + 1) for i in range(outcome.nodes_wanted))
            self.states.update({name: child_of(state, name) for name in names})
            for name in names:
                self._plan_tick(name, self.time_s + self._draw.uniform(0, self.period_s))
            outcome = step(state, Duplicate(names), self.variant, self.rules)
        self.states[agent] = outcome.state
        if outcome.state.status == ENDED:
            del self.states[agent]
        for message in outcome.messages:
            self._send(message)

    def _send(self, message: Message) -> None:
        pair = (message.sender, message.receiver)
        way_s = self.rtt_ms(self.node_of(message.sender), self.node_of(message.receiver)) / 2e3
        arrival_s = self.time_s + way_s + float(self._draw.exponential(self.jitter_ms / 1e3))
        if self.loss_ratio:
            arrival_s += self.resend_s * float(self._draw.geometric(1 - self.loss_ratio) - 1)
        arrival_s = max(
            arrival_s, self._last_arrival_s.get(pair, 0.0)
        )  # FIFO; the agenda keeps ties in order
        self._last_arrival_s[pair] = arrival_s
        self.sent[message.kind] += 1
        heappush(self._agenda, (arrival_s, next(self._order), message.receiver, message))


def views_agree(states: dict[Address, State], operators: int) -> bool:
    """Whether everybody has exactly the active instances of the neighbouring operators in view."""
    levels = {
        operator: frozenset(a for a, s in states.items() if a.operator == operator and s.is_active)
        for operator in range(INPUT_OPERATOR - 1, operators + 1)
    }
    return all(
        state.succs == levels[address.operator + 1] and state.preds == levels[address.operator - 1]
        for address, state in states.items()
    )
