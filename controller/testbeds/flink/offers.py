"""What a real Flink offers to policies. Not: pinned operators, instant rescaling."""

from __future__ import annotations

from controller.model import Capabilities, Capability
from controller.testbeds.flink.settings import FlinkSettings

ALWAYS: Capabilities = frozenset(
    {
        Capability.CPU,
        Capability.MEMORY,
        Capability.OFFERED_RATE,
        Capability.LAG,
        Capability.RTT,
        Capability.OPERATOR_PARALLELISM,
        Capability.NODE_CHOICE,
    }
)
# What Flink tells of each task: one that is a whole chain says nothing of its operators.
UNCHAINED: Capabilities = frozenset(
    {
        Capability.BACK_PRESSURE,
        Capability.BUSY,
        Capability.TRUE_RATE,
        Capability.ARRIVAL_RATE,
        Capability.RESPONSE_TIME,
        Capability.INSTANCE_METRICS,
    }
)


# With `elastic` the job takes every slot there is, so that nothing can be kept idle.
NOT_ELASTIC: Capabilities = frozenset({Capability.STANDBY})


def offers_with(settings: FlinkSettings) -> Capabilities:
    offered = ALWAYS if settings.chained else ALWAYS | UNCHAINED
    return offered if settings.style == "elastic" else offered | NOT_ELASTIC
