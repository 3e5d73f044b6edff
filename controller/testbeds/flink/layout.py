"""Where the operators of a job run. `split`: source and sink on the services node, the others in the fog.
`fog`: one instance of every operator in each slot of the fog. Operators of one slot sharing group are in the
same slots: a plan places one of them, its leader, and the others go along."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from controller.model import Placement
from controller.testbeds.flink.settings import FlinkSettings, Layout
from fogscale.errors import FogscaleError
from workloads.jobs.catalog import Job

CHAIN = " -> "
ON_SERVICES = frozenset({"default", "source", "sink"})  # groups; as the role flink has it


def check_layout(job: Job, settings: FlinkSettings) -> None:
    """Raises where the job cannot run so."""
    if settings.layout == "fog" and not job.one_to_one:
        raise FogscaleError(
            f"testbed.layout: '{settings.job}' sends records from slot to slot by key: choose split, or a job"
            " of one line (taxi, lookup, images)"
        )
    if settings.chained and settings.layout != "fog":
        raise FogscaleError(
            "testbed.chained: in the layout split operators are on different nodes: choose layout: fog, or"
            " leave it out"
        )
    if settings.style == "elastic" and len(groups_of(job, settings.layout)) > 1:
        raise FogscaleError(
            f"testbed.style: with elastic a job takes every slot, and nobody says which operator of"
            f" '{settings.job}' gets how many: choose in_place or restart"
        )
    for name in ("layout", "chained"):
        if name in settings.job_settings:
            raise FogscaleError(f"testbed.job_settings.{name}: write it as testbed.{name}")


def vertices_of(job: Job, settings: FlinkSettings) -> dict[str, str]:
    """Operator → how Flink calls its task; a chain is one task."""
    named = {operator.name: operator.vertex for operator in job.operators}
    return dict.fromkeys(named, CHAIN.join(named.values())) if settings.chained else named


def groups_of(job: Job, layout: Layout) -> list[list[str]]:
    """The operators in the fog, those that share slots together, upstream first."""
    if layout == "fog":
        return [[each.name for each in job.operators]]
    groups: dict[str, list[str]] = {}
    for each in job.operators:
        if each.group not in ON_SERVICES:
            groups.setdefault(each.group, []).append(each.name)
    return list(groups.values())


def leaders_of(job: Job, layout: Layout, scalable: Collection[str]) -> list[str]:
    """The operators that a plan places: of each group the one that may be scaled, or else the first that the
    job scales at all."""
    return [_leader(members, scalable, job.scaled) for members in groups_of(job, layout)]


def _leader(members: list[str], *preferred: Collection[str]) -> str:
    return next((name for some in preferred for name in members if name in some), members[0])


def instances_of(job: Job, layout: Layout, counts: Mapping[str, int]) -> dict[str, int]:
    """Of every operator in the fog, by those of the leaders."""
    most = {each.name: each.most for each in job.operators}
    found: dict[str, int] = {}
    for members in groups_of(job, layout):
        slots = max((counts[name] for name in members if name in counts), default=1)
        found |= {name: counts.get(name, min(slots, most[name] or slots)) for name in members}
    return found


def as_asked(requested: Placement, found: Placement, companions: Mapping[str, str]) -> Placement:
    """What runs, in the words of what was asked for: nodes in the same order where they are the same, and an
    operator that goes along with another (`companions`) where it was said to be, as long as both run on the
    same nodes."""
    told = {}
    for name, nodes in requested.items():
        other = companions.get(name)
        runs = found.get(name, ())
        is_so = bool(runs) and sorted(runs) == sorted(nodes if other is None else found.get(other, ()))
        told[name] = nodes if is_so else runs
    return told


def companions_of(job: Job, layout: Layout, leaders: Collection[str]) -> dict[str, str]:
    """Operators that go along with another: policies scale the other, and find these beside it."""
    return {
        name: _leader(members, leaders)
        for members in groups_of(job, layout)
        for name in members
        if name not in leaders
    }


def dealt_out(requested: Placement, found: Placement, leaders: Collection[str]) -> Placement:
    """What is asked for from now on: on which of the nodes of a plan an operator gets its slots is up to
    Flink, where they have several. As long as there are as many of each, on these nodes, it is as it was
    asked for."""
    nodes = {node for name in leaders for node in requested[name]}
    is_so = all(
        len(found.get(name, ())) == len(requested[name]) and nodes.issuperset(found[name]) for name in leaders
    )
    if not is_so:
        return requested
    return {**requested, **{name: _in_order(requested[name], found[name]) for name in leaders}}


def _in_order(asked: tuple[str, ...], found: tuple[str, ...]) -> tuple[str, ...]:
    return asked if sorted(asked) == sorted(found) else found
