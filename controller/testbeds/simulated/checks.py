"""What cannot be simulated, and what a job cannot be asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from controller.model import Plan, Topology
from controller.testbeds.simulated.faults import NodeLoss, Straggler
from controller.testbeds.simulated.instances import occupied_by
from controller.testbeds.simulated.settings import Simulation
from fogscale.errors import FogscaleError, unknown


def check_job(topology: Topology, simulation: Simulation, inputs: Mapping[str, NDArray[np.int64]]) -> None:
    """Every operator has a law, every name is known, all inputs last equally long."""
    operators = [operator.name for operator in topology.operators]
    for name in operators:
        if name not in simulation.capacity:
            raise FogscaleError(f"testbed.capacity has no law for operator '{name}': add one")
    variable = [
        name
        for scv in (simulation.arrival_scv, simulation.service_scv)
        if isinstance(scv, dict)
        for name in scv
    ]
    for name in (*simulation.capacity, *simulation.memory, *variable, *inputs):
        if name not in operators:
            raise FogscaleError(unknown("operator", name, operators))
    if len({len(counts) for counts in inputs.values()}) > 1:
        spans = ", ".join(f"{name} {len(counts)}" for name, counts in inputs.items())
        raise FogscaleError(f"inputs must all last equally long, but have these steps: {spans}")
    nodes = [node.name for node in topology.nodes]
    for fault in simulation.faults:
        if isinstance(fault, (NodeLoss, Straggler)) and fault.node not in nodes:
            raise FogscaleError(f"testbed.faults: {unknown('node', fault.node, nodes)}")


def objection(plan: Plan, topology: Topology) -> str:
    """Why a plan is refused; empty if it is not."""
    names = [operator.name for operator in topology.operators]
    if plan.standby < 0:
        return f"{plan.standby} instances on standby: ask for 0 or more"
    if set(plan.placement) != set(names):
        return "the plan must place every operator: " + ", ".join(names)
    for operator in topology.operators:
        replicas = len(plan.placement[operator.name])
        if replicas < operator.n_min or (operator.n_max is not None and replicas > operator.n_max):
            return f"{replicas} replicas of {operator.name} are outside {operator.n_min}..{operator.n_max}"
    slots = {node.name: node.slots for node in topology.nodes}
    occupied = plan.placement if plan.instances is None else occupied_by(plan.instances)
    for node, taken in Counter(node for nodes in occupied.values() for node in nodes).items():
        if node not in slots and not topology.elastic:
            return unknown("node", node, slots)
        if taken > slots.get(node, taken):
            return f"node {node} has {slots[node]} slots, the plan takes {taken}"
    return ""
