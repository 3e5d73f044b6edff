"""What a controller that comes after another has to finish."""

import pytest

from controller.contract import Step
from controller.model import Plan, Receipt
from controller.testbeds.flink.incidents import Incidents
from controller.testbeds.flink.ledger import Ledger
from controller.testbeds.flink.reconfigurations import Reconfigurations, unsettled
from controller.testbeds.flink.rescale import Outcome
from fogscale.errors import FogscaleError
from tests.support.jobs import placed, seen

UP, DOWN = Plan(placed("fog1", "fog2"), reason="up"), Plan(placed("fog1"), reason="down")


def step(plan=None, *settled):
    receipts = tuple(Receipt(each, "done", 0, 1) for each in settled)
    return Step(seen(["fog1"], receipts=receipts), plan, 5, ())


def test_a_plan_without_a_receipt_is_unsettled():
    steps = [step(UP), step(), step(None, UP), step(DOWN), step()]
    assert [each.plan for each in unsettled(steps)] == [DOWN]
    assert unsettled([*steps, step(None, DOWN)]) == []
    assert unsettled([]) == []


def test_the_same_plan_twice_needs_two_receipts():
    steps = [step(UP), step(DOWN, UP), step(UP, DOWN)]
    assert [each.plan for each in unsettled(steps)] == [UP]


class FakeJob:
    def __init__(self, runs):
        self.id = "a" if runs else None


class FakeRescaler:
    """Notes what is asked of it."""

    style = "restart"

    def __init__(self, placement, succeeds=True):
        self.at, self.succeeds, self.log = placement, succeeds, []
        self.job = FakeJob(placement is not None)

    def begin(self, placement, most):
        self.log.append("begin")
        self.at = dict(placement)

    def runs_as(self, placement):
        return self.at == dict(placement)

    def rescale(self, before, wanted, standby=None):
        self.log.append("rescale")
        return Outcome(self.succeeds, "" if self.succeeds else "no savepoint")


def going_on(rescaler, plan):
    before = placed("fog1")
    wanted = before if plan is None else plan.placement
    changes = Reconfigurations(
        rescaler, Ledger(), lambda: 9.0, lambda: False, wanted, Incidents(lambda: 9.0), {"map": 2}
    )
    changes.go_on(plan, before, 5.0, 9.0)
    return changes


def test_a_plan_that_was_under_way_is_carried_out():
    rescaler = FakeRescaler(placed("fog1"))
    (receipt,) = going_on(rescaler, UP).receipts()
    assert (receipt.plan, receipt.outcome, receipt.requested_s) == (UP, "done", 5.0)
    assert rescaler.log == ["rescale"]


def test_a_job_that_was_stopped_begins_as_the_plan_wanted():
    rescaler = FakeRescaler(None)
    (receipt,) = going_on(rescaler, UP).receipts()
    assert (receipt.outcome, rescaler.log, rescaler.at) == ("done", ["begin"], UP.placement)


def test_what_was_carried_out_already_is_not_done_again():
    rescaler = FakeRescaler(dict(UP.placement))
    (receipt,) = going_on(rescaler, UP).receipts()
    assert (receipt.outcome, rescaler.log) == ("done", [])


def test_a_plan_that_fails_then_leaves_the_scale_of_before():
    changes = going_on(FakeRescaler(placed("fog1"), succeeds=False), UP)
    (receipt,) = changes.receipts()
    assert (receipt.outcome, receipt.message) == ("failed", "no savepoint")
    assert changes.requested == placed("fog1")


def test_without_a_plan_the_job_is_brought_to_what_was_asked_for_and_nobody_gets_a_receipt():
    rescaler = FakeRescaler(placed("fog1", "fog2"))
    assert going_on(rescaler, None).receipts() == ()
    assert rescaler.log == ["rescale"]


def test_what_breaks_a_reconfiguration_off_is_shown_and_not_waited_for():
    class Broken(FakeRescaler):
        def rescale(self, before, wanted, standby=None):
            raise KeyError("vertex")

    changes = Reconfigurations(
        Broken(placed("fog1")), Ledger(), lambda: 9.0, lambda: False, placed("fog1"),
        Incidents(lambda: 9.0), {"map": 2},
    )  # fmt: skip
    changes.start(UP)
    changes.finish()
    assert not changes.is_busy
    with pytest.raises(FogscaleError, match=r"broke off .*KeyError: 'vertex'.* run it again"):
        changes.check()
