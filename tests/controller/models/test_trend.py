"""The workload predictor, against lines known beforehand and numpy's own fit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.models.trend import Trend


def trend_of(points, window_s=600.0):
    trend = Trend(window_s)
    for time_s, workload_per_s in points:
        trend.add(time_s, workload_per_s)
    return trend


def test_a_line_goes_on():
    """10 records/s more every 5 s, 1200 after ten minutes: 1210 in 5 s, 1320 in a minute."""
    trend = trend_of((5.0 * i, 10.0 * i) for i in range(121))
    ahead = trend.ahead(600.0, 60.0, 5.0)
    assert len(ahead) == 12
    assert ahead == pytest.approx(np.arange(1210, 1321, 10))


@given(
    st.lists(st.floats(0, 5000), min_size=30, max_size=200),
    st.sampled_from([5.0, 15.0]),
)
def test_it_is_linear_regression_on_the_last_ten_minutes(workloads, step_s):
    points = [(step_s * i, workload) for i, workload in enumerate(workloads)]
    now_s = points[-1][0]
    recent = np.array([point for point in points if point[0] >= now_s - 600])
    slope, level = np.polyfit(recent[:, 0] - now_s, recent[:, 1], 1)
    expected = np.maximum(0, level + slope * np.arange(5, 61, 5))
    assert trend_of(points).ahead(now_s, 60.0, 5.0) == pytest.approx(expected, abs=1e-6)


def test_what_is_older_is_forgotten():
    """Ten minutes at 100 after ten at 9000: nothing of the fall is left."""
    points = [(5.0 * i, 9000.0) for i in range(120)] + [(5.0 * i, 100.0) for i in range(120, 242)]
    assert trend_of(points).ahead(1205.0, 60.0, 5.0) == pytest.approx(np.full(12, 100.0))


def test_a_past_shorter_than_the_future_predicts_nothing():
    assert Trend(600.0).ahead(0.0, 60.0, 5.0) is None
    assert trend_of([(0.0, 1.0), (30.0, 50.0), (55.0, 90.0)]).ahead(55.0, 60.0, 5.0) is None
    assert trend_of([(0.0, 1.0), (30.0, 50.0), (60.0, 90.0)]).ahead(60.0, 60.0, 5.0) is not None


def test_what_is_no_workload_is_left_out():
    good = [(5.0 * i, 100.0) for i in range(20)]
    spoilt = [*good, (97.0, np.nan), (98.0, np.inf), (99.0, -5.0)]
    assert (trend_of(spoilt).ahead(100.0, 60.0, 5.0) == trend_of(good).ahead(100.0, 60.0, 5.0)).all()


def test_no_workload_is_below_0():
    trend = trend_of((5.0 * i, 600.0 - 10.0 * i) for i in range(60))
    assert trend.ahead(295.0, 60.0, 5.0) == pytest.approx([0.0] * 12)
