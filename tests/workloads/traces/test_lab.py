"""The stand-in for the lab's trace: what is known of it holds, whatever the seed."""

import numpy as np
import pytest

from fogscale.errors import FogscaleError
from workloads.catalog import load


@pytest.mark.parametrize("seed", range(1, 8))
def test_span_and_mean_are_as_told(seed):
    profile = load("lab", seed=seed).profile
    assert profile.span_s == 2700
    assert profile.mean_per_s == pytest.approx(36)
    assert 45 < profile.peak_per_s < 90


def test_it_says_that_it_is_a_stand_in():
    assert "stand-in" in load("lab").profile.source


@pytest.mark.parametrize("seed", range(1, 6))
def test_it_has_rapid_and_smooth_changes(seed):
    changes_per_s = np.abs(np.diff(load("lab", seed=seed).profile.counts))
    assert (changes_per_s > 3).sum() >= 3  # jumps: several images/s within a second
    assert (
        (changes_per_s > 0.01) & (changes_per_s < 2)
    ).sum() > 500  # ten minutes and more of gradual change


def test_only_jumps_and_only_smooth_changes():
    jumps = np.diff(load("lab", smooth_ratio=0).profile.counts)
    smooth = np.diff(load("lab", smooth_ratio=1).profile.counts)
    assert (
        np.abs(jumps) > 1e-9
    ).sum() < 2 * 2700 / 65  # at most two steps each: a jump amidst a step shows in two
    assert np.abs(smooth).max() < 60 * np.pi / 2 / 65 * 1.5  # the steepest half wave, scaled to the mean


def test_too_many_levels_are_refused():
    with pytest.raises(FogscaleError, match="workload 'lab': more than 100000 levels: raise level_s"):
        load("lab", level_s=1e-9)


def test_a_seed_is_a_trace():
    np.testing.assert_array_equal(load("lab", seed=3).profile.counts, load("lab", seed=3).profile.counts)
    assert (load("lab", seed=3).profile.counts != load("lab", seed=4).profile.counts).any()


def test_a_half_wave_is_integrated_exactly():
    from scipy.integrate import quad

    from workloads.traces.lab import _eased

    ends_s, before, after = np.array([10.0, 30.0]), np.array([2.0, 5.0]), np.array([5.0, 1.0])

    def rate(t_s):
        i = 0 if t_s < 10 else 1
        u = (t_s - [0, 10][i]) / [10, 20][i]
        return before[i] + (after[i] - before[i]) * (1 - np.cos(np.pi * u)) / 2

    for t_s in (0.0, 3.0, 10.0, 17.0, 30.0):
        expected, _ = quad(rate, 0, t_s, points=[10.0] if t_s > 10 else None)
        assert _eased(np.array([t_s]), ends_s, before, after)[0] == pytest.approx(expected, abs=1e-9)
