"""As the Gesscale paper does it: stop with a savepoint, all TaskManagers away, a new set of them, resume."""

from __future__ import annotations

from collections.abc import Collection

from controller.testbeds.flink.fleet import Fleet
from controller.testbeds.flink.job import Counts, RunningJob


def rescale(job: RunningJob, fleet: Fleet, nodes: Collection[str], counts: Counts) -> None:
    if job.id is not None:  # None: a restart that failed half-way is tried again from its savepoint
        job.stop()
    fleet.change(())
    fleet.wait_for(())
    fleet.change(nodes)
    fleet.wait_for(nodes)
    job.use(nodes)
    job.start(counts)
    job.wait_until_it_runs(counts)
