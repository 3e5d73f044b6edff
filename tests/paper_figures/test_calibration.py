"""The calibration of Gesscale: experiment.yml holds what calibration.py derives."""

from __future__ import annotations

import numpy as np
import pytest

from controller.experiment import Experiment
from controller.experiment import load as load_experiment
from paper_figures.campaign import varied_experiment
from paper_figures.gesscale import calibration, measuring_period
from paper_figures.published import load as load_published
from paper_figures.published import paper_folder

FOLDER = paper_folder("gesscale")
LAWS = ("power_latency", "linear", "usl", "table")


@pytest.fixture(scope="module")
def experiment() -> Experiment:
    return load_experiment(FOLDER / "experiment.yml")


def ladder(experiment: Experiment) -> np.ndarray:
    law = experiment.testbed.capacity["map"]
    delays_ms = calibration.delays_by_replica_ms(experiment)
    return np.array([law.capacity_per_s(n, 1.0, delay) for n, delay in enumerate(delays_ms, start=1)])


def test_alpha_and_gamma_of_the_experiment_are_derived(experiment):
    stated = experiment.testbed.capacity["map"]
    derived = calibration.calibrated(experiment, {}).testbed.capacity["map"]
    assert derived.alpha_per_s == pytest.approx(stated.alpha_per_s, rel=0.001)
    assert derived.gamma_per_s_per_ms == pytest.approx(stated.gamma_per_s_per_ms, rel=0.0015)


def test_table_iii_tells_its_period_by_itself():
    """360 min, 1440 samples: no other number of them gives all eight shares of time."""
    table = load_published(FOLDER).table
    shares = [row[name] for row in table.values() for name in ("timeshare_o", "timeshare_u")]
    assert measuring_period.sample_counts(shares) == [1440]
    found = measuring_period.period_of(table)
    assert (found.samples, round(found.minutes), found.interval_s) == (1440, 360, 15.0)
    assert found.residual < 0.3
    # Gesscale's row by hand: 999.5 / 360 - (0.838 - 0.499) = 2.4374.
    assert found.ideals[-1] == pytest.approx(2.4374, abs=1e-4)
    assert found.mean_ideal == pytest.approx(2.438, abs=5e-4)
    assert found.mean_ideal_under_load == pytest.approx(calibration.MEAN_IDEAL, abs=5e-4)


def test_the_period_of_a_table_that_was_made_with_another_is_found():
    """480 samples over 240 minutes, an ideal of 2: as its rows say."""
    made = (("a", 101, 7, 0.5, 0.1), ("b", 233, 59, 1.0, 0.25), ("c", 1, 479, 0.1, 1.3))
    rows = {
        name: {
            "timeshare_o": round(100 * over / 480, 2), "timeshare_u": round(100 * under / 480, 2),
            "accuracy_o": o, "accuracy_u": u, "cost": 240 * (2 + o - u),
        }
        for name, over, under, o, u in made
    }  # fmt: skip
    found = measuring_period.period_of(rows)
    assert (found.samples, found.minutes) == (480, pytest.approx(240))
    assert found.ideals == pytest.approx([2.0, 2.0, 2.0])


def test_the_load_is_what_the_paper_replays(experiment):
    rates = calibration.offered_by_minute(experiment)
    assert len(rates) == 288  # minutes
    assert rates.max() == pytest.approx(302, abs=0.5)


@pytest.mark.parametrize("law", LAWS)
def test_every_law_gives_the_mean_ideal(experiment, law):
    capacity = ladder(calibration.calibrated(experiment, {}, law=law))
    rates = calibration.offered_by_minute(experiment)
    assert calibration.mean_demand(capacity, rates) == pytest.approx(calibration.MEAN_IDEAL, abs=0.01)


@pytest.mark.parametrize("law", LAWS)
def test_the_latency_loss_is_the_share_that_the_farthest_node_costs(experiment, law):
    rates, delays_ms = calibration.offered_by_minute(experiment), calibration.delays_by_replica_ms(experiment)
    found = calibration.capacity_law(law, 0.85, 0.1, delays_ms, rates)
    assert found.capacity_per_s(6, 1.0, 300.0) == pytest.approx(0.9 * found.latency_free_per_s(6, 1.0))


def test_mean_demand_takes_the_first_count_that_suffices():
    rates = np.array([5.0, 15.0, 99.0])
    assert calibration.mean_demand(np.array([10.0, 20.0, 18.0]), rates) == (1 + 2 + 3) / 3


def test_drawn_parameters_reach_the_experiment_and_what_follows_from_them(experiment):
    drawn = {
        "testbed.capacity.map.beta": 1.0,
        "testbed.reconfiguration.duration_s": 100.0,
        "calibration.latency_loss": 0.05,
        "calibration.mean_ideal": 3.0,
    }
    changed = varied_experiment(FOLDER, experiment, None, drawn)
    assert changed.testbed.capacity["map"].beta == 1.0
    assert changed.testbed.reconfiguration.range_s == (100.0, 100.0)
    rates = calibration.offered_by_minute(experiment)
    assert calibration.mean_demand(ladder(changed), rates) == pytest.approx(3.0, abs=0.01)


def test_a_variation_wins_over_drawn_parameters(experiment):
    off = next(v for v in load_published(FOLDER).variations if v.name == "cpu_mechanism_off")
    drawn = {"testbed.cpu_idle_in_latency_ratio": 0.8}
    assert varied_experiment(FOLDER, experiment, off, drawn).testbed.cpu_idle_in_latency_ratio == 0.0


def test_every_assumed_number_has_a_range_around_the_value_used(experiment):
    from paper_figures.doubts import setting

    for parameter in experiment.parameters:
        value = calibration.POINT.get(parameter.path, setting(experiment, parameter.path))
        assert value is not None, parameter.path
        if parameter.range is not None:
            number = value[0] if isinstance(value, tuple) else value
            assert parameter.range[0] <= number <= parameter.range[1], parameter.path
        elif not isinstance(value, bool):
            assert parameter.origin != "assumed", parameter.path


def test_the_blind_point_is_the_middle_of_every_assumed_range(experiment):
    """But for mechanism 2, of which the paper's words speak for one end."""
    from paper_figures.doubts import setting

    assert load_published(FOLDER).point == "blind"
    for parameter in experiment.parameters:
        if parameter.origin == "assumed" and parameter.range and "cpu_idle" not in parameter.path:
            value = calibration.POINT.get(parameter.path, setting(experiment, parameter.path))
            assert value == pytest.approx(sum(parameter.range) / 2), parameter.path
