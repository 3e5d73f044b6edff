"""The CPU meter sees work, and remembers processes that have ended."""

from __future__ import annotations

import subprocess
import sys
import time

from paper_figures.cpu import CpuMeter

BUSY = "import time\nwhile time.process_time() < 0.5: pass\nprint('done', flush=True)\ninput()"


def test_work_of_a_child_counts_even_after_its_end():
    meter = CpuMeter()
    with subprocess.Popen(
        [sys.executable, "-c", BUSY], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        child.stdout.readline()
        while_alive_s = meter.read_s()
        child.communicate(b"\n")
    assert while_alive_s >= 0.4
    assert meter.read_s() >= while_alive_s


def test_only_work_since_the_meter_was_made_counts():
    end = time.process_time() + 0.2
    while time.process_time() < end:
        pass
    assert CpuMeter().read_s() < 0.1
