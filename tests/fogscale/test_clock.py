"""A clock that is set under a real run is noticed, and one that is corrected little by little is not."""

import time

import pytest

from fogscale.clock import SetClockWatch, clock
from fogscale.errors import FogscaleError


@pytest.fixture
def shifted(monkeypatch):
    """Sets the clock of this process by so many seconds."""
    true, by = time.time, [0.0]
    monkeypatch.setattr(time, "time", lambda: true() + by[0])
    return by


@pytest.mark.parametrize(("by_s", "words"), [(-3600, "went 3600 s back"), (60, "went 60 s ahead")])
def test_a_clock_that_is_set_ends_the_run_and_the_next_goes_on(shifted, by_s, words):
    watch = SetClockWatch()
    watch.look()
    shifted[0] = by_s
    with pytest.raises(FogscaleError, match=words):
        watch.look()
    SetClockWatch().look()


def test_a_clock_that_is_corrected_little_by_little_may_go_far(shifted):
    watch = SetClockWatch()
    for second in range(100):
        shifted[0] = second
        watch.look()


def test_a_time_as_people_read_it():
    assert clock(3_723.4) == "1:02:03"
