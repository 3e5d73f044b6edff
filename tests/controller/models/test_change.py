"""Change detection on residuals, worked by hand."""

import pytest

from controller.models.change import AbruptChange, GradualChange


@pytest.mark.parametrize(("residual", "is_change"), [(0.0, False), (0.08, False), (0.0801, True)])
def test_a_residual_above_the_threshold_is_a_change(residual, is_change):
    assert AbruptChange().found(residual) is is_change


def test_small_residuals_add_up():
    """0.06 is 0.02 more than allowed: 24 of them make 0.48, the 25th exceeds it."""
    gradual = GradualChange(allowance=0.04, limit=0.48 + 1e-9)
    assert [gradual.found(0.06) for _ in range(25)] == [False] * 24 + [True]


def test_residuals_within_the_allowance_never_do():
    gradual = GradualChange()
    assert not any(gradual.found(0.04) for _ in range(10_000))


def test_calm_takes_back_what_has_added_up():
    gradual = GradualChange(allowance=0.04, limit=0.48)
    for _ in range(20):
        gradual.found(0.06)
    for _ in range(11):
        gradual.found(0.0)
    assert gradual.total == 0.0
