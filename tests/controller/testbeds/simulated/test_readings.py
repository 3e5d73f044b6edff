"""CPU gauges and late back pressure, by hand: one replica of `map` can do 100 records/s."""

import numpy as np
import pytest

from controller.model import Plan
from controller.testbeds.simulated.measure import Draws, Readers
from controller.testbeds.simulated.settings import Noise
from fogscale.errors import FogscaleError
from tests.support.jobs import placed
from tests.support.runs import constant, simulated

LAW = {
    "source": {"law": "linear", "per_replica_per_s": 1000},
    "map": {"law": "linear", "per_replica_per_s": 100},
    "sink": {"law": "linear", "per_replica_per_s": 1000},
}


def bursts(records, every_s, times):
    """All at once, then nothing."""
    return [records, *[0] * (every_s - 1)] * times


def job(inputs, nodes=("fog1",), **settings):
    return simulated(inputs, map_nodes=list(nodes), capacity=LAW, metric_window_s=60, **settings)


def cpu_at(testbed, times_s):
    """By time, as the operator shows it."""
    shown, now_s = {}, 0
    for time_s in times_s:
        testbed.wait(time_s - now_s)
        now_s = time_s
        shown[time_s] = testbed.observe().operators["map"].cpu_ratio
    return shown


def test_a_gauge_shows_the_last_second_where_a_meter_shows_the_last_minute():
    """300 records every 6 s take 3 s of one replica: half of the time busy, and idle before each burst."""
    load = bursts(300, 6, 30)
    assert cpu_at(job(load), [120])[120] == pytest.approx(0.5)
    seen = cpu_at(job(load, cpu_gauge={"window_s": 1}), range(121, 127))
    assert list(seen.values()) == pytest.approx([1, 1, 1, 0, 0, 0])
    assert cpu_at(job(load, cpu_gauge={"window_s": 2}), [124])[124] == pytest.approx(0.5)


def test_gauges_of_instances_are_read_at_moments_of_their_own_and_averaged():
    """Two replicas take 300 records in 1.5 s. Up to 5 s old, each gauge shows 1, 0.5 or 0; the mean of many
    readings is the true one, a quarter."""
    testbed = job(
        bursts(300, 6, 300), ("fog1", "fog2"), cpu_gauge={"window_s": 1, "max_age_s": 5}, arrival_scv=0
    )
    testbed.wait(60)
    readings, differ = [], 0
    for _ in range(250):
        testbed.wait(6)
        seen = testbed.observe().operators["map"]
        own = [instance.cpu_ratio for instance in seen.instances]
        assert seen.cpu_ratio == pytest.approx(sum(own) / 2)
        readings += own
        differ += own[0] != own[1]
    assert set(readings) <= {0.0, 0.5, 1.0}
    assert sum(readings) / len(readings) == pytest.approx(0.25, abs=0.05)
    assert differ > 60


def test_errors_of_instances_average_out():
    """Of four instances, the mean of the readings scatters half as much as one of them."""
    noise = {"cpu_relative": 0.2}
    testbed = job(
        constant(200, 3000), ("fog1", "fog2", "fog3", "fog4"), cpu_gauge={"window_s": 5}, noise=noise
    )
    together, single = [], []
    testbed.wait(60)
    for _ in range(400):
        testbed.wait(5)
        seen = testbed.observe().operators["map"]
        together.append(seen.cpu_ratio)
        single.append(seen.instances[0].cpu_ratio)
    assert spread(single) == pytest.approx(0.5 * 0.2, rel=0.15)
    assert spread(together) == pytest.approx(0.5 * 0.2 / 2, rel=0.15)


def spread(values):
    mean = sum(values) / len(values)
    return (sum((value - mean) ** 2 for value in values) / len(values)) ** 0.5


def test_a_gauge_that_reaches_further_back_than_the_metrics_is_refused():
    with pytest.raises(FogscaleError, match="reach back further than metric_window_s"):
        job(constant(10, 60), cpu_gauge={"window_s": 30, "max_age_s": 31})


def pressures(testbed, times_s, plan_at=None):
    shown, now_s = {}, 0
    for time_s in times_s:
        testbed.wait(time_s - now_s)
        now_s = time_s
        ratio = testbed.observe().operators["source"].back_pressure_ratio
        shown[time_s] = None if ratio is None else round(ratio, 2)
        if time_s == plan_at:
            testbed.apply(Plan(placed("fog1", "fog2"), reason="test"))
    return shown


def test_back_pressure_is_that_of_the_look_before():
    """200 records/s from 60 s on, twice what one replica can do: the source passes on a tenth of what it
    could, and is held back for the rest."""
    load = [10] * 60 + [200] * 600
    at_once = pressures(job(load), range(60, 361, 60))
    late = pressures(job(load, back_pressure_readings={"late_s": 60}), range(60, 361, 60))
    assert at_once[60] == 0
    assert at_once[180] == pytest.approx(0.9, abs=0.01)
    assert late[60] is None
    assert [late[time_s] for time_s in range(120, 361, 60)] == [
        at_once[time_s] for time_s in range(60, 301, 60)
    ]


def test_after_a_change_was_asked_for_nothing_is_known_for_a_while():
    testbed = job(
        constant(200, 900),
        back_pressure_readings={"late_s": 60, "missing_s": 150},
        reconfiguration={"style": "restart", "duration_s": 20},
    )
    shown = pressures(testbed, range(60, 601, 60), plan_at=240)
    known = [time_s for time_s, ratio in shown.items() if ratio is not None]
    assert known == [180, 240, 420, 480, 540, 600]


def test_what_fits_into_buffers_holds_nobody_back():
    """90 records wait right after each burst of 100, 0 before the next: beyond 1000 buffered ones nothing is
    seen; without buffers the source is held back while they wait."""
    load = bursts(300, 6, 60)
    with_none, with_some = (pressures(job(load, buffered_records=n), [120])[120] for n in (0, 1000))
    assert with_none > 0.2
    assert with_some == 0


def test_every_gauge_has_its_own_errors_in_an_order_that_stays():
    """Else the results of all papers would move, though nothing else does."""
    noise = Noise(cpu_absolute=0.1, memory_relative=0.2, queue_relative=0.3)
    drawn = np.random.default_rng(1).standard_normal(6)
    draws = Draws.of(np.random.default_rng(1), np.random.default_rng(2))
    readers = Readers.of(noise, draws, meters=0, gauges=2)
    assert list(readers.cpu_error) == drawn[:2].tolist()
    assert list(readers.memory_factor) == (1 + 0.2 * drawn[2:4]).tolist()
    assert list(readers.queue_factor) == (1 + 0.3 * drawn[4:6]).tolist()
