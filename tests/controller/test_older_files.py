"""Files from before a run named its testbed still mean what they meant."""

import pytest
import yaml

from controller.experiment import load, runs_of, scenarios_of, varied
from controller.older_files import in_todays_words, path_in_todays_words
from controller.run import execute, run_of
from fogscale.errors import FogscaleError
from tests.support.runs import load_csv, run_values


@pytest.fixture
def older(tmp_path):
    """An experiment as it was written then, with `simulation` in all places where it could stand."""
    run = run_values("static", load_csv(tmp_path, [60] * 5))
    keys = ("workload", "topology", "start", "pins", "measured_operator")
    simulation = {key: value for key, value in run["testbed"].items() if key != "kind"}
    return {key: run[key] for key in keys} | {
        "name": "older",
        "simulation": simulation,
        "policies": {"static": {}, "ideal": {"simulation": {"reconfiguration": {"style": "instant"}}}},
        "scenarios": {
            "calm": {"title": "Calm"},
            "slow": {
                "title": "Slow",
                "changes": {
                    "simulation": {"step_s": 5},
                    "policies": {"static": {"simulation": {"sample_interval_s": 20}}},
                },
            },
        },
        "parameters": [
            {"path": "simulation.capacity.map.per_replica_per_s", "origin": "assumed", "why": "."}
        ],
    }


def written(folder, values):
    path = folder / "experiment.yml"
    path.write_text(yaml.safe_dump(values), encoding="utf-8")
    return path


def test_an_older_experiment_runs_on_the_simulated_testbed(tmp_path, older):
    experiment = load(written(tmp_path, older))
    scenarios = scenarios_of(experiment)
    assert experiment.testbed.kind == "simulated"
    assert {run.policy: run.testbed.reconfiguration.style for run in runs_of(experiment)} == {
        "static": "restart",
        "ideal": "instant",
    }
    [slow] = runs_of(scenarios["slow"], ["static"])
    assert (slow.testbed.step_s, slow.testbed.sample_interval_s) == (5, 20)
    assert experiment.parameters[0].path == "testbed.capacity.map.per_replica_per_s"


def test_it_means_the_same_in_both_words(tmp_path, older):
    today = in_todays_words(older)
    assert "simulation" not in yaml.safe_dump(today)
    assert load(written(tmp_path, today)) == load(written(tmp_path, older))
    assert in_todays_words(today) == today


def test_a_dotted_path_varies_the_same_setting_in_both_words(tmp_path, older):
    experiment = load(written(tmp_path, older))
    path = "capacity.map.per_replica_per_s"
    then, now = varied(experiment, {f"simulation.{path}": 50}), varied(experiment, {f"testbed.{path}": 50})
    assert then == now
    assert now.testbed.capacity["map"].per_replica_per_s == 50


@pytest.mark.parametrize(
    ("then", "now"),
    [
        ("simulation.step_s", "testbed.step_s"),
        ("simulation", "testbed"),
        ("policies.ideal.simulation.step_s", "policies.ideal.testbed.step_s"),
        ("policies.simulation.parameters.n", "policies.simulation.parameters.n"),
        ("scenarios.a.changes.simulation.faults", "scenarios.a.changes.testbed.faults"),
        ("scenarios.a.changes.policies.p.simulation.faults", "scenarios.a.changes.policies.p.testbed.faults"),
        ("scenarios.simulation.title", "scenarios.simulation.title"),
        ("workload.scale", "workload.scale"),
    ],
)
def test_only_where_it_meant_the_testbed_is_the_word_another(then, now):
    assert path_in_todays_words(then) == now


def test_an_older_manifest_is_read_as_the_run_it_was(tmp_path, older):
    [run] = runs_of(load(written(tmp_path, older)), ["static"])
    execute(run, tmp_path)
    manifest = tmp_path / run.folder / "run.yml"
    values = yaml.safe_load(manifest.read_text(encoding="utf-8"))
    simulation = values["run"].pop("testbed")
    assert simulation.pop("kind") == "simulated"
    values["run"]["simulation"] = simulation
    manifest.write_text(yaml.safe_dump(values), encoding="utf-8")
    assert run_of(manifest.parent) == run


def test_both_words_at_once_are_refused(older):
    with pytest.raises(FogscaleError, match="'simulation' is now called 'testbed', and both are there"):
        in_todays_words(older | {"testbed": {"kind": "simulated"}})


def test_a_mistake_is_left_to_the_check_that_names_it_best(tmp_path, older):
    with pytest.raises(FogscaleError, match=r"testbed"):
        load(written(tmp_path, older | {"simulation": 5}))
    with pytest.raises(FogscaleError, match=r"policies\.static"):
        load(written(tmp_path, older | {"policies": {"static": 5}}))
