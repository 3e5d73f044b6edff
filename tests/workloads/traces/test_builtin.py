"""The built-in days against the published totals and, where they are at hand, the true per-minute counts."""

from pathlib import Path

import numpy as np
import pytest

from workloads.catalog import load
from workloads.replay import offered_rate_per_s, replay_span_s
from workloads.traces.csv_profile import read_csv_profile
from workloads.traces.taxi import MAY_1, MAY_2

SHARED_DATA = Path(__file__).parents[3].parent / "shared" / "data"
BY_MINUTE = [
    ("taxi", SHARED_DATA / "taxi" / "dropoffs_per_minute_2013-05-01_02.csv"),
    ("worldcup98", SHARED_DATA / "worldcup98" / "requests_per_minute_day46.csv"),
]


def by_minute(profile):
    return profile.between(np.arange(0, profile.span_s + 60, 60))


@pytest.fixture
def read_true_counts(require):
    def read(path):
        require(
            "shared-data", path.exists(), f"{path.name} is not here, and the project ships no trace files"
        )
        return read_csv_profile(path)

    return read


def test_taxi_totals_of_both_days():
    assert (sum(MAY_1), sum(MAY_2)) == (496_250, 522_027)
    assert load("taxi").profile.total_records == 496_250 + 522_027


def test_worldcup98_total():
    assert load("worldcup98").profile.total_records == 50_395_115


@pytest.mark.parametrize(
    ("name", "start", "hours"),
    [("taxi", "2013-05-01T00:00:00", 48), ("worldcup98", "1998-06-09T22:00:00+00:00", 24)],
)
def test_start_and_span(name, start, hours):
    profile = load(name).profile
    assert (profile.start, profile.span_s) == (start, hours * 3600)


@pytest.mark.parametrize("name", ["taxi", "worldcup98"])
def test_each_hour_keeps_its_total(name):
    profile = load(name).profile
    np.testing.assert_allclose(by_minute(profile).reshape(-1, 60).sum(axis=1), profile.counts, rtol=1e-9)


def test_taxi_is_replayed_as_the_paper_does():
    workload = load("taxi")
    assert (workload.replay.speed, workload.replay.copies, workload.replay.scale) == (10, 3, 1)
    assert replay_span_s(workload.profile, workload.replay) == 288 * 60


def test_both_replays_load_the_testbed_alike_in_their_busiest_hour():
    busiest_per_s = [
        offered_rate_per_s(workload.profile, workload.replay, step_s=360.0).max()  # an hour at speed 10
        for workload in (load("taxi"), load("worldcup98"))
    ]
    assert busiest_per_s == pytest.approx([295.4, 296.8], abs=0.1)


@pytest.mark.parametrize(("name", "path"), BY_MINUTE)
def test_each_hour_equals_the_true_counts(name, path, read_true_counts):
    true_counts = read_true_counts(path).counts
    np.testing.assert_array_equal(load(name).profile.counts, true_counts.reshape(-1, 60).sum(axis=1))


@pytest.mark.parametrize(("name", "path"), BY_MINUTE)
def test_the_smooth_rate_follows_the_true_minutes(name, path, read_true_counts):
    true_counts = read_true_counts(path).counts
    assert np.corrcoef(by_minute(load(name).profile), true_counts)[0, 1] >= 0.98


@pytest.mark.parametrize(("name", "path"), BY_MINUTE)
def test_a_per_minute_file_is_read_as_it_is(name, path, read_true_counts):
    profile = read_true_counts(path)
    built_in = load(name).profile
    assert (profile.step_s, profile.smooth, profile.span_s) == (60, False, built_in.span_s)
    assert profile.total_records == built_in.total_records
    assert profile.start == built_in.start.removesuffix("+00:00")
