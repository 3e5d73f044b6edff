"""Mechanisms that real runs showed, each by hand: what flies in a round trip, checkpoints, a job that gets
warm, processors that are busy while it is down, metrics that are missing, lag that is read too low."""

from __future__ import annotations

import pytest

from controller.model import Plan
from controller.testbeds.simulated.capacity import InFlight
from fogscale.errors import FogscaleError
from tests.support.jobs import placed
from tests.support.runs import constant, simulated, simulation

NO_CHANCE = {"arrival_scv": 0, "service_scv": 0}
RESTART = {"style": "restart", "duration_s": 20}


def with_map(**law):
    others = {"law": "linear", "per_replica_per_s": 1024}
    return {"source": others, "map": law, "sink": others}


def done_at(job, plan_at_10_s: Plan | None, seconds: int) -> dict[float, int]:
    """Records that have left the job, by time."""
    job.wait(10)
    if plan_at_10_s is not None:
        job.apply(plan_at_10_s)
    job.wait(seconds)
    return {sample.time_s: sample.processed_records for sample in job.samples()}


# Capacity: bytes in flight, checkpoints


@pytest.mark.parametrize(
    ("replicas", "rtt_ms", "expected_per_s"),
    [
        pytest.param(1, 0, 100, id="no round trip, no limit"),
        pytest.param(2, 100, 200, id="170 kB in 0.1 s are 850 records of 2 kB: the processor is slower"),
        pytest.param(2, 1700, 100, id="85 records in 1.7 s on each of two channels"),
        pytest.param(4, 1700, 200, id="more channels carry more"),
        pytest.param(0, 100, 0, id="nobody"),
    ],
)
def test_no_more_than_channels_carry(replicas, rtt_ms, expected_per_s):
    law = InFlight(law="in_flight", per_replica_per_s=100, in_flight_bytes=170_000, record_bytes=2000)
    assert law.capacity_per_s(replicas, 1.0, rtt_ms) == pytest.approx(expected_per_s)


def test_the_slowest_channel_holds_all_back_also_that_of_a_single_replica():
    """10 records in flight: fog1 is 5 ms from the source, fog3 100 ms, and they are 100 ms apart."""
    law = with_map(law="in_flight", per_replica_per_s=1000, in_flight_bytes=10)
    near, far, both = (
        simulated(constant(900, 200), map_nodes=nodes, capacity=law, metric_window_s=10)
        for nodes in (["fog1"], ["fog3"], ["fog1", "fog3"])
    )
    for job, expected_per_s in ((near, 900), (far, 100), (both, 200)):
        job.wait(60)
        assert job.observe().operators["map"].throughput_per_s == pytest.approx(expected_per_s)


def test_every_checkpoint_costs_round_trips():
    """fog2 and fog3 are 100 ms apart: 2 round trips every 2 s are a tenth of 200/s."""
    checkpoints = {"interval_s": 2, "round_trips": 2}
    job = simulated(
        constant(400, 100), map_nodes=["fog2", "fog3"], checkpoints=checkpoints, metric_window_s=10
    )
    job.wait(50)
    seen = job.observe().operators["map"]
    assert seen.throughput_per_s == pytest.approx(180)
    assert seen.cpu_ratio == pytest.approx(0.9)  # meanwhile the processor waits


def test_checkpoints_may_leave_nothing():
    checkpoints = {"interval_s": 1, "round_trips": 20}
    job = simulated(constant(10, 30), map_nodes=["fog2", "fog3"], checkpoints=checkpoints)
    assert done_at(job, None, 20)[20] == 0


# A job that gets warm


def test_after_a_restart_a_job_does_a_share_of_its_rate_for_a_while():
    """Down from 10 to 30 s, then 30 s at three quarters of 300/s, then all of it: offered are 280/s."""
    slow = {**RESTART, "catch_up_s": 30, "catch_up_ratio": 0.75}
    job = simulated(constant(280, 200), reconfiguration=slow, sample_interval_s=1)
    done = done_at(job, Plan(placed("fog1", "fog2", "fog3")), 75)
    assert [done[10], done[30]] == [2000, 2000]
    assert [done[45], done[60]] == [2000 + 15 * 225, 2000 + 30 * 225]
    assert done[80] == 2000 + 30 * 225 + 20 * 300


def test_what_waits_while_a_job_gets_warm_waits_longer():
    """At 40 s, 10 s after the stop, 20 s of getting warm are left, and 8000 - 2000 - 1500 records wait:
    3000 of them for those 20 s, the others for 7.5 s more."""
    reconfiguration = {**RESTART, "catch_up_s": 30, "catch_up_ratio": 0.75}
    job = simulated(constant(200, 40) + constant(0, 200), reconfiguration=reconfiguration, **NO_CHANCE)
    job.wait(10)
    job.apply(Plan(placed("fog1", "fog3")))
    job.wait(30)
    assert job.observe().lag_records == pytest.approx(200 * 40 - 2000 - 10 * 150)
    wait_s = 20 + (4500 - 3000) / 200
    assert job.observe().response_time_ms == pytest.approx(wait_s * 1000, abs=150)


def test_without_it_a_job_is_warm_at_once():
    job = simulated(constant(280, 100), reconfiguration=RESTART, sample_interval_s=1)
    assert done_at(job, Plan(placed("fog1", "fog2", "fog3")), 50)[50] == 10 * 200 + 20 * 300


# What monitoring shows after a restart


def test_starting_shows_as_cpu_in_the_windows_that_reach_into_it():
    """Window 40 s. At 50 s it holds 20 s of starting at 80 % and 20 s of work at the full 200/s."""
    reconfiguration = {**RESTART, "cpu_while_down_ratio": 0.8}
    job = simulated(constant(200, 300), reconfiguration=reconfiguration, metric_window_s=40)
    job.wait(10)
    job.apply(Plan(placed("fog1", "fog3")))
    job.wait(40)
    assert job.observe().operators["map"].cpu_ratio == pytest.approx((20 * 0.8 + 20 * 1.0) / 40)
    job.wait(40)
    assert job.observe().operators["map"].cpu_ratio == pytest.approx(1.0)  # the backlog is worked off


def test_metrics_are_missing_while_the_job_is_down_and_for_a_while_after():
    job = simulated(constant(100, 300), reconfiguration={**RESTART, "metrics_missing_s": 15})
    job.wait(10)
    assert job.observe().operators["map"].throughput_per_s is not None
    job.apply(Plan(placed("fog1", "fog3")))
    known = {}
    for _ in range(12):
        job.wait(5)
        seen = job.observe()
        known[seen.time_s] = seen.measured_s is not None
    assert [time_s for time_s, is_known in known.items() if is_known] == [45, 50, 55, 60, 65, 70]


def test_a_part_of_the_lag_is_read_and_buffers_hide_another():
    """200/s of 300/s pass: 100 more wait each second; 5 s of work are in buffers; half of the rest shows."""
    noise = {"lag_seen_ratio": 0.5, "lag_hidden_s": 5}
    job = simulated(constant(300, 100), noise=noise, **NO_CHANCE)
    job.wait(60)
    assert job.observe().lag_records == pytest.approx((60 * 100 - 5 * 200) * 0.5)
    assert [sample.lag_records for sample in job.samples()][-1] >= 5000  # the truth


def test_lag_is_never_read_below_nothing():
    job = simulated(constant(100, 100), noise={"lag_hidden_s": 5}, **NO_CHANCE)
    job.wait(60)
    assert job.observe().lag_records == 0


# A worker that bytes hold back


def test_a_byte_bound_worker_is_neither_busy_nor_calm_but_held_back():
    """20 records fly in 100 ms: 200/s of the 1000/s that one could do. It is busy for a fifth; of the four
    fifths that it waits, it is back-pressured itself for 0.9."""
    job = simulated(
        constant(400, 200),
        map_nodes=["fog3"],
        capacity=with_map(law="in_flight", per_replica_per_s=1000, in_flight_bytes=20),
        busy_in_latency_ratio=0,
        back_pressure_in_latency_ratio=0.9,
        metric_window_s=10,
    )
    job.wait(100)
    seen = job.observe().operators
    assert seen["map"].busy_ratio == pytest.approx(0.2)
    assert seen["map"].back_pressure_ratio == pytest.approx(0.9 * 0.8)
    assert seen["map"].true_rate_per_s == pytest.approx(1000)  # by which DS2 is misled
    assert seen["source"].back_pressure_ratio == pytest.approx(1 - 200 / 1024)
    assert seen["sink"].back_pressure_ratio == 0


def test_with_no_backlog_it_is_not_held_back():
    job = simulated(
        constant(100, 200),
        map_nodes=["fog3"],
        capacity=with_map(law="in_flight", per_replica_per_s=1000, in_flight_bytes=20),
        busy_in_latency_ratio=0,
        back_pressure_in_latency_ratio=0.9,
    )
    job.wait(100)
    assert job.observe().operators["map"].back_pressure_ratio == 0


def test_busy_and_held_back_are_parts_of_one_time():
    with pytest.raises(FogscaleError, match="together at most 1"):
        simulation(busy_in_latency_ratio=0.6, back_pressure_in_latency_ratio=0.5)
