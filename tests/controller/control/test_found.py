"""A running job in the words of policies."""

import pytest

from controller.control.found import shape_of, topology_of
from controller.control.monitor import as_reported
from controller.control.shadow import Tally
from controller.testbeds.flink.rest import Job, TaskManager, Vertex
from controller.topology import RttSettings
from fogscale.errors import FogscaleError

VERTICES = (
    Vertex("c", "Map -> Filter", 2, 128, 2, ("b",)),
    Vertex("a", "Source: Kafka rides -> parse", 1, 128, 1),
    Vertex("b", "Map", 2, 3, 2, ("a",)),
)
JOB = Job("1", "rides", "RUNNING", VERTICES)
NODES = (TaskManager("two", 4, 8.0, 1000.0), TaskManager("one", 2, 4.0, 500.0))


def test_operators_are_upstream_first_with_names_of_their_own():
    shape = shape_of(JOB, 6, None, ())

    assert [each.name for each in shape.operators] == ["Kafka_rides", "Map", "Map_2"]
    assert shape.vertices == {"Kafka_rides": "a", "Map": "b", "Map_2": "c"}
    assert shape.operators[2].upstream == ("Map",)


def test_sources_stay_and_others_scale_to_the_slots_or_to_what_flink_allows():
    shape = shape_of(JOB, 6, None, ())

    assert [(each.n_min, each.n_max) for each in shape.operators] == [(1, 1), (1, 3), (1, 6)]
    assert shape.scaled == ("Map", "Map_2")
    assert shape_of(JOB, 6, 4, ("Map_2",)).scaled == ("Map_2",)
    assert shape_of(JOB, 6, 4, ("Map_2",)).operators[2].n_max == 4


def test_a_slot_holds_one_instance_of_every_operator():
    topology = topology_of(shape_of(JOB, 6, None, ()), NODES, None)

    assert [(node.name, node.cores, node.slots) for node in topology.nodes] == [("one", 4, 6), ("two", 8, 12)]


def test_round_trips_are_those_that_were_given_also_of_taskmanagers_that_are_away():
    shape = shape_of(JOB, 6, None, ())
    given = RttSettings(delays_ms={"one": 5, "two": 50, "three": 500})

    assert topology_of(shape, NODES, given).rtt_ms("one", "two") == 50
    with pytest.raises(FogscaleError, match="nothing of TaskManager 'two'"):
        topology_of(shape, NODES, RttSettings(delays_ms={"one": 5}))
    with pytest.raises(FogscaleError, match="matrix_ms has no names"):
        topology_of(shape, NODES, RttSettings(matrix_ms=((0, 1), (1, 0))))


def test_a_taskmanager_is_known_by_what_the_reporter_makes_of_its_id():
    assert as_reported("10.0.0.1:6122-a7f") == "10_0_0_1:6122_a7f"


def test_what_a_policy_asked_for_stands_until_it_asks_for_something_else():
    """Two run. It asks for three at 10 s, says nothing at 20 s, asks for one at 30 s; the end is at 40 s."""
    tally = Tally()
    for time_s, plan in ((0, None), (10, 3), (20, None), (30, 1)):
        tally.note(time_s, {"map": 2}, None if plan is None else {"map": plan}, blind=False)
    tally.close(40)

    told = tally.as_dict()

    assert told["mean_replicas_wanted"] == (10 * 2 + 20 * 3 + 10 * 1) / 40
    assert (told["changes_wanted"], told["fewest_wanted"], told["most_wanted"]) == (2, 1, 3)
    assert told["content_ratio"] == 0.25


def test_a_job_that_somebody_else_rescaled_is_what_the_policy_has():
    tally = Tally()
    tally.note(0, {"map": 2}, {"map": 3}, blind=False)
    tally.note(10, {"map": 0}, None, blind=True)  # it restarts
    tally.note(20, {"map": 3}, None, blind=False)
    tally.close(30)

    told = tally.as_dict()

    assert (told["changes_wanted"], told["without_metrics"]) == (1, 1)
    assert told["content_ratio"] == pytest.approx(1 / 3, abs=0.001)
