"""Inotify instances that are left are counted by taking them, and one clear line says where they are few."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fog.checks.inotify import check_spare_instances, spare_instances

# A process that may open but two more files gets but two instances, whatever its user may have.
FEW = """\
import os, resource
from fog.checks.inotify import check_spare_instances, spare_instances
open_already = len(os.listdir("/proc/self/fd")) - 1
resource.setrlimit(resource.RLIMIT_NOFILE, (open_already + 2, open_already + 2))
print(spare_instances(10), spare_instances(10))
resource.setrlimit(resource.RLIMIT_NOFILE, (open_already + 2, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
try:
    check_spare_instances(10)
except Exception as error:
    print(error)
"""


def open_files():
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.skipif(spare_instances(4) < 4, reason="this machine has none to spare")
def test_what_is_taken_to_be_counted_is_given_back():
    before = open_files()
    check_spare_instances(2)
    assert spare_instances(3) == 3
    assert open_files() == before


def test_where_they_run_out_the_command_that_helps_is_named():
    done = subprocess.run([sys.executable, "-c", FEW], capture_output=True, text=True, check=True)
    counted, line = done.stdout.splitlines()
    assert counted == "2 2"
    assert line.startswith("only 1 of this user's") or line.startswith("only 2 of this user's")
    assert "sysctl -w fs.inotify.max_user_instances=512" in line
