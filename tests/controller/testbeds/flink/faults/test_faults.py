"""Faults on purpose, as far as it takes no testbed: their order, and what is judged of each."""

import pytest

from controller.contract import Step
from controller.model import Note, Plan, Receipt
from controller.testbeds.flink.broker import Left
from controller.testbeds.flink.faults.catalogue import CATALOGUE
from controller.testbeds.flink.faults.command import chosen, in_order
from controller.testbeds.flink.faults.harness import Tried, told_by
from controller.testbeds.flink.faults.tally import Seen
from fogscale.errors import FogscaleError
from tests.support.jobs import placed, seen


def test_all_twelve_come_first_in_their_order_then_shuffled_by_the_seed():
    assert len(CATALOGUE) == 12
    order = in_order(CATALOGUE, 3, seed=4)
    assert tuple(order[:12]) == CATALOGUE
    for turn in (order[12:24], order[24:]):
        assert sorted(each.name for each in turn) == sorted(each.name for each in CATALOGUE)
    assert order == in_order(CATALOGUE, 3, seed=4)
    assert order != in_order(CATALOGUE, 3, seed=5)


def test_some_can_be_chosen_by_name():
    assert [each.name for each in chosen("MinIO, node")] == ["MinIO", "node"]
    with pytest.raises(FogscaleError, match=r"unknown fault .minio.*known: .*MinIO"):
        chosen("minio")


def test_lost_and_doubled_are_counted_by_number():
    tally = Seen()
    tally.add([Left(number, 0, 1000 * number) for number in (0, 1, 3, 3)])
    assert (tally.missing(4), tally.missing(2), tally.doubled) == (1, 0, 1)
    assert tally.silence_s(0.5, 4.0) == 2.0  # from 1 to 3


@pytest.mark.parametrize(
    ("changes", "passed"),
    [
        ({}, True),
        ({"lost": 1}, False),
        ({"doubled": 1}, False),
        ({"well_after_s": None}, False),
        ({"runs_on": ("fog2",)}, False),
    ],
)
def test_survived_is_what_lost_nothing_and_came_back_as_asked_for(changes, passed):
    values = {
        "fault": "x", "does": "y", "silent_s": 1.0, "well_after_s": 2.0, "records": 9, "lost": 0,
        "doubled": 0, "asked_for": ("fog1",), "runs_on": ("fog1",), "journal": "",
    }  # fmt: skip
    assert Tried(**{**values, **changes}).passed is passed


def test_what_the_journal_tells_is_one_line():
    plan = Plan(placed("fog1"))
    receipts = (Receipt(plan, "done", 0, 1), Receipt(plan, "failed", 0, 1, message="no savepoint"))
    first = Step(
        seen(["fog1"]), None, 5, (), notes=(Note("away", "Flink", data={"at_s": 1.0, "reason": "x"}),)
    )
    observation = seen(["fog1"], receipts=receipts)
    second = Step(observation, None, 5, (), notes=(Note("back", "Flink", data={"seconds": 4.5}),))
    assert told_by([first, second]) == "Flink away (x); rescale failed: no savepoint; Flink back (4.5 s)"
