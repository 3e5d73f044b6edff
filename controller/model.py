"""The values that flow through a run: what a policy sees, what it answers, what truly happened.

All values are frozen. None means "not measured", never 0. Ratios are 0..1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

Placement = Mapping[str, tuple[str, ...]]
"""Operator -> the node of each of its replicas."""

InstanceState = Literal["requested", "booting", "running", "stopping"]
Outcome = Literal["done", "failed", "refused", "unchanged"]


class Capability(StrEnum):
    """What a policy may need of a testbed. A mismatch is an error before the run starts."""

    CPU = "cpu"
    MEMORY = "memory"
    BACK_PRESSURE = "back_pressure"
    BUSY = "busy"
    TRUE_RATE = "true_rate"
    INPUT_RATE = "input_rate"
    LAG = "lag"
    RESPONSE_TIME = "response_time"
    INSTANCE_METRICS = "instance_metrics"
    RTT = "rtt"
    OPERATOR_PARALLELISM = "operator_parallelism"
    NODE_CHOICE = "node_choice"
    OPERATOR_PINNING = "operator_pinning"
    STANDBY = "standby"
    INSTANT_RESCALE = "instant_rescale"


Capabilities = frozenset[Capability]


@dataclass(frozen=True, slots=True)
class Node:
    name: str
    cores: float
    memory_mb: float
    speed: float = 1.0
    slots: int = 1


@dataclass(frozen=True, slots=True)
class Operator:
    name: str
    upstream: tuple[str, ...] = ()
    n_min: int = 1
    n_max: int | None = None
    stateful: bool = False
    selectivity: float = 1.0
    shares: tuple[float, ...] = ()  # per upstream: the part of what it emits that comes here; (): all of it

    @property
    def scalable(self) -> bool:
        return self.n_max is None or self.n_max > self.n_min

    @property
    def inputs(self) -> tuple[tuple[str, float], ...]:
        """Each operator upstream, and the share of what it emits that comes here."""
        return tuple(zip(self.upstream, self.shares or (1.0,) * len(self.upstream), strict=True))


def records_per(operators: Iterable[Operator], entry: str) -> dict[str, float]:
    """How many records each operator (upstream first) is offered for one that enters the job at `entry`."""
    offered: dict[str, float] = {}
    emitted: dict[str, float] = {}
    for operator in operators:
        records = float(operator.name == entry)
        records += sum(emitted[name] * share for name, share in operator.inputs)
        offered[operator.name] = records
        emitted[operator.name] = records * operator.selectivity
    return offered


@dataclass(frozen=True, slots=True)
class Topology:
    """Nodes, the operator DAG (upstream first) and the round-trip times between nodes."""

    nodes: tuple[Node, ...]
    operators: tuple[Operator, ...]
    rtt_ms: Callable[[str, str], float]
    elastic: bool = False  # nodes can be created without bound

    def operator(self, name: str) -> Operator:
        return next(operator for operator in self.operators if operator.name == name)

    def node(self, name: str) -> Node:
        return next(node for node in self.nodes if node.name == name)

    def downstream_of(self, name: str) -> tuple[Operator, ...]:
        return tuple(operator for operator in self.operators if name in operator.upstream)


@dataclass(frozen=True, slots=True)
class InstanceMetrics:
    id: str
    node: str
    state: InstanceState
    cpu_ratio: float | None = None
    memory_ratio: float | None = None
    busy_ratio: float | None = None
    rate_per_s: float | None = None


@dataclass(frozen=True, slots=True)
class OperatorMetrics:
    input_rate_per_s: float | None = None  # offered to the operator, before any back pressure
    throughput_per_s: float | None = None
    true_rate_per_s: float | None = None  # throughput per useful second; None while idle
    back_pressure_ratio: float | None = None
    busy_ratio: float | None = None
    cpu_ratio: float | None = None
    memory_ratio: float | None = None
    queue_records: float | None = None
    response_time_ms: float | None = None
    instances: tuple[InstanceMetrics, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeMetrics:
    cpu_ratio: float | None = None
    memory_ratio: float | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """What a policy wants. The reason is data: it is journalled and shown."""

    placement: Placement
    standby: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Receipt:
    plan: Plan
    outcome: Outcome
    requested_s: float
    finished_s: float
    downtime_s: float = 0.0
    message: str = ""
    operators: tuple[str, ...] = ()  # those it stopped, where the others ran on; (): the whole job


@dataclass(frozen=True, slots=True)
class Observation:
    time_s: float
    topology: Topology
    placement: Placement  # what is running now; empty tuples while stopped
    requested: Placement  # what was last asked for and accepted
    operators: Mapping[str, OperatorMetrics]
    nodes: Mapping[str, NodeMetrics] = field(default_factory=dict)
    measured_s: float | None = None  # when the metrics were taken; earlier than time_s when stale
    lag_records: float | None = None
    response_time_ms: float | None = None
    receipts: tuple[Receipt, ...] = ()  # outcomes since the last observation
    standby: tuple[str, ...] = ()  # nodes on which an idle instance is up, ready to be used
    # Operators under reconfiguration, where a testbed reconfigures each on its own; None: the whole job.
    changing: tuple[str, ...] | None = None

    @property
    def reconfiguring(self) -> bool:
        return dict(self.placement) != dict(self.requested)


@dataclass(frozen=True, slots=True)
class Sample:
    """Truth at one instant. Counters are cumulative since the start, so any interval is a difference."""

    time_s: float
    offered_records: int
    processed_records: int  # offered records that have left the job
    lag_records: int  # offered_records - processed_records, wherever they wait
    replicas: Mapping[str, int]  # running, per operator: 0 while the job is stopped
    reconfigurations: int  # started since the beginning
    response_p50_ms: float | None = None
    response_p95_ms: float | None = None
    response_p99_ms: float | None = None
    response_mean_ms: float | None = None
    late_records: Mapping[str, int] = field(default_factory=dict)  # per kind of record with a deadline
    time_in_job_s: Mapping[str, float] = field(default_factory=dict)  # of all records of a kind together
    standby: int = 0  # idle instances that are up
    allocated: int = 0  # instances that are paid for: running or stopped, booting, on standby
