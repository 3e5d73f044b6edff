"""The controller of a real run stays small: it leaves aside what only reports and figures need."""

from __future__ import annotations

import json
import subprocess
import sys

from analysis.report import MOST_RESIDENT_MB

HEAVY = ("pandas", "scipy", "pyspark", "pyarrow", "matplotlib", "cryptography", "ansible", "minio")

# As `fogscale run --policy gesscale --testbed local` does it, up to the moment it would enter the testbed.
DRIVES = f"""\
import json, sys
from controller import experiment as experiments
from fogscale import cli
experiment = cli._on("local", None, ["gesscale"], None, None)
runs = experiments.runs_of(experiment, ["gesscale"], [1])
from controller.run import prepare
testbed, policy = prepare(runs[0]).ready()
from controller.testbeds.flink.footprint import Footprint
found = [name for name in {HEAVY!r} if name in sys.modules]
print(json.dumps({{"heavy": found, **Footprint().as_dict()}}))
"""


def test_who_drives_a_run_imports_no_statistics_and_no_spark():
    done = subprocess.run([sys.executable, "-c", DRIVES], capture_output=True, text=True, check=True)
    told = json.loads(done.stdout)
    assert told["heavy"] == []
    assert told["resident_mb"] < 0.8 * MOST_RESIDENT_MB, "clients and buffers are still to come"
