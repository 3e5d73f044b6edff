"""The kind of testbed `flink`: a real one, on emulated nodes or on Raspberry Pis."""

from __future__ import annotations

from pathlib import Path

from controller.model import Topology
from controller.testbeds import Assignment, Setup, register
from controller.testbeds.flink.offers import ALWAYS, NOT_ELASTIC, UNCHAINED
from controller.testbeds.flink.settings import FlinkSettings
from fog.folders import TESTBEDS
from fogscale.errors import FogscaleError


@register("flink")
class RealFlink:
    """A real Flink with Kafka and Prometheus, on emulated nodes of this machine or on Raspberry Pis."""

    settings = FlinkSettings
    offers = ALWAYS
    may_offer = UNCHAINED | NOT_ELASTIC

    @property
    def experiments(self) -> dict[str, Path]:
        return {name: Path(__file__).with_name(f"{name}.yml") for name in TESTBEDS}

    def bring_up(self, topology: Topology, settings: FlinkSettings) -> None:
        """As many fog nodes as the experiment has, as large as it says."""
        from fog.command import bring_up

        nodes = [node for node in topology.nodes if node.name.startswith("fog")]
        cpus = {node.cores for node in nodes}
        if len(cpus) > 1:
            raise FogscaleError("topology.nodes: emulated fog nodes have all the same cores: make them equal")
        slots = max((node.slots for node in nodes), default=1)
        bring_up(settings.name, len(nodes), cpus.pop() if cpus else 1.0, slots)

    def prepare(self, wanted: Assignment, settings: FlinkSettings) -> Setup:
        from controller.testbeds.flink.checks import check_groups, check_operators
        from controller.testbeds.flink.layout import check_layout
        from controller.testbeds.flink.testbed import FlinkTestbed
        from workloads.jobs.catalog import find

        job = find(settings.job)
        check_operators(wanted.topology, job, settings.job)
        check_layout(job, settings)
        check_groups(wanted.topology, job, settings.layout)
        left_s = wanted.duration_s - settings.start_at_s / wanted.replay.speed
        if left_s <= 0:
            raise FogscaleError("testbed.start_at_s lies behind the end of the workload: make it smaller")
        duration_s = left_s if settings.span_s is None else min(settings.span_s / wanted.replay.speed, left_s)
        return Setup(lambda: FlinkTestbed(wanted, settings), duration_s, settings.capacity_per_s)
