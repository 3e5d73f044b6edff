"""Where the operators of a job run. `split`: those that follow the load in the fog, the others on the
services node. `fog`: one instance of every operator in each slot of the fog, so that all go along with those
that scale."""

from __future__ import annotations

from collections.abc import Mapping

from controller.model import Placement
from controller.testbeds.flink.settings import FlinkSettings, Layout
from fogscale.errors import FogscaleError
from workloads.jobs.catalog import Job

CHAIN = " -> "


def check_layout(job: Job, settings: FlinkSettings) -> None:
    """Raises where the job cannot run so."""
    is_line = job.one_to_one
    if settings.layout == "fog" and not is_line:
        raise FogscaleError(
            f"testbed.layout: '{settings.job}' sends records from slot to slot by key: choose split, or a job"
            " of one line (taxi, lookup, images)"
        )
    if settings.chained and settings.layout != "fog":
        raise FogscaleError(
            "testbed.chained: in the layout split operators are on different nodes: choose layout: fog, or"
            " leave it out"
        )
    for name in ("layout", "chained"):
        if name in settings.job_settings:
            raise FogscaleError(f"testbed.job_settings.{name}: write it as testbed.{name}")


def vertices_of(job: Job, settings: FlinkSettings) -> dict[str, str]:
    """Operator → how Flink calls its task; a chain is one task."""
    named = {operator.name: operator.vertex for operator in job.operators}
    return dict.fromkeys(named, CHAIN.join(named.values())) if settings.chained else named


def instances_of(job: Job, layout: Layout, counts: Mapping[str, int]) -> dict[str, int]:
    """Of every operator whose number changes with the plan."""
    if layout == "split":
        return dict(counts)
    slots = max(counts.values())
    return {each.name: counts.get(each.name, min(slots, each.most or slots)) for each in job.operators}


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


def companions_of(job: Job, layout: Layout) -> dict[str, str]:
    """Operators that go along with another: policies scale the other, and find these beside it."""
    if layout == "split":
        return {}
    return {each.name: job.scaled[0] for each in job.operators if each.name not in job.scaled}
