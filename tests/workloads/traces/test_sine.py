"""A wave against numerical integration."""

import numpy as np
import pytest
from scipy.integrate import quad

from fogscale.errors import FogscaleError
from workloads.catalog import load


@pytest.mark.parametrize(("start_s", "end_s"), [(0, 1), (0, 900), (1700, 1900), (0, 14_400)])
def test_any_stretch_holds_the_integral(start_s, end_s):
    expected, _ = quad(lambda t_s: 150 - 120 * np.cos(2 * np.pi * t_s / 3600), start_s, end_s)
    assert load("sine").profile.between([start_s, end_s])[0] == pytest.approx(expected, rel=1e-9)


def test_it_swings_between_30_and_270():
    counts = load("sine").profile.counts
    assert (counts.min(), counts.max()) == pytest.approx((30, 270), rel=1e-4)


def test_it_may_not_fall_below_zero():
    assert load("sine", mean_per_s=100, amplitude_per_s=100).profile.counts.min() >= 0
    with pytest.raises(FogscaleError, match="an amplitude of 101 around 100 falls below 0"):
        load("sine", mean_per_s=100, amplitude_per_s=101)
