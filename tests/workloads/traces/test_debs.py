"""The EDF paper's five days: twelve hours between 150 and 500 tuples/s, in the shape of the counted days."""

import numpy as np
import pytest

from fogscale.errors import FogscaleError
from workloads.catalog import load
from workloads.replay import offered_rate_per_s, replay_span_s
from workloads.traces.debs import FIVE_DAYS


def by_hour(workload):
    return offered_rate_per_s(workload.profile, workload.replay, 360.0)  # an hour at speed 10


def test_five_days_in_twelve_hours():
    workload = load("debs")
    assert len(FIVE_DAYS) == 120
    assert replay_span_s(workload.profile, workload.replay) == 12 * 3600
    assert (workload.replay.speed, workload.profile.start) == (10, "2013-01-07T00:00:00")
    assert (workload.records, "stand-in" in workload.profile.source) == ("debs_route", True)


def test_the_rates_of_all_seconds_span_the_published_range():
    workload = load("debs")
    rates = offered_rate_per_s(workload.profile, workload.replay, 1.0)
    assert len(rates) == 12 * 3600
    assert (rates.min(), rates.max()) == pytest.approx((150, 500))
    assert np.abs(np.diff(rates)).max() < 1, "a smooth curve"


def test_the_shape_is_that_of_the_counted_days():
    assert np.corrcoef(by_hour(load("debs")), FIVE_DAYS)[0, 1] == pytest.approx(1)


def test_totals_of_the_days():
    assert np.array(FIVE_DAYS).reshape(5, 24).sum(axis=1).tolist() == [406780, 441898, 456992, 486895, 519525]


def test_unscaled_it_would_be_32_to_488():
    unscaled = np.array(FIVE_DAYS) / 72  # 10 times as fast, 5 times as many: 50 / 3600
    assert (round(unscaled.min()), round(unscaled.max())) == (32, 488)


def test_an_empty_range_is_refused():
    with pytest.raises(FogscaleError, match="high_per_s must be above low_per_s"):
        load("debs", low_per_s=500, high_per_s=500)
