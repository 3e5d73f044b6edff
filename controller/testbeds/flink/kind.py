"""The kind of testbed `flink`: a real one, on emulated nodes or on Raspberry Pis."""

from __future__ import annotations

from controller.testbeds import Assignment, Setup, register
from controller.testbeds.flink.offers import OFFERS
from controller.testbeds.flink.settings import FlinkSettings
from fogscale.errors import FogscaleError


@register("flink")
class RealFlink:
    """A real Flink with Kafka and Prometheus, on emulated nodes of this machine or on Raspberry Pis."""

    settings = FlinkSettings
    offers = OFFERS
    may_offer: frozenset[str] = frozenset()

    def prepare(self, wanted: Assignment, settings: FlinkSettings) -> Setup:
        from controller.testbeds.flink.checks import check_operators
        from controller.testbeds.flink.testbed import FlinkTestbed
        from workloads.jobs.catalog import find

        check_operators(wanted.topology, find(settings.job), settings.job)
        left_s = wanted.duration_s - settings.start_at_s / wanted.replay.speed
        if left_s <= 0:
            raise FogscaleError("testbed.start_at_s lies behind the end of the workload: make it smaller")
        duration_s = left_s if settings.span_s is None else min(settings.span_s / wanted.replay.speed, left_s)
        return Setup(lambda: FlinkTestbed(wanted, settings), duration_s, settings.capacity_per_s)
