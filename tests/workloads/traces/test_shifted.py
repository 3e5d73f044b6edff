"""Shifted workloads: the same load at another time."""

import numpy as np
import pytest

from fogscale.errors import FogscaleError
from workloads.catalog import load


def test_later_means_nothing_before():
    square, later = load("square").profile, load("shifted", of="square", by_s=100).profile
    assert later.span_s == pytest.approx(2800)
    assert later.between([0, 100])[0] == 0
    edges_s = np.arange(0, 2701, 10)
    np.testing.assert_allclose(later.between(edges_s + 100), square.between(edges_s), atol=1e-6)


def test_below_zero_it_begins_in_its_midst():
    taxi, evening = load("taxi").profile, load("shifted", of="taxi", by_s="-30h").profile
    assert (evening.span_s, evening.start) == (18 * 3600, "2013-05-02T06:00:00")
    edges_s = np.arange(0, 18 * 3600 + 1, 600)
    np.testing.assert_allclose(evening.between(edges_s), taxi.between(edges_s + 30 * 3600), rtol=1e-9)


def test_the_date_moves_so_that_hours_stay_hours():
    assert load("shifted", of="taxi", by_s=3600).profile.start == "2013-04-30T23:00:00"
    assert load("shifted", of="sine", by_s=3600).profile.start is None


def test_each_operator_is_shifted():
    walks, later = load("brownian").inputs, load("shifted", of="brownian", by_s=3).inputs
    np.testing.assert_allclose(later["op2"].counts, [0, 0, 0, *walks["op2"].counts], atol=1e-6)


def test_a_shift_out_of_the_calendar_is_refused():
    with pytest.raises(FogscaleError, match="leaves the calendar"):
        load("shifted", of="taxi", by_s=1e12)


def test_nothing_left_is_refused():
    with pytest.raises(FogscaleError, match=r"by_s=-2700 leaves nothing of the 2700 s of 'square'"):
        load("shifted", of="square", by_s=-2700)
