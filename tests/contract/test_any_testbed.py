"""The suite that every testbed runs: ours pass it, and a testbed that breaks a promise fails it."""

import subprocess
import sys

import numpy as np
import pytest

from fogscale.testing import TestbedContract
from tests.support.runs import simulated

DURATION_S = {"restart": 90, "in_place": (2, 20), "boot": (5, 25), "pause": 12.5, "instant": 0}
RATES_PER_S = [60] * 1800


@pytest.mark.parametrize("style", DURATION_S)
class TestSimulated(TestbedContract):
    @pytest.fixture(autouse=True)
    def _chosen(self, style):
        self.style = style

    def build(self):
        reconfiguration = {"style": self.style, "duration_s": DURATION_S[self.style]}
        return simulated(
            np.random.default_rng(1).poisson(RATES_PER_S),
            reconfiguration=reconfiguration,
            memory={"map": {"idle_ratio": 0.2}},
        )


THIRD_PARTY = """
from fogscale.testing import TestbedContract
from tests.support.runs import simulated

class Mine:
    '''A testbed of another package: here, one that hands everything to a simulated job.'''

    def __init__(self):
        self._job = simulated([60] * 1800)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def __getattr__(self, name):
        return getattr(self._job, name)
{breach}

class TestMine(TestbedContract):
    def build(self):
        return Mine()
"""

BREACHES = {
    "none": ("", None),
    "apply waits": (
        "    def apply(self, plan):\n        __import__('time').sleep(1.2)\n        self._job.apply(plan)",
        "test_apply_returns_at_once",
    ),
    "no receipt": (
        "    def observe(self):\n        from dataclasses import replace\n"
        "        return replace(self._job.observe(), receipts=())",
        "test_every_plan_gets_one_receipt",
    ),
    "offers what it has not": (
        "    @property\n    def offers(self):\n        from controller.model import Capability\n"
        "        return frozenset(Capability)",
        "test_what_it_offers_to_measure_is_measured",
    ),
    "samples twice": (
        "    def samples(self):\n        self._all = [*getattr(self, '_all', []), *self._job.samples()]\n"
        "        return iter(self._all)",
        "test_a_sample_is_handed_out_once",
    ),
    "restores nothing": (
        "    def restore(self, steps):\n        pass",
        "test_it_is_restored_to_where_the_journal_ends",
    ),
    "hides failures": (
        "    def __exit__(self, *error):\n        return True",
        "test_it_does_not_hide_a_failure_of_the_loop",
    ),
}


@pytest.mark.parametrize("breach", BREACHES)
def test_a_third_party_runs_it_by_one_import_and_a_breach_is_found(tmp_path, breach):
    code, caught_by = BREACHES[breach]
    file = tmp_path / "test_mine.py"
    file.write_text(THIRD_PARTY.format(breach=code), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", str(file)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if caught_by is None:
        assert ran.returncode == 0, ran.stdout
    else:
        assert ran.returncode == 1, ran.stdout
        failed = [line for line in ran.stdout.splitlines() if line.startswith("FAILED")]
        assert any(f"::TestMine::{caught_by}" in line for line in failed)
