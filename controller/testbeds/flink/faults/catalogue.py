"""The twelve faults: what each does to a testbed, and how it is over. They happen on the nodes themselves:
real processes are killed or held, nothing is simulated."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

# The brackets keep a pattern from matching the shell that holds it.
JOBMANAGER = "'[S]tandaloneSessionClusterEntrypoint'"
TASKMANAGER = "'[T]askManagerRunner'"


class Site(Protocol):
    """Where faults happen."""

    def ask(self, node: str, command: str) -> str: ...

    def kill_controller(self) -> None:
        """By kill -9; the same command is given again at once."""

    def wait_for_plan(self) -> None:
        """Until the next rescale is asked for."""

    def wait(self, seconds: float) -> None: ...


@dataclass(frozen=True)
class Fault:
    name: str
    does: str
    happen: Callable[[Site], None]


def _once(node: str, command: str) -> Callable[[Site], None]:
    def happen(site: Site) -> None:
        site.ask(node, command)

    return happen


def _meanwhile(node: str, begin: str, seconds: float, end: str) -> Callable[[Site], None]:
    """Something on a node for a while. The node itself ends it, also if we are cut off from it."""
    script = base64.b64encode(f"{begin}\nsleep {seconds:g}\n{end}\n".encode()).decode()

    def happen(site: Site) -> None:
        site.ask(node, f"systemd-run --quiet --collect sh -c 'echo {script} | base64 -d | sh'")
        site.wait(seconds)

    return happen


def _controller(site: Site) -> None:
    """Before a rescale, in the middle of one, and after it."""
    site.kill_controller()
    site.wait_for_plan()
    site.wait(3)
    site.kill_controller()
    site.wait(20)
    site.kill_controller()


def _failed_savepoint(site: Site) -> None:
    """MinIO is away when the next rescale asks for a savepoint."""
    site.ask("services1", "systemctl stop minio")
    try:
        site.wait_for_plan()
        site.wait(20)
    finally:
        site.ask("services1", "systemctl start minio")


_ABSURD = """\
# TYPE fog_node_cpu_seconds_total counter
fog_node_cpu_seconds_total %d
# TYPE fog_node_cpus gauge
fog_node_cpus 0.000001
# TYPE fog_node_memory_used_bytes gauge
fog_node_memory_used_bytes NaN
# TYPE fog_node_memory_limit_bytes gauge
fog_node_memory_limit_bytes -1
"""
_LIAR = f"""\
import http.server, sys, time
class Liar(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers()
        self.wfile.write(({_ABSURD!r} % (time.time() * 1e6)).encode())
http.server.HTTPServer((sys.argv[1], 9101), Liar).serve_forever()
"""


def _absurd_metrics() -> Callable[[Site], None]:
    """First no metrics of the node at all, then such as cannot be."""
    liar = base64.b64encode(_LIAR.encode()).decode()
    address = "$(hostname -I | tr ' ' '\\n' | grep -m1 10.77.)"
    begin = f"systemctl stop fog-cgroup-exporter; sleep 15\necho {liar} | base64 -d > /run/liar.py\n" \
            f"timeout 30 python3 /run/liar.py {address}"  # fmt: skip
    return _meanwhile("fog1", begin, 0, "rm /run/liar.py; systemctl start fog-cgroup-exporter")


def _then_wait(happen: Callable[[Site], None], seconds: float) -> Callable[[Site], None]:
    def both(site: Site) -> None:
        happen(site)
        site.wait(seconds)

    return both


_CUT_OFF = "for chain in INPUT FORWARD; do iptables -I $chain ! -i lo -j DROP; done"
_HEALED = "for chain in INPUT FORWARD; do iptables -D $chain ! -i lo -j DROP; done"
_STAND_STILL = "for turn in $(seq 60); do pkill -STOP minio; sleep 0.45; pkill -CONT minio; sleep 0.05; done"

CATALOGUE = (
    Fault(
        "TaskManager", "kill -9 of the TaskManager on fog1", _once("fog1", f"pkill -KILL -f {TASKMANAGER}")
    ),
    Fault("JobManager", "kill -9 of the JobManager", _once("server1", f"pkill -KILL -f {JOBMANAGER}")),
    Fault(
        "broker", "kill -9 of Kafka, away for 8 s",
        _meanwhile(
            "services1", "systemctl kill -s KILL kafka; systemctl stop kafka", 8, "systemctl start kafka"
        ),
    ),
    Fault(
        "MinIO", "away for 20 s",
        _meanwhile("services1", "systemctl stop minio", 20, "systemctl start minio"),
    ),
    Fault(
        "Prometheus", "away for 20 s",
        _meanwhile("services1", "systemctl stop prometheus", 20, "systemctl start prometheus"),
    ),
    Fault(
        "node", "fog1 loses all its processes at once and boots again",
        _meanwhile("fog1", "sleep 1; systemctl reboot --force --force", 15, "true"),
    ),
    Fault("controller", "kill -9 before, in and after a rescale, the same command again", _controller),
    Fault("partition", "fog1 hears and reaches nobody for 30 s", _meanwhile("fog1", _CUT_OFF, 30, _HEALED)),
    Fault(
        "slow disk", "MinIO stands still for nine tenths of 30 s",
        _then_wait(_meanwhile("services1", _STAND_STILL, 0, "pkill -CONT minio"), 32),
    ),
    Fault("savepoint", "MinIO away when a rescale asks for a savepoint", _failed_savepoint),
    Fault(
        "metrics", "fog1's CPU and memory missing for 15 s, absurd for 30 s",
        _then_wait(_absurd_metrics(), 50),
    ),
    Fault(
        "hung REST", "the JobManager stands still for 15 s",
        _meanwhile("server1", f"pkill -STOP -f {JOBMANAGER}", 15, f"pkill -CONT -f {JOBMANAGER}"),
    ),
)  # fmt: skip
