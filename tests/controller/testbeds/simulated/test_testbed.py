"""Mechanism 7 and the frame of a run: windows, noise, staleness, settling, and when to give up."""

import numpy as np
import pytest

from controller.model import Capability, Plan
from controller.testbeds.simulated.testbed import SimulatedTestbed
from fogscale.errors import FogscaleError
from tests.support.jobs import chain, placed
from tests.support.runs import constant, simulated, simulation

INSTANT = {"style": "instant"}
MAP_RESPONSE_MS = (
    10 + 0.4 ** (6**0.5 - 1) * 5 / 0.6
)  # two replicas of 100/s at 40 %: 10 ms and Sakasegawa's wait


def metrics_of(job, observations, metric, period_s=60):
    values = []
    for _ in range(observations):
        job.wait(period_s)
        values.append(getattr(job.observe().operators["map"], metric))
    return np.array(values)


# Windows


def test_nothing_is_measured_before_anything_has_happened():
    observation = simulated(constant(100, 60)).observe()
    assert observation.time_s == 0
    assert observation.measured_s is None
    assert observation.operators["map"].throughput_per_s is None


def test_metrics_are_means_over_their_window():
    """40 s of nothing, then 120/s: over the last 60 s, a third of that, then two thirds, then all."""
    job = simulated(constant(0, 40) + constant(120, 200), metric_window_s=60)
    assert metrics_of(job, 6, "offered_rate_per_s", 20) == pytest.approx([0, 0, 40, 80, 120, 120])


def test_a_long_period_does_not_make_the_window_longer():
    job = simulated(constant(0, 240) + constant(120, 200), metric_window_s=60)
    assert metrics_of(job, 1, "offered_rate_per_s", 300) == pytest.approx([120])


@pytest.mark.parametrize("period_s", [45, 25, 50, 59])
def test_a_period_that_does_not_divide_the_window_does_not_either(period_s):
    """Nothing until 300 s, then 120/s: 60 s later the window is full, whatever the rhythm."""
    job = simulated(constant(0, 300) + constant(120, 600), metric_window_s=60)
    while job.observe().time_s < 360:
        job.wait(period_s)
    assert job.observe().operators["map"].offered_rate_per_s == pytest.approx(120)


def test_the_first_window_is_as_long_as_the_run():
    assert metrics_of(simulated(constant(120, 200)), 1, "offered_rate_per_s", 10) == pytest.approx([120])


def test_a_node_shows_the_cpu_of_its_instances_per_slot():
    """150/s: map at 75 % on its nodes; source and sink at 150/1024 share the two slots of services."""
    job = simulated(constant(150, 120))
    job.wait(60)
    cpu = {name: seen.cpu_ratio for name, seen in job.observe().nodes.items()}
    assert cpu["fog1"] == cpu["fog2"] == pytest.approx(0.75)
    assert cpu["services"] == pytest.approx(150 / 1024)
    assert cpu["fog3"] == 0


# Noise


def spread(values):
    return float(np.std(values) / np.mean(values))


def noisy(reconfiguration=INSTANT, **noise):
    return simulated(
        constant(80, 30_000), reconfiguration=reconfiguration, noise=noise, sample_interval_s=600
    )


@pytest.mark.parametrize(
    ("metric", "expected", "spread_expected"),
    [
        ("offered_rate_per_s", 80, 0.03),
        ("throughput_per_s", 80, 0.03),
        ("busy_ratio", 0.4, 0.03),
        ("cpu_ratio", 0.4, 0.10),
        ("response_time_ms", MAP_RESPONSE_MS, 0.03),
    ],
)
def test_noise_is_as_large_as_told_and_fair(metric, expected, spread_expected):
    """Of 400 draws the mean is right to 5 standard errors, the spread to a fifth."""
    values = metrics_of(noisy(relative=0.03, cpu_relative=0.10), 400, metric)
    assert values.mean() == pytest.approx(expected, rel=5 * spread_expected / 20)
    assert spread(values) == pytest.approx(spread_expected, rel=0.2)


def test_metrics_are_noisy_each_on_its_own():
    job = noisy(relative=0.03)
    rates, throughputs = [], []
    for _ in range(400):
        job.wait(60)
        seen = job.observe().operators["map"]
        rates.append(seen.offered_rate_per_s)
        throughputs.append(seen.throughput_per_s)
    assert abs(np.corrcoef(rates, throughputs)[0, 1]) < 0.25


def test_the_response_time_of_the_job_is_as_noisy_as_those_of_its_operators():
    job = noisy(relative=0.03)
    times_ms = []
    for _ in range(100):
        job.wait(60)
        times_ms.append(job.observe().response_time_ms)
    assert 0.003 < spread(times_ms) < 0.03  # hops are not measured, and operators' errors partly cancel out


def test_without_noise_metrics_are_exact():
    assert set(metrics_of(noisy(), 20, "throughput_per_s")) == {80.0}


def test_noise_keeps_ratios_between_0_and_1():
    job = simulated(constant(300, 6000), noise={"relative": 0.5, "cpu_relative": 2.0})
    for _ in range(90):
        job.wait(60)
        for seen in job.observe().operators.values():
            for ratio in (seen.cpu_ratio, seen.busy_ratio, seen.back_pressure_ratio):
                assert 0 <= ratio <= 1
            assert seen.throughput_per_s >= 0
            for instance in seen.instances:
                assert 0 <= instance.cpu_ratio <= 1


def test_noise_is_in_the_measurement_only():
    """Truth does not know who measures, or how badly."""

    def truth(**noise):
        job = simulated(constant(80, 600), noise=noise)
        for _ in range(10):
            job.wait(60)
            job.observe()
        return list(job.samples())

    assert truth(relative=0.5, cpu_relative=0.5, stale_ratio=0.5) == truth()


def test_while_settling_metrics_are_noisier():
    """Settling lasts for the whole run here, and triples the noise."""
    job = noisy({"style": "instant", "settling_s": 1e6}, relative=0.03, cpu_relative=0.10, settling_factor=3)
    job.apply(Plan(placed("fog2", "fog1")))
    assert spread(metrics_of(job, 400, "throughput_per_s")) == pytest.approx(0.09, rel=0.2)


def test_settling_ends():
    """Two minutes of settling; noise only then: the factor is so large that it cannot be missed."""
    job = noisy({"style": "instant", "settling_s": 120}, relative=0.001, settling_factor=500)
    job.wait(60)
    job.apply(Plan(placed("fog1", "fog3")))
    off = abs(metrics_of(job, 10, "throughput_per_s", 30) / 80 - 1)
    assert off[:3].max() > 0.02
    assert off[3:].max() < 0.005


def test_settling_begins_when_the_restart_is_over():
    """Restarted from 60 to 180 s, settling until 240 s."""
    job = simulated(
        constant(80, 2000),
        reconfiguration={"style": "restart", "duration_s": 120, "settling_s": 60},
        noise={"relative": 0.001, "settling_factor": 500},
        metric_window_s=10,
    )
    job.wait(60)
    job.apply(Plan(placed("fog1", "fog2", "fog3", "fog4")))
    job.wait(130)
    inputs = metrics_of(job, 10, "offered_rate_per_s", 10)  # from 200 s
    off = abs(inputs / 80 - 1)
    assert off[:4].max() > 0.02
    assert off[4:].max() < 0.005


# Staleness


def test_stale_observations_repeat_the_last_metrics():
    job = noisy(relative=0.03, stale_ratio=0.25)
    stale, before = 0, None
    for _ in range(400):
        job.wait(60)
        observation = job.observe()
        if observation.measured_s < observation.time_s:
            stale += 1
            assert observation.operators == before.operators
            assert observation.measured_s == before.measured_s
        before = observation
    assert stale / 400 == pytest.approx(0.25, abs=0.1)


def test_fresh_metrics_are_of_now():
    job = noisy(relative=0.03)
    job.wait(60)
    assert job.observe().measured_s == 60


# The end


def test_a_job_that_cannot_keep_up_is_given_up_after_as_long_as_the_workload():
    job = simulated(constant(500, 100))
    job.wait(1000)
    assert job.finished
    assert not job.drained
    assert job.observe().time_s == 200


@pytest.mark.parametrize(("limit_s", "ends_s"), [(0, 100), (35, 135), ("1 min", 160)])
def test_how_long_to_wait_for_the_rest_can_be_told(limit_s, ends_s):
    job = simulated(constant(500, 100), drain_limit_s=limit_s)
    job.wait(1000)
    assert job.finished
    assert job.observe().time_s == ends_s


def test_the_last_sample_is_of_the_end():
    job = simulated(constant(500, 100), drain_limit_s=35)
    job.wait(1000)
    *_, last = job.samples()
    assert last.time_s == 135
    assert last.lag_records == 500 * 100 - 200 * 135


def test_a_job_ends_with_its_last_record():
    """250/s for 100 s at 200/s: 125 s."""
    job = simulated(constant(250, 100))
    job.wait(1000)
    *_, last = job.samples()
    assert job.drained
    assert (last.time_s, last.lag_records) == (125, 0)


def test_a_restart_under_way_at_the_end_is_waited_for():
    job = simulated(constant(100, 100), drain_limit_s=600)
    job.wait(90)
    job.apply(Plan(placed("fog1", "fog2", "fog3")))
    job.wait(1000)
    *_, last = job.samples()
    assert job.drained
    assert last.time_s == 90 + 120 + 4  # 1000 records at 300/s


# What it offers, and what it refuses


def test_it_offers_instant_rescaling_only_in_that_style():
    assert Capability.INSTANT_RESCALE not in simulated(constant(1, 10)).offers
    assert Capability.INSTANT_RESCALE in simulated(constant(1, 10), reconfiguration=INSTANT).offers


def test_it_offers_memory_metrics_where_it_knows_the_memory_of_what_is_scaled():
    assert Capability.MEMORY not in simulated(constant(1, 10)).offers
    assert Capability.MEMORY in simulated(constant(1, 10), memory={"map": {"idle_ratio": 0.3}}).offers


@pytest.mark.parametrize(
    ("laws", "inputs", "message"),
    [
        pytest.param({"sink": None}, {}, "no law for operator 'sink'", id="an operator without a law"),
        pytest.param(
            {"skin": 1}, {}, "unknown operator 'skin': did you mean sink?", id="a law without operator"
        ),
        pytest.param({}, {"suorce": [1]}, "did you mean source?", id="input for nobody"),
        pytest.param({}, {"source": [1, 2], "map": [1]}, "map", id="inputs of different lengths"),
    ],
)
def test_settings_that_do_not_fit_the_job_are_explained(laws, inputs, message):
    law = {"law": "linear", "per_replica_per_s": 100}
    given = {name: law for name in ("source", "map", "sink", *laws) if laws.get(name, law) is not None}
    arrivals = {name: np.array(counts) for name, counts in (inputs or {"source": [1]}).items()}
    with pytest.raises(FogscaleError) as error:
        SimulatedTestbed(
            chain(), placed("fog1"), simulation(capacity=given), arrivals, np.random.default_rng(1)
        )
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("style", "low_s", "high_s"),
    [("restart", 120, 120), ("in_place", 0.2, 2), ("boot", 5, 25), ("pause", 2, 2), ("instant", 0, 0)],
)
def test_usual_durations(style, low_s, high_s):
    assert simulation(reconfiguration={"style": style}).reconfiguration.range_s == (low_s, high_s)


def test_durations_are_drawn_from_their_range():
    downtimes = []
    for seed in range(60):
        job = simulated(
            constant(50, 60), seed=seed, reconfiguration={"style": "in_place", "duration_s": [2, 10]}
        )
        job.apply(Plan(placed("fog1")))
        job.wait(20)
        downtimes += [receipt.downtime_s for receipt in job.observe().receipts]
    assert len(downtimes) == 60
    assert 2 <= min(downtimes) < 3
    assert 9 < max(downtimes) <= 10
