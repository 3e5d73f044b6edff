"""A small share of `make fuzz`: every attempt ends in a right result or in one clear line."""

import pytest

from tests.fuzz.targets import TARGETS, Target, attempt

ATTEMPTS = 3  # of a target, for each of its share of a hundred


@pytest.mark.parametrize("name", TARGETS)
def test_every_attempt_ends_as_it_should(tmp_path, name):
    target = Target(tmp_path)
    outcomes = {seed: attempt(target, name, seed) for seed in range(ATTEMPTS * TARGETS[name][1])}
    wrong = {seed: outcome for seed, outcome in outcomes.items() if outcome not in ("right", "refused")}
    assert not wrong
    assert set(outcomes.values()) == {"right", "refused"}, "the attempts do not try both sides"
