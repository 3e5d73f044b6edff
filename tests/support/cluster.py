"""A real Spark cluster on loopback: a standalone master and a worker."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

from analysis.spark import java_home


class Daemon:
    """A Spark daemon on loopback, with a log to read its readiness from."""

    def __init__(self, log: Path, name: str, *arguments: str) -> None:
        launcher = Path(pyspark.__file__).parent / "bin" / "spark-class"
        environment = os.environ | {
            "JAVA_HOME": str(java_home()),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(log.parent),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            "SPARK_PUBLIC_DNS": "127.0.0.1",
        }
        self.log = log
        with log.open("w") as output:
            self.process = subprocess.Popen(
                [launcher, f"org.apache.spark.deploy.{name}", "--host", "127.0.0.1", *arguments],
                env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            )  # fmt: skip

    def wait_for(self, pattern: str, deadline_s: float = 90) -> str:
        end = time.monotonic() + deadline_s
        while time.monotonic() < end and self.process.poll() is None:
            if found := re.search(pattern, self.log.read_text()):
                return found[0]
            time.sleep(0.1)
        raise AssertionError(f"no {pattern} in the log:\n{self.log.read_text()[-2000:]}")

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@contextmanager
def standalone_cluster(folder: Path) -> Iterator[str]:
    """The address of a standalone master with one worker of one core, which work in this folder."""
    daemons = []
    try:
        master = Daemon(folder / "master.log", "master.Master", "--port", "0", "--webui-port", "0")
        daemons.append(master)
        address = master.wait_for(r"spark://127\.0\.0\.1:\d+")
        master.wait_for("I have been elected leader")
        settings = ("--work-dir", str(folder / "work"), "--cores", "1", "--memory", "1g", "--webui-port", "0")
        worker = Daemon(folder / "worker.log", "worker.Worker", *settings, address)
        daemons.append(worker)
        worker.wait_for("Successfully registered with master")
        yield address
    finally:
        for daemon in reversed(daemons):
            daemon.stop()
