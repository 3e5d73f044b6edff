"""The simulated testbed as a kind: arrivals drawn beforehand, and a ladder from the laws of capacity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from math import ceil

import numpy as np
from numpy.typing import NDArray

from controller.model import Capability, Placement, Topology
from controller.placement import grown, nearest
from controller.testbeds import Assignment, Setup, register
from controller.testbeds.simulated.checks import check_job
from controller.testbeds.simulated.layout import Site
from controller.testbeds.simulated.settings import Simulation
from controller.testbeds.simulated.testbed import DEPENDS_ON_SETTINGS, SimulatedTestbed
from fogscale.errors import FogscaleError
from workloads.replay import arrivals

_NO_LIMIT = 64  # replicas up to which a capacity ladder is worked out where an operator has no n_max


@dataclass(frozen=True)
class SimulatedSetup(Setup):
    inputs: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)  # records per step, by operator


@register("simulated")
class Simulated:
    """A model of the job on its nodes: hours take seconds, and the same seed gives the same run."""

    settings = Simulation
    offers = frozenset(Capability) - DEPENDS_ON_SETTINGS
    may_offer = DEPENDS_ON_SETTINGS

    def prepare(self, wanted: Assignment, settings: Simulation) -> SimulatedSetup:
        topology, start = wanted.topology, wanted.start
        inputs = _arrivals(wanted, settings)
        check_job(topology, settings, inputs)
        site = Site(topology, {node.name: node.speed for node in topology.nodes}, settings)

        def testbed() -> SimulatedTestbed:
            rng = np.random.default_rng([wanted.seed, 1])
            return SimulatedTestbed(topology, start, settings, inputs, rng)

        return SimulatedSetup(
            testbed=testbed,
            duration_s=_duration_s(wanted, settings),
            capacity_per_s={
                name: tuple(_ladder(site, topology, wanted.nearest_start, name))
                for name in wanted.scaled_operators
            },
            facts={
                "kind_shares": {name: kind.share for name, kind in settings.kinds.items()},
                "arrivals": blake2b(b"".join(map(bytes, inputs.values())), digest_size=8).hexdigest(),
            },
            inputs=inputs,
        )


def _duration_s(wanted: Assignment, settings: Simulation) -> float:
    """Of the part of the load that is run."""
    left_s = wanted.duration_s - settings.start_at_s / wanted.replay.speed
    if left_s <= 0:
        raise FogscaleError("testbed.start_at_s lies behind the end of the workload: make it smaller")
    return left_s if settings.span_s is None else min(settings.span_s / wanted.replay.speed, left_s)


def _arrivals(wanted: Assignment, settings: Simulation) -> dict[str, NDArray[np.int64]]:
    """Records that arrive in each step, by the operator where they enter."""
    # The same seed gives every policy the same arrivals: policies are compared on one load.
    rng = np.random.default_rng([wanted.seed, 0])
    inputs = {
        operator: arrivals(profile, wanted.replay, settings.step_s, rng)
        for operator, profile in wanted.inputs.items()
    }
    if settings.span_s is not None or settings.start_at_s > 0:  # the whole is drawn: a part is a part of it
        first = round(settings.start_at_s / wanted.replay.speed / settings.step_s)
        last = first + ceil(_duration_s(wanted, settings) / settings.step_s - 1e-9)
        inputs = {operator: counts[first:last] for operator, counts in inputs.items()}
    if not any(counts.any() for counts in inputs.values()):
        raise FogscaleError(f"workload '{wanted.workload_name}' offers no records: raise its scale or speed")
    return inputs


def _ladder(site: Site, topology: Topology, start: Placement, name: str) -> Iterator[float]:
    """What 1, 2, … replicas can do on the nodes nearest to where the run starts."""
    operator = topology.operator(name)
    slots = sum(node.slots for node in topology.nodes)
    others = sum(len(nodes) for other, nodes in start.items() if other != name)
    most = operator.n_max or (_NO_LIMIT if topology.elastic else slots - others)
    for replicas in range(1, min(most, slots - others if not topology.elastic else most) + 1):
        nodes = grown(topology, start, {name: replicas}, nearest)[name]
        yield site.capacity_of(operator, nodes, start)[0]
