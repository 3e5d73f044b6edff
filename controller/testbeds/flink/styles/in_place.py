"""By the adaptive scheduler: new TaskManagers first, then other requirements, then the rest leaves. The job
works on while TaskManagers start."""

from __future__ import annotations

from collections.abc import Collection

from controller.testbeds.flink.fleet import Fleet
from controller.testbeds.flink.job import Counts, RunningJob


def rescale(job: RunningJob, fleet: Fleet, nodes: Collection[str], counts: Counts) -> None:
    fleet.change({*fleet.asked_for(), *nodes})
    fleet.wait_for_all_of(nodes)
    job.use(nodes)  # so that slots of these are kept, and those of nodes that leave are given back
    job.require(counts)
    job.wait_until_it_runs(counts)
    # Where only the nodes change and not how many they are, nothing has happened yet: a task moves when its
    # TaskManager goes, from the last checkpoint.
    fleet.change(nodes)
    fleet.wait_for(nodes)
    job.wait_until_it_runs(counts)
