"""Kinds of records with deadlines, memory, hand-over of state and what is read besides the truth."""

from math import exp

import numpy as np
import pytest

from controller.model import Plan
from fogscale.errors import FogscaleError
from tests.support.jobs import placed
from tests.support.runs import constant, simulated, simulation

SMOOTH = {"arrival_scv": 0, "service_scv": 0}
ALL = {"record": {"share": 1, "deadline_s": 10}}


def last_sample(job, seconds):
    job.wait(seconds)
    return list(job.samples())[-1]


def test_nobody_is_late_while_there_is_no_backlog():
    sample = last_sample(simulated(constant(50, 100), kinds=ALL, **SMOOTH), 101)
    assert sample.late_records == {"record": 0}


def test_records_behind_a_long_backlog_are_late():
    """Each second leaves 200 behind, at 100/s: from the 5th on, those that come wait for 10 s or more."""
    job = simulated(constant(300, 100), map_nodes=["fog1"], kinds=ALL, **SMOOTH)
    sample = last_sample(job, 100)
    assert sample.time_s == 90
    assert sample.late_records["record"] == 300 * (90 - 4)


def test_a_share_of_the_records_has_a_share_of_the_late_ones():
    kinds = {
        "image": {"share": 100 / 101, "deadline_s": 10},
        "query": {"share": 1 / 101, "deadline_s": 2, "time_ratio": 0.2, "wait_ratio": 0.2},
    }
    job = simulated(constant(300, 100), map_nodes=["fog1"], kinds=kinds, **SMOOTH)
    late = last_sample(job, 100).late_records
    assert late["image"] == pytest.approx(100 * late["query"], rel=0.01)


def test_chance_alone_makes_some_records_late_as_in_an_m_m_1_queue():
    """One replica does 100/s, 90 arrive: an exponential sojourn of 0.1 s, of which exp(-limit/mean) exceeds a
    limit. Hops take 2 x 2.5 ms, the other operators 1 ms each; the sum is nearly exponential too."""
    kinds = {"record": {"share": 1, "deadline_s": 0.5}}
    sample = last_sample(simulated(constant(90, 1000), map_nodes=["fog1"], kinds=kinds), 1000)
    share = sample.late_records["record"] / sample.offered_records
    assert share == pytest.approx(exp(-(0.5 - 0.007) / 0.1), rel=0.1)


def test_late_records_do_not_depend_on_how_often_somebody_looks():
    arrivals = [*constant(150, 100), *constant(50, 300)]
    seldom, often = (simulated(arrivals, map_nodes=["fog1"], kinds=ALL) for _ in range(2))
    seldom.wait(400)
    for _ in range(100):
        often.wait(4)
    a, b = (list(job.samples())[-1].late_records["record"] for job in (seldom, often))
    assert a == pytest.approx(b, rel=0.01)
    assert a > 10_000


def test_records_that_pass_the_queue_by_are_not_late():
    kinds = {"query": {"share": 1, "deadline_s": 2, "wait_ratio": 0}}
    job = simulated(constant(300, 100), map_nodes=["fog1"], kinds=kinds, **SMOOTH)
    assert last_sample(job, 100).late_records == {"query": 0}


def test_the_time_in_the_job_adds_up_over_all_records():
    """Services 1000/1024 + 10 + 1000/1024 ms and 5 ms on the way."""
    job = simulated(constant(50, 100), map_nodes=["fog1"], kinds=ALL, **SMOOTH)
    sample = last_sample(job, 100)
    assert sample.time_in_job_s["record"] == pytest.approx(50 * 100 * (0.015 + 2 / 1024))


def test_records_of_an_instance_that_boots_wait_for_it():
    """Half of the records belong to the second of two instances. It takes 10 s: those that come 10, 9, … 1 s
    before it is ready wait as long, which is 55 s per record and second, and all but the last are late."""
    kinds = {"query": {"share": 1, "deadline_s": 1.5, "stateful": True}}
    boot = {"style": "boot", "duration_s": 10}
    ends = []
    for nodes in (("fog1",), ("fog1", "fog2")):
        job = simulated(constant(50, 100), map_nodes=["fog1"], kinds=kinds, reconfiguration=boot, **SMOOTH)
        job.apply(Plan(placed(*nodes)))
        ends.append(last_sample(job, 11))
    calm, scaled = ends
    assert scaled.time_s == 10
    assert scaled.time_in_job_s["query"] - calm.time_in_job_s["query"] == pytest.approx(25 * 55)
    assert calm.late_records["query"] == 0
    assert scaled.late_records["query"] == 25 * 9


def test_all_that_is_paid_for_is_counted():
    """source and sink, map on fog1, one that boots, one on standby."""
    job = simulated(
        constant(50, 100), map_nodes=["fog1"], reconfiguration={"style": "boot", "duration_s": 20}
    )
    job.apply(Plan(placed("fog1"), standby=1))
    job.wait(20)
    job.apply(Plan(placed("fog1", "fog3"), standby=1))
    job.wait(15)
    assert {sample.time_s: sample.allocated for sample in job.samples()}[30] == 5


def test_the_mean_response_is_between_the_quantiles_of_a_skewed_time():
    sample = last_sample(simulated(constant(90, 100), map_nodes=["fog1"]), 50)
    assert sample.response_p50_ms < sample.response_mean_ms < sample.response_p95_ms


def test_what_every_record_takes_besides_comes_on_top_and_makes_more_of_them_late():
    """As above: an exponential sojourn of 0.1 s; 0.3 of 0.5 s are gone before it begins."""
    kinds = {
        "plain": {"share": 0.5, "deadline_s": 0.5},
        "sent": {"share": 0.5, "deadline_s": 0.5, "least_s": 0.3},
    }
    sample = last_sample(simulated(constant(90, 1000), map_nodes=["fog1"], kinds=kinds), 1000)
    records = 0.5 * sample.offered_records
    besides_s = (sample.time_in_job_s["sent"] - sample.time_in_job_s["plain"]) / records
    assert besides_s == pytest.approx(0.3, rel=1e-3)
    assert sample.late_records["sent"] / records == pytest.approx(exp(-(0.2 - 0.007) / 0.1), rel=0.1)


def test_shares_beyond_the_whole_are_explained():
    kinds = {"a": {"share": 0.7, "deadline_s": 1}, "b": {"share": 0.7, "deadline_s": 1}}
    with pytest.raises(FogscaleError, match=r"shares add up to 1.4"):
        simulation(kinds=kinds)


# Memory


def test_memory_grows_with_work_and_with_what_waits():
    """150 arrive at 100/s: fully busy, and after 60 s 3000 wait for one instance."""
    memory = {"map": {"idle_ratio": 0.2, "per_busy_ratio": 0.3, "per_waiting_record_ratio": 1e-4}}
    job = simulated(constant(150, 120), map_nodes=["fog1"], memory=memory, buffering="queues", **SMOOTH)
    job.wait(60)
    seen = job.observe()
    assert seen.operators["map"].memory_ratio == pytest.approx(0.2 + 0.3 + 0.3)
    assert seen.operators["map"].instances[0].memory_ratio == pytest.approx(0.8)
    assert seen.nodes["fog1"].memory_ratio == pytest.approx(0.8)
    assert seen.operators["source"].memory_ratio is None
    assert seen.nodes["fog2"].memory_ratio is None


def test_memory_of_an_unknown_operator_is_explained():
    with pytest.raises(FogscaleError, match="did you mean map"):
        simulated(constant(1, 10), memory={"mpa": {"idle_ratio": 0.1}})


# Hand-over of state

BOOT = {"style": "boot", "duration_s": 10, "handover_s": 4}


def silent_seconds(job, seconds):
    """Seconds in which the scaled operator runs nothing."""
    silent = 0
    for _ in range(seconds):
        silent += not job.observe().placement["map"]
        job.wait(1)
    return silent


def test_an_operator_stands_still_when_an_instance_joins():
    job = simulated(constant(50, 100), map_nodes=["fog1"], reconfiguration=BOOT)
    job.apply(Plan(placed("fog1", "fog2")))
    assert silent_seconds(job, 40) == 4


def test_an_operator_stands_still_when_an_instance_leaves():
    job = simulated(constant(50, 100), map_nodes=["fog1", "fog2"], reconfiguration=BOOT)
    job.apply(Plan(placed("fog1")))
    assert silent_seconds(job, 40) == 4


def test_instances_that_hand_state_over_can_still_be_asked():
    """Filters per instance must not take a pause for an end."""
    job = simulated(constant(50, 100), map_nodes=["fog1", "fog2"], reconfiguration=BOOT)
    job.wait(20)
    job.apply(Plan(placed("fog1")))
    job.wait(1)
    seen = job.observe()
    assert seen.placement["map"] == ()
    assert [one.id for one in seen.operators["map"].instances] == ["map-fog1-0"]


def test_an_instance_keeps_its_name_when_one_before_it_joins_later():
    """fog2 and fog3 boot together; whichever is ready first is called the same afterwards."""
    boot = {"style": "boot", "duration_s": [5, 25]}
    job = simulated(constant(50, 100), map_nodes=["fog1"], reconfiguration=boot)
    job.apply(Plan(placed("fog1", "fog2", "fog3")))
    names = set()
    for _ in range(30):
        job.wait(1)
        seen = job.observe().operators["map"].instances
        names |= {one.id for one in seen if one.state == "running"}
    assert names == {"map-fog1-0", "map-fog2-0", "map-fog3-0"}


@pytest.mark.parametrize(
    ("reconfiguration", "message"),
    [
        ({"style": "restart", "handover_s": 1}, "only the style boot"),
        ({"style": "boot", "provision_s": 1}, "duration_s is what a new instance takes"),
        ({"style": "restart", "provision_s": [9, 1]}, "runs backwards"),
    ],
)
def test_durations_that_mean_nothing_are_explained(reconfiguration, message):
    with pytest.raises(FogscaleError, match=message):
        simulation(reconfiguration=reconfiguration)


# What is read


def test_what_waits_by_chance_is_measured_too():
    """Little's law in an M/M/1 queue at 80 %: 0.8²/0.2 = 3.2 records wait, and the lag counts them."""
    job = simulated(constant(80, 200), map_nodes=["fog1"])
    job.wait(100)
    seen = job.observe()
    assert seen.operators["map"].queue_records == pytest.approx(3.2)
    assert seen.lag_records == pytest.approx(3.2, abs=0.02)


@pytest.mark.parametrize(
    ("noise", "read"),
    [
        ({"cpu_absolute": 0.05}, lambda seen: seen.operators["map"].instances[0].cpu_ratio - 0.5),
        ({"memory_relative": 0.1}, lambda seen: seen.operators["map"].memory_ratio / 0.4 - 1),
        ({"queue_relative": 0.2}, lambda seen: seen.operators["map"].queue_records / 0.5 - 1),
    ],
)
def test_noise_has_the_spread_it_is_said_to_have(noise, read):
    """One replica at 50 %: in an M/M/1 queue 0.5 records wait."""
    memory = {"map": {"idle_ratio": 0.4}}
    job = simulated(constant(50, 2100), map_nodes=["fog1"], noise=noise, memory=memory, metric_window_s=1)
    job.wait(10)
    off = []
    for _ in range(2000):
        off.append(read(job.observe()))
        job.wait(1)
    (spread,) = noise.values()
    assert np.std(off) == pytest.approx(spread, rel=0.1)
    assert np.mean(off) == pytest.approx(0, abs=spread / 10)


def readings_of(rate_per_s, noise, count=4000, **settings):
    """The CPU of one replica that can do 100/s, read in every step."""
    job = simulated(constant(rate_per_s, count + 100), map_nodes=["fog1"], noise=noise, **settings)
    job.wait(20)
    read = []
    for _ in range(count):
        read.append(job.observe().operators["map"].instances[0].cpu_ratio)
        job.wait(1)
    return np.array(read)


def test_readings_whose_windows_overlap_share_their_errors():
    """Windows of 4 s, read every second: 3, 2 and 1 of 4 s are shared, then none; the spread stays."""
    off = readings_of(50, {"cpu_absolute": 0.05, "cpu_by_window": True}, metric_window_s=4) - 0.5
    assert off.std() == pytest.approx(0.05, rel=0.1)
    for lag, shared in ((1, 0.75), (2, 0.5), (3, 0.25), (4, 0.0), (8, 0.0)):
        assert (off[lag:] * off[:-lag]).mean() / off.var() == pytest.approx(shared, abs=0.08)


def test_readings_a_window_apart_share_nothing_and_instances_have_errors_of_their_own():
    noise = {"cpu_absolute": 0.05, "cpu_by_window": True}
    job = simulated(constant(80, 9100), map_nodes=["fog1", "fog2"], noise=noise, metric_window_s=2)
    job.wait(10)
    off = np.empty((1500, 2))
    for k in range(len(off)):
        off[k] = [one.cpu_ratio for one in job.observe().operators["map"].instances]
        job.wait(3)
    off -= off.mean(axis=0)
    assert off.std() == pytest.approx(0.05, rel=0.1)
    assert (off[1:] * off[:-1]).mean() / off.var() == pytest.approx(0, abs=0.08)
    assert abs(np.corrcoef(off.T)[0, 1]) < 0.1


@pytest.mark.parametrize("load", [0.2, 0.6, 0.9])
def test_a_gauge_that_counts_ticks_errs_by_its_load(load):
    """A binomial of 50 ticks: √(x(1 − x) / 50), which is 0.069 at a load of 0.6."""
    read = readings_of(round(100 * load), {"cpu_ticks": 50}, metric_window_s=1)
    kept = read[(read > 0) & (read < 1)]  # what lies beyond is cut off
    assert len(kept) > 0.98 * len(read)
    assert kept.std() == pytest.approx((load * (1 - load) / 50) ** 0.5, rel=0.1)


def test_a_gauge_that_counts_ticks_does_not_err_at_full_load():
    assert set(readings_of(150, {"cpu_ticks": 50}, count=100, metric_window_s=1)) == {1.0}


def test_slow_noise_has_the_spread_and_lasts_as_long_as_it_is_said_to():
    """Its autocorrelation after t seconds is exp(−t / 8 s); the instances' errors are their own."""
    noise = {"cpu_wander": 0.04, "cpu_wander_s": 8}
    job = simulated(constant(80, 9100), map_nodes=["fog1", "fog2"], noise=noise, metric_window_s=1)
    job.wait(10)
    off = np.empty((9000, 2))
    for k in range(len(off)):
        off[k] = [one.cpu_ratio for one in job.observe().operators["map"].instances]
        job.wait(1)
    off -= off.mean(axis=0)
    assert off.std(axis=0) == pytest.approx(0.04, rel=0.12)
    for lag_s in (1, 8, 16):
        correlation = (off[lag_s:] * off[:-lag_s]).mean() / off.var()
        assert correlation == pytest.approx(np.exp(-lag_s / 8), abs=0.08)
    assert abs(np.corrcoef(off.T)[0, 1]) < 0.12
