"""The thesis' World Cup load: what it tells of it holds in the stand-in."""

import pytest

from fogscale.errors import FogscaleError
from workloads.catalog import load
from workloads.replay import offered_rate_per_s, replay_span_s
from workloads.traces.worldcup98 import DAY_46


def by_sample(workload):
    """The rate at each of the thesis' samples, every 5 s."""
    return offered_rate_per_s(workload.profile, workload.replay, 5.0)


def test_three_hours_with_the_rates_of_the_logs():
    workload = load("worldcup98_synthetic")
    assert replay_span_s(workload.profile, workload.replay) == 3 * 3600
    hours = by_sample(workload).reshape(6, 360).mean(axis=1)
    assert hours == pytest.approx([requests / 3600 for requests in DAY_46[17:23]])
    assert (workload.profile.start, workload.records) == ("1998-06-10T17:00:00+02:00", "worldcup_request")
    assert "stand-in" in workload.profile.source


def test_it_rises_early_falls_after_sample_900_and_is_steady_near_1700():
    rate = by_sample(load("worldcup98_synthetic"))
    assert 400 < rate.argmax() < 800
    assert rate[1100] < 0.8 * rate[850]
    assert rate[1600:1800].max() / rate[1600:1800].min() < 1.15


def test_other_hours_may_be_taken():
    workload = load("worldcup98_synthetic", first_hour=0, last_hour=24)
    assert (workload.replay.speed, workload.profile.total_records) == (8, pytest.approx(sum(DAY_46)))
    with pytest.raises(FogscaleError, match="last_hour must come after first_hour"):
        load("worldcup98_synthetic", first_hour=20, last_hour=20)
