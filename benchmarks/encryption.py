"""`python -m benchmarks.encryption [producer] [flink]`: what TLS costs the producer, a TaskManager's start
and a rescale. Needs root, as the testbed does.

The producer sends to one broker with two listeners, in turns. A TaskManager is started, and a job stopped
with a savepoint and resumed, on a testbed of one fog node: without `fog_tls`, with it, and without it again,
so that a machine that grows busier shows as a difference between the first and the last.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from tests.support import flink
from tests.support.fog import Fog
from tests.support.kafka import SecuredBroker
from workloads.producer.chunks import Task
from workloads.producer.processes import processes_for, send
from workloads.producer.schedule import Schedule
from workloads.producer.tasks import shared
from workloads.records.registry import create

RECORDS = 600_000
PRODUCER_ROUNDS = 5
PARTITIONS = 4
FLINK_ROUNDS = 3
HEAP_MB = 1024
PARTS = ("producer", "flink")


def main() -> None:
    chosen = sys.argv[1:] or PARTS
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="fog-", dir="/tmp") as folder:
        if "producer" in chosen:
            results["producer"] = of_the_producer(Path(folder))
        if "flink" in chosen:
            results["flink"] = of_flink(Path(folder))
    show(results)
    target = Path("results") / "bench-encryption.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(results, indent=2), encoding="utf-8")
    print(f"\nwritten to {target}")


def of_the_producer(folder: Path) -> dict[str, list[float]]:
    """Records per second without TLS and with it; the first round only warms the broker up."""
    rounds = []
    (folder / "kafka").mkdir()
    with SecuredBroker(folder / "kafka", HEAP_MB) as broker:
        for number in range(PRODUCER_ROUNDS + 1):
            plain = _sent_per_s(broker, f"plain-{number}", broker.bootstrap, {})
            secured = _sent_per_s(broker, f"tls-{number}", broker.tls_bootstrap, broker.tls_access)
            print(f"round {number}: {plain:,.0f}/s, with TLS {secured:,.0f}/s", file=sys.stderr)
            rounds.append((plain, secured))
    return {"plain_per_s": [one for one, _ in rounds[1:]], "tls_per_s": [two for _, two in rounds[1:]]}


def _sent_per_s(broker: SecuredBroker, topic: str, bootstrap: str, access: dict[str, str]) -> float:
    """Everything is due in the first second: from there on, it is caught up as fast as possible."""
    broker.create_topic(topic, PARTITIONS)
    task = Task(topic, Schedule(np.array([RECORDS])), create("taxi_ride"), seed=1, run="bench")
    outcome = send(shared(task, processes_for(task)), bootstrap, access)
    return RECORDS / (outcome.finished_s - outcome.start.zero_s)


def of_flink(base: Path) -> list[dict[str, Any]]:
    with _testbed(base) as fog:
        return [_measured(fog, base, tls) for tls in (False, True, False)]


@contextmanager
def _testbed(base: Path) -> Iterator[Fog]:
    fog = Fog(base / "state")
    fog.base.mkdir()
    try:
        fog.fogscale("up", "--fog-nodes", "1")
        yield fog
    finally:
        fog.fogscale("down", check=False)


def _measured(fog: Fog, base: Path, tls: bool) -> dict[str, Any]:
    done = fog.playbook("site.yml", "-e", "fog_nodes=1", "-e", f"fog_tls={str(tls).lower()}")
    if done.returncode != 0:
        sys.exit(done.stdout[-3000:])
    starts, rescales = [], []
    jar = flink.uploaded(fog, "CountingJob", base / f"job-{time.monotonic_ns()}")
    for _ in range(FLINK_ROUNDS):
        starts.append(_seconds(partial(flink.scale, fog, "fog1", 1)))
        rescales.append(_seconds(partial(_resumed, fog, jar, flink.start(fog, jar))))
        flink.cancel(fog, _running(fog))
        flink.scale(fog, "fog1", 0)
    print(f"fog_tls={tls}: starts {starts}, rescales {rescales}", file=sys.stderr)
    return {"tls": tls, "start_s": starts, "rescale_s": rescales, "load": os.getloadavg()[0]}


def _resumed(fog: Fog, jar: str, job: str) -> None:
    """As a rescale by restart does it, with the same TaskManager."""
    flink.start(fog, jar, savepoint=flink.stop_with_savepoint(fog, job))


def _running(fog: Fog) -> str:
    jobs = flink.rest(fog, "GET", "/jobs")["jobs"]
    return next(str(each["id"]) for each in jobs if each["status"] == "RUNNING")


def _seconds(work: Callable[[], object]) -> float:
    begun_s = time.monotonic()
    work()
    return time.monotonic() - begun_s


def show(results: dict[str, Any]) -> None:
    table = Table(title="what TLS costs, side by side", header_style="bold")
    for column in ("what", "without", "with TLS", "ratio"):
        table.add_column(column)
    if "producer" in results:
        plain, secured = results["producer"]["plain_per_s"], results["producer"]["tls_per_s"]
        ratio = median(two / one for one, two in zip(plain, secured, strict=True))
        table.add_row(
            f"producer, {RECORDS:,} taxi rides", f"{median(plain):,.0f}/s", f"{median(secured):,.0f}/s",
            f"{ratio:.2f} × the speed",
        )  # fmt: skip
    for name, what in (("start_s", "a TaskManager's start"), ("rescale_s", "savepoint and resume")):
        if "flink" in results:
            before, secured, after = (median(each[name]) for each in results["flink"])
            plain = (before + after) / 2
            told = f"{plain:.1f} s ({before:.1f} before, {after:.1f} after)"
            table.add_row(what, told, f"{secured:.1f} s", f"{secured / plain:.2f} × the time")
    Console().print(table)
    print(f"load of the machine over the last minute: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
