"""What is wrong with an experiment or a plan for a real Flink: said before anything is touched."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from controller.model import Plan, Topology
from controller.testbeds.flink.layout import groups_of
from controller.testbeds.flink.settings import Layout
from fog.manifest import Manifest
from fogscale.errors import FogscaleError, unknown
from workloads.jobs.catalog import Job

RTT_OFF_RATIO, RTT_OFF_MS = 0.03, 1.0


def check_operators(topology: Topology, job: Job, name: str) -> None:
    """The experiment's operators are those of the job, in the same order of flow."""
    known = [operator.name for operator in job.operators]
    for operator in topology.operators:
        if operator.name not in known:
            raise FogscaleError(
                f"topology.operators: {unknown(f'operator of job {name}', operator.name, known)}"
            )
        upstream = next(each.upstream for each in job.operators if each.name == operator.name)
        if list(operator.upstream) != list(upstream):
            raise FogscaleError(
                f"topology.operators.{operator.name}: in job '{name}' its upstream is {upstream}: write it so"
            )
    missing = [each for each in known if each not in {operator.name for operator in topology.operators}]
    if missing:
        raise FogscaleError(f"topology.operators: job '{name}' also has {', '.join(missing)}: add them")
    for operator in topology.operators:
        if operator.scalable and operator.name not in job.scaled:
            raise FogscaleError(
                f"topology.operators.{operator.name}: job '{name}' does not scale it: set n_max: 1"
            )


def check_groups(topology: Topology, job: Job, layout: Layout) -> None:
    """Of operators that share slots one is scaled, and the others go along."""
    for members in groups_of(job, layout):
        scaled = [each.name for each in topology.operators if each.name in members and each.scalable]
        if len(scaled) > 1:
            raise FogscaleError(
                f"topology.operators: {', '.join(scaled)} share slots, so that there are as many of each: let"
                " one be scaled, and set n_max: 1 for the others"
            )


def check_nodes(topology: Topology, manifest: Manifest) -> None:
    """The experiment's nodes are there, as far apart as it says."""
    known = [node.name for node in manifest.nodes]
    names = [node.name for node in topology.nodes]
    for name in names:
        if name not in known:
            hint = f"build it with more fog nodes (it has {manifest.fog_nodes}), or take the node out"
            raise FogscaleError(f"topology.nodes: the testbed has no node '{name}': {hint}")
    slots = manifest.services.get("flink", {}).get("slots", 1)
    for node in topology.nodes:
        if node.name.startswith("fog") and node.slots > slots:
            raise FogscaleError(
                f"topology.nodes: {node.name} has {slots} slots there, not {node.slots}: correct it, or build"
                f" the testbed with as many (-e fog_slots={node.slots})"
            )
    rtt = manifest.rtt_ms
    for position, one in enumerate(names):
        for other in names[position + 1 :]:
            real_ms, said_ms = rtt(one, other), topology.rtt_ms(one, other)
            if abs(real_ms - said_ms) > max(RTT_OFF_MS, RTT_OFF_RATIO * real_ms):
                raise FogscaleError(
                    f"topology.rtt_ms: {one} and {other} are {real_ms:g} ms apart there, not {said_ms:g}:"
                    " correct one of them (fogscale testbed network --set)"
                )


def objection(
    plan: Plan,
    topology: Topology,
    placed: Sequence[str],
    pinned: dict[str, tuple[str, ...]],
    fog_nodes: Collection[str],
    partitions: int,
) -> str | None:
    """Why a plan cannot be carried out."""
    for name in plan.placement:
        if name not in {operator.name for operator in topology.operators}:
            return unknown("operator", name, [operator.name for operator in topology.operators])
    for name, nodes in pinned.items():
        if tuple(plan.placement.get(name, nodes)) != nodes:
            return f"'{name}' stays on {', '.join(nodes)}"
    for name in placed:
        nodes, operator = plan.placement.get(name, ()), topology.operator(name)
        most = min(operator.n_max or partitions, partitions)
        if not operator.n_min <= len(nodes) <= most:
            return f"'{name}' can have {operator.n_min} to {most} replicas, not {len(nodes)}"
        strangers = [node for node in nodes if node not in fog_nodes]
        if strangers:
            return f"'{name}' cannot run on {strangers[0]}: it is no fog node that is ready"
    taken = Counter(node for name in placed for node in plan.placement[name])
    for node, replicas in taken.items():
        if replicas > topology.node(node).slots:
            return f"{node} has {topology.node(node).slots} slots, not {replicas}"
    return None
