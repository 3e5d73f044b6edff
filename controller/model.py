"""The values that flow through a run: what a policy sees, what it answers, what truly happened.

All values are frozen. None means "not measured", never 0. Ratios are 0..1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, NoReturn, TypeVar

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")

MOST_REPLICAS = 10_000
"""Of all operators together, on any testbed: what a plan, a start or a node's slots may name at most."""


class Frozen(dict[_Key, _Value]):
    """A mapping that cannot be changed; a dict all the same, so that it is encoded as quickly as one."""

    __slots__ = ()

    def _refuse(self, *_values: Any, **_named: Any) -> NoReturn:
        raise TypeError("what a policy sees cannot be changed: copy it with dict(…)")

    def __reduce__(self) -> tuple[Any, ...]:
        return Frozen, (dict(self),)  # else a copy would be filled item by item

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse


Placement = Mapping[str, tuple[str, ...]]
"""Operator -> the node of each of its replicas."""

InstanceState = Literal["requested", "booting", "running", "inactive", "stopping"]
Outcome = Literal["done", "failed", "refused", "unchanged"]


class Capability(StrEnum):
    """What a policy may need of a testbed. A mismatch is an error before the run starts."""

    CPU = "cpu"
    MEMORY = "memory"
    BACK_PRESSURE = "back_pressure"
    BUSY = "busy"
    TRUE_RATE = "true_rate"
    ARRIVAL_RATE = "arrival_rate"
    OFFERED_RATE = "offered_rate"
    LAG = "lag"
    RESPONSE_TIME = "response_time"
    INSTANCE_METRICS = "instance_metrics"
    RTT = "rtt"
    OPERATOR_PARALLELISM = "operator_parallelism"
    NODE_CHOICE = "node_choice"
    OPERATOR_PINNING = "operator_pinning"
    STANDBY = "standby"
    NAMED_INSTANCES = "named_instances"
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

    def within_bounds(self, replicas: int) -> int:
        """As many replicas as wanted, but n_min to n_max of them."""
        return max(self.n_min, replicas if self.n_max is None else min(replicas, self.n_max))

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
    rate_per_s: float | None = None  # processed; its share of the operator's throughput
    arrival_rate_per_s: float | None = None  # the following three as for the operator
    output_rate_per_s: float | None = None
    offered_rate_per_s: float | None = None


@dataclass(frozen=True, slots=True)
class OperatorMetrics:
    # What reaches the operator: appended to its topic where records enter the job, plus what operators
    # upstream emit to it. Behind a bottleneck that is no more than the bottleneck lets through.
    arrival_rate_per_s: float | None = None
    output_rate_per_s: float | None = None  # what it emits, each record once however many get a copy
    # What would reach it if nothing upstream were in the way: what enters the job, times the records that
    # come here for each. None where a testbed does not know what enters, or how operators thin it out.
    offered_rate_per_s: float | None = None
    throughput_per_s: float | None = None  # what it processes
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
class Instance:
    """One replica with a name of its own. A name is never used again within a run, not even for a successor
    on the same node. An inactive instance is there, takes a slot and is paid for, but serves nothing."""

    id: str
    node: str
    active: bool = True


Instances = Mapping[str, tuple[Instance, ...]]
"""Operator -> its instances, active or not."""


@dataclass(frozen=True, slots=True)
class Note:
    """Something that was exchanged inside a policy: a request, a grant, a message."""

    kind: str
    sender: str = ""
    receiver: str = ""
    data: Mapping[str, str | float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Plan:
    """What a policy wants. The reason is data: it is journalled and shown.

    A policy that thinks in counts gives a placement alone, and the testbed names the instances. One that
    names them gives all that it wants, `Plan.of_instances(…)`: who is missing leaves, who is new joins, who
    has another node moves; the placement then is that of the active ones.
    """

    placement: Placement
    standby: int = 0
    reason: str = ""
    instances: Instances | None = None
    notes: tuple[Note, ...] = ()  # what led to it; a policy that changes nothing has `notes` of its own

    @classmethod
    def of_instances(
        cls, instances: Instances, reason: str = "", notes: tuple[Note, ...] = (), standby: int = 0
    ) -> Plan:
        return cls(placement_of(instances), standby, reason, instances, notes)

    def changes(self, observation: Observation) -> bool:
        """Whether it asks for anything else than what is requested already, be it the same count on the same
        nodes: one that leaves and one that joins are two."""
        if self.instances is None:
            return dict(self.placement) != dict(observation.requested)
        now = observation.requested_instances
        return {name: set(some) for name, some in self.instances.items()} != {
            name: set(some) for name, some in now.items()
        }


def placement_of(instances: Instances) -> dict[str, tuple[str, ...]]:
    """Where the active ones are: those that serve."""
    return {name: tuple(each.node for each in some if each.active) for name, some in instances.items()}


@dataclass(frozen=True, slots=True)
class Receipt:
    plan: Plan
    outcome: Outcome
    requested_s: float
    finished_s: float
    downtime_s: float | None = 0.0  # None: it was not measured
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
    # What `requested` stands for, with names, inactive ones too; empty where a testbed names none.
    requested_instances: Instances = field(default_factory=dict)

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
    # offered_records by the operator at which they enter; empty where all enter at one.
    entered_records: Mapping[str, int] = field(default_factory=dict)
