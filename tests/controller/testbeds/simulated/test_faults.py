"""Mechanism 8: each fault has its effect, and ends."""

from itertools import pairwise

import pytest

from controller.model import NodeMetrics, OperatorMetrics, Plan
from fogscale.errors import FogscaleError
from tests.support.jobs import chain, placed
from tests.support.runs import constant, simulated


def looked_at(job, *times_s):
    """What is seen at these times."""
    observations = {}
    for time_s in times_s:
        job.wait(time_s - job.observe().time_s)
        observations[time_s] = job.observe()
    return observations


def struck(kind, rate_per_s=300, seconds=900, **fault_and_more):
    """Saturated: the throughput of map is its capacity, 200 on its two nodes while all is well."""
    known = {"at_s", "for_s", "node", "recovery_s", "speed_factor", "rtt_factor"}
    fault = {"kind": kind, **{key: value for key, value in fault_and_more.items() if key in known}}
    more = {key: value for key, value in fault_and_more.items() if key not in known}
    return simulated(constant(rate_per_s, seconds), faults=[fault], metric_window_s=10, **more)


def throughput_per_s(observation):
    return observation.operators["map"].throughput_per_s


# Node loss


def test_a_lost_node_is_gone_with_its_replica_and_comes_back_empty():
    job = struck("node_loss", at_s=60, for_s=300, node="fog2", recovery_s=30)
    seen = looked_at(job, 60, 80, 100, 200, 360, 400)
    assert "fog2" not in [node.name for node in seen[60].topology.nodes]
    assert seen[80].placement == {"source": (), "map": (), "sink": ()}
    assert seen[80].requested == placed("fog1")
    assert seen[100].placement == placed("fog1")
    assert throughput_per_s(seen[100]) == pytest.approx(100)
    assert "fog2" in [node.name for node in seen[360].topology.nodes]
    assert throughput_per_s(seen[400]) == pytest.approx(100)


def test_nothing_is_processed_while_a_job_recovers_from_a_loss():
    job = struck("node_loss", at_s=60, node="fog2", recovery_s=30)
    job.wait(120)
    processed = {sample.time_s: sample.processed_records for sample in job.samples()}
    assert processed[60] == processed[70] == processed[90] == 200 * 60
    assert processed[100] == 200 * 60 + 100 * 10


def test_a_lost_node_cannot_be_asked_for_until_it_is_back():
    job = struck("node_loss", at_s=60, for_s=300, node="fog2", recovery_s=30)
    job.wait(120)
    job.apply(Plan(placed("fog1", "fog2")))
    [receipt] = job.observe().receipts
    assert receipt.outcome == "refused"
    assert "unknown node 'fog2'" in receipt.message
    job.wait(240)
    job.apply(Plan(placed("fog1", "fog2")))
    job.wait(120)
    [receipt] = job.observe().receipts
    assert receipt.outcome == "done"


def test_losing_a_node_that_does_nothing_stops_nothing():
    job = struck("node_loss", at_s=60, node="fog5", recovery_s=30)
    seen = looked_at(job, 60, 70)
    assert "fog5" not in [node.name for node in seen[70].topology.nodes]
    assert throughput_per_s(seen[70]) == pytest.approx(200)


def test_a_job_that_lost_its_only_replica_can_be_given_another():
    job = struck("node_loss", at_s=60, node="fog1", recovery_s=30, map_nodes=["fog1"], rate_per_s=50)
    seen = looked_at(job, 100)
    assert seen[100].requested["map"] == ()
    job.apply(Plan(placed("fog3")))
    job.wait(180)
    assert throughput_per_s(job.observe()) == pytest.approx(100)


def test_a_job_that_lost_its_only_replica_goes_on_when_the_node_is_back():
    """Below its n_min an operator has nobody to measure, so no policy would ever ask for a replica again."""
    fault = {"at_s": 60, "for_s": 120, "node": "fog1", "recovery_s": 30}
    job = struck("node_loss", map_nodes=["fog1"], rate_per_s=50, **fault)
    seen = looked_at(job, 170, 300)
    assert seen[170].placement["map"] == ()
    assert throughput_per_s(seen[300]) == pytest.approx(100)


def test_a_node_lost_while_an_instance_boots_on_it_takes_the_instance_along():
    boot = {"style": "boot", "duration_s": 30}
    job = struck("node_loss", at_s=70, node="fog3", recovery_s=10, reconfiguration=boot)
    job.wait(60)
    job.apply(Plan(placed("fog1", "fog2", "fog3")))
    job.wait(60)
    observation = job.observe()
    assert observation.placement == placed("fog1", "fog2")
    assert observation.requested == placed("fog1", "fog2")


def test_nothing_can_be_changed_while_a_job_recovers():
    job = struck("node_loss", at_s=60, node="fog2", recovery_s=30)
    job.wait(70)
    job.apply(Plan(placed("fog1", "fog3")))
    assert [receipt.outcome for receipt in job.observe().receipts] == ["refused"]


# The others


def test_a_straggler_slows_the_operator_down_and_recovers():
    """fog2 at half its speed: the mean of 1 and 0.5, so 150 instead of 200."""
    job = struck("straggler", at_s=60, for_s=120, node="fog2", speed_factor=0.5)
    seen = looked_at(job, 60, 100, 200)
    assert [throughput_per_s(seen[time_s]) for time_s in seen] == pytest.approx([200, 150, 200])


def test_a_slow_network_costs_capacity_and_recovers():
    """fog1 and fog2 are 50 ms apart: 200 − 0.5 · 50 = 175; three times as slow 200 − 0.5 · 150 = 125."""
    laws = {
        "source": {"law": "linear", "per_replica_per_s": 1024},
        "map": {"law": "power_latency", "alpha_per_s": 100, "gamma_per_s_per_ms": 0.5},
        "sink": {"law": "linear", "per_replica_per_s": 1024},
    }
    job = struck("slow_network", at_s=60, for_s=120, rtt_factor=3, capacity=laws)
    seen = looked_at(job, 50, 100, 200)
    assert [throughput_per_s(seen[time_s]) for time_s in seen] == pytest.approx([175, 125, 175])
    assert [seen[time_s].topology.rtt_ms("fog1", "fog2") for time_s in seen] == [50, 150, 50]


def test_two_slow_networks_at_once_multiply():
    faults = [{"kind": "slow_network", "at_s": at_s, "for_s": 60, "rtt_factor": 2} for at_s in (10, 40)]
    seen = looked_at(simulated(constant(50, 200), faults=faults), 20, 50, 80, 110)
    assert [seen[t].topology.rtt_ms("fog1", "fog2") for t in seen] == [100, 200, 100, 50]


def test_without_metrics_nothing_is_measured_but_the_job_goes_on():
    """None means not measured, never 0: also for nodes."""
    job = struck("lost_metrics", at_s=60, for_s=120)
    seen = looked_at(job, 50, 100, 200)
    blind = seen[100]
    assert set(blind.operators.values()) == {OperatorMetrics()}
    assert (blind.measured_s, blind.lag_records, blind.response_time_ms) == (None, None, None)
    assert [throughput_per_s(seen[time_s]) for time_s in (50, 200)] == pytest.approx([200, 200])
    processed = [sample.processed_records for sample in job.samples() if sample.time_s % 10 == 0]
    assert {b - a for a, b in pairwise(processed)} == {2000}


def test_without_metrics_a_node_is_not_idle_but_unknown():
    blind = looked_at(struck("lost_metrics", at_s=60, for_s=120), 100)[100]
    assert set(blind.nodes.values()) <= {NodeMetrics()}


def test_before_the_first_window_a_node_is_not_idle_but_unknown():
    assert set(simulated(constant(150, 60)).observe().nodes.values()) <= {NodeMetrics()}


@pytest.mark.parametrize("style", ["restart", "in_place", "pause"])
def test_a_failed_savepoint_stops_the_job_for_nothing(style):
    """Asked for at 60 s: two minutes later two replicas go on, 36 000 records behind."""
    reconfiguration = {"style": style, "duration_s": 120}
    job = struck("failed_savepoint", at_s=30, for_s=60, reconfiguration=reconfiguration)
    job.wait(60)
    job.apply(Plan(placed("fog1", "fog2", "fog3")))
    seen = looked_at(job, 180, 200)
    [receipt] = seen[180].receipts
    assert (receipt.outcome, receipt.downtime_s, receipt.finished_s) == ("failed", 120, 180)
    assert "savepoint" in receipt.message
    assert seen[200].placement == seen[200].requested == placed("fog1", "fog2")
    assert throughput_per_s(seen[200]) == pytest.approx(200)


def test_after_the_fault_the_next_savepoint_succeeds():
    job = struck("failed_savepoint", at_s=30, for_s=60)
    job.wait(60)
    job.apply(Plan(placed("fog1", "fog2", "fog3")))
    job.wait(120)
    job.observe()
    job.apply(Plan(placed("fog1", "fog2", "fog3")))
    job.wait(120)
    assert [receipt.outcome for receipt in job.observe().receipts] == ["done"]


def test_a_fault_without_an_end_lasts():
    job = struck("straggler", at_s=60, node="fog2", speed_factor=0.5)
    assert throughput_per_s(looked_at(job, 890)[890]) == pytest.approx(150)


def test_a_fault_may_strike_from_the_start():
    job = struck("straggler", at_s=0, for_s=30, node="fog2", speed_factor=0.5)
    seen = looked_at(job, 20, 50)
    assert [throughput_per_s(seen[time_s]) for time_s in seen] == pytest.approx([150, 200])


@pytest.mark.parametrize("fault", ["node_loss", "straggler"])
def test_a_fault_of_an_unknown_node_is_refused(fault):
    more = {"speed_factor": 0.5} if fault == "straggler" else {}
    with pytest.raises(FogscaleError, match=r"testbed\.faults: unknown node 'fgo2': did you mean fog2\?"):
        struck(fault, at_s=60, node="fgo2", **more)


def test_replicas_lost_one_node_after_the_other_come_back_one_after_the_other():
    faults = [
        {"kind": "node_loss", "at_s": 60, "for_s": 240, "node": "fog1", "recovery_s": 0},
        {"kind": "node_loss", "at_s": 120, "for_s": 300, "node": "fog2", "recovery_s": 0},
    ]
    job = simulated(constant(50, 600), topology=chain(n_min=2), faults=faults)
    seen = looked_at(job, 90, 150, 330, 450)
    assert [seen[t].requested["map"] for t in seen] == [("fog2",), (), ("fog1",), ("fog1", "fog2")]
