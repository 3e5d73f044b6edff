"""Which nodes keep an idle TaskManager."""

import pytest

from controller.testbeds.flink.standby import on_standby

FREE = ["fog1", "fog2", "fog3", "fog4"]


@pytest.mark.parametrize(
    ("count", "wanted", "idle", "given_up", "expected"),
    [
        pytest.param(0, ["fog1"], ["fog2"], [], (), id="none are wanted"),
        pytest.param(1, ["fog1"], ["fog4"], ["fog2"], ("fog4",), id="what is up stays"),
        pytest.param(2, ["fog1"], ["fog4"], ["fog3"], ("fog4", "fog3"), id="then what is given up"),
        pytest.param(2, ["fog1"], [], [], ("fog2", "fog3"), id="then others, in order"),
        pytest.param(1, ["fog1", "fog2"], ["fog2"], [], ("fog3",), id="not what is used from now on"),
        pytest.param(9, ["fog1"], [], ["fog1"], ("fog2", "fog3", "fog4"), id="as many as there are"),
    ],
)
def test_nodes_on_standby(count, wanted, idle, given_up, expected):
    assert on_standby(count, wanted, idle, given_up, FREE) == expected
