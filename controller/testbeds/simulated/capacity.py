"""Mechanism 1: the capacity of an operator on a set of nodes, by a pluggable law.

Every law knows two rates for n replicas: what they could do if the network were free, and what they do
with a largest round trip: among them, or on the channels that lead to them. Gesscale's own law is one of
several on purpose: no ranking may rest on the simulator obeying the formula that one of the policies fits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from fogscale.settings import Settings

Positive = Annotated[float, Field(gt=0)]
NonNegative = Annotated[float, Field(ge=0)]
Across = Literal["replicas", "channels"]
"""Which round trips a law takes the largest of: between the replicas, or between them and those that send to
them or receive from them."""


class PowerLatency(Settings):
    """α·n^β·speed − γ·ND_max (Gesscale, Eq. 1)."""

    across: ClassVar[Across] = "replicas"

    law: Literal["power_latency"]  # chooses this law
    alpha_per_s: Positive  # α, what one replica processes
    beta: Annotated[float, Field(gt=0, le=3)] = 1.0  # β, how replicas add up; below 1, less and less
    gamma_per_s_per_ms: NonNegative = 0.0  # γ, what each ms of the largest round trip takes away

    def latency_free_per_s(self, replicas: int, speed: float) -> float:
        return float(self.alpha_per_s * replicas**self.beta * speed) if replicas else 0.0

    def capacity_per_s(self, replicas: int, speed: float, largest_rtt_ms: float) -> float:
        return max(0.0, self.latency_free_per_s(replicas, speed) - self.gamma_per_s_per_ms * largest_rtt_ms)


class _Windowed(Settings, ABC):
    """A law whose throughput is bounded by what fits into a round trip: rate/(1 + RTT/half_rtt), as with
    credit-based flow control; None leaves the network out."""

    across: ClassVar[Across] = "replicas"

    half_rtt_ms: Positive | None = None  # the round trip at which half the rate is left; None: no effect

    @abstractmethod
    def latency_free_per_s(self, replicas: int, speed: float) -> float: ...

    def capacity_per_s(self, replicas: int, speed: float, largest_rtt_ms: float) -> float:
        slowdown = 1.0 if self.half_rtt_ms is None else 1.0 + largest_rtt_ms / self.half_rtt_ms
        return self.latency_free_per_s(replicas, speed) / slowdown


class Linear(_Windowed):
    """Every replica adds the same."""

    law: Literal["linear"]  # chooses this law
    per_replica_per_s: Positive  # what one replica processes

    def latency_free_per_s(self, replicas: int, speed: float) -> float:
        return self.per_replica_per_s * replicas * speed


class UniversalScalability(_Windowed):
    """Gunther's universal scalability law: λn / (1 + σ(n − 1) + κn(n − 1))."""

    law: Literal["usl"]  # chooses this law
    per_replica_per_s: Positive  # λ, what one replica processes
    contention: NonNegative = 0.0  # σ, the share that cannot be done side by side
    crosstalk: NonNegative = 0.0  # κ, what every pair of replicas costs

    def latency_free_per_s(self, replicas: int, speed: float) -> float:
        n = replicas
        return (
            self.per_replica_per_s
            * n
            * speed
            / (1 + self.contention * (n - 1) + self.crosstalk * n * (n - 1))
        )


class Table(_Windowed):
    """Measured points for 1, 2, … replicas; beyond the last one, as much more as the last step brought."""

    law: Literal["table"]  # chooses this law
    measured_per_s: tuple[Positive, ...]  # the rates of 1, 2, … replicas

    @model_validator(mode="after")
    def _not_empty(self) -> Table:
        if not self.measured_per_s:
            raise ValueError("measured_per_s needs the rate of at least one replica")
        return self

    def latency_free_per_s(self, replicas: int, speed: float) -> float:
        measured = self.measured_per_s
        if replicas <= len(measured):
            return measured[replicas - 1] * speed if replicas else 0.0
        last_gain = measured[-1] - (measured[-2] if len(measured) > 1 else 0.0)
        return max(0.0, measured[-1] + last_gain * (replicas - len(measured))) * speed


class InFlight(Settings):
    """What replicas can do, but no more than their channels carry: of each, so many bytes are on their way in
    a round trip (credit-based flow control). Records are dealt out in turn, so all go at the pace of the
    slowest channel: min(λ·n^β·speed, n · in_flight_bytes / record_bytes / RTT)."""

    across: ClassVar[Across] = "channels"

    law: Literal["in_flight"]  # chooses this law
    per_replica_per_s: Positive  # λ, what one replica processes
    beta: Positive = 1.0  # β, how replicas add up; below 1, less and less
    in_flight_bytes: Positive | None = None  # per channel and round trip; None: as many as there are
    record_bytes: Positive = 1.0  # of a record on the wire

    def latency_free_per_s(self, replicas: int, speed: float) -> float:
        return float(self.per_replica_per_s * replicas**self.beta * speed) if replicas else 0.0

    def capacity_per_s(self, replicas: int, speed: float, largest_rtt_ms: float) -> float:
        free_per_s = self.latency_free_per_s(replicas, speed)
        if self.in_flight_bytes is None or largest_rtt_ms <= 0:
            return free_per_s
        channel_per_s = self.in_flight_bytes / self.record_bytes / (largest_rtt_ms / 1000)
        return min(free_per_s, replicas * channel_per_s)


CapacityLaw = Annotated[
    PowerLatency | Linear | UniversalScalability | Table | InFlight, Field(discriminator="law")
]
