"""Chains of warm starts: a learner through a short piece of the EDF paper's load, again and again."""

import json
from pathlib import Path

import pytest

import paper_figures
from analysis.warm_starts import SEEDS_APART, gone_on
from controller.experiment import load, runs_of, varied
from controller.policies.edf import Edf
from controller.policies.edf.costs import Costs
from controller.run import taught
from fogscale.errors import FogscaleError

FOLDER = Path(paper_figures.__file__).parent / "edf"


@pytest.fixture(scope="module")
def first():
    """Twelve minutes."""
    experiment = varied(load(FOLDER / "experiment.yml"), {"testbed.span_s": 7200.0})
    return runs_of(experiment, ["ql_res"], [3])[0]


def costs(run):
    return Costs(Edf(**run.policy_parameters))


def test_every_run_starts_from_what_the_one_before_has_learned(first, tmp_path):
    rows = gone_on(first.model_dump_json(), tmp_path / "chain.json", 3, costs)
    learned = {}
    for number, row in enumerate(rows):
        seed = 3 + SEEDS_APART * number
        run = first.model_copy(update={"seed": seed, "learned": learned})
        meter = costs(run)
        learned = taught(run, meter)
        assert row == {"policy": "ql_res", "seed": 3, "run": number + 1, **meter.row()}
    assert json.loads((tmp_path / "chain.json").read_text())["learned"] == learned


def test_who_was_interrupted_goes_on(first, tmp_path):
    document = first.model_dump_json()
    whole = gone_on(document, tmp_path / "whole.json", 3, costs)
    gone_on(document, tmp_path / "parts.json", 1, costs)
    begun = []
    parts = gone_on(document, tmp_path / "parts.json", 3, lambda run: begun.append(run.seed) or costs(run))
    assert parts == whole
    assert begun == [3 + SEEDS_APART, 3 + 2 * SEEDS_APART]
    assert (tmp_path / "parts.json").read_bytes() == (tmp_path / "whole.json").read_bytes()
    assert gone_on(document, tmp_path / "parts.json", 2, costs) == whole[:2]  # all there: nothing is run


@pytest.mark.parametrize("content", ["", "[1]", '{"rows": 3}', '{"rows": [], "learned": 1}'])
def test_a_damaged_file_is_named(first, tmp_path, content):
    path = tmp_path / "chain.json"
    path.write_text(content)
    with pytest.raises(FogscaleError, match="is damaged: remove it") as refusal:
        gone_on(first.model_dump_json(), path, 1, costs)
    assert str(path) in str(refusal.value)


def test_a_policy_that_learns_nothing_makes_no_chain(first):
    static = first.model_copy(update={"policy": "static", "variant_of": None, "policy_parameters": {}})
    with pytest.raises(FogscaleError, match="learns nothing that another run could start from"):
        taught(static, costs(first))
