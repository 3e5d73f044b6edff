"""The jobs of the jar in a Flink inside one process, with the Flink and the connector of the testbed."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from analysis.spark import java_home
from fog.artifacts.store import Store, store
from fog.folders import cache_folder, checkout
from workloads.jobs.catalog import catalog

MAIN = "fogscale.jobs.Main"
# What Flink reaches into the JDK for, and a quick start.
_JAVA_OPTIONS = (
    "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
    "--add-opens=java.base/java.lang=ALL-UNNAMED", "--add-opens=java.base/java.util=ALL-UNNAMED",
)  # fmt: skip


def require_tools(require: Callable[[str, bool, str], None]) -> None:
    missing = [tool for tool in ("mvn", "javac") if shutil.which(tool) is None]
    require("java", not missing, f"no {' and no '.join(missing)}")


@cache
def _shelf() -> Store:
    return store(checkout(), cache_folder())


def jar() -> Path:
    """Built once for these sources."""
    return _shelf().ensure(catalog().artifact)[0] / catalog().jar


@cache
def _class_path() -> str:
    flink, connectors = (_shelf().ensure(name)[0] for name in ("flink", "flink_connectors"))
    (kafka,) = connectors.glob("flink-sql-connector-kafka-*.jar")
    return f"{jar()}:{flink}/pyflink/lib/*:{kafka}"


def java(main_class: str, *arguments: str) -> list[str]:
    """A command line."""
    return [
        str(java_home() / "bin/java"), *_JAVA_OPTIONS, "-cp", _class_path(), main_class, *arguments,
    ]  # fmt: skip


def run(*arguments: str, patience_s: float = 300) -> subprocess.CompletedProcess[str]:
    """As on a command line: a job by name, and its settings."""
    return subprocess.run(
        java(MAIN, *arguments), capture_output=True, text=True, timeout=patience_s, check=False
    )


def plan(job: str, *arguments: str) -> list[dict[str, Any]]:
    """The vertices that a cluster would get, upstream first."""
    done = run("plan", job, "--brokers", "localhost:1", "--checkpoint-ms", "1000", *arguments)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
