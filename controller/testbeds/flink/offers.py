"""What a real Flink offers to policies. Not: operators pinned to nodes, hot standby, instant rescaling."""

from __future__ import annotations

from controller.model import Capability

OFFERS = frozenset(
    {
        Capability.CPU,
        Capability.MEMORY,
        Capability.BACK_PRESSURE,
        Capability.BUSY,
        Capability.TRUE_RATE,
        Capability.ARRIVAL_RATE,
        Capability.OFFERED_RATE,
        Capability.LAG,
        Capability.RESPONSE_TIME,
        Capability.INSTANCE_METRICS,
        Capability.RTT,
        Capability.OPERATOR_PARALLELISM,
        Capability.NODE_CHOICE,
    }
)
