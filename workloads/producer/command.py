"""`fogscale produce` replays a workload into Kafka, `fogscale audit` reads a topic back and judges it."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from fogscale.console import Json, err, if_interrupted, out, print_json, progress_bar
from fogscale.documents import read_json
from fogscale.errors import FogscaleError, Interrupted
from fogscale.files import read_document, write_whole
from fogscale.signals import while_ending

if TYPE_CHECKING:
    from workloads.producer.audit import Verdict
    from workloads.producer.chunks import Task
    from workloads.producer.pacing import Tally
    from workloads.producer.report import Report
    from workloads.producer.tasks import Job
    from workloads.records.format import Records
    from workloads.workload import Workload

Bootstrap = Annotated[str, typer.Option(help="Addresses of brokers: host:port, separated by commas.")]
Topic = Annotated[str, typer.Option(help="The topic; a workload per operator takes TOPIC-operator for each.")]
Config = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY=VALUE|@FILE",
        help="A setting of librdkafka, e.g. linger.ms=20, or a file with one a line, for passwords.",
    ),
]
Speed = Annotated[float | None, typer.Option(help="Trace seconds per second; default: the workload's.")]
Format = Annotated[str | None, typer.Option(help="Format of the records; default: the workload's.")]
Duration = Annotated[float | None, typer.Option(min=0, help="Seconds to send; default: to the end.")]
ONE_INTERRUPT_S = 1.0  # `timeout` signals a process, then its group: within this time it means one interrupt
ReportFile = Annotated[Path | None, typer.Option("--report", help="The run's report, as JSON.")]


def produce(
    bootstrap: Bootstrap,
    topic: Topic,
    workload: Annotated[str, typer.Option(help="A workload's name, or the path of your own.")],
    parameters: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A parameter of the workload.")
    ] = None,
    speed: Speed = None,
    copies: Annotated[int | None, typer.Option(help="Identical records sent together.")] = None,
    scale: Annotated[float | None, typer.Option(help="Share of the trace's records.")] = None,
    records: Format = None,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same records and arrivals.")] = 1,
    start_at: Annotated[float, typer.Option(min=0, help="Seconds of the replay to leave out.")] = 0.0,
    duration: Duration = None,
    first_record: Annotated[int, typer.Option(min=0, help="Go on with this record.")] = 0,
    run: Annotated[str | None, typer.Option(help="Name of the run in the headers; default: random.")] = None,
    processes: Annotated[str, typer.Option(help="How many processes send: auto, or a number.")] = "auto",
    create_topic: Annotated[
        int | None, typer.Option(min=1, metavar="PARTITIONS", help="Create the topic if it is not there.")
    ] = None,
    config: Config = None,
    audit_too: Annotated[bool, typer.Option("--audit", help="Read everything back and judge it.")] = False,
    report_file: ReportFile = None,
    as_json: Json = False,
) -> None:
    """Replay a workload into Kafka: on schedule whatever the broker does, nothing lost, nothing twice."""
    from workloads import catalog
    from workloads.command import parameters_of
    from workloads.producer.processes import send
    from workloads.producer.report import report_of
    from workloads.producer.tasks import Part, job_of

    chosen = catalog.load(workload, **parameters_of(parameters or []))
    pace = replace(chosen.replay, **_given(speed=speed, copies=copies, scale=scale))
    part = Part(start_at, duration, first_record)
    job = job_of(chosen, pace, records_of(chosen, records, pace.scale), topic, _run_name(run), seed, part)
    settings = settings_of(config or [])
    _check_writable(report_file)
    with if_interrupted("nothing was sent"):
        tasks = _tasks(job, processes)
        _prepare(bootstrap, job, settings, create_topic)
    with _interrupts() as interrupts, _progress(job) as tell:
        outcome = send(tasks, bootstrap, settings, interrupts, tell)
    report = report_of(job, tasks, outcome)
    try:
        verdicts = _kept_and_judged(report, report_file, bootstrap, settings, audit_too)
    except FogscaleError:
        _print(report, as_json)
        raise
    _hand_out(report, verdicts, audit_too, report_file, as_json)


def audit(
    bootstrap: Bootstrap,
    topic: Topic,
    run: Annotated[str | None, typer.Option(help="Judge only this run.")] = None,
    report_file: ReportFile = None,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Read a topic back and judge each run in it: lost, duplicated, out of order."""
    from workloads.producer.audit import Log, read, verdicts, whole_run
    from workloads.producer.report import audited

    told = None if report_file is None else _told(report_file, topic)
    if told is not None and run not in (None, told.run):
        raise FogscaleError(f"{report_file} is of run '{told.run}', not of '{run}': leave one of them out")
    with if_interrupted("the topic is as it was"), progress_bar(f"reading {topic}", 1.0) as progress:
        reading = read(bootstrap, topic, _share_done(progress), settings_of(config or []))
    if run is not None and run not in reading.runs:
        found = ", ".join(sorted(reading.runs)) or "none"
        raise FogscaleError(f"topic '{topic}' holds no record of run '{run}': name one of: {found}")
    expected = {}
    if told is not None:
        expected[told.run] = whole_run(reading.runs.get(told.run, Log()), told.sent, told.run_first)
    judged = [each for each in verdicts(reading, expected) if run in (None, each.run)]
    if as_json:
        rows = [audited(topic, verdict) for verdict in judged]
        print_json({"runs": rows, "foreign": reading.foreign, "deleted": reading.deleted})
    else:
        for verdict in judged:
            out.print(f"run {verdict.run}: {verdict.text}", highlight=False, soft_wrap=True)
        if reading.foreign:
            out.print(f"{reading.foreign} records of other senders", highlight=False)
        if reading.deleted:
            out.print(f"{reading.deleted} records were deleted by the broker (retention)", highlight=False)
    if not judged:
        raise FogscaleError(f"topic '{topic}' holds no record that fogscale produce sent")
    _complain([(topic, verdict) for verdict in judged])


def settings_of(given: Sequence[str]) -> dict[str, str]:
    """Of settings, or files of them: what stands on a command line can be read by everyone on the machine."""
    settings = {}
    pairs = chain.from_iterable(_lines_of(one[1:]) if one.startswith("@") else [(one, one)] for one in given)
    for pair, place in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise FogscaleError(f"--config {place}: write a setting, = and its value, e.g. linger.ms=20")
        settings[key.strip()] = value.strip()
    return settings


def _lines_of(path: str) -> list[tuple[str, str]]:
    """Each with its place, to be named instead of what may be a password."""
    try:
        lines = read_document(Path(path)).splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise FogscaleError(f"--config @{path}: cannot read it ({error})") from error
    return [
        (line, f"@{path}, line {number}")
        for number, line in enumerate(lines, start=1)
        if line.strip() and not line.lstrip().startswith("#")
    ]


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _run_name(name: str | None) -> str:
    if name is None:
        return secrets.token_hex(4)
    if not name or ":" in name or not name.isascii() or not name.isprintable():
        raise FogscaleError(f"--run {name!r}: use letters and digits, without a colon")
    return name


def records_of(workload: Workload, name: str | None, scale: float) -> Records:
    from workloads.records.registry import create

    if name is not None:
        return create(name)
    if workload.excerpts:
        from workloads.importing.events import excerpt_records  # Arrow is heavy

        return excerpt_records(workload.excerpts, workload.profile.total_records * scale)
    if workload.records is None:
        raise FogscaleError(
            f"workload '{workload.name}' joins events of a trace and generated ones: name --records for all"
        )
    return create(workload.records)


def _tasks(job: Job, processes: str) -> list[Task]:
    from workloads.producer.processes import processes_for
    from workloads.producer.tasks import shared

    if processes != "auto" and not (processes.isdecimal() and 1 <= int(processes) <= 64):
        raise FogscaleError(f"--processes {processes}: write auto, or a number from 1 to 64")
    return [
        part
        for task in job.tasks
        for part in shared(task, processes_for(task) if processes == "auto" else int(processes))
    ]


def _prepare(bootstrap: str, job: Job, settings: Mapping[str, str], create: int | None) -> None:
    """One clear line for what can be known before anything is sent."""
    from workloads.producer.sender import prepare_topics

    prepare_topics(bootstrap, [task.topic for task in job.tasks], settings, create)


def _kept_and_judged(
    report: Report, file: Path | None, bootstrap: str, settings: Mapping[str, str], audit_too: bool
) -> list[tuple[str, Verdict]]:
    _write(report, file)  # reading back may fail, or be interrupted
    with if_interrupted("all that is reported was sent, and can be read back with fogscale audit"):
        return _read_back(bootstrap, report, settings) if audit_too else []


def _read_back(bootstrap: str, report: Report, settings: Mapping[str, str]) -> list[tuple[str, Verdict]]:
    from workloads.producer.audit import Log, judge, read, whole_run

    found = []
    for topic in report.topics:
        with progress_bar(f"reading {topic.topic} back", 1.0) as progress:
            reading = read(bootstrap, topic.topic, _share_done(progress), settings)
        log = reading.runs.get(report.run, Log())
        expected = whole_run(log, topic.numbers, topic.run_first_number)
        found.append((topic.topic, judge(report.run, log, expected)))
    return found


def _hand_out(
    report: Report,
    verdicts: Sequence[tuple[str, Verdict]],
    was_audited: bool,
    file: Path | None,
    as_json: bool,
) -> None:
    from workloads.producer.report import audited

    if was_audited:
        report = replace(report, audit=[audited(topic, verdict) for topic, verdict in verdicts])
    _print(report, as_json)
    if not as_json:
        for topic, verdict in verdicts:
            out.print(f"audit of {topic}: {verdict.text}", highlight=False, soft_wrap=True)
    if was_audited:
        _write(report, file)
    _complain(verdicts)
    if report.interrupted:
        raise Interrupted(_where_it_stopped(report))


def _print(report: Report, as_json: bool) -> None:
    if as_json:
        print_json(report.as_dict())
    else:
        out.print(report.text, highlight=False, soft_wrap=True)


def _write(report: Report, file: Path | None) -> None:
    if file is not None:
        write_whole(file, json.dumps(report.as_dict()), "name a file you can write")


def _check_writable(file: Path | None) -> None:
    """Before a run of hours, not after it; what stands in the file stays until then."""
    if file is None:
        return
    if file.is_fifo():  # whoever reads it may come later
        return
    is_new = not file.exists()
    try:
        file.open("a").close()
    except OSError as error:
        raise FogscaleError(f"cannot write {file}: {error.strerror}; name a file you can write") from error
    if is_new:
        file.unlink()


def _where_it_stopped(report: Report) -> str:
    sent = f"interrupted: {report.acknowledged} of {report.wanted} records were sent and acknowledged"
    if report.next_record is None:
        unknown = report.sent - report.acknowledged
        return f"{sent}, {unknown} more were sent and are unknown" if unknown else sent
    return f"{sent}; go on with --run {report.run} --first-record {report.next_record}"


def _complain(verdicts: Sequence[tuple[str, Verdict]]) -> None:
    for topic, verdict in verdicts:
        if not verdict.clean:
            raise FogscaleError(f"topic '{topic}', run {verdict.run}: {verdict.text}")


class _Told(NamedTuple):
    """What a report says of one topic."""

    run: str
    sent: range  # the numbers
    run_first: int  # the number with which the run began


def _told(file: Path, topic: str) -> _Told:
    try:
        report = read_json(file)
        told = {
            each["topic"]: _Told(
                str(report["run"]),
                range(int(each["first_number"]), int(each["next_number"])),
                int(each["run_first_number"]),
            )
            for each in report["topics"]
        }
    except (OSError, FogscaleError, ValueError, KeyError, TypeError) as error:
        raise FogscaleError(f"{file} is no report of fogscale produce: name the file it wrote") from error
    if topic not in told:
        raise FogscaleError(f"{file} is about {', '.join(told)}, not about '{topic}': name its topic")
    return told[topic]


def _share_done(progress: Callable[[float], None] | None) -> Callable[[float, float], None]:
    return lambda done, total: None if progress is None else progress(done / max(total, 1))


@contextmanager
def _interrupts() -> Iterator[Callable[[], int]]:
    """Counts interruptions instead of ending at once: what was sent is waited for and reported."""
    seen_s: list[float] = []

    def note(_number: int, _frame: object) -> None:
        now_s = time.monotonic()
        if not seen_s or now_s - seen_s[-1] > ONE_INTERRUPT_S:
            seen_s.append(now_s)

    with while_ending(note):
        yield lambda: len(seen_s)


@contextmanager
def _progress(job: Job) -> Iterator[Callable[[list[Tally]], None]]:
    """A bar on a terminal: acknowledged, rate now and wanted, backlog, errors."""
    if not err.is_terminal:
        yield lambda _tallies: None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from workloads.producer.speedometer import Speedometer

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[now]}"),
    )
    with Progress(*columns, console=err, transient=True) as bar:
        row = bar.add_task(job.workload, total=job.records, now="")
        speedometer = Speedometer()

        def tell(tallies: list[Tally]) -> None:
            done = sum(tally.acknowledged for tally in tallies)
            bar.update(row, completed=done, now=speedometer.text(tallies))

        yield tell
