"""Decisions against the paper's arithmetic: C = 500, r = .7: an instance should get 350 records per step."""

from __future__ import annotations

import pytest

from controller.protocol.decision import Decision, Rules, decide, replication_factor
from fogscale.errors import FogscaleError

PAPER = Rules()


def test_the_factor_is_the_missing_share_of_the_instances():
    # 10 instances with 490 each: 4900 / 350 = 14 are needed, 4 are missing, 0.4 per instance.
    assert replication_factor(490, 10, PAPER) == pytest.approx(0.4)
    # 10 with 175 each: 5 are needed, half are spare.
    assert replication_factor(175, 10, PAPER) == pytest.approx(-0.5)


@pytest.mark.parametrize(
    ("load", "draw", "expected"),
    [
        pytest.param(490, 0.39, Decision(1), id="duplicates below the chance of 0.4"),
        pytest.param(490, 0.41, Decision(0), id="stays above it"),
        pytest.param(875, 0.49, Decision(2), id="factor 1.5: one for sure and another below 0.5"),
        pytest.param(875, 0.51, Decision(1), id="factor 1.5: only one above it"),
        pytest.param(1050, 0.0, Decision(2), id="factor 2 leaves nothing to chance"),
        pytest.param(400, 0.14, Decision(1), id="the upper threshold itself counts"),
        pytest.param(399, 0.0, Decision(0), id="nothing between the thresholds"),
        pytest.param(301, 0.0, Decision(0), id="nothing right above the lower one"),
        pytest.param(300, 0.14, Decision(leave=True), id="the lower threshold itself counts"),
        pytest.param(300, 0.15, Decision(), id="and leaves with a chance of 1/7"),
        pytest.param(0, 0.999, Decision(leave=True), id="no load: leaves for sure"),
    ],
)
def test_one_decision(load, draw, expected):
    assert decide(load, 10, False, draw, PAPER) == expected


def test_the_keeper_never_leaves_but_may_duplicate():
    assert decide(0, 10, True, 0.0, PAPER) == Decision()
    assert decide(1050, 10, True, 0.5, PAPER) == Decision(2)


def test_as_many_instances_are_made_as_are_missing_on_average():
    draws = [(i + 0.5) / 1000 for i in range(1000)]
    made = sum(decide(875, 10, False, draw, PAPER).duplications for draw in draws) / 1000
    assert made * 10 == pytest.approx(8750 / 350 - 10)


@pytest.mark.parametrize(
    ("rules", "load", "draw", "expected"),
    [
        pytest.param(Rules(more_than_one=True), 490, 0.0, Decision(), id="n > 1 never makes a single one"),
        pytest.param(Rules(more_than_one=True), 1050, 0.0, Decision(2), id="n > 1 makes two"),
        pytest.param(Rules(whole_probability=True), 875, 0.9, Decision(2), id="p above 1 always adds one"),
        pytest.param(Rules(signed_deletion=True), 0, 0.0, Decision(), id="a negative chance never leaves"),
        pytest.param(Rules(floor_difference=True), 401, 0.09, Decision(1), id="11.46 rounds down to 11"),
        pytest.param(
            Rules(floor_difference=True), 401, 0.12, Decision(), id="so the chance is 0.1, not 0.146"
        ),
    ],
)
def test_what_is_printed_can_be_run(rules, load, draw, expected):
    assert decide(load, 10, False, draw, rules) == expected


def test_one_instance_alone_decides_by_itself():
    assert decide(700, 1, True, 0.0, PAPER) == Decision(1)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"target_ratio": 0.0}, "target_ratio is 0.0: give a ratio above 0"),
        ({"target_ratio": 1.1}, "at most 1"),
        ({"up_ratio": 0.6}, "give a down_ratio below up_ratio"),
        ({"up_ratio": 0.5}, "give a down_ratio below up_ratio"),
        ({"capacity_per_step": 0.0}, "give a number above 0"),
    ],
)
def test_parameters_without_sense_are_one_line(parameters, words):
    with pytest.raises(FogscaleError, match=words):
        Rules(**parameters)


def test_a_threshold_below_the_target_duplicates_nobody_while_instances_are_spare():
    spare = Rules(target_ratio=1.0, up_ratio=0.8)  # 10 with 400 each: 8 are needed at full load
    assert [decide(400, 10, False, draw, spare) for draw in (0.0, 0.5, 0.99)] == [Decision()] * 3


def test_without_anybody_to_share_the_load_there_is_nothing_to_decide():
    """As a predecessor says that has just given up all of its successors."""
    assert decide(1050, 0, False, 0.0, PAPER) == Decision()


def test_a_target_of_the_whole_capacity_is_allowed():
    assert decide(1000, 4, False, 0.0, Rules(target_ratio=1.0)) == Decision(1)
