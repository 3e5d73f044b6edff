"""Mechanism 6: response times against closed forms of queueing theory, and the slowest way through a job."""

from math import factorial, log

import numpy as np
import pytest

from controller.model import Node, Operator, Plan, Topology
from controller.network import RttUniform
from controller.testbeds.simulated.response import Sojourn, Station, quantiles_s, sojourns
from controller.testbeds.simulated.settings import Simulation
from controller.testbeds.simulated.testbed import SimulatedTestbed
from fogscale.errors import FogscaleError
from fogscale.settings import validated
from tests.support.jobs import placed
from tests.support.runs import constant, simulated

LOADS = [0.1, 0.3, 0.5, 0.7, 0.9, 0.95]


def sojourn(rate_per_s, capacity_per_s, replicas, arrival_scv, service_scv):
    station = Station.of(capacity_per_s, replicas, arrival_scv, service_scv)
    [mean_s], [variance_s2] = sojourns([station], np.array([[rate_per_s]], dtype=float))
    assert station.wait_s(rate_per_s) == pytest.approx(mean_s[0] - station.service_s)
    return Sojourn(mean_s[0], variance_s2[0])


@pytest.mark.parametrize("load", LOADS)
def test_the_mean_of_an_m_m_1_queue_is_exact(load):
    """1 / (μ − λ) with μ = 100."""
    assert sojourn(100 * load, 100, 1, 1, 1).mean_s == pytest.approx(1 / (100 - 100 * load))


@pytest.mark.parametrize("load", LOADS)
def test_the_variance_of_an_m_m_1_queue_is_exact(load):
    """The sojourn is exponential, so its variance is its mean squared."""
    total = sojourn(100 * load, 100, 1, 1, 1)
    assert total.variance_s2 == pytest.approx(total.mean_s**2)


@pytest.mark.parametrize("load", LOADS)
def test_quantiles_of_an_m_m_1_queue_are_exponential(load):
    expected_s = [-log(1 - share) / (100 - 100 * load) for share in (0.50, 0.95, 0.99)]
    assert quantiles_s(sojourn(100 * load, 100, 1, 1, 1)) == pytest.approx(expected_s, rel=0.015)


def test_operators_vary_each_as_told():
    """50/s into one replica of 100/s: with regular arrivals and service nobody waits by chance, so map takes
    its 10 ms; the sink is left as it is, with 1 / (μ − λ)."""
    regular = {"map": 0.0, "source": 0.0}
    job = simulated(constant(50, 120), map_nodes=["fog1"], arrival_scv=regular, service_scv=regular)
    job.wait(60)
    seen = job.observe().operators
    assert seen["map"].response_time_ms == pytest.approx(10)
    assert seen["sink"].response_time_ms == pytest.approx(1000 / (1024 - 50))


def test_an_operator_that_varies_must_exist():
    with pytest.raises(FogscaleError, match="unknown operator 'mop': did you mean map"):
        simulated(constant(50, 120), arrival_scv={"mop": 2.0})


def erlang_c(servers: int, offered: float) -> float:
    """The probability to wait in an M/M/n queue."""
    busy = offered**servers / factorial(servers) * servers / (servers - offered)
    return busy / (sum(offered**k / factorial(k) for k in range(servers)) + busy)


@pytest.mark.parametrize("servers", [2, 3, 6, 10])
@pytest.mark.parametrize("load", LOADS)
def test_the_mean_of_an_m_m_n_queue_is_nearly_erlangs(servers, load):
    """Each server does 100/s: service takes 10 ms, waiting C / (nμ − λ)."""
    expected_s = 0.01 + erlang_c(servers, servers * load) / (100 * servers * (1 - load))
    assert sojourn(100 * servers * load, 100 * servers, servers, 1, 1).mean_s == pytest.approx(
        expected_s, rel=0.03
    )


def test_no_load_is_service_only():
    assert sojourn(0, 300, 3, 1, 1).mean_s == pytest.approx(0.01)


def test_regular_arrivals_and_service_never_wait():
    total = sojourn(90, 100, 1, 0, 0)
    assert total == Sojourn(pytest.approx(0.01), 0)
    assert quantiles_s(total)[2] == pytest.approx(0.01)


def test_bursts_make_the_waiting_longer_in_proportion():
    """Kingman: (4 + 1) / 2 instead of (1 + 1) / 2."""
    smooth, bursty = sojourn(80, 100, 1, 1, 1), sojourn(80, 100, 1, 4, 1)
    assert bursty.mean_s - 0.01 == pytest.approx(2.5 * (smooth.mean_s - 0.01))


def test_a_saturated_operator_has_a_finite_sojourn():
    """Beyond capacity it is the backlog that tells how long records wait."""
    assert 0 < sojourn(1e6, 100, 1, 1, 1).mean_s < 2


# Through a job. With an SCV of 0 every record takes the same time, and the quantiles are that time.

SMOOTH = {"arrival_scv": 0, "service_scv": 0}


def sampled_at(job, time_s):
    job.wait(time_s + 1)
    return {sample.time_s: sample for sample in job.samples()}[time_s]


def test_a_chain_takes_its_services_and_half_round_trips():
    """map on fog1: services 1000/1024 + 10 + 1000/1024 ms, and twice half of 5 ms."""
    sample = sampled_at(simulated(constant(50, 60), map_nodes=["fog1"], **SMOOTH), 30)
    assert sample.response_p50_ms == pytest.approx(10 + 2 * 1000 / 1024 + 5)
    assert sample.response_p99_ms == pytest.approx(sample.response_p50_ms)


def test_a_backlog_is_waited_for():
    """300 arrive per second, 100 are processed: after 30 s, 6000 wait for 60 s."""
    sample = sampled_at(simulated(constant(300, 60), map_nodes=["fog1"], **SMOOTH), 30)
    assert sample.lag_records == 6000
    assert sample.response_p50_ms == pytest.approx(60_000, rel=0.001)


def diamond(left_ms: float, right_ms: float) -> SimulatedTestbed:
    """source → left, right → join; the two branches take this long, the ends 1 ms each; hops 10 ms each."""
    operators = (
        Operator("source"),
        Operator("left", ("source",)),
        Operator("right", ("source",)),
        Operator("join", ("left", "right")),
    )
    services_ms = {"source": 1.0, "left": left_ms, "right": right_ms, "join": 1.0}
    laws = {name: {"law": "linear", "per_replica_per_s": 1000 / ms} for name, ms in services_ms.items()}
    values = {"capacity": laws, "reconfiguration": {"style": "instant"}, **SMOOTH}
    nodes = tuple(Node(operator.name, 1, 1024) for operator in operators)
    return SimulatedTestbed(
        Topology(nodes, operators, RttUniform(20.0)),
        {operator.name: (operator.name,) for operator in operators},
        validated(Simulation, values, "test"),
        {"source": np.full(60, 5)},
        np.random.default_rng(1),
    )


@pytest.mark.parametrize(("left_ms", "right_ms", "expected_ms"), [(10, 50, 72), (80, 50, 102), (50, 50, 72)])
def test_the_slowest_way_through_a_diamond_counts(left_ms, right_ms, expected_ms):
    """1 + 10 + the slower branch + 10 + 1 ms."""
    sample = sampled_at(diamond(left_ms, right_ms), 30)
    assert sample.response_p50_ms == pytest.approx(expected_ms)


def test_during_a_stop_the_rest_of_it_is_waited_for():
    """A restart of 120 s at 0 s: at 30 s, a record waits 90 s more and then for the 1500 before it."""
    job = simulated(constant(50, 200), map_nodes=["fog1"], **SMOOTH)
    job.apply(Plan(placed("fog2")))
    assert sampled_at(job, 30).response_p50_ms == pytest.approx(90_000 + 1500 / 100 * 1000, rel=0.001)


@pytest.mark.parametrize("load", LOADS)
def test_replicas_with_a_line_of_their_own_are_m_m_1_queues(load):
    """Four replicas of 25/s each: a record is there for 1 / (25 − 25 ρ), whatever the others do."""
    station = Station.of(100, 4, 1, 1, queue_each=True)
    [mean_s], _ = sojourns([station], np.array([[100 * load]], dtype=float))
    assert mean_s[0] == pytest.approx(1 / (25 - 25 * load))
    assert mean_s[0] > sojourn(100 * load, 100, 4, 1, 1).mean_s
