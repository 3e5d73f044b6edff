"""What a policy answers is checked before anything is done with it, and what it sees it cannot change."""

import sys
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from controller import journal
from controller.containment import Contained, PolicyError
from controller.guards import told_by
from controller.model import MOST_REPLICAS, Capabilities, Instance, Note, Observation, Plan
from tests.support.jobs import chain, placed, seen

PLACED = placed("fog1")


@dataclass
class Scripted:
    """Does what it is told to."""

    answer: Any = None
    estimates: Any = field(default_factory=dict)
    notes: Any = ()
    period_s: Any = 60.0
    needs: Capabilities = frozenset()

    def start(self, topology, rng) -> None:
        pass

    def decide(self, observation: Observation) -> Any:
        return self.answer(observation) if callable(self.answer) else self.answer


def raised_error(error: BaseException) -> None:
    raise error


def asked(**script: Any) -> Plan | None:
    return Contained(Scripted(**script), "mine").decide(seen(["fog1"], time_s=60.0))


@pytest.mark.parametrize(
    ("plan", "problem"),
    [
        pytest.param(Plan(PLACED, reason=None), "a reason that is None", id="no reason"),
        pytest.param(Plan(PLACED, standby=True), "standby = True", id="a truth value for a number"),
        pytest.param(Plan(PLACED, standby=-1), "standby = -1", id="fewer than none"),
        pytest.param(Plan({"map": ["fog1"]}), "'map' that is a list: give a tuple", id="a list for a tuple"),
        pytest.param(Plan({"map": (1,)}), "'map' on 1", id="a number for a node"),
        pytest.param(Plan([("map", ())]), "a placement that is a list", id="a list for a mapping"),
        pytest.param(Plan(PLACED, instances={"map": [Instance("a", "b")]}), "a list", id="listed instances"),
        pytest.param(Plan(PLACED, instances={"map": ("a",)}), "give an Instance", id="no instance"),
        pytest.param(Plan(PLACED, notes=[Note("a")]), "notes that are a list", id="listed notes"),
        pytest.param(
            Plan(PLACED, notes=(Note("a", data={"b": float("nan")}),)), "nan", id="no finite number"
        ),
        pytest.param(Plan(PLACED, reason="\ud800"), "a reason", id="a text that UTF-8 cannot hold"),
        pytest.param(
            Plan({"map": ("fog1",) * (MOST_REPLICAS + 1)}),
            "a plan of 10001 instances",
            id="too many to journal",
        ),
        pytest.param({"map": ("fog1",)}, "a dict: give a Plan or None", id="no plan"),
    ],
)
def test_an_answer_that_cannot_be_journalled_names_the_policy(plan, problem):
    with pytest.raises(PolicyError, match=r"^policy 'mine' answered at 60 s with ") as error:
        asked(answer=plan)
    assert problem in str(error.value)


@pytest.mark.parametrize(
    ("raised", "words"),
    [
        pytest.param(lambda _: 1 / 0, "ZeroDivisionError: division by zero", id="an error"),
        pytest.param(lambda _: sys.exit(3), "SystemExit: 3", id="an exit"),
        pytest.param(lambda _: raised_error(BaseException("b")), "BaseException: b", id="no Exception"),
    ],
)
def test_whatever_goes_wrong_inside_names_the_policy_and_the_place(raised, words):
    with pytest.raises(PolicyError, match=r"policy 'mine' failed in decide at 60 s: ") as error:
        asked(answer=raised)
    assert words in str(error.value)
    assert "test_containment.py, line" in str(error.value)


def test_ctrl_c_is_not_the_policys_fault():
    def interrupted(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        asked(answer=interrupted)


@pytest.mark.parametrize("name", ["placement", "requested", "operators", "nodes", "requested_instances"])
def test_what_a_policy_sees_it_cannot_change(name):
    def meddling(observation):
        getattr(observation, name)["map"] = ()

    with pytest.raises(PolicyError, match="what a policy sees cannot be changed"):
        asked(answer=meddling)


def test_a_plan_that_is_changed_later_stays_as_it_was_given():
    placement = dict(PLACED)
    plan = asked(answer=Plan(placement, reason="once"))
    placement["map"] = ()
    assert plan.placement == PLACED


def test_a_plan_may_hand_back_what_was_seen(tmp_path):
    plan = asked(answer=lambda observation: Plan(observation.requested, reason="as it is"))
    assert journal._encode(plan)  # written like any other
    assert plan.placement == PLACED


class Word(str):
    """As numpy's texts are: one, but none that JSON knows."""


def test_an_answer_in_types_of_its_own_is_journalled_in_plain_ones(tmp_path):
    note = Note("asked", data={"whole": np.int64(3), "part": np.float32(0.5), "who": np.str_("a")})
    placement = {**PLACED, Word("map"): (np.str_("fog1"), Word("fog1"))}
    instances = {Word("map"): (Instance(Word("a"), np.str_("fog1")),)}
    plan = asked(answer=Plan(placement, reason=Word("why"), instances=instances, notes=(note,)))
    plain = Note("asked", data={"whole": 3.0, "part": 0.5, "who": "a"})
    assert plan == Plan(
        {**PLACED, "map": ("fog1", "fog1")}, 0, "why", {"map": (Instance("a", "fog1"),)}, (plain,)
    )
    assert journal._encode(plan)


class Unseen:
    def __repr__(self) -> str:
        raise ValueError("nobody may look")


def test_an_answer_that_cannot_even_be_looked_at_names_the_policy():
    with pytest.raises(PolicyError, match="policy 'mine' failed in its plan at 60 s: ValueError: nobody may"):
        asked(answer=Plan(PLACED, standby=Unseen()))


def test_an_estimate_that_no_float_can_hold_is_left_out():
    told, _ = told_by(Contained(Scripted(estimates={"a": 10**400, "b": 1}), "mine"), 60.0)
    assert told == {"b": 1.0}


@pytest.mark.parametrize("period_s", [0, -1, float("nan"), float("inf"), None, "60", True])
def test_a_period_that_never_or_always_ends_is_refused(period_s):
    with pytest.raises(PolicyError, match="period_s"):
        _ = Contained(Scripted(period_s=period_s), "mine").period_s


@pytest.mark.parametrize("estimates", [{"a": True}, {"a": "1"}, {1: 2.0}, [1.0], None])
def test_estimates_are_numbers_by_name(estimates):
    with pytest.raises(PolicyError, match="estimate"):
        told_by(Contained(Scripted(estimates=estimates), "mine"), 60.0)


def test_estimates_of_any_kind_of_number_are_journalled_as_floats():
    given = {"a": np.int64(3), "b": np.float32(0.5), "c": float("inf"), "d": 2}
    told, _ = told_by(Contained(Scripted(estimates=given), "mine"), 60.0)
    assert told == {"a": 3.0, "b": 0.5, "d": 2.0}
    assert {type(value) for value in told.values()} == {float}


def test_a_policy_that_starts_badly_is_named():
    class Bad(Scripted):
        def start(self, topology, rng):
            raise ValueError("no")

    with pytest.raises(PolicyError, match="policy 'mine' failed in start: ValueError: no"):
        Contained(Bad(), "mine").start(chain(), np.random.default_rng(1))
