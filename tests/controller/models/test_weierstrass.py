"""The generalised Weierstrass transform: Eq. 19 by hand, and against a convolution."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.signal import lfilter

from controller.models.weierstrass import WeierstrassFilters


def run(gw, series, ids=("a",), period_s=0.5):
    return np.array([gw.step(period_s * i, ids, np.asarray(seen)) for i, seen in enumerate(series)])


def test_two_samples_by_hand():
    """3 s apart with t = 9: weights 1 and e^(−1/2) = 0.60653, so 0.2 then 0.8 give
    (0.8 + 0.60653·0.2) / 1.60653 = 0.57347."""
    gw = WeierstrassFilters(1)
    gw.step(0.0, ("a",), np.array([[0.2]]))
    assert gw.step(3.0, ("a",), np.array([[0.8]]))[0, 0] == pytest.approx(0.57347, abs=1e-5)


def test_a_constant_comes_out_as_it_is_from_the_first_sample_on():
    seen = run(WeierstrassFilters(2), np.full((200, 3, 2), 0.37), ("a", "b", "c"))
    assert seen == pytest.approx(0.37)


@pytest.mark.parametrize("window_s", [5.0, 60.0])
def test_is_a_convolution_with_the_past_half_of_the_kernel(window_s):
    rng = np.random.default_rng(1)
    series = rng.random((400, 2, 2))
    seen = run(WeierstrassFilters(2, 9.0, window_s), series, ("a", "b"))
    ages_s = np.arange(0, window_s + 0.25, 0.5)
    kernel = np.exp(-(ages_s**2) / 18) / np.sqrt(2 * np.pi * 9)
    expected = lfilter(kernel, [kernel.sum()], series, axis=0)
    full = len(kernel)
    np.testing.assert_allclose(seen[full:], expected[full:], rtol=1e-12)
    by_numpy = np.convolve(series[:, 0, 1], kernel)[full:400] / kernel.sum()
    np.testing.assert_allclose(seen[full:, 0, 1], by_numpy, rtol=1e-12)


def test_what_is_older_than_the_window_counts_nothing():
    gw = WeierstrassFilters(1, variance_s2=1e6, window_s=10.0)
    gw.step(0.0, ("a",), np.array([[1.0]]))
    assert gw.step(10.0, ("a",), np.array([[0.0]]))[0, 0] == pytest.approx(0.5, abs=1e-4)
    assert gw.step(10.5, ("a",), np.array([[0.0]]))[0, 0] == 0.0


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0.01, 20.0), st.floats(0.0, 1.0)), min_size=1, max_size=300),
    st.floats(0.5, 100.0),
)
def test_samples_at_any_times_however_many_fall_into_the_window(samples, variance_s2):
    """Brute force over all samples so far."""
    gw, time_s, past = WeierstrassFilters(1, variance_s2), 0.0, []
    for gap_s, value in samples:
        time_s += gap_s
        past.append((time_s, value))
        seen = gw.step(time_s, ("a",), np.array([[value]]))[0, 0]
        in_window = [
            (np.exp(-((time_s - t) ** 2) / 2 / variance_s2), v) for t, v in past if time_s - t <= 60.0
        ]
        expected = sum(w * v for w, v in in_window) / sum(w for w, _ in in_window)
        assert seen == pytest.approx(expected, rel=1e-9, abs=1e-12)


@settings(max_examples=20, deadline=None)
@given(st.floats(0.2, 0.8), st.floats(0.001, 0.05), st.integers(0, 2**32 - 1))
def test_unbiased_at_constant_load(load, noise, seed):
    series = load + noise * np.random.default_rng(seed).standard_normal((1500, 1, 1))
    seen = run(WeierstrassFilters(1), series)
    assert seen.mean() == pytest.approx(load, abs=6 * noise / np.sqrt(1500) + 0.05 * noise)
    assert seen[200:].std() < 0.6 * noise


def test_instances_come_and_go_each_with_its_own_past():
    rng = np.random.default_rng(4)
    a, b = rng.random((2, 300, 2))
    gw, alone = WeierstrassFilters(2), WeierstrassFilters(2)
    for i in range(300):
        ids = ("a",) if i < 100 else ("b", "a") if i < 200 else ("b",)
        measured = np.array([{"a": a, "b": b}[name][i] for name in ids])
        seen = dict(zip(ids, gw.step(0.5 * i, ids, measured), strict=True))
        if i >= 100:
            expected = alone.step(0.5 * i, ("b",), b[i : i + 1])[0]
            np.testing.assert_allclose(seen["b"], expected, rtol=1e-9)


def test_what_was_not_measured_counts_nothing():
    gw = WeierstrassFilters(1)
    gw.step(0.0, ("a",), np.array([[0.4]]))
    assert gw.step(1.0, ("a",), np.array([[np.nan]]))[0, 0] == pytest.approx(0.4)
    assert np.isnan(gw.step(61.5, ("a",), np.array([[np.nan]]))[0, 0])
