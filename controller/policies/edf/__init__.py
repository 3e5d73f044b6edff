"""EDF (Cardellini et al., FGCS 2018): a manager for each operator asks for replicas, by thresholds or by what
it has learned; one for the application grants what does not conflict, or what it has tokens for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import Any, ClassVar, Literal

from numpy.random import Generator

from controller.model import Capabilities, Capability, Note, Observation, Operator, Plan, Topology
from controller.models.coordinates import Vivaldi
from controller.models.scaling_process import States, Weights
from controller.policies import learned_as, parameter, register
from controller.policies.edf.application_manager import TokenBucket, answers
from controller.policies.edf.learning import Learner, Rules
from controller.policies.edf.model_based import ModelBased
from controller.policies.edf.node_manager import Distance, busiest_of, changed, migrations, room_for
from controller.policies.edf.operator_manager import OperatorManager, Proposal, view_of
from controller.policies.edf.q_learning import QLearning
from controller.policies.edf.requests import Answer, Request
from controller.policies.edf.threshold import Threshold
from fogscale.errors import FogscaleError, unknown

VERSION = 1  # of what is saved
MOST_STATES = 100_000  # of one operator


@dataclass
class _Learned:
    local: str
    operators: dict[str, dict[str, Any]]


@register("edf")
@dataclass
class Edf:
    local: Literal["threshold", "q_learning", "model_based"] = parameter(
        "model_based", "how operator managers decide (§5)"
    )
    token_bucket: bool = parameter(False, "grant by tokens (§7), not all that is in no conflict")
    high_ratio: float = parameter(0.7, "U_s-out: with thresholds, one replica more above this CPU")
    slack_ratio: float = parameter(0.75, "c: one fewer if the others then stay below this part of it")
    performance_weight: float = parameter(0.4, "w_perf: what a step with slow records costs", at_least=0)
    resources_weight: float = parameter(0.4, "w_res: what K_max replicas cost in a step", at_least=0)
    reconfiguration_weight: float = parameter(0.2, "w_rcf: what a change costs", at_least=0)
    discount: float = parameter(0.99, "γ: what costs of the next step count of those of this one", at_least=0)
    learning_rate: float = parameter(0.1, "α: how much of an estimate each observation replaces", at_least=0)
    exploration: float = parameter(
        0.05, "ε: with Q-learning, the share of actions that are random", at_least=0
    )
    quantum_per_s: float = parameter(50.0, "λ̄: rates are told apart in steps of so many records/s")
    highest_rate_per_s: float = parameter(500.0, "L·λ̄: all rates above it are taken for it")
    r_max_ms: float = parameter(250.0, "R_max: the objective for the response time of the job")
    response_bounds_ms: Mapping[str, float] = parameter(
        {}, "R_max,op by operator; those not named get even shares of R_max"
    )
    k_max: int = parameter(10, "K_max of operators that have no n_max", at_least=1)
    bucket_capacity: int = parameter(1, "C_τ: the most tokens that are kept", at_least=1)
    bucket_period_s: float = parameter(60.0, "T_τ: seconds from one token to the next", at_least=0)
    bucket_low_ms: float = parameter(125.0, "τ_L: below this response time there is a token for a scale-in")
    bucket_high_ms: float = parameter(225.0, "τ_H: above it one for a scale-out or a migration")
    migration: bool = parameter(False, "whether node managers ask to move replicas away (§6)")
    overloaded_ratio: float = parameter(0.8, "U_mig: above this CPU a node is overloaded")
    distances: Literal["matrix", "coordinates"] = parameter(
        "matrix", "how far nodes are: as measured between all, or by Vivaldi coordinates"
    )
    period_s: float = parameter(30.0, "T_OM and T_AM: seconds between decisions", at_least=0.1)
    learns: ClassVar[bool] = True
    variants: ClassVar[dict[str, dict[str, Any]]] = {
        "threshold": {"local": "threshold"},
        "threshold-bucket": {"local": "threshold", "high_ratio": 0.4, "token_bucket": True},
        "q_learning": {"local": "q_learning"},
        "q_learning-bucket": {"local": "q_learning", "token_bucket": True},
        "performance": {"resources_weight": 0.2, "reconfiguration_weight": 0.4},
        "bucket": {"token_bucket": True},
        "migration": {"local": "threshold", "migration": True, "overloaded_ratio": 0.5},
        "coordinates": {"distances": "coordinates"},
    }
    notes: tuple[Note, ...] = field(default=(), init=False, repr=False, compare=False)
    estimates: dict[str, float] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        weights = (self.performance_weight, self.resources_weight, self.reconfiguration_weight)
        if abs(sum(weights) - 1) > 1e-9:
            raise FogscaleError(
                f"policy 'edf': the three weights add up to {sum(weights):g}; they are parts of 1"
            )
        for name in ("high_ratio", "slack_ratio", "overloaded_ratio"):
            if not 0 < getattr(self, name) < 1:
                raise FogscaleError(
                    f"policy 'edf': {name} is {getattr(self, name):g}; give a ratio between 0 and 1"
                )
        if not 0 <= self.discount < 1:
            raise FogscaleError(
                f"policy 'edf': discount is {self.discount:g}; give at least 0 and less than 1"
            )
        for name in ("learning_rate", "exploration"):
            if getattr(self, name) > 1:
                raise FogscaleError(f"policy 'edf': {name} is {getattr(self, name):g}; give at most 1")
        if not 0 < self.quantum_per_s <= self.highest_rate_per_s:
            raise FogscaleError(
                f"policy 'edf': quantum_per_s is {self.quantum_per_s:g}; give more than 0 and at most "
                f"highest_rate_per_s ({self.highest_rate_per_s:g})"
            )
        if self.bucket_low_ms > self.bucket_high_ms:
            raise FogscaleError("policy 'edf': bucket_low_ms is above bucket_high_ms; swap them")

    @property
    def needs(self) -> Capabilities:
        needs = {
            Capability.CPU,
            Capability.OPERATOR_PARALLELISM,
            Capability.NODE_CHOICE,
            Capability.RTT,
        }
        if self.local == "threshold":
            needs.add(Capability.INSTANCE_METRICS)
        else:
            needs |= {Capability.ARRIVAL_RATE, Capability.RESPONSE_TIME}
        if self.token_bucket:
            needs.add(Capability.RESPONSE_TIME)
        return frozenset(needs)

    def start(self, topology: Topology, rng: Generator) -> None:
        names = [operator.name for operator in topology.operators]
        for name, bound_ms in self.response_bounds_ms.items():
            if name not in names:
                raise FogscaleError(f"policy 'edf': response_bounds_ms: {unknown('operator', name, names)}")
            if not bound_ms > 0:
                raise FogscaleError(
                    f"policy 'edf': response_bounds_ms of '{name}' is {bound_ms:g}; give more than 0"
                )
        # Streams of their own, so that more chance in one place changes nothing in another.
        self._rng, coordinates_rng, *local_rngs = rng.spawn(2 + len(names))
        self._share_ms = self.r_max_ms / max(1, sum(operator.scalable for operator in topology.operators))
        self._managers = {
            operator.name: self._manager(operator, local_rng)
            for operator, local_rng in zip(topology.operators, local_rngs, strict=True)
            if operator.scalable
        }
        self._bucket = (
            TokenBucket(self.bucket_capacity, self.bucket_period_s, self.bucket_low_ms, self.bucket_high_ms)
            if self.token_bucket
            else None
        )
        self._coordinates = Vivaldi(3, coordinates_rng) if self.distances == "coordinates" else None
        self._asked = self._granted = 0
        self.notes, self.estimates = (), {}

    def _manager(self, operator: Operator, rng: Generator) -> OperatorManager:
        most = operator.n_max or max(self.k_max, operator.n_min)
        if self.local == "threshold":
            return Threshold(self.high_ratio, self.slack_ratio, operator.n_min, most)
        levels = ceil(self.highest_rate_per_s / self.quantum_per_s - 1e-9)
        states = States(operator.n_min, most, levels, self.quantum_per_s)
        if states.shape[0] * states.shape[1] > MOST_STATES:
            raise FogscaleError(
                f"policy 'edf': operator '{operator.name}' has {states.shape[0] * states.shape[1]:,} states, "
                f"more than {MOST_STATES:,}: raise quantum_per_s or lower n_max"
            )
        weights = Weights(self.performance_weight, self.resources_weight, self.reconfiguration_weight)
        rules = Rules(weights, self.discount, self.learning_rate, self.exploration)
        bound_ms = self.response_bounds_ms.get(operator.name, self._share_ms)
        if self.local == "q_learning":
            return QLearning(operator.name, states, rules, bound_ms, rng)
        return ModelBased(operator.name, states, rules, bound_ms)

    def decide(self, observation: Observation) -> Plan | None:
        distance_ms = self._distance(observation)
        requests = self._requests(observation, distance_ms)
        if self.migration:
            requests += migrations(observation, self.overloaded_ratio, distance_ms, self._rng)
        if self._bucket is not None:
            self._bucket.refill(observation.time_s, observation.response_time_ms)
        answered = answers(requests, self._bucket)
        granted = [answer.request for answer in answered if answer.granted]
        self._tell_managers(granted)
        self._remember(requests, answered)
        return _plan(observation, granted)

    def _distance(self, observation: Observation) -> Distance:
        if self._coordinates is None:
            return observation.topology.rtt_ms
        nodes = [node.name for node in observation.topology.nodes]
        self._coordinates.gossip(nodes, observation.topology.rtt_ms)
        return self._coordinates.distance_ms

    def _requests(self, observation: Observation, distance_ms: Distance) -> list[Request]:
        """What operator managers ask for, in the order of the operators."""
        requests = []
        for operator in observation.topology.operators:
            manager = self._managers.get(operator.name)
            view = view_of(observation, operator) if manager is not None else None
            proposal = manager.propose(view) if manager is not None and view is not None else None
            if proposal is not None:
                request = self._request(observation, operator.name, proposal, distance_ms)
                requests += [request] if request is not None else []
        return requests

    def _request(
        self, observation: Observation, operator: str, proposal: Proposal, distance_ms: Distance
    ) -> Request | None:
        asked_by = f"operator {operator}"
        if proposal.change < 0:
            node = busiest_of(observation.requested[operator], observation.nodes)
            return Request("scale_in", operator, node, proposal.score, asked_by, proposal.why)
        room = room_for(observation, operator, distance_ms, self._rng)
        if room is None:
            return None  # every slot is taken
        return Request("scale_out", operator, room, proposal.score, asked_by, proposal.why)

    def _tell_managers(self, granted: list[Request]) -> None:
        change = {"scale_out": 1, "scale_in": -1, "migrate": 0}
        changes = {request.operator: change[request.action] for request in granted}
        for name, manager in self._managers.items():
            manager.carried_out(changes.get(name, 0))

    def _remember(self, requests: list[Request], answered: list[Answer]) -> None:
        self._asked += len(requests)
        self._granted += sum(answer.granted for answer in answered)
        self.notes = (
            *(request.asked() for request in requests),
            *(answer.told() for answer in answered),
        )
        self.estimates = {"asked": float(self._asked), "granted": float(self._granted)}
        clipped = sum(manager.clipped for manager in self._managers.values() if isinstance(manager, Learner))
        if clipped:
            self.estimates["rates_beyond_range"] = float(clipped)

    # What it has learned, for another run to start from

    def save(self) -> dict[str, Any]:
        tables = {name: manager.learned() for name, manager in self._managers.items()}
        known = {name: dict(table) for name, table in tables.items() if table is not None}
        return {"version": VERSION, "local": self.local, "operators": known}

    def load(self, learned: Mapping[str, Any]) -> None:
        found = learned_as(_Learned, learned, "edf", VERSION)
        if found.local != self.local:
            raise FogscaleError(
                f"what policy 'edf' should start from was learned by {found.local}, not by {self.local}: "
                f"let it learn again"
            )
        for name, manager in self._managers.items():
            if name not in found.operators and self.local != "threshold":
                raise FogscaleError(
                    f"what policy 'edf' should start from says nothing of operator '{name}': "
                    f"let it learn again"
                )
            manager.learn_from(found.operators.get(name, {}))


def _plan(observation: Observation, granted: list[Request]) -> Plan | None:
    if not granted:
        return None
    placement = dict(observation.requested)
    for request in granted:
        placement = changed(placement, request)
    reasons = [f"{request.operator} {_change(request)}: {request.why}" for request in granted]
    return Plan(placement, reason="; ".join(reasons))


def _change(request: Request) -> str:
    if request.action == "migrate":
        return f"moves from {request.moved_from} to {request.node}"
    return "+1" if request.action == "scale_out" else "−1"
