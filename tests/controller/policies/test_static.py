"""Static provisioning stays, or goes where it is told and stays there."""

import pytest

from controller.policies import create
from tests.support.jobs import chain, placed, replicas_of, seen


def test_by_default_it_stays_as_it_starts():
    assert create("static").decide(seen(["fog1", "fog2"])) is None


@pytest.mark.parametrize(
    ("replicas", "expected"),
    [
        pytest.param(4, 4, id="up"),
        pytest.param(1, 1, id="down"),
        pytest.param(2, None, id="already so"),
        pytest.param(99, 5, id="n_max"),
        pytest.param(0, 1, id="n_min"),
    ],
)
def test_it_goes_where_it_is_told(replicas, expected):
    plan = create("static", {"replicas": {"map": replicas}}).decide(seen(["fog1", "fog2"]))
    assert replicas_of(plan) == expected


def test_it_goes_there_once():
    policy = create("static", {"replicas": {"map": 3}})
    plan = policy.decide(seen(["fog1", "fog2"]))
    assert plan.placement == placed("fog1", "fog2", "fog3")
    assert plan.reason == "fixed: map 3"
    assert policy.decide(seen(plan.placement["map"])) is None


def test_where_slots_run_out_it_takes_what_there_is():
    policy, topology = create("static", {"replicas": {"map": 9}}), chain(n_max=None)
    assert replicas_of(policy.decide(seen(["fog1"], topology=topology))) == 5
    full = ["fog1", "fog2", "fog3", "fog4", "fog5"]
    assert policy.decide(seen(full, topology=topology)) is None
