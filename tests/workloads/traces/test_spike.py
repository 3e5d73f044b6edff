"""A spike stands where it is told, with straight walls."""

import pytest

from fogscale.errors import FogscaleError
from workloads.catalog import load


def test_the_walls_are_straight():
    profile = load("spike").profile
    around = [profile.between([t_s, t_s + 1])[0] for t_s in (0, 1199, 1200, 1499, 1500, 3599)]
    assert around == pytest.approx([100, 100, 300, 300, 100, 100])
    assert profile.total_records == pytest.approx(3600 * 100 + 300 * 200)


@pytest.mark.parametrize(("start_s", "spike_s"), [(0, 10), (50, 50), (0, 100)])
def test_it_may_touch_both_ends(start_s, spike_s):
    profile = load("spike", start_s=start_s, spike_s=spike_s, span_s=100).profile
    assert profile.total_records == pytest.approx(100 * 100 + 200 * spike_s)


def test_a_spike_beyond_the_end_is_refused():
    with pytest.raises(FogscaleError, match="it ends at 1500 s, the load at 1000 s: raise span_s"):
        load("spike", span_s=1000)
