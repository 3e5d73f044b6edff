"""A ramp holds the area of a trapezium."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.catalog import load

RATES = st.floats(0, 1e4)


@given(start=RATES, end=RATES, span_s=st.floats(10, 1e5), part=st.floats(0.01, 1))
def test_any_part_is_a_trapezium(start, end, span_s, part):
    profile = load("ramp", start_per_s=start, end_per_s=end, span_s=span_s).profile
    steps = max(1, int(part * len(profile.counts)))
    until_s = steps * profile.step_s  # a step's end: within a step, records come evenly
    there = start + (end - start) * until_s / span_s
    assert profile.between([0, until_s])[0] == pytest.approx(
        (start + there) / 2 * until_s, rel=1e-6, abs=1e-6
    )


def test_the_default_rises_to_300_within_an_hour():
    profile = load("ramp").profile
    assert (profile.span_s, profile.total_records) == (3600, pytest.approx(540_000))
    assert profile.counts[-1] == pytest.approx(300, rel=1e-3)
