"""What is scaled as one: all operators of a job alike, or each on its own."""

from typing import NamedTuple

from controller.model import Observation, Operator, Topology

JOB = "job"
_UNBOUNDED = 10**9


class Scope(NamedTuple):
    """What is scaled as one: all operators of the job, or a single one."""

    name: str
    operators: tuple[Operator, ...]
    whole_job: bool


class Bounds(NamedTuple):
    fewest: int
    most: int


def scopes_of(topology: Topology, per_operator: bool) -> tuple[Scope, ...]:
    scalable = tuple(operator for operator in topology.operators if operator.scalable)
    if per_operator:
        return tuple(Scope(operator.name, (operator,), False) for operator in scalable)
    return (Scope(JOB, scalable, True),) if scalable else ()


def replicas_of(observation: Observation, scope: Scope) -> int:
    return max(len(observation.requested[operator.name]) for operator in scope.operators)


def workload_of(observation: Observation, scope: Scope) -> float | None:
    """What is offered to the sources of the job, or to the one operator: the thesis reads the workload from
    the Kafka topics (§4), which know what comes in however little of it passes."""
    if scope.whole_job:
        names = [operator.name for operator in observation.topology.operators if not operator.upstream]
    else:
        names = [operator.name for operator in scope.operators]
    rates_per_s = [observation.operators[name].offered_rate_per_s for name in names]
    return None if None in rates_per_s else sum(rate for rate in rates_per_s if rate is not None)


def bounds_of(observation: Observation, scope: Scope) -> Bounds:
    topology = observation.topology
    room = sum(node.slots for node in topology.nodes) - sum(
        len(nodes)
        for name, nodes in observation.requested.items()
        if name not in {operator.name for operator in scope.operators}
    )
    free = _UNBOUNDED if topology.elastic else max(1, room // len(scope.operators))
    return Bounds(
        fewest=min(operator.n_min for operator in scope.operators),
        most=min(free, max(operator.n_max or _UNBOUNDED for operator in scope.operators)),
    )
