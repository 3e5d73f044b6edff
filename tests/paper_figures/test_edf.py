"""The EDF paper's folder: calibration by hand-checkable facts, tables and figures from few rows."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import paper_figures.edf.known_process as known
from controller.experiment import load as load_experiment
from controller.experiment import runs_of
from controller.model import records_per
from controller.run import prepare
from controller.testbeds.simulated.settings import simulation_of
from paper_figures.campaign import varied_experiment
from paper_figures.claims import from_published_table
from paper_figures.edf import (
    calibration,
    figure_learning,
    figure_optimum,
    learning_curves,
    panels,
    rows,
    table_learning,
    table_requests,
)
from paper_figures.published import load as load_published

FOLDER = Path(calibration.__file__).parent


@pytest.fixture(scope="module")
def experiment():
    return load_experiment(FOLDER / "experiment.yml")


@pytest.fixture(scope="module")
def published():
    return load_published(FOLDER)


def test_thresholds_hold_replicas_by_hand():
    """One does 100/s: above 70 a second comes, below 52.5 it goes again."""
    rates = np.array([60.0, 71.0, 60.0, 53.0, 52.0, 60.0])
    assert calibration.held_by_thresholds(rates, 100.0, 0.7, 6).tolist() == [1, 2, 2, 2, 1, 1]


def test_no_more_than_allowed_are_held():
    assert calibration.held_by_thresholds(np.full(5, 1000.0), 100.0, 0.7, 3).tolist() == [2, 3, 3, 3, 3]


def test_the_experiment_states_what_the_calibration_finds(experiment):
    found = calibration.found(calibration.facts(), calibration.offered())
    simulation = simulation_of(experiment.testbed)
    assert simulation.capacity["partialRank"].per_replica_per_s == found.rank_per_s
    for name in calibration.SMALL:
        assert simulation.capacity[name].per_replica_per_s == found.small_per_s
    assert simulation.arrival_scv["partialRank"] == pytest.approx(2 * found.rank_variability - 1, abs=0.1)
    assert simulation.arrival_scv["globalRank"] == pytest.approx(2 * found.global_variability - 1, abs=0.1)


def test_two_of_partial_rank_are_below_70_percent_and_one_is_not(experiment):
    """§9, at the highest rate."""
    one_per_s = simulation_of(experiment.testbed).capacity["partialRank"].per_replica_per_s
    assert 500 / (2 * one_per_s) < 0.7 < 500 / one_per_s


def test_all_fifteen_rows_are_variants_of_one_policy(experiment, published):
    assert tuple(experiment.policies) == published.policies
    assert len(published.policies) == 15
    assert {settings.policy for settings in experiment.policies.values()} == {"edf"}


def test_the_job_has_eight_operators_and_starts_with_one_replica_of_each(experiment):
    prepared = prepare(runs_of(experiment, ["mb_res"], [1])[0])
    assert sum(map(len, prepared.start.values())) == 8
    assert prepared.duration_s == 12 * 3600
    per_input = records_per(prepared.topology.operators, "source")
    assert per_input["partialRank"] == pytest.approx(1.0, abs=1e-3)
    assert [operator.n_max for operator in prepared.topology.operators] == [1, 3, 3, 3, 1, 3, 6, 1]


def test_claims_say_what_the_published_table_says(published):
    for claim in published.claims:
        assert from_published_table(claim, published) == pytest.approx(claim.published, abs=0.1), claim.text


def test_every_origin_names_a_setting(experiment):
    from paper_figures.doubts import setting

    for parameter in experiment.parameters:
        assert setting(experiment, parameter.path) is not None or "highest_rate" in parameter.path


def test_small_operators_can_be_made_to_take_their_bound(experiment):
    varied = calibration.calibrated(experiment, {}, small_violate=True)
    scv = simulation_of(varied.testbed).arrival_scv
    assert scv["parser"] > 10
    assert scv["partialRank"] == simulation_of(experiment.testbed).arrival_scv["partialRank"]


# Tables and figures


def test_table_1_has_every_policy_twice_and_a_dash_for_what_is_unknown(tmp_path, published):
    values = dict.fromkeys(rows.COLUMNS, 1.0)
    runs = [{"variation": "", "policy": name, **values} for name in published.policies]
    runs[0]["monitored_mean_ms"] = None
    pd.DataFrame(runs).to_parquet(tmp_path / "metrics.parquet")
    table = rows.both(tmp_path, "metrics")
    assert len(table) == 30
    assert table.loc[0, "Mean (ms)"] == "363.0"
    assert table.loc[1, "Mean (ms)"] == "–"


def test_requests_are_counted_to_the_last_turn(tmp_path):
    turns = ['{"asked": 1, "granted": 1}', '{"asked": 200, "granted": 1}', "{}"]
    pd.DataFrame({"policy": "ql_res", "estimates": turns}).to_parquet(tmp_path / "decisions.parquet")
    table = table_requests.load(tmp_path).set_index("Policy")
    assert table.loc["QL res"].tolist() == [200, 1, "0.5"]


def test_a_panel_shows_replicas_and_response_times():
    run = pd.DataFrame(
        {
            "time_s": [0.0, 30.0, 60.0, 70.0, 81.0, 90.0],
            "response_mean_ms": [100.0, 300.0, None, None, 90.0, 80.0],
            "job_supply": [9, 9, 8, 8, 10, 10],  # one is paused for 21 s, and has two replicas then
            "reconfigurations": [0, 0, 1, 1, 1, 1],
        }
    )
    response, replicas = panels.draw_run(run).axes
    assert response.get_title() == "1 changes"
    assert replicas.lines[0].get_ydata().tolist() == [9, 9, 9, 9, 10, 10]


# Where everything is known


@pytest.fixture(scope="module")
def learned():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(known, "JUDGED", {"q_learning": (1.0, 12.0), "model_based": (1.0, 12.0)})
        return known.learned_over_runs()


def test_two_replicas_take_their_share_at_the_rate_found():
    """210 ms at 334.5 tuples/s: within it at 300, not at 350."""
    process = known.known_process()
    assert process.response_ms[1, 6] < 210 < process.response_ms[1, 7]
    assert process.moves.sum(axis=1) == pytest.approx(1.0)


def test_nobody_is_better_than_the_optimum_and_the_model_reaches_it_in_twelve_hours(learned):
    assert (learned["beyond_optimum_percent"] > -1e-3).all()
    last = learned[learned["hours"] == 12].set_index(["local", "weights"])["beyond_optimum_percent"]
    assert last["model_based", "res"] < 1
    assert last["q_learning", "res"] > 10


def test_learning_is_drawn_with_a_line_for_each_learner_and_weights(learned):
    assert len(figure_optimum.draw(learned).axes[0].lines) == 4


def test_a_variation_lets_the_source_scale_and_changes_no_other_operator(experiment, published):
    variation = next(each for each in published.variations if each.name == "source_scales")
    changed = varied_experiment(FOLDER, experiment, variation, {}).topology.operators
    before = experiment.topology.operators
    assert changed[0].n_max == 3
    assert [each.model_copy(update={"n_max": 1}) for each in changed[:1]] == list(before[:1])
    assert list(changed[1:]) == list(before[1:])


# Learning over many runs


def costs_of_runs(q_learning, model_based):
    rows = [("ql_res", number, cost) for number, cost in enumerate(q_learning, 1)]
    rows += [("mb_res", number, cost) for number, cost in enumerate(model_based, 1)]
    return pd.DataFrame(
        [
            {"policy": policy, "seed": seed, "run": number, "cost": cost + off}
            for policy, number, cost in rows
            for seed, off in ((1, -0.1), (2, 0.1))
        ]
    )


def test_q_learning_has_reached_model_based_learning_once_the_mean_of_ten_runs_has():
    """2 for ten runs, then 1: the mean of ten falls by .1 a run, to 1.5 after five of them."""
    rows = costs_of_runs([2.0] * 10 + [1.0] * 20, [1.0] * 30)
    assert learning_curves.settled_cost(rows) == pytest.approx(1.0)
    assert learning_curves.runs_until(rows, 0.5) == 15
    assert learning_curves.runs_until(rows, 0.0) == 20
    assert learning_curves.runs_until(costs_of_runs([2.0] * 9, [1.0] * 9), 0.5) is None


def test_the_table_of_learning_says_what_was_not_reached(tmp_path):
    assert table_learning.load(tmp_path).empty  # a build without what takes long
    costs_of_runs([2.0] * 10 + [1.15] * 20, [1.0] * 30).to_parquet(tmp_path / "learning.parquet")
    table = table_learning.load(tmp_path)
    assert table["Runs"].tolist()[1:] == ["20", "not in 30", "not in 30", "not in 30"]  # 2 − 10 · 0.085
    assert table["Days"].tolist()[1:] == ["10", "not in 15", "not in 15", "not in 15"]
    assert table["Cost per turn"].tolist() == ["1.500", "1.200", "1.100", "1.050", "1.000"]


def test_learning_over_runs_is_drawn_with_bands():
    axis = figure_learning.draw(costs_of_runs([2.0] * 12, [1.0] * 12)).axes[0]
    assert len(axis.collections) == 2
    assert [line.get_label() for line in axis.lines[:2]] == ["Q-learning", "model-based"]
