"""One stay of `fogscale control` at a Flink of one's own: the job is found, policies are checked, and each
looks and decides until the time is up."""

from __future__ import annotations

import fcntl
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any

from controller.contract import Policy
from controller.control.driving import Application, Driver, check_style
from controller.control.found import found_job, shape_of, topology_of
from controller.control.monitor import ReporterMonitor, figures_of
from controller.control.settings import ControlSettings, Wanted, policy_named
from controller.control.shadow import Decider, Watch
from controller.control.watched import Watched
from controller.journal import Journal
from controller.loop import check_capabilities
from controller.model import Capabilities, Capability
from controller.recording import JOURNAL, OperatorFacts, RunFacts, run_folder
from controller.testbeds.flink.http import Door
from controller.testbeds.flink.prometheus import Prometheus
from controller.testbeds.flink.rest import Flink
from fog.folders import state_folder
from fogscale.clock import SetClockWatch, clock
from fogscale.console import err, out
from fogscale.errors import FogscaleError
from fogscale.files import opened_lock
from fogscale.signals import while_ending

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
PATIENCE_S = 180.0


def follow(
    wanted: Wanted,
    doors: tuple[Door, Door],
    application: Application | None,
    settings: ControlSettings,
    results: Path,
    as_json: bool,
) -> dict[str, Any]:
    """Watches until it is over; what each policy wanted."""
    if not wanted.policies:
        raise FogscaleError("name a policy: --policy gesscale ('fogscale policies' lists them)")
    if len(wanted.policies) > 1 and not wanted.dry_run:
        raise FogscaleError("one policy drives: name one, or compare several with --dry-run")
    say = Teller(as_json)
    with ExitStack() as stack:
        watched = _watched(stack, wanted, doors, settings, say)
        topology = topology_of(watched.shape, watched.flink.taskmanagers(), settings.rtt_ms)
        policies = {name: policy_named(name, settings, topology) for name in wanted.policies}
        driver = None if wanted.dry_run else _driver(stack, watched, wanted, application, say)
        say.notice(_opening(watched.shape.job, watched.shape.scaled, wanted))
        _check_figures(watched, policies, wanted, settings)
        folder = results / datetime.now(UTC).strftime("%Y-%m-%dT%H-%M-%S")
        deciders = [
            Decider(name, each, _journal(folder, name, watched, wanted)) for name, each in policies.items()
        ]
        watch = Watch(watched, deciders, say.decision, None if driver is None else driver.carry_out)
        _turn(watch, wanted.seconds)
        return {
            "job": watched.shape.job,
            "folder": str(folder),
            "ended": watched.ended or "stopped here",
            "seconds": round(watched.now_s(), 1),
            "driven": driver is not None,
            "policies": watch.end(),
        }


def _watched(
    stack: ExitStack, wanted: Wanted, doors: tuple[Door, Door], settings: ControlSettings, say: Teller
) -> Watched:
    """The job that is wanted, its operators found, with whom to ask for metrics."""
    flink = Flink(doors[0], only_look=wanted.dry_run)
    stack.callback(flink.close)
    prometheus = Prometheus(doors[1])
    stack.callback(prometheus.close)
    job = found_job(flink, wanted.job)
    slots = sum(each.slots for each in flink.taskmanagers())
    shape = shape_of(flink.job(job.id), slots, wanted.max_replicas, wanted.operators)
    monitor = ReporterMonitor(prometheus, shape.operators, wanted.window_s, wanted.scrape_s, wanted.cores)
    return Watched(flink, monitor, shape, job.id, settings.rtt_ms, notice=say.notice)


def _driver(
    stack: ExitStack, watched: Watched, wanted: Wanted, application: Application | None, say: Teller
) -> Driver:
    """Whether this Flink can be driven is found out before anything is touched."""
    stack.enter_context(alone(watched.flink.url, watched.id))
    check_style(watched.flink, watched.id, wanted.style, application)
    driver = Driver(watched, wanted.style, PATIENCE_S, application, say.notice)
    stack.callback(driver.close)
    return driver


def _opening(job: str, scaled: Sequence[str], wanted: Wanted) -> str:
    names = ", ".join(scaled)
    if wanted.dry_run:
        return f"watching job '{job}' ({names}); nothing is changed. Ctrl-C ends it."
    return (
        f"driving job '{job}' ({names}) by {wanted.style}; Flink itself chooses the nodes, so that of a plan"
        " only the numbers count. Ctrl-C ends it, and the job runs on."
    )


def _check_figures(
    watched: Watched, policies: Mapping[str, Policy], wanted: Wanted, settings: ControlSettings
) -> None:
    """What every policy needs must be measured here. Metrics may take a while after a job's start."""
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


def _journal(folder: Path, policy: str, watched: Watched, wanted: Wanted) -> Journal:
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


def _turn(watch: Watch, seconds: float | None) -> None:
    """Until the time is up, the job has ended, or it is interrupted."""
    over = threading.Event()
    watch.job.zero_s, clock_watch = time.time(), SetClockWatch()
    with while_ending(lambda _signal, _frame: over.set()):
        while not over.is_set() and not watch.job.ended:
            if seconds is not None and watch.job.now_s() >= seconds:
                return
            clock_watch.look()
            watch.once()
            over.wait(LOOK_EVERY_S)


@contextmanager
def alone(url: str, job: str) -> Iterator[None]:
    """One controller of this machine drives a job at a time."""
    folder = state_folder("control")
    folder.mkdir(parents=True, exist_ok=True)
    name = blake2b(f"{url} {job}".encode(), digest_size=8).hexdigest()
    with opened_lock(folder / f"{name}.lock") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise FogscaleError(
                f"another controller drives job {job} at {url}: stop it, or watch with --dry-run"
            ) from None
        yield


class Teller:
    """Lines as they come; with --json to standard error, which is for people then."""

    def __init__(self, as_json: bool) -> None:
        self._to = err if as_json else out
        self._began_s = time.time()

    def notice(self, what: str) -> None:
        self._to.print(what, highlight=False, markup=False, soft_wrap=True)

    def decision(self, policy: str, change: str, reason: str) -> None:
        line = f"{clock(time.time() - self._began_s)}  {policy:<14} {change:<16} {reason}"
        self._to.print(line, highlight=False, markup=False, soft_wrap=True)
