"""The suite that every testbed runs: ours pass it, and a testbed that breaks a promise fails it."""

import subprocess
import sys

import numpy as np
import pytest

from fogscale import testing
from fogscale.testing import DeterministicTestbedContract
from tests.support.runs import simulated

DURATION_S = {"restart": 90, "in_place": (2, 20), "boot": (5, 25), "pause": 12.5, "instant": 0}
RATES_PER_S = [60] * 1800
NOISE = {"relative": 0.03, "cpu_relative": 0.1, "settling_factor": 3, "stale_ratio": 0.1}


@pytest.mark.parametrize("buffering", ["back_pressure", "queues"])
@pytest.mark.parametrize("style", DURATION_S)
class TestSimulated(DeterministicTestbedContract):
    @pytest.fixture(autouse=True)
    def _chosen(self, style, buffering):
        self.style, self.buffering = style, buffering

    def build_seeded(self, seed):
        reconfiguration = {"style": self.style, "duration_s": DURATION_S[self.style]}
        return simulated(
            np.random.default_rng(seed).poisson(RATES_PER_S),
            seed=seed,
            buffering=self.buffering,
            noise=NOISE,
            reconfiguration=reconfiguration,
            memory={"map": {"idle_ratio": 0.2}},
        )


THIRD_PARTY = """
from fogscale.testing import {contract}
from tests.support.runs import simulated

class Mine:
    '''A testbed of another package: here, one that hands everything to a simulated job.'''

    def __init__(self, seed=1):
        self._job = simulated([50 + seed] * 1800, seed=seed)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def __getattr__(self, name):
        return getattr(self._job, name)
{breach}

class TestMine({contract}):
    def build(self):
        return Mine()

    def build_seeded(self, seed):
        return Mine(seed)
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


BREACHES_OF_A_DETERMINISTIC_ONE = {
    "none": ("", None),
    "a clock in it": (
        "    def observe(self):\n        from dataclasses import replace\n"
        "        return replace(self._job.observe(), lag_records=__import__('time').perf_counter())",
        "test_the_same_seed_gives_the_same_run_byte_for_byte",
    ),
    "waits a little longer": (
        "    def wait(self, seconds):\n        self._job.wait(seconds + 1)",
        "test_waiting_takes_exactly_as_long_as_it_was_asked_to",
    ),
    "no seed": (
        "    def __init__(self, seed=1):\n        self._job = simulated([60] * 1800)",
        "test_another_seed_gives_another_run",
    ),
    "loses records": (
        "    def samples(self):\n        from dataclasses import replace\n"
        "        return (replace(each, lag_records=0) for each in self._job.samples())",
        "test_every_record_is_processed_or_waits",
    ),
    "takes any journal": (
        "    def restore(self, steps):\n        for step in steps:\n            list(self.samples())\n"
        "            self.observe()\n            self.wait(step.waited_s)",
        "test_the_journal_of_another_run_is_not_restored",
    ),
}


TRIED = [
    (contract, breach)
    for contract, breaches in (
        ("TestbedContract", BREACHES),
        ("DeterministicTestbedContract", BREACHES_OF_A_DETERMINISTIC_ONE),
    )
    for breach in breaches
]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """PASSED or FAILED, and the test, for each of those that were tried; one process tries them all."""
    folder = tmp_path_factory.mktemp("third party")
    for place, (contract, breach) in enumerate(TRIED):
        code, _ = (BREACHES | BREACHES_OF_A_DETERMINISTIC_ONE)[breach]
        text = THIRD_PARTY.format(contract=contract, breach=code)
        (folder / f"test_{place}.py").write_text(text, encoding="utf-8")
    options = ["-q", "-rfp", "-p", "no:cacheprovider", "-p", "no:xdist", "--import-mode=importlib"]
    command = [sys.executable, "-m", "pytest", *options, str(folder)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert ran.returncode == 1, ran.stdout + ran.stderr
    found = [line for line in ran.stdout.splitlines() if line.startswith(("PASSED", "FAILED"))]
    return [[line for line in found if f"test_{place}.py::" in line] for place in range(len(TRIED))]


@pytest.mark.parametrize(("place", "contract", "breach"), [(n, *tried) for n, tried in enumerate(TRIED)])
def test_a_third_party_runs_it_by_one_import_and_a_breach_is_found(outcomes, place, contract, breach):
    _, caught_by = (BREACHES | BREACHES_OF_A_DETERMINISTIC_ONE)[breach]
    promised = [name for name in dir(getattr(testing, contract)) if name.startswith("test_")]
    assert len(outcomes[place]) == len(promised)
    failed = [line for line in outcomes[place] if line.startswith("FAILED")]
    if caught_by is None:
        assert failed == []
    else:
        assert any(f"::TestMine::{caught_by}" in line for line in failed), failed
