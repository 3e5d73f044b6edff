"""What `testbed:` of an experiment may say of a real Flink."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from controller.testbeds import TestbedSettings
from fogscale.settings import PositiveSeconds, Seconds

Layout = Literal["split", "fog"]
Style = Literal["restart", "in_place", "elastic"]


class FlinkSettings(TestbedSettings):
    kind: Literal["flink"] = "flink"  # a real one
    name: Literal["local", "pi"] = "local"  # whose inventory built it
    job: str = "taxi"  # of workloads/jobs/catalog.yml
    job_settings: dict[str, str | int | bool] = Field(default_factory=dict)  # the job's own, e.g. cost-us
    # Where its operators run. split: those that follow the load in the fog, the others on the services node;
    # fog: one instance of every operator in each slot of the fog.
    layout: Layout = "split"
    chained: bool = False  # operators that can share a thread do: then nobody sees back pressure
    style: Style = "restart"  # how the job comes to another set of nodes
    # What 1, 2, … replicas can do per scaled operator, as measured: demand follows from it.
    capacity_per_s: dict[str, tuple[Annotated[float, Field(gt=0)], ...]] = Field(default_factory=dict)
    span_s: PositiveSeconds | None = None  # how much of the load, in its own time; None: all of it
    start_at_s: Seconds = 0.0  # where in the load it begins
    sample_interval_s: PositiveSeconds = 5.0  # between two samples of the truth
    metric_window_s: PositiveSeconds = 15.0  # of rates and ratios; Prometheus reads every 5 s
    patience_s: PositiveSeconds = 180.0  # for TaskManagers to start, for a savepoint, for the job to run
    drain_limit_s: Seconds = 600.0  # after the workload's end
    # By how much periods of policies and guards are shorter than the paper's: what a restart takes here to
    # what it takes there. They are written with it; the report holds it against the restarts it measured.
    time_scale: Annotated[float, Field(gt=0)] = 1.0
