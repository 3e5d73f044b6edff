"""Whose lease it is: of a process that runs, or of one that is known to be gone."""

import socket
import subprocess
import sys

from controller.testbeds.flink.holder import has_ended, this_process


def test_this_process_runs():
    assert not has_ended(this_process())


def test_a_process_that_ended_is_known_to_be_gone():
    program = "from controller.testbeds.flink.holder import this_process; print(this_process())"
    holder = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    assert has_ended(holder.strip())


def test_another_process_of_the_same_number_is_another():
    host, number, begun = this_process().rsplit("/", 2)
    assert has_ended(f"{host}/{number}/{int(begun) - 1}")


def test_of_another_machine_nothing_is_known():
    assert not has_ended("elsewhere/1/1")
    assert not has_ended(f"{socket.gethostname()}-1")
    assert not has_ended("")
