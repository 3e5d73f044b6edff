"""The job takes every slot there is, up to its largest parallelism: TaskManagers come and go, no more."""

from __future__ import annotations

from collections.abc import Collection

from controller.testbeds.flink.fleet import Fleet
from controller.testbeds.flink.job import Counts, RunningJob


def rescale(job: RunningJob, fleet: Fleet, nodes: Collection[str], counts: Counts) -> None:
    there = {*fleet.asked_for(), *nodes}
    job.use(there)
    fleet.change(there)
    fleet.wait_for_all_of(nodes)
    job.use(nodes)
    fleet.change(nodes)
    fleet.wait_for(nodes)
    job.wait_until_it_runs(counts)
