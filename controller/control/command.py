"""`fogscale control`: arguments in, lines out; what the user can fix is said before anything is touched."""

from __future__ import annotations

import fcntl
import shlex
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import typer
from rich.table import Table

from controller.contract import Policy
from controller.control.settings import ControlSettings, policy_named, settings_from
from controller.journal import Journal
from controller.loop import check_capabilities
from controller.model import Capabilities, Capability
from controller.recording import JOURNAL, OperatorFacts, RunFacts, run_folder
from fogscale.clock import clock
from fogscale.console import Json, err, out, print_json
from fogscale.errors import FogscaleError, unknown
from fogscale.settings import seconds_of

# What a plan may ask for, not what has to be measured: whoever only watches needs none of it.
ACTS = frozenset(
    {
        Capability.OPERATOR_PARALLELISM,
        Capability.NODE_CHOICE,
        Capability.OPERATOR_PINNING,
        Capability.STANDBY,
        Capability.NAMED_INSTANCES,
        Capability.INSTANT_RESCALE,
    }
)
LOOK_EVERY_S = 0.5
Name = Literal["in_place", "restart"]


@dataclass(frozen=True)
class Wanted:
    policies: tuple[str, ...]
    job: str | None
    operators: tuple[str, ...]
    max_replicas: int | None
    window_s: float
    scrape_s: float
    cores: float | None
    seconds: float | None
    style: Name
    dry_run: bool


def control(
    flink: Annotated[str, typer.Option(help="URL of Flink's REST API, e.g. http://jobmanager:8081.")],
    prometheus: Annotated[str, typer.Option(help="URL of the Prometheus that reads Flink's reporters.")],
    policy: Annotated[str, typer.Option(help="Who decides; with --dry-run several, separated by commas.")],
    job: Annotated[
        str | None, typer.Option(help="Name or id of the job; default: the only one that runs.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only watch: journal what each policy would do.")
    ] = False,
    style: Annotated[
        str, typer.Option(help="How to rescale: in_place (adaptive scheduler) or restart (savepoint, --jar).")
    ] = "in_place",
    jar: Annotated[Path | None, typer.Option(help="The job's jar, for --style restart.")] = None,
    entry_class: Annotated[str | None, typer.Option(help="Its main class; default: the jar's.")] = None,
    arguments: Annotated[str, typer.Option(help="Its arguments, as in a shell.")] = "",
    operators: Annotated[
        str, typer.Option(help="Operators that may be scaled, separated by commas; default: all but sources.")
    ] = "",
    max_replicas: Annotated[
        int | None, typer.Option(min=1, help="Of each operator; default: as many as there are slots.")
    ] = None,
    duration: Annotated[
        str | None, typer.Option("--for", help="How long, e.g. 2h; default: until Ctrl-C or the job's end.")
    ] = None,
    window: Annotated[str, typer.Option(help="Over which rates and ratios are taken.")] = "60s",
    scrape: Annotated[str, typer.Option(help="How often Prometheus reads the reporters.")] = "15s",
    cores: Annotated[
        float | None,
        typer.Option(help="Cores of a TaskManager, where a container has fewer than its JVM sees."),
    ] = None,
    settings: Annotated[
        Path | None, typer.Option(help="YAML: policies (parameters, guards, aliases), guards, rtt_ms.")
    ] = None,
    ca: Annotated[Path | None, typer.Option(help="Whom to trust as Flink (PEM).")] = None,
    certificate: Annotated[Path | None, typer.Option(help="Our certificate for Flink (PEM).")] = None,
    key: Annotated[Path | None, typer.Option(help="Its key (PEM).")] = None,
    token: Annotated[Path | None, typer.Option(help="File with a bearer token for Flink.")] = None,
    prometheus_ca: Annotated[Path | None, typer.Option(help="Whom to trust as Prometheus (PEM).")] = None,
    prometheus_token: Annotated[
        Path | None, typer.Option(help="File with a bearer token for Prometheus.")
    ] = None,
    prometheus_login: Annotated[
        Path | None, typer.Option(help="File with user:password for Prometheus.")
    ] = None,
    results: Annotated[Path, typer.Option("--out", help="Folder of the journals.")] = Path("results/control"),
    as_json: Json = False,
) -> None:
    """Drive a Flink of your own, or watch (--dry-run) what policies would do with it."""
    from controller.testbeds.flink.http import Door

    if style not in get_args(Name):
        raise FogscaleError(unknown("style", style, get_args(Name)))
    wanted = Wanted(
        _names(policy), job, _names(operators), max_replicas, _seconds(window, "--window"),
        _seconds(scrape, "--scrape"), cores, None if duration is None else _seconds(duration, "--for"),
        "restart" if style == "restart" else "in_place", dry_run,
    )  # fmt: skip
    doors = (
        Door(flink, _text(ca), _text(certificate), _text(key), _text(token)),
        Door(prometheus, _text(prometheus_ca), None, None, _text(prometheus_token), _login(prometheus_login)),
    )
    application = None if jar is None else (jar, entry_class, tuple(shlex.split(arguments)))
    told = _follow(wanted, doors, application, settings_from(settings), results, as_json)
    if as_json:
        print_json(told)
    else:
        _show(told)


def _names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def _seconds(text: str, option: str) -> float:
    try:
        seconds = float(seconds_of(text))
    except ValueError as error:
        raise FogscaleError(f"{option}: {error}") from None
    if seconds <= 0:
        raise FogscaleError(f"{option}: {text} is no span of time: give e.g. 30s")
    return seconds


def _text(file: Path | None) -> str | None:
    try:
        return None if file is None else file.read_text().strip() + "\n" * (file.suffix == ".pem")
    except OSError as error:
        raise FogscaleError(f"cannot read {file}: {error.strerror}") from None


def _login(file: Path | None) -> tuple[str, str] | None:
    text = _text(file)
    if text is None:
        return None
    user, colon, password = text.strip().partition(":")
    if not colon:
        raise FogscaleError(f"{file} holds no user:password: write both in one line")
    return user, password


def _follow(
    wanted: Wanted,
    doors: Sequence[Any],
    application: tuple[Path, str | None, tuple[str, ...]] | None,
    settings: ControlSettings,
    results: Path,
    as_json: bool,
) -> dict[str, Any]:
    """Watches until it is over; what each policy wanted."""
    from controller.control.driving import Application, Driver, check_style
    from controller.control.found import found_job, shape_of, topology_of
    from controller.control.monitor import ReporterMonitor
    from controller.control.shadow import Decider, Watch
    from controller.control.watched import Watched
    from controller.testbeds.flink.prometheus import Prometheus
    from controller.testbeds.flink.rest import Flink

    if not wanted.policies:
        raise FogscaleError("name a policy: --policy gesscale ('fogscale policies' lists them)")
    if len(wanted.policies) > 1 and not wanted.dry_run:
        raise FogscaleError("one policy drives: name one, or compare several with --dry-run")
    with ExitStack() as stack:
        flink = Flink(doors[0], only_look=wanted.dry_run)
        prometheus = Prometheus(doors[1])
        stack.callback(flink.close)
        stack.callback(prometheus.close)
        job = found_job(flink, wanted.job)
        taskmanagers = flink.taskmanagers()
        slots = sum(each.slots for each in taskmanagers)
        shape = shape_of(flink.job(job.id), slots, wanted.max_replicas, wanted.operators)
        monitor = ReporterMonitor(prometheus, shape.operators, wanted.window_s, wanted.scrape_s, wanted.cores)
        say = _Teller(as_json)
        watched = Watched(flink, monitor, shape, job.id, settings.rtt_ms, notice=say.notice)
        topology = topology_of(shape, taskmanagers, settings.rtt_ms)
        policies = {name: policy_named(name, settings, topology) for name in wanted.policies}
        driver = None
        if not wanted.dry_run:
            chosen = None if application is None else Application(*application)
            stack.enter_context(_alone(flink.url, job.id))
            check_style(flink, job.id, wanted.style, chosen)
            driver = Driver(watched, wanted.style, PATIENCE_S, chosen, say.notice)
            stack.callback(driver.close)
        say.notice(_opening(job.name, shape.scaled, wanted))
        _check_figures(watched, policies, wanted, settings)
        folder = results / datetime.now(UTC).strftime("%Y-%m-%dT%H-%M-%S")
        deciders = [
            Decider(name, each, _journal(folder, name, watched, wanted)) for name, each in policies.items()
        ]
        watch = Watch(watched, deciders, say.decision, None if driver is None else driver.carry_out)
        _turn(watch, wanted.seconds)
        return {
            "job": job.name,
            "folder": str(folder),
            "ended": watched.ended or "stopped here",
            "seconds": round(watched.now_s(), 1),
            "driven": driver is not None,
            "policies": watch.end(),
        }


PATIENCE_S = 180.0


def _opening(job: str, scaled: Sequence[str], wanted: Wanted) -> str:
    names = ", ".join(scaled)
    if wanted.dry_run:
        return f"watching job '{job}' ({names}); nothing is changed. Ctrl-C ends it."
    return (
        f"driving job '{job}' ({names}) by {wanted.style}; Flink itself chooses the nodes, so that of a plan"
        " only the numbers count. Ctrl-C ends it, and the job runs on."
    )


def _check_figures(
    watched: Any, policies: dict[str, Policy], wanted: Wanted, settings: ControlSettings
) -> None:
    """What every policy needs must be measured here. Metrics may take a while after a job's start."""
    from controller.control.monitor import figures_of

    needs = {name: policy.needs for name, policy in policies.items()}
    offered: Capabilities = frozenset()
    deadline_s = time.monotonic() + wanted.window_s + 4 * wanted.scrape_s
    while True:
        seen = watched.observe()
        offered = figures_of(seen, watched.shape.scaled) | _acts(wanted, settings)
        if all(need <= offered for need in needs.values()) or time.monotonic() > deadline_s or watched.ended:
            break
        time.sleep(min(wanted.scrape_s, 5.0))
    for name, need in needs.items():
        check_capabilities(need, offered, name, f"Flink at {watched.flink.url}")


def _acts(wanted: Wanted, settings: ControlSettings) -> Capabilities:
    """Who only watches carries nothing out. Who drives has counts, but cannot choose nodes by round trips."""
    if wanted.dry_run:
        return ACTS | ({Capability.RTT} if settings.rtt_ms is not None else frozenset())
    return frozenset({Capability.OPERATOR_PARALLELISM, Capability.NODE_CHOICE})


def _journal(folder: Path, policy: str, watched: Any, wanted: Wanted) -> Journal:
    """As every run has one, so that `fogscale analyze` reads it; nobody knows the capacity of such a job."""
    operators = watched.shape.operators
    facts = RunFacts(
        experiment="control",
        policy=policy,
        workload="".join(each if each.isalnum() or each in "._-" else "_" for each in watched.shape.job),
        seed=1,
        duration_s=wanted.seconds or 0.0,
        operator=(watched.shape.scaled or [operators[0].name])[0],
        capacity_per_s=(),
        n_min=1,
        n_max=max(each.n_max or 1 for each in operators),
        operators=tuple(
            OperatorFacts(
                name=each.name, capacity_per_s=(), n_min=each.n_min, n_max=each.n_max, records_per_input={}
            )
            for each in operators
        ),
    )
    values = asdict(facts)
    header = {**values, "testbed": "shadow" if wanted.dry_run else "control", "settings": asdict(wanted)}
    topology = watched.observe().topology
    return Journal.open(folder / run_folder(values) / JOURNAL, header, topology)


def _turn(watch: Any, seconds: float | None) -> None:
    """Until the time is up, the job has ended, or Ctrl-C."""
    over = threading.Event()
    before = signal.signal(signal.SIGINT, lambda _signal, _frame: over.set())
    watch.job.zero_s = time.time()
    try:
        while not over.is_set() and not watch.job.ended:
            if seconds is not None and watch.job.now_s() >= seconds:
                return
            watch.once()
            over.wait(LOOK_EVERY_S)
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _alone(url: str, job: str) -> Iterator[None]:
    """One controller of this machine drives a job at a time."""
    from fog.folders import state_folder

    folder = state_folder("control")
    folder.mkdir(parents=True, exist_ok=True)
    name = blake2b(f"{url} {job}".encode(), digest_size=8).hexdigest()
    with (folder / f"{name}.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise FogscaleError(
                f"another controller drives job {job} at {url}: stop it, or watch with --dry-run"
            ) from None
        yield


class _Teller:
    """Lines as they come; with --json to standard error, which is for people then."""

    def __init__(self, as_json: bool) -> None:
        self._to = err if as_json else out
        self._began_s = time.time()

    def notice(self, what: str) -> None:
        self._to.print(what, highlight=False, markup=False, soft_wrap=True)

    def decision(self, policy: str, change: str, reason: str) -> None:
        line = f"{clock(time.time() - self._began_s)}  {policy:<14} {change:<16} {reason}"
        self._to.print(line, highlight=False, markup=False, soft_wrap=True)


def _show(told: dict[str, Any]) -> None:
    out.print(f"\n{told['ended']} after {clock(told['seconds'])}:", highlight=False)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("policy")
    for title in ("looks", "without metrics", "changes wanted", "mean replicas", "fewest–most", "content"):
        table.add_column(title, justify="right")
    for name, each in told["policies"].items():
        mean, content = each["mean_replicas_wanted"], each["content_ratio"]
        table.add_row(
            name,
            str(each["looks"]),
            str(each["without_metrics"]),
            str(each["changes_wanted"]),
            "–" if mean is None else f"{mean:.2f}",
            f"{each['fewest_wanted']}–{each['most_wanted']}",
            "–" if content is None else f"{content:.0%}",
        )
    out.print(table)
    out.print(f"journals: {told['folder']}", highlight=False, soft_wrap=True)
