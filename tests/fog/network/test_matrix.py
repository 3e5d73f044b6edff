from __future__ import annotations

from typing import Any

import pytest

from fog.network.matrix import rtt_matrix, tolerance_ms
from fogscale.errors import FogscaleError

NODES = ("server1", "fog1", "fog2")


def matrix(**changes: Any) -> dict[str, Any]:
    rows = {"nodes": list(NODES), "server1": [0, 5, 50], "fog1": [5, 0, 300], "fog2": [50, 300, 0]}
    return {**rows, **changes}


def test_a_good_matrix_answers_for_both_directions() -> None:
    rtt_ms = rtt_matrix(matrix(), NODES)
    assert rtt_ms("fog1", "fog2") == rtt_ms("fog2", "fog1") == 300
    assert rtt_ms("server1", "server1") == 0


def test_only_the_nodes_in_use_are_picked_whatever_the_order_of_the_rows() -> None:
    rows = {key: matrix()[key] for key in ("fog2", "nodes", "fog1", "server1")}
    rtt_ms = rtt_matrix(rows, ("fog2", "server1"), known=("fog1",))
    assert rtt_ms.names == ("fog2", "server1")
    assert rtt_ms.rows_ms == ((0, 50), (50, 0))


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        pytest.param(None, "write 'nodes:", id="nothing"),
        pytest.param({"fog1": [0]}, "write 'nodes:", id="no header"),
        pytest.param(matrix(fog1=[5, 0]), "pair fog1-fog2 is missing", id="a row too short"),
        pytest.param(matrix(fog1=[5, 0, 300, 1]), "4 values for 3 nodes", id="a row too long"),
        pytest.param(matrix(fog1=5), "row of fog1 is no list", id="a row that is a number"),
        pytest.param(
            matrix(fog2=[50, 299, 0]), "fog2-fog1 takes 299 ms in the row of fog2 but 300 ms", id="asymmetric"
        ),
        pytest.param(matrix(fog1=[5, 7, 300]), "from fog1 to itself takes 7 ms", id="a diagonal"),
        pytest.param(matrix(fog1=[5, 0, "far"]), "fog1-fog2 is 'far'", id="a word"),
        pytest.param(matrix(fog1=[5, 0, True]), "fog1-fog2 is 'True'", id="a truth value"),
        pytest.param(matrix(fog1=[5, 0, float("nan")]), "fog1-fog2 is 'nan'", id="not a number"),
        pytest.param(matrix(fog1=[-5, 0, 300]), "cannot be negative", id="negative"),
        pytest.param(
            matrix(fog1=[5, 0, 301]), "more than 300 ms: lower it, or raise fog_rtt_max_ms", id="too far"
        ),
        pytest.param(matrix(fgo3=[0, 0, 0]), "a row for fgo3 but no column", id="a row without a column"),
        pytest.param(
            matrix(nodes=[*NODES, "fog3"]), "fog3 has a column but no row", id="a column without a row"
        ),
        pytest.param(matrix(nodes=["fog1", "fog1", "fog2"]), "names fog1 twice", id="a name twice"),
    ],
)
def test_a_wrong_matrix_is_refused_in_words(rows: Any, words: str) -> None:
    with pytest.raises(FogscaleError, match=words.replace("(", r"\(")):
        rtt_matrix(rows, NODES)


def test_a_node_the_matrix_does_not_speak_of_is_named_with_its_pair() -> None:
    with pytest.raises(FogscaleError, match="does not speak of fog3, so the pair fog3-server1 is missing"):
        rtt_matrix(matrix(), (*NODES, "fog3"))


def test_a_misspelt_node_finds_its_way_back() -> None:
    rows = {"nodes": ["server1", "fgo1"], "server1": [0, 5], "fgo1": [5, 0]}
    with pytest.raises(FogscaleError, match="did you mean fog1"):
        rtt_matrix(rows, ("server1", "fog1"))


def test_longer_round_trips_are_allowed_when_said_so() -> None:
    rows = {"nodes": ["a", "b"], "a": [0, 900], "b": [900, 0]}
    assert rtt_matrix(rows, ("a", "b"), most_ms=1000)("a", "b") == 900


@pytest.mark.parametrize(("wanted_ms", "allowed_ms"), [(0, 1), (10, 1), (100, 3), (300, 9)])
def test_tolerance_is_a_millisecond_or_three_per_cent(wanted_ms: float, allowed_ms: float) -> None:
    assert tolerance_ms(wanted_ms) == pytest.approx(allowed_ms)
