"""Flink of a testbed, through its REST API, and a job to run on it."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fog.artifacts import store as artifacts
from fog.folders import cache_folder, checkout
from tests.support.fog import Fog
from tests.support.services import eventually

JOBS = Path(__file__).with_name("flink_job")


def rest(fog: Fog, method: str, path: str, body: Any = None, jar: Path | None = None) -> Any:
    """The JSON that the JobManager answers."""
    told = fog.manifest.services["flink"]
    url = f"{told['url']}{path}"
    door = ["--cacert", told["ca"], "--cert", told["certificate"], "--key", told["key"]]
    data = ["--form", f"jarfile=@{jar};type=application/x-java-archive"] if jar else []
    data += [] if body is None else ["--header", "Content-Type: application/json", "--data", json.dumps(body)]
    done = fog.enter(
        "curl", "--silent", "--show-error", "--fail-with-body", *door, "--request", method, *data, url
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return json.loads(done.stdout or "null")


def taskmanagers(fog: Fog) -> set[str]:
    """The nodes they are on: a TaskManager's id is its node's name."""
    return {each["id"] for each in rest(fog, "GET", "/taskmanagers")["taskmanagers"]}


def scale(fog: Fog, node: str, replicas: int) -> None:
    """As the controller does it, and waits until Flink knows."""
    fog.kubectl(
        "patch", "deployment", f"flink-taskmanager-{node}", "--subresource=scale", "--type=merge",
        "--patch", json.dumps({"spec": {"replicas": replicas}}), kubeconfig="controller.kubeconfig",
    )  # fmt: skip
    eventually(lambda: (node in taskmanagers(fog)) == bool(replicas), patience_s=120)


def uploaded(fog: Fog, name: str, folder: Path) -> str:
    """The JobManager's id of a job, compiled against the Flink and the connector that the testbed runs."""
    shelf = artifacts.store(checkout(), cache_folder())
    javac = shutil.which("javac")
    assert javac is not None, "no Java compiler"
    (dist,) = (shelf.folder("flink") / "pyflink/lib").glob("flink-dist-*.jar")
    (kafka,) = shelf.folder("flink_connectors").glob("flink-sql-connector-kafka-*.jar")
    classes, jar = folder / "classes", folder / f"{name}.jar"
    options = ["-proc:none", "--release", "17", "-cp", f"{dist}:{kafka}", "-d", str(classes)]
    subprocess.run([javac, *options, str(JOBS / f"{name}.java")], check=True)
    subprocess.run(["jar", "cfe", str(jar), name, "-C", str(classes), "."], check=True)
    return Path(rest(fog, "POST", "/jars/upload", jar=jar)["filename"]).name


def start(fog: Fog, jar_id: str, arguments: Sequence[str] = (), savepoint: str | None = None) -> str:
    body = {
        "parallelism": 1,
        "programArgsList": list(arguments),
        **({"savepointPath": savepoint} if savepoint else {}),
    }
    job = str(rest(fog, "POST", f"/jars/{jar_id}/run", body)["jobid"])
    eventually(lambda: all_run(fog, job), patience_s=120)
    return job


def all_run(fog: Fog, job: str) -> bool:
    seen = rest(fog, "GET", f"/jobs/{job}")
    return bool(seen["state"] == "RUNNING" and all(each["status"] == "RUNNING" for each in seen["vertices"]))


def nodes_of(fog: Fog, job: str) -> dict[str, list[str]]:
    """Operator → the node of each of its instances."""
    found = {}
    for vertex in rest(fog, "GET", f"/jobs/{job}")["vertices"]:
        subtasks = rest(fog, "GET", f"/jobs/{job}/vertices/{vertex['id']}")["subtasks"]
        found[str(vertex["name"])] = [str(each["taskmanager-id"]) for each in subtasks]
    return found


def cancel(fog: Fog, job: str) -> None:
    """Waits until its slots are free: another job would not get them before."""
    rest(fog, "PATCH", f"/jobs/{job}")

    def are_free() -> bool:
        seen = rest(fog, "GET", "/overview")
        return bool(seen["slots-available"] == seen["slots-total"])

    eventually(are_free, patience_s=60)


def stop_with_savepoint(fog: Fog, job: str) -> str:
    """Where the savepoint lies."""
    trigger = rest(fog, "POST", f"/jobs/{job}/stop", {"drain": False})["request-id"]
    path = f"/jobs/{job}/savepoints/{trigger}"
    eventually(lambda: rest(fog, "GET", path)["status"]["id"] == "COMPLETED", patience_s=120)
    operation = rest(fog, "GET", path)["operation"]
    assert "location" in operation, operation
    return str(operation["location"])
