"""By the adaptive scheduler: new TaskManagers first, then other requirements, then the rest leaves. The job
works on while TaskManagers start."""

from __future__ import annotations

from collections.abc import Collection

from controller.testbeds.flink.fleet import Fleet
from controller.testbeds.flink.job import Counts, RunningJob


def rescale(job: RunningJob, fleet: Fleet, nodes: Collection[str], counts: Counts) -> None:
    fleet.change({*fleet.asked_for(), *nodes})
    fleet.wait_for_all_of(nodes)
    job.require(counts)
    job.wait_until_it_runs(counts)
    # Flink chooses which slots it gives back: where it kept one of a node that is to leave, the task moves
    # when its TaskManager goes, from the last checkpoint.
    fleet.change(nodes)
    fleet.wait_for(nodes)
    job.wait_until_it_runs(counts)
