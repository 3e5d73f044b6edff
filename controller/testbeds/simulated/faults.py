"""Mechanism 8: faults as scheduled events."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from fogscale.settings import Seconds, Settings


class _Fault(Settings):
    at_s: Seconds  # when it begins
    for_s: Seconds | None = None  # None: until the end of the run

    def is_active(self, time_s: float) -> bool:
        return self.at_s <= time_s and (self.for_s is None or time_s < self.at_s + self.for_s)

    @property
    def edges_s(self) -> tuple[float, ...]:
        return (self.at_s,) if self.for_s is None else (self.at_s, self.at_s + self.for_s)


class NodeLoss(_Fault):
    """The node disappears with its replicas; the job restarts without them after `recovery_s`."""

    kind: Literal["node_loss"]  # chooses this fault
    node: str  # which one
    recovery_s: Seconds = 30.0  # how long the job stands still


class Straggler(_Fault):
    """The node works at a fraction of its speed."""

    kind: Literal["straggler"]  # chooses this fault
    node: str  # which one
    speed_factor: Annotated[float, Field(gt=0)]  # its speed, as a share of the usual one


class SlowNetwork(_Fault):
    """Every round trip takes longer by a factor."""

    kind: Literal["slow_network"]  # chooses this fault
    rtt_factor: Annotated[float, Field(gt=0)]  # of every round trip


class LostMetrics(_Fault):
    """Nothing is measured; the job itself goes on."""

    kind: Literal["lost_metrics"]  # chooses this fault


class FailedSavepoint(_Fault):
    """A reconfiguration requested meanwhile stops the job, fails, and the job resumes as it was."""

    kind: Literal["failed_savepoint"]  # chooses this fault


Fault = Annotated[
    NodeLoss | Straggler | SlowNetwork | LostMetrics | FailedSavepoint, Field(discriminator="kind")
]
