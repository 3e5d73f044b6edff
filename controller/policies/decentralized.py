"""Decentralized scaling (Belkhiria and Tedeschi, 2019): every instance decides for itself, by its own load
alone, whether to duplicate or to leave, and tells its neighbours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any, ClassVar, Literal

from numpy.random import Generator

from controller.model import (
    Capabilities,
    Capability,
    Instance,
    InstanceMetrics,
    Instances,
    Note,
    Observation,
    Plan,
    Topology,
)
from controller.placement import free_nodes, nearest
from controller.policies import parameter
from controller.policies import register as register_policy
from controller.protocol.agent import IDLE, Variant, quiet
from controller.protocol.crew import Crew
from controller.protocol.decision import Rules
from controller.protocol.messages import Address, Event, Tick
from fogscale.errors import FogscaleError

Reading = Literal[
    "all_at_once", "by_view", "one_counter", "view_alone",
    "floor_difference", "whole_probability", "more_than_one", "signed_deletion",
]  # fmt: skip
_VARIANTS = {"all_at_once": "leaving", "by_view": "roles", "one_counter": "acks", "view_alone": "start"}


def variant_of(printed: tuple[Reading, ...]) -> Variant:
    return Variant(**{_VARIANTS[name]: name for name in printed if name in _VARIANTS})  # type: ignore[arg-type]


def rules_of(printed: tuple[Reading, ...], **numbers: float) -> Rules:
    given: dict[str, Any] = {**numbers, **{name: True for name in printed if name not in _VARIANTS}}
    return Rules(**given)


@register_policy("decentralized")
@dataclass
class Decentralized:
    target_ratio: float = parameter(0.7, "r: the share of its capacity that an instance should be loaded by")
    up_ratio: float = parameter(0.8, "from this share on an instance duplicates")
    down_ratio: float = parameter(0.6, "from this share down an instance leaves, unless it is a keeper")
    period_steps: int = parameter(5, "steps between two looks of an instance at its load", at_least=1)
    keepers: int = parameter(1, "instances of an operator that never leave; its n_min if larger", at_least=1)
    printed: tuple[Reading, ...] = parameter(
        (), "what to read as it is printed in the paper, and fails (docs/decentralized.md)"
    )
    capacity_per_s: Mapping[str, tuple[float, ...]] = parameter(
        {}, "C: by operator, what its first replica can do; else each instance goes by its own busy time"
    )
    period_s: float = parameter(12.0, "seconds of a step, in which messages travel one way", at_least=0.1)
    variants: ClassVar[dict[str, dict[str, Any]]] = {
        "quick": {"period_s": 5.0, "period_steps": 2},
        "two_keepers": {"keepers": 2},
        "all_at_once": {"printed": ["all_at_once"]},
    }
    notes: tuple[Note, ...] = field(default=(), init=False, repr=False, compare=False)
    estimates: dict[str, float] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def needs(self) -> Capabilities:
        needs = {
            Capability.NAMED_INSTANCES,
            Capability.INSTANCE_METRICS,
            Capability.ARRIVAL_RATE,
            Capability.OPERATOR_PARALLELISM,
            Capability.NODE_CHOICE,
        }
        return frozenset(needs if self.capacity_per_s else needs | {Capability.BUSY})

    def start(self, topology: Topology, rng: Generator) -> None:
        check_pipeline(topology)
        numbers = {
            "target_ratio": self.target_ratio,
            "up_ratio": self.up_ratio,
            "down_ratio": self.down_ratio,
        }
        self._rules = rules_of(self.printed, capacity_per_step=1.0, **numbers)  # loads are shares of C
        self._rng = rng
        self._crew: Crew | None = None
        self._operators = [operator.name for operator in topology.operators]
        self._place = {name: place for place, name in enumerate(self._operators)}
        self._nodes: dict[Address, str] = {}  # where each agent is, and each node that one waits for
        self._met: set[Address] = set()  # all that the testbed has ever had
        self._ours: set[Address] = set()  # all that were agents, or nodes that one asked for
        self._phase: dict[Address, int] = {}
        self._running_for: Counter[Address] = Counter()  # steps in which it was measured, without a break
        self._children = count(1)
        self._turn = 0
        self._measured_s: float | None = None
        self._last: tuple[int, Plan | None] = (0, None)
        self.notes, self.estimates = (), {}

    def decide(self, observation: Observation) -> Plan | None:
        shown = self._shown(observation)
        if self._crew is None:
            self._crew = self._gathered(observation)
        crew = self._crew
        self._observation = observation
        crew.notes = []
        self._follow(crew, observation)
        crew.turn(self._ticks(crew, observation, shown), self._up(shown))
        self._turn += 1
        self.notes = tuple(crew.notes)
        self.estimates = {
            "messages": float(crew.messages),
            "questions": float(crew.questions),
            "instances": float(sum(state.is_active for state in crew.members().values())),
        }
        return self._plan(crew, observation)

    # What is there

    def _addresses(self, instances: Instances) -> dict[Address, Instance]:
        return {
            Address(self._place[name], each.id): each for name, some in instances.items() for each in some
        }

    def _gathered(self, observation: Observation) -> Crew:
        """The agents of what is there at the beginning."""
        there = observation.requested_instances
        names = [[each.id for each in there.get(name, ()) if each.active] for name in self._operators]
        states = quiet(names, [self._keepers(observation, name) for name in self._operators])
        self._ours = set(states)
        return Crew(states, variant_of(self.printed), self._rules, create=self._create)

    def _keepers(self, observation: Observation, name: str) -> int:
        return max(self.keepers, observation.topology.operator(name).n_min)

    def _follow(self, crew: Crew, observation: Observation) -> None:
        """What became of instances without the agents' doing: a node that failed, a plan that did, others
        that the testbed brought back."""
        there = self._addresses(observation.requested_instances)
        for agent in [a for a in crew.members() if a in self._met and a not in there]:
            crew.vanished(agent)
        for agent, instance in there.items():
            if instance.active and agent not in self._ours:
                self._ours.add(agent)
                crew.joined(agent, agent.operator == len(self._operators) - 1)
        self._met |= set(there)
        self._nodes |= {agent: instance.node for agent, instance in there.items()}
        crew.lost_nodes(self._lost_nodes(crew, observation, set(there)))
        for place, name in enumerate(self._operators):
            crew.kept_by(place, self._keepers(observation, name))

    def _lost_nodes(self, crew: Crew, observation: Observation, there: set[Address]) -> frozenset[Address]:
        """Nodes that somebody waits for in vain: given to others, or gone."""
        asked = [node for nodes in crew.waiting_for.values() for node in nodes]
        slots = {node.name: node.slots for node in observation.topology.nodes}
        taken = Counter(self._nodes[agent] for agent in there)
        lost = []
        for each in asked:
            place = self._nodes[each]
            if each in self._met and each not in there:
                lost.append(each)
            elif each not in there:
                taken[place] += 1
                known = place in slots or observation.topology.elastic
                if not known or taken[place] > slots.get(place, 1):
                    lost.append(each)
                    taken[place] -= 1
        return frozenset(lost)

    # Nodes

    def _create(self, parent: Address, wanted: int) -> tuple[Address, ...]:
        """As many as there are, each the nearest to who asks. None is no error: the next look asks again."""
        observation = self._observation
        operator = observation.topology.operators[parent.operator]
        there = self._wanted_instances(observation)
        room = wanted if operator.n_max is None else operator.n_max - len(there[operator.name])
        placed = {name: tuple(each.node for each in some) for name, some in there.items()}
        nodes = []
        for _ in range(min(wanted, max(0, room))):
            free = free_nodes(observation.topology, placed)
            if not free:
                break
            *_, node = nearest.add(observation.topology, (self._nodes[parent],), free)
            placed[operator.name] = (*placed[operator.name], node)
            nodes.append(node)
        names = tuple(Address(parent.operator, f"{operator.name}-{next(self._children)}") for _ in nodes)
        self._nodes |= dict(zip(names, nodes, strict=True))
        self._ours.update(names)
        return names

    # What agents see

    def _shown(self, observation: Observation) -> dict[Address, InstanceMetrics]:
        return {
            Address(self._place[name], each.id): each
            for name, seen in observation.operators.items()
            for each in seen.instances
        }

    def _up(self, shown: dict[Address, InstanceMetrics]) -> frozenset[Address]:
        return frozenset(a for a, each in shown.items() if each.state in ("running", "inactive"))

    def _ticks(
        self, crew: Crew, observation: Observation, shown: dict[Address, InstanceMetrics]
    ) -> list[tuple[Address, Event]]:
        """Who looks at its load now: those whose turn it is, that were measured for a whole period."""
        running = {a for a, each in shown.items() if each.state == "running" and a in crew.states}
        self._running_for = Counter({agent: self._running_for[agent] + 1 for agent in running})
        is_new = observation.measured_s is not None and observation.measured_s != self._measured_s
        self._measured_s = observation.measured_s
        ticks: list[tuple[Address, Event]] = []
        for agent in crew.members():
            if agent not in self._phase:
                self._phase[agent] = int(self._rng.integers(self.period_steps))
            if self._phase[agent] != self._turn % self.period_steps:
                continue
            draw = float(self._rng.random())
            if not is_new or not crew.is_free(agent) or self._running_for[agent] < self.period_steps:
                continue
            load = self._load(agent, shown[agent])
            if load is not None and observation.topology.operators[agent.operator].scalable:
                ticks.append((agent, Tick(load, draw)))
        return ticks

    def _load(self, agent: Address, own: InstanceMetrics) -> float | None:
        """What arrives at this instance, as a share of its capacity; nothing else is looked at."""
        if own.arrival_rate_per_s is None:
            return None
        ladder = self.capacity_per_s.get(self._operators[agent.operator])
        if ladder:
            return own.arrival_rate_per_s / ladder[0]
        if own.rate_per_s is None or own.busy_ratio is None:
            return None
        if own.arrival_rate_per_s == 0:
            return 0.0
        capacity_per_s = own.rate_per_s / own.busy_ratio if own.busy_ratio > 0 else 0.0
        return own.arrival_rate_per_s / capacity_per_s if capacity_per_s > 0 else None

    # What they want

    def _wanted_instances(self, observation: Observation) -> dict[str, tuple[Instance, ...]]:
        """All agents, the nodes that some wait for, and what is there and none of theirs."""
        assert self._crew is not None
        states = self._crew.members()
        asked = [node for nodes in self._crew.waiting_for.values() for node in nodes]
        there = self._addresses(observation.requested_instances)
        ours = {a: Instance(a.name, self._nodes[a], state.status != IDLE) for a, state in states.items()}
        ours |= {a: Instance(a.name, self._nodes[a], False) for a in asked}
        strangers = {a: each for a, each in there.items() if not each.active and a not in self._ours}
        wanted: dict[str, list[Instance]] = {name: [] for name in self._operators}
        in_order = [a for a in there if a in ours or a in strangers] + [a for a in ours if a not in there]
        for agent in in_order:
            wanted[self._operators[agent.operator]].append(ours.get(agent) or strangers[agent])
        return {name: tuple(some) for name, some in wanted.items()}

    def _plan(self, crew: Crew, observation: Observation) -> Plan | None:
        wanted = self._wanted_instances(observation)
        there = observation.requested_instances
        changed = [name for name in self._operators if set(wanted[name]) != set(there.get(name, ()))]
        busy = observation.changing if observation.changing is not None else self._operators
        if not changed or (observation.reconfiguring and set(changed) & set(busy)):
            return None
        for operator in observation.topology.operators:
            active = sum(each.active for each in wanted[operator.name])
            if active != operator.within_bounds(active):
                return None
        reasons = [self._reason(name, there.get(name, ()), wanted[name]) for name in changed]
        plan = Plan.of_instances(wanted, "; ".join(reasons))
        if (
            self._last is not None
            and self._last[1] == plan
            and self._turn - self._last[0] < self.period_steps
        ):
            return None  # it is on its way, or was refused: asked again later
        self._last = (self._turn, plan)
        return plan

    @staticmethod
    def _reason(name: str, there: tuple[Instance, ...], wanted: tuple[Instance, ...]) -> str:
        before, after = {each.id: each for each in there}, {each.id: each for each in wanted}
        created = sum(each.id not in before for each in wanted)
        started = sum(each.active and not before.get(each.id, each).active for each in wanted)
        left = sum(each.id not in after for each in there)
        parts = [f"{n} {what}" for n, what in ((created, "created"), (started, "start"), (left, "left")) if n]
        return f"{name}: {', '.join(parts) or 'moved'}"


def check_pipeline(topology: Topology) -> None:
    """The paper's agents know those before and those after them, one operator each."""
    before: tuple[str, ...] = ()
    for operator in topology.operators:
        if operator.upstream != before:
            raise FogscaleError(
                f"policy 'decentralized' scales pipelines, and '{operator.name}' does not come after "
                f"{before[0] if before else 'the input'} alone: choose another policy for a job that branches"
            )
        before = (operator.name,)
