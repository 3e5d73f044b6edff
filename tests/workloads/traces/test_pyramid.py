"""The EKF paper's Pyramid, level by level."""

import pytest

from fogscale.errors import FogscaleError
from workloads.catalog import load


def rate_at(profile, t_s):
    return profile.between([t_s, t_s + 1])[0]


def test_each_level_is_held_for_130_s():
    profile = load("pyramid").profile
    middles = [rate_at(profile, 130 * level + 65) for level in range(20)]
    up_and_down = [0, 15, 30, 45, 60, 45, 30, 15]
    assert middles == pytest.approx([*up_and_down, *up_and_down, 0, 15, 30, 45])


def test_changes_are_sudden():
    profile = load("pyramid").profile
    assert [rate_at(profile, t_s) for t_s in (519, 520, 649, 650)] == pytest.approx([45, 60, 60, 45])


def test_total_worked_by_hand():
    # Two whole pyramids of 1040 s around 30 images/s, then 0, 15, 30, 45 and 100 s of 60.
    assert load("pyramid").profile.total_records == pytest.approx(2 * 1040 * 30 + 130 * 90 + 100 * 60)
    assert load("pyramid").profile.span_s == 2700


def test_another_pyramid():
    profile = load("pyramid", low_per_s=10, high_per_s=20, rise_per_s=10, level_s=1, span_s=4).profile
    assert [rate_at(profile, t_s) for t_s in range(4)] == pytest.approx([10, 20, 10, 20])


@pytest.mark.parametrize(("high_per_s", "rise_per_s"), [(60, 25), (60, 100), (0.5, 1)])
def test_stairs_that_miss_the_top_are_refused(high_per_s, rise_per_s):
    with pytest.raises(FogscaleError, match="no whole number of rises"):
        load("pyramid", high_per_s=high_per_s, rise_per_s=rise_per_s)


def test_endless_stairs_are_refused():
    with pytest.raises(FogscaleError, match="more than 100000 levels: raise level_s"):
        load("pyramid", level_s=1e-3)
    with pytest.raises(FogscaleError, match="no whole number of rises of 1e-300, 100000 at most"):
        load("pyramid", rise_per_s=1e-300)
