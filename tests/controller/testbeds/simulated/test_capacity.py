"""Mechanism 1: every capacity law, by hand."""

import pytest
from pydantic import TypeAdapter

from controller.testbeds.simulated.capacity import CapacityLaw
from fogscale.errors import FogscaleError
from fogscale.settings import Settings, validated
from tests.support.runs import constant, simulated


class Holder(Settings):
    law: CapacityLaw


def law(**values):
    return TypeAdapter(CapacityLaw).validate_python(values)


POWER = law(law="power_latency", alpha_per_s=100, beta=0.5, gamma_per_s_per_ms=0.2)
LINEAR = law(law="linear", per_replica_per_s=100)
WINDOWED = law(law="linear", per_replica_per_s=100, half_rtt_ms=50)
USL = law(law="usl", per_replica_per_s=100, contention=0.1, crosstalk=0.01)
TABLE = law(law="table", measured_per_s=[100, 180, 240])


@pytest.mark.parametrize(
    ("law", "replicas", "speed", "rtt_ms", "expected_per_s"),
    [
        pytest.param(POWER, 1, 1.0, 0, 100, id="power: one replica"),
        pytest.param(POWER, 4, 1.0, 0, 200, id="power: 4^0.5 = 2"),
        pytest.param(POWER, 4, 1.0, 100, 180, id="power: 100 ms cost 20"),
        pytest.param(POWER, 4, 0.5, 100, 80, id="power: half the speed, the same network"),
        pytest.param(POWER, 1, 1.0, 600, 0, id="power: never below nothing"),
        pytest.param(POWER, 0, 1.0, 0, 0, id="power: nobody"),
        pytest.param(LINEAR, 3, 1.0, 999, 300, id="linear: no network"),
        pytest.param(LINEAR, 3, 0.5, 0, 150, id="linear: half the speed"),
        pytest.param(LINEAR, 0, 1.0, 0, 0, id="linear: nobody"),
        pytest.param(WINDOWED, 2, 1.0, 0, 200, id="windowed: no delay"),
        pytest.param(WINDOWED, 2, 1.0, 50, 100, id="windowed: half at half_rtt_ms"),
        pytest.param(WINDOWED, 2, 1.0, 150, 50, id="windowed: a quarter at three times that"),
        pytest.param(USL, 1, 1.0, 0, 100, id="usl: one replica"),
        pytest.param(USL, 3, 1.0, 0, 300 / 1.26, id="usl: 1 + 0.1·2 + 0.01·3·2 = 1.26"),
        pytest.param(USL, 0, 1.0, 0, 0, id="usl: nobody"),
        pytest.param(TABLE, 1, 1.0, 0, 100, id="table: the first point"),
        pytest.param(TABLE, 3, 2.0, 0, 480, id="table: twice the speed"),
        pytest.param(TABLE, 5, 1.0, 0, 360, id="table: the last step of 60, twice more"),
        pytest.param(TABLE, 0, 1.0, 0, 0, id="table: nobody"),
        pytest.param(law(law="table", measured_per_s=[70]), 3, 1.0, 0, 210, id="table: one point is linear"),
        pytest.param(
            law(law="table", measured_per_s=[100, 60]),
            4,
            1.0,
            0,
            0,
            id="table: falling, but not below nothing",
        ),
    ],
)
def test_laws(law, replicas, speed, rtt_ms, expected_per_s):
    assert law.capacity_per_s(replicas, speed, rtt_ms) == pytest.approx(expected_per_s)


@pytest.mark.parametrize("law", [POWER, LINEAR, WINDOWED, USL, TABLE], ids=lambda law: law.law)
@pytest.mark.parametrize("replicas", [0, 1, 2, 7])
def test_without_a_network_both_rates_agree(law, replicas):
    assert law.capacity_per_s(replicas, 0.8, 0) == pytest.approx(law.latency_free_per_s(replicas, 0.8))


@pytest.mark.parametrize("law", [POWER, WINDOWED], ids=["power_latency", "windowed"])
def test_the_latency_free_rate_knows_no_network(law):
    assert law.capacity_per_s(4, 1.0, 100) < law.capacity_per_s(4, 1.0, 0) == law.latency_free_per_s(4, 1.0)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"law": "power_latency", "alpha_per_s": 0}, "greater than 0"),
        ({"law": "power_latency", "alpha_per_s": 1, "gamma_per_s_per_ms": -1}, "greater than or equal to 0"),
        ({"law": "table", "measured_per_s": []}, "at least one replica"),
        ({"law": "usl", "per_replica_per_s": 1, "contentoin": 1}, "did you mean contention?"),
        ({"law": "cubic"}, "power_latency"),
        ({"alpha_per_s": 1}, "law"),
    ],
)
def test_a_law_that_makes_no_sense_is_explained(values, message):
    with pytest.raises(FogscaleError) as error:
        validated(Holder, {"law": values}, "test")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


# What the job really does on its nodes: saturated, its throughput is its capacity.


def throughput_per_s(capacity, map_nodes):
    job = simulated(
        constant(1000, 120),
        map_nodes=map_nodes,
        capacity={
            "source": {"law": "linear", "per_replica_per_s": 1024},
            "map": capacity,
            "sink": {"law": "linear", "per_replica_per_s": 1024},
        },
    )
    job.wait(60)
    return job.observe().operators["map"].throughput_per_s


POWER_SETTINGS = {"law": "power_latency", "alpha_per_s": 100, "beta": 0.5, "gamma_per_s_per_ms": 0.2}


@pytest.mark.parametrize(
    ("map_nodes", "expected_per_s"),
    [
        (("fog1",), 100),  # alone it has nobody to be far from
        (("fog1", "fog2", "fog3", "fog4"), 200 - 0.2 * 150),
        (("fog4", "fog3", "fog2", "fog1"), 200 - 0.2 * 150),
    ],
)
def test_the_largest_round_trip_among_the_replicas_counts(map_nodes, expected_per_s):
    assert throughput_per_s(POWER_SETTINGS, map_nodes) == pytest.approx(expected_per_s)
