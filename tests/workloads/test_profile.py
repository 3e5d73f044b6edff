"""A profile conserves its counts, never runs backwards, and is the PCHIP that scipy would draw."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.interpolate import PchipInterpolator

from fogscale.errors import FogscaleError
from workloads.profile import RateProfile

TOTALS = st.lists(st.one_of(st.just(0), st.integers(0, 10_000_000)), min_size=1, max_size=60)


def profile(counts, *, step_s=3600.0, smooth=True):
    return RateProfile("test", "written by the test", np.array(counts, dtype=float), step_s, smooth=smooth)


@given(TOTALS, st.booleans(), st.integers(1, 50))
@settings(deadline=None)
def test_each_step_keeps_its_total(totals, smooth, parts):
    edges_s = np.linspace(0, len(totals) * 3600.0, len(totals) * parts + 1)
    pieces = profile(totals, smooth=smooth).between(edges_s).reshape(len(totals), parts)
    np.testing.assert_allclose(
        pieces.sum(axis=1), totals, rtol=1e-9, atol=1e-9 * max(1, *totals, sum(totals))
    )


@given(TOTALS, st.booleans())
@settings(deadline=None)
def test_the_rate_is_never_negative(totals, smooth):
    curve = profile(totals, smooth=smooth)
    records = curve.cumulative(np.linspace(0, curve.span_s, 37 * len(totals)))
    assert np.diff(records).min(initial=0) >= -1e-12 * sum(totals)
    assert curve.between(np.linspace(0, curve.span_s, 100)).min() >= 0


def test_rounding_makes_no_stretch_negative():
    last_ms_before_an_empty_hour = np.linspace(7199.999, 7200.0, 1001)
    curve = profile([100, 70, 0])
    assert np.diff(curve.cumulative(last_ms_before_an_empty_hour)).min() < 0  # rounding alone
    assert curve.between(last_ms_before_an_empty_hour).min() == 0


@given(TOTALS.filter(lambda totals: len(totals) > 1))
@settings(deadline=None)
def test_smooth_is_scipys_pchip(totals):
    curve = profile(totals)
    edges_s = np.arange(len(totals) + 1) * 3600.0
    t_s = np.linspace(0, curve.span_s, 11 * len(totals))
    expected = PchipInterpolator(edges_s, np.concatenate(([0], np.cumsum(totals))))(t_s)
    np.testing.assert_allclose(curve.cumulative(t_s), expected, rtol=1e-9, atol=1e-9 * max(1, sum(totals)))


def test_without_smoothing_records_come_evenly_within_a_step():
    curve = profile([60, 0, 120], step_s=60, smooth=False)
    assert curve.cumulative([0, 30, 60, 119, 150, 180]).tolist() == [0, 30, 60, 60, 120, 180]


def test_nothing_comes_outside_the_span():
    assert profile([10, 20]).cumulative([-5, 0, 7200, 9000]).tolist() == [0, 0, 30, 30]


def test_span_mean_and_peak():
    curve = profile([60, 0, 120], step_s=60, smooth=False)
    assert (curve.span_s, curve.total_records, curve.mean_per_s, curve.peak_per_s) == (180, 180, 1, 2)


def test_peak_of_a_smooth_profile_is_above_the_busiest_hours_mean():
    # Worked by hand: the middle hour rises from slope 0 to 0, so its rate is 6x(1 - x), 1.5 times the mean.
    assert profile([0, 3600, 0]).peak_per_s == pytest.approx(1.5, rel=1e-3)


def test_a_single_hour_has_a_constant_rate():
    assert profile([3600]).cumulative([0, 900, 1800, 3600]).tolist() == [0, 900, 1800, 3600]


def test_a_profile_cannot_be_changed_through_the_array_it_was_made_of():
    counts = np.array([1.0, 2.0])
    curve = RateProfile("test", "written by the test", counts, 60.0)
    counts[0] = 99
    assert curve.counts.tolist() == [1, 2]
    with pytest.raises(ValueError, match="read-only"):
        curve.counts[0] = 99


@pytest.mark.parametrize(
    ("counts", "step_s", "message"),
    [
        pytest.param([], 60, "at least one count", id="no counts"),
        pytest.param([[1, 2]], 60, "one list of counts", id="a table"),
        pytest.param([1, -1], 60, "at least 0", id="negative"),
        pytest.param([1, float("nan")], 60, "at least 0", id="NaN"),
        pytest.param([1, float("inf")], 60, "at least 0", id="infinite"),
        pytest.param([1], 0, "step_s must be above 0", id="no step"),
        pytest.param([1], float("nan"), "step_s must be above 0", id="step NaN"),
    ],
)
def test_bad_profiles_are_refused(counts, step_s, message):
    with pytest.raises(FogscaleError, match=f"workload 'test': .*{message}"):
        profile(counts, step_s=step_s)
