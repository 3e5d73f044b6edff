"""What the user asked for, worked out: a run's tasks, one topic for the job's source or one per operator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from fogscale.errors import FogscaleError
from workloads.producer.chunks import Task
from workloads.producer.schedule import part_of, schedule_of
from workloads.records.format import Records, Share
from workloads.replay import ReplaySettings
from workloads.workload import Workload


@dataclass(frozen=True)
class Part:
    """The window of the replay that is sent."""

    start_at_s: float = 0.0
    duration_s: float | None = None
    first_record: int = 0


@dataclass(frozen=True)
class Job:
    run: str
    workload: str
    seed: int
    replay: ReplaySettings
    tasks: tuple[Task, ...]  # one per topic

    @property
    def records(self) -> int:
        return sum(task.schedule.records for task in self.tasks)

    @property
    def starts_at_s(self) -> float:
        return min(task.schedule.starts_at_s for task in self.tasks)


def job_of(
    workload: Workload,
    replay: ReplaySettings,
    records: Records,
    topic: str,
    run: str,
    seed: int = 1,
    part: Part = Part(),  # noqa: B008 - frozen
) -> Job:
    """Arrivals are drawn as a simulated run draws them: operators one after another from one generator."""
    profiles: Mapping[str, object] = workload.inputs
    if profiles and part.first_record:
        raise FogscaleError(
            f"workload '{workload.name}' drives several operators, each with numbers of its own:"
            " use --start-at instead of --first-record"
        )
    rng = np.random.default_rng([seed, 0])
    named = {f"{topic}-{name}": each for name, each in workload.inputs.items()} or {topic: workload.profile}
    tasks = []
    for name, profile in named.items():
        whole = schedule_of(profile, replay, rng)
        tasks.append(
            Task(
                name, part_of(whole, part.start_at_s, part.duration_s, part.first_record), records, seed, run
            )
        )
    return Job(run, workload.name, seed, replay, tuple(tasks))


def shared(task: Task, processes: int) -> list[Task]:
    """The same task for several processes, each with its share of the keys."""
    return [replace(task, share=Share(index, processes)) for index in range(processes)]
