"""A three-operator chain on a small fog, and what a policy may be shown of it."""

from collections.abc import Sequence
from dataclasses import replace

from controller.model import Node, Observation, Operator, OperatorMetrics, Receipt, Topology
from controller.network import Rtt, RttDelays

DELAYS_MS = {"services": 0.0, "fog1": 5.0, "fog2": 50.0, "fog3": 100.0, "fog4": 150.0, "fog5": 200.0}
"""Between two nodes the larger delay of the two counts: fog1 and fog3 are 100 ms apart."""


def chain(
    n_min: int = 1, n_max: int | None = 5, rtt_ms: Rtt | None = None, elastic: bool = False
) -> Topology:
    """source → map → sink; source and sink share the two slots of one node, map grows over five others."""
    return Topology(
        nodes=tuple(Node(name, 4, 2048, slots=2 if name == "services" else 1) for name in DELAYS_MS),
        operators=(
            Operator("source", n_max=1),
            Operator("map", ("source",), n_min=n_min, n_max=n_max),
            Operator("sink", ("map",), n_max=1),
        ),
        rtt_ms=rtt_ms or RttDelays(DELAYS_MS),
        elastic=elastic,
    )


def placed(*map_nodes: str) -> dict[str, tuple[str, ...]]:
    return {"source": ("services",), "map": map_nodes, "sink": ("services",)}


def seen(
    map_nodes: Sequence[str],
    *,
    time_s: float = 0.0,
    topology: Topology | None = None,
    source: OperatorMetrics | None = None,
    map: OperatorMetrics | None = None,
    running: dict[str, tuple[str, ...]] | None = None,
    measured_s: float | None = None,
    receipts: tuple[Receipt, ...] = (),
) -> Observation:
    """What a policy is shown of the chain; the sink is always calm."""
    requested = placed(*map_nodes)
    calm = OperatorMetrics(throughput_per_s=100.0, back_pressure_ratio=0.0)
    return Observation(
        time_s=time_s,
        topology=topology or chain(),
        placement=requested if running is None else running,
        requested=requested,
        operators={"source": source or calm, "map": map or calm, "sink": calm},
        measured_s=time_s if measured_s is None else measured_s,
        receipts=receipts,
    )


def without_metrics(observation: Observation) -> Observation:
    return replace(observation, operators={name: OperatorMetrics() for name in observation.operators})


def replicas_of(plan, operator: str = "map") -> int | None:
    """How many replicas a plan asks for; None where there is no plan."""
    return None if plan is None else len(plan.placement[operator])
