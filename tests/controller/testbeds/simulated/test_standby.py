"""Hot standby: idle instances that a scale-up uses at once, while others have to be provisioned first."""

import pytest

from controller.model import Plan
from controller.placement import resized, standby_first
from tests.support.jobs import chain, placed
from tests.support.runs import constant, simulated

SLOW = {"style": "restart", "duration_s": 20, "provision_s": 60}


def job(seconds=600, **changes):
    return simulated(constant(50, seconds), map_nodes=["fog1"], **{"reconfiguration": SLOW, **changes})


def downtime_begins_s(testbed):
    """When the job stops, to the second."""
    for _ in range(200):
        if not testbed.observe().placement["map"]:
            return testbed.observe().time_s
        testbed.wait(1)
    return None


def test_without_standby_the_job_runs_on_until_the_new_instance_is_there():
    testbed = job()
    testbed.apply(Plan(placed("fog1", "fog2")))
    assert testbed.observe().reconfiguring
    assert downtime_begins_s(testbed) == 60


def test_with_standby_the_reconfiguration_begins_at_once():
    testbed = job()
    testbed.apply(Plan(placed("fog1"), standby=2))
    testbed.wait(60)
    assert testbed.observe().standby == ("fog2", "fog3")
    testbed.apply(Plan(placed("fog1", "fog2"), standby=2))
    assert downtime_begins_s(testbed) == 60


def test_an_instance_that_is_not_up_yet_does_not_help():
    testbed = job()
    testbed.apply(Plan(placed("fog1"), standby=2))
    testbed.wait(59)
    assert testbed.observe().standby == ()
    testbed.apply(Plan(placed("fog1", "fog2"), standby=2))
    assert downtime_begins_s(testbed) == 59 + 60


def test_the_pool_is_filled_up_again_after_one_was_used():
    testbed = job()
    testbed.apply(Plan(placed("fog1"), standby=2))
    testbed.wait(60)
    testbed.apply(Plan(placed("fog1", "fog2"), standby=2))
    testbed.wait(59)
    assert testbed.observe().standby == ("fog3",)
    testbed.wait(1)
    assert testbed.observe().standby == ("fog3", "fog4")


def test_what_a_scale_down_gives_up_becomes_idle_as_far_as_wanted():
    testbed = simulated(constant(50, 600), map_nodes=["fog1", "fog2", "fog3"], reconfiguration=SLOW)
    testbed.apply(Plan(placed("fog1"), standby=1))
    testbed.wait(20)
    observation = testbed.observe()
    assert observation.placement["map"] == ("fog1",)
    assert observation.standby == ("fog2",)


def test_an_instance_in_use_is_never_on_standby():
    testbed = job()
    for nodes in (("fog1",), ("fog1", "fog2"), ("fog1", "fog2", "fog3"), ("fog3",)):
        testbed.apply(Plan(placed(*nodes), standby=2))
        testbed.wait(100)
        observation = testbed.observe()
        assert not set(observation.standby) & set(observation.placement["map"])
        assert len(observation.standby) == 2


def test_there_are_never_more_than_there_are_nodes():
    testbed = job()
    testbed.apply(Plan(placed("fog1"), standby=50))
    testbed.wait(60)
    assert testbed.observe().standby == ("fog2", "fog3", "fog4", "fog5")


def test_samples_count_idle_instances_from_the_instant_they_are_up():
    testbed = job()
    testbed.apply(Plan(placed("fog1"), standby=2))
    testbed.wait(100)
    standby = {sample.time_s: sample.standby for sample in testbed.samples()}
    assert (standby[50], standby[60], standby[90]) == (0, 2, 2)


def test_asking_for_standby_alone_is_no_reconfiguration():
    testbed = job()
    testbed.apply(Plan(placed("fog1"), standby=2))
    testbed.wait(120)
    assert {sample.reconfigurations for sample in testbed.samples()} == {0}
    assert testbed.observe().placement["map"] == ("fog1",)


def test_fewer_than_none_is_refused():
    testbed = job()
    testbed.apply(Plan(placed("fog1"), standby=-1))
    [receipt] = testbed.observe().receipts
    assert receipt.outcome == "refused"
    assert "ask for 0 or more" in receipt.message


def test_a_lost_node_takes_its_idle_instance_along():
    faults = [{"kind": "node_loss", "node": "fog2", "at_s": 100, "for_s": 100}]
    testbed = job(faults=faults)
    testbed.apply(Plan(placed("fog1"), standby=2))
    testbed.wait(101)
    assert testbed.observe().standby == ("fog3",)


@pytest.mark.parametrize("elastic", [False, True])
def test_a_policy_takes_the_nodes_on_standby_first(elastic):
    testbed = simulated(
        constant(50, 600), map_nodes=["fog4"], topology=chain(elastic=elastic), reconfiguration=SLOW
    )
    testbed.apply(Plan(placed("fog4"), standby=1))
    testbed.wait(60)
    testbed.apply(Plan(placed("fog4", "fog1"), standby=1))
    testbed.wait(100)
    observation = testbed.observe()
    assert observation.standby == ("fog2",)
    assert resized(observation, {"map": 3}, standby_first(observation))["map"] == ("fog4", "fog1", "fog2")


def test_an_idle_instance_serves_at_once_where_others_have_to_boot():
    testbed = job(reconfiguration={"style": "boot", "duration_s": 10})
    testbed.apply(Plan(placed("fog1"), standby=1))
    testbed.wait(10)
    assert testbed.observe().standby == ("fog2",)
    testbed.apply(Plan(placed("fog1", "fog2", "fog3")))
    assert testbed.observe().placement["map"] == ("fog1", "fog2")
    testbed.wait(10)
    assert testbed.observe().placement["map"] == ("fog1", "fog2", "fog3")
