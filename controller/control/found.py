"""A running job as Flink's REST API tells it, in the words of policies: operators, nodes, where each runs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from controller.model import Node, Operator, Topology
from controller.network import Rtt, RttUniform
from controller.testbeds.flink.rest import ENDED, Flink, Job, JobSummary, TaskManager, Vertex
from controller.topology import RttSettings
from fogscale.errors import FogscaleError, unknown

LONGEST_NAME = 24


def found_job(flink: Flink, wanted: str | None) -> JobSummary:
    """By its name or id; the only one where none is named."""
    running = [job for job in flink.jobs() if job.state not in ENDED]
    listed = ", ".join(f"{job.name} ({job.id})" for job in running) or "none"
    if wanted is None:
        if len(running) != 1:
            raise FogscaleError(
                f"{len(running)} jobs run at {flink.url}: name one with --job (running: {listed})"
            )
        return running[0]
    found = [job for job in running if wanted in (job.id, job.name)]
    if len(found) > 1:
        raise FogscaleError(f"{len(found)} jobs are named '{wanted}': give an id with --job ({listed})")
    if not found:
        names = [name for job in running for name in (job.name, job.id)]
        raise FogscaleError(f"{unknown('job', wanted, names)} at {flink.url}")
    return found[0]


@dataclass(frozen=True)
class Shape:
    """What does not change while a job runs: its operators and how Flink calls them."""

    job: str  # its name
    operators: tuple[Operator, ...]  # upstream first
    vertices: Mapping[str, str]  # operator → id of its vertex
    most: Mapping[str, int]  # operator → Flink's own limit

    @property
    def scaled(self) -> tuple[str, ...]:
        return tuple(each.name for each in self.operators if each.scalable)


def shape_of(job: Job, slots: int, max_replicas: int | None, only: Sequence[str]) -> Shape:
    """Sources stay as they are, and with `only` all that is not named. Operators share slots: each may have
    as many replicas as there are slots."""
    vertices = _upstream_first(job.vertices)
    names = _short_names(vertices)
    for name in only:
        if name not in names.values():
            raise FogscaleError(unknown(f"operator of job '{job.name}'", name, names.values()))
    operators = []
    for vertex in vertices:
        name = names[vertex.id]
        is_scaled = name in only if only else bool(vertex.upstream)
        most = min(max_replicas or slots, slots, vertex.max_parallelism)
        operators.append(
            Operator(
                name,
                tuple(names[each] for each in vertex.upstream),
                n_min=1 if is_scaled else vertex.parallelism,
                n_max=max(most, 1) if is_scaled else vertex.parallelism,
            )
        )
    return Shape(
        job.name,
        tuple(operators),
        {names[vertex.id]: vertex.id for vertex in vertices},
        {names[vertex.id]: vertex.max_parallelism for vertex in vertices},
    )


def topology_of(shape: Shape, taskmanagers: Sequence[TaskManager], rtt: RttSettings | None) -> Topology:
    """Every TaskManager is a node. A slot holds one instance of every operator, not one instance."""
    nodes = tuple(
        Node(each.id, each.cores, each.memory_mb or 1.0, slots=each.slots * len(shape.operators))
        for each in sorted(taskmanagers, key=lambda each: each.id)
    )
    return Topology(nodes, shape.operators, _rtt(rtt, [node.name for node in nodes]))


def _rtt(settings: RttSettings | None, names: Sequence[str]) -> Rtt:
    """TaskManagers come and go: all that there may be are named."""
    if settings is None:
        return RttUniform()
    if settings.matrix_ms is not None:
        raise FogscaleError("rtt_ms.matrix_ms has no names: give delays_ms, coordinates_ms or uniform_ms")
    known = settings.delays_ms if settings.coordinates_ms is None else settings.coordinates_ms
    if known is None:
        return RttUniform(settings.uniform_ms or 0.0)
    missing = [name for name in names if name not in known]
    if missing:
        raise FogscaleError(f"rtt_ms says nothing of TaskManager '{missing[0]}': add it")
    return settings.of(tuple(known))


def _upstream_first(vertices: Sequence[Vertex]) -> list[Vertex]:
    ordered: list[Vertex] = []
    left = list(vertices)
    while left:
        done = {each.id for each in ordered}
        ready = [each for each in left if set(each.upstream) <= done]
        ordered += ready or left  # a circle (an iteration) stays as Flink lists it
        left = [each for each in left if each not in ordered]
    return ordered


def _short_names(vertices: Sequence[Vertex]) -> dict[str, str]:
    """Flink joins the names of chained operators; the first of them, without what says that it is a source or
    a sink, is enough to tell them apart, with a number where it is not."""
    names: dict[str, str] = {}
    for vertex in vertices:
        first = re.split(r"\s*->\s*", vertex.name)[0]
        word = re.sub(r"[^\w.-]+", "_", re.sub(r"^(Source|Sink): ", "", first)).strip("_")
        short = word[:LONGEST_NAME].strip("_") or "operator"
        name, number = short, 2
        while name in names.values():
            name, number = f"{short}_{number}", number + 1
        names[vertex.id] = name
    return names
