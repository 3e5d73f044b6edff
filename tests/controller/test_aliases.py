"""Variants of a policy stand side by side under names of their own."""

import pytest
import yaml

from analysis.plotting import POLICY_COLOUR
from controller.experiment import load, runs_of
from controller.run import decided_by, execute, prepare, run_of, simulate
from fogscale.errors import FogscaleError
from tests.support.runs import load_csv, run_values


@pytest.fixture
def written(tmp_path):
    """Writes an experiment with these policies."""

    def write(policies):
        run = run_values("static", load_csv(tmp_path, [60] * 5))
        keys = ("workload", "topology", "start", "pins", "measured_operator", "testbed")
        values = {key: run[key] for key in keys} | {"name": "variants", "policies": policies}
        path = tmp_path / "experiment.yml"
        path.write_text(yaml.safe_dump(values), encoding="utf-8")
        return path

    return write


def variant(**parameters):
    return {"policy": "thr_nlaware", "parameters": parameters}


def test_fifteen_variants_of_a_policy_stand_in_one_experiment(written):
    names = [f"eager-{percent}" for percent in range(30, 45)]
    experiment = load(written({n: variant(high_cpu_ratio=int(n[-2:]) / 100) for n in names}))
    runs = runs_of(experiment)
    assert [run.policy for run in runs] == names
    assert {run.registered_policy for run in runs} == {"thr_nlaware"}
    assert len({run.folder for run in runs}) == 15
    assert len({run.id for run in runs}) == 15
    assert len({POLICY_COLOUR[name] for name in names}) == 15
    thresholds = [prepare(run).run.policy_parameters["high_cpu_ratio"] for run in runs]
    assert thresholds == [percent / 100 for percent in range(30, 45)]


def test_an_alias_is_the_name_in_tables(written):
    experiment = load(written({"eager": variant(high_cpu_ratio=0.3), "thr_nlaware": {}}))
    facts = [simulate(run.model_dump_json())[0] for run in runs_of(experiment)]
    assert [fact["policy"] for fact in facts] == ["eager", "thr_nlaware"]
    assert [fact["settings"]["variant_of"] for fact in facts] == ["thr_nlaware", None]


@pytest.mark.parametrize(
    ("policies", "message"),
    [
        ({"eager": {"policy": "thr_nlawar"}}, "policies.eager.policy: unknown policy 'thr_nlawar'"),
        ({"gesscale": {"policy": "static"}}, "policies.gesscale: this is a policy of its own"),
        ({"eag er": {"policy": "static"}}, "policies.eag er"),
        ({"eager": {}}, "unknown policy 'eager'"),
    ],
)
def test_a_mistake_is_one_line(written, policies, message):
    with pytest.raises(FogscaleError) as error:
        load(written(policies))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_misspelt_alias_is_suggested(written):
    experiment = load(written({"eager": variant()}))
    with pytest.raises(FogscaleError, match="did you mean eager"):
        runs_of(experiment, ["eagre"])


def test_a_replay_knows_aliases(written, tmp_path):
    experiment = load(written({"eager": variant(high_cpu_ratio=0.3), "lazy": variant(high_cpu_ratio=0.99)}))
    eager, lazy = runs_of(experiment)
    for run in (eager, lazy):
        execute(run, tmp_path)
    folder = tmp_path / eager.folder
    assert run_of(folder) == eager
    assert decided_by(folder, "eager") == eager
    assert decided_by(folder, "lazy").policy_parameters == lazy.policy_parameters
    assert decided_by(folder, "lazy").registered_policy == "thr_nlaware"
    assert decided_by(folder, "thr_nlaware").policy_parameters == {}
    with pytest.raises(FogscaleError, match="did you mean lazy"):
        decided_by(folder, "lasy")
