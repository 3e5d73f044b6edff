"""The producer of a run, as a process of its own: it keeps its schedule whatever the controller does, and
ends when the controller does, also by kill -9."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from fogscale.errors import FogscaleError
from fogscale.signals import end_with_parent

END_WITHIN_S = 30.0


@dataclass(frozen=True)
class Load:
    """What is sent: the arguments of `fogscale produce`."""

    workload: str
    parameters: Mapping[str, Any]
    speed: float
    copies: int
    scale: float
    seed: int
    run: str
    topic: str
    records: str | None = None  # their format; None: the workload's
    start_at_s: float = 0.0
    span_s: float | None = None

    def arguments(self, first_record: int) -> list[str]:
        # A text that YAML reads back as the value it was; JSON is such a text.
        settings = [f"--set={name}={json.dumps(value)}" for name, value in self.parameters.items()]
        words = {
            "topic": self.topic,
            "workload": self.workload,
            "speed": self.speed,
            "copies": self.copies,
            "scale": self.scale,
            "seed": self.seed,
            "run": self.run,
            "records": self.records,
            "start-at": self.start_at_s,
            "duration": self.span_s,
            "first-record": first_record or None,
        }
        return [f"--{name}={value}" for name, value in words.items() if value is not None] + settings


class Producer:
    """One process at a time; what it reports stays in the folder."""

    def __init__(self, load: Load, access: Mapping[str, Any], folder: Path) -> None:
        self._load, self._folder = load, folder
        self._access = access
        self._process: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] | None = None

    @property
    def report_file(self) -> Path:
        return self._folder / "producer.json"

    def start(self, first_record: int = 0) -> None:
        config = self._folder / "producer.properties"
        config.touch(mode=0o600)  # before the password is in it
        bootstrap = self._access["bootstrap.servers"]
        config.write_text("".join(f"{k}={v}\n" for k, v in self._access.items() if k != "bootstrap.servers"))
        self.report_file.unlink(missing_ok=True)
        self._log = (self._folder / "producer.log").open("wb")
        self._process = subprocess.Popen(
            [
                sys.executable, "-m", "fogscale.cli", "produce", f"--bootstrap={bootstrap}",
                *self._load.arguments(first_record), f"--config=@{config}", f"--report={self.report_file}",
                "--json",
            ],
            stdout=subprocess.DEVNULL, stderr=self._log, stdin=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is ours: we end it in order
            preexec_fn=_end_with_parent,
        )  # fmt: skip
        self._mark.write_text(str(self._process.pid))

    @property
    def _mark(self) -> Path:
        return self._folder / "producer.pid"

    def wait_for_end(self) -> None:
        """Of a producer whose controller is gone: it still waits for what it sent, and reports then."""
        deadline_s = time.monotonic() + END_WITHIN_S
        while self._others_run() and time.monotonic() < deadline_s:
            time.sleep(0.2)

    def _others_run(self) -> bool:
        try:
            words = Path(f"/proc/{int(self._mark.read_text())}/cmdline").read_bytes().split(b"\0")
        except (OSError, ValueError):
            return False
        return f"--report={self.report_file}".encode() in words

    def go_on(self) -> None:
        """Where the producer of a controller that is gone stopped; not at all if it had sent everything."""
        report = self.report()
        if not report:
            raise FogscaleError(
                f"{self.report_file} does not tell how far the producer came: use --fresh to start over"
            )
        if report["next_record"] is not None:
            self.start(int(report["next_record"]))

    @property
    def has_ended(self) -> bool:
        """True once all was sent; raises if it ended otherwise."""
        if self._process is None:
            return bool(self.report())
        if self._process.poll() is None:
            return False
        if self._process.returncode != 0:
            raise FogscaleError(f"the producer failed: {self._last_words()}")
        return True

    def stop(self) -> None:
        """What was sent is waited for and reported."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(END_WITHIN_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        if self._log is not None:
            self._log.close()

    def report(self) -> dict[str, Any]:
        try:
            told: dict[str, Any] = json.loads(self.report_file.read_text())
            return told
        except (OSError, ValueError):
            return {}

    def _last_words(self) -> str:
        lines = (self._folder / "producer.log").read_text(errors="replace").strip().splitlines()
        return lines[-1].removeprefix("fogscale: ") if lines else "it said nothing"


def sent(report: Mapping[str, Any], topic: str) -> range | None:
    """The numbers of the records that a report says were sent."""
    for each in report.get("topics", ()):
        if each["topic"] == topic:
            return range(int(each["run_first_number"]), int(each["next_number"]))
    return None


def _end_with_parent() -> None:
    """As Ctrl-C would: it reports how far it came."""
    end_with_parent(signal.SIGINT)
