"""What metrics are called, how they are written, and which way is better."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Label:
    name: str
    unit: str
    digits: int
    meaning: str
    lower_is_better: bool = True
    scale: float = 1.0  # from the stored value to the unit shown

    def text(self, value: float) -> str:
        """The number as shown, without its unit."""
        return f"{value * self.scale:,.{self.digits}f}"


LABELS: Mapping[str, Label] = {
    "accuracy_o": Label("Over-provisioning", "replicas", 3, "Mean number of replicas beyond demand"),
    "accuracy_u": Label("Under-provisioning", "replicas", 3, "Mean number of replicas short of demand"),
    "timeshare_o": Label("Time over-provisioned", "%", 2, "Share of time with more replicas than demand"),
    "timeshare_u": Label("Time under-provisioned", "%", 2, "Share of time with fewer replicas than demand"),
    "excess_time": Label(
        "Excess time",
        "of T",
        3,
        "Time to work off the backlog after the workload's end, relative to its span T",
    ),
    "reconfigurations": Label("Reconfigurations", "", 1, "Reconfigurations started"),
    "cost": Label("Cost", "replica-min", 1, "Replica-minutes over the whole run, the excess included"),
    "processed_ratio": Label(
        "Processed in time",
        "%",
        2,
        "Share of all records processed by the workload's end",
        lower_is_better=False,
        scale=100,
    ),
}
