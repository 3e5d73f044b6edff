"""What metrics are called, how they are written, and which way is better."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


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


def label_of(metric: str) -> Label:
    """How a metric is shown: those of a kind of records (kind_time_s.image) are named after it, and one that
    nobody knows after itself."""
    if metric in LABELS:
        return LABELS[metric]
    family, _, kind = metric.partition(".")
    if family == "kind_time_s" and kind:
        return Label(f"Time of {kind} records", "s", 2, f"Mean time in the job of records of the kind {kind}")
    return Label(metric, "", 3, "")


LABELS: Mapping[str, Label] = {
    "offered_rate_per_s": Label("Offered", "records/s", 1, "Mean rate offered to the operator"),
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
    "job_cost": Label("Cost of the job", "replica-min", 1, "The same for all operators together"),
    "instance_time_s": Label(
        "Instance time", "1000 s", 2, "Time of all instances, booting ones included", scale=1e-3
    ),
    "mean_instances": Label("Instances", "", 2, "Mean number of instances in use"),
    "mean_standby": Label("On standby", "", 2, "Mean number of idle instances kept ready"),
    "response_mean_ms": Label("Response time", "ms", 1, "Mean time of a record in the job"),
    "response_p50_ms": Label("Response time, P50", "ms", 1, "What half of all records stayed within"),
    "response_p95_ms": Label("Response time, P95", "ms", 1, "What 95 % of all records stayed within"),
    "response_p99_ms": Label("Response time, P99", "ms", 1, "What 99 % of all records stayed within"),
    "monitored_mean_ms": Label("Response time over time", "ms", 1, "Time mean of the mean response time"),
    "monitored_p50_ms": Label(
        "Response time over time, P50", "ms", 1, "What the mean response time was within for half of the time"
    ),
    "monitored_p95_ms": Label(
        "Response time over time, P95", "ms", 1, "What it was within for 95 % of the time"
    ),
    "downtime_timeshare": Label("Down", "% of time", 2, "Share of time in which an operator had no replica"),
    "late_records": Label("Late records", "1000", 2, "Records that missed their deadline", scale=1e-3),
    "violation_timeshare": Label("Objective missed", "% of time", 2, "Share of time in which it was missed"),
    "violations": Label("Violations", "", 1, "How often the objective began to be missed"),
    "steady_violation_timeshare": Label(
        "Objective missed, restarts aside",
        "% of time",
        2,
        "Share of time in which it was missed, not counting the grace after a reconfiguration",
    ),
    "steady_violations": Label(
        "Violations, restarts aside",
        "",
        1,
        "How often the objective began to be missed outside the grace after a reconfiguration",
    ),
    "processed_ratio": Label(
        "Processed in time",
        "%",
        2,
        "Share of all records processed by the workload's end",
        lower_is_better=False,
        scale=100,
    ),
}


def measured(metrics: pd.DataFrame) -> list[tuple[str, Label]]:
    """What a table of runs has values for, in the order in which it is shown."""
    kinds = [name for name in metrics.columns if name.startswith("kind_time_s.")]
    names = [name for name in (*LABELS, *kinds) if name in metrics and metrics[name].notna().any()]
    return [(name, label_of(name)) for name in names]
