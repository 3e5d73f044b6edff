"""The EKF paper's filter: Eq. 10–18 by hand, against a textbook filter, and unbiased at constant load."""

from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import solve_discrete_are

from controller.models.kalman import KalmanFilters, KalmanSettings, RateInput, SystemInput

NO_SHIFT = np.zeros(2)
R = (0.0025, 1e-4)


def filters(dead_time_s=0.5, ease_in_s=0.0, r=R, floor=1e-5, **changes):
    """By default the fewest samples, three, are collected before a filter starts."""
    return KalmanFilters(KalmanSettings(r, dead_time_s, ease_in_s, system_noise_floor=floor, **changes))


def run(kalman, series, ids=("a",), shifts=None, period_s=0.5):
    """Estimates [time, instance, metric] of measurements of the same shape."""
    series = np.asarray(series, dtype=float)
    shifts = np.zeros((len(series), series.shape[2])) if shifts is None else shifts
    return np.array([kalman.step(period_s * i, ids, seen, shifts[i]) for i, seen in enumerate(series)])


def steady_gain(system_noise, measurement_variance):
    """The gain a filter settles at: the fixed point of Eq. 12–13 with the update (a scalar Riccati equation),
    P² − Q·P − Q·R = 0 for the a-priori P."""
    q, r = system_noise, measurement_variance
    prior_error = (q + sqrt(q * q + 4.0 * q * r)) / 2.0
    return prior_error / (prior_error + r)


def one_metric(values):
    return np.asarray(values, dtype=float)[:, None, None]


# By hand


def test_the_first_estimate_weighs_the_dead_time_by_recency():
    """Eq. 16: (1·0.2 + 2·0.4 + 3·0.6) / 6 = 0.4667. Eq. 17: (1·0.0711 + 2·0.00444 + 3·0.01778) / 5 = 0.02667.
    Eq. 18: Q = 0.02667 − 0.01 = 0.01667. Then P = 0.04333, G = 0.04333 / 0.05333 = 0.8125, and a measurement
    of 0.4667 + 0.16 moves the estimate by 0.8125 · 0.16 = 0.13."""
    x0 = (0.2 + 2 * 0.4 + 3 * 0.6) / 6
    seen = run(filters(dead_time_s=1.5, r=(0.01,)), one_metric([0.2, 0.4, 0.6, x0 + 0.16]))
    assert np.isnan(seen[:3]).all()
    assert seen[3, 0, 0] == pytest.approx(x0 + 0.13)


def test_the_error_shrinks_with_what_was_learnt():
    """P ← (1 − G)·P: after the step above P = 0.1875 · 0.04333 = 0.008125, so the next gain is
    0.024792 / 0.034792 = 0.71257."""
    x0 = (0.2 + 2 * 0.4 + 3 * 0.6) / 6
    seen = run(filters(dead_time_s=1.5, r=(0.01,)), one_metric([0.2, 0.4, 0.6, x0, x0 + 0.1]))
    assert seen[4, 0, 0] == pytest.approx(x0 + 0.1 * 0.71257, abs=1e-6)


def test_as_printed_the_error_only_grows_until_nothing_is_filtered():
    """Without the update P_t = P₀ + t·Q: the second gain is (0.02667 + 2·0.01667) / (… + 0.01) = 0.85714."""
    x0 = (0.2 + 2 * 0.4 + 3 * 0.6) / 6
    kalman = filters(dead_time_s=1.5, r=(0.01,), covariance="printed")
    seen = run(kalman, one_metric([0.2, 0.4, 0.6, x0, x0 + 0.1]))
    assert seen[4, 0, 0] == pytest.approx(x0 + 0.1 * 0.857143, abs=1e-6)
    for i in range(5, 3000):
        last = kalman.step(0.5 * i, ("a",), np.array([[0.3 + 0.2 * (i % 2)]]), np.zeros(1))
    assert last[0, 0] == pytest.approx(0.5, abs=1e-3)  # the last measurement itself


def test_less_noise_than_r_leaves_the_floor_as_system_noise():
    """A constant 0.5: P₀ = 0 < R, Q = ε = 0.0001, the gain of the first step 0.0001 / 0.0101."""
    seen = run(filters(r=(0.01,), floor=1e-4), one_metric([0.5, 0.5, 0.5, 0.6]))
    assert np.isnan(seen[:3]).all()
    assert seen[3, 0, 0] == pytest.approx(0.5 + 0.1 * 0.0001 / 0.0101)


def test_the_input_shifts_the_estimate_at_once_and_beyond_one():
    """b·ΔD = 1.2 on a load of 0.5 that reads 1.0 at most: the estimate says how much more there is to do."""
    seen = run(
        filters(r=(0.01,), floor=1e-6),
        one_metric([0.5, 0.5, 0.5, 0.5, 1.0]),
        shifts=np.array([0, 0, 0, 0, 1.2])[:, None],
    )
    assert seen[4, 0, 0] == pytest.approx(1.7, abs=0.01)


def test_a_load_is_never_negative():
    shifts = np.array([0, 0, 0, 0, -3.0, 0])[:, None]
    seen = run(filters(r=(0.01,)), one_metric([0.5, 0.5, 0.5, 0.5, 0.1, 0.1]), shifts=shifts)
    assert (seen[4:] >= 0).all()


# Against a textbook


def textbook(series, dead, r, floor, shifts):
    """One instance, with matrices: Jazwinski's filter with F = H = I; Eq. 16–18 as printed."""
    series, identity = np.asarray(series), np.eye(len(r))
    collected = series[:dead]
    weights = np.arange(1, dead + 1)
    triangular = weights.sum()
    x = (weights[:, None] * collected).sum(axis=0) / triangular
    p = np.diag((weights[:, None] * (collected - x) ** 2).sum(axis=0) / (triangular - 1))
    q = np.diag(np.maximum(np.diag(p) - r, floor))
    estimates = []
    for z, shift in zip(series[dead:], shifts[dead:], strict=True):
        x = x + shift
        p = identity @ p @ identity.T + q
        gain = p @ identity.T @ np.linalg.inv(identity @ p @ identity.T + np.diag(r))
        x = x + gain @ (z - x)
        p = (identity - gain @ identity) @ p
        estimates.append(x)
    return np.array(estimates)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(3, 20))
def test_says_what_a_textbook_filter_says(seed, instances, dead):
    rng = np.random.default_rng(seed)
    series = np.clip(0.6 + 0.1 * rng.standard_normal((150, instances, 2)), 0.0, 1.0)
    shifts = 0.02 * rng.standard_normal((150, 2))
    ids = tuple(f"i{n}" for n in range(instances))
    ours = run(filters(dead_time_s=0.5 * dead), series, ids, shifts)
    for i in range(instances):
        expected = textbook(series[:, i], dead, np.array(R), 1e-5, shifts)
        assert ours[dead:, i] == pytest.approx(expected, rel=1e-9, abs=1e-12)


@settings(max_examples=100, deadline=None)
@given(st.floats(1e-6, 1.0), st.floats(1e-6, 1.0))
def test_the_steady_gain_solves_the_riccati_equation(q, r):
    prior = float(solve_discrete_are(np.eye(1), np.eye(1), np.eye(1) * q, np.eye(1) * r)[0, 0])
    assert steady_gain(q, r) == pytest.approx(prior / (prior + r), rel=1e-6)


def test_the_gain_settles_at_the_steady_one():
    """After long enough, a step of 0.1 in the measurement moves the estimate by the closed form."""
    rng = np.random.default_rng(3)
    noisy = 0.5 + 0.1 * rng.standard_normal(20)
    kalman = filters(dead_time_s=10.0, r=(0.0025,))
    run(kalman, one_metric(noisy))
    weights = np.arange(1, 21)
    x0 = weights @ noisy / 210
    q = weights @ (noisy - x0) ** 2 / 209 - 0.0025
    for i in range(20, 400):  # long enough for the filter to stop working its error out anew
        before = kalman.step(0.5 * i, ("a",), np.array([[0.5]]), np.zeros(1))
    after = kalman.step(200.0, ("a",), np.array([[0.6]]), np.zeros(1))
    assert (after - before)[0, 0] == pytest.approx(0.1 * steady_gain(q, 0.0025), rel=1e-6)


# Full


def test_censored_a_full_measurement_pulls_no_higher_estimate_down():
    """R = 0.0025: from 1 − 3·0.05 = 0.85 on, a reading may be that of a full instance."""
    shifts = np.zeros((40, 1))
    shifts[10] = 2.0
    series = one_metric([0.5] * 10 + [0.9] * 30)
    identity = run(filters(r=(0.0025,)), series, shifts=shifts)
    censored = run(filters(r=(0.0025,), censored=True), series, shifts=shifts)
    assert identity[-1, 0, 0] < 2.0
    assert censored[10:, 0, 0] == pytest.approx(2.5)


def test_censored_it_still_rises_to_a_full_measurement_and_falls_to_one_that_is_not():
    series = one_metric([0.5] * 10 + [1.0] * 300 + [0.4] * 300)
    identity, censored = run(filters(r=(0.0025,)), series), run(filters(r=(0.0025,), censored=True), series)
    assert censored[309:, 0, 0] == pytest.approx(identity[309:, 0, 0], abs=1e-6)


def test_a_load_dealt_out_among_twice_as_many_is_half_for_each():
    kalman = filters()
    run(kalman, np.full((10, 1, 2), 0.8))
    kalman.divide(0.5)
    assert kalman.step(5.0, ("a",), np.full((1, 2), 0.4), NO_SHIFT) == pytest.approx(0.4)


# Bootstrapping


def test_nothing_is_shown_during_dead_time_and_ease_in():
    kalman = filters(dead_time_s=10, ease_in_s=10)
    seen = run(kalman, np.full((60, 1, 2), 0.5))
    assert np.isnan(seen[:40]).all()
    assert seen[40:] == pytest.approx(0.5)


def test_too_few_samples_lengthen_the_dead_time():
    """A sample every 9 s: two after the dead time of 10 s are not enough, three are."""
    seen = run(filters(dead_time_s=10), np.full((5, 1, 2), 0.5), period_s=9.0)
    assert np.isnan(seen[:3]).all()
    assert seen[3:] == pytest.approx(0.5)


def test_instances_come_and_go_each_with_its_own_filter():
    """b joins a, then a leaves: b goes on as if it had been alone."""
    rng = np.random.default_rng(1)
    a, b = np.clip(0.5 + 0.1 * rng.standard_normal((2, 40, 2)), 0, 1)
    kalman, alone = filters(dead_time_s=2.0), filters(dead_time_s=2.0)
    seen = []
    for i in range(40):
        ids = ("a",) if i < 10 else ("a", "b") if i < 25 else ("b",)
        measured = np.array([{"a": a, "b": b}[name][i] for name in ids])
        seen.append(dict(zip(ids, kalman.step(0.5 * i, ids, measured, NO_SHIFT), strict=True)))
    for i in range(10, 40):
        expected = alone.step(0.5 * i, ("b",), b[i : i + 1], NO_SHIFT)[0]
        np.testing.assert_allclose(seen[i]["b"], expected)
    assert np.isnan(seen[12]["b"]).all()
    assert not np.isnan(seen[12]["a"]).any()


def test_the_order_of_instances_does_not_matter():
    rng = np.random.default_rng(2)
    series = np.clip(0.5 + 0.1 * rng.standard_normal((30, 2, 2)), 0, 1)
    one, other = filters(), filters()
    for i, seen in enumerate(series):
        forward = one.step(0.5 * i, ("a", "b"), seen, NO_SHIFT)
        backward = other.step(0.5 * i, ("b", "a"), seen[::-1], NO_SHIFT)
        np.testing.assert_allclose(forward, backward[::-1])


def test_an_instance_that_comes_back_starts_anew():
    kalman = filters()
    run(kalman, np.full((10, 1, 2), 0.9))
    kalman.step(5.0, ("other",), np.full((1, 2), 0.1), NO_SHIFT)
    assert np.isnan(kalman.step(5.5, ("a",), np.full((1, 2), 0.1), NO_SHIFT)).all()


# What is not measured


def test_what_is_not_measured_is_predicted_and_spoils_nothing_else():
    series = np.full((30, 2, 2), 0.5)
    series[10:15, 0, 1] = np.nan
    seen = run(filters(), series, ("a", "b"))
    assert seen[3:] == pytest.approx(0.5)


def test_after_a_gap_the_filter_trusts_measurements_more():
    """The error grows by Q in every step without a measurement."""
    gains = []
    for missing in (np.nan, 0.5):
        seen = run(filters(r=(0.01,)), one_metric([0.5, 0.4, 0.6, *[0.5] * 20, *[missing] * 10, 0.9]))
        before, after = seen[-2:, 0, 0]
        gains.append((after - before) / (0.9 - before))
    assert gains[0] > 1.1 * gains[1]


def test_a_metric_that_is_never_measured_never_has_an_estimate():
    series = np.full((30, 1, 2), 0.5)
    series[:, :, 1] = np.nan
    seen = run(filters(), series)
    assert seen[5:, 0, 0] == pytest.approx(0.5)
    assert np.isnan(seen[:, 0, 1]).all()


def test_a_noiseless_metric_is_no_trouble():
    seen = run(filters(r=(0.0, 0.0), floor=0.0), np.full((30, 1, 2), 0.5))
    assert seen[5:] == pytest.approx(0.5)


# Constant load


@settings(max_examples=30, deadline=None)
@given(st.floats(0.2, 0.8), st.floats(0.005, 0.04), st.floats(0.0, 1e4), st.integers(0, 2**32 - 1))
def test_unbiased_at_constant_load(load, noise, rate_per_s, seed):
    """Whatever the rate, and whatever a and b are: on deviations a constant rate adds nothing. Six standard
    errors of the measurements, and some for the weight of the first ones."""
    rng = np.random.default_rng(seed)
    series = load + noise * rng.standard_normal((800, 1, 1))
    rate, kalman = RateInput(), filters(dead_time_s=10.0, r=(noise**2,))
    a, b = 0.01, 0.08
    seen = []
    for i, measured in enumerate(series):
        level, change = rate.step(0.5 * i, rate_per_s)
        seen.append(kalman.step(0.5 * i, ("a",), measured, np.array([a * level + b * change])))
    assert np.mean(seen[20:]) == pytest.approx(load, abs=6 * noise / np.sqrt(780) + 0.05 * noise)


def test_as_printed_a_constant_load_drifts():
    """a·D in every step: at the steady gain G the estimate stands aD·(1 − G)/G too high."""
    rate, kalman = RateInput(transition="printed"), filters(r=(0.0025,), floor=1e-4)
    for i in range(2000):
        level, _ = rate.step(0.5 * i, 20.0)
        seen = kalman.step(0.5 * i, ("a",), np.array([[0.5]]), np.array([1e-4 * level]))
    gain = steady_gain(1e-4, 0.0025)
    assert seen[0, 0] == pytest.approx(0.5 + 1e-4 * 20 * (1 - gain) / gain, rel=1e-6)


# The input


def test_deviations_are_from_the_mean_before():
    """Memory 10 s, steps of 10 s: the mean takes up 1 − 1/e of each deviation."""
    rate = RateInput(memory_s=10.0)
    assert rate.step(0, 100.0) == SystemInput(0.0, 0.0)
    assert rate.step(10, 150.0) == SystemInput(50.0, 50.0)
    level, change = rate.step(20, 150.0)
    assert level == pytest.approx(50 / np.e)
    assert change == 0


def test_as_printed_the_level_is_the_rate_itself():
    rate = RateInput(transition="printed")
    rate.step(0, 100.0)
    assert rate.step(0.5, 130.0) == SystemInput(130.0, 30.0)


def test_as_printed_the_input_comes_one_step_late():
    rate = RateInput(timing="printed")
    rate.step(0, 100.0)
    assert rate.step(0.5, 130.0) == SystemInput(0.0, 0.0)
    assert rate.step(1.0, 130.0) == SystemInput(30.0, 30.0)


def test_a_change_across_a_gap_is_none():
    rate = RateInput(transition="printed")
    rate.step(0, 100.0)
    assert rate.step(0.5, None) == SystemInput(0.0, 0.0)
    assert rate.step(1.0, 200.0) == SystemInput(200.0, 0.0)


def test_a_share_changes_with_the_rate_not_with_those_who_share_it():
    """10 records/s more among five are 2 each; five instead of four at the same rate are no change."""
    rate = RateInput(transition="printed")
    rate.step(0, 100.0, among=4)
    assert rate.step(0.5, 100.0, among=5) == SystemInput(20.0, 0.0)
    assert rate.step(1.0, 110.0, among=5) == SystemInput(22.0, 2.0)
