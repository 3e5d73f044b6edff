"""The agents of a job that somebody else runs: who is there, what they exchanged, which nodes they wait for.

A node is announced (Algorithm 4, line 10) once it is up. What happens to instances without the agents' doing
reaches them as the testbed's word: `Gone`, `Joined`, `Keep`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from controller.model import Note
from controller.protocol.agent import ACTIVE, IDLE, LEAVING, State, child_of
from controller.protocol.messages import (
    COUNT,
    COUNT_REPLY,
    INPUT,
    Address,
    Addresses,
    Duplicate,
    Event,
    Gone,
    Joined,
    Keep,
    Message,
)
from controller.protocol.steps import StepRun

Create = Callable[[Address, int], tuple[Address, ...]]
"""createNode(): (who asks, how many) -> the names of those that were to be had, which are on their way."""


@dataclass
class Crew(StepRun):
    create: Create = lambda _parent, _wanted: ()
    waiting_for: dict[Address, tuple[Address, ...]] = field(default_factory=dict)  # parent -> nodes asked for
    notes: list[Note] = field(default_factory=list)  # until somebody takes them

    def turn(self, ticks: Iterable[tuple[Address, Event]], up: Addresses) -> None:
        """One step: nodes that are up are announced, the given agents look at their load."""
        announced = [(parent, Duplicate(self._born(parent))) for parent in self._served(up)]
        self.advance([*announced, *ticks])

    def is_free(self, agent: Address) -> bool:
        """Whether it may begin something: it is active, and waits for no node."""
        return self.states[agent].status == ACTIVE and agent not in self.waiting_for

    @property
    def questions(self) -> int:
        return self.counted[COUNT] + self.counted[COUNT_REPLY]

    # Nodes

    def _new_nodes(self, parent: State, wanted: int) -> tuple[Address, ...]:
        """Nothing to announce yet: the nodes are asked for."""
        nodes = self.create(parent.address, wanted)
        self._note("duplicates", parent.address, wanted=wanted, nodes=len(nodes))
        if nodes:
            self.waiting_for[parent.address] = nodes
        return ()

    def _served(self, up: Addresses) -> list[Address]:
        return [parent for parent, nodes in self.waiting_for.items() if up.issuperset(nodes)]

    def _born(self, parent: Address) -> tuple[Address, ...]:
        children = self.waiting_for.pop(parent)
        state = self.states[parent]
        self.states.update({child: child_of(state, child) for child in children})
        return children

    def lost_nodes(self, lost: Addresses) -> None:
        """Nodes that were asked for and will never be up: the others do without them."""
        for parent, nodes in list(self.waiting_for.items()):
            left = tuple(node for node in nodes if node not in lost)
            if left:
                self.waiting_for[parent] = left
            else:
                del self.waiting_for[parent]

    # What agents do, noted

    def _do(self, agent: Address, event: Event) -> Sequence[Message]:
        if isinstance(event, Message):
            data = {"n_t": float(event.number)} if event.kind == COUNT_REPLY else {}
            self.notes.append(Note(event.kind, event.sender.name, event.receiver.name, data))
        before = self.states.get(agent)
        messages = super()._do(agent, event)
        after = self.states.get(agent)
        if before is not None and before.status == ACTIVE and (after is None or after.status == LEAVING):
            self._note("leaves", agent)
        return messages

    def _note(self, kind: str, agent: Address, **data: float) -> None:
        self.notes.append(Note(kind, agent.name, data=data))

    # The testbed's word

    def vanished(self, agent: Address) -> None:
        """Its process ended without a word: whoever could have met it is told."""
        self.states.pop(agent, None)
        self.waiting_for.pop(agent, None)
        self.due = [m for m in self.due if agent not in (m.sender, m.receiver)]
        for other in self._around(agent, (-1, 0, 1)):
            self.due += self._do(other, Gone(agent))

    def joined(self, agent: Address, is_last: bool) -> None:
        """The testbed started an instance itself. Who leaves and has told that side is not shown to it."""
        above = [a for a in self._around(agent, (-1,)) if self._still_sends(self.states[a])]
        below = [a for a in self._around(agent, (1,)) if self.states[a].status != LEAVING]
        for other in self._around(agent, (-1, 1)):
            self._do(other, Joined(agent))
        self.states[agent] = State(
            agent, ACTIVE, is_last=is_last, succs=frozenset(below), preds=frozenset(above)
        )

    def _still_sends(self, state: State) -> bool:
        return state.status != LEAVING or not any(o.downstream for o in state.operations)

    def kept_by(self, operator: int, keepers: int) -> None:
        """Names new keepers, the oldest first, where some were lost. Who leaves cannot be one."""
        own = [s for a, s in self.states.items() if a.operator == operator]
        missing = keepers - sum(s.is_keeper for s in own if s.status != IDLE)
        for state in [s for s in own if s.status == ACTIVE and not s.is_keeper][: max(0, missing)]:
            self._note("keeps", state.address)
            self._do(state.address, Keep())

    def _around(self, agent: Address, steps: tuple[int, ...]) -> list[Address]:
        return [a for a in self.states if a.operator - agent.operator in steps and a != agent]

    def members(self) -> dict[Address, State]:
        return {address: state for address, state in self.states.items() if address != INPUT}
