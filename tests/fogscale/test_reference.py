"""The reference of experiment files: up to date, with a meaning for every key, no model left out."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest
import yaml

from controller.experiment import Experiment
from controller.testbeds.simulated.capacity import CapacityLaw
from controller.testbeds.simulated.faults import Fault
from controller.testbeds.simulated.settings import Simulation
from fogscale.reference import MODELS, meanings_of, reference, unit_of

PROJECT = Path(__file__).parents[2]
LISTED = [model for models in MODELS.values() for model in models]


def test_the_page_is_what_the_models_say():
    written = (PROJECT / "docs/reference.md").read_text(encoding="utf-8")
    assert written == reference(), "run: python -m fogscale.reference > docs/reference.md"


@pytest.mark.parametrize("model", LISTED, ids=lambda model: model.__name__)
def test_every_key_has_a_meaning(model):
    assert [name for name in model.model_fields if not meanings_of(model).get(name)] == []


def test_no_model_is_left_out():
    """As JSON Schema finds them from the two roots, and every law and fault."""
    schemas = {**Experiment.model_json_schema()["$defs"], **Simulation.model_json_schema()["$defs"]}
    models = {name for name, schema in schemas.items() if schema["type"] == "object"} - {"TestbedSettings"}
    assert models <= {model.__name__ for model in LISTED}
    for union in (CapacityLaw, Fault):
        assert set(get_args(get_args(union)[0])) <= set(LISTED)


def test_every_key_of_a_real_experiment_is_on_the_page():
    page = reference()
    experiment = yaml.safe_load((PROJECT / "paper_figures/ekf/experiment.yml").read_text(encoding="utf-8"))
    keys = {*experiment, *experiment["topology"], *experiment["testbed"], *experiment["testbed"]["noise"]}
    assert [key for key in keys if not re.search(rf"^\| `{key}` \|", page, re.MULTILINE)] == []


def test_units_follow_from_names():
    names = ("half_rtt_ms", "gamma_per_s_per_ms", "alpha_per_s", "step_s", "name")
    assert [unit_of(name) for name in names] == ["ms", "1/s per ms", "1/s", "s", ""]
