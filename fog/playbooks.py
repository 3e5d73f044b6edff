"""Runs playbooks through ansible-runner, with a line per role, and turns a failure into one line."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fog.folders import checkout
from fog.interruption import Interruption
from fogscale.errors import FogscaleError, Interrupted

COMMAND_FAILED = "non-zero return code"  # all that Ansible's `command` says of itself


@dataclass
class Step:
    """A role, or a play's own tasks."""

    name: str
    begun_s: float
    changed: int = 0
    seconds: float = 0.0


@dataclass
class Progress:
    """Follows the events of one run; `tell` hears of every step when it is over."""

    tell: Callable[[Step], None]
    steps: list[Step] = field(default_factory=list)
    changed: dict[str, int] = field(default_factory=dict)
    last_words: dict[str, str] = field(
        default_factory=dict
    )  # host → of its last failure; hosts as they failed first
    lost: set[str] | None = None  # hosts that did not get to the end; None: the run never summed up

    @property
    def failure(self) -> str | None:
        """Ansible tells of a task that a `rescue` made up for as of any other that failed. Only its sum at
        the end knows which hosts are lost, and what such a host said last is what ended it."""
        words = (said for host, said in self.last_words.items() if self.lost is None or host in self.lost)
        return next(words, None)

    def follow(self, event: Mapping[str, Any], now_s: float) -> None:
        kind, data = event.get("event", ""), event.get("event_data", {})
        if kind == "playbook_on_task_start":
            self._enter(data.get("role") or data.get("play", ""), now_s)
        elif kind == "runner_on_ok" and data.get("res", {}).get("changed") and self.steps:
            self.steps[-1].changed += 1
        elif kind in ("runner_on_failed", "runner_on_unreachable") and not data.get("ignore_errors"):
            self.last_words[data.get("host", "")] = _failure(data)
        elif kind == "playbook_on_stats":
            self.changed = {host: count for host, count in data.get("changed", {}).items() if count}
            self.lost = {*data.get("failures", {}), *data.get("dark", {})}
            self.finish(now_s)

    def _enter(self, name: str, now_s: float) -> None:
        if self.steps and self.steps[-1].name == name:
            return
        self.finish(now_s)
        self.steps.append(Step(name, now_s))

    def finish(self, now_s: float) -> None:
        if self.steps and not self.steps[-1].seconds:
            self.steps[-1].seconds = max(now_s - self.steps[-1].begun_s, 1e-6)
            self.tell(self.steps[-1])


def _failure(data: Mapping[str, Any]) -> str:
    text = _words(data.get("res", {}), str(data.get("task", "a task")))
    host = data.get("host", "")
    where = "" if host in ("", "localhost") or host in text else f"{host}: "
    return f"{where}{text}"


def _words(result: Mapping[str, Any], task: str) -> str:
    if "censored" in result:
        return (
            f"'{task}' failed, its words are hidden because they may hold secrets: look into the node's logs"
        )
    failed = [each for each in result.get("results", ()) if each.get("failed")]
    if failed:  # a loop's own message is only that an item failed
        return _words(failed[0], task)
    told = str(result.get("msg", ""))
    if told in ("", COMMAND_FAILED):
        told = _last_line(str(result.get("stderr", ""))) or _last_line(str(result.get("stdout", ""))) or told
    return "; ".join(told.splitlines()) or f"'{task}' failed without a reason"


def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


def run(
    playbook: str, testbed: str, variables: Mapping[str, Any], tell: Callable[[Step], None] = lambda _: None
) -> Progress:
    """Raises with the words of the failure that ended it."""
    try:
        import ansible_runner
    except ImportError:
        raise FogscaleError("Ansible is not installed: pip install 'fogscale[testbed]'") from None
    project = checkout()
    progress = Progress(tell)

    def heard(event: Mapping[str, Any]) -> bool:
        progress.follow(event, time.monotonic())
        return True  # keep the event

    # Only we can read the folder; what is in it goes with it.
    with TemporaryDirectory(prefix="fogscale-") as folder, Interruption() as interruption:
        done = ansible_runner.run(
            private_data_dir=folder,
            project_dir=str(project),
            playbook=playbook,
            inventory=str(project / "inventory" / testbed),
            extravars=dict(variables),
            envvars={
                "ANSIBLE_CONFIG": str(project / "ansible.cfg"),
                "ANSIBLE_NOCOLOR": "1",
                # Else an interruption would leave modules with their arguments in the home folder.
                "ANSIBLE_LOCAL_TEMP": f"{folder}/tmp",
                "ANSIBLE_PIPELINING": "1",
                "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            },
            event_handler=heard,
            cancel_callback=interruption,
            settings={"pexpect_timeout": 1},  # how often it looks for an interruption, in s
            quiet=True,
        )
        if done.status == "canceled":
            raise Interrupted("interrupted: run the same command again to go on")
        if done.rc != 0:
            words = progress.failure or _last_words(Path(folder))
            raise FogscaleError(f"{playbook} stopped: {words}")
    progress.finish(time.monotonic())
    return progress


def _last_words(folder: Path) -> str:
    """Where Ansible did not get as far as a task: what it printed last."""
    lines = [
        line.strip()
        for file in sorted(folder.glob("artifacts/*/std*"))
        for line in file.read_text(errors="replace").splitlines()
        if line.strip()
    ]
    errors = [line for line in lines if "ERROR" in line or "error" in line]
    return (errors or lines or ["Ansible gave no reason"])[-1]
