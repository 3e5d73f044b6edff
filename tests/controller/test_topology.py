"""Topologies from configuration: what is wrong is said in one line."""

import pytest

from controller.model import records_per
from controller.topology import TopologySettings, start_placement
from fogscale.errors import FogscaleError
from fogscale.settings import validated
from tests.support.jobs import chain, placed

NODES = [{"name": "a"}, {"name": "b"}, {"name": "c"}]
OPERATORS = [{"name": "source"}, {"name": "map", "upstream": ["source"]}]


def built(nodes=NODES, operators=OPERATORS, rtt_ms=None, **more):
    values = {"nodes": nodes, "operators": operators, "rtt_ms": rtt_ms or {"uniform_ms": 5}, **more}
    return validated(TopologySettings, values, "topology").build()


def complaint(**topology):
    with pytest.raises(FogscaleError) as error:
        built(**topology)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_topology_has_what_its_settings_say():
    topology = built(
        nodes=[{"name": "a", "cores": 2, "memory_mb": 512, "speed": 0.5, "slots": 3}],
        operators=[{"name": "map", "n_min": 2, "n_max": 3, "stateful": True, "selectivity": 0.5}],
        elastic=True,
    )
    node, operator = topology.node("a"), topology.operator("map")
    assert (node.cores, node.memory_mb, node.speed, node.slots) == (2, 512, 0.5, 3)
    assert (operator.n_min, operator.n_max, operator.stateful, operator.selectivity) == (2, 3, True, 0.5)
    assert topology.elastic
    assert topology.rtt_ms("a", "elsewhere") == 5


def test_downstream_operators_are_found():
    topology = built(operators=[*OPERATORS, {"name": "join", "upstream": ["source", "map"]}])
    assert [operator.name for operator in topology.downstream_of("source")] == ["map", "join"]
    assert topology.downstream_of("join") == ()


def test_what_is_emitted_goes_to_all_or_is_shared():
    """Of 100 records the source emits 20; 70 % of these go left and 30 % right, the log gets all of them."""
    topology = built(
        operators=[
            {"name": "source", "selectivity": 0.2},
            {"name": "left", "upstream": {"source": 0.7}, "selectivity": 2.0},
            {"name": "right", "upstream": {"source": 0.3}},
            {"name": "log", "upstream": ["source"]},
            {"name": "join", "upstream": ["left", "right"]},
        ]
    )
    assert records_per(topology.operators, "source") == pytest.approx(
        {"source": 1, "left": 0.14, "right": 0.06, "log": 0.2, "join": 0.34}
    )
    assert records_per(topology.operators, "right") == {
        "source": 0,
        "left": 0,
        "right": 1,
        "log": 0,
        "join": 1,
    }


def test_an_operator_with_n_min_equal_to_n_max_cannot_be_scaled():
    topology = built(operators=[{"name": "fixed", "n_min": 2, "n_max": 2}, {"name": "free"}])
    assert [operator.scalable for operator in topology.operators] == [False, True]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        pytest.param(
            [[0, 1], [1, 0]], "3 nodes need 3 rows of as many, not 2 rows of [2]", id="too few rows"
        ),
        pytest.param(
            [[0, 1, 2], [1, 0], [2, 1, 0]],
            "3 nodes need 3 rows of as many, not 3 rows of [2, 3]",
            id="a short row",
        ),
        pytest.param(
            [[0, 1, 2], [1, 4, 3], [2, 3, 0]], "from b to itself takes 4 ms; write 0", id="not zero to itself"
        ),
        pytest.param(
            [[0, 1, 2], [1, 0, 3], [2, 9, 0]], "c to b takes 9 ms but back 3 ms", id="not the same both ways"
        ),
        pytest.param(
            [[0, -1, 2], [-1, 0, 3], [2, 3, 0]], "greater than or equal to 0", id="before it was sent"
        ),
    ],
)
def test_a_bad_matrix_is_explained(rows, message):
    assert message in complaint(rtt_ms={"matrix_ms": rows})


@pytest.mark.parametrize(
    ("rtt_ms", "message"),
    [
        pytest.param({"delays_ms": {"a": 1, "b": 2}}, "nothing is given for node 'c'", id="a node left out"),
        pytest.param(
            {"delays_ms": {"a": 1, "b": 2, "c": 3, "cc": 4}},
            "rtt_ms.delays_ms: unknown node 'cc': did you mean c?",
            id="a node too many",
        ),
        pytest.param({"coordinates_ms": {"a": [0]}}, "nothing is given for node", id="no coordinates"),
        pytest.param(
            {"coordinates_ms": {"a": [0], "b": [1, 1], "c": [2]}},
            "coordinates_ms",
            id="of different dimensions",
        ),
        pytest.param({"uniform_ms": 1, "delays_ms": {}}, "given: delays_ms, uniform_ms", id="two at once"),
        pytest.param({"unifrm_ms": 1}, "did you mean uniform_ms?", id="misspelt"),
    ],
)
def test_bad_round_trips_are_explained(rtt_ms, message):
    assert message in complaint(rtt_ms=rtt_ms)


def test_one_kind_of_round_trips_must_be_given():
    with pytest.raises(
        FogscaleError, match="exactly one of matrix_ms, coordinates_ms, delays_ms, uniform_ms"
    ):
        validated(
            TopologySettings, {"nodes": NODES, "operators": OPERATORS, "rtt_ms": {}}, "topology"
        ).build()


@pytest.mark.parametrize(
    "rtt_ms",
    [
        pytest.param({"delays_ms": {"a": 1, "b": 2, "c": 3}}, id="delays"),
        pytest.param({"matrix_ms": [[0, 1, 1], [1, 0, 1], [1, 1, 0]]}, id="matrix"),
        pytest.param({"coordinates_ms": {"a": [0], "b": [1], "c": [2]}}, id="coordinates"),
    ],
)
def test_an_elastic_topology_needs_round_trips_of_nodes_nobody_has_named_yet(rtt_ms):
    assert "elastic" in complaint(rtt_ms=rtt_ms, elastic=True)


@pytest.mark.parametrize(
    ("operators", "message"),
    [
        pytest.param([], "topology.operators is empty", id="none at all"),
        pytest.param(
            [{"name": "map"}, {"name": "map"}], "two operators are called 'map'", id="two of one name"
        ),
        pytest.param(
            [{"name": "source"}, {"name": "map", "upstream": ["sorce"]}],
            "operator 'map': upstream unknown operator 'sorce': did you mean source?",
            id="an upstream that does not exist",
        ),
        pytest.param(
            [{"name": "map", "upstream": ["source"]}, {"name": "source"}],
            "'map' is listed before its upstream 'source'",
            id="downstream first",
        ),
        pytest.param(
            [{"name": "map", "upstream": ["map"]}], "'map' is listed before its upstream 'map'", id="a loop"
        ),
        pytest.param(
            [{"name": "map", "n_min": 3, "n_max": 2}], "n_max is below n_min", id="n_max below n_min"
        ),
        pytest.param(
            [{"name": "map", "n_mx": 2}], "unknown key 'n_mx': did you mean n_max?", id="unknown key"
        ),
        pytest.param([{"name": "map", "n_min": 0}], "operators.0.n_min", id="no replica at all"),
        pytest.param(
            [{"name": "source"}, {"name": "map", "upstream": ["source", "source"]}],
            "operator 'map': upstream names 'source' twice: name it once",
            id="an upstream named twice",
        ),
        pytest.param(
            [{"name": "source"}, {"name": "map", "upstream": {"source": 1.5}}],
            "operators.1.upstream",
            id="more than all that is emitted",
        ),
    ],
)
def test_a_bad_job_is_explained(operators, message):
    assert message in complaint(operators=operators)


def test_two_nodes_of_one_name_are_refused():
    assert "two nodes are called 'a'" in complaint(nodes=[{"name": "a"}, {"name": "a"}])


def test_a_node_without_speed_is_refused():
    assert "nodes.0.speed" in complaint(nodes=[{"name": "a", "speed": 0}])


# Where a run starts

PINS = {"source": ("services",), "sink": ("services",)}


def test_replicas_start_on_the_nodes_nearest_to_each_other():
    assert start_placement(chain(), {"map": 2}, PINS) == placed("fog1", "fog2")


def test_without_a_number_an_operator_starts_with_n_min():
    assert start_placement(chain(n_min=3), {}, PINS) == placed("fog1", "fog2", "fog3")


def test_pinned_operators_start_where_they_are_pinned():
    pins = {**PINS, "map": ("fog5", "fog3")}
    assert start_placement(chain(n_min=2, n_max=2), {}, pins) == placed("fog5", "fog3")


@pytest.mark.parametrize(
    ("start", "pins", "message"),
    [
        pytest.param({"mpa": 2}, PINS, "unknown operator 'mpa': did you mean map?", id="unknown operator"),
        pytest.param({}, {"surce": ("fog1",)}, "did you mean source?", id="unknown pinned operator"),
        pytest.param({}, {"source": ("fog77",)}, "pins: unknown node 'fog77'", id="unknown node"),
        pytest.param({"map": 6}, PINS, "6 replicas of 'map' are outside 1..5", id="more than n_max"),
        pytest.param({}, dict.fromkeys(PINS, ("fog1",)), "has 1 slots", id="pinned where no slot is left"),
        pytest.param({}, {**PINS, "map": ("fog1",)}, "set its n_min and n_max to 1", id="pinned, but scaled"),
        pytest.param({"source": 2}, PINS, "pinned to 1 nodes, not 2", id="pinned, and started otherwise"),
        pytest.param({}, {"source": ("services", "fog1")}, "outside 1..1", id="pinned beyond n_max"),
        pytest.param({}, {**PINS, "map": ()}, "outside 1..5", id="pinned nowhere"),
    ],
)
def test_an_impossible_start_is_explained(start, pins, message):
    with pytest.raises(FogscaleError) as error:
        start_placement(chain(), start, pins)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_start_without_room_is_explained():
    with pytest.raises(FogscaleError, match="no free slot for replica 6 of 'map'"):
        start_placement(chain(n_max=None), {"map": 6}, PINS)


def test_a_start_may_take_every_slot():
    """source and sink on fog nodes leave the two slots of services and three fog nodes."""
    start = start_placement(chain(), {"map": 5}, {"source": ("fog1",), "sink": ("fog2",)})
    assert sorted(start["map"]) == ["fog3", "fog4", "fog5", "services", "services"]


@pytest.mark.parametrize(("upstream", "words"), [
    pytest.param({"source": -0.5}, "upstream.source: Input should be greater than 0", id="a share below 0"),
    pytest.param(["source", 3], "upstream.1: Input should be a valid string", id="a number for a name"),
])  # fmt: skip
def test_a_mistake_in_one_of_two_forms_is_named_where_it_stands(upstream, words):
    operators = [{"name": "source"}, {"name": "map", "upstream": upstream}]
    assert complaint(operators=operators) == f"topology: operators.1.{words}"
