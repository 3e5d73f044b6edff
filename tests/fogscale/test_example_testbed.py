"""The whole testbed that CONTRIBUTING points to keeps the contract, and a policy scales on it."""

import runpy
from pathlib import Path

import pytest

import fogscale as fs
from controller import testbeds
from controller.experiment import Experiment, runs_of
from controller.run import prepare
from fogscale.testing import DeterministicTestbedContract

EXAMPLE = Path(__file__).parents[2] / "docs" / "example_testbed.py"


@pytest.fixture(autouse=True)
def experiment(monkeypatch):
    """Of a job on the bucket, which is known for as long as a test takes."""
    testbeds.names()
    monkeypatch.setattr(testbeds.registry, "registered", dict(testbeds.registry.registered))
    runpy.run_path(str(EXAMPLE))
    return Experiment.model_validate(
        {
            "name": "bucket",
            "topology": {
                "nodes": [{"name": f"n{place}"} for place in range(5)],
                "operators": [{"name": "source", "n_max": 1}, {"name": "map", "upstream": ["source"]}],
                "rtt_ms": {"uniform_ms": 5},
            },
            "workload": {"name": "ramp", "speed": 10},
            "measured_operator": "map",
            "testbed": {"kind": "bucket"},
            "policies": {"static": {}, "ds2": {}},
            "seeds": 1,
        }
    )


class TestBucket(DeterministicTestbedContract):
    @pytest.fixture(autouse=True)
    def _of_this_experiment(self, experiment):
        self.experiment = experiment

    def build_seeded(self, seed):
        [run] = runs_of(self.experiment, ["static"], [seed])
        return prepare(run).setup.testbed()


def test_a_policy_that_needs_more_than_it_offers_is_refused(experiment):
    with pytest.raises(fs.FogscaleError, match="ds2"):
        fs.run(experiment, "ds2", seed=1)
