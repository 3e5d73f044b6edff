"""Experiments: a file becomes runs, and a mistake in it becomes one line."""

from pathlib import Path

import pytest
import yaml

from controller.experiment import Experiment, load, merged, runs_of, scenario_of, scenarios_of, varied
from controller.run import prepare
from fogscale.errors import FogscaleError
from tests.support.runs import load_csv, run_values

ROOT = Path(__file__).parents[2]
GESSCALE = ROOT / "paper_figures" / "gesscale" / "experiment.yml"


@pytest.fixture
def values(tmp_path):
    """An experiment on the chain of tests/support: two policies, three seeds."""
    run = run_values("gesscale", load_csv(tmp_path, [100.0] * 10))
    shared = {
        key: run[key] for key in ("workload", "topology", "start", "pins", "measured_operator", "testbed")
    }
    return {
        "name": "small",
        **shared,
        "guards": {"warmup_s": 60},
        "policies": {
            "gesscale": {"parameters": {"n_min": 2}},
            "ideal": {"guards": {}, "testbed": {"reconfiguration": {"style": "instant", "duration_s": 0}}},
        },
        "seeds": 3,
    }


@pytest.fixture
def experiment(values):
    return Experiment.model_validate(values)


def loaded(tmp_path, values):
    path = tmp_path / "experiment.yml"
    path.write_text(yaml.safe_dump(values), encoding="utf-8")
    return load(path)


def prepared(tmp_path, values):
    """Everything that can be wrong shows before anything has happened."""
    for run in runs_of(loaded(tmp_path, values), seeds=[1]):
        made = prepare(run)
        made.setup.testbed()
        made.policy()


def changed(values, path, value):
    *parents, last = path.split(".")
    inner = values
    for part in parents:
        inner = inner[int(part)] if isinstance(inner, list) else inner[part]
    inner[last] = value
    return values


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        pytest.param("sedes", 3, "unknown key 'sedes': did you mean seeds?", id="unknown key"),
        pytest.param(
            "testbed.nois",
            {},
            "testbed: unknown key 'nois': did you mean noise?",
            id="unknown key further down",
        ),
        pytest.param(
            "testbed.reconfiguration.style",
            "restrat",
            "testbed.reconfiguration.style",
            id="unknown style",
        ),
        pytest.param(
            "testbed.capacity.map",
            {"law": "liner", "per_replica_per_s": 1},
            "testbed.capacity.map",
            id="unknown law",
        ),
        pytest.param(
            "testbed.capacity.map.per_replica",
            100,
            "did you mean per_replica_per_s?",
            id="unknown key of a law",
        ),
        pytest.param(
            "testbed.capacity",
            {"map": {"law": "linear", "per_replica_per_s": 1}},
            "no law for operator",
            id="no law",
        ),
        pytest.param(
            "testbed.capacity.mpa",
            {"law": "linear", "per_replica_per_s": 1},
            "unknown operator 'mpa': did you mean map?",
            id="a law for nobody",
        ),
        pytest.param(
            "testbed.metric_window_s",
            "2 minutes",
            "testbed.metric_window_s: unknown unit 'minutes': did you mean min?",
            id="unknown unit",
        ),
        pytest.param(
            "testbed.sample_interval_s",
            2.5,
            "sample_interval_s must be a multiple of step_s (1 s)",
            id="samples between steps",
        ),
        pytest.param(
            "testbed.reconfiguration.duration_s", [9, 2], "[9, 2] runs backwards", id="a range backwards"
        ),
        pytest.param(
            "testbed.faults",
            [{"kind": "node_loss", "at_s": 60, "node": "fog9"}],
            "testbed.faults: unknown node 'fog9'",
            id="a fault of an unknown node",
        ),
        pytest.param("policies.gescale", {}, "unknown policy 'gescale': did you mean gesscale?", id="policy"),
        pytest.param(
            "policies.gesscale.parameters.n_mni",
            2,
            "unknown parameter of policy 'gesscale' 'n_mni': did you mean n_min?",
            id="unknown parameter",
        ),
        pytest.param(
            "policies.gesscale.parameters.n_min",
            "two",
            "parameter 'n_min' of policy 'gesscale'",
            id="no number",
        ),
        pytest.param(
            "guards.warmup", 60, "unknown guard 'warmup': did you mean warmup_s?", id="unknown guard"
        ),
        pytest.param("guards.warmup_s", "soon", "guards.warmup_s", id="a guard without a number"),
        pytest.param(
            "guards.max_replicas", "2 min", "max_replicas: '2 min' is not a number", id="replicas in minutes"
        ),
        pytest.param("guards.max_replicas", True, "max_replicas: true is not a number", id="replicas: yes"),
        pytest.param(
            "guards.warmup_s", float("nan"), "guards.warmup_s: give a finite number", id="a guard of nan"
        ),
        pytest.param(
            "testbed.capacity.map.per_replica_per_s", float("inf"), "give a finite number", id="infinite"
        ),
        pytest.param("workload.speed", 5e-324, "too small a number", id="the smallest number"),
        pytest.param("testbed.drain_limit_s", 1e12, "drain_limit_s", id="a drain of ages"),
        pytest.param("seeds", 10**9, "seeds", id="too many seeds"),
        pytest.param("seeds", True, "seeds: true is neither a number nor a text", id="seeds: yes"),
        pytest.param("start.map", 10**6, "start.map", id="a start of a million"),
        pytest.param("name", "n" * 5000, "is too long", id="a long name"),
        pytest.param("description", "a\0b", "NUL", id="a text with NUL"),
        pytest.param(
            "scenarios", {"a": {"title": "A", "changes": {"name": "b"}}}, "'name' is not for", id="renamed"
        ),
        pytest.param("workload.name", "taxy", "unknown workload 'taxy': did you mean taxi?", id="workload"),
        pytest.param("workload.name", "nowhere.csv", "nowhere.csv", id="a CSV that does not exist"),
        pytest.param("workload.copies", 0, "workload.copies", id="no copy"),
        pytest.param(
            "workload.operator",
            "sorce",
            "unknown operator 'sorce': did you mean source?",
            id="an unknown entry",
        ),
        pytest.param("pins.source", ["serivces"], "did you mean services?", id="an unknown node"),
        pytest.param("start.mapp", 2, "unknown operator 'mapp': did you mean map?", id="start of nobody"),
        pytest.param("start.map", 6, "6 replicas of 'map' are outside 1..5", id="start beyond n_max"),
        pytest.param("measured_operator", "mop", "unknown operator 'mop': did you mean map?", id="measured"),
        pytest.param("seeds", 0, "seeds", id="no seed"),
        pytest.param("topology.operators.1.upstream", ["sauce"], "did you mean source?", id="upstream"),
    ],
)
def test_a_mistake_is_told_in_one_line(tmp_path, values, path, value, message):
    with pytest.raises(FogscaleError) as error:
        prepared(tmp_path, changed(values, path, value))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_the_experiment_without_a_mistake_is_fine(tmp_path, values):
    prepared(tmp_path, values)


@pytest.mark.parametrize(
    "missing", ["name", "topology", "workload", "testbed", "policies", "measured_operator"]
)
def test_what_is_missing_is_named(tmp_path, values, missing):
    del values[missing]
    with pytest.raises(FogscaleError, match=f"{missing}: Field required"):
        loaded(tmp_path, values)


def test_a_guard_takes_a_duration_with_a_unit_like_every_other_setting(tmp_path, values):
    values["guards"] = {"warmup_s": "6 min"}
    assert runs_of(loaded(tmp_path, values), seeds=[1])[0].guards == {"warmup_s": 360}


def test_the_file_is_named_with_the_mistake(tmp_path, values):
    with pytest.raises(FogscaleError, match=r"experiment\.yml: unknown key"):
        loaded(tmp_path, values | {"sedes": 3})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no experiment"),
        ("- a\n- b\n", "holds no experiment"),
        ("name: [unclosed", "is not YAML"),
        ("name: 'a'\n b: c\n", "is not YAML"),
    ],
)
def test_a_file_that_is_no_experiment_is_explained(tmp_path, text, message):
    path = tmp_path / "experiment.yml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(FogscaleError, match=message) as error:
        load(path)
    assert "\n" not in str(error.value)


def test_a_file_that_does_not_exist_is_explained(tmp_path):
    with pytest.raises(FogscaleError, match=r"cannot read experiment .*nowhere\.yml: No such file"):
        load(tmp_path / "nowhere.yml")


def test_a_file_that_is_no_text_is_explained(tmp_path):
    path = tmp_path / "experiment.yml"
    path.write_bytes(b"name: \xff\xfe\n")
    with pytest.raises(FogscaleError, match="is not"):
        load(path)


# Runs


def test_every_policy_runs_with_every_seed(experiment):
    runs = runs_of(experiment)
    assert [(run.policy, run.seed) for run in runs] == [
        ("gesscale", 1),
        ("gesscale", 2),
        ("gesscale", 3),
        ("ideal", 1),
        ("ideal", 2),
        ("ideal", 3),
    ]


def test_policies_and_seeds_can_be_chosen(experiment):
    runs = runs_of(experiment, policies=["static"], seeds=[7, 8])
    assert [(run.policy, run.seed) for run in runs] == [("static", 7), ("static", 8)]
    assert runs[0].guards == {"warmup_s": 60}


def test_a_policy_has_its_own_parameters_guards_and_testbed(experiment):
    gesscale, ideal = runs_of(experiment, seeds=[1])
    assert gesscale.policy_parameters == {"n_min": 2}
    assert gesscale.guards == {"warmup_s": 60}
    assert ideal.guards == {}
    assert gesscale.testbed.reconfiguration.style == "restart"
    assert ideal.testbed.reconfiguration.style == "instant"
    assert ideal.testbed.capacity == gesscale.testbed.capacity


def test_an_unknown_policy_is_refused_before_any_run(experiment):
    with pytest.raises(FogscaleError, match=r"unknown policy 'statik': did you mean static\?"):
        runs_of(experiment, policies=["statik"])


def test_a_mistake_in_what_is_special_to_a_policy_names_the_policy(values):
    values["policies"]["ideal"]["testbed"] = {"metric_window": 10}
    with pytest.raises(FogscaleError, match=r"policies\.ideal\.testbed: unknown key 'metric_window'"):
        runs_of(Experiment.model_validate(values))


def test_another_workload_brings_its_own_pace(experiment):
    run = runs_of(experiment, policies=["static"], seeds=[1], workload="worldcup98")[0]
    assert (run.workload.name, run.workload.speed, run.workload.copies) == ("worldcup98", None, None)


def test_the_experiments_own_workload_by_name_keeps_the_pace_it_has_there(experiment):
    run = runs_of(experiment, policies=["static"], seeds=[1], workload=experiment.workload.name)[0]
    assert run.workload == experiment.workload


def test_a_run_is_a_folder(experiment):
    run = runs_of(experiment, policies=["static"], seeds=[7])[0]
    assert run.folder == Path("experiment=small/policy=static/workload=load/seed=7")


def test_a_run_is_plain_data(experiment):
    for run in runs_of(experiment, variation={"testbed.capacity.map.beta": 0.8}):
        assert type(run).model_validate_json(run.model_dump_json()) == run


# Variations


def test_merging_lays_changes_over_values_level_by_level():
    assert merged({"a": {"b": 1, "c": 2}, "d": 3}, {"a": {"c": 9}, "e": 4}) == {
        "a": {"b": 1, "c": 9},
        "d": 3,
        "e": 4,
    }


def test_merging_replaces_what_is_no_mapping():
    assert merged({"a": {"b": 1}, "c": [1, 2]}, {"a": 5, "c": [3]}) == {"a": 5, "c": [3]}


def test_merging_leaves_its_arguments_alone():
    values, changes = {"a": {"b": 1}}, {"a": {"b": 2}}
    merged(values, changes)
    assert (values, changes) == ({"a": {"b": 1}}, {"a": {"b": 2}})


def test_a_setting_is_varied_by_its_path(experiment):
    other = varied(experiment, {"testbed.capacity.map.per_replica_per_s": 50, "seeds": 2})
    assert other.testbed.capacity["map"].per_replica_per_s == 50
    assert other.seeds == 2
    assert other.topology == experiment.topology
    assert experiment.testbed.capacity["map"].per_replica_per_s == 100


def test_a_capacity_law_is_varied_as_a_whole(experiment):
    law = {"law": "power_latency", "alpha_per_s": 90, "beta": 0.8}
    other = varied(experiment, {"testbed.capacity.map": law})
    assert other.testbed.capacity["map"].law == "power_latency"


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("tesbed.step_s", "unknown key 'tesbed': did you mean testbed?"),
        ("testbed.capacity.map.bta", "unknown key 'bta'"),
        ("seeds.first", "seeds"),
    ],
)
def test_a_path_that_leads_nowhere_is_explained(experiment, path, message):
    with pytest.raises(FogscaleError) as error:
        varied(experiment, {path: 1})
    assert message in str(error.value)


# The paper's


def test_the_gesscale_experiment_can_be_prepared():
    experiment = load(GESSCALE)
    for run in runs_of(experiment, seeds=[1]):
        made = prepare(run)
        assert made.duration_s == 288 * 60
        assert made.policy().needs <= made.setup.testbed().offers


def test_the_gesscale_experiment_starts_with_two_replicas_of_six():
    made = prepare(runs_of(load(GESSCALE), policies=["gesscale"], seeds=[1])[0])
    assert made.start["map"] == ("fog1", "fog2")
    assert len(made.setup.capacity_per_s["map"]) == 6


def test_another_rescale_style_does_not_keep_the_duration_of_the_one_before(experiment):
    other = varied(experiment, {"testbed.reconfiguration": {"style": "instant"}})
    assert other.testbed.reconfiguration.range_s == (0, 0)


def test_an_instant_that_takes_time_is_refused(experiment):
    with pytest.raises(FogscaleError, match="instant takes no time"):
        varied(experiment, {"testbed.reconfiguration": {"style": "instant", "duration_s": 5}})


# Scenarios


def test_an_experiment_without_scenarios_is_its_only_one(experiment):
    assert scenarios_of(experiment) == {"": experiment}
    assert scenario_of(experiment, None) is experiment


def test_a_scenario_is_the_experiment_with_something_of_its_own(values):
    values["scenarios"] = {
        "calm": {"title": "Calm", "changes": {"workload": {"scale": 0.5}}},
        "alone": {"title": "Alone", "policies": ["ideal"]},
    }
    found = scenarios_of(Experiment.model_validate(values))
    assert [scenario.name for scenario in found.values()] == ["small.calm", "small.alone"]
    assert found["calm"].workload.scale == 0.5
    assert found["calm"].workload.name == found["alone"].workload.name
    assert list(found["calm"].policies) == ["gesscale", "ideal"]
    assert list(found["alone"].policies) == ["ideal"]
    assert scenario_of(Experiment.model_validate(values), "alone") == found["alone"]
    assert scenario_of(Experiment.model_validate(values), None) == found["calm"]


@pytest.mark.parametrize(
    ("scenario", "message"),
    [
        ({"title": "x", "changes": {"workloda": {}}}, "unknown key 'workloda': did you mean workload?"),
        ({"title": "x", "policies": ["ideel"]}, "unknown policy 'ideel': did you mean ideal?"),
    ],
)
def test_a_mistake_in_a_scenario_shows_when_the_file_is_read(tmp_path, values, scenario, message):
    values["scenarios"] = {"calm": scenario}
    with pytest.raises(FogscaleError) as error:
        loaded(tmp_path, values)
    assert message in str(error.value)


def test_an_unknown_scenario_is_explained(values):
    values["scenarios"] = {"calm": {"title": "Calm"}}
    with pytest.raises(FogscaleError, match="did you mean calm"):
        scenario_of(Experiment.model_validate(values), "clam")
