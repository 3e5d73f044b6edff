"""a and b by least squares, R at constant load: known ones come out again, and too little is said so."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from controller.model import InstanceMetrics, OperatorMetrics
from controller.models.instance_load import LoadSample, load_sample, mean_over_instances
from controller.models.kalman import RateInput
from controller.models.kalman_fit import (
    LEAST_STEPS,
    SensitivityFit,
    calibrated_parameters,
    fitted_sensitivity,
    measurement_variance,
)
from controller.policies import create
from fogscale.errors import FogscaleError
from tests.support.jobs import chain, seen


def samples_of(rates_per_s, loads, ids=("i",)):
    """loads: [time, metric], the same for every instance."""
    return [
        LoadSample(0.5 * i, ids, np.tile(load, (len(ids), 1)), rate)
        for i, (rate, load) in enumerate(zip(rates_per_s, loads, strict=True))
    ]


def obeying(a, b, rates_per_s, start=0.4, **variant):
    """Loads that follow x + a·D + b·ΔD exactly."""
    rate, x, loads = RateInput(**variant), np.full(2, start), []
    for i, rate_per_s in enumerate(rates_per_s):
        level, change = rate.step(0.5 * i, rate_per_s)
        x = x + np.array(a) * level + np.array(b) * change
        loads.append(x)
    return loads


def wandering(seed, steps=200):
    return 10 + np.cumsum(np.random.default_rng(seed).choice([-0.5, 0.0, 0.5], steps))


# a and b


@settings(max_examples=60, deadline=None)
@given(
    st.tuples(st.floats(-1e-3, 1e-3), st.floats(-1e-3, 1e-3)),
    st.tuples(st.floats(-0.02, 0.02), st.floats(-0.02, 0.02)),
    st.integers(0, 2**32 - 1),
)
def test_known_sensitivities_come_out_again(a, b, seed):
    rates_per_s = wandering(seed)
    loads = obeying(a, b, rates_per_s, start=0.5)
    assume(np.min(rates_per_s) > 0)
    assume(np.min(loads) > 0 and np.max(loads) < 0.97)
    found = fitted_sensitivity(samples_of(rates_per_s, loads))
    assert found.problem == ""
    assert found.level == pytest.approx(a, abs=1e-9)
    assert found.change == pytest.approx(b, abs=1e-9)


def test_the_sums_say_what_numpy_says():
    rng = np.random.default_rng(5)
    inputs, moves = rng.standard_normal((50, 2)), 0.01 * rng.standard_normal((50, 2))
    fit = SensitivityFit()
    for given_, move in zip(inputs, moves, strict=True):
        fit.add(tuple(given_), [0.5, 0.5], (0.5 + move).tolist())
    expected = np.linalg.lstsq(inputs, moves, rcond=None)[0]
    assert fit.fitted().level == pytest.approx(expected[0])
    assert fit.fitted().change == pytest.approx(expected[1])


def test_a_smoothed_metric_is_explained_by_the_level_alone():
    """CPU = 0.08 per record/s, averaged exponentially over 10 s: a = 0.08·(1 − e^(−0.05)), b = 0."""
    rates_per_s, weight = wandering(3, 400) / 2, 1 - np.exp(-0.05)
    loads = np.empty((400, 2))
    mean_per_s = rates_per_s[0]
    for i, rate_per_s in enumerate(rates_per_s):
        mean_per_s += weight * (rate_per_s - mean_per_s)
        loads[i] = 0.08 * mean_per_s
    found = fitted_sensitivity(samples_of(rates_per_s, loads), RateInput(memory_s=10.0))
    assert found.level == pytest.approx([0.08 * weight] * 2, rel=1e-9)
    assert found.change == pytest.approx([0, 0], abs=1e-12)


def test_an_instance_shares_the_rate_with_the_others():
    """Half the rate on each of two instances: twice the sensitivity to the share."""
    rates_per_s = wandering(4)
    samples = samples_of(rates_per_s, 0.04 * rates_per_s[:, None] * np.ones(2), ids=("a", "b"))
    assert fitted_sensitivity(samples, of="per_instance").change == pytest.approx([0.08, 0.08])
    assert fitted_sensitivity(samples, of="operator").change == pytest.approx([0.04, 0.04])


def test_steps_that_teach_nothing_are_left_out():
    """Instances came or went, a load stood at its limit, something was missing: the rest is still exact."""
    rates_per_s = wandering(6)
    loads = np.minimum(0.04 * rates_per_s[:, None] * np.ones(2), 1.0)
    samples = samples_of(rates_per_s, loads)
    samples[50] = samples[50]._replace(loads=np.full((1, 2), np.nan))
    samples[60] = samples[60]._replace(rate_per_s=None)
    samples[70] = samples[70]._replace(loads=np.full((1, 2), 1.0))
    samples[80] = samples[80]._replace(ids=("x",), loads=np.full((1, 2), 0.01))
    assert fitted_sensitivity(samples).change == pytest.approx([0.04, 0.04])


def test_too_few_steps_give_nothing_and_say_so():
    samples = samples_of(wandering(7)[:10], np.full((10, 2), 0.5))
    found = fitted_sensitivity(samples)
    assert found.level == found.change == (0.0, 0.0)
    assert found.problem == f"9 of {LEAST_STEPS} steps to fit a and b"


def test_a_constant_rate_gives_nothing_and_says_so():
    rng = np.random.default_rng(8)
    samples = samples_of([100.0] * 100, 0.5 + 0.01 * rng.standard_normal((100, 2)))
    found = fitted_sensitivity(samples)
    assert found.level == found.change == (0.0, 0.0)
    assert "never changed" in found.problem


def test_what_cannot_be_told_apart_is_b_alone():
    """D = 2·ΔD in every step: singular for two unknowns."""
    fit = SensitivityFit()
    for i in range(30):
        change = (-1.0) ** i
        fit.add((2 * change, change), [0.5, 0.5], [0.5 + 0.08 * change, 0.5])
    found = fit.fitted()
    assert found.level == (0.0, 0.0)
    assert found.change == pytest.approx((0.08, 0.0))
    assert "only b" in found.problem


# R


def test_the_variance_is_pooled_over_instances_each_around_its_own_mean():
    """a reads 0.4 ± 0.1 and b 0.8 ± 0.1 in turns: 40 squares of 0.01 over 38 degrees of freedom."""
    samples = [
        LoadSample(0.5 * i, ("a", "b"), np.array([[0.4 + sign, 0.2], [0.8 - sign, 0.2]]), 10.0)
        for i in range(20)
        for sign in [0.1 * (-1) ** i]
    ]
    assert measurement_variance(samples) == pytest.approx((0.4 / 38, 0.0))


def test_the_variance_of_known_noise():
    rng = np.random.default_rng(9)
    samples = [
        LoadSample(0.5 * i, ("a", "b"), 0.5 + rng.standard_normal((2, 2)) * [0.05, 0.001], 10.0)
        for i in range(4000)
    ]
    assert measurement_variance(samples) == pytest.approx((0.0025, 1e-6), rel=0.06)


@pytest.mark.parametrize("missing", [False, True])
def test_too_few_readings_are_an_error_that_says_how_many(missing):
    load = [[0.5, np.nan]] if missing else [[0.5, 0.2]]
    samples = [LoadSample(0.5 * i, ("a",), np.array(load), 10.0) for i in range(100 if missing else 10)]
    with pytest.raises(FogscaleError, match="record 20 of each metric"):
        measurement_variance(samples)


# From observations


def observed(time_s, rate_per_s, loads, state="running"):
    instances = tuple(
        InstanceMetrics(f"map-{n}", "fog1", state, cpu_ratio=cpu, memory_ratio=memory)
        for n, (cpu, memory) in enumerate(loads)
    )
    metrics = OperatorMetrics(arrival_rate_per_s=rate_per_s, instances=instances)
    return seen(["fog1", "fog2"], time_s=time_s, map=metrics)


def test_parameters_for_an_experiment_come_from_two_recordings():
    rng, rates_per_s = np.random.default_rng(10), wandering(10)
    varied = [observed(0.5 * i, r, [(0.04 * r / 2, 0.3)] * 2) for i, r in enumerate(rates_per_s)]
    noise = 0.5 + 0.05 * rng.standard_normal((500, 2))
    constant = [observed(0.5 * i, 20.0, [(cpu, 0.3) for cpu in row]) for i, row in enumerate(noise)]
    parameters = calibrated_parameters(varied, constant, "map", of="per_instance")
    assert parameters["rate"] == "per_instance"
    assert parameters["change_sensitivity"] == pytest.approx({"cpu": 0.04, "memory": 0.0}, abs=1e-9)
    assert parameters["measurement_variance"]["cpu"] == pytest.approx(0.0025, rel=0.1)
    policy = create("ekf", parameters)
    policy.start(chain(), np.random.default_rng(1))


def test_a_recording_in_which_nothing_happens_is_an_error():
    constant = [observed(0.5 * i, 20.0, [(0.5, 0.3)]) for i in range(100)]
    with pytest.raises(FogscaleError, match="record a load that rises and falls"):
        calibrated_parameters(constant, constant, "map")


# What instances show


@pytest.mark.parametrize("garbage", [None, float("nan"), float("inf"), -0.1, 83.0])
def test_what_is_no_ratio_counts_as_missing(garbage):
    sample = load_sample(observed(0.0, 10.0, [(garbage, 0.3), (0.5, 0.3)]), "map")
    assert np.isnan(sample.loads[0, 0])
    assert mean_over_instances(sample.loads) == pytest.approx([0.5, 0.3])


@pytest.mark.parametrize("garbage", [None, float("nan"), float("inf"), -1.0])
def test_what_is_no_rate_counts_as_missing(garbage):
    assert load_sample(observed(0.0, garbage, [(0.5, 0.3)]), "map").rate_per_s is None


def test_only_running_instances_have_a_load():
    assert load_sample(observed(0.0, 10.0, [(0.5, 0.3)], state="booting"), "map").ids == ()
    assert np.isnan(mean_over_instances(np.empty((0, 2)))).all()
