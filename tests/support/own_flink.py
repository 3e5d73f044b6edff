"""A Flink and a Prometheus as a user may have them: a server that answers as both do, and can be rescaled."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlparse

from tests.support.http_server import Answer, Request, Server, serving

JOB, SOURCE, MAP, SINK = "aaaa0000", "5000", "5001", "5002"
NODES = ("10.0.0.1:6122-aa", "10.0.0.2:6122-bb", "10.0.0.3:6122-cc")
NAMES = {SOURCE: "Source: rides -> parse", MAP: "nearest hotspot", SINK: "Sink: Kafka"}
UPSTREAM: dict[str, list[str]] = {SOURCE: [], MAP: [SOURCE], SINK: [MAP]}


@dataclass
class OwnFlink:
    """A job of three operators; all figures of an instance are the same and steady."""

    running: dict[str, int] = field(default_factory=lambda: {SOURCE: 1, MAP: 2, SINK: 1})
    state: str = "RUNNING"
    busy_ratio: float = 0.5
    back_pressure_ratio: float = 0.0
    rate_per_s: float = 50.0  # of each instance of the map
    pending: float = 0.0
    cpu_ratio: float = 0.4  # of two cores
    adaptive: bool = True
    has_metrics: bool = True
    refuses: bool = False
    server: Server = field(default_factory=Server)

    def answer(self, request: Request) -> Answer:
        path = urlparse(request.path).path
        if self.refuses:
            return 401, {"errors": ["who are you"]}
        if path == "/api/v1/query":
            query = parse_qs(urlparse(request.path).query)["query"][0]
            return 200, {"status": "success", "data": {"resultType": "matrix", "result": self._series(query)}}
        if path == "/jobs/overview":
            job = {"jid": JOB, "name": "rides of a day", "state": self.state, "start-time": 1}
            return 200, {"jobs": [job]}
        if path == "/taskmanagers":
            return 200, {"taskmanagers": [_taskmanager(node) for node in NODES]}
        if path == f"/jobs/{JOB}":
            return 200, self._job()
        if path == f"/jobs/{JOB}/resource-requirements":
            return self._requirements(request)
        if path.startswith(f"/jobs/{JOB}/vertices/"):
            return 200, {"subtasks": _subtasks(self.running[path.rpartition("/")[2]])}
        return 404, {"errors": [f"no {path} here"]}

    def _job(self) -> dict[str, Any]:
        return {
            "jid": JOB, "name": "rides of a day", "state": self.state, "start-time": 1,
            "plan": {"nodes": [{"id": v, "inputs": [{"id": u} for u in UPSTREAM[v]]} for v in NAMES]},
            "vertices": [
                {"id": v, "name": NAMES[v], "parallelism": n, "maxParallelism": 128, "tasks": {"RUNNING": n}}
                for v, n in self.running.items()
            ],
        }  # fmt: skip

    def _requirements(self, request: Request) -> Answer:
        if not self.adaptive:
            return 500, {"errors": ["The scheduler does not support it."]}
        if request.method == "PUT":
            self.running = {v: each["parallelism"]["upperBound"] for v, each in request.body.items()}
            return 200, {}
        return 200, {v: {"parallelism": {"lowerBound": 1, "upperBound": n}} for v, n in self.running.items()}

    def _series(self, query: str) -> list[dict[str, Any]]:
        if not self.has_metrics:
            return []
        if "JVM_CPU_Time" in query:
            return [
                _counter("flink_taskmanager_Status_JVM_CPU_Time", 2e9 * self.cpu_ratio, tm_id=_told(node))
                for node in NODES
            ]
        if "numRecordsIn" in query:
            return [each for vertex in NAMES for each in self._task(vertex)]
        return []

    def _task(self, vertex: str) -> list[dict[str, Any]]:
        count, total_per_s = self.running[vertex], self.rate_per_s * self.running[MAP]
        found = []
        for index in range(count):
            labels = {
                "job_id": JOB, "task_id": vertex, "task_name": "filtered", "subtask_index": str(index),
                "task_attempt_id": f"{vertex}-{index}-{count}", "tm_id": _told(NODES[index % len(NODES)]),
            }  # fmt: skip
            task = "flink_taskmanager_job_task_"
            rates = {
                f"{task}numRecordsIn": total_per_s / count if vertex != SOURCE else 0.0,
                f"{task}numRecordsOut": total_per_s / count,
                f"{task}accumulateBackPressuredTimeMs": 1000 * self.back_pressure_ratio,
                f"{task}accumulateIdleTimeMs": 1000 * (1 - self.busy_ratio - self.back_pressure_ratio),
            }
            found += [_counter(name, rate, **labels) for name, rate in rates.items()]
        if vertex == SOURCE:
            found.append(_gauge(f"{task}operator_pendingRecords", self.pending, **labels))
        return found


def _told(node: str) -> str:
    """As Flink's reporter writes a label."""
    return node.replace(".", "_").replace("-", "_")


def _taskmanager(node: str) -> dict[str, Any]:
    return {
        "id": node, "slotsNumber": 2, "freeSlots": 1, "hardware": {"cpuCores": 2, "physicalMemory": 4e9},
    }  # fmt: skip


def _subtasks(count: int) -> list[dict[str, Any]]:
    return [
        {"subtask": index, "status": "RUNNING", "taskmanager-id": NODES[index % len(NODES)]}
        for index in range(count)
    ]


def _counter(name: str, per_s: float, **labels: str) -> dict[str, Any]:
    now_s = time.time()
    values = [[now_s - age_s, str(per_s * (1000 - age_s))] for age_s in (4, 3, 2, 1, 0)]
    return {"metric": {"__name__": name, **labels}, "values": values}


def _gauge(name: str, value: float, **labels: str) -> dict[str, Any]:
    now_s = time.time()
    return {
        "metric": {"__name__": name, **labels},
        "values": [[now_s - age_s, str(value)] for age_s in (4, 0)],
    }


@contextmanager
def own_flink(**state: Any) -> Iterator[OwnFlink]:
    flink = OwnFlink(**state)
    with serving(flink.answer) as server:
        flink.server = server
        yield flink
