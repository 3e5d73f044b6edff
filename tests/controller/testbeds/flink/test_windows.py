"""Results of many records, from a real job through a real broker: counted as they come, and audited."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import pytest

from controller.testbeds.flink.audit import audited
from controller.testbeds.flink.broker import Output, places_of_group, set_group
from controller.testbeds.flink.ledger import WindowLedger
from tests.support import flink_jobs
from workloads.jobs.catalog import find, program_arguments

pytestmark = pytest.mark.kafka

RUN, GROUP = "r1", "fogscale-windows"
PATIENCE_S = 600.0


@pytest.fixture(autouse=True)
def _tools(require):
    flink_jobs.require_tools(require)


def produced(broker, topic, records, report):
    """The numbers that the producer sent."""
    command = [
        sys.executable, "-m", "fogscale.cli", "produce", "--bootstrap", broker.bootstrap, "--topic", topic,
        "--workload", "taxi", "--records", records, "--run", RUN, "--speed", "100", "--copies", "1",
        "--duration", "2", "--report", str(report),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return range(json.loads(report.read_text())["topics"][0]["next_number"])


def counted(broker, topic, wanted, counted_by):
    """As the watch over a run does it, until all records are counted and nothing more comes: the markers of
    the last transactions may take the broker a while."""
    access, ledger, more = {"bootstrap.servers": broker.bootstrap}, WindowLedger(counted_by=counted_by), True
    readers = [Output(access, topic, RUN, {0: 0}, committed=committed) for committed in (False, True)]
    deadline_s = time.monotonic() + PATIENCE_S
    while (more or ledger.committed < wanted) and time.monotonic() < deadline_s:
        left, kept = readers[0].read(0.5), readers[1].read(0.5)
        ledger.leave(left, 0)
        ledger.commit(kept, 0)
        more = bool(left or kept)
    for reader in readers:
        reader.close()
    return ledger


@pytest.mark.parametrize("name", ["clickfraud", "toproutes"])
def test_every_record_is_counted_once_and_one_result_that_is_missing_is_noticed(
    broker, new_topic, tmp_path, name
):
    job, source, target = find(name), new_topic(3), new_topic(1)
    sent = produced(broker, source, job.records, tmp_path / "report.json")
    settings = {
        "brokers": broker.bootstrap, "input": source, "output": target, "until": "latest",
        "checkpoint-ms": 500, "parallelism": 2, "cost-us": 0,
    }  # fmt: skip
    done = flink_jobs.run(name, *program_arguments(settings))
    assert done.returncode == 0, done.stderr[-3000:]

    ledger = counted(broker, target, len(sent), job.counted_by)
    assert (ledger.processed, ledger.committed) == (len(sent), len(sent)) > (300, 300)
    assert ledger.responses().mean_ms > 0

    access = {"bootstrap.servers": broker.bootstrap}
    audit = audited(access, target, RUN, {0: 0}, sent, True, job.counted_by)
    assert (audit.clean, audit.found, audit.by_sums) == (True, len(sent), True)
    assert audited(access, target, RUN, {0: 1}, sent, True, job.counted_by).lost > 0


def test_how_far_a_group_has_read_is_what_it_committed(broker, new_topic):
    topic, access = new_topic(2), {"bootstrap.servers": broker.bootstrap}
    assert places_of_group(access, GROUP, topic, [0, 1]) == {}
    set_group(access, GROUP, topic, {1: 7})
    assert places_of_group(access, GROUP, topic, [0, 1]) == {1: 7}
