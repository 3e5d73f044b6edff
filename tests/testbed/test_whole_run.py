"""A whole experiment on the real fog, as a user runs it: two rescales, a TaskManager killed, the controller
killed in the middle of a rescale; nothing is lost and nothing doubled.

The last of the testbed's tests by its name: it gives the fog a second node, which others do not know of."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from controller.journal import Recorded, read
from fog.folders import checkout
from tests.support.fog import Fog
from tests.support.services import eventually

pytestmark = pytest.mark.testbed

# Seconds of the run itself; when the controller is away, its clock stands still.
EXPERIMENT = """\
name: whole_run
topology:
  nodes:
    - {name: services1, cores: 2, memory_mb: 3072, slots: 2}
    - {name: fog1, cores: 1, memory_mb: 1024}
    - {name: fog2, cores: 1, memory_mb: 1024}
  operators:
    - {name: source, n_max: 1}
    - {name: map, upstream: [source], n_min: 1, n_max: 2}
    - {name: sink, upstream: [map], n_max: 1}
  rtt_ms:
    delays_ms: {services1: 0, fog1: 5, fog2: 50}
start: {map: 1}
pins: {source: [services1], sink: [services1]}
measured_operator: map
workload:
  {name: square, parameters: {low_per_s: 50, high_per_s: 50, level_s: 60, span_s: 150}, speed: 1, scale: 1}
testbed:
  {kind: flink, name: local, job: lookup, job_settings: {ask: async, cost-us: 1000}, sample_interval_s: 2}
policies:
  scheduled: {parameters: {replicas: {map: [1, 2]}, step_s: 50, period_s: 2}}
"""
STEP_S = 50
KILL_TASKMANAGER = "pkill -KILL -f '[T]askManagerRunner'"  # the brackets: not the shell that says so
SLOW_S = 400.0  # whatever a machine under load takes


@pytest.fixture(scope="module")
def larger_fog(fog: Fog) -> Fog:
    fog.fogscale("up", "--fog-nodes", "2")
    return fog


class Experiment:
    """The command, given as often as it takes."""

    def __init__(self, fog: Fog, folder: Path) -> None:
        self._fog, self._folder = fog, folder
        self.file = folder / "experiment.yml"
        self.file.write_text(EXPERIMENT)

    @contextmanager
    def running(self) -> Iterator[subprocess.Popen[str]]:
        command = [sys.executable, "-m", "fogscale.cli", "run", str(self.file), "--out", str(self._folder)]
        process = subprocess.Popen(
            command, env=self._fog.environment, cwd=checkout(), text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            yield process
        finally:
            if process.poll() is None:
                os.kill(process.pid, signal.SIGKILL)
                process.wait()

    def journal(self) -> Recorded | None:
        found = list(self._folder.glob("experiment=*/policy=*/workload=*/seed=*/journal.jsonl"))
        return read(found[0]) if found else None

    @property
    def recorded(self) -> Recorded:
        found = self.journal()
        assert found is not None
        return found

    def until(self, look: Callable[[Recorded], bool], process: subprocess.Popen[str]) -> None:
        def has_come() -> bool:
            assert process.poll() is None, process.communicate()[0]
            recorded = self.journal()
            return recorded is not None and look(recorded)

        eventually(has_come, SLOW_S)


def is_calm(recorded: Recorded) -> bool:
    """Records flow, and no rescale is near."""
    processed = max((sample.processed_records for sample in recorded.samples), default=0)
    return processed > 100 and recorded.steps[-1].observation.time_s % STEP_S < STEP_S / 2 and runs(recorded)


def runs(recorded: Recorded) -> bool:
    last = recorded.steps[-1]
    return last.plan is None and not last.observation.reconfiguring


def plans(recorded: Recorded) -> int:
    return sum(step.plan is not None for step in recorded.steps)


def test_rescales_and_two_deaths_cost_no_record(larger_fog: Fog, tmp_path: Path) -> None:
    experiment = Experiment(larger_fog, tmp_path)
    with experiment.running() as process:
        experiment.until(is_calm, process)
        before = plans(experiment.recorded)
        larger_fog.ask("fog1", KILL_TASKMANAGER)
        experiment.until(lambda seen: plans(seen) > before, process)
        os.kill(process.pid, signal.SIGKILL)  # the next rescale has just begun
    with experiment.running() as process:
        output, _ = process.communicate(timeout=2 * SLOW_S)
    assert process.returncode == 0, output

    recorded = experiment.recorded
    assert recorded.finished, "not everything was processed"
    audit = recorded.findings["audit"]
    assert (audit["lost"], audit["doubled"], audit["unexpected"]) == (0, 0, 0), audit
    assert audit["produced"] == audit["found"] > 7000, audit  # 50 per s for 150 s
    assert len(recorded.findings["gaps"]) == 1

    receipts = [receipt for step in recorded.steps for receipt in step.observation.receipts]
    done = [len(each.plan.placement["map"]) for each in receipts if each.outcome == "done"]
    assert len(done) >= 2, receipts
    assert done == [2 - turn % 2 for turn in range(len(done))], receipts  # 2, 1, 2, …: none is missing
    notes = {(note.kind, note.sender) for step in recorded.steps for note in step.notes}
    assert {("away", "job"), ("back", "job")} <= notes, notes
