"""The thesis: its calibration is derived and reproducible, its figures and tables say what the runs say."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import numpy as np
import pandas as pd
import pytest
import yaml
from matplotlib.figure import Figure

from analysis.plotting import styled
from controller.experiment import Experiment, runs_of, scenarios_of
from controller.experiment import load as load_experiment
from controller.models.polynomial import Polynomial
from paper_figures.campaign import paper_module, varied_experiment
from paper_figures.doubts import setting
from paper_figures.published import load as load_published
from paper_figures.published import paper_folder
from paper_figures.thesis import (
    arithmetic,
    calibration,
    controller_load,
    table_1_taskmanagers,
    table_2_aim,
    table_samples,
)
from paper_figures.thesis.panels import draw_model, draw_predictions
from paper_figures.thesis.samples import explored, model_of, observed, samples_of

FOLDER = paper_folder("thesis")


@pytest.fixture(scope="module")
def experiment() -> Experiment:
    return load_experiment(FOLDER / "experiment.yml")


@pytest.fixture(scope="module")
def derived(experiment: Experiment) -> Experiment:
    return calibration.calibrated(experiment, {})


def stated(experiment: Experiment) -> dict:
    """What the first model says."""
    return scenarios_of(experiment)["optimal_control"].policies["proactive"].learned[0]["parts"]["job"]


def stated_model(experiment: Experiment) -> Polynomial:
    return msgspec.convert(stated(experiment)["model"], Polynomial)


# Calibration


def test_capacity_bursts_and_scale_of_the_experiment_are_derived(experiment, derived):
    file, found = experiment.testbed, derived.testbed
    assert found.capacity["job"].per_replica_per_s == pytest.approx(
        file.capacity["job"].per_replica_per_s, rel=1e-3
    )
    assert found.arrival_scv == pytest.approx(file.arrival_scv, rel=2e-3)
    for name in calibration.WORLDCUPS:
        scale = experiment.scenarios[name].changes["workload"]["scale"]
        assert derived.scenarios[name].changes["workload"]["scale"] == pytest.approx(scale, rel=1e-3)


def test_the_capacity_gives_the_published_taskmanagers(experiment):
    limits_per_s = calibration.sla_limits_per_s(experiment)
    for scenario, mean in (("optimal_control", 1.825), ("worldcup", 1.575)):
        rates_per_s = calibration.offered_per_s(experiment, scenario)
        found = calibration.mean_demand(limits_per_s, rates_per_s, discarded=24)
        assert found == pytest.approx(mean, abs=0.005)


def test_one_taskmanager_misses_the_sla_at_nine_tenths_of_its_capacity(experiment):
    capacity_per_s = experiment.testbed.capacity["job"].per_replica_per_s
    assert calibration.sla_limits_per_s(experiment)[0] == pytest.approx(0.9 * capacity_per_s, rel=1e-3)


def test_mean_demand_counts_the_limits_that_are_exceeded():
    """1, 2 and 3 of 3; what exceeds the last limit has no more to take."""
    rates_per_s = np.array([5.0, 15.0, 99.0])
    assert calibration.mean_demand([10.0, 20.0, 30.0], rates_per_s) == pytest.approx(2.0)


def test_mean_demand_leaves_out_what_is_discarded_after_a_change():
    """1, 1, 2, 2, 2, 1, 1, 1: two after each change are gone, and 1, 1, 2 and 1 are left."""
    rates_per_s = np.array([5.0, 5.0, 15.0, 15.0, 15.0, 5.0, 5.0, 5.0])
    assert calibration.mean_demand([10.0, 20.0], rates_per_s, discarded=2) == pytest.approx(5 / 4)


def test_the_pre_trained_model_is_what_the_exploration_learns(experiment):
    """Compared by what they predict: coefficients of nearly dependent columns may differ by machine."""
    (first,) = calibration.pretrained(experiment, calibration.MODEL_SEEDS[:1])
    learnt = first["parts"]["job"]
    found, kept = msgspec.convert(learnt["model"], Polynomial), stated_model(experiment)
    assert learnt["capacity_per_s"] == pytest.approx(stated(experiment)["capacity_per_s"], rel=1e-6)
    assert [seen.replicas for seen in kept.seen] == [seen.replicas for seen in found.seen]
    for seen in kept.seen:
        workload_per_s = np.linspace(seen.lowest_per_s, seen.highest_per_s, 50)
        assert found.value(workload_per_s, float(seen.replicas)) == pytest.approx(
            kept.value(workload_per_s, float(seen.replicas)), abs=1e-4
        )


def test_another_model_takes_the_place_of_the_one_in_the_file(experiment):
    text = (FOLDER / "experiment.yml").read_text(encoding="utf-8")
    other = {"job": {"capacity_per_s": 1234.5678901234, "model": {"degree": 1, "powers": [[0, 0], [1, 0]]}}}
    found = yaml.safe_load(calibration.written(text, [other, {"job": {"capacity_per_s": 2.0}}]))
    scenarios = found["scenarios"]
    first, second = scenarios["optimal_control"]["changes"]["policies"]["proactive"]["learned"]
    assert first == {
        "job": {"capacity_per_s": 1234.56789, "model": {"degree": 1, "powers": [[0, 0], [1, 0]]}}
    }
    assert second == {"job": {"capacity_per_s": 2.0}}
    assert scenarios["worldcup"] == yaml.safe_load(text)["scenarios"]["worldcup"]


def test_no_run_has_the_seed_that_the_model_was_learnt_with(experiment):
    seeds = {run.seed for scenario in scenarios_of(experiment).values() for run in runs_of(scenario)}
    assert seeds.isdisjoint(calibration.MODEL_SEEDS)


def test_the_seeds_take_the_models_in_turn(experiment):
    runs = runs_of(scenarios_of(experiment)["optimal_control"], ["proactive"])
    models = [json.dumps(run.learned, sort_keys=True) for run in runs]
    assert len(set(models)) == len(calibration.MODEL_SEEDS) == 5
    assert models == models[:5] * 4


def test_what_is_drawn_reaches_all_that_follows_from_it(experiment):
    drawn = {
        "testbed.capacity.job.contention": 0.1,
        "calibration.sla_share": 0.85,
        "calibration.metric_window_s": 20.4,
        "calibration.fault_speed_factor": 0.6,
        "calibration.fault_for_s": 300.2,
    }
    found = varied_experiment(FOLDER, experiment, None, drawn)
    capacity = found.testbed.capacity["job"]
    assert capacity.contention == 0.1
    assert calibration.sla_limits_per_s(found)[0] == pytest.approx(
        0.85 * capacity.per_replica_per_s, rel=1e-3
    )
    assert found.testbed.metric_window_s == 20.0
    (run,) = runs_of(scenarios_of(found)["worldcup"], ["proactive"], [1])
    assert {(fault.speed_factor, fault.for_s) for fault in run.testbed.faults} == {(0.6, 300.0)}
    assert stated_model(found) != stated_model(experiment)


def test_the_model_is_learnt_as_the_proactive_scaler_would(experiment):
    """Printed, Algorithm 3 chooses a constant; another exploration teaches something else."""
    printed = calibration.calibrated(experiment, {}, proactive={"degree_by": "printed"})
    assert stated_model(printed).degree == 0
    one, other = scenarios_of(experiment)["optimal_control"].policies["proactive"].learned[:2]
    assert one["parts"]["job"]["capacity_per_s"] != other["parts"]["job"]["capacity_per_s"]


def test_a_pre_trained_model_knows_all_that_was_explored(experiment):
    """Five hours of 15 s without the discarded ones; two scale-ups, each of which measured the capacity."""
    learnt = stated(experiment)
    assert 1000 < learnt["model"]["samples"] < 1200
    assert [seen["replicas"] for seen in learnt["model"]["seen"]] == [1, 2, 3]
    assert learnt["capacity_measurements"] == 2


def test_only_the_proactive_run_has_the_slowdown_unless_asked_for_both(experiment):
    def faults(of: Experiment, scenario: str, policy: str) -> int:
        (run,) = runs_of(scenarios_of(of)[scenario], [policy], [1])
        return len(run.testbed.faults)

    assert faults(experiment, "worldcup", "proactive") == 6
    assert faults(experiment, "worldcup", "reactive") == 0
    assert faults(experiment, "worldcup_no_fault", "proactive") == 0
    both = calibration.calibrated(experiment, {}, fault_in_both=True)
    assert faults(both, "worldcup", "reactive") == 6
    assert faults(both, "worldcup_no_fault", "reactive") == 0


def test_every_assumed_number_has_a_range_around_the_value_used(experiment):
    for parameter in experiment.parameters:
        value = calibration.POINT.get(parameter.path, setting(experiment, parameter.path))
        assert value is not None, parameter.path
        if parameter.range is not None:
            number = value[0] if isinstance(value, tuple) else value
            assert parameter.range[0] <= number <= parameter.range[1], parameter.path
        else:
            assert parameter.origin != "assumed", parameter.path


def test_every_variation_is_an_experiment(experiment):
    for variation in load_published(FOLDER).variations:
        if not variation.calibration:  # those of the calibration are run above, and cost a second each
            scenarios_of(varied_experiment(FOLDER, experiment, variation, {}))


# Figures and tables


@pytest.fixture(scope="module")
def tables(tmp_path_factory) -> Path:
    """Both scalers in all scenarios: up at 40, down at 120, with samples discarded after 40; the proactive
    one explores until 100."""
    folder = tmp_path_factory.mktemp("tables")
    rows = []
    for scenario in ("exploration", "optimal_control", "worldcup", "worldcup_no_fault"):
        for policy in ("reactive", "proactive"):
            rows += [_turn(scenario, policy, turn) for turn in range(160)]
    pd.DataFrame(rows).to_parquet(folder / "decisions.parquet")
    _metrics().to_parquet(folder / "metrics.parquet")
    _metrics().assign(violation_timeshare=6.0).to_parquet(folder / "metrics_whole.parquet")
    return folder


def _turn(scenario: str, policy: str, turn: int) -> dict[str, object]:
    workload_per_s = 1000 + 10.0 * turn + 3 * (turn % 7)
    estimates = {
        "workload_per_s": workload_per_s,
        "slow_ratio": 1e-5 * workload_per_s,
        "capacity_per_s": 1500.0,
    }
    if policy == "proactive":
        exploring = turn < 100
        estimates["exploration"] = float(exploring)
        if not exploring:
            estimates |= {
                "foreseen_workload_per_s": workload_per_s,
                "foreseen_slow_ratio": 0.01,
                "residual": 0.005,
            }
    discarded = 40 < turn < 60
    return {
        "scenario": scenario,
        "policy": policy,
        "time_s": 15.0 * turn,
        "offered_rate_per_s": workload_per_s,
        "requested": 2 if 40 < turn < 120 else 1,
        "estimates": json.dumps({} if discarded else estimates),
    }


def _metrics() -> pd.DataFrame:
    """Proactive: always 0.1 TaskManagers less, never a violation; reactive: two."""
    return pd.DataFrame(
        {
            "scenario": scenario,
            "variation": "",
            "policy": policy,
            "seed": seed,
            "mean_instances": 1.8
            + 0.01 * seed
            - 0.1 * (policy == "proactive")
            + 0.001 * seed * (policy == "reactive"),
            "steady_violations": 2 * (policy == "reactive"),
            "steady_violation_timeshare": 1.5 * (policy == "reactive"),
            "violation_timeshare": 5.0,
            "reconfigurations": 4,
        }
        for scenario in ("optimal_control", "worldcup", "worldcup_no_fault")
        for policy in ("reactive", "proactive")
        for seed in (1, 2, 3)
    )


def test_samples_are_numbered_and_discarded_ones_left_out(tables):
    samples = samples_of(tables, "worldcup", "reactive")
    assert samples["sample"].tolist() == list(range(1, 160 - 19 + 1))
    assert not samples["time_s"].between(15.0 * 41, 15.0 * 59).any()


def test_over_time_nothing_is_left_out(tables):
    seen = observed(tables, "worldcup")
    assert seen.groupby("policy").size().tolist() == [160, 160]
    discarded = seen[seen["time_s"].between(15.0 * 41, 15.0 * 59)]
    assert discarded["slow_ratio"].isna().all()
    assert discarded["workload_per_s"].notna().all()


def test_a_model_is_trained_with_what_was_explored_before_it(tables):
    exploration = explored(samples_of(tables, "worldcup", "proactive"))
    assert exploration["time_s"].max() == 15.0 * 99
    model = model_of(exploration)
    assert model is not None
    assert model.samples == len(exploration) == 100 - 19
    assert model.value(np.array([1200.0]), 1.0) == pytest.approx(0.012, abs=1e-6)


def all_figures() -> list:
    return [pytest.param(path, id=path.stem) for path in sorted(FOLDER.glob("figure_*.py"))]


@pytest.mark.parametrize("path", all_figures())
def test_every_figure_draws_something_and_names_its_axes(path: Path, tables: Path):
    module = paper_module(path.parent, path.stem)
    with styled():
        figure = module.draw(module.load(tables))
    assert isinstance(figure, Figure)
    assert all(axes.has_data() for axes in figure.axes)
    assert figure.axes[-1].get_xlabel()
    assert all(axes.get_ylabel() for axes in figure.axes)


def test_a_run_that_never_leaves_exploration_can_be_drawn(tables):
    """And one with too few samples for a model: points, but no lines."""
    samples = samples_of(tables, "worldcup", "proactive").assign(exploration=1.0)
    with styled():
        assert draw_predictions(samples).axes
        (axis,) = draw_model(samples.iloc[:4]).axes
    assert len(axis.get_lines()) == 1 + 1  # the points and the SLA


def test_there_is_a_figure_for_each_of_the_thesis():
    numbers = {path.stem.split("_")[1].rstrip("b") for path in FOLDER.glob("figure_*.py")}
    assert numbers == {str(number) for number in range(27, 37)}


def test_published_values_stand_beside_ours(tables):
    table = table_1_taskmanagers.load(tables)
    published = table[table[" "] == "published"]
    assert published["TaskManagers"].tolist() == ["1.84", "1.81", "1.59", "1.56"]
    ours = table[(table[" "] == "ours") & (table["Scaler"] == "proactive")]
    assert ours["TaskManagers"].str.startswith("1.72 ±").all()  # 1.8 + 0.02 - 0.1


def test_what_is_missed_in_all_is_of_the_whole_time(tables):
    table = table_1_taskmanagers.load(tables)
    assert table.loc[table[" "] == "ours", "SLA missed in all (% of time)"].str.startswith("6.0").all()


def test_an_order_of_half_a_discarded_window_is_called_what_it_is(tables):
    table = table_samples.load(tables).set_index("What")["Found"]
    assert table["§5.3, samples that are judged"] == "1080 − 4 · 48 = 888"
    assert table["§5.3, 1.84 and 1.81 apart"] == "0.03 · 888 = 27 samples"


def test_the_published_rescalings_of_the_world_cup_run_predict_a_tie():
    """Of n samples 100 + 2·900 + 800 + 2·(n − 1800) and 100 + 2·800 + 800 + 2·(n − 1700): 2n − 900."""
    for samples in (1900, 2016, 2160):
        for changes in arithmetic.WORLDCUP_RESCALINGS.values():
            found = arithmetic.taskmanagers_per_sample(arithmetic.WORLDCUP_COUNTS, changes, samples)
            assert found == pytest.approx(2 - 900 / samples)
    (each,) = load_published(FOLDER).uninformative
    assert (each.scenario, each.metric) == ("worldcup", "mean_instances")


def test_differences_are_those_of_the_same_seed(tables):
    """TaskManagers: -0.101, -0.102, -0.103; the seeds' own differences cancel out."""
    table = table_2_aim.load(tables).groupby("Metric").first()
    instances = table.loc["Instances"]
    assert instances["Proactive − reactive"] == "-0.102"
    assert instances["No worse"] == "yes, better"
    assert instances["Seeds in which proactive is no worse"] == "3 of 3"
    assert table.loc["Objective missed (% of time)", "No worse"] == "yes, no significant difference"


def test_the_controllers_load_is_measured_in_a_process_of_its_own(tables):
    samples = samples_of(tables, "exploration", "proactive")
    found = controller_load.measured(explored(samples), samples)
    assert set(found) == {
        "exploration_cpu_ratio", "exploration_mb", "training_s", "stability_s", "learning_mb",
        "control_cpu_ratio", "control_mb",
    }  # fmt: skip
    assert all(value > 0 for value in found.values())
