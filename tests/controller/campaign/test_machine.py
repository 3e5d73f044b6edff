"""What a record tells of the machine: how busy all of it was, and how long the run itself waited."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from controller.campaign.machine import Turns, watched_load

SPIN = "print(flush=True)\nwhile True: pass"


@pytest.fixture
def two_on_one_core() -> Iterator[list[int]]:
    """Two processes that always want to run, on one processor: each has its turn half of the time."""
    core = min(os.sched_getaffinity(0))
    processes = [subprocess.Popen([sys.executable, "-c", SPIN], stdout=subprocess.PIPE) for _ in range(2)]
    try:
        for each in processes:
            assert each.stdout is not None
            each.stdout.readline()  # from here on it wants nothing but the processor
            os.sched_setaffinity(each.pid, {core})
        yield [each.pid for each in processes]
    finally:
        for each in processes:
            each.kill()
            each.wait()


def test_of_two_that_share_a_processor_one_waits_at_any_time(two_on_one_core: list[int]) -> None:
    turns = Turns()
    turns.look(two_on_one_core)
    begun_ns = time.monotonic_ns()
    while turns.count < 20 and time.monotonic_ns() < begun_ns + 60e9:
        time.sleep(0.1)
        elapsed_ns = time.monotonic_ns() - begun_ns
        turns.look(two_on_one_core)
    assert turns.waited_ns > 0.7 * elapsed_ns  # the kernel counts a wait once it is over
    assert turns.mean_wait_ms == pytest.approx(turns.waited_ns / turns.count / 1e6)


def test_what_a_task_did_before_it_was_seen_is_not_counted() -> None:
    turns = Turns()
    turns.look([os.getpid()])
    assert turns.count == turns.waited_ns == 0
    assert turns.mean_wait_ms is None


def test_processes_that_have_ended_are_passed_over() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    turns = Turns()
    turns.look([ended.pid])
    assert turns.mean_wait_ms is None


def test_the_load_of_a_block_tells_how_long_its_own_process_waited() -> None:
    with watched_load() as load:
        until = time.process_time() + 0.05
        while time.process_time() < until:
            pass
    told = load.as_dict()
    assert told["load_average_max"] >= 0
    assert told.get("own_wait_ms", 0) >= 0
