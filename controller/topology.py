"""Topologies as configuration: nodes, operators and round trips, checked in words before anything runs."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Literal

from pydantic import Field, model_validator

from controller.initial_placement import quickest
from controller.model import MOST_REPLICAS, Node, Operator, Topology
from controller.network import Rtt, RttCoordinates, RttDelays, RttMatrix, RttUniform
from controller.placement import NodeChoice, grown, nearest
from fogscale.errors import FogscaleError, unknown
from fogscale.settings import Name, Settings

Milliseconds = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(gt=0, le=1)]
InitialPlacement = Literal["in_order", "quickest"]


class NodeSettings(Settings):
    name: Name  # of its own among the nodes
    cores: Annotated[float, Field(gt=0)] = 4  # CPU cores
    memory_mb: Annotated[float, Field(gt=0)] = 2048  # main memory
    speed: Annotated[float, Field(ge=1e-6, le=1e6)] = 1.0  # as a multiple of the usual node's
    slots: Annotated[int, Field(ge=0, le=MOST_REPLICAS)] = 1  # how many instances fit


class OperatorSettings(Settings):
    name: Name  # of its own among the operators
    # Names, or shares: {parser: 0.7} sends 70 % of what parser emits here. A name alone means all of it, also
    # where others get it too.
    upstream: tuple[str, ...] | dict[str, Share] = ()
    n_min: Annotated[int, Field(ge=1, le=MOST_REPLICAS)] = 1  # fewest replicas
    n_max: Annotated[int, Field(ge=1, le=MOST_REPLICAS)] | None = None  # most replicas; None: as many as fit
    stateful: bool = False  # whether it keeps state that has to move
    selectivity: Annotated[float, Field(ge=0, le=1e6)] = 1.0  # records emitted for each that is processed

    def build(self) -> Operator:
        shares = tuple(self.upstream.values()) if isinstance(self.upstream, dict) else ()
        values = self.model_dump() | {"upstream": tuple(self.upstream), "shares": shares}
        return Operator(**values)


class RttSettings(Settings):
    """Exactly one of these."""

    matrix_ms: tuple[tuple[Milliseconds, ...], ...] | None = None  # in the order of the nodes
    coordinates_ms: dict[str, tuple[float, ...]] | None = None  # node -> position; distances are round trips
    delays_ms: dict[str, Milliseconds] | None = None  # node -> delay; of two, the larger counts
    uniform_ms: Milliseconds | None = None  # the same between any two nodes

    @model_validator(mode="after")
    def _exactly_one(self) -> RttSettings:
        given = [name for name in type(self).model_fields if getattr(self, name) is not None]
        if len(given) != 1:
            kinds = ", ".join(type(self).model_fields)
            raise ValueError(f"give exactly one of {kinds} (given: {', '.join(given) or 'none'})")
        return self

    def of(self, nodes: tuple[str, ...]) -> Rtt:
        if self.matrix_ms is not None:
            check_matrix(self.matrix_ms, nodes)
            return RttMatrix(nodes, self.matrix_ms)
        for kind, values in (("coordinates_ms", self.coordinates_ms), ("delays_ms", self.delays_ms)):
            if values is not None:
                _check_names(kind, set(values), nodes)
        if self.coordinates_ms is not None:
            if len({len(position) for position in self.coordinates_ms.values()}) > 1:
                raise FogscaleError(
                    "rtt_ms.coordinates_ms: give every node as many coordinates as the others"
                )
            return RttCoordinates(self.coordinates_ms)
        if self.delays_ms is not None:
            return RttDelays(self.delays_ms)
        return RttUniform(self.uniform_ms or 0.0)


class TopologySettings(Settings):
    nodes: tuple[NodeSettings, ...]  # the machines
    operators: tuple[OperatorSettings, ...]  # the job, upstream first
    rtt_ms: RttSettings  # round trips between nodes
    elastic: bool = False  # nodes can be created without bound

    def build(self) -> Topology:
        node_names = tuple(node.name for node in self.nodes)
        _check_distinct("node", node_names)
        _check_dag(self.operators)
        if self.elastic and self.rtt_ms.uniform_ms is None:
            raise FogscaleError("an elastic topology creates nodes nobody has named: use rtt_ms.uniform_ms")
        return Topology(
            nodes=tuple(Node(**node.model_dump()) for node in self.nodes),
            operators=tuple(operator.build() for operator in self.operators),
            rtt_ms=self.rtt_ms.of(node_names),
            elastic=self.elastic,
        )


def check_matrix(rows: tuple[tuple[float, ...], ...], names: tuple[str, ...]) -> None:
    """Square, symmetric, zero diagonal: said in words for the first pair that is not."""
    if len(rows) != len(names) or any(len(row) != len(names) for row in rows):
        shape = f"{len(rows)} rows of {sorted({len(row) for row in rows})}"
        raise FogscaleError(
            f"rtt_ms.matrix_ms: {len(names)} nodes need {len(names)} rows of as many, not {shape}"
        )
    for i, a in enumerate(names):
        if rows[i][i] != 0:
            raise FogscaleError(f"rtt_ms.matrix_ms: from {a} to itself takes {rows[i][i]:g} ms; write 0")
        for j, b in enumerate(names[:i]):
            if rows[i][j] != rows[j][i]:
                raise FogscaleError(
                    f"rtt_ms.matrix_ms: {a} to {b} takes {rows[i][j]:g} ms but back {rows[j][i]:g} ms; "
                    f"a round trip is the same both ways"
                )


def _check_names(kind: str, given: set[str], nodes: tuple[str, ...]) -> None:
    for name in given.difference(nodes):
        raise FogscaleError(f"rtt_ms.{kind}: {unknown('node', name, nodes)}")
    for name in set(nodes).difference(given):
        raise FogscaleError(f"rtt_ms.{kind}: nothing is given for node '{name}'; add it")


def _check_distinct(kind: str, names: tuple[str, ...]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise FogscaleError(f"two {kind}s are called '{name}': rename one")


def _check_dag(operators: tuple[OperatorSettings, ...]) -> None:
    if not operators:
        raise FogscaleError("topology.operators is empty: name at least one operator")
    names = tuple(operator.name for operator in operators)
    _check_distinct("operator", names)
    seen: set[str] = set()
    for operator in operators:
        for name in operator.upstream:
            if tuple(operator.upstream).count(name) > 1:
                raise FogscaleError(
                    f"operator '{operator.name}': upstream names '{name}' twice: name it once"
                )
            if name not in names:
                raise FogscaleError(
                    f"operator '{operator.name}': upstream {unknown('operator', name, names)}"
                )
            if name not in seen:
                raise FogscaleError(
                    f"operator '{operator.name}' is listed before its upstream '{name}': list upstream first"
                )
        if operator.n_max is not None and operator.n_max < operator.n_min:
            raise FogscaleError(f"operator '{operator.name}': n_max is below n_min")
        seen.add(operator.name)


def _check_pin(operator: Operator, start: dict[str, int], pins: dict[str, tuple[str, ...]]) -> None:
    """What is pinned stays: nothing else may be said of how many there are."""
    if operator.name not in pins:
        return
    replicas = len(pins[operator.name])
    if operator.scalable:
        raise FogscaleError(
            f"pins: '{operator.name}' is pinned, but may be scaled: set its n_min and n_max to {replicas}, or"
            " remove the pin"
        )
    if start.get(operator.name, replicas) != replicas:
        raise FogscaleError(
            f"start: '{operator.name}' is pinned to {replicas} nodes, not {start[operator.name]}: remove one"
            " of the two"
        )


def start_placement(
    topology: Topology,
    start: dict[str, int],
    pins: dict[str, tuple[str, ...]],
    how: InitialPlacement = "in_order",
    choose: NodeChoice = nearest,
) -> dict[str, tuple[str, ...]]:
    """Where replicas are when a run starts: pinned operators where the experiment says, the others `in_order`
    on the nodes nearest to their own, beginning with the first, or as chosen, or so that records are
    `quickest`."""
    names = [operator.name for operator in topology.operators]
    nodes = [node.name for node in topology.nodes]
    for key, given in (("start", start), ("pins", pins)):
        for name in given:
            if name not in names:
                raise FogscaleError(f"{key}: {unknown('operator', name, names)}")
    for pinned in pins.values():
        for node in pinned:
            if node not in nodes and not topology.elastic:
                raise FogscaleError(f"pins: {unknown('node', node, nodes)}")
    empty: dict[str, tuple[str, ...]] = {name: tuple(pins.get(name, ())) for name in names}
    target = {
        operator.name: start.get(operator.name, operator.n_min)
        for operator in topology.operators
        if operator.name not in pins
    }
    for operator in topology.operators:
        replicas = target.get(operator.name, len(empty[operator.name]))
        if replicas < operator.n_min or (operator.n_max is not None and replicas > operator.n_max):
            raise FogscaleError(
                f"start: {replicas} replicas of '{operator.name}' are outside "
                f"{operator.n_min}..{operator.n_max}"
            )
    for operator in topology.operators:
        _check_pin(operator, start, pins)
    taken = Counter(node for pinned in pins.values() for node in pinned)
    for host in topology.nodes:
        if taken[host.name] > host.slots:
            raise FogscaleError(
                f"pins: node '{host.name}' has {host.slots} slots, pinned are {taken[host.name]}"
            )
    in_order = grown(topology, empty, target, choose)  # also finds out whether all fit
    if how == "in_order":
        return dict(in_order)
    if topology.elastic:
        raise FogscaleError(
            "initial_placement: an elastic topology has no nodes to choose from: use in_order"
        )
    return dict(quickest(topology, empty, target))
