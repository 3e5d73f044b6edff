"""The EKF paper's Square, jump by jump."""

import pytest

from fogscale.errors import FogscaleError
from workloads.catalog import load


def test_low_and_high_take_turns_of_370_s():
    profile = load("square").profile
    around_jumps = [profile.between([t_s, t_s + 1])[0] for t_s in (0, 369, 370, 739, 740, 2589, 2590, 2699)]
    assert around_jumps == pytest.approx([1, 1, 65, 65, 1, 1, 65, 65])


def test_total_worked_by_hand():
    high_s = 3 * 370 + 110
    assert load("square").profile.total_records == pytest.approx(high_s * 65 + (2700 - high_s) * 1)


def test_too_many_jumps_are_refused():
    with pytest.raises(FogscaleError, match="more than 100000 levels: raise level_s"):
        load("square", level_s=0.001)
