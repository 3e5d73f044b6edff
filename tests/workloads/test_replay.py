"""A replay offers what the profile says, Poisson-distributed, faster, copied and thinned as told."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fogscale.errors import FogscaleError
from workloads.catalog import load
from workloads.profile import RateProfile
from workloads.replay import ReplaySettings, arrivals, offered_rate_per_s, peak_rate_per_s, replay_span_s

TAXI = load("taxi").profile
FLAT = RateProfile("flat", "written by the test", np.full(100, 600.0), 60.0)  # 10 records/s for 100 minutes


def draw(profile, step_s=1.0, seed=7, **replay):
    return arrivals(profile, ReplaySettings(**replay), step_s, np.random.default_rng(seed))


@pytest.mark.parametrize(
    ("counts", "step_s", "peak_per_s"),
    [
        pytest.param([6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1] + [0] * 9, 1.0, 9, id="a second among empty ones"),
        pytest.param([4] * 20, 1.0, 60, id="evenly"),
        pytest.param([20, 40], 20.0, 30, id="steps longer than a second of the replay"),
    ],
)
def test_the_peak_is_what_arrives_in_one_second_of_the_replay(counts, step_s, peak_per_s):
    """Ten seconds of the trace, three copies, of half of the records."""
    profile = RateProfile("sparse", "written by the test", np.array(counts, dtype=float), step_s)
    replay = ReplaySettings(speed=10, copies=3, scale=0.5)
    assert peak_rate_per_s(profile, replay) == pytest.approx(peak_per_s)
    assert offered_rate_per_s(profile, replay, 1.0).max() == pytest.approx(peak_per_s)


def test_total_is_within_poisson_bounds():
    expected = TAXI.total_records
    assert abs(draw(TAXI, speed=10).sum() - expected) < 5 * np.sqrt(expected)


def test_steps_scatter_like_a_poisson_stream():
    # Each of n steps adds (x - mean)² / mean, which is 1 in the mean for Poisson counts; its own variance is
    # 2 + 1/mean. Deterministic arrivals would give 0, copies counted one by one would give 3.
    mean = offered_rate_per_s(TAXI, ReplaySettings(speed=10), step_s=1.0)
    dispersion = np.mean((draw(TAXI, speed=10) - mean) ** 2 / mean)
    assert abs(dispersion - 1) < 5 * np.sqrt(np.mean(2 + 1 / mean) / len(mean))


def test_even_arrivals_keep_equal_distances():
    """10/s in steps of 0.5 s are 5 each; 7.5 a step alternate between 7 and 8."""
    assert set(draw(FLAT, step_s=0.5, arrivals="even").tolist()) == {5}
    assert set(draw(FLAT, step_s=0.75, arrivals="even").tolist()) == {7, 8}


@given(step_s=st.floats(0.1, 30), seed=st.integers(0, 99), speed=st.floats(0.5, 20))
def test_even_arrivals_are_never_off_by_more_than_one(step_s, seed, speed):
    counts = draw(FLAT, step_s=step_s, seed=seed, speed=speed, arrivals="even")
    expected = offered_rate_per_s(FLAT, ReplaySettings(speed=speed), step_s) * step_s
    assert np.abs(np.cumsum(counts) - np.cumsum(expected)).max() <= 1 + 1e-6


def test_even_arrivals_begin_at_another_moment_with_another_seed():
    slow = RateProfile("slow", "written by the test", np.full(10, 1.0), 10.0)  # one record in 10 s
    firsts = {int(np.argmax(draw(slow, seed=seed, arrivals="even"))) for seed in range(20)}
    assert len(firsts) > 5


def test_copies_arrive_together():
    once, thrice = draw(TAXI, speed=10), draw(TAXI, speed=10, copies=3)
    np.testing.assert_array_equal(thrice, 3 * once)


def test_same_seed_same_arrivals_other_seed_others():
    np.testing.assert_array_equal(draw(FLAT, seed=1), draw(FLAT, seed=1))
    assert (draw(FLAT, seed=1) != draw(FLAT, seed=2)).any()


def test_arrivals_are_whole_records_in_64_bits():
    assert draw(FLAT, copies=3).dtype == np.int64


def test_double_speed_halves_the_span_and_doubles_the_rate():
    once, twice = ReplaySettings(), ReplaySettings(speed=2)
    assert replay_span_s(FLAT, once) == 6000
    assert replay_span_s(FLAT, twice) == 3000
    assert offered_rate_per_s(FLAT, once, 1.0).tolist() == pytest.approx([10.0] * 6000)
    assert offered_rate_per_s(FLAT, twice, 1.0).tolist() == pytest.approx([20.0] * 3000)


def test_scale_thins_the_stream():
    assert offered_rate_per_s(FLAT, ReplaySettings(scale=0.25, copies=2), 1.0).tolist() == pytest.approx(
        [5.0] * 6000
    )
    assert abs(draw(FLAT, scale=0.25).sum() - 15_000) < 5 * np.sqrt(15_000)


@given(
    counts=st.lists(st.integers(0, 1_000_000), min_size=1, max_size=30),
    speed=st.floats(0.1, 100),
    copies=st.integers(1, 5),
    step_s=st.floats(0.5, 500),
    smooth=st.booleans(),
)
@settings(deadline=None)
def test_steps_sum_to_the_total(counts, speed, copies, step_s, smooth):
    profile = RateProfile("test", "written by the test", np.array(counts, dtype=float), 60.0, smooth=smooth)
    replay = ReplaySettings(speed, copies)
    rate_per_s = offered_rate_per_s(profile, replay, step_s)
    assert rate_per_s.sum() * step_s == pytest.approx(copies * sum(counts), rel=1e-9)
    assert (len(rate_per_s) - 1) * step_s <= replay_span_s(profile, replay) * (1 + 1e-9)
    assert len(rate_per_s) * step_s >= replay_span_s(profile, replay) * (1 - 1e-9)


@pytest.mark.parametrize(
    ("step_s", "steps"),
    [
        pytest.param(1.0, 17_280, id="one second"),
        pytest.param(0.5, 34_560, id="half a second"),
        pytest.param(0.1, 172_800, id="a tenth, which no float holds exactly"),
        pytest.param(7.0, 2469, id="a last step that is filled in part"),
        pytest.param(1e6, 1, id="longer than the replay"),
    ],
)
def test_the_taxi_days_last_288_minutes(step_s, steps):
    assert len(draw(TAXI, step_s=step_s, speed=10)) == steps


def test_a_span_of_whole_steps_gets_no_empty_step_from_rounding():
    tenths = RateProfile("tenths", "written by the test", np.ones(3), 0.1)
    assert tenths.span_s / 0.1 > 3  # 3.0000000000000004
    assert len(draw(tenths, step_s=0.1)) == 3


def test_an_empty_hour_brings_nothing():
    quiet = RateProfile("quiet", "written by the test", np.array([3600.0, 0.0, 3600.0]), 3600.0, smooth=True)
    assert draw(quiet)[3600:7200].sum() == 0


@pytest.mark.parametrize(
    ("replay", "message"),
    [
        pytest.param({"speed": 0}, "speed must be a number above 0, not 0", id="speed 0"),
        pytest.param({"speed": -10}, "speed must be a number above 0, not -10", id="backwards"),
        pytest.param({"speed": float("nan")}, "speed must be a number above 0, not nan", id="speed NaN"),
        pytest.param({"speed": float("inf")}, "speed must be a number above 0, not inf", id="at once"),
        pytest.param({"scale": 0}, "scale must be a number above 0, not 0", id="scale 0"),
        pytest.param({"copies": 0}, "copies must be a whole number of at least 1, not 0", id="no copies"),
        pytest.param(
            {"copies": 1.5}, "copies must be a whole number of at least 1, not 1.5", id="half a copy"
        ),
    ],
)
def test_bad_settings_are_refused(replay, message):
    with pytest.raises(FogscaleError, match=message):
        ReplaySettings(**replay)


@pytest.mark.parametrize("step_s", [0, -1, float("nan"), float("inf")])
def test_bad_steps_are_refused(step_s):
    with pytest.raises(FogscaleError, match="step_s must be a number above 0"):
        draw(FLAT, step_s=step_s)


def test_more_records_than_can_be_counted_are_refused():
    with pytest.raises(
        FogscaleError, match=r"workload 'flat' offers 1\.0e\+21 records in one step: lower scale"
    ):
        draw(FLAT, scale=1e20)


def test_a_trace_in_milliseconds_is_refused_before_it_fills_the_memory():
    profile = RateProfile("long", "made up", np.ones(2), 1e12)
    with pytest.raises(FogscaleError, match="seconds, not milliseconds"):
        arrivals(profile, ReplaySettings(), 1.0, np.random.default_rng(1))


def test_rounded_stamps_arrive_together_at_the_beginning_of_their_minute():
    """60 records a minute, half of them with whole minutes, ten times as fast: 30 at once every 6 s, and five
    a second from the others."""
    profile = RateProfile("even", "by hand", np.full(3, 60.0), 60.0)
    replay = ReplaySettings(speed=10.0, rounded_ratio=0.5)
    assert offered_rate_per_s(profile, replay, 1.0).tolist() == pytest.approx([35, 5, 5, 5, 5, 5] * 3)


def test_rounded_stamps_lose_no_record_and_an_unfinished_minute_counts():
    profile = RateProfile("part", "by hand", np.array([10.0, 20.0, 30.0, 40.0]), 25.0)  # 100 s
    for ratio in (0.0, 0.3, 1.0):
        replay = ReplaySettings(speed=7.0, scale=2.0, copies=3, rounded_ratio=ratio)
        assert offered_rate_per_s(profile, replay, 1.0).sum() == pytest.approx(2 * 3 * 100)


@pytest.mark.parametrize(("name", "value"), [("rounded_ratio", 1.5), ("rounded_to_s", 0.0)])
def test_a_rounding_that_cannot_be_is_named(name, value):
    with pytest.raises(FogscaleError, match=name):
        ReplaySettings(**{name: value})
