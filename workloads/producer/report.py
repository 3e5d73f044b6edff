"""What a run of the producer reports: what was to be sent, what was, and how late."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from workloads.producer.audit import Verdict
from workloads.producer.chunks import Task
from workloads.producer.lateness import LATE_S, Lateness
from workloads.producer.pacing import Tally
from workloads.producer.processes import Outcome
from workloads.producer.tasks import Job


@dataclass(frozen=True)
class TopicReport:
    """Of one topic. Records count copies; numbers are those in the headers."""

    topic: str
    wanted: int
    sent: int
    acknowledged: int
    run_first_number: int  # of an earlier leg, where the run was interrupted and went on
    first_number: int
    next_number: int  # the first that was not sent
    first_second: int  # of the replay; the two lists start there
    wanted_per_s: list[int]
    sent_per_s: list[int]

    @property
    def numbers(self) -> range:
        """What was sent into the topic."""
        return range(self.first_number, self.next_number)


@dataclass(frozen=True)
class Report:
    run: str
    workload: str
    seed: int
    speed: float
    copies: int
    scale: float
    processes: int
    started_ms: int  # the wall clock at second 0 of the whole replay
    duration_s: float
    wanted: int
    sent: int
    acknowledged: int
    lateness_p50_s: float | None
    lateness_p99_s: float | None
    lateness_max_s: float
    late_records: int  # by more than a second
    behind_s: float  # how long the oldest record that was due and not acknowledged was late
    backlog_peak: int
    broker_errors: int
    interrupted: bool
    next_record: (
        int | None
    )  # where an interrupted run can go on; None where nothing is left, or it is unknown
    topics: list[TopicReport]
    audit: list[dict[str, object]] | None = None

    def as_dict(self) -> dict[str, object]:
        return asdict(self)

    @property
    def text(self) -> str:
        rate = f", {self.acknowledged / self.duration_s:,.0f}/s" if self.duration_s > 0 else ""
        by = "1 process" if self.processes == 1 else f"{self.processes} processes"
        lines = [
            f"run {self.run}: {self.acknowledged:,} of {self.wanted:,} records acknowledged in"
            f" {self.duration_s:.1f} s{rate}, by {by}",
            f"late by {_ms(self.lateness_p50_s)} in the median, {_ms(self.lateness_p99_s)} at the 99th"
            f" percentile, {_ms(self.lateness_max_s)} at most",
        ]
        if self.late_records:
            lines.append(
                f"over {LATE_S:g} s behind for {self.behind_s:.1f} s: {self.late_records:,} records late,"
                f" at most {self.backlog_peak:,} due and not acknowledged"
            )
        if self.broker_errors:
            lines.append(f"the broker could not be reached {self.broker_errors} times")
        return "\n".join(lines)


def report_of(job: Job, tasks: Sequence[Task], outcome: Outcome) -> Report:
    """Adds up what the processes, one per task, have done."""
    topics = [_topic_report(task, _tallies(task.topic, tasks, outcome)) for task in job.tasks]
    lateness = Lateness()
    for tally in outcome.tallies:
        lateness.merge(tally.lateness)
    return Report(
        run=job.run,
        workload=job.workload,
        seed=job.seed,
        speed=job.replay.speed,
        copies=job.replay.copies,
        scale=job.replay.scale,
        processes=len(tasks),
        started_ms=round(outcome.start.zero_ms),
        duration_s=outcome.finished_s - outcome.start.zero_s - job.starts_at_s,
        wanted=job.records,
        sent=sum(topic.sent for topic in topics),
        acknowledged=sum(topic.acknowledged for topic in topics),
        lateness_p50_s=lateness.quantile_s(0.5),
        lateness_p99_s=lateness.quantile_s(0.99),
        lateness_max_s=lateness.max_s,
        late_records=lateness.late_records,
        behind_s=max(tally.behind_s for tally in outcome.tallies),
        backlog_peak=sum(tally.backlog_peak for tally in outcome.tallies),
        broker_errors=max(tally.broker_errors for tally in outcome.tallies),
        interrupted=outcome.interrupted,
        next_record=_next_record(job, topics),
        topics=topics,
    )


def audited(topic: str, verdict: Verdict) -> dict[str, object]:
    return {"topic": topic, **asdict(verdict), "clean": verdict.clean}


def _tallies(topic: str, tasks: Sequence[Task], outcome: Outcome) -> list[Tally]:
    return [tally for task, tally in zip(tasks, outcome.tallies, strict=True) if task.topic == topic]


def _topic_report(task: Task, tallies: list[Tally]) -> TopicReport:
    schedule = task.schedule
    sent: Counter[int] = Counter()
    for tally in tallies:
        sent.update(tally.sent_per_s)
    first = int(schedule.starts_at_s)
    last = max([int(schedule.ends_at_s), *sent])
    wanted = dict(enumerate(schedule.wanted_per_s().tolist()))
    return TopicReport(
        topic=task.topic,
        wanted=schedule.records,
        sent=sum(tally.sent for tally in tallies),
        acknowledged=sum(tally.acknowledged for tally in tallies),
        run_first_number=schedule.run_first * schedule.copies,
        first_number=schedule.first * schedule.copies,
        next_number=max(tally.position for tally in tallies) * schedule.copies,
        first_second=first,
        wanted_per_s=[wanted.get(second, 0) for second in range(first, last + 1)],
        sent_per_s=[sent[second] for second in range(first, last + 1)],
    )


def _next_record(job: Job, topics: list[TopicReport]) -> int | None:
    only = topics[0]
    if len(topics) > 1 or only.acknowledged != len(only.numbers) or only.acknowledged == only.wanted:
        return None
    return only.next_number // job.replay.copies


def _ms(seconds: float | None) -> str:
    if seconds is None:
        return "–"
    return f"{seconds * 1000:.0f} ms" if seconds < 10 else f"{seconds:.1f} s"
