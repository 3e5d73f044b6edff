"""Flink's REST API, as far as an autoscaler needs it: values in, values out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from controller.testbeds.flink.http import (
    ANSWER_WITHIN_S,
    Door,
    MissingError,
    Service,
    shaped,
)

RUNNING = "RUNNING"
ENDED = frozenset({"FINISHED", "CANCELED", "FAILED", "SUSPENDED"})


@dataclass(frozen=True)
class TaskManager:
    id: str  # the node it is on: the role names it so
    slots: int
    cores: float = 1.0  # as its JVM sees them
    memory_mb: float = 0.0


@dataclass(frozen=True)
class JobSummary:
    id: str
    name: str
    state: str


@dataclass(frozen=True)
class Vertex:
    """A task of the job: an operator, or a chain of some."""

    id: str
    name: str
    parallelism: int
    max_parallelism: int
    running: int  # of its subtasks
    upstream: tuple[str, ...] = ()  # ids


@dataclass(frozen=True)
class Job:
    id: str
    name: str
    state: str
    vertices: tuple[Vertex, ...]

    @property
    def all_run(self) -> bool:
        return self.state == RUNNING and all(each.running == each.parallelism for each in self.vertices)


@dataclass(frozen=True)
class Bounds:
    """How many subtasks a vertex must and may have."""

    lower: int
    upper: int


@dataclass(frozen=True)
class Savepoint:
    done: bool
    location: str | None = None
    failure: str | None = None


class Flink:
    """A JobManager. Starting and stopping are asked for once, everything else may be tried again."""

    def __init__(
        self,
        door: Door,
        *,
        only_look: bool = False,
        answer_within_s: float = ANSWER_WITHIN_S,
        tries_again: bool = True,
    ) -> None:
        self._service = Service("Flink", door, answer_within_s, only_look=only_look, tries_again=tries_again)
        self.url = self._service.url

    def close(self) -> None:
        self._service.close()

    def taskmanagers(self) -> tuple[TaskManager, ...]:
        seen = self._service.get("/taskmanagers")
        with _as_flink("/taskmanagers"):
            return tuple(_taskmanager(each) for each in seen["taskmanagers"])

    def jobs(self) -> tuple[JobSummary, ...]:
        seen = self._service.get("/jobs/overview")
        with _as_flink("/jobs/overview"):
            return tuple(
                JobSummary(_word(each, "jid"), str(each["name"]), _word(each, "state"))
                for each in seen["jobs"]
            )

    def job(self, job: str) -> Job:
        seen = self._service.get(f"/jobs/{job}")
        with _as_flink(f"/jobs/{job}"):
            upstream = {
                node["id"]: tuple(edge["id"] for edge in node.get("inputs", ()))
                for node in seen["plan"]["nodes"]
            }
            vertices = tuple(_vertex(each, upstream.get(each["id"], ())) for each in seen["vertices"])
            return Job(_word(seen, "jid"), str(seen["name"]), _word(seen, "state"), vertices)

    def nodes_of(self, job: str, vertex: str) -> tuple[str, ...]:
        """The TaskManager of each subtask that runs, in the order of their indexes."""
        seen = self._service.get(f"/jobs/{job}/vertices/{vertex}")
        with _as_flink(f"/jobs/{job}/vertices"):
            subtasks = [each for each in seen["subtasks"] if each["status"] == RUNNING]
            return tuple(_word(each, "taskmanager-id") for each in subtasks)

    # Jars and jobs

    def upload(self, jar: Path) -> str:
        """The id by which the JobManager knows the jar."""
        return Path(self._service.send("POST", "/jars/upload", file=jar)["filename"]).name

    def remove_jar(self, jar_id: str) -> None:
        self._service.send("DELETE", f"/jars/{jar_id}")

    def run(
        self,
        jar_id: str,
        entry_class: str | None = None,
        arguments: Sequence[str] = (),
        savepoint: str | None = None,
        options: Mapping[str, str] | None = None,  # of Flink, for this job
        job: str | None = None,  # its id; Flink takes a job of the same id only once
    ) -> str:
        """The id of the job that starts."""
        body: dict[str, Any] = {"programArgsList": list(arguments)}
        if job is not None:
            body["jobId"] = job
        if options:
            body["flinkConfiguration"] = dict(options)
        if entry_class is not None:
            body["entryClass"] = entry_class
        if savepoint is not None:
            body |= {"savepointPath": savepoint, "allowNonRestoredState": False}
        return str(self._service.send("POST", f"/jars/{jar_id}/run", body)["jobid"])

    def plan(self, jar_id: str, entry_class: str, arguments: Sequence[str]) -> None:
        """Lets the JobManager call a class of the jar for the plan of its job, which nobody needs."""
        body = {"entryClass": entry_class, "programArgsList": list(arguments)}
        self._service.send("POST", f"/jars/{jar_id}/plan", body, again=True)

    def cancel(self, job: str) -> None:
        self._service.send("PATCH", f"/jobs/{job}", params={"mode": "cancel"}, again=True)

    # State

    def stop_with_savepoint(self, job: str, drain: bool = False) -> str:
        """Asks for it; the answer is what to ask `savepoint` with. We name the request, so that it may be
        sent again: Flink stops a job once for every name. `drain`: as if no record came ever after, so that
        windows that are open end."""
        body = {"drain": drain, "triggerId": uuid4().hex}
        return str(self._service.send("POST", f"/jobs/{job}/stop", body, again=True)["request-id"])

    def savepoint(self, job: str, trigger: str) -> Savepoint:
        seen = self._service.get(f"/jobs/{job}/savepoints/{trigger}")
        with _as_flink(f"/jobs/{job}/savepoints"):
            if seen["status"]["id"] != "COMPLETED":
                return Savepoint(done=False)
            operation = seen["operation"]
            if operation.get("location"):
                return Savepoint(done=True, location=_word(operation, "location"))
            cause = operation["failure-cause"]
            words = str(cause.get("stack-trace") or cause.get("class") or "no reason given")
            return Savepoint(done=True, failure=" ".join(words.split("\n")[0].split()))

    def failed_checkpoints(self, job: str) -> int:
        """Since the job was started."""
        seen = self._service.get(f"/jobs/{job}/checkpoints")
        with _as_flink(f"/jobs/{job}/checkpoints"):
            return int(seen["counts"]["failed"])

    def last_state(self, job: str) -> str | None:
        """Where the newest savepoint or complete checkpoint of a job lies, also after its end."""
        try:
            seen = self._service.get(f"/jobs/{job}/checkpoints")
        except MissingError:
            return None
        with _as_flink(f"/jobs/{job}/checkpoints"):
            latest = seen.get("latest") or {}
            made = [each for kind in ("savepoint", "completed") if (each := latest.get(kind))]
            newest: dict[str, Any] = max(made, key=lambda each: int(each["trigger_timestamp"]), default={})
            return _word(newest, "external_path") if newest else None

    # Requirements of the adaptive scheduler

    def requirements(self, job: str) -> dict[str, Bounds]:
        seen = self._service.get(f"/jobs/{job}/resource-requirements")
        with _as_flink(f"/jobs/{job}/resource-requirements"):
            return {
                vertex: Bounds(int(each["parallelism"]["lowerBound"]), int(each["parallelism"]["upperBound"]))
                for vertex, each in seen.items()
            }

    def require(self, job: str, bounds: Mapping[str, Bounds]) -> None:
        body = {
            vertex: {"parallelism": {"lowerBound": each.lower, "upperBound": each.upper}}
            for vertex, each in bounds.items()
        }
        self._service.send("PUT", f"/jobs/{job}/resource-requirements", body, again=True)


def _taskmanager(seen: Mapping[str, Any]) -> TaskManager:
    machine = seen.get("hardware", {})
    return TaskManager(
        _word(seen, "id"),
        int(seen["slotsNumber"]),
        float(machine.get("cpuCores") or 1),
        float(machine.get("physicalMemory") or 0) / 1e6,
    )


def _vertex(seen: Mapping[str, Any], upstream: tuple[str, ...]) -> Vertex:
    return Vertex(
        id=_word(seen, "id"),
        name=_word(seen, "name"),
        parallelism=int(seen["parallelism"]),
        max_parallelism=int(seen["maxParallelism"]),
        running=int(seen["tasks"].get(RUNNING, 0)),
        upstream=upstream,
    )


def _word(seen: Mapping[str, Any], key: str) -> str:
    """A text that is there: an id, a state, a place."""
    value = seen[key]
    if not isinstance(value, str) or not value:
        raise TypeError(f"{key} is {value!r}")
    return value


def _as_flink(path: str) -> AbstractContextManager[None]:
    return shaped(f"Flink's answer to {path}", "is this Flink 2.3 or newer?")
