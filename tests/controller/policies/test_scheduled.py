"""Scheduled scaling goes by the clock, over and over."""

from dataclasses import replace

import pytest

from controller.model import Capability
from controller.policies import create
from fogscale.errors import FogscaleError
from tests.support.jobs import chain, replicas_of, seen


@pytest.mark.parametrize(
    ("time_s", "expected"),
    [
        pytest.param(0, 1, id="the first count"),
        pytest.param(59, 1, id="as long as it holds"),
        pytest.param(60, None, id="two run already"),
        pytest.param(120, 4, id="the last"),
        pytest.param(180, 1, id="and from the start"),
    ],
)
def test_counts_follow_each_other(time_s, expected):
    policy = create("scheduled", {"replicas": {"map": [1, 2, 4]}, "step_s": 60})
    observation = replace(seen(["fog1", "fog2"]), time_s=float(time_s))
    assert replicas_of(policy.decide(observation)) == expected


def test_without_a_schedule_it_stays():
    assert create("scheduled").decide(seen(["fog1", "fog2"])) is None


@pytest.mark.parametrize(
    ("replicas", "words"),
    [({"mpa": [1]}, "did you mean map"), ({"map": []}, "'map' has no count")],
)
def test_a_schedule_that_cannot_be_is_refused(replicas, words):
    policy = create("scheduled", {"replicas": replicas})
    with pytest.raises(FogscaleError, match=words):
        policy.start(chain(), None)


def test_instances_on_standby_are_asked_for_until_they_are_up_and_with_every_change():
    policy = create("scheduled", {"replicas": {"map": [2, 3]}, "step_s": 60, "standby": 1})
    assert Capability.STANDBY in policy.needs
    observation = seen(["fog1", "fog2"])
    asked = policy.decide(observation)
    assert (asked.standby, replicas_of(asked)) == (1, 2)
    assert policy.decide(replace(observation, standby=("fog3",))) is None
    change = policy.decide(replace(observation, standby=("fog3",), time_s=60.0))
    assert (change.standby, replicas_of(change)) == (1, 3)
